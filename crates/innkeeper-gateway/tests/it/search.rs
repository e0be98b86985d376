//! An endpoint with a search in place of its tools.

use std::path::Path;

use innkeeper_gateway::policy::ToolPolicy;
use innkeeper_gateway::rate_limits::RateLimits;
use innkeeper_gateway::{EndpointOptions, GatewayBuilder, GatewayOptions, Principal};
use innkeeper_host::HostEvent;
use innkeeper_host::config::{NameStyle, Rate, RateConfig, ToolFilter};
use innkeeper_testkit::{Fixture, Journal};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::setup::{TEST_TIMEOUT, TestClient, TestEnv, TestGateway, text};

fn builder(pinned: &[&str]) -> GatewayBuilder {
    let pinned = pinned.iter().map(|name| (*name).to_owned()).collect();
    let endpoint = EndpointOptions { search: true, pinned, ..EndpointOptions::default() };
    GatewayBuilder::new(GatewayOptions { endpoint, ..GatewayOptions::default() })
}

async fn gateway(test_env: &TestEnv, server: Fixture) -> TestGateway {
    test_env.gateway_with(builder(&[]), [server]).await
}

fn through(name: &str, arguments: &Value) -> Value {
    json!({ "name": "call_tool", "arguments": { "name": name, "arguments": arguments } })
}

/// Calls a tool of the search and parses its text.
async fn ask(client: &mut TestClient, name: &str, arguments: Value) -> Value {
    serde_json::from_str(&client.call(name, arguments).await).unwrap()
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
}

async fn finds_describes_and_calls(client: &mut TestClient) {
    let list = client.request("tools/list", json!({})).await;
    assert_eq!(names(&list["tools"]), ["search_tools", "describe_tools", "call_tool", "a.env"]);
    let found = ask(client, "search_tools", json!({ "query": "add two numbers" })).await;
    assert_eq!(found["tools"][0]["name"], "a.add", "{found}");
    let described = ask(client, "describe_tools", json!({ "names": ["a.add"] })).await;
    let tool = &described["tools"][0];
    assert!(tool["inputSchema"].is_object() && tool["outputSchema"].is_object(), "{tool}");
    let call = through("a.add", &json!({ "a": 2, "b": 3 }));
    let result = client.request("tools/call", call).await;
    assert_eq!(result["structuredContent"], json!({ "sum": 5 }));
    assert!(client.call("a.env", json!({ "name": "NO" })).await.contains("argv"), "pinned");
}

#[tokio::test]
async fn a_client_of_each_era_finds_describes_and_calls_a_tool_of_each_era() {
    for era in ["legacy", "modern"] {
        let test_env = TestEnv::new();
        let server = test_env.fixture("a").with("--era", era);
        let gateway = test_env.gateway_with(builder(&["*.env"]), [server]).await;
        finds_describes_and_calls(&mut gateway.initialized("local", json!({})).await).await;
        finds_describes_and_calls(&mut gateway.modern("local", json!({}))).await;
    }
}

#[tokio::test]
async fn a_result_of_a_found_tool_is_equal_to_that_of_a_direct_call_byte_for_byte() {
    let test_env = TestEnv::new();
    let journal = tempfile::NamedTempFile::new().unwrap();
    let result = r#"{"content":[ {"type":"hologram","v":1.0}], "structuredContent":{"n":123456789012345678901234567890},"x-a":-0.0}"#;
    let server = test_env.fixture("a").with("--call-result-text", result).journal(journal.path());
    let gateway = gateway(&test_env, server).await;
    let mut client = gateway.initialized("local", json!({})).await;
    let mut lines = Vec::new();
    for params in [
        json!({ "name": "a.echo", "arguments": { "message": "hi" } }),
        through("a.echo", &json!({ "message": "hi" })),
    ] {
        let id = client.start("tools/call", params).await;
        let line = client.line().await;
        assert_eq!(line, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
        lines.push(line);
    }
    let received = calls_of(journal.path());
    assert_eq!(received[0], received[1], "the server sees no difference");
}

/// Returns the parameters of the calls that a server received, without the progress token.
fn calls_of(journal: &Path) -> Vec<Value> {
    let journal = Journal::read(journal);
    let calls = journal.params("tools/call").into_iter().cloned();
    calls.map(|call| json!({ "name": call["name"], "arguments": call["arguments"] })).collect()
}

#[tokio::test]
async fn a_tool_that_is_not_listed_is_called_by_its_name_too() {
    let test_env = TestEnv::new();
    let gateway = gateway(&test_env, test_env.fixture("a")).await;
    let mut client = gateway.initialized("local", json!({})).await;
    assert_eq!(client.call("a.echo", json!({ "message": "direct" })).await, "direct");
}

#[tokio::test]
async fn progress_of_a_found_tool_has_the_token_of_the_client() {
    let test_env = TestEnv::new();
    let gateway = gateway(&test_env, test_env.fixture("a").with("--progress", 2)).await;
    let mut client = gateway.initialized("local", json!({})).await;
    let mut params = through("a.echo", &json!({ "message": "hi" }));
    params["_meta"] = json!({ "progressToken": "mine" });
    client.request("tools/call", params).await;
    let tokens = client.waiting.iter().map(|message| message["params"]["progressToken"].clone());
    assert_eq!(tokens.collect::<Vec<_>>(), ["mine", "mine"]);
}

#[tokio::test]
async fn a_cancelled_call_of_a_found_tool_is_cancelled_at_the_server() {
    let test_env = TestEnv::new();
    let journal = tempfile::NamedTempFile::new().unwrap();
    let gateway = gateway(&test_env, test_env.fixture("a").journal(journal.path())).await;
    let mut client = gateway.initialized("local", json!({})).await;
    let slow = client.start("tools/call", through("a.sleep", &json!({ "ms": 60_000 }))).await;
    let called = |journal: &Journal| journal.count("tools/call") == 1;
    Journal::wait_for(journal.path(), TEST_TIMEOUT, called).await;
    client.notify("notifications/cancelled", json!({ "requestId": slow })).await;
    let cancelled = |journal: &Journal| journal.count("notifications/cancelled") == 1;
    Journal::wait_for(journal.path(), TEST_TIMEOUT, cancelled).await;
}

#[tokio::test]
async fn a_legacy_client_answers_the_request_of_a_found_tool() {
    for era in ["legacy", "modern"] {
        let test_env = TestEnv::new();
        let server = test_env.fixture("a").with("--era", era).switch("--ask-elicit");
        let gateway = gateway(&test_env, server).await;
        let mut client = gateway.initialized("local", json!({ "elicitation": {} })).await;
        let id = client.start("tools/call", through("a.echo", &json!({ "message": "hi" }))).await;
        let question = client.received("elicitation/create").await;
        client.answer(&question, json!({ "action": "accept", "content": { "name": "Ada" } })).await;
        assert!(client.response(&id).await["result"]["content"].to_string().contains("Ada"));
    }
}

#[tokio::test]
async fn a_modern_client_answers_the_request_of_a_found_tool_with_its_state() {
    for era in ["legacy", "modern"] {
        let test_env = TestEnv::new();
        let server = test_env.fixture("a").with("--era", era).switch("--ask-elicit");
        let gateway = gateway(&test_env, server).await;
        let mut client = gateway.modern("local", json!({ "elicitation": {} }));
        let mut call = through("a.echo", &json!({ "message": "hi" }));
        let required = client.request("tools/call", call.clone()).await;
        assert_eq!(required["resultType"], "input_required", "{required}");
        let keys = required["inputRequests"].as_object().unwrap().keys();
        let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
        let responses = keys.map(|key| (key.clone(), answer.clone()));
        call["inputResponses"] = responses.collect::<serde_json::Map<_, _>>().into();
        call["requestState"] = required["requestState"].clone();
        // The state belongs to the call of the found tool.
        let mut other = call.clone();
        other["arguments"]["arguments"]["message"] = "other".into();
        let refused = client.respond("tools/call", other).await;
        if era == "legacy" {
            assert_eq!(refused["error"]["code"], -32602, "{refused}");
        }
        let result = client.request("tools/call", call).await;
        assert_eq!(result["resultType"], "complete", "{result}");
    }
}

#[tokio::test]
async fn problems_of_a_call_are_results_that_a_model_can_read() {
    let test_env = TestEnv::new();
    let gateway = gateway(&test_env, test_env.fixture("a")).await;
    let mut client = gateway.initialized("local", json!({})).await;
    for (params, problem) in [
        (through("a.ecko", &json!({})), "unknown tool `a.ecko`; similar names: `a.echo`"),
        (through("nothing", &json!({})), "`search_tools`"),
        (through("search_tools", &json!({})), "call it by its name"),
        (through("a.echo", &json!({ "message": 1 })), "`/message`"),
        (json!({ "name": "call_tool", "arguments": {} }), "missing field `name`"),
        (json!({ "name": "call_tool" }), "missing field `name`"),
        (json!({ "name": "search_tools", "arguments": { "query": 1 } }), "`search_tools`"),
        (json!({ "name": "describe_tools", "arguments": { "names": ["a.ecko"] } }), "a.echo"),
    ] {
        let result = client.request("tools/call", params.clone()).await;
        assert_eq!(result["isError"], true, "{params}: {result}");
        assert!(text(&result).contains(problem), "{params}: {result}");
    }
}

/// Attack: remote | a client searches, describes and calls a tool that is denied to the client |
/// each response is that of an unknown tool, and the server gets no call | Isolation
#[tokio::test]
async fn a_denied_tool_is_neither_found_nor_described_nor_called() {
    let test_env = TestEnv::new();
    let journal = tempfile::NamedTempFile::new().unwrap();
    let (allow, deny) = (Some(vec!["a.*".to_owned()]), vec!["a.add".to_owned()]);
    let rules = ToolFilter { allow, deny, ..ToolFilter::default() };
    let policy = ToolPolicy::new([(Principal::new("ada"), rules)], ToolFilter::default());
    let server = test_env.fixture("a").journal(journal.path());
    let gateway = test_env.gateway_with(builder(&["a.add"]).policy(policy), [server]).await;
    let mut bob = gateway.initialized("bob", json!({})).await;
    let mut ada = gateway.initialized("ada", json!({})).await;
    let count = ask(&mut bob, "search_tools", json!({ "query": "add" })).await;
    assert_eq!(count["tools"][0]["name"], "a.add");
    let found = ask(&mut ada, "search_tools", json!({ "query": "add" })).await;
    assert_eq!(found["searchedTools"], count["searchedTools"].as_u64().unwrap() - 1);
    assert!(!found.to_string().contains("a.add"), "{found}");
    let list = ada.request("tools/list", json!({})).await;
    assert_eq!(names(&list["tools"]), ["search_tools", "describe_tools", "call_tool"]);
    for name in ["a.add", "a.adx"] {
        let described = ask(&mut ada, "describe_tools", json!({ "names": [name] })).await;
        assert_eq!(described["tools"], json!([]));
        assert!(!described.to_string().replace(name, "").contains("a.add"), "{described}");
        let called = ada.request("tools/call", through(name, &json!({ "a": 1, "b": 1 }))).await;
        assert_eq!(called["isError"], true);
        assert!(!text(&called).replace(name, "").contains("a.add"), "{called}");
    }
    assert_eq!(calls_of(journal.path()), Vec::<Value>::new());
}

/// Attack: remote | a client finds, describes or calls a tool with the search of an endpoint with flat names,
/// which a rule denies by the name with its server | each response is that of an unknown tool | Isolation
#[tokio::test]
async fn a_tool_that_is_denied_by_another_name_is_not_found() {
    let test_env = TestEnv::new();
    let endpoint = EndpointOptions {
        names: NameStyle::Flat,
        search: true,
        pinned: vec!["a.add".to_owned()],
        ..EndpointOptions::default()
    };
    let builder = GatewayBuilder::new(GatewayOptions { endpoint, ..GatewayOptions::default() });
    let rules = ToolFilter { deny: vec!["a.add".to_owned()], ..ToolFilter::default() };
    let policy = ToolPolicy::new([(Principal::new("ada"), rules)], ToolFilter::default());
    let journal = test_env.journal();
    let server = test_env.fixture("a").journal(&journal);
    let gateway = test_env.gateway_with(builder.policy(policy), [server]).await;
    let mut bob = gateway.initialized("bob", json!({})).await;
    let mut ada = gateway.initialized("ada", json!({})).await;
    let list = bob.request("tools/list", json!({})).await;
    assert!(names(&list["tools"]).contains(&"add"), "pinned by the name with its server");
    let list = ada.request("tools/list", json!({})).await;
    assert_eq!(names(&list["tools"]), ["search_tools", "describe_tools", "call_tool"]);
    let found = ask(&mut ada, "search_tools", json!({ "query": "add" })).await;
    assert!(!found.to_string().contains("\"add\""), "{found}");
    let described = ask(&mut ada, "describe_tools", json!({ "names": ["add"] })).await;
    assert_eq!(described["tools"], json!([]));
    let called = ada.request("tools/call", through("add", &json!({ "a": 1, "b": 1 }))).await;
    assert_eq!(called["isError"], true);
    assert_eq!(calls_of(&journal), Vec::<Value>::new());
}

#[tokio::test]
async fn a_call_of_a_found_tool_counts_for_the_rate_of_that_tool_only() {
    let test_env = TestEnv::new();
    let rate = Rate { per_minute: 1, burst: 1 };
    let names = ["a.echo", "call_tool"].map(|name| (name.to_owned(), rate));
    let rates = RateConfig { requests: None, tools: names.into_iter().collect() };
    let builder = builder(&[]).rate_limits(RateLimits::new(rates, []));
    let gateway = test_env.gateway_with(builder, [test_env.fixture("a")]).await;
    let mut client = gateway.initialized("local", json!({})).await;
    for _ in 0..2 {
        let add = through("a.add", &json!({ "a": 1, "b": 1 }));
        assert!(client.request("tools/call", add).await.get("isError").is_none());
    }
    let echo = through("a.echo", &json!({ "message": "hi" }));
    client.request("tools/call", echo.clone()).await;
    let direct = json!({ "name": "a.echo", "arguments": { "message": "hi" } });
    for params in [echo, direct] {
        let refused = client.respond("tools/call", params).await;
        assert_eq!(refused["error"]["data"]["kind"], "rate", "{refused}");
    }
}

#[tokio::test]
async fn a_new_tool_of_a_server_is_found_without_a_change_of_the_list() {
    let test_env = TestEnv::new();
    let gateway = gateway(&test_env, test_env.fixture("a").switch("--list-changed")).await;
    let mut client = gateway.initialized("local", json!({})).await;
    let query = json!({ "query": "added while running" });
    let before = ask(&mut client, "search_tools", query.clone()).await;
    let mut events = gateway.host.events();
    client.request("tools/call", through("a.grow", &json!({ "what": "tools" }))).await;
    let changed = async {
        while !matches!(events.recv().await.unwrap(), HostEvent::CatalogChanged { .. }) {}
    };
    timeout(TEST_TIMEOUT, changed).await.expect("a change in time");
    let after = ask(&mut client, "search_tools", query).await;
    let count = |found: &Value| found["searchedTools"].as_u64().unwrap();
    assert_eq!(count(&after), count(&before) + 1);
    assert!(after["tools"][0]["name"].as_str().unwrap().starts_with("a.grown_"), "{after}");
    client.request("ping", json!({})).await;
    assert!(client.waiting.is_empty(), "{:?}", client.waiting);
}
