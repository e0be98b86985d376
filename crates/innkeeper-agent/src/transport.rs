//! Models reached over HTTP: the one place of this crate that sends anything.

mod headers;
mod redact;

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

use crate::provider::codec::{self, Asking, Fault, Outgoing, Reader};
use crate::provider::offer::Offer;
use crate::provider::{
    Capabilities, Class, LlmError, LlmProvider, Piece, Request, Response, Server, Wire,
};

/// How long a whole answer may take unless said otherwise: as long as the providers' own clients wait.
pub const TIMEOUT: Duration = Duration::from_secs(600);

/// How much of the body of a failure is read: far above what providers say of one.
const FAILURE: usize = 1 << 20;

/// Which model, where, and how it is spoken to.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// What the provider is called in messages and results.
    pub provider: String,
    /// How it is spoken to.
    pub wire: Wire,
    /// Where: what the provider's own client calls its base URL.
    pub base_url: String,
    /// What proves who asks; sent to `base_url` alone.
    pub key: Option<Secret>,
    /// The model, by the provider's name for it.
    pub model: String,
    /// What may be asked of it.
    pub capabilities: Capabilities,
    /// How long a whole answer may take, connecting included.
    pub timeout: Duration,
    /// The environment that proxies are read from. Empty: none is used.
    pub environment: Environment,
}

impl Endpoint {
    /// A model over a wire, where the provider itself is, with what is known of it.
    pub fn new(provider: impl Into<String>, wire: Wire, model: impl Into<String>) -> Self {
        let model = model.into();
        Self {
            provider: provider.into(),
            wire,
            base_url: wire.default_base_url().to_owned(),
            key: None,
            capabilities: Capabilities::of(wire, &model),
            model,
            timeout: TIMEOUT,
            environment: Environment::default(),
        }
    }
}

/// A model over HTTP. Nothing is sent, and no client made, before the first request.
pub struct HttpProvider {
    endpoint: Endpoint,
    client: OnceLock<reqwest::Client>,
    /// The tools of the last request, ready to be sent: they rarely change.
    offer: Mutex<Option<Arc<Offer>>>,
}

impl HttpProvider {
    /// The model of this endpoint.
    pub fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, client: OnceLock::new(), offer: Mutex::new(None) }
    }

    /// Where and what it is.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Asks a server that speaks like OpenAI what it is: which model it has where none was named, and
    /// whether that model's template knows tools. llama.cpp drops them without a word where it does
    /// not. What a server does not say stays as it was.
    ///
    /// # Errors
    ///
    /// No model was named, and the server names none either.
    pub async fn look(&mut self) -> Result<(), LlmError> {
        let base = self.endpoint.base_url.trim_end_matches('/').to_owned();
        if self.endpoint.model.is_empty() {
            let models = self.told(&format!("{base}/models")).await?.unwrap_or_default();
            let Some(first) = models.pointer("/data/0/id").and_then(Value::as_str) else {
                let message = "the server names no model: say which one is wanted";
                return Err(self.error(Class::NotFound, message));
            };
            first.clone_into(&mut self.endpoint.model);
        }
        let Some(root) = base.strip_suffix("/v1") else { return Ok(()) };
        let props = self.told(&format!("{root}/props")).await.ok().flatten().unwrap_or_default();
        let Some(caps) = props.get("chat_template_caps") else { return Ok(()) };
        let wire = self.endpoint.wire;
        let capabilities = &mut self.endpoint.capabilities;
        capabilities.server = Server::LlamaCpp;
        capabilities.constraints.json_schema = wire == Wire::OpenAiChat;
        capabilities.constraints.gbnf = wire == Wire::OpenAiChat;
        let lacks = |key: &str| caps.get(key).and_then(Value::as_bool) == Some(false);
        if lacks("supports_tools") || lacks("supports_tool_calls") {
            capabilities.native_tools = false;
        }
        Ok(())
    }

    /// What a server answers to a GET, within two seconds; `None` where that is no success or no JSON.
    async fn told(&self, url: &str) -> Result<Option<Value>, LlmError> {
        let asked = async {
            let response = self.signed(self.client()?.get(url)).send().await;
            let response = response.map_err(|error| self.broken(error))?;
            if !response.status().is_success() {
                return Ok(None);
            }
            let body = bounded(response, PROPS).await.map_err(|error| self.broken(error))?;
            Ok(serde_json::from_slice(&body).ok())
        };
        timeout(LOOK, asked).await.unwrap_or_else(|_| {
            Err(self.error(Class::TimedOut, format!("no answer within {} s", LOOK.as_secs())))
        })
    }

    fn client(&self) -> Result<&reqwest::Client, LlmError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let tls = !self.endpoint.base_url.starts_with("http://");
        let made = http_client(&self.endpoint.environment, tls).map_err(|error| {
            self.because(Class::Connection, "the HTTP client cannot be made", error)
        })?;
        Ok(self.client.get_or_init(|| made))
    }

    fn offer(&self, tools: &Arc<Tools>) -> Arc<Offer> {
        let mut kept = self.offer.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some(offer) if Arc::ptr_eq(&offer.tools, tools) => offer.clone(),
            Some(_) | None => {
                let strict = self.endpoint.capabilities.strict_tools;
                let offer = Arc::new(Offer::new(tools.clone(), self.endpoint.wire, strict));
                *kept = Some(offer.clone());
                offer
            }
        }
    }

    fn signed(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        match &self.endpoint.key {
            Some(key) => headers::sign(request, self.endpoint.wire, key),
            None => request,
        }
    }

    /// Sends, and waits for the head of the answer.
    async fn send(
        &self,
        outgoing: Outgoing,
        deadline: Instant,
    ) -> Result<reqwest::Response, LlmError> {
        let Outgoing { path, headers, body } = outgoing;
        let url = format!("{}{path}", self.endpoint.base_url.trim_end_matches('/'));
        let mut request = self.client()?.post(url).header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let sent = timeout_at(deadline, self.signed(request).body(body).send()).await;
        let response = sent.map_err(|_| self.late())?.map_err(|error| self.broken(error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let told = headers::wait(response.headers());
        let body =
            timeout_at(deadline, bounded(response, FAILURE)).await.map_err(|_| self.late())?;
        let body = body.unwrap_or_default();
        let mut fault = codec::fault(self.endpoint.wire, status.as_u16(), &body);
        fault.class = told.applied(fault.class);
        Err(LlmError { status: Some(status.as_u16()), ..self.fault(fault) })
    }

    async fn begin(&self, request: &Request, streaming: bool) -> Result<Begun, LlmError> {
        let deadline = Instant::now() + self.endpoint.timeout;
        let offer = self.offer(&request.tools);
        let asking = Asking {
            request,
            offer: &offer,
            model: &self.endpoint.model,
            can: &self.endpoint.capabilities,
            streaming,
        };
        let outgoing =
            codec::encode(self.endpoint.wire, asking).map_err(|fault| self.fault(fault))?;
        let response = self.send(outgoing, deadline).await?;
        let reader = codec::reader(self.endpoint.wire, &self.endpoint.model, streaming);
        let body = response.bytes_stream().boxed();
        Ok(Begun { deadline, offer, reader: Some(reader), body, pieces: Vec::new() })
    }

    /// Reads on until something can be told, [`Piece::Done`] last.
    async fn go_on(&self, begun: &mut Begun) -> Result<(), LlmError> {
        while begun.pieces.is_empty() {
            let next = timeout_at(begun.deadline, begun.body.try_next()).await;
            let next = next.map_err(|_| self.late())?.map_err(|error| self.broken(error))?;
            let Some(mut reader) = begun.reader.take() else { return Ok(()) };
            if let Some(bytes) = next {
                reader.push(&bytes, &mut begun.pieces).map_err(|fault| self.fault(fault))?;
                begun.pieces.iter_mut().for_each(|piece| begun.offer.piece_back(piece));
                begun.reader = Some(reader);
            } else {
                let mut response = reader.end().map_err(|fault| self.fault(fault))?;
                begun.offer.put_back(&mut response);
                begun.pieces.push(Piece::Done(Box::new(response)));
            }
        }
        Ok(())
    }

    /// What the provider said, without the key.
    fn fault(&self, fault: Fault) -> LlmError {
        let Fault { class, message, written } = fault;
        let own = |text| redact::redacted(text, self.endpoint.key.as_ref());
        let written = written.map(|it| own(it).into());
        LlmError { written, ..self.error(class, own(message)) }
    }

    fn late(&self) -> LlmError {
        let seconds = self.endpoint.timeout.as_secs();
        self.error(Class::TimedOut, format!("no whole answer within {seconds} s"))
    }

    /// The address is not repeated: a key may be in it.
    fn broken(&self, error: reqwest::Error) -> LlmError {
        let class = if error.is_timeout() { Class::TimedOut } else { Class::Connection };
        let message = if error.is_connect() {
            "the connection cannot be made"
        } else if error.is_builder() {
            "the address is not one"
        } else {
            "the connection broke"
        };
        self.because(class, message, error.without_url())
    }

    fn error(&self, class: Class, message: impl Into<Box<str>>) -> LlmError {
        let model = self.endpoint.model.as_str().into();
        LlmError { model, ..LlmError::new(&self.endpoint.provider, class, message) }
    }

    fn because(
        &self,
        class: Class,
        message: &str,
        error: impl std::error::Error + Send + Sync + 'static,
    ) -> LlmError {
        LlmError { source: Some(Box::new(error)), ..self.error(class, message) }
    }
}

/// How long [`HttpProvider::look`] waits: a server on this machine or in this network.
const LOOK: Duration = Duration::from_secs(2);

/// How much a server says of itself at most; the template of a model is in it.
const PROPS: usize = 4 << 20;

/// An answer on its way.
struct Begun {
    deadline: Instant,
    offer: Arc<Offer>,
    /// `None` when it is over.
    reader: Option<Box<dyn Reader>>,
    body: BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    /// What can be told and was not yet.
    pieces: Vec<Piece>,
}

/// The first bytes of a body, this many at most.
async fn bounded(response: reqwest::Response, most: usize) -> reqwest::Result<Vec<u8>> {
    let mut body = response.bytes_stream();
    let mut read = Vec::new();
    while let Some(bytes) = body.try_next().await? {
        let room = most - read.len();
        read.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if read.len() == most {
            break;
        }
    }
    Ok(read)
}

#[async_trait]
impl LlmProvider for HttpProvider {
    async fn generate(&self, request: Request) -> Result<Response, LlmError> {
        let mut begun = self.begin(&request, false).await?;
        loop {
            self.go_on(&mut begun).await?;
            for piece in std::mem::take(&mut begun.pieces) {
                if let Piece::Done(response) = piece {
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

    fn stream(&self, request: Request) -> BoxStream<'_, Result<Piece, LlmError>> {
        let begin = async move {
            let begun = self.begin(&request, true).await?;
            Ok(stream::try_unfold(begun, move |mut begun| async move {
                if begun.reader.is_none() && begun.pieces.is_empty() {
                    return Ok(None);
                }
                self.go_on(&mut begun).await?;
                let pieces = std::mem::take(&mut begun.pieces);
                Ok(Some((stream::iter(pieces.into_iter().map(Ok)), begun)))
            })
            .try_flatten())
        };
        stream::once(begin).try_flatten().boxed()
    }
}

impl fmt::Debug for HttpProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpProvider").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}
