//! Providers by name: where they are, which model, and where their keys are found.

use innkeeper_host::Environment;
use innkeeper_host::config::Secret;

use super::{Endpoint, HttpProvider};
use crate::provider::{Capabilities, Wire};

/// A provider that can be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// OpenAI.
    OpenAi,
    /// Any server that speaks OpenAI's Chat Completions.
    OpenAiCompatible,
    /// Anthropic.
    Anthropic,
    /// Google's Gemini.
    Gemini,
    /// Ollama.
    Ollama,
}

/// Which model is wanted; what is `None` is as the provider has it.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The provider's name, in any case.
    pub provider: String,
    /// The model, by the provider's name for it.
    pub model: Option<String>,
    /// Where: what the provider's own client calls its base URL.
    pub base_url: Option<String>,
    /// Which of the provider's interfaces: `responses` or `chat`, `generate` or `interactions`.
    pub api: Option<String>,
    /// The key.
    pub key: Option<Secret>,
    /// The variable the key is in, in place of the provider's own.
    pub key_variable: Option<String>,
}

/// Why there is no such model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownModel {
    /// There is no provider of that name.
    #[error("there is no provider `{provider}`; there are {}", listed())]
    Provider {
        /// The name.
        provider: String,
    },
    /// The provider has no such interface.
    #[error("`{provider}` has no interface `{api}`; it has {known}")]
    Api {
        /// The provider.
        provider: &'static str,
        /// The interface.
        api: String,
        /// Those it has.
        known: &'static str,
    },
    /// There is no key.
    #[error("no key for `{provider}`: set {variables}")]
    Key {
        /// The provider.
        provider: &'static str,
        /// Where it was looked for.
        variables: String,
    },
    /// A server without a model or address of its own.
    #[error("`{provider}` needs {what}")]
    Missing {
        /// The provider.
        provider: &'static str,
        /// What is missing.
        what: &'static str,
    },
}

fn listed() -> String {
    let names: Vec<_> = Named::ALL.iter().map(|it| format!("`{}`", it.name())).collect();
    names.join(", ")
}

impl Named {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::OpenAi, Self::OpenAiCompatible, Self::Anthropic, Self::Gemini, Self::Ollama];

    /// The provider of this name, in any case.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name().eq_ignore_ascii_case(name.trim()))
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiCompatible => "openai-compatible",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// The model that is asked where none is named: a middling one, of those that were sold in
    /// November 2026. `None`: there is none that every server has.
    pub fn default_model(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some("gpt-6.1-terra"),
            Self::Anthropic => Some("claude-sonnet-5-5"),
            Self::Gemini => Some("gemini-3.8-flash"),
            Self::Ollama => Some("llama3.1:8b"),
            Self::OpenAiCompatible => None,
        }
    }

    /// The variable that names another default model.
    pub fn model_variable(self) -> &'static str {
        match self {
            Self::OpenAi => "INNKEEPER_OPENAI_MODEL",
            Self::OpenAiCompatible => "INNKEEPER_OPENAI_COMPATIBLE_MODEL",
            Self::Anthropic => "INNKEEPER_ANTHROPIC_MODEL",
            Self::Gemini => "INNKEEPER_GEMINI_MODEL",
            Self::Ollama => "INNKEEPER_OLLAMA_MODEL",
        }
    }

    /// The variables that its key is looked for in. Other servers get no key of a provider's.
    pub fn key_variables(self) -> &'static [&'static str] {
        match self {
            Self::OpenAi => &["OPENAI_API_KEY"],
            Self::Anthropic => &["ANTHROPIC_API_KEY"],
            Self::Gemini => &["GOOGLE_API_KEY", "GEMINI_API_KEY"],
            Self::OpenAiCompatible | Self::Ollama => &[],
        }
    }

    fn wire(self, api: Option<&str>, model: &str) -> Result<Wire, UnknownModel> {
        let provider = self.name();
        let unknown = |api: &str, known| UnknownModel::Api { provider, api: api.to_owned(), known };
        match (self, api) {
            (Self::OpenAi, None) if only_chat(model) => Ok(Wire::OpenAiChat),
            (Self::OpenAi, None | Some("responses")) => Ok(Wire::OpenAiResponses),
            (Self::OpenAi, Some("chat")) => Ok(Wire::OpenAiChat),
            (Self::OpenAi, Some(api)) => Err(unknown(api, "`responses` and `chat`")),
            (Self::OpenAiCompatible, None | Some("chat")) => Ok(Wire::OpenAiChat),
            (Self::OpenAiCompatible, Some("responses")) => Ok(Wire::OpenAiResponses),
            (Self::OpenAiCompatible, Some(api)) => Err(unknown(api, "`chat` and `responses`")),
            (Self::Anthropic, None | Some("messages")) => Ok(Wire::Anthropic),
            (Self::Anthropic, Some(api)) => Err(unknown(api, "`messages`")),
            (Self::Gemini, None) if model.starts_with("gemini-4-argon") => {
                Ok(Wire::GeminiInteractions)
            }
            (Self::Gemini, None | Some("generate")) => Ok(Wire::GeminiGenerate),
            (Self::Gemini, Some("interactions")) => Ok(Wire::GeminiInteractions),
            (Self::Gemini, Some(api)) => Err(unknown(api, "`generate` and `interactions`")),
            (Self::Ollama, None | Some("chat")) => Ok(Wire::Ollama),
            (Self::Ollama, Some(api)) => Err(unknown(api, "`chat`")),
        }
    }
}

/// Models of OpenAI's that its Responses do not know.
fn only_chat(model: &str) -> bool {
    model.contains("-audio") || model.contains("-search-preview")
}

/// A model by the name of its provider. Keys are taken from `environment`, as are proxies.
///
/// # Errors
///
/// What is not known, or missing. Nothing is sent.
pub fn get_llm_client(
    wanted: &Wanted,
    environment: &Environment,
) -> Result<HttpProvider, UnknownModel> {
    let unknown = || UnknownModel::Provider { provider: wanted.provider.clone() };
    let named = Named::find(&wanted.provider).ok_or_else(unknown)?;
    let (provider, own) = (named.name(), wanted.base_url.is_none());
    if own && named == Named::OpenAiCompatible {
        let what = "the address of a server: `--base-url`, as in `http://localhost:8080/v1`";
        return Err(UnknownModel::Missing { provider, what });
    }
    let model = wanted.model.clone();
    let model = model.or_else(|| environment.get(named.model_variable()).map(str::to_owned));
    let model = model.filter(|model| !model.trim().is_empty());
    // A server with one model has it, whatever it is called.
    let model = model.or_else(|| named.default_model().map(str::to_owned)).unwrap_or_default();
    let wire = named.wire(wanted.api.as_deref(), &model)?;
    let key = key(wanted, named, environment);
    let wants_key = own && !named.key_variables().is_empty() || wanted.key_variable.is_some();
    if key.is_none() && wants_key {
        let variables = match &wanted.key_variable {
            Some(variable) => format!("`{variable}`"),
            None => {
                let each = named.key_variables().iter().map(|it| format!("`{it}`"));
                each.collect::<Vec<_>>().join(" or ")
            }
        };
        return Err(UnknownModel::Key { provider, variables });
    }
    let endpoint = Endpoint::new(provider, wire, model);
    let base_url = wanted.base_url.clone().unwrap_or(endpoint.base_url);
    let capabilities = Capabilities::of(wire, &endpoint.model);
    let environment = environment.clone();
    Ok(HttpProvider::new(Endpoint { base_url, key, capabilities, environment, ..endpoint }))
}

fn key(wanted: &Wanted, named: Named, environment: &Environment) -> Option<Secret> {
    let found = |variable: &str| {
        let value = environment.get(variable)?.trim();
        (!value.is_empty()).then(|| Secret::new(value))
    };
    match (&wanted.key, &wanted.key_variable) {
        (Some(key), _) => Some(key.clone()),
        (None, Some(variable)) => found(variable),
        (None, None) => named.key_variables().iter().find_map(|variable| found(variable)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::LlmProvider as _;

    fn client(provider: &str, variables: &[(&str, &str)]) -> Result<HttpProvider, UnknownModel> {
        let wanted = Wanted { provider: provider.to_owned(), ..Wanted::default() };
        get_llm_client(&wanted, &Environment::from_pairs(variables.to_vec()))
    }

    /// Proves: G14, G17
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
        let wanted = Wanted { provider: "ollama".to_owned(), model, ..Wanted::default() };
        let named = get_llm_client(&wanted, &Environment::from_pairs(other)).unwrap();
        assert_eq!(named.model(), "my-model");
    }

    /// Proves: G15
    #[test]
    fn a_key_comes_by_parameter_else_from_the_environment_and_is_missed_by_name() {
        let missing = client("gemini", &[("GOOGLE_API_KEY", " ")]).unwrap_err().to_string();
        assert!(missing.contains("`GOOGLE_API_KEY` or `GEMINI_API_KEY`"), "{missing}");
        let key = |wanted: Wanted, variables: &[(&str, &str)]| {
            let environment = Environment::from_pairs(variables.to_vec());
            let client = get_llm_client(&wanted, &environment)?;
            Ok::<_, UnknownModel>(client.endpoint().key.as_ref().map(|key| key.expose().to_owned()))
        };
        let openai = || Wanted { provider: "openai".to_owned(), ..Wanted::default() };
        let set = [("OPENAI_API_KEY", "one"), ("MINE", "two")];
        assert_eq!(key(openai(), &set), Ok(Some("one".to_owned())));
        let mine = Some("MINE".to_owned());
        assert_eq!(
            key(Wanted { key_variable: mine, ..openai() }, &set),
            Ok(Some("two".to_owned()))
        );
        let given = Some(Secret::new("three"));
        assert_eq!(key(Wanted { key: given, ..openai() }, &set), Ok(Some("three".to_owned())));
        let elsewhere = Some("http://localhost:1/v1".to_owned());
        let other = Wanted {
            provider: "openai-compatible".to_owned(),
            base_url: elsewhere,
            ..Wanted::default()
        };
        assert_eq!(key(other, &set), Ok(None), "no provider's key goes to another server");
    }

    #[test]
    fn the_interface_is_chosen_by_the_model_and_can_be_named() {
        let wire = |named: Named, api: Option<&str>, model: &str| named.wire(api, model);
        assert_eq!(wire(Named::OpenAi, None, "gpt-6-luna"), Ok(Wire::OpenAiResponses));
        assert_eq!(wire(Named::OpenAi, None, "gpt-4o-audio-preview"), Ok(Wire::OpenAiChat));
        assert_eq!(wire(Named::OpenAi, Some("chat"), "gpt-6-luna"), Ok(Wire::OpenAiChat));
        assert_eq!(wire(Named::Gemini, None, "gemini-4-argon"), Ok(Wire::GeminiInteractions));
        assert_eq!(wire(Named::Gemini, Some("interactions"), "x"), Ok(Wire::GeminiInteractions));
        assert!(wire(Named::Anthropic, Some("chat"), "x").is_err());
        assert!(client("openai-compatible", &[]).is_err());
    }
}
