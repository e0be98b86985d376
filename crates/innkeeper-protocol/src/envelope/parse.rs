//! Parser for one line, with recovery of the id from malformed lines.

mod members;

use serde_json::value::RawValue;

use super::{ErrorObject, Incoming, MalformedKind, MalformedMessage, Message};
use crate::id::RequestId;
use crate::method::NOTIFICATION_PREFIX;
use crate::raw_text::from_checked;
use crate::skim::depth_within;
use crate::view::json_type_name;
use crate::{skim, text};
use members::EnvelopeMembers;

/// Maximum number of nested objects and arrays in one line, including the outermost. serde_json
/// accepts the same depth when it builds a tree, so every accepted message can be parsed further.
pub const MAX_MESSAGE_DEPTH: usize = 127;

/// Maximum number of messages parsed from one batch. Clients and servers batch a handful of
/// requests, but a line of 16 MiB could contain millions.
pub const MAX_BATCH_MESSAGES: usize = 1024;

/// Parses one line into a message.
///
/// The function reads the envelope only; the contents remain raw JSON. Members that JSON-RPC does
/// not define are ignored.
///
/// # Errors
///
/// Returns an error if the line is not a valid message. The error contains the id where the id is
/// readable, so that the call that waits for this response can fail at once.
pub fn parse(line: &[u8]) -> Result<Message<'_>, MalformedMessage> {
    let Ok(json) = std::str::from_utf8(line) else {
        return Err(MalformedMessage::with_recovered_id(MalformedKind::NotUtf8, line, ""));
    };
    match EnvelopeMembers::read(json) {
        Some(members) => parse_envelope(&members).map(Message::Single),
        None => parse_other(json),
    }
}

/// Returns the error of a response that has no request id, such as the response of an HTTP server
/// that rejects a request.
pub fn error_without_id(body: &[u8]) -> Option<ErrorObject> {
    let members = EnvelopeMembers::read(std::str::from_utf8(body).ok()?)?;
    let nameless = members.id.is_none_or(|id| id.get() == "null");
    if nameless { members.error().and_then(parse_error_object) } else { None }
}

/// Parses a line that is not an object within the limits.
fn parse_other(json: &str) -> Result<Message<'_>, MalformedMessage> {
    let value: &RawValue = serde_json::from_str(json).map_err(|error| not_json(json, &error))?;
    let value = value.get();
    if !depth_within(value.as_bytes(), MAX_MESSAGE_DEPTH) {
        return Err(MalformedMessage::with_recovered_id(
            MalformedKind::TooDeep,
            value.as_bytes(),
            "",
        ));
    }
    if value.starts_with('[') { parse_batch(value) } else { Err(not_an_object(value)) }
}

fn not_json(json: &str, error: &serde_json::Error) -> MalformedMessage {
    let line = json.as_bytes();
    if matches!(json.trim_end(), "{" | "[") {
        return MalformedMessage::without_id(MalformedKind::MultiLineJson, "");
    }
    if !depth_within(line, MAX_MESSAGE_DEPTH) {
        return MalformedMessage::with_recovered_id(MalformedKind::TooDeep, line, "");
    }
    MalformedMessage::with_recovered_id(MalformedKind::NotJson, line, &error.to_string())
}

fn not_an_object(value: &str) -> MalformedMessage {
    MalformedMessage::without_id(MalformedKind::NotAnObject, json_type_name(value.bytes().next()))
}

fn parse_batch(array: &str) -> Result<Message<'_>, MalformedMessage> {
    let mut items = skim::elements(array);
    let mut batch: Vec<_> = items.by_ref().take(MAX_BATCH_MESSAGES).map(parse_batch_item).collect();
    if batch.is_empty() {
        return Err(MalformedMessage::without_id(MalformedKind::EmptyBatch, ""));
    }
    let left_out = items.count();
    if left_out > 0 {
        let detail = format!("{left_out} messages omitted");
        batch.push(Err(MalformedMessage::without_id(MalformedKind::BatchTooLarge, &detail)));
    }
    Ok(Message::Batch(batch))
}

fn parse_batch_item(json: &str) -> Result<Incoming<'_>, MalformedMessage> {
    match EnvelopeMembers::read(json) {
        Some(members) => parse_envelope(&members),
        None => Err(not_an_object(json)),
    }
}

fn parse_envelope<'a>(members: &EnvelopeMembers<'a>) -> Result<Incoming<'a>, MalformedMessage> {
    if let Some(key) = members.duplicate_key {
        return Err(members.to_malformed(MalformedKind::DuplicateKey, key));
    }
    match members.jsonrpc.map(RawValue::get) {
        Some("\"2.0\"") => {}
        Some(version) if text::decode_string(version).as_deref() == Some("2.0") => {}
        Some(version) => return Err(members.to_malformed(MalformedKind::WrongVersion, version)),
        None => return Err(members.to_malformed(MalformedKind::MissingVersion, "")),
    }
    match members.method {
        Some(method) => parse_request(members, method),
        None => parse_response(members),
    }
}

fn parse_request<'a>(
    members: &EnvelopeMembers<'a>,
    method: &'a RawValue,
) -> Result<Incoming<'a>, MalformedMessage> {
    if members.result.is_some() || members.error().is_some() {
        return Err(members.to_malformed(MalformedKind::BothRequestAndResponse, ""));
    }
    let Some(method) = text::decode_string(method.get()) else {
        return Err(members.to_malformed(MalformedKind::MissingMethod, method.get()));
    };
    let params = members.params.filter(|params| params.get() != "null");
    match members.id.map(RawValue::get) {
        None => Ok(Incoming::Notification { method, params }),
        // Some servers write `"id": null` in notifications.
        Some("null") if method.starts_with(NOTIFICATION_PREFIX) => {
            Ok(Incoming::Notification { method, params })
        }
        Some(id) => match RequestId::from_raw(id) {
            Some(id) => Ok(Incoming::Request { id, method, params }),
            None => Err(members.to_malformed(MalformedKind::BadId, id)),
        },
    }
}

fn parse_response<'a>(members: &EnvelopeMembers<'a>) -> Result<Incoming<'a>, MalformedMessage> {
    let outcome = match (members.result, members.error()) {
        (Some(result), None) => Ok(result),
        (None, Some(error)) => match parse_error_object(error) {
            Some(error) => Err(error),
            None => return Err(members.to_malformed(MalformedKind::BadError, error.get())),
        },
        (Some(_), Some(_)) => {
            return Err(members.to_malformed(MalformedKind::BothResultAndError, ""));
        }
        (None, None) if members.id.is_none() => {
            return Err(members.to_malformed(MalformedKind::MissingMethod, ""));
        }
        (None, None) => return Err(members.to_malformed(MalformedKind::NeitherResultNorError, "")),
    };
    match members.id.map(RawValue::get).and_then(RequestId::from_raw) {
        Some(id) => Ok(Incoming::Response { id, outcome }),
        None => {
            let error_text =
                outcome.err().map(|error| format!("error {}: {}", error.code, error.message));
            Err(members.to_malformed(MalformedKind::BadId, error_text.as_deref().unwrap_or("")))
        }
    }
}

impl ErrorObject {
    /// Reads an error object outside of a response. Returns `None` if `raw` is not an error object.
    pub fn from_raw(raw: &RawValue) -> Option<Self> {
        parse_error_object(raw)
    }
}

fn parse_error_object(error: &RawValue) -> Option<ErrorObject> {
    let (mut code, mut message, mut data) = (None, None, None);
    for (key, value) in skim::members(error.get()) {
        if text::key_is(key, "code") {
            code = RequestId::from_raw(value);
        } else if text::key_is(key, "message") {
            message = text::decode_string(value);
        } else if text::key_is(key, "data") && value != "null" {
            data = from_checked(value).map(ToOwned::to_owned);
        }
    }
    let Some(RequestId::Integer(code)) = code else { return None };
    Some(ErrorObject { code, message: message?.into_owned(), data })
}
