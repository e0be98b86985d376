//! An endpoint that stores large results.

use std::time::Duration;

use innkeeper_gateway::{EndpointOptions, GatewayBuilder, GatewayOptions};
use innkeeper_host::config::LargeResults;
use innkeeper_testkit::Fixture;
use serde_json::{Value, json};

use crate::setup::{TestClient, TestEnv, TestGateway, text};

const LIMIT: u64 = 4_096;

async fn gateway_with(test_env: &TestEnv, server: Fixture, ttl: Duration) -> TestGateway {
    let endpoint = EndpointOptions {
        search: true,
        pinned: vec!["*".to_owned()],
        large_results: Some(LargeResults { bytes: LIMIT, ttl }),
        ..EndpointOptions::default()
    };
    let options = GatewayOptions { endpoint, ..GatewayOptions::default() };
    test_env.gateway_with(GatewayBuilder::new(options), [server]).await
}

async fn gateway(test_env: &TestEnv, server: Fixture) -> TestGateway {
    gateway_with(test_env, server, Duration::from_mins(10)).await
}

/// A text of many lines with characters of several bytes.
fn large_text() -> String {
    (0..1_000).map(|line| format!("line {line}: é€𝄞\r\n")).collect()
}

/// A server whose calls return one text block.
fn text_server(test_env: &TestEnv, text: &str) -> Fixture {
    let result = json!({ "content": [{ "type": "text", "text": text, "x": 1 }], "isError": true });
    test_env.fixture("a").with("--call-result", result)
}

/// Returns the links of a result.
fn links(result: &Value) -> Vec<Value> {
    let blocks = result["content"].as_array().unwrap().iter();
    blocks.filter(|block| block["type"] == "resource_link").cloned().collect()
}

async fn call(client: &mut TestClient) -> Value {
    let params = json!({ "name": "a.echo", "arguments": { "message": "" } });
    client.request("tools/call", params).await
}

/// Calls a tool of the stored results: its text, and the object that follows.
async fn query(client: &mut TestClient, name: &str, arguments: Value) -> (String, Value) {
    let params = json!({ "name": name, "arguments": arguments });
    let result = client.request("tools/call", params).await;
    assert_ne!(result["isError"], true, "{result}");
    let last = result["content"].as_array().unwrap().last().unwrap()["text"].as_str().unwrap();
    (text(&result), serde_json::from_str(last).unwrap())
}

async fn pages(client: &mut TestClient, uri: &Value, limit: u64) -> String {
    let (mut all, mut offset) = (String::new(), json!(0));
    while !offset.is_null() {
        let arguments = json!({ "uri": uri, "offset": offset, "limit": limit });
        let (page, place) = query(client, "read_result", arguments).await;
        assert_eq!(place["offset"], all.len());
        assert!(page.len() as u64 <= limit);
        all.push_str(&page);
        offset = place["nextOffset"].clone();
    }
    all
}

async fn reads_a_large_text(client: &mut TestClient, large: &str) {
    let result = call(client).await;
    assert_eq!(result["isError"], true);
    let head = text(&result);
    assert!(large.starts_with(&head) && head.len() > 2_000 && head.len() <= 2_048, "{head}");
    assert_eq!(result["content"][0]["x"], 1, "other members of the block stay");
    let link = &links(&result)[0];
    assert_eq!((&link["size"], &link["mimeType"]), (&json!(large.len()), &json!("text/plain")));
    let uri = &link["uri"];
    let notice = result["content"][1]["text"].as_str().unwrap();
    assert!(notice.contains(uri.as_str().unwrap()) && notice.contains("600 seconds"), "{notice}");
    assert_eq!(pages(client, uri, 1_001).await, large);
    let read = client.request("resources/read", json!({ "uri": uri })).await;
    assert_eq!(read["contents"], json!([{ "uri": uri, "mimeType": "text/plain", "text": large }]));
    let pattern = json!({ "uri": uri, "pattern": "^line 99[89]: ", "limit": 1 });
    let (_, found) = query(client, "search_result", pattern).await;
    let offset = large.find("line 998").unwrap();
    assert_eq!(found["matches"], json!([{ "offset": offset, "text": "line 998: é€𝄞\r" }]));
    let rest = json!({ "uri": uri, "pattern": "^line 99[89]: ", "offset": found["nextOffset"] });
    let (_, found) = query(client, "search_result", rest).await;
    assert_eq!(found["matches"][0]["offset"], large.find("line 999").unwrap());
    assert_eq!(found["nextOffset"], Value::Null);
}

#[tokio::test]
async fn a_client_of_each_era_reads_a_large_text_of_a_server_of_each_era() {
    let large = large_text();
    for era in ["legacy", "modern"] {
        let test_env = TestEnv::new();
        let server = text_server(&test_env, &large).with("--era", era);
        let gateway = gateway(&test_env, server).await;
        reads_a_large_text(&mut gateway.initialized("local", json!({})).await, &large).await;
        let mut client = gateway.modern("local", json!({}));
        reads_a_large_text(&mut client, &large).await;
        let uri = links(&call(&mut client).await)[0]["uri"].clone();
        let read = client.request("resources/read", json!({ "uri": uri })).await;
        assert!(read["ttlMs"].as_u64() > Some(0) && read["cacheScope"] == "private", "{read}");
    }
}

#[tokio::test]
async fn a_result_up_to_the_limit_is_equal_byte_for_byte() {
    let frame = r#"{"content":[{"type":"text","text":""}],"n":1.50}"#;
    let test_env = TestEnv::new();
    for (above, is_stored) in [(0, false), (1, true)] {
        let bytes = usize::try_from(LIMIT).unwrap() - frame.len() + above;
        // The text alone stays within the limit.
        let result = frame.replace(r#""text":"""#, &format!(r#""text":"{}""#, "x".repeat(bytes)));
        let server = test_env.fixture("a").with("--call-result-text", &result);
        let gateway = gateway(&test_env, server).await;
        let mut client = gateway.initialized("local", json!({})).await;
        let params = json!({ "name": "a.echo", "arguments": { "message": "" } });
        let id = client.start("tools/call", params).await;
        let line = client.line().await;
        assert_eq!(line, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
        assert!(!is_stored || result.len() as u64 == LIMIT + 1);
    }
    let at_limit = "x".repeat(usize::try_from(LIMIT).unwrap() - 2);
    for (text, count) in [(at_limit.clone(), 0), (format!("{at_limit}x"), 1)] {
        let gateway = gateway(&test_env, text_server(&test_env, &text)).await;
        let mut client = gateway.initialized("local", json!({})).await;
        assert_eq!(links(&call(&mut client).await).len(), count);
    }
}

#[tokio::test]
async fn a_large_structured_content_is_selected_byte_for_byte() {
    let items: Vec<String> = (0..500).map(|n| format!(r#"{{"n":{n}.50,"t":"\u00e9"}}"#)).collect();
    let structured =
        format!(r#"{{"items":[{}], "big":123456789012345678901234567890}}"#, items.join(","));
    let result = format!(
        r#"{{"content":[{{"type":"text","text":"small"}}],"structuredContent":{structured},"x":1}}"#
    );
    let test_env = TestEnv::new();
    let gateway =
        gateway(&test_env, test_env.fixture("a").with("--call-result-text", &result)).await;
    let mut client = gateway.initialized("local", json!({})).await;
    let list = client.request("tools/list", json!({})).await.to_string();
    assert!(list.contains("a.add") && !list.contains("outputSchema"), "{list}");
    let result = call(&mut client).await;
    assert_eq!((text(&result), &result["x"]), ("small".to_owned(), &json!(1)));
    assert!(result.get("structuredContent").is_none());
    assert!(structured.starts_with(result["content"][1]["text"].as_str().unwrap()));
    let uri = links(&result)[0]["uri"].clone();
    assert_eq!(pages(&mut client, &uri, 60_000).await, structured);
    let pointer = |pointer: &str| json!({ "uri": uri, "pointer": pointer });
    let (value, place) = query(&mut client, "select_result", pointer("/items/499")).await;
    assert_eq!(value, items[499]);
    assert_eq!(place["offset"], structured.find(&items[499]).unwrap());
    let (value, _) = query(&mut client, "select_result", pointer("/big")).await;
    assert_eq!(value, "123456789012345678901234567890");
    let limited = json!({ "uri": uri, "pointer": "/items", "limit": 100 });
    let (value, place) = query(&mut client, "select_result", limited).await;
    assert_eq!((&place["type"], &place["count"]), (&json!("array"), &json!(500)));
    let rest = json!({ "uri": uri, "offset": place["nextOffset"], "limit": 60_000 });
    let (rest, _) = query(&mut client, "read_result", rest).await;
    assert!(structured.ends_with(&rest) && structured.contains(&format!("{value}{rest}")));
}

#[tokio::test]
async fn a_result_with_many_large_texts_is_stored_as_a_whole() {
    for (count, stored) in [(8, 8), (9, 1)] {
        let blocks: Vec<Value> = (0..count)
            .map(|n| json!({ "type": "text", "text": format!("{n}{}", "x".repeat(1_000)) }))
            .chain([json!({ "type": "image", "data": "AA==", "mimeType": "image/png" })])
            .collect();
        let content = json!(blocks);
        let test_env = TestEnv::new();
        let server = test_env.fixture("a").with("--call-result", json!({ "content": content }));
        let gateway = gateway(&test_env, server).await;
        let mut client = gateway.initialized("local", json!({})).await;
        let result = call(&mut client).await;
        let links = links(&result);
        assert_eq!(links.len(), stored);
        assert!(result["content"].as_array().unwrap().contains(&blocks[count]), "{result}");
        let whole = pages(&mut client, &links[0]["uri"], 60_000).await;
        let expected = if stored == 1 {
            content.to_string()
        } else {
            blocks[0]["text"].as_str().unwrap().to_owned()
        };
        assert_eq!(whole, expected);
    }
}

#[tokio::test]
async fn a_text_of_exactly_its_share_of_the_limit_stays_in_the_result() {
    // A string in JSON has two quotes more.
    let share = "x".repeat(LIMIT as usize / 2 - 2);
    let larger = format!("{share}y");
    let content = json!([{ "type": "text", "text": share }, { "type": "text", "text": larger }]);
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").with("--call-result", json!({ "content": content }));
    let gateway = gateway(&test_env, server).await;
    let mut client = gateway.initialized("local", json!({})).await;
    let result = call(&mut client).await;
    let links = links(&result);
    assert_eq!(links.len(), 1);
    assert_eq!(result["content"][0], content[0]);
    assert_eq!(pages(&mut client, &links[0]["uri"], 60_000).await, larger);
}

#[tokio::test]
async fn a_text_with_half_a_character_is_stored_as_it_was_written() {
    let written = format!(r#""\ud800{}""#, "x".repeat(5_000));
    let result = format!(r#"{{"content":[{{"type":"text","text":{written}}}]}}"#);
    let test_env = TestEnv::new();
    let gateway =
        gateway(&test_env, test_env.fixture("a").with("--call-result-text", result)).await;
    let mut client = gateway.initialized("local", json!({})).await;
    let link = links(&call(&mut client).await)[0].clone();
    assert_eq!(link["mimeType"], "application/json");
    assert_eq!(pages(&mut client, &link["uri"], 60_000).await, written);
}

#[tokio::test]
async fn a_large_result_of_a_found_tool_is_stored() {
    let test_env = TestEnv::new();
    let gateway = gateway(&test_env, test_env.fixture("a")).await;
    let mut client = gateway.modern("local", json!({}));
    let arguments = json!({ "name": "a.big", "arguments": { "bytes": 100_000 } });
    let params = json!({ "name": "call_tool", "arguments": arguments });
    let result = client.request("tools/call", params).await;
    assert_eq!(result["resultType"], "complete");
    let uri = links(&result)[0]["uri"].clone();
    assert_eq!(pages(&mut client, &uri, 60_000).await, "x".repeat(100_000));
}

/// Attack: remote | a client reads the large result of another principal under its URI | the
/// responses are those to an unknown URI | Isolation
#[tokio::test]
async fn another_principal_does_not_read_a_result() {
    let test_env = TestEnv::new();
    let gateway = gateway(&test_env, text_server(&test_env, &large_text())).await;
    let mut ada = gateway.initialized("ada", json!({})).await;
    let uri = links(&call(&mut ada).await)[0]["uri"].as_str().unwrap().to_owned();
    let unknown = format!("{}{}", &uri[..uri.len() - 32], "0".repeat(32));
    let mut bob = gateway.initialized("bob", json!({})).await;
    let mut modern = gateway.modern("bob", json!({}));
    for client in [&mut bob, &mut modern] {
        let mut seen = Vec::new();
        for uri in [&uri, &unknown] {
            let mut responses = vec![client.respond("resources/read", json!({ "uri": uri })).await];
            for (name, key) in
                [("read_result", "x"), ("search_result", "pattern"), ("select_result", "pointer")]
            {
                let params = json!({ "name": name, "arguments": { "uri": uri, key: "" } });
                let response = client.respond("tools/call", params).await;
                assert_eq!(response["result"]["isError"], true, "{response}");
                responses.push(response);
            }
            let responses = responses.iter().map(|response| {
                let mut response = response.clone();
                response["id"] = Value::Null;
                response.to_string().replace(uri.as_str(), "URI")
            });
            seen.push(responses.collect::<Vec<_>>());
        }
        assert_eq!(seen[0], seen[1]);
        assert!(seen[0].iter().all(|response| response.contains("no stored result `URI`")));
    }
    assert_eq!(pages(&mut ada, &json!(uri), 60_000).await, large_text());
}

#[tokio::test]
async fn an_expired_result_is_an_error_that_says_so() {
    let test_env = TestEnv::new();
    let server = text_server(&test_env, &large_text());
    let gateway = gateway_with(&test_env, server, Duration::ZERO).await;
    let mut client = gateway.initialized("local", json!({})).await;
    let uri = links(&call(&mut client).await)[0]["uri"].clone();
    let response = client.respond("resources/read", json!({ "uri": uri })).await;
    assert_eq!(response["error"]["code"], -32002, "{response}");
    assert!(response["error"]["message"].as_str().unwrap().contains("expired"), "{response}");
}

#[tokio::test]
async fn the_tools_of_stored_results_report_problems_as_results() {
    let test_env = TestEnv::new();
    let gateway = gateway(&test_env, text_server(&test_env, &large_text())).await;
    let mut client = gateway.initialized("local", json!({})).await;
    let uri = links(&call(&mut client).await)[0]["uri"].clone();
    for (name, arguments, problem) in [
        ("read_result", json!({}), "missing field `uri`"),
        ("search_result", json!({ "uri": uri, "pattern": "(" }), "regular expression"),
        ("select_result", json!({ "uri": uri, "pointer": "/a" }), "not JSON"),
    ] {
        let params = json!({ "name": name, "arguments": arguments });
        let result = client.request("tools/call", params).await;
        assert_eq!(result["isError"], true, "{result}");
        assert!(text(&result).contains(problem), "{result}");
    }
}

#[tokio::test]
async fn a_server_without_resources_gets_a_client_that_can_read_results() {
    let test_env = TestEnv::new();
    let server = text_server(&test_env, &large_text()).switch("--no-resources");
    let gateway = gateway(&test_env, server).await;
    let mut client = gateway.modern("local", json!({}));
    let discovered = client.request("server/discover", json!({})).await;
    assert!(discovered["capabilities"]["resources"].is_object(), "{discovered}");
}
