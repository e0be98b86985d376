//! The headers of Streamable HTTP and their comparison with the message.

use std::borrow::Cow;

use hyper::HeaderMap;
use serde_json::Value;

/// The protocol version without a handshake.
pub(super) const MODERN_REVISION: &str = "2026-07-28";

/// The protocol versions whose clients send a version header after the handshake.
pub(super) const LEGACY_REVISIONS: [&str; 4] =
    ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The `_meta` key of a modern message's protocol version.
pub(super) const VERSION_META_KEY: &str = "io.modelcontextprotocol/protocolVersion";

pub(super) const SESSION_ID_HEADER: &str = "mcp-session-id";
pub(super) const PROTOCOL_VERSION_HEADER: &str = "mcp-protocol-version";
pub(super) const LAST_EVENT_ID_HEADER: &str = "last-event-id";

/// Prefix and suffix of an encoded value.
const BASE64_PREFIX: (&str, &str) = ("=?base64?", "?=");

pub(super) fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Whether `Accept` contains this type or `*/*`.
pub(super) fn accepts(headers: &HeaderMap, content_type: &str) -> bool {
    let all = headers.get_all("accept").iter().filter_map(|value| value.to_str().ok());
    let mut types = all
        .flat_map(|value| value.split(','))
        .map(|part| part.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    types.any(|name| name == content_type || name == "*/*")
}

/// Returns the protocol version in the `_meta` of a message.
pub(super) fn revision(message: &Value) -> Option<&str> {
    message.get("params")?.get("_meta")?.get(VERSION_META_KEY)?.as_str()
}

/// Returns the first mismatch between the headers of a modern message and the message.
pub(super) fn find_header_mismatch(headers: &HeaderMap, message: &Value) -> Option<String> {
    let method = message["method"].as_str();
    let name = match method {
        Some("tools/call" | "prompts/get") => message["params"]["name"].as_str(),
        Some("resources/read") => message["params"]["uri"].as_str(),
        _ => None,
    };
    let expected =
        [(PROTOCOL_VERSION_HEADER, revision(message)), ("mcp-method", method), ("mcp-name", name)];
    expected.into_iter().find_map(|(header, body)| {
        let body = body?;
        let Some(header_value) = header_text(headers, header) else {
            return Some(format!("`{header}` is missing"));
        };
        let agreed = decode_value(header_value).is_some_and(|decoded| decoded == body);
        (!agreed).then(|| format!("`{header}` is `{header_value}`, the message has `{body}`"))
    })
}

/// Decodes a header value; none if the encoding is invalid.
fn decode_value(value: &str) -> Option<Cow<'_, str>> {
    let inner =
        value.strip_prefix(BASE64_PREFIX.0).and_then(|rest| rest.strip_suffix(BASE64_PREFIX.1));
    match inner {
        None => Some(Cow::Borrowed(value)),
        Some(inner) => Some(Cow::Owned(String::from_utf8(decode_base64(inner)?).ok()?)),
    }
}

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let mut bits = 0_u32;
    let mut count = 0;
    let mut out = Vec::new();
    for byte in text.trim_end_matches('=').bytes() {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    Some(out)
}
