//! Tests of both eras with a service that needs no file.

use super::*;
use crate::builtin::service::{FailureMessage, ServerIdentity};

struct EchoService;

impl Service for EchoService {
    fn identity(&self) -> ServerIdentity {
        ServerIdentity { name: "echo", title: "Echo", instructions: "Say something." }
    }

    fn tools(&self) -> Vec<Value> {
        vec![json!({ "name": "echo", "inputSchema": { "type": "object" } })]
    }

    fn call_tool(
        &mut self,
        tool: &str,
        arguments: JsonObject,
    ) -> Option<Result<ToolOutput, FailureMessage>> {
        let message = arguments.get("say").and_then(Value::as_str).unwrap_or_default().to_owned();
        match (tool, message.is_empty()) {
            ("echo", true) => Some(Err("nothing was said".to_owned())),
            ("echo", false) => Some(Ok(ToolOutput {
                text: message.clone(),
                structured: json!({ "said": message }),
            })),
            _ => None,
        }
    }

    fn resources(&mut self) -> Result<Vec<Value>, FailureMessage> {
        Ok(vec![json!({ "uri": "echo://a", "name": "a" })])
    }

    fn resource_templates(&self) -> Vec<Value> {
        Vec::new()
    }

    fn read_resource(&mut self, uri: &str) -> Option<Result<Value, FailureMessage>> {
        (uri == "echo://a").then(|| Ok(json!([{ "uri": uri, "text": "a" }])))
    }

    fn prompts(&self) -> Vec<Value> {
        Vec::new()
    }

    fn get_prompt(&mut self, _: &str, _: JsonObject) -> Option<Result<Value, FailureMessage>> {
        None
    }
}

type RequestResult = Result<Value, JsonRpcError>;

fn request(session: &mut Session<EchoService>, method: &str, params: Value) -> RequestResult {
    session.handle_request(method, Some(&serde_json::from_value::<Box<RawValue>>(params).unwrap()))
}

fn legacy_session(revision: &str) -> Session<EchoService> {
    let mut session = Session::new(EchoService);
    request(&mut session, "initialize", json!({ "protocolVersion": revision })).unwrap();
    session
}

fn modern_request(method: &str, mut params: Value) -> RequestResult {
    params["_meta"] = json!({ META_PROTOCOL_VERSION: "2026-07-28", META_CLIENT_CAPABILITIES: {} });
    request(&mut Session::new(EchoService), method, params)
}

#[test]
fn every_legacy_revision_is_accepted_and_an_unknown_one_gets_the_latest() {
    for (requested, settled) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let params = json!({ "protocolVersion": requested, "capabilities": {} });
        let result = request(&mut Session::new(EchoService), "initialize", params).unwrap();
        assert_eq!(result["protocolVersion"], settled);
        assert_eq!(result["serverInfo"]["name"], "echo");
        assert_eq!(result["capabilities"], json!({ "tools": {}, "resources": {} }));
    }
}

#[test]
fn discovery_has_version_capabilities_and_cache_ttl() {
    let result = modern_request("server/discover", json!({})).unwrap();
    insta::assert_snapshot!(result, @r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{}},"instructions":"Say something.","ttlMs":3600000,"cacheScope":"public","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"echo","title":"Echo","version":"0.1.0"}}}"#);
}

#[test]
fn a_modern_request_needs_its_version_and_its_capabilities() {
    let mut session = Session::new(EchoService);
    let bare = request(&mut session, "tools/list", json!({})).unwrap_err();
    assert_eq!(bare.code, -32602);
    let meta = json!({ "_meta": { META_PROTOCOL_VERSION: "2026-07-28" } });
    assert_eq!(request(&mut session, "tools/list", meta).unwrap_err().code, -32602);
    let meta = json!({ "_meta": { META_PROTOCOL_VERSION: "2031-01-01" } });
    let error = request(&mut session, "tools/list", meta).unwrap_err();
    assert_eq!(error.code, -32022);
    let data = json!({ "supported": ["2026-07-28"], "requested": "2031-01-01" });
    assert_eq!(error.data, Some(data));
}

#[test]
fn every_modern_result_is_complete_and_names_its_server() {
    for (method, params, cached) in [
        ("tools/list", json!({}), true),
        ("resources/list", json!({}), true),
        ("resources/templates/list", json!({}), true),
        ("resources/read", json!({ "uri": "echo://a" }), true),
        ("tools/call", json!({ "name": "echo", "arguments": { "say": "x" } }), false),
    ] {
        let result = modern_request(method, params).unwrap();
        assert_eq!(result["resultType"], "complete", "{method}");
        assert_eq!(result["_meta"][META_SERVER_INFO]["name"], "echo", "{method}");
        assert_eq!(result.get("ttlMs").is_some(), cached, "{method}");
        assert_eq!(result.get("cacheScope").is_some(), cached, "{method}");
    }
}

#[test]
fn a_legacy_result_has_nothing_of_the_modern_era() {
    let mut session = legacy_session("2025-06-18");
    let result = request(&mut session, "tools/list", json!({})).unwrap();
    assert_eq!(result.as_object().unwrap().keys().collect::<Vec<_>>(), ["tools"]);
    assert_eq!(request(&mut session, "ping", json!({})).unwrap(), json!({}));
}

#[test]
fn methods_of_the_other_era_do_not_exist() {
    for method in ["initialize", "ping", "logging/setLevel", "subscriptions/listen"] {
        assert_eq!(modern_request(method, json!({})).unwrap_err().code, -32601, "{method}");
    }
    let mut session = legacy_session("2025-11-25");
    for method in ["server/discover", "prompts/list", "prompts/get", "no/such"] {
        assert_eq!(request(&mut session, method, json!({})).unwrap_err().code, -32601, "{method}");
    }
}

#[test]
fn a_tool_that_fails_is_a_result_and_a_tool_that_is_not_there_an_error() {
    let call = |params| request(&mut legacy_session("2025-11-25"), "tools/call", params);
    let result = call(json!({ "name": "echo", "arguments": { "say": "x" } })).unwrap();
    assert_eq!(result["structuredContent"], json!({ "said": "x" }));
    assert_eq!(result["isError"], false);
    let failure = call(json!({ "name": "echo" })).unwrap();
    assert_eq!(failure["isError"], true);
    assert_eq!(failure["content"], json!([{ "type": "text", "text": "nothing was said" }]));
    for wrong in [json!({ "name": "no" }), json!({}), json!({ "name": "echo", "arguments": [] })] {
        assert_eq!(call(wrong).unwrap_err().code, -32602);
    }
}

#[test]
fn a_missing_resource_has_the_code_of_its_era_and_names_its_uri() {
    let params = || json!({ "uri": "echo://b" });
    let old = request(&mut legacy_session("2025-11-25"), "resources/read", params()).unwrap_err();
    let new = modern_request("resources/read", params()).unwrap_err();
    assert_eq!((old.code, new.code), (-32002, -32602));
    assert_eq!(new.data, Some(params()));
}

#[test]
fn params_that_are_no_object_and_unknown_cursors_are_rejected() {
    let mut session = legacy_session("2025-11-25");
    assert_eq!(request(&mut session, "tools/list", json!([])).unwrap_err().code, -32602);
    let cursor = json!({ "cursor": "" });
    assert_eq!(request(&mut session, "tools/list", cursor).unwrap_err().code, -32602);
}
