//! Properties of the requests that a server reads.

use innkeeper_protocol::request_meta::{
    IncomingMeta, META_CLIENT_CAPABILITIES, META_CLIENT_INFO, META_LOG_LEVEL, META_PROGRESS_TOKEN,
    META_PROTOCOL_VERSION,
};
use innkeeper_protocol::skim::{member, members};
use innkeeper_protocol::{PageCursor, RequestParams};
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::json::{text, tree, written};

proptest! {
    #[test]
    fn the_members_that_do_not_belong_to_the_connection_are_forwarded_byte_for_byte(
        others in prop::collection::vec((text(), tree()), 0..4),
        token in prop_oneof![any::<i64>().prop_map(Value::from), text().prop_map(Value::from)],
        version in text(),
        capabilities in prop::collection::vec((text(), tree()), 0..3),
        first: bool,
        pretty: bool,
    ) {
        let others = Map::from_iter(others);
        let own = json!({
            META_PROTOCOL_VERSION: version,
            META_PROGRESS_TOKEN: token,
            META_CLIENT_CAPABILITIES: Map::from_iter(capabilities),
            META_CLIENT_INFO: {},
            META_LOG_LEVEL: "info",
        });
        let Value::Object(own) = own else { panic!("an object") };
        let (before, after) = if first { (own.clone(), &others) } else { (others.clone(), &own) };
        let meta: Map<_, _> = before.into_iter().chain(after.clone()).collect();
        let params = written(&json!({"name": "t", "_meta": meta}), pretty);
        let params = RawValue::from_string(params).unwrap();
        let read = RequestParams::from_raw(Some(&params)).unwrap();
        let read = IncomingMeta::from_params(&read).unwrap();

        let raw = member(params.get(), "_meta").unwrap();
        prop_assert_eq!(read.progress_token, member(raw, META_PROGRESS_TOKEN));
        let required = read.required().unwrap();
        prop_assert_eq!(required.protocol_version, &version);
        prop_assert_eq!(Some(required.client_capabilities), member(raw, META_CLIENT_CAPABILITIES));
        let forwarded = read.forwarded_without(|_| false);
        prop_assert_eq!(forwarded.is_none(), others.is_empty());
        let is_other = |(key, _): &(&str, &str)| !own.contains_key(*key);
        let expected = members(raw).filter(is_other).collect::<Vec<_>>();
        let forwarded = forwarded.unwrap_or_default();
        prop_assert_eq!(members(&forwarded).collect::<Vec<_>>(), expected);
        prop_assert!(forwarded.is_empty() || serde_json::from_str::<Value>(&forwarded).is_ok());
    }

    #[test]
    fn a_cursor_is_read_back_and_a_damaged_cursor_is_not(
        offset: u64, fingerprint: u64, at: prop::sample::Index, byte in "[ -~]",
    ) {
        let cursor = PageCursor { offset, fingerprint };
        let text = cursor.encode();
        prop_assert_eq!(PageCursor::decode(&text), Ok(cursor));
        let at = at.index(text.len());
        let mut changed = text.clone();
        changed.replace_range(at..=at, &byte);
        prop_assert_eq!(PageCursor::decode(&changed).is_ok(), changed == text);
    }

    #[test]
    fn a_foreign_cursor_is_an_error(text in prop_oneof![any::<String>(), "[A-Za-z0-9_-]{28}"]) {
        prop_assert!(PageCursor::decode(&text).is_err());
    }
}
