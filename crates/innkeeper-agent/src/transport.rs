//! Models reached over HTTP: the one place of this crate that sends anything.

mod headers;
mod named;

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
    Capabilities, Class, Finish, LlmError, LlmProvider, Piece, Request, Response, Server, Wire,
};

pub use named::{Named, UnknownModel, Wanted, get_llm_client};

/// How long a whole answer may take unless said otherwise: as long as the providers' own clients wait.
pub const TIMEOUT: Duration = Duration::from_secs(600);

/// How much of the body of a failure is read: far above what providers say of one.
const FAILURE: usize = 1 << 20;

/// Which model, where, and how it is spoken to.
#[derive(Clone)]
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

/// Of the address, machine and port: a password may be in the rest.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("provider", &self.provider)
            .field("wire", &self.wire)
            .field("place", &self.place())
            .field("key", &self.key)
            .field("model", &self.model)
            .field("capabilities", &self.capabilities)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// A text with the key masked wherever it stands, or a piece of it that is longer than eight
    /// bytes: for what is written down of a conversation.
    pub fn redacted(&self, text: String) -> String {
        match &self.key {
            Some(key) => key.mask(text),
            None => text,
        }
    }

    /// The machine and port of the address, without what may be secret in it.
    fn place(&self) -> String {
        let url = reqwest::Url::parse(&self.base_url).ok();
        let place =
            url.as_ref().and_then(|url| Some((url.host_str()?, url.port_or_known_default()?)));
        place.map_or_else(|| "its address".to_owned(), |(host, port)| format!("{host}:{port}"))
    }

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
            let capabilities = Capabilities::of(self.endpoint.wire, first);
            self.endpoint =
                Endpoint { model: first.to_owned(), capabilities, ..self.endpoint.clone() };
        }
        let Some(root) = base.strip_suffix("/v1") else { return Ok(()) };
        let props = self.told(&format!("{root}/props")).await.ok().flatten().unwrap_or_default();
        let Some(caps) = props.get("chat_template_caps") else { return Ok(()) };
        let wire = self.endpoint.wire;
        let capabilities = &mut self.endpoint.capabilities;
        capabilities.server = Server::LlamaCpp;
        let window = props.pointer("/default_generation_settings/n_ctx").and_then(Value::as_u64);
        capabilities.context_tokens = window.and_then(|window| u32::try_from(window).ok());
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
            if matches!(response.status().as_u16(), 401 | 403) {
                return Err(self.error(Class::Key, "the server wants another key, or one at all"));
            }
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
        let deadline = Instant::now() + self.endpoint.timeout.min(LONGEST);
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
        let silent = self.endpoint.capabilities.server == Server::LlamaCpp;
        let limit = request.max_tokens.filter(|_| silent);
        let pieces = Vec::new();
        Ok(Begun { deadline, offer, reader: Some(reader), body, over: false, limit, pieces })
    }

    /// Reads on until something can be told, [`Piece::Done`] last.
    async fn go_on(&self, begun: &mut Begun) -> Result<(), LlmError> {
        while begun.pieces.is_empty() {
            let Some(mut reader) = begun.reader.take() else { return Ok(()) };
            let until = match begun.over {
                true => begun.deadline.min(Instant::now() + GRACE),
                false => begun.deadline,
            };
            let lost = match timeout_at(until, begun.body.try_next()).await {
                Ok(Ok(Some(bytes))) => {
                    reader.push(&bytes, &mut begun.pieces).map_err(|fault| self.fault(fault))?;
                    begun.pieces.iter_mut().for_each(|piece| begun.offer.piece_back(piece));
                    begun.over = reader.is_over();
                    begun.reader = Some(reader);
                    continue;
                }
                Ok(Ok(None)) => None,
                Ok(Err(error)) => Some(self.broken(error)),
                Err(_) => Some(self.late()),
            };
            // What is whole is an answer, however the connection ended.
            let mut response = match (reader.end(), lost) {
                (Ok(response), _) => response,
                (Err(fault), None) => return Err(self.fault(fault)),
                (Err(fault), Some(lost)) => {
                    return Err(LlmError { written: fault.written.map(Into::into), ..lost });
                }
            };
            begun.offer.put_back(&mut response);
            begun.notice_cut(&mut response);
            begun.pieces.push(Piece::Done(Box::new(response)));
        }
        Ok(())
    }

    /// What the provider said, without the key.
    fn fault(&self, fault: Fault) -> LlmError {
        let Fault { class, message, written } = fault;
        let own = |text| self.endpoint.redacted(text);
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
        let place = self.endpoint.place();
        let message = if error.is_connect() {
            format!("no connection to {place}")
        } else if error.is_builder() {
            "the address is not one".to_owned()
        } else {
            format!("the connection to {place} broke")
        };
        self.because(class, &message, error.without_url())
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

/// The longest time an answer may be given: as good as none.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// How long is waited for more after an answer said that it is at its end.
const GRACE: Duration = Duration::from_secs(2);

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
    /// Whether the answer has said that it is at its end.
    over: bool,
    /// The most tokens, where the server does not say that it cut the answer there.
    limit: Option<u32>,
    /// What can be told and was not yet.
    pieces: Vec<Piece>,
}

impl Begun {
    /// llama.cpp calls an answer over OpenAI's Responses complete that it cut; a call in it may lack
    /// its end.
    fn notice_cut(&self, response: &mut Response) {
        let written = response.usage.map_or(0, |usage| usage.completion_tokens);
        let whole = matches!(response.finish, Finish::Stop | Finish::ToolCalls);
        if whole && self.limit.is_some_and(|limit| written >= u64::from(limit)) {
            response.finish = Finish::Length;
        }
    }
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
