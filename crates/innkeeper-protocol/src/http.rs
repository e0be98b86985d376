//! The headers of the HTTP transports: their names, and how values get into them.

mod param;
mod schema;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::method;

pub use param::{PARAM_LIMIT, PARAM_NAME_LIMIT, ParamHeaderError, ParamHeaders};

/// The revision that a request is written in; from 2025-06-18 on.
pub const PROTOCOL_VERSION: &str = "MCP-Protocol-Version";
/// The session a legacy server opened.
pub const SESSION_ID: &str = "Mcp-Session-Id";
/// The method of a modern request.
pub const METHOD: &str = "Mcp-Method";
/// What a modern request is about; see [`name_member`].
pub const NAME: &str = "Mcp-Name";
/// The event behind which a stream goes on.
pub const LAST_EVENT_ID: &str = "Last-Event-ID";
/// Begins the headers that repeat arguments of a modern call; see [`ParamHeaders`].
pub const PARAM_PREFIX: &str = "Mcp-Param-";

/// What stands around a value in base64.
const ENCODED_START: &str = "=?base64?";
const ENCODED_END: &str = "?=";

/// The member of a modern request's `params` that [`NAME`] repeats; `None` if the method has no
/// such header.
pub fn name_member(method: &str) -> Option<&'static str> {
    match method {
        method::TOOLS_CALL | method::PROMPTS_GET => Some("name"),
        method::RESOURCES_READ => Some("uri"),
        method::TASKS_GET | method::TASKS_UPDATE | method::TASKS_CANCEL => Some("taskId"),
        _ => None,
    }
}

/// `value` as [`NAME`] and the headers of [`PARAM_PREFIX`] carry it (2026-07-28, Streamable HTTP,
/// Value Encoding).
///
/// Printable ASCII without spaces around it stays as it is. Everything else goes as base64 of its
/// UTF-8 between `=?base64?` and `?=`, and so does what looks as if it had.
pub fn encode_value(value: &str) -> Cow<'_, str> {
    let printable = value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let padded = value.starts_with(' ') || value.ends_with(' ');
    let looks_encoded = value.starts_with(ENCODED_START) && value.ends_with(ENCODED_END);
    if printable && !padded && !looks_encoded {
        return Cow::Borrowed(value);
    }
    Cow::Owned(format!("{ENCODED_START}{}{ENCODED_END}", STANDARD.encode(value)))
}
