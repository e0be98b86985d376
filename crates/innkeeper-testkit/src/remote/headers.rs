//! The headers of Streamable HTTP, read and compared with the message they travel with.

use std::borrow::Cow;

use hyper::HeaderMap;
use serde_json::Value;

/// The revision without a handshake.
pub(super) const MODERN: &str = "2026-07-28";

/// The revisions whose clients name them in a header once initialized.
pub(super) const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// Key of `_meta` that names the revision of a modern message.
pub(super) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

pub(super) const SESSION: &str = "mcp-session-id";
pub(super) const VERSION: &str = "mcp-protocol-version";
pub(super) const LAST_EVENT: &str = "last-event-id";

/// Before and after a value that could not be sent as it is.
const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// A header's text, where it has one.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Whether `Accept` names this type, or all of them.
pub(super) fn accepts(headers: &HeaderMap, wanted: &str) -> bool {
    let all = headers.get_all("accept").iter().filter_map(|value| value.to_str().ok());
    let mut types = all
        .flat_map(|value| value.split(','))
        .map(|part| part.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    types.any(|one| one == wanted || one == "*/*")
}

/// The revision a message names in its `_meta`.
pub(super) fn revision(message: &Value) -> Option<&str> {
    message.get("params")?.get("_meta")?.get(VERSION_KEY)?.as_str()
}

/// What the headers of a modern message fail to say, or say otherwise than the message.
pub(super) fn disagreement(headers: &HeaderMap, message: &Value) -> Option<String> {
    let method = message["method"].as_str();
    let name = match method {
        Some("tools/call" | "prompts/get") => message["params"]["name"].as_str(),
        Some("resources/read") => message["params"]["uri"].as_str(),
        _ => None,
    };
    let wanted = [(VERSION, revision(message)), ("mcp-method", method), ("mcp-name", name)];
    wanted.into_iter().find_map(|(header, body)| {
        let body = body?;
        let Some(said) = text(headers, header) else {
            return Some(format!("`{header}` is missing"));
        };
        let agreed = decoded(said).is_some_and(|said| said == body);
        (!agreed).then(|| format!("`{header}` is `{said}`, the message has `{body}`"))
    })
}

/// The value a header stands for; none where it is badly encoded.
fn decoded(value: &str) -> Option<Cow<'_, str>> {
    let inner = value.strip_prefix(ENCODED.0).and_then(|rest| rest.strip_suffix(ENCODED.1));
    match inner {
        None => Some(Cow::Borrowed(value)),
        Some(inner) => Some(Cow::Owned(String::from_utf8(base64(inner)?).ok()?)),
    }
}

fn base64(text: &str) -> Option<Vec<u8>> {
    let (mut bits, mut count, mut out) = (0_u32, 0, Vec::new());
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
