//! Selects a provider, its model and its API key by name.

use innkeeper_host::Environment;
use innkeeper_host::config::Secret;

use super::{Endpoint, HttpProvider};
use crate::provider::{Capabilities, ProviderApi};

/// A known provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderId {
    /// OpenAI.
    OpenAi,
    /// Any server with OpenAI's Chat Completions API.
    OpenAiCompatible,
    /// Anthropic.
    Anthropic,
    /// Google's Gemini.
    Gemini,
    /// Ollama.
    Ollama,
}

/// The selection of a provider and its model. `None` selects the provider's default.
#[derive(Clone, Debug, Default)]
pub struct ModelSelector {
    /// The name of the provider, in any case.
    pub provider: String,
    /// The provider's name of the model.
    pub model: Option<String>,
    /// The base URL, as the provider's own client defines it.
    pub base_url: Option<String>,
    /// The provider's API: `responses` or `chat`, `generate` or `interactions`.
    pub api: Option<String>,
    /// The API key.
    pub key: Option<Secret>,
    /// The environment variable with the key, instead of the provider's own variable.
    pub key_variable: Option<String>,
}

/// An error of [`get_llm_client`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelLookupError {
    /// The provider name is unknown.
    #[error("unknown provider `{provider}`; supported: {}", provider_names())]
    UnknownProvider {
        /// The unknown name.
        provider: String,
    },
    /// The provider does not have the requested API.
    #[error("`{provider}` has no API `{api}`; supported: {available}")]
    UnknownApi {
        /// The name of the provider.
        provider: &'static str,
        /// The requested API.
        api: String,
        /// The names of the supported APIs.
        available: &'static str,
    },
    /// The API key is missing.
    #[error("no API key for `{provider}`; set {variables}")]
    MissingKey {
        /// The name of the provider.
        provider: &'static str,
        /// The environment variables that may hold the key.
        variables: String,
    },
    /// A setting without a default is missing, such as the base URL.
    #[error("`{provider}` needs {setting}")]
    MissingSetting {
        /// The name of the provider.
        provider: &'static str,
        /// The missing setting.
        setting: &'static str,
    },
}

fn provider_names() -> String {
    let names: Vec<_> =
        ProviderId::ALL.iter().map(|provider| format!("`{}`", provider.name())).collect();
    names.join(", ")
}

impl ProviderId {
    /// All providers.
    pub const ALL: [Self; 5] =
        [Self::OpenAi, Self::OpenAiCompatible, Self::Anthropic, Self::Gemini, Self::Ollama];

    /// Finds a provider by name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| provider.name().eq_ignore_ascii_case(name.trim()))
    }

    /// Returns the name of the provider.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiCompatible => "openai-compatible",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// Returns the default model: a mid-range model of November 2026. `None` if no model is
    /// available on every server.
    pub fn default_model(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some("gpt-6.1-terra"),
            Self::Anthropic => Some("claude-sonnet-5-5"),
            Self::Gemini => Some("gemini-3.8-flash"),
            Self::Ollama => Some("llama3.1:8b"),
            Self::OpenAiCompatible => None,
        }
    }

    /// Returns the environment variable that overrides the default model.
    pub fn model_variable(self) -> &'static str {
        match self {
            Self::OpenAi => "INNKEEPER_OPENAI_MODEL",
            Self::OpenAiCompatible => "INNKEEPER_OPENAI_COMPATIBLE_MODEL",
            Self::Anthropic => "INNKEEPER_ANTHROPIC_MODEL",
            Self::Gemini => "INNKEEPER_GEMINI_MODEL",
            Self::Ollama => "INNKEEPER_OLLAMA_MODEL",
        }
    }

    /// Returns the environment variables that may hold the key. Other servers never get a
    /// provider's key.
    pub fn key_variables(self) -> &'static [&'static str] {
        match self {
            Self::OpenAi => &["OPENAI_API_KEY"],
            Self::Anthropic => &["ANTHROPIC_API_KEY"],
            Self::Gemini => &["GOOGLE_API_KEY", "GEMINI_API_KEY"],
            Self::OpenAiCompatible | Self::Ollama => &[],
        }
    }

    fn resolve_api(self, api: Option<&str>, model: &str) -> Result<ProviderApi, ModelLookupError> {
        let provider = self.name();
        let unknown = |api: &str, available| ModelLookupError::UnknownApi {
            provider,
            api: api.to_owned(),
            available,
        };
        match (self, api) {
            (Self::OpenAi, None) if is_chat_only(model) => Ok(ProviderApi::OpenAiChat),
            (Self::OpenAi, None | Some("responses")) => Ok(ProviderApi::OpenAiResponses),
            (Self::OpenAi, Some("chat")) => Ok(ProviderApi::OpenAiChat),
            (Self::OpenAi, Some(api)) => Err(unknown(api, "`responses` and `chat`")),
            (Self::OpenAiCompatible, None | Some("chat")) => Ok(ProviderApi::OpenAiChat),
            (Self::OpenAiCompatible, Some("responses")) => Ok(ProviderApi::OpenAiResponses),
            (Self::OpenAiCompatible, Some(api)) => Err(unknown(api, "`chat` and `responses`")),
            (Self::Anthropic, None | Some("messages")) => Ok(ProviderApi::Anthropic),
            (Self::Anthropic, Some(api)) => Err(unknown(api, "`messages`")),
            (Self::Gemini, None) if model.starts_with("gemini-4-argon") => {
                Ok(ProviderApi::GeminiInteractions)
            }
            (Self::Gemini, None | Some("generate")) => Ok(ProviderApi::GeminiGenerate),
            (Self::Gemini, Some("interactions")) => Ok(ProviderApi::GeminiInteractions),
            (Self::Gemini, Some(api)) => Err(unknown(api, "`generate` and `interactions`")),
            (Self::Ollama, None | Some("chat")) => Ok(ProviderApi::Ollama),
            (Self::Ollama, Some(api)) => Err(unknown(api, "`chat`")),
        }
    }
}

/// Whether OpenAI's Responses API does not support the model.
fn is_chat_only(model: &str) -> bool {
    model.contains("-audio") || model.contains("-search-preview")
}

/// Creates a client for a model by provider name. Keys and proxies come from `environment`. Sends
/// nothing.
///
/// # Errors
///
/// The provider or the API is unknown, or a key or another setting is missing.
pub fn get_llm_client(
    selector: &ModelSelector,
    environment: &Environment,
) -> Result<HttpProvider, ModelLookupError> {
    let unknown = || ModelLookupError::UnknownProvider { provider: selector.provider.clone() };
    let provider_id = ProviderId::from_name(&selector.provider).ok_or_else(unknown)?;
    let (provider, is_default_url) = (provider_id.name(), selector.base_url.is_none());
    if is_default_url && provider_id == ProviderId::OpenAiCompatible {
        let setting = "a base URL: `--base-url`, for example `http://localhost:8080/v1`";
        return Err(ModelLookupError::MissingSetting { provider, setting });
    }
    let model = selector.model.clone();
    let model = model.or_else(|| environment.get(provider_id.model_variable()).map(str::to_owned));
    let model = model.filter(|model| !model.trim().is_empty());
    // A server with one model accepts any model name.
    let model =
        model.or_else(|| provider_id.default_model().map(str::to_owned)).unwrap_or_default();
    let api = provider_id.resolve_api(selector.api.as_deref(), &model)?;
    let key = resolve_key(selector, provider_id, environment);
    let wants_key = is_default_url && !provider_id.key_variables().is_empty()
        || selector.key_variable.is_some();
    if key.is_none() && wants_key {
        let variables = match &selector.key_variable {
            Some(variable) => format!("`{variable}`"),
            None => {
                let each = provider_id.key_variables().iter().map(|name| format!("`{name}`"));
                each.collect::<Vec<_>>().join(" or ")
            }
        };
        return Err(ModelLookupError::MissingKey { provider, variables });
    }
    let endpoint = Endpoint::new(provider, api, model);
    let base_url = selector.base_url.clone().unwrap_or(endpoint.base_url);
    let capabilities = Capabilities::for_model(api, &endpoint.model);
    let environment = environment.clone();
    Ok(HttpProvider::new(Endpoint { base_url, key, capabilities, environment, ..endpoint }))
}

fn resolve_key(
    selector: &ModelSelector,
    provider_id: ProviderId,
    environment: &Environment,
) -> Option<Secret> {
    let lookup = |variable: &str| {
        let value = environment.get(variable)?.trim();
        (!value.is_empty()).then(|| Secret::new(value))
    };
    match (&selector.key, &selector.key_variable) {
        (Some(key), _) => Some(key.clone()),
        (None, Some(variable)) => lookup(variable),
        (None, None) => provider_id.key_variables().iter().find_map(|variable| lookup(variable)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::LlmProvider as _;

    fn client(
        provider: &str,
        variables: &[(&str, &str)],
    ) -> Result<HttpProvider, ModelLookupError> {
        let selector = ModelSelector { provider: provider.to_owned(), ..ModelSelector::default() };
        get_llm_client(&selector, &Environment::from_pairs(variables.to_vec()))
    }

    /// Proves: G14, G17, G32
    #[test]
    fn a_provider_is_found_by_name_in_any_case_with_a_model_of_its_own() {
        let all = [("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k"), ("GEMINI_API_KEY", "k")];
        for (name, provider, model) in [
            ("OpenAI", "openai", "gpt-6.1-terra"),
            ("ANTHROPIC", "anthropic", "claude-sonnet-5-5"),
            (" gemini", "gemini", "gemini-3.8-flash"),
            ("ollama", "ollama", "llama3.1:8b"),
        ] {
            let client = client(name, &all).unwrap();
            assert_eq!((client.name(), client.model()), (provider, model));
        }
        let strange = client("watson", &all).unwrap_err().to_string();
        assert!(strange.contains("`watson`") && strange.contains("`anthropic`"), "{strange}");
        let other = [("INNKEEPER_OLLAMA_MODEL", "phi")];
        assert_eq!(client("ollama", &other).unwrap().model(), "phi");
        let model = Some("my-model".to_owned());
        let selector =
            ModelSelector { provider: "ollama".to_owned(), model, ..ModelSelector::default() };
        let other_client = get_llm_client(&selector, &Environment::from_pairs(other)).unwrap();
        assert_eq!(other_client.model(), "my-model");
    }

    /// Proves: G15
    #[test]
    fn a_key_comes_by_parameter_else_from_the_environment_and_is_missed_by_name() {
        let missing = client("gemini", &[("GOOGLE_API_KEY", " ")]).unwrap_err().to_string();
        assert!(missing.contains("`GOOGLE_API_KEY` or `GEMINI_API_KEY`"), "{missing}");
        let key = |selector: ModelSelector, variables: &[(&str, &str)]| {
            let environment = Environment::from_pairs(variables.to_vec());
            let client = get_llm_client(&selector, &environment)?;
            Ok::<_, ModelLookupError>(
                client.endpoint().key.as_ref().map(|key| key.expose().to_owned()),
            )
        };
        let openai = || ModelSelector { provider: "openai".to_owned(), ..ModelSelector::default() };
        let set = [("OPENAI_API_KEY", "one"), ("MINE", "two")];
        assert_eq!(key(openai(), &set), Ok(Some("one".to_owned())));
        let variable = Some("MINE".to_owned());
        assert_eq!(
            key(ModelSelector { key_variable: variable, ..openai() }, &set),
            Ok(Some("two".to_owned()))
        );
        let explicit = Some(Secret::new("three"));
        assert_eq!(
            key(ModelSelector { key: explicit, ..openai() }, &set),
            Ok(Some("three".to_owned()))
        );
        let elsewhere = Some("http://localhost:1/v1".to_owned());
        let other = ModelSelector {
            provider: "openai-compatible".to_owned(),
            base_url: elsewhere,
            ..ModelSelector::default()
        };
        assert_eq!(key(other, &set), Ok(None), "no provider's key goes to another server");
    }

    #[test]
    fn the_interface_is_chosen_by_the_model_and_can_be_named() {
        let resolve = |provider_id: ProviderId, api: Option<&str>, model: &str| {
            provider_id.resolve_api(api, model)
        };
        assert_eq!(
            resolve(ProviderId::OpenAi, None, "gpt-6-luna"),
            Ok(ProviderApi::OpenAiResponses)
        );
        assert_eq!(
            resolve(ProviderId::OpenAi, None, "gpt-4o-audio-preview"),
            Ok(ProviderApi::OpenAiChat)
        );
        assert_eq!(
            resolve(ProviderId::OpenAi, Some("chat"), "gpt-6-luna"),
            Ok(ProviderApi::OpenAiChat)
        );
        assert_eq!(
            resolve(ProviderId::Gemini, None, "gemini-4-argon"),
            Ok(ProviderApi::GeminiInteractions)
        );
        assert_eq!(
            resolve(ProviderId::Gemini, Some("interactions"), "x"),
            Ok(ProviderApi::GeminiInteractions)
        );
        assert!(resolve(ProviderId::Anthropic, Some("chat"), "x").is_err());
        assert!(client("openai-compatible", &[]).is_err());
    }
}
