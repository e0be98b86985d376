//! What went wrong, in Ollama's words.

use crate::provider::Class;
use crate::provider::codec::{Fault, Fields, class_of, plain};

/// How Ollama says that it could not read a call.
const UNREAD_CALL: &str = "error parsing tool call";

/// Where the text that it could not read begins and ends in that.
const RAW: &str = "raw='";
const RAW_END: &str = "', err=";

/// Reads the body of an answer with another status than 200.
pub(super) fn read(status: u16, body: &[u8]) -> Fault {
    let text = String::from_utf8_lossy(body);
    let told = Fields::parse(&text).and_then(|body| told(Some(status), &body));
    told.unwrap_or_else(|| Fault::new(class_of(status), plain(&text)))
}

/// Reads an error, in a stream without a status; `None` if it is none.
pub(super) fn told(status: Option<u16>, body: &Fields<'_>) -> Option<Fault> {
    // Some versions have it as the name of the member.
    if let Some(why) = body.text(UNREAD_CALL) {
        return Some(Fault::new(Class::Malformed, format!("{UNREAD_CALL}: {why}")));
    }
    body.get("error")?;
    let inner = body.object("error").and_then(|error| error.text("message"));
    let message = body.text("error").or(inner).unwrap_or_default();
    let status =
        status.or_else(|| body.number("status_code").and_then(|status| u16::try_from(status).ok()));
    let class = by_message(&message)
        .or_else(|| status.map(class_of))
        .unwrap_or(Class::Later { after: None });
    let written = unread(&message);
    Some(Fault { written, ..Fault::new(class, plain(&message)) })
}

/// What the model wrote, out of the message that it cannot be read.
fn unread(message: &str) -> Option<String> {
    let (_, behind) = message.split_once(UNREAD_CALL)?;
    let (_, raw) = behind.split_once(RAW)?;
    let end = raw.rfind(RAW_END);
    let raw = end.map_or_else(|| raw.strip_suffix('\'').unwrap_or(raw), |end| &raw[..end]);
    Some(raw.to_owned())
}

fn by_message(message: &str) -> Option<Class> {
    let message = message.to_ascii_lowercase();
    let has = |words: &str| message.contains(words);
    if has(UNREAD_CALL) || (has("xml syntax error") && has("element")) {
        Some(Class::Malformed)
    } else if has("does not support tools") {
        Some(Class::NoTools)
    } else if has("model") && has("not found") {
        Some(Class::NotFound)
    } else if has("context length") || has("context window") || has("context size") {
        Some(Class::TooLong)
    } else if has("more system memory") {
        // It does not become smaller by waiting.
        Some(Class::Request)
    } else {
        None
    }
}
