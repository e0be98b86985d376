//! Both eras as a client sees them, over a service that needs no file.

use super::*;
use crate::builtin::service::{Complaint, Identity};

struct Echo;

impl Service for Echo {
    fn identity(&self) -> Identity {
        Identity { name: "echo", title: "Echo", instructions: "Say something." }
    }

    fn tools(&self) -> Vec<Value> {
        vec![json!({ "name": "echo", "inputSchema": { "type": "object" } })]
    }

    fn call(&mut self, tool: &str, arguments: Object) -> Option<Result<Produced, Complaint>> {
        let said = arguments.get("say").and_then(Value::as_str).unwrap_or_default().to_owned();
        match (tool, said.is_empty()) {
            ("echo", true) => Some(Err("nothing was said".to_owned())),
            ("echo", false) => {
                Some(Ok(Produced { text: said.clone(), structured: json!({ "said": said }) }))
            }
            _ => None,
        }
    }

    fn resources(&mut self) -> Result<Vec<Value>, Complaint> {
        Ok(vec![json!({ "uri": "echo://a", "name": "a" })])
    }

    fn resource_templates(&self) -> Vec<Value> {
        Vec::new()
    }

    fn read(&mut self, uri: &str) -> Option<Result<Value, Complaint>> {
        (uri == "echo://a").then(|| Ok(json!([{ "uri": uri, "text": "a" }])))
    }

    fn prompts(&self) -> Vec<Value> {
        Vec::new()
    }

    fn prompt(&mut self, _: &str, _: Object) -> Option<Result<Value, Complaint>> {
        None
    }
}

type Answer = Result<Value, Refusal>;

fn ask(session: &mut Session<Echo>, method: &str, params: Value) -> Answer {
    session.answer(method, Some(&serde_json::from_value::<Box<RawValue>>(params).unwrap()))
}

fn legacy(revision: &str) -> Session<Echo> {
    let mut session = Session::new(Echo);
    ask(&mut session, "initialize", json!({ "protocolVersion": revision })).unwrap();
    session
}

fn modern(method: &str, mut params: Value) -> Answer {
    params["_meta"] = json!({ META_PROTOCOL_VERSION: "2026-07-28", META_CLIENT_CAPABILITIES: {} });
    ask(&mut Session::new(Echo), method, params)
}

#[test]
fn every_legacy_revision_is_accepted_and_an_unknown_one_gets_the_latest() {
    for (asked, settled) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let params = json!({ "protocolVersion": asked, "capabilities": {} });
        let result = ask(&mut Session::new(Echo), "initialize", params).unwrap();
        assert_eq!(result["protocolVersion"], settled);
        assert_eq!(result["serverInfo"]["name"], "echo");
        assert_eq!(result["capabilities"], json!({ "tools": {}, "resources": {} }));
    }
}

#[test]
fn discovery_says_version_capabilities_and_how_long_to_keep_them() {
    let result = modern("server/discover", json!({})).unwrap();
    insta::assert_snapshot!(result, @r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{}},"instructions":"Say something.","ttlMs":3600000,"cacheScope":"public","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"echo","title":"Echo","version":"0.1.0"}}}"#);
}

#[test]
fn a_modern_request_needs_its_version_and_its_capabilities() {
    let mut session = Session::new(Echo);
    let bare = ask(&mut session, "tools/list", json!({})).unwrap_err();
    assert_eq!(bare.code, -32602);
    let meta = json!({ "_meta": { META_PROTOCOL_VERSION: "2026-07-28" } });
    assert_eq!(ask(&mut session, "tools/list", meta).unwrap_err().code, -32602);
    let meta = json!({ "_meta": { META_PROTOCOL_VERSION: "2031-01-01" } });
    let refusal = ask(&mut session, "tools/list", meta).unwrap_err();
    assert_eq!(refusal.code, -32022);
    let data = json!({ "supported": ["2026-07-28"], "requested": "2031-01-01" });
    assert_eq!(refusal.data, Some(data));
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
        let result = modern(method, params).unwrap();
        assert_eq!(result["resultType"], "complete", "{method}");
        assert_eq!(result["_meta"][META_SERVER_INFO]["name"], "echo", "{method}");
        assert_eq!(result.get("ttlMs").is_some(), cached, "{method}");
        assert_eq!(result.get("cacheScope").is_some(), cached, "{method}");
    }
}

#[test]
fn a_legacy_result_has_nothing_of_the_modern_era() {
    let mut session = legacy("2025-06-18");
    let result = ask(&mut session, "tools/list", json!({})).unwrap();
    assert_eq!(result.as_object().unwrap().keys().collect::<Vec<_>>(), ["tools"]);
    assert_eq!(ask(&mut session, "ping", json!({})).unwrap(), json!({}));
}

#[test]
fn methods_of_the_other_era_do_not_exist() {
    for method in ["initialize", "ping", "logging/setLevel", "subscriptions/listen"] {
        assert_eq!(modern(method, json!({})).unwrap_err().code, -32601, "{method}");
    }
    let mut session = legacy("2025-11-25");
    for method in ["server/discover", "prompts/list", "prompts/get", "no/such"] {
        assert_eq!(ask(&mut session, method, json!({})).unwrap_err().code, -32601, "{method}");
    }
}

#[test]
fn a_tool_that_fails_is_a_result_and_a_tool_that_is_not_there_an_error() {
    let call = |params| ask(&mut legacy("2025-11-25"), "tools/call", params);
    let said = call(json!({ "name": "echo", "arguments": { "say": "x" } })).unwrap();
    assert_eq!(said["structuredContent"], json!({ "said": "x" }));
    assert_eq!(said["isError"], false);
    let failed = call(json!({ "name": "echo" })).unwrap();
    assert_eq!(failed["isError"], true);
    assert_eq!(failed["content"], json!([{ "type": "text", "text": "nothing was said" }]));
    for wrong in [json!({ "name": "no" }), json!({}), json!({ "name": "echo", "arguments": [] })] {
        assert_eq!(call(wrong).unwrap_err().code, -32602);
    }
}

#[test]
fn a_missing_resource_has_the_code_of_its_era_and_names_its_uri() {
    let params = || json!({ "uri": "echo://b" });
    let old = ask(&mut legacy("2025-11-25"), "resources/read", params()).unwrap_err();
    let new = modern("resources/read", params()).unwrap_err();
    assert_eq!((old.code, new.code), (-32002, -32602));
    assert_eq!(new.data, Some(params()));
}

#[test]
fn parameters_that_are_no_object_and_cursors_never_given_out_are_refused() {
    let mut session = legacy("2025-11-25");
    assert_eq!(ask(&mut session, "tools/list", json!([])).unwrap_err().code, -32602);
    let cursor = json!({ "cursor": "" });
    assert_eq!(ask(&mut session, "tools/list", cursor).unwrap_err().code, -32602);
}
