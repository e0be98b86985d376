//! What a line is that is not a message, and whose answer it may have been.

use std::fmt;

use crate::id::RequestId;
use crate::skim;
use crate::text::printable;

/// The longest detail, in characters: a line of a log.
const DETAIL_LIMIT: usize = 200;
/// How much of the offending line goes into a detail, in bytes.
const SAMPLE_LIMIT: usize = 120;

/// A line, or an item of a batch, that is no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}{}{detail}", if detail.is_empty() { "" } else { ": " })]
pub struct Malformed {
    /// The id of the outermost object, if it could be read all the same.
    pub id: Option<RequestId>,
    /// Whether it has a result or an error and no method, so that `id` is one of ours.
    pub looks_like_response: bool,
    /// What is wrong.
    pub kind: MalformedKind,
    /// More about it, at most 200 characters of printable text.
    pub detail: String,
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MalformedKind {
    /// The bytes are not UTF-8.
    NotUtf8,
    /// The text is not JSON.
    NotJson,
    /// The line is the first of a message written over several.
    MultiLineJson,
    /// The nesting is deeper than [`DEPTH_LIMIT`](super::DEPTH_LIMIT).
    TooDeep,
    /// The JSON is neither an object nor a batch of objects.
    NotAnObject,
    /// There is no `jsonrpc` member.
    MissingVersion,
    /// The `jsonrpc` member is not `"2.0"`.
    WrongVersion,
    /// One of the envelope's members is there twice.
    DuplicateKey,
    /// The id is missing, `null` or no id.
    BadId,
    /// The method is missing or not a string.
    MissingMethod,
    /// The error is not an object with a whole `code` and a `message`.
    BadError,
    /// There are both a result and an error.
    BothResultAndError,
    /// There is neither a result nor an error.
    NeitherResultNorError,
    /// There are both a method and a result or an error.
    BothRequestAndResponse,
    /// The batch has no items.
    EmptyBatch,
    /// The batch has more than [`BATCH_LIMIT`](super::BATCH_LIMIT) items; stands in the place of
    /// those left out.
    BatchTooLarge,
    /// The line is longer than the framer's limit.
    TooLong,
}

impl Malformed {
    /// What a line is that the framer gave up on: `head` is how it starts.
    pub fn too_long(head: &[u8]) -> Self {
        Self::skimmed(MalformedKind::TooLong, head, "")
    }

    /// With the id looked for in bytes that could not be parsed.
    pub(super) fn skimmed(kind: MalformedKind, line: &[u8], reason: &str) -> Self {
        let (id, looks_like_response) = skim::top_level_id(line);
        Self { id, looks_like_response, kind, detail: with_sample(reason, line) }
    }

    /// Without an id to look for.
    pub(super) fn nameless(kind: MalformedKind, detail: &str) -> Self {
        let detail = printable(detail, DETAIL_LIMIT);
        Self { id: None, looks_like_response: false, kind, detail }
    }
}

impl MalformedKind {
    /// The kind in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotUtf8 => "not UTF-8",
            Self::NotJson => "not JSON",
            Self::MultiLineJson => "multi-line JSON, where each message must be one line",
            Self::TooDeep => "nested too deep",
            Self::NotAnObject => "not a JSON-RPC object",
            Self::MissingVersion => "no `jsonrpc` member",
            Self::WrongVersion => "`jsonrpc` is not \"2.0\"",
            Self::DuplicateKey => "duplicate key",
            Self::BadId => "no usable id",
            Self::MissingMethod => "no method",
            Self::BadError => "not an error object",
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

fn with_sample(reason: &str, line: &[u8]) -> String {
    let sample = String::from_utf8_lossy(&line[..line.len().min(SAMPLE_LIMIT)]);
    let separator = if reason.is_empty() { "" } else { ": " };
    printable(&format!("{reason}{separator}{sample}"), DETAIL_LIMIT)
}
