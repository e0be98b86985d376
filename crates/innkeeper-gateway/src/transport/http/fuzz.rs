//! Fuzz target for requests of clients: the checks of the head, and of the head against the body.
//!
//! The first line of the input is the URI. The following lines are headers. The body follows an empty
//! line.

#![expect(clippy::expect_used, reason = "a fuzz target reports a defect with a panic")]

use std::net::{IpAddr, Ipv4Addr};

use http::HeaderMap;
use innkeeper_protocol::http::{METHOD, NAME, decode_value, name_member};
use innkeeper_protocol::{Incoming, Message, skim};
use serde_json::value::RawValue;

use super::{Accepted, PROTOCOL_VERSION, check_content, incoming, modern, parse};
use crate::error::RpcError;
use crate::offering::{ItemList, ListItem};
use crate::origin::{OriginCheck, OriginSettings};

/// Maximum length of an error message in bytes: an error repeats only the start of what it rejects.
const MAX_MESSAGE_BYTES: usize = 4_096;

/// Checks the input as a request to a gateway on a loopback address.
///
/// # Panics
///
/// Panics if the gateway accepts the host or the origin of another machine, or headers that do not
/// match the body, or if an error is longer than [`MAX_MESSAGE_BYTES`].
pub fn gateway_request(input: &[u8]) {
    let Some((parts, body)) = read(input) else { return };
    let check = OriginCheck::new(Ipv4Addr::LOCALHOST.into(), OriginSettings::default());
    if check.check(&parts).is_ok() {
        assert_own_host(&parts);
    }
    Accepted::from_headers(&parts.headers);
    check_content(&parts.headers).ok();
    match parse(body) {
        Ok(Message::Single(Incoming::Request { method, params, .. })) => {
            check_request(&parts.headers, &method, params);
        }
        Ok(Message::Single(_)) | Err(_) => {}
        Ok(Message::Batch(messages)) => {
            for malformed in messages.iter().filter_map(|message| message.as_ref().err()) {
                assert_short(&incoming::malformed_error(malformed));
            }
        }
    }
}

/// Returns the head and the body of the request; `None` if the input is no request.
fn read(input: &[u8]) -> Option<(http::request::Parts, &[u8])> {
    let end = input.windows(2).position(|pair| pair == b"\n\n")?;
    let mut lines = input[..end].split(|byte| *byte == b'\n');
    let mut request = http::Request::builder().uri(lines.next().unwrap_or_default());
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':')?;
        request = request.header(&line[..colon], line[colon + 1..].trim_ascii());
    }
    let parts = request.body(()).ok()?.into_parts().0;
    Some((parts, &input[end + 2..]))
}

/// Asserts that the host, and the origin if there is one, are this machine.
fn assert_own_host(parts: &http::request::Parts) {
    let text = |name: &str| parts.headers.get(name).map(|value| value.to_str().expect("text"));
    let authority = parts.uri.authority().map(http::uri::Authority::as_str);
    let origin = text("origin").map(|origin| {
        let (scheme, host) = origin.split_once("://").expect("an origin with a scheme");
        assert!(matches!(scheme, "http" | "https"), "{origin}");
        host
    });
    for host in [text("host"), authority, origin].into_iter().flatten() {
        let url = host.parse::<http::uri::Authority>().expect("a host");
        let name = url.host().trim_matches(['[', ']']);
        let is_own = name.eq_ignore_ascii_case("localhost")
            || name.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback());
        assert!(is_own && !host.contains('@'), "{host}");
    }
}

fn check_request(headers: &HeaderMap, method: &str, params: Option<&RawValue>) {
    let only = |name: &str| {
        let mut values = headers.get_all(name).iter();
        let value = values.next().map(http::HeaderValue::as_bytes);
        assert!(values.next().is_none(), "`{name}` is there twice");
        value
    };
    match modern::check_head(headers, method, params) {
        Ok(identity) => {
            assert_eq!(only(METHOD), Some(method.as_bytes()));
            assert_eq!(only(PROTOCOL_VERSION), Some(identity.revision.as_str().as_bytes()));
            assert_eq!(
                incoming::modern_version(params).as_deref(),
                Some(identity.revision.as_str())
            );
            if let Some(key) = name_member(method) {
                let name = params.and_then(|params| skim::member(params.get(), key));
                let name = name.and_then(skim::decode_string).expect("the name of an item");
                let header = only(NAME).map(|value| decode_value(value).expect("a value"));
                assert_eq!(header, Some(name));
            }
        }
        Err(error) => assert_short(&error),
    }
    let cursor = params.and_then(|params| skim::member(params.get(), "cursor"));
    if let Some(cursor) = cursor.and_then(skim::decode_string) {
        let item = |name: &str| ListItem { name: name.into(), text: name.to_owned() };
        let page = ItemList::new(vec![item("a"), item("b")]);
        // The only page of the list has no cursor.
        assert!(page.page(Some(&cursor)).is_err() || cursor_starts_within(&cursor));
    }
}

/// Returns whether a cursor has a position of its own, for example a guessed one.
fn cursor_starts_within(cursor: &str) -> bool {
    innkeeper_protocol::PageCursor::decode(cursor).is_ok_and(|cursor| cursor.offset < 2)
}

fn assert_short(error: &RpcError) {
    assert!(!error.message.is_empty() && error.message.len() <= MAX_MESSAGE_BYTES);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_has_a_uri_headers_and_a_body() {
        let (parts, body) = read(b"/mcp\nHost: a:1\nX-Empty:\n\n{}\n\n").unwrap();
        assert_eq!(parts.uri, "/mcp");
        assert_eq!(parts.headers["host"], "a:1");
        assert_eq!(parts.headers["x-empty"], "");
        assert_eq!(body, b"{}\n\n");
        assert!(read(b"/mcp\nHost: a\n").is_none() && read(b"/mcp\nHost\n\n").is_none());
    }

    #[test]
    fn every_request_of_the_corpus_passes_the_checks() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/gateway_request");
        let inputs: Vec<_> = std::fs::read_dir(directory).unwrap().flatten().collect();
        assert!(!inputs.is_empty());
        for input in inputs {
            println!("{}", input.path().display());
            gateway_request(&std::fs::read(input.path()).unwrap());
        }
    }
}
