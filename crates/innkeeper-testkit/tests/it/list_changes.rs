//! Tests of changing lists and resources.

use innkeeper_testkit::fixture;
use serde_json::{Value, json};

use crate::stdio_client::{StdioClient, result_text, with_modern_meta};

#[test]
fn growing_and_shrinking_change_the_list_and_say_so() {
    let mut client = StdioClient::start_legacy(&fixture("a").switch("--list-changed"));
    assert_eq!(client.call(1, "grow", &json!({}))["method"], "notifications/tools/list_changed");
    let grown: Vec<String> = serde_json::from_str(result_text(&client.next_message())).unwrap();
    let list = client.request(2, "tools/list", &json!({}));
    assert_eq!(list["result"]["tools"].as_array().unwrap().len(), grown.len());
    assert_eq!(client.call(3, grown.last().unwrap(), &json!({}))["id"], 3);
    client.post_call(4, "shrink", &json!({}));
    assert_eq!(client.next_message()["method"], "notifications/tools/list_changed");
    let shrunk: Vec<String> = serde_json::from_str(result_text(&client.next_message())).unwrap();
    assert_eq!(shrunk[..], grown[..grown.len() - 1]);
    assert_eq!(client.call(5, grown.last().unwrap(), &json!({}))["error"]["code"], -32602);
}

#[test]
fn prompts_and_resources_change_too() {
    let mut client = StdioClient::start_legacy(&fixture("a").switch("--list-changed"));
    for list_name in ["prompts", "resources"] {
        let notification = client.call(1, "grow", &json!({"what": list_name}));
        assert_eq!(notification["method"], format!("notifications/{list_name}/list_changed"));
        let _ = client.next_message();
        let list = client.request(2, &format!("{list_name}/list"), &json!({}));
        assert_eq!(list["result"][list_name].as_array().unwrap().len(), 3);
    }
}

#[test]
fn a_change_can_be_notified_many_times_or_after_every_list() {
    let burst = fixture("a").switch("--list-changed").with("--list-changed-burst", 200);
    let mut client = StdioClient::start_legacy(&burst);
    client.post_call(1, "grow", &json!({}));
    for _ in 0..200 {
        assert_eq!(client.next_message()["method"], "notifications/tools/list_changed");
    }
    assert_eq!(client.next_message()["id"], 1);
    let mut client = StdioClient::start_legacy(&fixture("a").switch("--relist-loop"));
    for id in 0..3 {
        assert_eq!(client.request(id, "tools/list", &json!({}))["id"], id);
        assert_eq!(client.next_message()["method"], "notifications/tools/list_changed");
    }
}

#[test]
fn a_modern_client_is_notified_only_of_what_it_subscribed_to() {
    let fixture = fixture("a").with("--era", "modern").switch("--list-changed").switch("--touch");
    let mut client = StdioClient::start(&fixture);
    let call = |name: &str, arguments: Value| {
        with_modern_meta(json!({"name": name, "arguments": arguments}), &json!({}))
    };
    let unheard = client.request(1, "tools/call", &call("grow", json!({})));
    assert_eq!(unheard["id"], 1);
    let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["fx://a/static"]});
    let listen = with_modern_meta(json!({"notifications": filter}), &json!({}));
    let acknowledged = client.request(77, "subscriptions/listen", &listen);
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    let tag = |message: &Value| {
        message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].clone()
    };
    assert_eq!(tag(&acknowledged), 77);
    let response = client.request(2, "tools/call", &call("grow", json!({})));
    assert_eq!(
        (response["method"].as_str(), tag(&response)),
        (Some("notifications/tools/list_changed"), json!(77),)
    );
    assert_eq!(client.next_message()["id"], 2);
    let prompts = call("grow", json!({"what": "prompts"}));
    assert_eq!(client.request(22, "tools/call", &prompts)["id"], 22);
    let other = call("touch", json!({"uri": "fx://shared"}));
    assert_eq!(client.request(23, "tools/call", &other)["id"], 23);
    let touch = call("touch", json!({"uri": "fx://a/static"}));
    let response = client.request(3, "tools/call", &touch);
    assert_eq!(response["params"]["uri"], "fx://a/static");
    assert_eq!(client.next_message()["id"], 3);
    client.notify("notifications/cancelled", &json!({"requestId": 77}));
    assert_eq!(client.request(4, "tools/call", &touch)["id"], 4, "the stream is closed");
}

#[test]
fn a_legacy_client_is_notified_of_the_resources_it_subscribed_to() {
    let mut client = StdioClient::start_legacy(&fixture("a").switch("--touch"));
    let touch = json!({"uri": "fx://shared"});
    assert_eq!(client.call(1, "touch", &touch)["id"], 1);
    let _ = client.request(2, "resources/subscribe", &touch);
    assert_eq!(client.call(3, "touch", &touch)["method"], "notifications/resources/updated");
}

#[test]
fn listening_can_be_unknown() {
    let mut client =
        StdioClient::start(&fixture("a").with("--era", "modern").switch("--no-listen"));
    let response =
        client.request(1, "subscriptions/listen", &with_modern_meta(json!({}), &json!({})));
    assert_eq!(response["error"]["code"], -32601);
}
