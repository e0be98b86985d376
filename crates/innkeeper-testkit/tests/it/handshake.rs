//! Starting a conversation in both eras, and failing to.

use innkeeper_testkit::fx;
use serde_json::json;

use crate::talk::{Talk, modern};

#[test]
fn a_legacy_server_refuses_discovery_and_answers_initialize() {
    let mut talk = Talk::start(&fx("a").with("--instructions", "be kind"));
    let refusal = talk.request(1, "server/discover", &modern(json!({}), &json!({})));
    assert_eq!(refusal["error"]["code"], -32601);
    let answer = talk.initialize();
    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(answer["result"]["serverInfo"]["name"], "a");
    assert_eq!(answer["result"]["instructions"], "be kind");
    assert!(answer["result"]["capabilities"]["prompts"].is_object());
    assert_eq!(talk.end(), Some(0));
}

#[test]
fn a_modern_server_refuses_initialize_and_says_what_it_speaks() {
    let mut talk = Talk::start(&fx("a").with("--era", "modern"));
    let refusal = talk.initialize();
    assert_eq!(refusal["error"]["code"], -32022);
    assert_eq!(refusal["error"]["data"]["supported"], json!(["2026-07-28"]));
    let found = talk.request(1, "server/discover", &modern(json!({}), &json!({})));
    assert_eq!(found["result"]["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(found["result"]["resultType"], "complete");
    let info = &found["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(info["name"], "a");
}

#[test]
fn a_modern_server_wants_its_members_in_every_request() {
    let mut talk = Talk::start(&fx("a").with("--era", "modern"));
    let bare = talk.request(1, "tools/list", &json!({}));
    assert_eq!(bare["error"]["code"], -32602);
    let mut params = modern(json!({}), &json!({}));
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let other = talk.request(2, "tools/list", &params);
    assert_eq!(other["error"]["code"], -32022);
    assert_eq!(other["error"]["data"]["requested"], "2099-01-01");
    let good = talk.request(3, "tools/list", &modern(json!({}), &json!({})));
    assert_eq!(good["result"]["cacheScope"], "private");
    assert_eq!(good["result"]["ttlMs"], 0);
}

#[test]
fn a_dual_server_speaks_both_eras() {
    let mut talk = Talk::start(&fx("a").with("--era", "dual"));
    let found = talk.request(1, "server/discover", &json!({}));
    assert!(found["result"].is_object());
    assert!(talk.initialize()["result"].is_object());
    let old = talk.request(2, "tools/list", &json!({}));
    assert!(old["result"].get("resultType").is_none());
    let new = talk.request(3, "tools/list", &modern(json!({}), &json!({})));
    assert_eq!(new["result"]["resultType"], "complete");
}

#[test]
fn nothing_but_a_ping_is_answered_before_the_handshake() {
    let mut talk = Talk::start(&fx("a"));
    assert_eq!(talk.request(1, "tools/list", &json!({}))["error"]["code"], -32600);
    talk.assert_silent();
}

#[test]
fn the_revision_answered_is_the_one_asked_for_on_the_command_line() {
    for revision in ["2024-11-05", "1999-12-31", ""] {
        let mut talk = Talk::start(&fx("a").with("--revision", revision));
        assert_eq!(talk.initialize()["result"]["protocolVersion"], revision);
    }
    let mut talk = Talk::start(&fx("a").with("--era", "modern").with("--revision", "2099-01-01"));
    let found = talk.request(1, "server/discover", &json!({}));
    assert_eq!(found["result"]["supportedVersions"], json!(["2099-01-01"]));
}

#[test]
fn discovery_can_be_silent_or_fail_with_any_code() {
    let mut talk = Talk::start(&fx("a").with("--era", "dual").switch("--silent-discover"));
    talk.post(1, "server/discover", &json!({}));
    assert_eq!(talk.initialize()["id"], "init");
    let mut talk = Talk::start(&fx("a").with("--era", "dual").with("--discover-error", -32099));
    let answer = talk.request(1, "server/discover", &json!({}));
    assert_eq!(answer["error"]["code"], -32099);
}

#[test]
fn a_late_discovery_poisons_the_handshake_and_is_answered_all_the_same() {
    let late = fx("a").with("--era", "dual").with("--discover-delay", 50).switch("--poison");
    let mut talk = Talk::start(&late);
    talk.post(1, "server/discover", &json!({}));
    let refusal = talk.initialize();
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!("init"), &json!(-32022)));
    let found = talk.message();
    assert_eq!(found["id"], 1);
    assert!(found["result"].is_object());
}

#[test]
fn initialize_can_hang_fail_come_twice_or_be_of_wrong_types() {
    let mut talk = Talk::start(&fx("a").switch("--hang-init"));
    talk.post(1, "initialize", &json!({}));
    talk.assert_silent();
    let mut talk = Talk::start(&fx("a").with("--init-error", -32603));
    assert_eq!(talk.initialize()["error"]["code"], -32603);
    let mut talk = Talk::start(&fx("a").switch("--init-twice"));
    assert_eq!(talk.initialize(), talk.message());
    let mut talk = Talk::start(&fx("a").switch("--wrong-init"));
    assert!(talk.initialize()["result"]["protocolVersion"].is_number());
}

#[test]
fn a_delayed_initialize_lets_other_answers_pass() {
    let mut talk = Talk::start(&fx("a").with("--init-delay", 100));
    talk.post(1, "initialize", &json!({}));
    talk.assert_silent();
    assert_eq!(talk.message()["id"], 1);
}

#[test]
fn a_server_can_ask_before_the_handshake_and_lie_about_its_name() {
    let mut talk = Talk::start(&fx("a").switch("--early-request").with("--server-name", "b"));
    assert_eq!(talk.message()["method"], "roots/list");
    assert_eq!(talk.initialize()["result"]["serverInfo"]["name"], "b");
}

#[test]
fn a_client_is_pinged_once_initialized() {
    let mut talk = Talk::legacy(&fx("a").switch("--ping-client").with("--ping-count", 3));
    for _ in 0..3 {
        assert_eq!(talk.message()["method"], "ping");
    }
}
