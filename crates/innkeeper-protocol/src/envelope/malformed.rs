//! Lines that are not valid messages.

use std::fmt;

use crate::id::RequestId;
use crate::skim;
use crate::text::printable;

/// Maximum length of `detail` in characters: one line of a log.
const MAX_DETAIL_CHARS: usize = 200;
/// Maximum number of bytes of the malformed line in `detail`.
const MAX_SAMPLE_BYTES: usize = 120;

/// A line, or an item of a batch, that is not a valid message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}{}{detail}", if detail.is_empty() { "" } else { ": " })]
pub struct MalformedMessage {
    /// The id of the outermost object, if the id is readable.
    pub id: Option<RequestId>,
    /// Whether the object has a result or an error and no method, so that `id` is the id of a
    /// client request.
    pub looks_like_response: bool,
    /// The kind of error.
    pub kind: MalformedKind,
    /// Details: at most 200 characters of printable text.
    pub detail: String,
}

/// The reason why a line is not a valid message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MalformedKind {
    /// The bytes are not UTF-8.
    NotUtf8,
    /// The text is not JSON.
    NotJson,
    /// The line is the first line of a message that spans several lines.
    MultiLineJson,
    /// The nesting exceeds [`MAX_MESSAGE_DEPTH`](super::MAX_MESSAGE_DEPTH).
    TooDeep,
    /// The JSON is neither an object nor a batch of objects.
    NotAnObject,
    /// The `jsonrpc` member is missing.
    MissingVersion,
    /// The `jsonrpc` member is not `"2.0"`.
    WrongVersion,
    /// A member of the envelope occurs twice.
    DuplicateKey,
    /// The id is missing, `null` or of an invalid type.
    BadId,
    /// The method is missing or not a string.
    MissingMethod,
    /// The error is not an object with an integer `code` and a string `message`.
    BadError,
    /// The message has both a result and an error.
    BothResultAndError,
    /// The message has neither a result nor an error.
    NeitherResultNorError,
    /// The message has a method and also a result or an error.
    BothRequestAndResponse,
    /// The batch has no items.
    EmptyBatch,
    /// The batch has more than [`MAX_BATCH_MESSAGES`](super::MAX_BATCH_MESSAGES) items. This item
    /// replaces the excess items.
    BatchTooLarge,
    /// The line exceeds the limit of the framer.
    TooLong,
}

impl MalformedMessage {
    /// Returns the error for a line over the framer's limit; `head` is the start of the line.
    pub fn too_long(head: &[u8]) -> Self {
        Self::with_recovered_id(MalformedKind::TooLong, head, "")
    }

    /// Creates an error and searches the unparsable bytes for an id.
    pub(super) fn with_recovered_id(kind: MalformedKind, line: &[u8], reason: &str) -> Self {
        let (id, looks_like_response) = skim::recover_top_level_id(line);
        Self { id, looks_like_response, kind, detail: detail_with_sample(reason, line) }
    }

    /// Creates an error without an id.
    pub(super) fn without_id(kind: MalformedKind, detail: &str) -> Self {
        let detail = printable(detail, MAX_DETAIL_CHARS);
        Self { id: None, looks_like_response: false, kind, detail }
    }
}

impl MalformedKind {
    /// Returns a short description of the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotUtf8 => "not UTF-8",
            Self::NotJson => "not JSON",
            Self::MultiLineJson => "multi-line JSON; each message must be one line",
            Self::TooDeep => "nested too deeply",
            Self::NotAnObject => "not a JSON-RPC object",
            Self::MissingVersion => "missing `jsonrpc` member",
            Self::WrongVersion => "`jsonrpc` is not \"2.0\"",
            Self::DuplicateKey => "duplicate key",
            Self::BadId => "missing or invalid id",
            Self::MissingMethod => "missing or invalid method",
            Self::BadError => "invalid error object",
            Self::BothResultAndError => "both result and error",
            Self::NeitherResultNorError => "neither result nor error",
            Self::BothRequestAndResponse => "both a request and a response",
            Self::EmptyBatch => "empty batch",
            Self::BatchTooLarge => "batch too large",
            Self::TooLong => "line too long",
        }
    }
}

impl fmt::Display for MalformedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn detail_with_sample(reason: &str, line: &[u8]) -> String {
    let sample = String::from_utf8_lossy(&line[..line.len().min(MAX_SAMPLE_BYTES)]);
    let separator = if reason.is_empty() { "" } else { ": " };
    printable(&format!("{reason}{separator}{sample}"), MAX_DETAIL_CHARS)
}
