//! The address of a model.

use std::fmt;
use std::time::Duration;

use innkeeper_host::Environment;
use innkeeper_host::config::Secret;

use crate::provider::{Capabilities, DEFAULT_RESPONSE_TIMEOUT, ProviderApi};

/// The address, API and model of a provider.
#[derive(Clone)]
pub struct Endpoint {
    /// The name of the provider in messages and results.
    pub provider: String,
    /// The HTTP API.
    pub api: ProviderApi,
    /// The base URL, as the provider's own client defines it.
    pub base_url: String,
    /// The API key; sent only to `base_url`.
    pub key: Option<Secret>,
    /// The provider's name of the model.
    pub model: String,
    /// The supported parameters. Default: those of the model, if the model is known.
    pub capabilities: Capabilities,
    /// The timeout of a complete response, including the connection; at most 24 hours. Default:
    /// [`DEFAULT_RESPONSE_TIMEOUT`].
    pub timeout: Duration,
    /// The environment variables for proxies. Empty: no proxy.
    pub environment: Environment,
}

/// Shows only host and port of the base URL: the rest may contain a password.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("provider", &self.provider)
            .field("api", &self.api)
            .field("address", &self.host_and_port())
            .field("key", &self.key)
            .field("model", &self.model)
            .field("capabilities", &self.capabilities)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Masks the key in a text, also a fragment of the key of more than eight bytes. For text that
    /// is logged or stored.
    pub fn redact(&self, text: String) -> String {
        match &self.key {
            Some(key) => key.mask(text),
            None => text,
        }
    }

    /// Returns host and port of the base URL, without parts that may be secret.
    pub(super) fn host_and_port(&self) -> String {
        let url = reqwest::Url::parse(&self.base_url).ok();
        let address =
            url.as_ref().and_then(|url| Some((url.host_str()?, url.port_or_known_default()?)));
        address.map_or_else(|| "the server".to_owned(), |(host, port)| format!("{host}:{port}"))
    }

    /// Creates an endpoint with the default base URL of the API and the known capabilities of the
    /// model.
    pub fn new(provider: impl Into<String>, api: ProviderApi, model: impl Into<String>) -> Self {
        let model = model.into();
        Self {
            provider: provider.into(),
            api,
            base_url: api.default_base_url().to_owned(),
            key: None,
            capabilities: Capabilities::for_model(api, &model),
            model,
            timeout: DEFAULT_RESPONSE_TIMEOUT,
            environment: Environment::default(),
        }
    }
}
