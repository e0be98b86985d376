//! The reference from a message of a server to a call.

use std::borrow::Cow;
use std::sync::Arc;

/// The call that a message of a server belongs to.
///
/// The host never guesses: the reference names a call only if the protocol ties the message to the
/// call.
///
/// - Input requests of the modern era belong to the call whose result contains them.
/// - Messages on the response stream of an HTTP POST belong to the call of that POST.
/// - A message with the related task of a call, or with the progress token of a call, belongs to
///   that call.
/// - Over a pipe (stdio, WebSocket, HTTP+SSE), a request or a log message belongs to a call if that
///   call is the only request in flight; a request does not if the host's callback is
///   [for many clients](crate::CallbackCapabilities::for_many_clients). A cancelled call counts as in flight until the server responds to the call
///   or the server's `maxTotalTimeout` has passed, because the server may not know the cancellation
///   yet. A task of [`TaskMode::PassThrough`](crate::TaskMode::PassThrough) counts as in flight until
///   the host sees its end, its `ttl` has passed, or 24 hours have passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallReference {
    /// A call of the application.
    Call {
        /// The JSON-RPC id of the request; [`CallRecord::id`](super::CallRecord::id) for the last
        /// attempt or round trip.
        id: u64,
        /// The method, for example `tools/call`.
        method: Cow<'static, str>,
        /// The tool, the prompt or the URI, by the server's own name.
        item: Arc<str>,
    },
    /// No call, or the protocol does not say which call.
    Unknown,
}
