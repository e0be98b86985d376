//! Fuzz target: reads one line as a request of a client, as a server does. Forwarded parts are parts
//! of the request, and a changed member changes nothing else.

use innkeeper_protocol::handshake::InitializeParams;
use innkeeper_protocol::http::{
    METHOD, NAME, PROTOCOL_VERSION, check_request_headers, encode_value, name_member,
};
use innkeeper_protocol::request_meta::{CONNECTION_META_KEYS, IncomingMeta, META_PROGRESS_TOKEN};
use innkeeper_protocol::skim::{
    decode_key, decode_string, has_duplicate_key, member, members, remove_member, replace_member,
};
use innkeeper_protocol::{Incoming, Message, PageCursor, PageCursorError, RequestParams, envelope};
use serde_json::value::RawValue;

/// Reads the input as one line.
pub fn client_request(line: &[u8]) {
    let Ok(Message::Single(Incoming::Request { method, params, .. })) = envelope::parse(line)
    else {
        return;
    };
    let read = RequestParams::from_raw(params);
    if let Some(meta) = read.ok().and_then(|params| IncomingMeta::from_params(&params).ok()) {
        let raw = params.map_or("{}", RawValue::get);
        assert!(!has_duplicate_key(member(raw, "_meta").unwrap_or("{}")));
        check_forwarded(&meta, raw);
        if let Ok(required) = meta.required() {
            check_headers(&method, params, required.protocol_version);
        }
    }
    assert_ne!(PageCursor::from_params(params), Err(PageCursorError::Outdated));
    let Some(params) = params else { return };
    if let Ok(initialize) = InitializeParams::from_raw(params) {
        assert_eq!(member(params.get(), "capabilities"), Some(initialize.capabilities));
        assert_eq!(member(params.get(), "clientInfo"), Some(initialize.client_info));
    }
    for key in ["name", "_meta", "cursor", "absent \""] {
        check_edits(params.get(), key);
    }
}

fn check_forwarded(meta: &IncomingMeta<'_>, params: &str) {
    let raw = member(params, "_meta").unwrap_or("{}");
    if let Some(token) = meta.progress_token {
        assert_eq!(member(raw, META_PROGRESS_TOKEN), Some(token));
    }
    let expected = members(raw)
        .filter(|(key, _)| !CONNECTION_META_KEYS.contains(&decode_key(key).as_ref()))
        .collect::<Vec<_>>();
    let forwarded = meta.forwarded_without(|_| false);
    assert_eq!(forwarded.is_none(), expected.is_empty());
    let forwarded = forwarded.unwrap_or_else(|| "{}".to_owned());
    assert_eq!(members(&forwarded).collect::<Vec<_>>(), expected);
    assert_valid(&forwarded);
}

/// The headers that a client derives from the body pass the check.
fn check_headers(method: &str, params: Option<&RawValue>, version: &str) {
    let raw = params.map_or("{}", RawValue::get);
    let name = name_member(method).and_then(|key| member(raw, key));
    // A lone surrogate has no UTF-8 form.
    let name =
        name.filter(|raw| serde_json::from_str::<String>(raw).is_ok()).and_then(decode_string);
    let name = name.as_deref().map(encode_value);
    let needs_name = name_member(method).is_some();
    let result = check_request_headers(method, params, version, |header| match header {
        PROTOCOL_VERSION => Some(version.as_bytes()),
        METHOD => Some(method.as_bytes()),
        NAME => name.as_deref().map(str::as_bytes),
        _ => None,
    });
    assert_eq!(result.is_ok(), !needs_name || name.is_some(), "{result:?}");
    let missing = check_request_headers(method, params, version, |_| None);
    assert!(missing.is_err_and(|error| error.to_string().len() < 2000));
}

fn check_edits(object: &str, key: &str) {
    let others =
        |object| members(object).filter(|(name, _)| decode_key(name) != key).collect::<Vec<_>>();
    let replaced = replace_member(object, key, "[0]");
    let removed = remove_member(object, key);
    for changed in [&replaced, &removed] {
        assert_eq!(others(changed), others(object));
        assert_valid(changed);
    }
    if object.starts_with('{') {
        assert_eq!(member(&replaced, key), Some("[0]"));
    }
    assert_eq!(member(&removed, key), None);
}

fn assert_valid(json: &str) {
    assert!(serde_json::from_str::<&RawValue>(json).is_ok(), "{json}");
}
