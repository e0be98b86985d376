//! One line ↔ one JSON-RPC message, with everything inside left as raw JSON.

pub mod code;
mod malformed;
mod parse;
mod write;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::id::RequestId;

pub use malformed::{Malformed, MalformedKind};
pub use parse::{BATCH_LIMIT, DEPTH_LIMIT, error_without_id, parse};
pub use write::{write_error, write_notification, write_request, write_response};

/// What one line held.
#[derive(Clone, Debug)]
pub enum Message<'a> {
    /// One message.
    One(Incoming<'a>),
    /// A batch: each message parsed by itself, so that a bad one does not take the others with it.
    Batch(Vec<Result<Incoming<'a>, Malformed>>),
}

/// One well-formed message from the peer.
#[derive(Clone, Debug)]
pub enum Incoming<'a> {
    /// The answer to a request.
    Response {
        /// Which request.
        id: RequestId,
        /// The result, `null` included, or the error.
        outcome: Result<&'a RawValue, ErrorObject>,
    },
    /// A request that wants an answer.
    Request {
        /// What the answer must carry.
        id: RequestId,
        /// The method's name.
        method: Cow<'a, str>,
        /// The parameters; `null` counts as none.
        params: Option<&'a RawValue>,
    },
    /// A message that wants no answer.
    Notification {
        /// The method's name.
        method: Cow<'a, str>,
        /// The parameters; `null` counts as none.
        params: Option<&'a RawValue>,
    },
}

/// The error a peer answered with.
#[derive(Clone, Debug)]
pub struct ErrorObject {
    /// What kind of error; see [`code`].
    pub code: i64,
    /// The peer's words; nothing in them is to be trusted or shown unescaped.
    pub message: String,
    /// What else the peer said.
    pub data: Option<Box<RawValue>>,
}
