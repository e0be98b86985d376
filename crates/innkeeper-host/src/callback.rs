//! Callbacks: how the application handles requests from servers.

mod client_capabilities;
mod form;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use arc_swap::ArcSwap;
use innkeeper_protocol::envelope::code;
use innkeeper_protocol::{method, skim};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use form::FormProblem;

use crate::audit::AuditEvent;
use crate::event::CallReference;
use crate::text::display_prefix;

pub(crate) use client_capabilities::ClientCapabilities;

/// A request from a server to the application.
#[derive(Clone, Debug)]
pub struct ServerRequest {
    /// The name of the server. Only this server receives the response.
    pub server: Arc<str>,
    /// The name that the server gave the request: an id that is a string, or the key of an input
    /// request of the modern era.
    pub key: Option<Box<str>>,
    /// The method: `sampling/createMessage`, `elicitation/create`, `roots/list`, or a custom
    /// method.
    pub method: Box<str>,
    /// The parameters as the server sent them.
    pub params: Option<Box<RawValue>>,
    /// The call that the request belongs to.
    pub call: CallReference,
}

impl ServerRequest {
    /// Returns the error for a client with these capabilities, JSON text of an object of at most 64
    /// KiB, that cannot respond to the request: its kind, or a feature of the request, is not
    /// declared. The host checks a request that belongs to a call with
    /// [`CallOptions::client_capabilities`](crate::CallOptions::client_capabilities) itself.
    pub fn rejection(&self, client_capabilities: &RawValue) -> Option<CallbackError> {
        match ClientCapabilities::from_raw(client_capabilities) {
            Ok(capabilities) => capabilities.rejection(self),
            Err(message) => Some(CallbackError::internal_error(&message)),
        }
    }
}

/// The error of a callback, sent to the server as a JSON-RPC error. The module
/// [`code`] has the codes of JSON-RPC and MCP.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message} (code {code})")]
pub struct CallbackError {
    /// The JSON-RPC error code.
    pub code: i64,
    /// The message for the server.
    pub message: String,
}

impl CallbackError {
    /// Creates an error with a JSON-RPC error code and a message.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(crate) fn method_not_found() -> Self {
        Self::new(code::METHOD_NOT_FOUND, "method not supported by this client")
    }

    pub(crate) fn internal_error(message: &str) -> Self {
        Self::new(code::INTERNAL_ERROR, message)
    }
}

/// The result object of a request as JSON text, which reaches the server byte for byte, or an error.
pub type CallbackResult = Result<Box<RawValue>, CallbackError>;

/// The future of a callback.
pub type CallbackFuture = Pin<Box<dyn Future<Output = CallbackResult> + Send>>;

/// Returns the result of a callback as JSON text.
///
/// # Errors
///
/// Returns an internal error if `result` is not JSON, for example a map whose keys are not strings.
pub fn to_callback_result(result: &impl Serialize) -> CallbackResult {
    to_raw_value(result).map_err(|error| CallbackError::internal_error(&error.to_string()))
}

/// Handles requests from servers.
///
/// Any `Fn(ServerRequest) -> impl Future<Output = Result<Value, CallbackError>>` implements this
/// trait. A [`Value`] stores a number of more than 64 bits as a floating-point number; a type that
/// implements the trait itself returns JSON text. A callback runs in a task of the host; a panic becomes an error response to the server.
/// The host handles at most four requests of a server at a time and queues sixteen more; the host
/// rejects further requests. Of the elicitations of a server, at most one runs and four wait; the
/// host declines further elicitations. These limits apply to each
/// [`principal`](crate::CallOptions::principal) of calls and to all requests without a principal; a
/// server has at most 64 open requests. The host drops the future and responds with an error after
/// the server's `maxTotalTimeout`, including the time in the queue, and when the session ends. If
/// the server cancels the request, the host drops the future and sends no response. A result that
/// is not an object becomes an error response, because every result of MCP is an object.
///
/// # Examples
///
/// ```
/// use innkeeper_host::{CallbackCapabilities, Config, Host, ServerRequest};
/// use serde_json::json;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), innkeeper_host::StartError> {
/// let answer = |request: ServerRequest| async move {
///     println!("{} asks: {:?}", request.server, request.params);
///     Ok(json!({"action": "accept", "content": {"name": "Ada"}}))
/// };
/// let host = Host::builder(Config::default())
///     .callback(&CallbackCapabilities::elicitation(), answer).start().await?;
/// # Ok(()) }
/// ```
pub trait Callback: Send + Sync + 'static {
    /// Handles one request and returns the future of the response.
    fn respond(&self, request: ServerRequest) -> CallbackFuture;
}

impl fmt::Debug for dyn Callback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callback")
    }
}

impl<F, A> Callback for F
where
    F: Fn(ServerRequest) -> A + Send + Sync + 'static,
    A: Future<Output = Result<Value, CallbackError>> + Send + 'static,
{
    fn respond(&self, request: ServerRequest) -> CallbackFuture {
        let response = self(request);
        Box::pin(async move { to_callback_result(&response.await?) })
    }
}

/// The kinds of requests that have a client capability, and all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    Sampling,
    Elicitation,
    Roots,
    Other,
}

impl RequestKind {
    pub(crate) fn from_method(method: &str) -> Self {
        match method {
            method::SAMPLING_CREATE_MESSAGE => Self::Sampling,
            method::ELICITATION_CREATE => Self::Elicitation,
            method::ROOTS_LIST => Self::Roots,
            _ => Self::Other,
        }
    }
}

/// The requests that a callback handles, and the capabilities declared for them.
#[derive(Clone, Debug)]
pub struct CallbackCapabilities {
    server: Option<Arc<str>>,
    sampling: Option<Value>,
    elicitation: Option<Value>,
    roots: Option<Value>,
    custom: bool,
    allow_secrets: bool,
    for_many_clients: bool,
}

impl CallbackCapabilities {
    const NONE: Self = Self {
        server: None,
        sampling: None,
        elicitation: None,
        roots: None,
        custom: false,
        allow_secrets: false,
        for_many_clients: false,
    };

    /// Every request of every server: sampling without tools, elicitation with forms, roots and
    /// custom methods.
    pub fn all() -> Self {
        let some = || Some(json!({}));
        let (sampling, elicitation, roots) = (some(), some(), some());
        Self { sampling, elicitation, roots, custom: true, ..Self::NONE }
    }

    /// `sampling/createMessage`: a model generates a message.
    pub fn sampling() -> Self {
        Self { sampling: Some(json!({})), ..Self::NONE }
    }

    /// `sampling/createMessage`, also for requests with tools.
    pub fn sampling_with_tools() -> Self {
        Self { sampling: Some(json!({ "tools": {} })), ..Self::NONE }
    }

    /// `elicitation/create` with a form: the user enters values.
    pub fn elicitation() -> Self {
        Self { elicitation: Some(json!({})), ..Self::NONE }
    }

    /// `elicitation/create` with a form or with a URL for the user to open.
    pub fn elicitation_with_urls() -> Self {
        Self { elicitation: Some(json!({ "form": {}, "url": {} })), ..Self::NONE }
    }

    /// `roots/list`: the directories in which a server may work.
    pub fn roots() -> Self {
        Self { roots: Some(json!({})), ..Self::NONE }
    }

    /// Requests with custom methods. MCP has no capability for custom methods.
    pub fn custom() -> Self {
        Self { custom: true, ..Self::NONE }
    }

    /// Limits the callback to one server. A callback for one server takes precedence over a
    /// callback for all servers.
    #[must_use]
    pub fn for_server(self, server: &str) -> Self {
        Self { server: Some(server.into()), ..self }
    }

    /// Also accepts forms that ask for a password, a token, a card number or another secret.
    ///
    /// Default: the host rejects such forms, as the MCP specification requires; a server must ask
    /// for a secret at a URL. The host detects secret fields by name, title and format, so a server
    /// can avoid the detection with other wording.
    #[must_use]
    pub fn allow_secret_forms(self) -> Self {
        Self { allow_secrets: true, ..self }
    }

    /// For an application that calls on behalf of many remote clients.
    ///
    /// Over a pipe, a request is passed to this callback unless the protocol ties it to a call: the
    /// only call in flight is not necessarily the one that the request is about. The limits for the
    /// user of the application, one form and four requests at a time, do not apply. Default: the
    /// application has one user.
    #[must_use]
    pub fn for_many_clients(self) -> Self {
        Self { for_many_clients: true, ..self }
    }

    pub(crate) fn is_for_many_clients(&self) -> bool {
        self.for_many_clients
    }

    /// Every request with every feature.
    fn all_features() -> Self {
        let Self { sampling, .. } = Self::sampling_with_tools();
        let Self { elicitation, .. } = Self::elicitation_with_urls();
        Self { sampling, elicitation, ..Self::all() }
    }

    fn capability(&self, kind: RequestKind) -> Option<Value> {
        match kind {
            RequestKind::Sampling => self.sampling.clone(),
            RequestKind::Elicitation => self.elicitation.clone(),
            RequestKind::Roots => self.roots.clone(),
            RequestKind::Other => self.custom.then(|| json!({})),
        }
    }

    fn rejection(&self, kind: RequestKind, request: &ServerRequest) -> Option<CallbackError> {
        let no = |message| Some(CallbackError::new(code::INVALID_PARAMS, message));
        let params = request.params.as_deref().map(RawValue::get).unwrap_or_default();
        // The checks read one member of each name, and the application may read another.
        if kind != RequestKind::Other && skim::has_duplicate_key(params) {
            return no("two members of one object have the same name");
        }
        // Some libraries write `null` for an absent member.
        let member = |key| skim::member(params, key).filter(|value| *value != "null");
        let is_declared = |feature| {
            self.capability(kind).is_some_and(|capability| capability.get(feature).is_some())
        };
        if kind == RequestKind::Sampling {
            let tools = ["tools", "toolChoice"].iter().any(|key| member(key).is_some());
            let undeclared = tools && !is_declared("tools");
            return undeclared.then(|| no("capability `sampling.tools` is not declared")).flatten();
        }
        if kind != RequestKind::Elicitation {
            return None;
        }
        // An `elicitation` capability without modes declares forms.
        match member("mode") {
            None | Some(r#""form""#) if is_declared("form") || !is_declared("url") => {}
            Some(r#""url""#) if is_declared("url") => {}
            _ => return no("elicitation mode is not declared"),
        }
        if self.allow_secrets {
            return None;
        }
        match form::find_form_problem(request.params.as_deref())? {
            FormProblem::Secret(field) => {
                let subject = &display_prefix(&field, form::MAX_SHOWN_CHARS);
                AuditEvent::SecretAsked { subject }.emit(&request.server);
                no("forms must not ask for secrets: use `url` mode")
            }
            FormProblem::NotChecked(reason) => no(reason),
        }
    }

    fn remove(&mut self, other: &Self) {
        if other.server != self.server {
            return;
        }
        let clear_if_set = |target: &mut Option<Value>, removed: &Option<Value>| {
            if removed.is_some() {
                *target = None;
            }
        };
        clear_if_set(&mut self.sampling, &other.sampling);
        clear_if_set(&mut self.elicitation, &other.elicitation);
        clear_if_set(&mut self.roots, &other.roots);
        self.custom &= !other.custom;
    }

    fn is_empty(&self) -> bool {
        let Self { sampling, elicitation, roots, custom, .. } = self;
        sampling.is_none() && elicitation.is_none() && roots.is_none() && !custom
    }
}

#[derive(Clone)]
struct CallbackEntry {
    capabilities: CallbackCapabilities,
    callback: Arc<dyn Callback>,
}

/// The callbacks of a host, shared by all its parts. The application can change them while the host
/// runs.
#[derive(Clone, Default)]
pub(crate) struct CallbackRegistry(Arc<ArcSwap<Vec<CallbackEntry>>>);

impl fmt::Debug for CallbackRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallbackRegistry").field("registered", &self.0.load().len()).finish()
    }
}

impl CallbackRegistry {
    /// Registers `callback` in place of the previous callback, or removes the previous callback
    /// with `None`.
    pub(crate) fn set(
        &self,
        capabilities: &CallbackCapabilities,
        callback: Option<&Arc<dyn Callback>>,
    ) {
        self.0.rcu(|entries| {
            let mut entries = entries.to_vec();
            for entry in &mut entries {
                entry.capabilities.remove(capabilities);
            }
            entries.retain(|entry| !entry.capabilities.is_empty());
            if let Some(callback) = callback {
                let capabilities = capabilities.clone();
                entries.push(CallbackEntry { capabilities, callback: callback.clone() });
            }
            entries
        });
    }

    /// Returns whether the host has no callback.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.load().is_empty()
    }

    /// Returns the callback for a kind of request of a server, with the declared capability.
    fn find(&self, server: &str, kind: RequestKind) -> Option<(CallbackEntry, Value)> {
        let entries = self.0.load();
        let find_for = |server_name: Option<&str>| {
            let mut entries =
                entries.iter().filter(|entry| entry.capabilities.server.as_deref() == server_name);
            entries.find_map(|entry| Some((entry.clone(), entry.capabilities.capability(kind)?)))
        };
        find_for(Some(server)).or_else(|| find_for(None))
    }

    /// Returns the client capabilities for this server: only those with a callback.
    pub(crate) fn capabilities(&self, server: &str) -> Box<RawValue> {
        let known_kinds = [
            ("sampling", RequestKind::Sampling),
            ("elicitation", RequestKind::Elicitation),
            ("roots", RequestKind::Roots),
        ];
        let declared = known_kinds.into_iter().filter_map(|(name, kind)| {
            let (_, declared) = self.find(server, kind)?;
            Some((name.to_owned(), declared))
        });
        let declared: Map<String, Value> = declared.collect();
        // Serialization of a map with string keys cannot fail.
        to_raw_value(&declared).unwrap_or_default()
    }

    /// Returns what the callback for this kind of request of this server declares.
    pub(crate) fn capabilities_for(
        &self,
        server: &str,
        kind: RequestKind,
    ) -> Option<CallbackCapabilities> {
        self.find(server, kind).map(|(entry, _)| entry.capabilities)
    }

    /// Returns whether a callback handles this kind of request of this server.
    pub(crate) fn has_callback(&self, server: &str, kind: RequestKind) -> bool {
        self.find(server, kind).is_some()
    }

    /// Returns the error for a request that the host rejects without a call of the application.
    ///
    /// The host rejects a request whose mode or feature is not declared, and a form that asks for a
    /// secret. The latter is written to the audit log here.
    pub(crate) fn rejection(&self, request: &ServerRequest) -> Option<CallbackError> {
        let kind = RequestKind::from_method(&request.method);
        let (CallbackEntry { capabilities, .. }, _) = self.find(&request.server, kind)?;
        capabilities.rejection(kind, request)
    }

    /// Returns the error for a request that the application must not pass to a remote client: a
    /// form that asks for a secret, unless the host's callback accepts such forms.
    pub(crate) fn forwarding_rejection(&self, request: &ServerRequest) -> Option<CallbackError> {
        let kind = RequestKind::from_method(&request.method);
        let entry = self.find(&request.server, kind);
        let allow_secrets = entry.is_some_and(|(entry, _)| entry.capabilities.allow_secrets);
        CallbackCapabilities { allow_secrets, ..CallbackCapabilities::all_features() }
            .rejection(kind, request)
    }

    /// Starts the callback of a request: the callback of the call, else the host's. Returns `None`
    /// if the host has no callback for the request, because only the host's callbacks declare
    /// capabilities. The first part of the callback runs inside this function.
    pub(crate) fn respond(
        &self,
        request: ServerRequest,
        call_callback: Option<&Arc<dyn Callback>>,
    ) -> Option<CallbackFuture> {
        let kind = RequestKind::from_method(&request.method);
        let (CallbackEntry { capabilities, callback }, _) = self.find(&request.server, kind)?;
        match capabilities.rejection(kind, &request) {
            Some(error) => Some(Box::pin(async move { Err(error) })),
            None => {
                let response = call_callback.unwrap_or(&callback).respond(request);
                Some(Box::pin(async move { response.await.and_then(require_object) }))
            }
        }
    }
}

/// Rejects a result that MCP does not permit: every result of a request is an object.
fn require_object(result: Box<RawValue>) -> CallbackResult {
    if result.get().starts_with('{') {
        return Ok(result);
    }
    Err(CallbackError::internal_error("the result of the application is not an object"))
}

#[cfg(test)]
mod tests;
