//! A language model over HTTP.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt as _, TryStreamExt as _};
use reqwest::Method;
use tokio::time::Instant;

use super::client::{HttpClient, HttpError, IncomingResponse, OutgoingRequest};
use super::reqwest_client::ReqwestClient;
use super::response_body::{ResponseBody, read_prefix};
use super::response_stream::ResponseStream;
use super::{Endpoint, headers};
use crate::provider::codec::{self, EncodeRequest, HttpRequest, MAX_RESPONSE_BYTES};
use crate::provider::tool_encoding::EncodedTools;
use crate::provider::{
    Capabilities, InferenceServer, LlmError, LlmProvider, Request, Response, StreamChunk,
    ToolRejection,
};
use crate::timing::Timing;

/// Maximum number of bytes read of an error body, far more than providers send.
pub(super) const MAX_ERROR_BODY_BYTES: usize = 1 << 20;

/// Maximum response timeout, effectively unlimited.
const MAX_RESPONSE_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// A language model over HTTP. Nothing is sent and no client is created before the first request.
pub struct HttpProvider {
    pub(super) endpoint: Endpoint,
    client: Arc<dyn HttpClient>,
    pub(super) timing: Timing,
    /// The encoded tools of the last request: the tools rarely change.
    cached_tools: Mutex<Option<Arc<EncodedTools>>>,
}

impl HttpProvider {
    /// Creates a provider for an endpoint.
    pub fn new(endpoint: Endpoint) -> Self {
        let client = Arc::new(ReqwestClient::new(endpoint.environment.clone()));
        Self::with_client(endpoint, client)
    }

    /// Creates a provider that sends through a client, which other providers may share. The client
    /// and not the endpoint decides about proxies.
    pub(crate) fn with_client(endpoint: Endpoint, client: Arc<dyn HttpClient>) -> Self {
        Self { endpoint, client, timing: Timing::default(), cached_tools: Mutex::new(None) }
    }

    /// Returns a provider for the same endpoint, whose client is made around the client of this one.
    pub(crate) fn with_client_around(
        &self,
        wrap: impl FnOnce(Arc<dyn HttpClient>) -> Arc<dyn HttpClient>,
    ) -> Self {
        let client = wrap(self.client.clone());
        Self::with_client(self.endpoint.clone(), client).with_timing(self.timing.clone())
    }

    /// Sets the clock.
    #[must_use]
    pub(crate) fn with_timing(self, timing: Timing) -> Self {
        Self { timing, ..self }
    }

    /// Returns the endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn encoded_tools(&self, request: &Request) -> Arc<EncodedTools> {
        let tools = &request.tools;
        let strict = self.endpoint.capabilities.tools.strict && !request.plain_tools;
        let mut cached = self.cached_tools.lock().unwrap_or_else(PoisonError::into_inner);
        match &*cached {
            Some(cached_tools)
                if Arc::ptr_eq(&cached_tools.tools, tools) && cached_tools.strict == strict =>
            {
                cached_tools.clone()
            }
            Some(_) | None => {
                let encoded = Arc::new(EncodedTools::new(tools.clone(), self.endpoint.api, strict));
                *cached = Some(encoded.clone());
                encoded
            }
        }
    }

    /// Sends a request with the headers of the API and the key.
    pub(super) async fn send_request(
        &self,
        mut request: OutgoingRequest,
    ) -> Result<IncomingResponse, LlmError> {
        if let Some(key) = &self.endpoint.key {
            headers::add_api_key(&mut request.headers, self.endpoint.api, key);
        }
        let sent = self.client.send(request).await;
        sent.map_err(|error| self.endpoint.convert_http_error(error))
    }

    /// Sends an encoded request and waits for the head of a successful response.
    async fn send_encoded(
        &self,
        encoded: HttpRequest,
        tools: &EncodedTools,
        iteration: u32,
        deadline: Instant,
    ) -> Result<IncomingResponse, LlmError> {
        let HttpRequest { path, headers, body } = encoded;
        let url = format!("{}{path}", self.endpoint.base_url.trim_end_matches('/'));
        let headers = headers::json_headers(headers)
            .map_err(|source| HttpError::InvalidRequest { source })
            .map_err(|error| self.endpoint.convert_http_error(error))?;
        let request =
            OutgoingRequest { method: Method::POST, url, headers, body: body.into(), iteration };
        let sent = self.timing.timeout_at(deadline, self.send_request(request)).await;
        let response = sent.ok_or_else(|| self.endpoint.timeout_error())??;
        if response.status.is_success() {
            return Ok(response);
        }
        let status = response.status.as_u16();
        let retry_hints = headers::parse_retry_hints(&response.headers);
        let body = read_prefix(response.body, MAX_ERROR_BODY_BYTES);
        let body = self.timing.timeout_at(deadline, body).await;
        let body = body.ok_or_else(|| self.endpoint.timeout_error())?;
        let body = body.unwrap_or_default();
        let mut api_error = codec::decode_error(self.endpoint.api, status, &body);
        api_error.kind = retry_hints.apply_to(api_error.kind);
        let error = self.endpoint.convert_api_error(api_error);
        let error = ToolRejection::add_to(error, &String::from_utf8_lossy(&body), tools);
        Err(LlmError { status: Some(status), ..error })
    }

    async fn start_response(
        &self,
        request: &Request,
        streaming: bool,
    ) -> Result<ResponseStream, LlmError> {
        let deadline = self.timing.now() + self.endpoint.timeout.min(MAX_RESPONSE_TIMEOUT);
        let encoded_tools = self.encoded_tools(request);
        let encode_request = EncodeRequest {
            request,
            encoded_tools: &encoded_tools,
            model: &self.endpoint.model,
            capabilities: &self.endpoint.capabilities,
            streaming,
        };
        let encoded = codec::encode(self.endpoint.api, encode_request)
            .map_err(|api_error| self.endpoint.convert_api_error(api_error))?;
        let response =
            self.send_encoded(encoded, &encoded_tools, request.iteration, deadline).await?;
        let Endpoint { api, model, .. } = &self.endpoint;
        let decoder = codec::response_decoder(*api, model, &encoded_tools, streaming);
        let body = ResponseBody::new(response.body, MAX_RESPONSE_BYTES);
        let silent = self.endpoint.capabilities.server == InferenceServer::LlamaCpp;
        let unreported_token_limit = request.max_tokens.filter(|_| silent);
        Ok(ResponseStream {
            timing: self.timing.clone(),
            deadline,
            encoded_tools,
            decoder: Some(decoder),
            body,
            is_finished: false,
            unreported_token_limit,
            chunks: Vec::new(),
        })
    }
}

#[async_trait]
impl LlmProvider for HttpProvider {
    async fn generate(&self, request: Request) -> Result<Response, LlmError> {
        let mut response_stream = self.start_response(&request, false).await?;
        loop {
            response_stream.read_more(&self.endpoint).await?;
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
        self.endpoint.capabilities.tools.native
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
                stream_state.read_more(&self.endpoint).await?;
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
