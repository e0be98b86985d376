//! The MCP headers of the HTTP transports.

mod param_headers;
mod schema;
mod validation;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::method;

pub use param_headers::{MAX_PARAM_HEADERS, MAX_PARAM_NAME_BYTES, ParamHeaderError, ParamHeaders};
pub use validation::{
    HeaderMismatch, UnsupportedVersionHeader, check_request_headers, legacy_revision,
};

/// The protocol revision of the request; since 2025-06-18.
pub const PROTOCOL_VERSION: &str = "MCP-Protocol-Version";
/// The id of a session that a legacy server created.
pub const SESSION_ID: &str = "Mcp-Session-Id";
/// The method of a modern request.
pub const METHOD: &str = "Mcp-Method";
/// The target of a modern request, such as a tool name; see [`name_member`].
pub const NAME: &str = "Mcp-Name";
/// The id of the last received event, at which a stream resumes.
pub const LAST_EVENT_ID: &str = "Last-Event-ID";
/// Prefix of the headers that repeat arguments of a modern call; see [`ParamHeaders`].
pub const PARAM_PREFIX: &str = "Mcp-Param-";

/// Prefix of a base64-encoded value.
const ENCODED_START: &str = "=?base64?";
const ENCODED_END: &str = "?=";

/// Returns the member of a modern request's `params` that [`NAME`] repeats, or `None` if the method
/// has no such header.
pub fn name_member(method: &str) -> Option<&'static str> {
    match method {
        method::TOOLS_CALL | method::PROMPTS_GET => Some("name"),
        method::RESOURCES_READ => Some("uri"),
        method::TASKS_GET | method::TASKS_UPDATE | method::TASKS_CANCEL => Some("taskId"),
        _ => None,
    }
}

/// Encodes `value` for [`NAME`] and for the headers with [`PARAM_PREFIX`] (2026-07-28, Streamable
/// HTTP, Value Encoding).
///
/// Printable ASCII without surrounding spaces remains unchanged. Every other value is sent as the
/// base64 encoding of its UTF-8 bytes between `=?base64?` and `?=`. This includes values that
/// already look encoded.
pub fn encode_value(value: &str) -> Cow<'_, str> {
    let printable = value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let padded = value.starts_with(' ') || value.ends_with(' ');
    let looks_encoded = value.starts_with(ENCODED_START) && value.ends_with(ENCODED_END);
    if printable && !padded && !looks_encoded {
        return Cow::Borrowed(value);
    }
    Cow::Owned(format!("{ENCODED_START}{}{ENCODED_END}", STANDARD.encode(value)))
}

/// The error for a header value that [`decode_value`] cannot decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderValueError {
    /// The value contains a byte that is neither printable ASCII nor a tab, or starts or ends with
    /// white space.
    #[error("the value contains an invalid character, or white space at its start or end")]
    InvalidCharacter,
    /// The text between `=?base64?` and `?=` is not canonical base64.
    #[error("the value is not valid base64")]
    InvalidBase64,
    /// The decoded bytes are not UTF-8.
    #[error("the decoded value is not UTF-8")]
    NotUtf8,
}

/// Decodes a header value that [`encode_value`] encoded (2026-07-28, Streamable HTTP, Value
/// Encoding). `value` is a field value without surrounding white space (RFC 9110, section 5.5).
///
/// The markers are case-sensitive. A value that needs no encoding may be encoded.
///
/// # Errors
///
/// Returns an error if the value contains characters that require encoding, or if the encoding is
/// invalid.
pub fn decode_value(value: &[u8]) -> Result<Cow<'_, str>, HeaderValueError> {
    let is_padded = matches!(value, [b' ' | b'\t', ..] | [.., b' ' | b'\t']);
    if is_padded || !value.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t')) {
        return Err(HeaderValueError::InvalidCharacter);
    }
    let text = std::str::from_utf8(value).map_err(|_| HeaderValueError::InvalidCharacter)?;
    let encoded = text.strip_prefix(ENCODED_START).and_then(|rest| rest.strip_suffix(ENCODED_END));
    let Some(encoded) = encoded else { return Ok(Cow::Borrowed(text)) };
    let bytes = STANDARD.decode(encoded).map_err(|_| HeaderValueError::InvalidBase64)?;
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| HeaderValueError::NotUtf8)
}
