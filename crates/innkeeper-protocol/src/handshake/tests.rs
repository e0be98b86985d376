//! Tests of the server's side of the handshake.

use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::{CacheScope, DiscoverResponse, InitializeParams, InitializeResponse};
use crate::params_error::ParamsError;
use crate::request_meta::{DiscoverResult, Implementation};
use crate::revision::Revision;
use crate::view::InitializeResult;

const SERVER: Implementation<'_> = Implementation { name: "inn", version: "1.2", title: None };

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

#[test]
fn the_params_of_initialize_are_read_as_they_were_sent() {
    let params = raw(r#"{"protocolVersion":"2025\u002d06-18","x":[],
        "capabilities":{ "roots":{} },"clientInfo":{"name":"a","n":1e999}}"#);
    let params = InitializeParams::from_raw(&params).unwrap();
    assert_eq!(params.protocol_version, "2025-06-18");
    assert_eq!(params.capabilities, r#"{ "roots":{} }"#);
    assert_eq!(params.client_info, r#"{"name":"a","n":1e999}"#);
}

#[test]
fn params_of_initialize_without_a_required_member_are_an_error() {
    let complete = json!({"protocolVersion": "x", "capabilities": {}, "clientInfo": {}});
    assert!(InitializeParams::from_raw(&to_raw_value(&complete).unwrap()).is_ok());
    for (member, expected) in [
        ("protocolVersion", "a string"),
        ("capabilities", "an object"),
        ("clientInfo", "an object"),
    ] {
        for (value, found) in [(json!(null), "nothing"), (json!(true), "a boolean")] {
            let mut params = complete.clone();
            params[member] = value;
            let error = InitializeParams::from_raw(&to_raw_value(&params).unwrap()).unwrap_err();
            let text =
                format!("invalid `params`: expected {expected} at `/{member}`, found {found}");
            assert_eq!((error.to_string(), error.code()), (text, -32602));
        }
    }
    let twice = r#"{"protocolVersion":"x","capabilities":{},"clientInfo":{},"clientInfo":{}}"#;
    let error = InitializeParams::from_raw(&raw(twice)).unwrap_err();
    assert_eq!(error, ParamsError::DuplicateKey { object: "params" });
}

#[test]
fn a_client_reads_the_result_of_initialize() {
    let capabilities = raw(r#"{"tools":{"listChanged":true},"x":1e999}"#);
    let server_info = Implementation { title: Some("Inn"), ..SERVER };
    let response = InitializeResponse {
        revision: Revision::V2025_03_26,
        capabilities: &capabilities,
        server_info,
        instructions: Some("be kind"),
    };
    let result = InitializeResult::from_raw(&to_raw_value(&response).unwrap()).unwrap();
    assert_eq!(result.protocol_version, "2025-03-26");
    assert_eq!(result.capabilities.raw.get(), capabilities.get());
    let info = r#"{"name":"inn","version":"1.2","title":"Inn"}"#;
    assert_eq!(result.server_info_raw.unwrap().get(), info);
    assert_eq!(result.instructions.as_deref(), Some("be kind"));
    let response = InitializeResponse { server_info: SERVER, instructions: None, ..response };
    assert_eq!(
        serde_json::to_string(&response).unwrap(),
        r#"{"protocolVersion":"2025-03-26","capabilities":{"tools":{"listChanged":true},"x":1e999},"serverInfo":{"name":"inn","version":"1.2"}}"#
    );
}

#[test]
fn a_client_reads_the_result_of_discover() {
    let capabilities = raw(r#"{"prompts":{},"x":1e999}"#);
    let response = DiscoverResponse {
        supported_versions: &[Revision::V2026_07_28],
        capabilities: &capabilities,
        server_info: SERVER,
        instructions: Some("be kind"),
        ttl_ms: 60_000,
        cache_scope: CacheScope::Private,
    };
    let result = DiscoverResult::from_raw(&to_raw_value(&response).unwrap()).unwrap();
    assert_eq!(result.supported_versions, ["2026-07-28"]);
    assert_eq!(result.capabilities.raw.get(), capabilities.get());
    assert_eq!(result.server_info.unwrap().get(), r#"{"name":"inn","version":"1.2"}"#);
    assert_eq!(result.instructions.as_deref(), Some("be kind"));
    assert_eq!((result.ttl_ms, result.cache_scope.as_deref()), (Some(60_000), Some("private")));
    let cache_scope = CacheScope::Public;
    let response = DiscoverResponse { instructions: None, cache_scope, ..response };
    assert_eq!(
        serde_json::to_string(&response).unwrap(),
        r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"prompts":{},"x":1e999},"ttlMs":60000,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"inn","version":"1.2"}}}"#
    );
}
