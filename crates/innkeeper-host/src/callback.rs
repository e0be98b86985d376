//! Callbacks: how the application handles requests from servers.

mod callback_registry;
mod capabilities;
mod client_capabilities;
mod form;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use innkeeper_protocol::envelope::code;
use innkeeper_protocol::method;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::event::CallReference;

pub(crate) use callback_registry::CallbackRegistry;
pub use capabilities::CallbackCapabilities;
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
    /// [`RemoteClient::capabilities`](crate::RemoteClient::capabilities) itself.
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
/// [`principal`](crate::RemoteClient::principal) of calls and to all requests without a principal; a
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

/// Rejects a result that MCP does not permit: every result of a request is an object.
fn require_object(result: Box<RawValue>) -> CallbackResult {
    if result.get().starts_with('{') {
        return Ok(result);
    }
    Err(CallbackError::internal_error("the result of the application is not an object"))
}

#[cfg(test)]
mod tests;
