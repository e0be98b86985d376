//! Conversion between one line and one JSON-RPC message.

pub mod code;
mod malformed;
mod parse;
mod write;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::id::RequestId;

pub use malformed::{MalformedKind, MalformedMessage};
pub use parse::{MAX_BATCH_MESSAGES, MAX_MESSAGE_DEPTH, error_without_id, parse};
pub use write::{
    ErrorId, write_error, write_error_with_data, write_notification, write_request,
    write_request_with_id, write_response,
};

/// The contents of one line.
#[derive(Clone, Debug)]
pub enum Message<'a> {
    /// A single message.
    Single(Incoming<'a>),
    /// A batch. Each message is parsed separately, so that a malformed message does not affect the
    /// others.
    Batch(Vec<Result<Incoming<'a>, MalformedMessage>>),
}

/// A well-formed message from the peer.
#[derive(Clone, Debug)]
pub enum Incoming<'a> {
    /// The response to a request.
    Response {
        /// The id of the request.
        id: RequestId,
        /// The result, which may be `null`, or the error.
        outcome: Result<&'a RawValue, ErrorObject>,
    },
    /// A request, which requires a response.
    Request {
        /// The id that the response must repeat.
        id: RequestId,
        /// The method name.
        method: Cow<'a, str>,
        /// The parameters. `null` counts as absent.
        params: Option<&'a RawValue>,
    },
    /// A notification, which requires no response.
    Notification {
        /// The method name.
        method: Cow<'a, str>,
        /// The parameters. `null` counts as absent.
        params: Option<&'a RawValue>,
    },
}

/// The error of a response.
#[derive(Clone, Debug)]
pub struct ErrorObject {
    /// The error code; see [`code`].
    pub code: i64,
    /// The peer's message. Untrusted; escape the message before display.
    pub message: String,
    /// Additional data from the peer.
    pub data: Option<Box<RawValue>>,
}
