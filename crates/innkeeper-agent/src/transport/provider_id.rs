//! Selects a provider, its model and its API key by name.

use innkeeper_host::Environment;
use innkeeper_host::config::Secret;
use reqwest::header::HeaderValue;

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
    /// The API key has a character that no HTTP header can have, such as a line break.
    #[error(
        "the API key for `{provider}` has a character that no HTTP header can have; copy it again"
    )]
    InvalidKey {
        /// The name of the provider.
        provider: &'static str,
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
    let provider_id = ProviderId::from_name(&selector.provider)
        .ok_or_else(|| ModelLookupError::UnknownProvider { provider: selector.provider.clone() })?;
    let provider = provider_id.name();
    let is_default_url = selector.base_url.is_none();
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
    if key.as_ref().is_some_and(|key| HeaderValue::try_from(key.expose()).is_err()) {
        return Err(ModelLookupError::InvalidKey { provider });
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
    // A key from a file often ends with a line break.
    let given = selector.key.as_ref().map(|key| key.expose().trim()).filter(|key| !key.is_empty());
    match (given, &selector.key_variable) {
        (Some(key), _) => Some(Secret::new(key)),
        (None, Some(variable)) => lookup(variable),
        (None, None) => provider_id.key_variables().iter().find_map(|variable| lookup(variable)),
    }
}

#[cfg(test)]
mod tests;
