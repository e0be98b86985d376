//! Lists in pages, and lists that are wrong.

use innkeeper_testkit::{Fixture, fx};
use serde_json::{Value, json};

use crate::talk::Talk;

fn tools(fixture: &Fixture) -> Value {
    Talk::legacy(fixture).request(1, "tools/list", &json!({}))
}

fn names(answer: &Value) -> Vec<&str> {
    let tools = answer["result"]["tools"].as_array().unwrap();
    tools.iter().filter_map(|tool| tool["name"].as_str()).collect()
}

#[test]
fn pages_together_are_the_whole_list() {
    let whole = tools(&fx("a"));
    for pages in [2, 3, 20] {
        let mut talk = Talk::legacy(&fx("a").with("--pages", pages).switch("--empty-cursor"));
        let mut read = Vec::new();
        let mut params = json!({});
        for page in 1.. {
            let answer = talk.request(page, "tools/list", &params);
            read.extend(answer["result"]["tools"].as_array().unwrap().clone());
            match answer["result"].get("nextCursor") {
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
        assert_eq!(Value::Array(read), whole["result"]["tools"]);
    }
}

#[test]
fn a_cursor_nobody_gave_is_refused() {
    let mut talk = Talk::legacy(&fx("a").with("--pages", 2));
    let answer = talk.request(1, "tools/list", &json!({"cursor": "page-9"}));
    assert_eq!(answer["error"]["code"], -32602);
}

#[test]
fn a_list_can_go_on_for_ever() {
    let mut talk = Talk::legacy(&fx("a").switch("--same-cursor"));
    for id in 0..3 {
        let answer = talk.request(id, "tools/list", &json!({"cursor": "again"}));
        assert_eq!(answer["result"]["nextCursor"], "again");
    }
    let mut talk = Talk::legacy(&fx("a").switch("--endless-cursor"));
    let mut cursors = vec![json!("page-1")];
    for id in 0..3 {
        let params = json!({"cursor": cursors.last().unwrap()});
        let answer = talk.request(id, "tools/list", &params);
        let next = answer["result"]["nextCursor"].clone();
        assert!(!cursors.contains(&next));
        assert_eq!(names(&answer).len(), 1);
        cursors.push(next);
    }
}

#[test]
fn cursors_can_be_large() {
    let answer = tools(&fx("a").with("--pages", 2).with("--big-cursor", 100_000));
    assert!(answer["result"]["nextCursor"].as_str().unwrap().len() > 100_000);
}

#[test]
fn some_tools_of_a_list_can_be_wrong() {
    let bad = tools(&fx("a").switch("--bad-tool"));
    assert!(bad["result"]["tools"][1]["name"].is_number());
    assert!(names(&bad).contains(&"add"), "the good ones stay");
    let twice = tools(&fx("a").switch("--dup-tool"));
    assert_eq!(names(&twice).iter().filter(|name| **name == "echo").count(), 2);
    let odd = tools(&fx("a").switch("--odd-names"));
    assert!(names(&odd).contains(&""));
    assert!(names(&odd).iter().any(|name| name.len() == 10 * 1024));
    assert!(names(&odd).iter().any(|name| name.contains('\u{1b}')));
    let many = tools(&fx("a").with("--many-tools", 1000));
    assert_eq!(names(&many).len(), 1000 + names(&tools(&fx("a"))).len());
}

#[test]
fn a_whole_list_can_be_wrong_late_or_missing() {
    assert!(tools(&fx("a").switch("--wrong-list"))["result"]["tools"].is_object());
    assert_eq!(tools(&fx("a").with("--list-error", -32603))["error"]["code"], -32603);
    let mut talk = Talk::legacy(&fx("a").switch("--hang-lists"));
    talk.post(1, "prompts/list", &json!({}));
    talk.assert_silent();
    let mut talk = Talk::legacy(&fx("a").with("--list-delay", 50));
    talk.post(1, "tools/list", &json!({}));
    talk.assert_silent();
    assert_eq!(talk.message()["id"], 1);
}

#[test]
fn what_a_server_does_not_have_is_not_declared() {
    let bare = fx("a").switch("--no-prompts").switch("--no-resources");
    let mut talk = Talk::start(&bare);
    let capabilities = talk.initialize()["result"]["capabilities"].clone();
    assert_eq!(capabilities, json!({"tools": {}}));
    let empty = talk.request(1, "prompts/list", &json!({}));
    assert_eq!(empty["result"]["prompts"], json!([]));
    let mut talk = Talk::legacy(&bare.switch("--undeclared"));
    for method in ["prompts/list", "resources/list", "resources/templates/list"] {
        assert_eq!(talk.request(1, method, &json!({}))["error"]["code"], -32601);
    }
    assert!(talk.request(1, "tools/list", &json!({}))["result"].is_object());
}

#[test]
fn what_is_declared_can_be_unknown_all_the_same() {
    let mut talk = Talk::start(&fx("a").switch("--declares-but-32601"));
    assert!(talk.initialize()["result"]["capabilities"]["prompts"].is_object());
    assert_eq!(talk.request(1, "prompts/list", &json!({}))["error"]["code"], -32601);
}

#[test]
fn tools_can_be_given_as_text_or_as_a_file() {
    let given = json!([{"name": "mine", "inputSchema": {"type": "object"}}]);
    assert_eq!(names(&tools(&fx("a").with("--tools", &given))), ["mine"]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tools.json");
    std::fs::write(&file, json!({"tools": given}).to_string()).unwrap();
    let mut talk = Talk::legacy(&fx("a").with("--tools", file.display()));
    let answer = talk.call(1, "mine", &json!({"x": 1}));
    let said: Value = serde_json::from_str(crate::talk::text(&answer)).unwrap();
    assert_eq!(said, json!({"tool": "mine", "arguments": {"x": 1}}));
}

#[test]
fn prompts_resources_and_templates_can_be_given_as_well() {
    let (prompt, resource) = (json!([{"name": "mine"}]), json!([{"uri": "my://a", "name": "a"}]));
    let template = json!([{"uriTemplate": "my://{b}", "name": "b"}]);
    let server = fx("a").with("--prompts", &prompt).with("--resources", &resource);
    let mut talk = Talk::legacy(&server.with("--templates", &template));
    for (method, member, given) in [
        ("prompts/list", "prompts", prompt),
        ("resources/list", "resources", resource),
        ("resources/templates/list", "resourceTemplates", template),
    ] {
        assert_eq!(talk.request(1, method, &json!({}))["result"][member], given);
    }
}

#[test]
fn prompts_and_resources_belong_to_the_server_that_lists_them() {
    let mut talk = Talk::legacy(&fx("a"));
    let arguments = json!({"name": "Ada", "style": "warmly"});
    let params = json!({"name": "greet", "arguments": arguments});
    let greeting = talk.request(1, "prompts/get", &params);
    assert_eq!(greeting["result"]["messages"][0]["content"]["text"], "a: greet Ada, warmly");
    let missing = talk.request(2, "prompts/get", &json!({"name": "greet"}));
    assert_eq!(missing["error"]["code"], -32602);
    for (uri, text) in [
        ("fx://a/static", "a: fx://a/static, reading 1"),
        ("fx://shared", "a: fx://shared, reading 2"),
        ("fx://a/item/7", "a: item 7"),
        ("fx://a/static", "a: fx://a/static, reading 4"),
    ] {
        let read = talk.request(3, "resources/read", &json!({"uri": uri}));
        assert_eq!(read["result"]["contents"][0]["text"], text);
    }
    let unknown = talk.request(4, "resources/read", &json!({"uri": "fx://b/static"}));
    assert_eq!(unknown["error"]["code"], -32002);
}
