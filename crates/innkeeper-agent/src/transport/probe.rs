//! Queries a server for its model and for the model's abilities.

use std::time::Duration;

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::Value;

use super::client::OutgoingRequest;
use super::response_body::read_prefix;
use super::{Endpoint, HttpProvider};
use crate::provider::{Capabilities, InferenceServer, LlmError, LlmErrorKind, ProviderApi};

/// Timeout of [`HttpProvider::probe_server`], for a server on this machine or in the local network.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum number of bytes in a probe response, which contains the model's chat template.
const MAX_PROBE_BODY_BYTES: usize = 4 << 20;

impl HttpProvider {
    /// Queries an OpenAI-compatible server for its model, if none is set, and for tool support of
    /// the model's chat template. llama.cpp silently drops tools if the template does not support
    /// them. Settings that the server does not report stay unchanged.
    ///
    /// # Errors
    ///
    /// No model is set and the server reports no model.
    pub async fn probe_server(&mut self) -> Result<(), LlmError> {
        let base = self.endpoint.base_url.trim_end_matches('/').to_owned();
        if self.endpoint.model.is_empty() {
            let models = self.get_json(&format!("{base}/models")).await?.unwrap_or_default();
            let Some(first) = models.pointer("/data/0/id").and_then(Value::as_str) else {
                let message = "no model is configured and the server reports no model";
                return Err(self.endpoint.error(LlmErrorKind::NotFound, message));
            };
            let capabilities = Capabilities::for_model(self.endpoint.api, first);
            self.endpoint =
                Endpoint { model: first.to_owned(), capabilities, ..self.endpoint.clone() };
        }
        let Some(root) = base.strip_suffix("/v1") else { return Ok(()) };
        let props =
            self.get_json(&format!("{root}/props")).await.ok().flatten().unwrap_or_default();
        let Some(caps) = props.get("chat_template_caps") else { return Ok(()) };
        let api = self.endpoint.api;
        let capabilities = &mut self.endpoint.capabilities;
        capabilities.server = InferenceServer::LlamaCpp;
        let window = props.pointer("/default_generation_settings/n_ctx").and_then(Value::as_u64);
        capabilities.tokens.context = window.and_then(|window| u32::try_from(window).ok());
        capabilities.constraints.json_schema = api == ProviderApi::OpenAiChat;
        capabilities.constraints.gbnf = api == ProviderApi::OpenAiChat;
        let keys = ["supports_tools", "supports_tool_calls"];
        if keys.iter().any(|key| caps.get(*key).and_then(Value::as_bool) == Some(false)) {
            capabilities.tools.native = false;
        }
        Ok(())
    }

    /// Sends a GET request with a timeout of two seconds. Returns `None` if the status is not a
    /// success or the body is not JSON.
    async fn get_json(&self, url: &str) -> Result<Option<Value>, LlmError> {
        let response_json = async {
            let request = OutgoingRequest {
                method: Method::GET,
                url: url.to_owned(),
                headers: HeaderMap::new(),
                body: Bytes::new(),
                iteration: 0,
            };
            let response = self.send_request(request).await?;
            if matches!(response.status.as_u16(), 401 | 403) {
                return Err(self
                    .endpoint
                    .error(LlmErrorKind::Authentication, "missing or rejected API key"));
            }
            if !response.status.is_success() {
                return Ok(None);
            }
            let body = read_prefix(response.body, MAX_PROBE_BODY_BYTES)
                .await
                .map_err(|error| self.endpoint.convert_http_error(error))?;
            Ok(serde_json::from_slice(&body).ok())
        };
        self.timing.timeout(PROBE_TIMEOUT, response_json).await.unwrap_or_else(|| {
            Err(self.endpoint.error(
                LlmErrorKind::TimedOut,
                format!("no response within {} s", PROBE_TIMEOUT.as_secs()),
            ))
        })
    }
}
