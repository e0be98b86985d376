//! Tests of paged and invalid lists.

use innkeeper_testkit::{Fixture, fixture};
use serde_json::{Value, json};

use crate::stdio_client::StdioClient;

fn list_tools(fixture: &Fixture) -> Value {
    StdioClient::start_legacy(fixture).request(1, "tools/list", &json!({}))
}

fn item_names(response: &Value) -> Vec<&str> {
    let tools = response["result"]["tools"].as_array().unwrap();
    tools.iter().filter_map(|tool| tool["name"].as_str()).collect()
}

#[test]
fn pages_together_are_the_whole_list() {
    let complete_list = list_tools(&fixture("a"));
    for pages in [2, 3, 20] {
        let mut client = StdioClient::start_legacy(
            &fixture("a").with("--pages", pages).switch("--empty-cursor"),
        );
        let mut read = Vec::new();
        let mut params = json!({});
        for page in 1.. {
            let response = client.request(page, "tools/list", &params);
            read.extend(response["result"]["tools"].as_array().unwrap().clone());
            match response["result"].get("nextCursor") {
                Some(cursor) => {
                    assert_eq!(cursor == "", page == 1, "only the first cursor is empty");
                    params = json!({"cursor": cursor});
                }
                None => {
                    assert_eq!(page, pages);
                    break;
                }
            }
        }
        assert_eq!(Value::Array(read), complete_list["result"]["tools"]);
    }
}

#[test]
fn a_cursor_nobody_gave_is_refused() {
    let mut client = StdioClient::start_legacy(&fixture("a").with("--pages", 2));
    let response = client.request(1, "tools/list", &json!({"cursor": "page-9"}));
    assert_eq!(response["error"]["code"], -32602);
}

#[test]
fn a_list_can_go_on_for_ever() {
    let mut client = StdioClient::start_legacy(&fixture("a").switch("--same-cursor"));
    for id in 0..3 {
        let response = client.request(id, "tools/list", &json!({"cursor": "again"}));
        assert_eq!(response["result"]["nextCursor"], "again");
    }
    let mut client = StdioClient::start_legacy(&fixture("a").switch("--endless-cursor"));
    let mut cursors = vec![json!("page-1")];
    for id in 0..3 {
        let params = json!({"cursor": cursors.last().unwrap()});
        let response = client.request(id, "tools/list", &params);
        let next = response["result"]["nextCursor"].clone();
        assert!(!cursors.contains(&next));
        assert_eq!(item_names(&response).len(), 1);
        cursors.push(next);
    }
}

#[test]
fn cursors_can_be_large() {
    let response = list_tools(&fixture("a").with("--pages", 2).with("--big-cursor", 100_000));
    assert!(response["result"]["nextCursor"].as_str().unwrap().len() > 100_000);
}

#[test]
fn some_tools_of_a_list_can_be_wrong() {
    let bad = list_tools(&fixture("a").switch("--bad-tool"));
    assert!(bad["result"]["tools"][1]["name"].is_number());
    assert!(item_names(&bad).contains(&"add"), "the good ones stay");
    let duplicate = list_tools(&fixture("a").switch("--dup-tool"));
    assert_eq!(item_names(&duplicate).iter().filter(|name| **name == "echo").count(), 2);
    let odd = list_tools(&fixture("a").switch("--odd-names"));
    assert!(item_names(&odd).contains(&""));
    assert!(item_names(&odd).iter().any(|name| name.len() == 10 * 1024));
    assert!(item_names(&odd).iter().any(|name| name.contains('\u{1b}')));
    let many_tools = list_tools(&fixture("a").with("--many-tools", 1000));
    assert_eq!(item_names(&many_tools).len(), 1000 + item_names(&list_tools(&fixture("a"))).len());
}

#[test]
fn a_whole_list_can_be_wrong_late_or_missing() {
    assert!(list_tools(&fixture("a").switch("--wrong-list"))["result"]["tools"].is_object());
    assert_eq!(list_tools(&fixture("a").with("--list-error", -32603))["error"]["code"], -32603);
    let mut client = StdioClient::start_legacy(&fixture("a").switch("--hang-lists"));
    client.post(1, "prompts/list", &json!({}));
    client.assert_silent();
    let mut client = StdioClient::start_legacy(&fixture("a").with("--list-delay", 50));
    client.post(1, "tools/list", &json!({}));
    client.assert_silent();
    assert_eq!(client.next_message()["id"], 1);
}

#[test]
fn what_a_server_does_not_have_is_not_declared() {
    let bare = fixture("a").switch("--no-prompts").switch("--no-resources");
    let mut client = StdioClient::start(&bare);
    let capabilities = client.initialize()["result"]["capabilities"].clone();
    assert_eq!(capabilities, json!({"tools": {}}));
    let empty = client.request(1, "prompts/list", &json!({}));
    assert_eq!(empty["result"]["prompts"], json!([]));
    let mut client = StdioClient::start_legacy(&bare.switch("--undeclared"));
    for method in ["prompts/list", "resources/list", "resources/templates/list"] {
        assert_eq!(client.request(1, method, &json!({}))["error"]["code"], -32601);
    }
    assert!(client.request(1, "tools/list", &json!({}))["result"].is_object());
}

#[test]
fn what_is_declared_can_be_unknown_all_the_same() {
    let mut client = StdioClient::start(&fixture("a").switch("--declares-but-32601"));
    assert!(client.initialize()["result"]["capabilities"]["prompts"].is_object());
    assert_eq!(client.request(1, "prompts/list", &json!({}))["error"]["code"], -32601);
}

#[test]
fn tools_can_be_given_as_text_or_as_a_file() {
    let tools = json!([{"name": "mine", "inputSchema": {"type": "object"}}]);
    assert_eq!(item_names(&list_tools(&fixture("a").with("--tools", &tools))), ["mine"]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tools.json");
    std::fs::write(&file, json!({"tools": tools}).to_string()).unwrap();
    let mut client = StdioClient::start_legacy(&fixture("a").with("--tools", file.display()));
    let response = client.call(1, "mine", &json!({"x": 1}));
    let echoed: Value = serde_json::from_str(crate::stdio_client::result_text(&response)).unwrap();
    assert_eq!(echoed, json!({"tool": "mine", "arguments": {"x": 1}}));
}

#[test]
fn prompts_resources_and_templates_can_be_given_as_well() {
    let (prompt, resource) = (json!([{"name": "mine"}]), json!([{"uri": "my://a", "name": "a"}]));
    let template = json!([{"uriTemplate": "my://{b}", "name": "b"}]);
    let server = fixture("a").with("--prompts", &prompt).with("--resources", &resource);
    let mut client = StdioClient::start_legacy(&server.with("--templates", &template));
    for (method, member, items) in [
        ("prompts/list", "prompts", prompt),
        ("resources/list", "resources", resource),
        ("resources/templates/list", "resourceTemplates", template),
    ] {
        assert_eq!(client.request(1, method, &json!({}))["result"][member], items);
    }
}

#[test]
fn prompts_and_resources_belong_to_the_server_that_lists_them() {
    let mut client = StdioClient::start_legacy(&fixture("a"));
    let arguments = json!({"name": "Ada", "style": "warmly"});
    let params = json!({"name": "greet", "arguments": arguments});
    let prompt = client.request(1, "prompts/get", &params);
    assert_eq!(prompt["result"]["messages"][0]["content"]["text"], "a: greet Ada, warmly");
    let missing = client.request(2, "prompts/get", &json!({"name": "greet"}));
    assert_eq!(missing["error"]["code"], -32602);
    for (uri, text) in [
        ("fx://a/static", "a: fx://a/static, reading 1"),
        ("fx://shared", "a: fx://shared, reading 2"),
        ("fx://a/item/7", "a: item 7"),
        ("fx://a/static", "a: fx://a/static, reading 4"),
    ] {
        let read = client.request(3, "resources/read", &json!({"uri": uri}));
        assert_eq!(read["result"]["contents"][0]["text"], text);
    }
    let unknown = client.request(4, "resources/read", &json!({"uri": "fx://b/static"}));
    assert_eq!(unknown["error"]["code"], -32002);
}

#[test]
fn values_of_an_argument_start_with_the_typed_text() {
    let completions = json!({"name": ["Ada", "Adam", "Bob"]});
    let mut client = StdioClient::start_legacy(&fixture("a").with("--completions", completions));
    let mut complete = |id, name: &str, value: &str| {
        let params = json!({
            "ref": {"type": "ref/prompt", "name": "greet"},
            "argument": {"name": name, "value": value},
        });
        client.request(id, "completion/complete", &params)["result"]["completion"].clone()
    };
    assert_eq!(complete(1, "name", "Ad"), json!({"values": ["Ada", "Adam"]}));
    assert_eq!(complete(2, "other", ""), json!({"values": []}));
}
