//! Names of tools, prompts and resources for clients.

use innkeeper_gateway::{EndpointOptions, GatewayBuilder, GatewayOptions};
use innkeeper_host::config::NameStyle;
use serde_json::{Value, json};

use crate::setup::TestEnv;

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn flat_names_are_those_of_the_servers_without_the_ambiguous_ones() {
    let test_env = TestEnv::new();
    let endpoint = EndpointOptions { names: NameStyle::Flat, ..EndpointOptions::default() };
    let builder = GatewayBuilder::new(GatewayOptions { endpoint, ..GatewayOptions::default() });
    let tool =
        |name: &str| json!([{ "name": name, "inputSchema": { "type": "object" } }]).to_string();
    let both = json!([
        { "name": "x", "inputSchema": { "type": "object" } },
        { "name": "y", "inputSchema": { "type": "object" } },
    ]);
    let servers = [
        test_env.fixture("a").with("--tools", both),
        test_env.fixture("b").with("--tools", tool("y")),
    ];
    let gateway = test_env.gateway_with(builder, servers).await;
    let mut client = gateway.initialized("local", json!({})).await;
    let list = client.request("tools/list", json!({})).await;
    assert_eq!(names(&list["tools"]), ["x"]);
    client.request("tools/call", json!({ "name": "x", "arguments": {} })).await;
    let unknown = client.respond("tools/call", json!({ "name": "y", "arguments": {} })).await;
    assert_eq!(unknown["error"]["code"], -32602);
}

/// Attack: remote | a server lists the resource of another server, and a template that matches every
/// URI | clients still read the resources of the other server | Isolation
#[tokio::test]
async fn a_server_hides_no_resource_of_a_server_before_it() {
    let test_env = TestEnv::new();
    let resource = |uri: &str| json!([{ "uri": uri, "name": "doc" }]).to_string();
    let template = |uri: &str| json!([{ "uriTemplate": uri, "name": "all" }]).to_string();
    let servers = [
        test_env.fixture("owner").with("--resources", resource("doc://a")),
        test_env
            .fixture("copy")
            .with("--resources", resource("doc://a"))
            .with("--templates", template("{+all}")),
    ];
    let gateway = test_env.gateway(servers).await;
    let mut client = gateway.initialized("local", json!({})).await;
    let list = client.request("resources/list", json!({})).await;
    assert_eq!(list["resources"].as_array().unwrap().len(), 1, "{list}");
    for uri in ["doc://a", "fx://owner/item/1"] {
        let read = client.respond("resources/read", json!({ "uri": uri })).await;
        let text = read.to_string();
        assert!(text.contains("\"owner: "), "{uri}: {text}");
    }
}

/// What the server sent is what the client gets, but for names.
#[tokio::test]
async fn definitions_and_results_are_equal_byte_for_byte_but_for_names() {
    let test_env = TestEnv::new();
    let tool = r#"{"x-first":1.50,"name":"odd","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://a"}},"big":123456789012345678901234567890}"#;
    let result = r#"{"content":[{"type":"text","text":"t","annotations":{"audience":["robot"]}},{"type":"hologram","v":1.0}],"structuredContent":{"n":123456789012345678901234567890},"x-a":-0.0}"#;
    let server = test_env
        .fixture("a")
        .with("--tools", format!("[{tool}]"))
        .with("--call-result-text", result);
    let gateway = test_env.gateway([server]).await;
    let mut client = gateway.initialized("local", json!({})).await;
    let id = client.start("tools/call", json!({ "name": "a.odd", "arguments": {} })).await;
    let line = client.line().await;
    assert_eq!(line, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
    let id = client.start("tools/list", json!({})).await;
    let line = client.line().await;
    let listed = gateway.host.catalog();
    let raw = listed.tools().next().unwrap().definition.raw.get().to_owned();
    let renamed = raw.replace(r#""name":"odd""#, r#""name":"a.odd""#);
    assert_eq!(line, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{renamed}]}}}}"#));
}
