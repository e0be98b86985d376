//! Lists and resources that change while the server runs.

use innkeeper_testkit::fx;
use serde_json::{Value, json};

use crate::talk::{Talk, modern, text};

#[test]
fn growing_and_shrinking_change_the_list_and_say_so() {
    let mut talk = Talk::legacy(&fx("a").switch("--list-changed"));
    assert_eq!(talk.call(1, "grow", &json!({}))["method"], "notifications/tools/list_changed");
    let grown: Vec<String> = serde_json::from_str(text(&talk.message())).unwrap();
    let list = talk.request(2, "tools/list", &json!({}));
    assert_eq!(list["result"]["tools"].as_array().unwrap().len(), grown.len());
    assert_eq!(talk.call(3, grown.last().unwrap(), &json!({}))["id"], 3);
    talk.post_call(4, "shrink", &json!({}));
    assert_eq!(talk.message()["method"], "notifications/tools/list_changed");
    let shrunk: Vec<String> = serde_json::from_str(text(&talk.message())).unwrap();
    assert_eq!(shrunk[..], grown[..grown.len() - 1]);
    assert_eq!(talk.call(5, grown.last().unwrap(), &json!({}))["error"]["code"], -32602);
}

#[test]
fn prompts_and_resources_change_too() {
    let mut talk = Talk::legacy(&fx("a").switch("--list-changed"));
    for what in ["prompts", "resources"] {
        let told = talk.call(1, "grow", &json!({"what": what}));
        assert_eq!(told["method"], format!("notifications/{what}/list_changed"));
        drop(talk.message());
        let list = talk.request(2, &format!("{what}/list"), &json!({}));
        assert_eq!(list["result"][what].as_array().unwrap().len(), 3);
    }
}

#[test]
fn a_change_can_be_told_many_times_or_after_every_list() {
    let burst = fx("a").switch("--list-changed").with("--list-changed-burst", 200);
    let mut talk = Talk::legacy(&burst);
    talk.post_call(1, "grow", &json!({}));
    for _ in 0..200 {
        assert_eq!(talk.message()["method"], "notifications/tools/list_changed");
    }
    assert_eq!(talk.message()["id"], 1);
    let mut talk = Talk::legacy(&fx("a").switch("--relist-loop"));
    for id in 0..3 {
        assert_eq!(talk.request(id, "tools/list", &json!({}))["id"], id);
        assert_eq!(talk.message()["method"], "notifications/tools/list_changed");
    }
}

#[test]
fn a_modern_client_hears_only_what_it_listens_for() {
    let fixture = fx("a").with("--era", "modern").switch("--list-changed").switch("--touch");
    let mut talk = Talk::start(&fixture);
    let call = |name: &str, arguments: Value| {
        modern(json!({"name": name, "arguments": arguments}), &json!({}))
    };
    let unheard = talk.request(1, "tools/call", &call("grow", json!({})));
    assert_eq!(unheard["id"], 1);
    let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["fx://a/static"]});
    let listen = modern(json!({"notifications": filter}), &json!({}));
    let acknowledged = talk.request(77, "subscriptions/listen", &listen);
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    let tag = |message: &Value| {
        message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].clone()
    };
    assert_eq!(tag(&acknowledged), 77);
    let told = talk.request(2, "tools/call", &call("grow", json!({})));
    assert_eq!(
        (told["method"].as_str(), tag(&told)),
        (Some("notifications/tools/list_changed"), json!(77),)
    );
    assert_eq!(talk.message()["id"], 2);
    let prompts = call("grow", json!({"what": "prompts"}));
    assert_eq!(talk.request(22, "tools/call", &prompts)["id"], 22);
    let other = call("touch", json!({"uri": "fx://shared"}));
    assert_eq!(talk.request(23, "tools/call", &other)["id"], 23);
    let touch = call("touch", json!({"uri": "fx://a/static"}));
    let told = talk.request(3, "tools/call", &touch);
    assert_eq!(told["params"]["uri"], "fx://a/static");
    assert_eq!(talk.message()["id"], 3);
    talk.notify("notifications/cancelled", &json!({"requestId": 77}));
    assert_eq!(talk.request(4, "tools/call", &touch)["id"], 4, "the stream is closed");
}

#[test]
fn a_legacy_client_hears_of_the_resources_it_subscribed_to() {
    let mut talk = Talk::legacy(&fx("a").switch("--touch"));
    let touch = json!({"uri": "fx://shared"});
    assert_eq!(talk.call(1, "touch", &touch)["id"], 1);
    drop(talk.request(2, "resources/subscribe", &touch));
    assert_eq!(talk.call(3, "touch", &touch)["method"], "notifications/resources/updated");
}

#[test]
fn listening_can_be_unknown() {
    let mut talk = Talk::start(&fx("a").with("--era", "modern").switch("--no-listen"));
    let answer = talk.request(1, "subscriptions/listen", &modern(json!({}), &json!({})));
    assert_eq!(answer["error"]["code"], -32601);
}
