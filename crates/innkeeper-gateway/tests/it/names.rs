//! Names of tools, prompts and resources for clients.

use innkeeper_gateway::policy::ToolPolicy;
use innkeeper_gateway::rate_limits::RateLimits;
use innkeeper_gateway::{EndpointOptions, GatewayBuilder, GatewayOptions, Principal};
use innkeeper_host::config::{NameStyle, Rate, RateConfig, ToolFilter};
use innkeeper_testkit::Journal;
use serde_json::{Value, json};

use crate::setup::{TestEnv, TestGateway};

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

/// A gateway whose clients see the tools of one server under both names: prefixed at the first endpoint, flat
/// on the connections of the server.
async fn gateway_with_both_names(test_env: &TestEnv, builder: GatewayBuilder) -> TestGateway {
    let server = test_env.fixture("a").journal(&test_env.journal());
    test_env.gateway_with(builder, [server]).await
}

fn both_names() -> GatewayBuilder {
    let connection_servers = vec!["a".to_owned()];
    GatewayBuilder::new(GatewayOptions { connection_servers, ..GatewayOptions::default() })
}

fn echo(name: &str) -> Value {
    json!({ "name": name, "arguments": { "message": "hi" } })
}

/// Attack: remote | a client calls a tool that is denied or not allowed to it under the name of another
/// endpoint | the tool is unknown under each name, and its server gets no call | Isolation
#[tokio::test]
async fn a_denied_tool_is_unknown_under_every_name() {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let deny = |rule: &str| ToolFilter { deny: owned(&[rule]), ..ToolFilter::default() };
    let allow = |rule: &str| ToolFilter { allow: Some(owned(&[rule])), ..ToolFilter::default() };
    let rules = [
        ("bob", deny("a.echo")),
        ("ben", deny("echo")),
        ("ann", allow("a.add")),
        ("eve", allow("add")),
    ];
    let rules = rules.map(|(name, rules)| (Principal::new(name), rules));
    let policy = ToolPolicy::new(rules, ToolFilter::default());
    let test_env = TestEnv::new();
    let gateway = gateway_with_both_names(&test_env, both_names().policy(policy)).await;
    for principal in ["bob", "ben", "ann", "eve"] {
        let prefixed = gateway.initialized(principal, json!({})).await;
        let flat = gateway.connect_to_server(principal, "a");
        for (mut client, name) in [(prefixed, "a.echo"), (flat, "echo")] {
            let answer = client.respond("tools/call", echo(name)).await;
            let unknown = client.respond("tools/call", echo(&name.replace('e', "f"))).await;
            assert_eq!(answer["error"]["code"], unknown["error"]["code"], "{principal} {answer}");
            let listed = client.request("tools/list", json!({})).await;
            assert!(!names(&listed["tools"]).contains(&name), "{principal} {name}");
        }
    }
    assert_eq!(Journal::read(&test_env.journal()).count("tools/call"), 0);
    let add = json!({ "name": "add", "arguments": { "a": 1, "b": 1 } });
    for principal in ["ann", "eve"] {
        gateway.connect_to_server(principal, "a").request("tools/call", add.clone()).await;
    }
}

/// Attack: remote | a client calls a tool at two endpoints, to get its rate twice | the calls under both names
/// count together | Isolation
#[tokio::test]
async fn calls_of_a_tool_under_all_names_share_one_rate() {
    for pattern in ["a.echo", "echo"] {
        let rate = Rate { per_minute: 2, burst: 2 };
        let tools = [(pattern.to_owned(), rate)].into_iter().collect();
        let limits = RateLimits::new(RateConfig { requests: None, tools }, []);
        let test_env = TestEnv::new();
        let gateway = gateway_with_both_names(&test_env, both_names().rate_limits(limits)).await;
        let mut prefixed = gateway.initialized("bob", json!({})).await;
        let mut flat = gateway.connect_to_server("bob", "a");
        prefixed.request("tools/call", echo("a.echo")).await;
        flat.request("tools/call", echo("echo")).await;
        for (client, name) in [(&mut prefixed, "a.echo"), (&mut flat, "echo")] {
            let refused = client.respond("tools/call", echo(name)).await;
            assert_eq!(refused["error"]["data"]["kind"], "rate", "{pattern} {name}: {refused}");
        }
    }
}

/// Attack: remote | a client calls a tool that its endpoint denies by the other name | the endpoint does not
/// have the tool | Isolation
#[tokio::test]
async fn an_endpoint_denies_a_tool_by_each_of_its_names() {
    for (style, rule, name) in [
        (NameStyle::Flat, "a.echo", "echo"),
        (NameStyle::Flat, "a.ec*", "echo"),
        (NameStyle::Prefixed, "echo", "a.echo"),
    ] {
        let tools = ToolFilter { deny: vec![rule.to_owned()], ..ToolFilter::default() };
        let endpoint = EndpointOptions { names: style, tools, ..EndpointOptions::default() };
        let builder = GatewayBuilder::new(GatewayOptions { endpoint, ..GatewayOptions::default() });
        let test_env = TestEnv::new();
        let gateway = gateway_with_both_names(&test_env, builder).await;
        let mut client = gateway.initialized("local", json!({})).await;
        let denied = client.respond("tools/call", echo(name)).await;
        assert_eq!(denied["error"]["code"], -32602, "{rule}: {denied}");
        assert_eq!(Journal::read(&test_env.journal()).count("tools/call"), 0, "{rule}");
    }
}
