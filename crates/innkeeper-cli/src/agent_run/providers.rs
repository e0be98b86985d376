//! The variables with which the libraries of providers find their server.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use innkeeper_host::Environment;
use url::Url;

use super::credentials::split_query;
use super::model_server::ModelServer;

/// A provider whose libraries read a base URL from a variable.
#[derive(Debug)]
pub(super) struct Provider {
    pub(super) name: &'static str,
    base_variable: &'static str,
    default_base_url: &'static str,
    /// The libraries refuse to start without a key.
    key_variables: &'static [&'static str],
}

/// The providers, by name.
const PROVIDERS: [Provider; 4] = [
    Provider {
        name: "anthropic",
        base_variable: "ANTHROPIC_BASE_URL",
        default_base_url: "https://api.anthropic.com",
        key_variables: &["ANTHROPIC_API_KEY"],
    },
    Provider {
        name: "gemini",
        base_variable: "GOOGLE_GEMINI_BASE_URL",
        default_base_url: "https://generativelanguage.googleapis.com",
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    },
    Provider {
        name: "ollama",
        base_variable: "OLLAMA_HOST",
        default_base_url: "http://127.0.0.1:11434",
        key_variables: &[],
    },
    Provider {
        name: "openai",
        base_variable: "OPENAI_BASE_URL",
        default_base_url: "https://api.openai.com/v1",
        key_variables: &["OPENAI_API_KEY"],
    },
];

/// The key of a replay, which needs none.
const REPLAY_KEY: &str = "innkeeper-replay";

/// A base URL that is none.
#[derive(Debug, thiserror::Error)]
#[error("`{text}` is not the base URL of {provider}: {reason}")]
pub(crate) struct UpstreamError {
    text: String,
    provider: &'static str,
    reason: String,
}

/// The base URLs of the real model servers, by provider.
#[derive(Clone, Debug)]
pub(crate) struct Upstreams(BTreeMap<&'static str, Url>);

impl Upstreams {
    /// Returns the base URLs of `--upstream`, else those that the agent would use without a recording.
    ///
    /// # Errors
    ///
    /// A value is no URL with the scheme `http` or `https`.
    pub(crate) fn new(
        environment: &Environment,
        options: &[String],
    ) -> Result<Self, UpstreamError> {
        let mut upstreams = BTreeMap::new();
        for provider in &PROVIDERS {
            let named = |option: &'_ &String| {
                option.strip_prefix(provider.name).is_some_and(|rest| rest.starts_with('='))
            };
            let named = options.iter().find(named).map(|option| &option[provider.name.len() + 1..]);
            let unnamed = options.iter().find(|option| !is_named(option)).map(String::as_str);
            let variable = environment.get(provider.base_variable).filter(|text| !text.is_empty());
            let given = named.or(unnamed);
            let text = given.or(variable).unwrap_or(provider.default_base_url);
            match base_url(provider, text) {
                Ok(base_url) => {
                    upstreams.insert(provider.name, base_url);
                }
                Err(error) if given.is_some() => return Err(error),
                // The agent may use another provider, and has read the variable before.
                Err(error) => tracing::warn!(%error, "no base URL for a provider"),
            }
        }
        Ok(Self(upstreams))
    }

    /// Returns the base URLs of a recording, and the usual ones of other providers.
    ///
    /// # Errors
    ///
    /// As for [`Self::new`].
    pub(super) fn from_recording(
        base_urls: &BTreeMap<String, String>,
    ) -> Result<Self, UpstreamError> {
        let options: Vec<_> =
            base_urls.iter().map(|(name, base_url)| format!("{name}={base_url}")).collect();
        Self::new(&Environment::default(), &options)
    }

    /// Returns the URL of a request to a provider, without a user, a password and a key.
    pub(super) fn url(&self, provider: &str, path_and_query: &str) -> Option<(&'static str, Url)> {
        let (name, base_url) = self.0.get_key_value(provider)?;
        let mut url = without_user(base_url);
        let (path, query) = match path_and_query.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (path_and_query, None),
        };
        url.set_path(path);
        url.set_query(query.and_then(|query| split_query(query).0).as_deref());
        Some((name, url))
    }

    /// Returns the base URL of a provider, which may have a user and a password.
    pub(super) fn base_url(&self, provider: &str) -> Option<&Url> {
        self.0.get(provider)
    }

    /// Returns the variables for an agent whose model server is `server`.
    pub(super) fn variables(&self, server: &ModelServer) -> Vec<(&'static str, OsString)> {
        // A proxy of the user would not reach this machine.
        let direct = ["NO_PROXY", "no_proxy"].map(|name| {
            let own = std::env::var_os(name).filter(|own| !own.is_empty());
            let mut hosts = own.map_or_else(OsString::new, |mut own| {
                own.push(",");
                own
            });
            hosts.push("127.0.0.1,localhost");
            (name, hosts)
        });
        PROVIDERS
            .iter()
            .map(|provider| {
                let path = self.0.get(provider.name).map_or("", |base_url| base_url.path());
                (provider.base_variable, server.base_url(provider.name, path).into())
            })
            .chain(direct)
            .collect()
    }
}

/// Returns a URL without its user and password.
pub(super) fn without_user(url: &Url) -> Url {
    let mut url = url.clone();
    // Neither fails for a URL with a host, and the others have none.
    url.set_username("").ok();
    url.set_password(None).ok();
    url
}

/// Returns keys for the libraries that refuse to start without one.
pub(super) fn replay_keys() -> impl Iterator<Item = (&'static str, OsString)> {
    let names = PROVIDERS.iter().flat_map(|provider| provider.key_variables);
    names.map(|name| (*name, OsStr::new(REPLAY_KEY).to_owned()))
}

fn is_named(option: &str) -> bool {
    option
        .split_once('=')
        .is_some_and(|(name, _)| PROVIDERS.iter().any(|provider| provider.name == name))
}

fn base_url(provider: &Provider, text: &str) -> Result<Url, UpstreamError> {
    // `OLLAMA_HOST` is often a host without a scheme.
    let has_scheme = text.contains("://");
    let complete = match text.starts_with(':') {
        true => format!("http://127.0.0.1{text}"),
        false if has_scheme => text.to_owned(),
        false => format!("http://{text}"),
    };
    let error =
        |reason: String| UpstreamError { text: text.to_owned(), provider: provider.name, reason };
    let mut url = Url::parse(&complete).map_err(|problem| error(problem.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(error("the scheme must be `http` or `https`".to_owned()));
    }
    if url.query().is_some() {
        return Err(error("it has a query".to_owned()));
    }
    if provider.name == "ollama" && url.port().is_none() && !has_scheme {
        // Never fails for `http`.
        url.set_port(Some(11434)).ok();
    }
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&path);
    Ok(url)
}
