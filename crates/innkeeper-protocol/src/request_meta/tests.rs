//! Tests of request metadata and of `server/discover`.

use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::{DiscoverResult, MAX_VERSIONS, META_CLIENT_CAPABILITIES, META_LOG_LEVEL, RequestMeta};
use crate::revision::Revision;

fn raw(value: &serde_json::Value) -> Box<RawValue> {
    to_raw_value(value).unwrap()
}

#[test]
fn a_request_says_its_revision_client_and_capabilities() {
    let meta = RequestMeta {
        revision: Revision::LATEST,
        client_name: "the \"app\"",
        client_version: "1.2",
        capabilities: None,
        log_level: None,
    };
    let expected = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "the \"app\"", "version": "1.2"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let read = |raw: &RawValue| serde_json::from_str::<serde_json::Value>(raw.get()).unwrap();
    assert_eq!(read(&meta.to_meta(None)), expected);
    let mut with_token = expected;
    with_token["progressToken"] = json!(u64::MAX);
    assert_eq!(read(&meta.to_meta(Some(u64::MAX))), with_token);
}

#[test]
fn a_request_says_what_its_client_can_do_and_wants_logged() {
    let capabilities = RawValue::from_string(r#"{"roots": {}, "n":1e999}"#.to_owned()).unwrap();
    let meta = RequestMeta {
        revision: Revision::LATEST,
        client_name: "app",
        client_version: "1",
        capabilities: Some(&capabilities),
        log_level: Some("debug"),
    };
    let meta_json = meta.to_meta(Some(1));
    let value_of = |key| crate::skim::member(meta_json.get(), key);
    assert_eq!(value_of(META_CLIENT_CAPABILITIES), Some(capabilities.get()));
    assert_eq!(value_of(META_LOG_LEVEL), Some("\"debug\""));
}

#[test]
fn a_discover_result_is_read_in_full() {
    let result = DiscoverResult::from_raw(&raw(&json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28", 5, "2027-01-01"],
        "capabilities": {"tools": {}, "extensions": {"x/y": {}}},
        "instructions": "be kind",
        "ttlMs": 60000,
        "cacheScope": "public",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1", "x": 1}},
    })))
    .unwrap();
    assert_eq!(result.supported_versions, ["2026-07-28", "2027-01-01"]);
    assert!(result.capabilities.tools.is_some());
    assert_eq!(result.capabilities.raw.get(), r#"{"tools":{},"extensions":{"x/y":{}}}"#);
    assert_eq!(result.instructions.as_deref(), Some("be kind"));
    assert_eq!((result.ttl_ms, result.cache_scope.as_deref()), (Some(60_000), Some("public")));
    assert_eq!(result.server_info.unwrap().get(), r#"{"name":"s","version":"1","x":1}"#);
}

#[test]
fn what_a_discover_result_may_leave_out_or_get_wrong_is_absent() {
    let result = DiscoverResult::from_raw(&raw(&json!({
        "supportedVersions": [], "capabilities": {}, "ttlMs": -1, "cacheScope": 5, "_meta": [],
    })))
    .unwrap();
    assert!(result.server_info.is_none() && result.instructions.is_none());
    assert!(result.ttl_ms.is_none() && result.cache_scope.is_none());
}

/// Proves: FR7.5
#[test]
fn a_discover_result_without_versions_is_an_error_and_one_without_capabilities_has_tools() {
    let error = DiscoverResult::from_raw(&raw(&json!({"capabilities": {}}))).unwrap_err();
    assert_eq!((error.pointer.as_str(), error.found), ("/supportedVersions", "nothing"));
    let result = DiscoverResult::from_raw(&raw(&json!({"supportedVersions": []}))).unwrap();
    assert!(result.capabilities.tools.is_some() && result.capabilities.prompts.is_none());
}

#[test]
fn versions_at_the_limit_are_kept_and_one_past_it_is_not() {
    for (sent, expected) in [(MAX_VERSIONS, MAX_VERSIONS), (MAX_VERSIONS + 1, MAX_VERSIONS)] {
        let result = json!({"supportedVersions": vec!["x"; sent], "capabilities": {}});
        assert_eq!(
            DiscoverResult::from_raw(&raw(&result)).unwrap().supported_versions.len(),
            expected
        );
    }
}
