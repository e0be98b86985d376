//! Line → message: one pass over a well-formed line, a search for the id in any other.

mod depth;
mod members;

use serde_json::error::Category;
use serde_json::value::RawValue;

use super::{ErrorObject, Incoming, Malformed, MalformedKind, Message};
use crate::id::RequestId;
use crate::method::NOTIFICATION_PREFIX;
use crate::{skim, text};
use members::Members;

pub use depth::DEPTH_LIMIT;

/// The most messages taken out of one batch. Clients and servers batch a handful of requests; a
/// line of 16 MiB could hold millions.
pub const BATCH_LIMIT: usize = 1024;

/// Makes a message of one line.
///
/// What is in a message is left as it came; only the envelope is read. Members that JSON-RPC does
/// not know are ignored.
///
/// # Errors
///
/// If the line is no message. Where an id can still be read, the error has it, so that the call
/// that waits for this answer can fail at once.
pub fn parse(line: &[u8]) -> Result<Message<'_>, Malformed> {
    let Ok(json) = std::str::from_utf8(line) else {
        return Err(Malformed::skimmed(MalformedKind::NotUtf8, line, ""));
    };
    match serde_json::from_str::<Members<'_>>(json) {
        Ok(members) if depth::within_limit(json) => incoming(&members).map(Message::One),
        Err(error) if error.classify() == Category::Data => other_than_object(json, &error),
        Ok(_) => Err(Malformed::skimmed(MalformedKind::TooDeep, line, "")),
        Err(error) => Err(not_json(json, &error)),
    }
}

/// The error of a response that names no request, such as an HTTP server's refusal.
pub fn error_without_id(body: &[u8]) -> Option<ErrorObject> {
    let members: Members<'_> = serde_json::from_slice(body).ok()?;
    let nameless = members.id.is_none_or(|id| id.get() == "null");
    if nameless { members.error().and_then(error_object) } else { None }
}

fn not_json(json: &str, error: &serde_json::Error) -> Malformed {
    let line = json.as_bytes();
    if matches!(json.trim_end(), "{" | "[") {
        return Malformed::nameless(MalformedKind::MultiLineJson, "");
    }
    if !depth::within_limit(json) {
        return Malformed::skimmed(MalformedKind::TooDeep, line, "");
    }
    Malformed::skimmed(MalformedKind::NotJson, line, &error.to_string())
}

/// The line is no object: valid up to where that was seen, not necessarily to its end.
fn other_than_object<'a>(
    json: &'a str,
    error: &serde_json::Error,
) -> Result<Message<'a>, Malformed> {
    let array: &RawValue = serde_json::from_str(json).map_err(|error| not_json(json, &error))?;
    if !array.get().starts_with('[') {
        return Err(Malformed::nameless(MalformedKind::NotAnObject, &error.to_string()));
    }
    if !depth::within_limit(json) {
        return Err(Malformed::nameless(MalformedKind::TooDeep, ""));
    }
    let mut items = skim::elements(array.get());
    let mut batch: Vec<_> = items.by_ref().take(BATCH_LIMIT).map(item).collect();
    if batch.is_empty() {
        return Err(Malformed::nameless(MalformedKind::EmptyBatch, ""));
    }
    let left_out = items.count();
    if left_out > 0 {
        let detail = format!("{left_out} messages left out");
        batch.push(Err(Malformed::nameless(MalformedKind::BatchTooLarge, &detail)));
    }
    Ok(Message::Batch(batch))
}

fn item(json: &str) -> Result<Incoming<'_>, Malformed> {
    match serde_json::from_str::<Members<'_>>(json) {
        Ok(members) => incoming(&members),
        Err(error) if error.classify() == Category::Data => {
            Err(Malformed::nameless(MalformedKind::NotAnObject, &error.to_string()))
        }
        Err(error) => Err(not_json(json, &error)),
    }
}

fn incoming<'a>(members: &Members<'a>) -> Result<Incoming<'a>, Malformed> {
    if let Some(key) = members.duplicate {
        return Err(members.malformed(MalformedKind::DuplicateKey, key));
    }
    match members.jsonrpc.map(RawValue::get) {
        Some("\"2.0\"") => {}
        Some(version) if text::decode(version).as_deref() == Some("2.0") => {}
        Some(version) => return Err(members.malformed(MalformedKind::WrongVersion, version)),
        None => return Err(members.malformed(MalformedKind::MissingVersion, "")),
    }
    match members.method {
        Some(method) => called(members, method),
        None => answered(members),
    }
}

fn called<'a>(members: &Members<'a>, method: &'a RawValue) -> Result<Incoming<'a>, Malformed> {
    if members.result.is_some() || members.error().is_some() {
        return Err(members.malformed(MalformedKind::BothRequestAndResponse, ""));
    }
    let Some(method) = text::decode(method.get()) else {
        return Err(members.malformed(MalformedKind::MissingMethod, method.get()));
    };
    let params = members.params.filter(|params| params.get() != "null");
    match members.id.map(RawValue::get) {
        None => Ok(Incoming::Notification { method, params }),
        // Some servers write the id they do not have.
        Some("null") if method.starts_with(NOTIFICATION_PREFIX) => {
            Ok(Incoming::Notification { method, params })
        }
        Some(id) => match RequestId::from_raw(id) {
            Some(id) => Ok(Incoming::Request { id, method, params }),
            None => Err(members.malformed(MalformedKind::BadId, id)),
        },
    }
}

fn answered<'a>(members: &Members<'a>) -> Result<Incoming<'a>, Malformed> {
    let outcome = match (members.result, members.error()) {
        (Some(result), None) => Ok(result),
        (None, Some(error)) => match error_object(error) {
            Some(error) => Err(error),
            None => return Err(members.malformed(MalformedKind::BadError, error.get())),
        },
        (Some(_), Some(_)) => return Err(members.malformed(MalformedKind::BothResultAndError, "")),
        (None, None) if members.id.is_none() => {
            return Err(members.malformed(MalformedKind::MissingMethod, ""));
        }
        (None, None) => return Err(members.malformed(MalformedKind::NeitherResultNorError, "")),
    };
    match members.id.map(RawValue::get).and_then(RequestId::from_raw) {
        Some(id) => Ok(Incoming::Response { id, outcome }),
        None => {
            let said =
                outcome.err().map(|error| format!("error {}: {}", error.code, error.message));
            Err(members.malformed(MalformedKind::BadId, said.as_deref().unwrap_or("")))
        }
    }
}

impl ErrorObject {
    /// Reads an error object that stands somewhere else than in a response; `None` if it is none.
    pub fn read(raw: &RawValue) -> Option<Self> {
        error_object(raw)
    }
}

fn error_object(error: &RawValue) -> Option<ErrorObject> {
    let (mut code, mut message, mut data) = (None, None, None);
    for (key, value) in skim::members(error.get()) {
        match key {
            "code" => code = RequestId::from_raw(value),
            "message" => message = text::decode(value),
            "data" if value != "null" => data = RawValue::from_string(value.to_owned()).ok(),
            _ => {}
        }
    }
    let Some(RequestId::Integer(code)) = code else { return None };
    Some(ErrorObject { code, message: message?.into_owned(), data })
}
