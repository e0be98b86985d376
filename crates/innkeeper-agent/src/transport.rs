//! HTTP providers, the only module of this crate that sends requests.

mod headers;
mod provider_id;

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt as _, TryStreamExt as _};
use innkeeper_host::config::Secret;
use innkeeper_host::{Environment, http_client};
use innkeeper_toolcall::Tools;
use serde_json::Value;
use tokio::time::{Instant, timeout, timeout_at};

use crate::provider::codec::{self, ApiError, EncodeRequest, HttpRequest, ResponseDecoder};
use crate::provider::tool_encoding::EncodedTools;
use crate::provider::{
    Capabilities, FinishReason, InferenceServer, LlmError, LlmErrorKind, LlmProvider, ProviderApi,
    Request, Response, StreamChunk,
};

pub use provider_id::{ModelLookupError, ModelSelector, ProviderId, get_llm_client};

/// Default timeout of a complete response, the default of the providers' own clients.
pub const DEFAULT_RESPONSE_TIMEOUT: Duration = Duration::from_secs(600);

/// Maximum number of bytes read of an error body, far more than providers send.
const MAX_ERROR_BODY_BYTES: usize = 1 << 20;

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
    /// The supported parameters.
    pub capabilities: Capabilities,
    /// The timeout of a complete response, including the connection.
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
    fn host_and_port(&self) -> String {
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

/// A language model over HTTP. Nothing is sent and no client is created before the first request.
pub struct HttpProvider {
    endpoint: Endpoint,
    client: OnceLock<reqwest::Client>,
    /// The encoded tools of the last request: the tools rarely change.
    cached_tools: Mutex<Option<Arc<EncodedTools>>>,
}

impl HttpProvider {
    /// Creates a provider for an endpoint.
    pub fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, client: OnceLock::new(), cached_tools: Mutex::new(None) }
    }

    /// Returns the endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

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
                return Err(self.error(LlmErrorKind::NotFound, message));
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
        capabilities.context_tokens = window.and_then(|window| u32::try_from(window).ok());
        capabilities.constraints.json_schema = api == ProviderApi::OpenAiChat;
        capabilities.constraints.gbnf = api == ProviderApi::OpenAiChat;
        let is_unsupported = |key: &str| caps.get(key).and_then(Value::as_bool) == Some(false);
        if is_unsupported("supports_tools") || is_unsupported("supports_tool_calls") {
            capabilities.native_tools = false;
        }
        Ok(())
    }

    /// Sends a GET request with a timeout of two seconds. Returns `None` if the status is not a
    /// success or the body is not JSON.
    async fn get_json(&self, url: &str) -> Result<Option<Value>, LlmError> {
        let response_json = async {
            let response = self.authenticate(self.client()?.get(url)).send().await;
            let response = response.map_err(|error| self.connection_error(error))?;
            if matches!(response.status().as_u16(), 401 | 403) {
                return Err(self.error(LlmErrorKind::Authentication, "missing or rejected API key"));
            }
            if !response.status().is_success() {
                return Ok(None);
            }
            let body = read_at_most(response, MAX_PROBE_BODY_BYTES)
                .await
                .map_err(|error| self.connection_error(error))?;
            Ok(serde_json::from_slice(&body).ok())
        };
        timeout(PROBE_TIMEOUT, response_json).await.unwrap_or_else(|_| {
            Err(self.error(
                LlmErrorKind::TimedOut,
                format!("no response within {} s", PROBE_TIMEOUT.as_secs()),
            ))
        })
    }

    fn client(&self) -> Result<&reqwest::Client, LlmError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let tls = !self.endpoint.base_url.starts_with("http://");
        let new_client = http_client(&self.endpoint.environment, tls).map_err(|error| {
            self.error_with_source(LlmErrorKind::Connection, "cannot create the HTTP client", error)
        })?;
        Ok(self.client.get_or_init(|| new_client))
    }

    fn encoded_tools(&self, tools: &Arc<Tools>) -> Arc<EncodedTools> {
        let mut cached = self.cached_tools.lock().unwrap_or_else(PoisonError::into_inner);
        match &*cached {
            Some(cached_tools) if Arc::ptr_eq(&cached_tools.tools, tools) => cached_tools.clone(),
            Some(_) | None => {
                let strict = self.endpoint.capabilities.strict_tools;
                let encoded = Arc::new(EncodedTools::new(tools.clone(), self.endpoint.api, strict));
                *cached = Some(encoded.clone());
                encoded
            }
        }
    }

    fn authenticate(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        match &self.endpoint.key {
            Some(key) => headers::add_api_key(request, self.endpoint.api, key),
            None => request,
        }
    }

    /// Sends a request and waits for the response headers.
    async fn send(
        &self,
        outgoing: HttpRequest,
        deadline: Instant,
    ) -> Result<reqwest::Response, LlmError> {
        let HttpRequest { path, headers, body } = outgoing;
        let url = format!("{}{path}", self.endpoint.base_url.trim_end_matches('/'));
        let mut request = self.client()?.post(url).header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let sent = timeout_at(deadline, self.authenticate(request).body(body).send()).await;
        let response = sent
            .map_err(|_| self.timeout_error())?
            .map_err(|error| self.connection_error(error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let retry_hints = headers::parse_retry_hints(response.headers());
        let body = timeout_at(deadline, read_at_most(response, MAX_ERROR_BODY_BYTES))
            .await
            .map_err(|_| self.timeout_error())?;
        let body = body.unwrap_or_default();
        let mut api_error = codec::decode_error(self.endpoint.api, status.as_u16(), &body);
        api_error.kind = retry_hints.apply_to(api_error.kind);
        Err(LlmError { status: Some(status.as_u16()), ..self.convert_api_error(api_error) })
    }

    async fn start_response(
        &self,
        request: &Request,
        streaming: bool,
    ) -> Result<ResponseStream, LlmError> {
        let deadline = Instant::now() + self.endpoint.timeout.min(MAX_RESPONSE_TIMEOUT);
        let encoded_tools = self.encoded_tools(&request.tools);
        let encode_request = EncodeRequest {
            request,
            encoded_tools: &encoded_tools,
            model: &self.endpoint.model,
            capabilities: &self.endpoint.capabilities,
            streaming,
        };
        let outgoing = codec::encode(self.endpoint.api, encode_request)
            .map_err(|api_error| self.convert_api_error(api_error))?;
        let response = self.send(outgoing, deadline).await?;
        let reader = codec::response_decoder(self.endpoint.api, &self.endpoint.model, streaming);
        let body = response.bytes_stream().boxed();
        let silent = self.endpoint.capabilities.server == InferenceServer::LlamaCpp;
        let unreported_token_limit = request.max_tokens.filter(|_| silent);
        let chunks = Vec::new();
        Ok(ResponseStream {
            deadline,
            encoded_tools,
            decoder: Some(reader),
            body,
            is_finished: false,
            unreported_token_limit,
            chunks,
        })
    }

    /// Reads until there is a chunk to emit, [`StreamChunk::Done`] last.
    async fn read_more(&self, response_stream: &mut ResponseStream) -> Result<(), LlmError> {
        while response_stream.chunks.is_empty() {
            let Some(mut reader) = response_stream.decoder.take() else { return Ok(()) };
            let until = match response_stream.is_finished {
                true => response_stream.deadline.min(Instant::now() + STREAM_END_GRACE),
                false => response_stream.deadline,
            };
            let connection_error = match timeout_at(until, response_stream.body.try_next()).await {
                Ok(Ok(Some(bytes))) => {
                    reader
                        .push(&bytes, &mut response_stream.chunks)
                        .map_err(|api_error| self.convert_api_error(api_error))?;
                    response_stream
                        .chunks
                        .iter_mut()
                        .for_each(|chunk| response_stream.encoded_tools.restore_chunk_name(chunk));
                    response_stream.is_finished = reader.is_finished();
                    response_stream.decoder = Some(reader);
                    continue;
                }
                Ok(Ok(None)) => None,
                Ok(Err(error)) => Some(self.connection_error(error)),
                Err(_) => Some(self.timeout_error()),
            };
            // A complete response counts, even if the connection was lost after it.
            let mut response = match (reader.finish(), connection_error) {
                (Ok(response), _) => response,
                (Err(api_error), None) => return Err(self.convert_api_error(api_error)),
                (Err(api_error), Some(source)) => {
                    return Err(LlmError {
                        partial_output: api_error.partial_output.map(Into::into),
                        ..source
                    });
                }
            };
            response_stream.encoded_tools.restore_names(&mut response);
            response_stream.detect_truncation(&mut response);
            response_stream.chunks.push(StreamChunk::Done(Box::new(response)));
        }
        Ok(())
    }

    /// Converts the provider's error and masks the key.
    fn convert_api_error(&self, api_error: ApiError) -> LlmError {
        let ApiError { kind, message, partial_output } = api_error;
        let redact = |text| self.endpoint.redact(text);
        let partial_output = partial_output.map(|output| redact(output).into());
        LlmError { partial_output, ..self.error(kind, redact(message)) }
    }

    fn timeout_error(&self) -> LlmError {
        let seconds = self.endpoint.timeout.as_secs();
        self.error(LlmErrorKind::TimedOut, format!("no complete response within {seconds} s"))
    }

    /// Converts a connection error. The URL is removed because it may contain a key.
    fn connection_error(&self, error: reqwest::Error) -> LlmError {
        let kind =
            if error.is_timeout() { LlmErrorKind::TimedOut } else { LlmErrorKind::Connection };
        let address = self.endpoint.host_and_port();
        let message = if error.is_connect() {
            format!("cannot connect to {address}")
        } else if error.is_builder() {
            "invalid base URL".to_owned()
        } else {
            format!("the connection to {address} was lost")
        };
        self.error_with_source(kind, &message, error.without_url())
    }

    fn error(&self, kind: LlmErrorKind, message: impl Into<Box<str>>) -> LlmError {
        let model = self.endpoint.model.as_str().into();
        LlmError { model, ..LlmError::new(&self.endpoint.provider, kind, message) }
    }

    fn error_with_source(
        &self,
        kind: LlmErrorKind,
        message: &str,
        error: impl std::error::Error + Send + Sync + 'static,
    ) -> LlmError {
        LlmError { source: Some(Box::new(error)), ..self.error(kind, message) }
    }
}

/// Maximum response timeout, effectively unlimited.
const MAX_RESPONSE_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// Maximum wait for more bytes after the response reported its end.
const STREAM_END_GRACE: Duration = Duration::from_secs(2);

/// Timeout of [`HttpProvider::probe_server`], for a server on this machine or in the local network.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum number of bytes in a probe response, which contains the model's chat template.
const MAX_PROBE_BODY_BYTES: usize = 4 << 20;

/// A response in progress.
struct ResponseStream {
    deadline: Instant,
    encoded_tools: Arc<EncodedTools>,
    /// `None` after the end of the response.
    decoder: Option<Box<dyn ResponseDecoder>>,
    body: BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    /// Whether the response has reported its end.
    is_finished: bool,
    /// The token limit, for servers that do not report truncation at the limit.
    unreported_token_limit: Option<u32>,
    /// Decoded chunks that are not emitted yet.
    chunks: Vec<StreamChunk>,
}

impl ResponseStream {
    /// Sets the finish reason of a truncated response. Over the Responses API, llama.cpp reports a
    /// truncated response as complete, and a call in the response may be incomplete.
    fn detect_truncation(&self, response: &mut Response) {
        let completion_tokens = response.usage.map_or(0, |usage| usage.completion_tokens);
        let is_complete =
            matches!(response.finish_reason, FinishReason::Stop | FinishReason::ToolCalls);
        if is_complete
            && self
                .unreported_token_limit
                .is_some_and(|limit| completion_tokens >= u64::from(limit))
        {
            response.finish_reason = FinishReason::Length;
        }
    }
}

/// Reads a body up to a maximum number of bytes.
async fn read_at_most(response: reqwest::Response, max_bytes: usize) -> reqwest::Result<Vec<u8>> {
    let mut body = response.bytes_stream();
    let mut read = Vec::new();
    while let Some(bytes) = body.try_next().await? {
        let remaining = max_bytes - read.len();
        read.extend_from_slice(&bytes[..bytes.len().min(remaining)]);
        if read.len() == max_bytes {
            break;
        }
    }
    Ok(read)
}

#[async_trait]
impl LlmProvider for HttpProvider {
    async fn generate(&self, request: Request) -> Result<Response, LlmError> {
        let mut response_stream = self.start_response(&request, false).await?;
        loop {
            self.read_more(&mut response_stream).await?;
            for chunk in std::mem::take(&mut response_stream.chunks) {
                if let StreamChunk::Done(response) = chunk {
                    return Ok(*response);
                }
            }
        }
    }

    fn name(&self) -> &str {
        &self.endpoint.provider
    }

    fn supports_tools(&self) -> bool {
        self.endpoint.capabilities.native_tools
    }

    fn model(&self) -> &str {
        &self.endpoint.model
    }

    fn capabilities(&self) -> Capabilities {
        self.endpoint.capabilities.clone()
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<StreamChunk, LlmError>> {
        let start = async move {
            let response_stream = self.start_response(&request, true).await?;
            Ok(stream::try_unfold(response_stream, move |mut stream_state| async move {
                if stream_state.decoder.is_none() && stream_state.chunks.is_empty() {
                    return Ok(None);
                }
                self.read_more(&mut stream_state).await?;
                let chunks = std::mem::take(&mut stream_state.chunks);
                Ok(Some((stream::iter(chunks.into_iter().map(Ok)), stream_state)))
            })
            .try_flatten())
        };
        stream::once(start).try_flatten().boxed()
    }
}

impl fmt::Debug for HttpProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpProvider").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}
