//! Tests of successful and failed handshakes in both eras.

use innkeeper_testkit::fixture;
use serde_json::json;

use crate::stdio_client::{StdioClient, with_modern_meta};

#[test]
fn a_legacy_server_refuses_discovery_and_answers_initialize() {
    let mut client = StdioClient::start(&fixture("a").with("--instructions", "be kind"));
    let error = client.request(1, "server/discover", &with_modern_meta(json!({}), &json!({})));
    assert_eq!(error["error"]["code"], -32601);
    let response = client.initialize();
    assert_eq!(response["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(response["result"]["serverInfo"]["name"], "a");
    assert_eq!(response["result"]["instructions"], "be kind");
    assert!(response["result"]["capabilities"]["prompts"].is_object());
    assert_eq!(client.close_and_wait(), Some(0));
}

#[test]
fn a_modern_server_refuses_initialize_and_says_what_it_speaks() {
    let mut client = StdioClient::start(&fixture("a").with("--era", "modern"));
    let error = client.initialize();
    assert_eq!(error["error"]["code"], -32022);
    assert_eq!(error["error"]["data"]["supported"], json!(["2026-07-28"]));
    let discovered = client.request(1, "server/discover", &with_modern_meta(json!({}), &json!({})));
    assert_eq!(discovered["result"]["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(discovered["result"]["resultType"], "complete");
    let info = &discovered["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(info["name"], "a");
}

#[test]
fn a_modern_server_wants_its_members_in_every_request() {
    let mut client = StdioClient::start(&fixture("a").with("--era", "modern"));
    let bare = client.request(1, "tools/list", &json!({}));
    assert_eq!(bare["error"]["code"], -32602);
    let mut params = with_modern_meta(json!({}), &json!({}));
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let other = client.request(2, "tools/list", &params);
    assert_eq!(other["error"]["code"], -32022);
    assert_eq!(other["error"]["data"]["requested"], "2099-01-01");
    let listed = client.request(3, "tools/list", &with_modern_meta(json!({}), &json!({})));
    assert_eq!(listed["result"]["cacheScope"], "private");
    assert_eq!(listed["result"]["ttlMs"], 0);
}

#[test]
fn a_dual_server_speaks_both_eras() {
    let mut client = StdioClient::start(&fixture("a").with("--era", "dual"));
    let discovered = client.request(1, "server/discover", &json!({}));
    assert!(discovered["result"].is_object());
    assert!(client.initialize()["result"].is_object());
    let old = client.request(2, "tools/list", &json!({}));
    assert!(old["result"].get("resultType").is_none());
    let new = client.request(3, "tools/list", &with_modern_meta(json!({}), &json!({})));
    assert_eq!(new["result"]["resultType"], "complete");
}

#[test]
fn nothing_but_a_ping_is_answered_before_the_handshake() {
    let mut client = StdioClient::start(&fixture("a"));
    assert_eq!(client.request(1, "tools/list", &json!({}))["error"]["code"], -32600);
    client.assert_silent();
}

#[test]
fn the_revision_answered_is_the_one_asked_for_on_the_command_line() {
    for revision in ["2024-11-05", "1999-12-31", ""] {
        let mut client = StdioClient::start(&fixture("a").with("--revision", revision));
        assert_eq!(client.initialize()["result"]["protocolVersion"], revision);
    }
    let mut client =
        StdioClient::start(&fixture("a").with("--era", "modern").with("--revision", "2099-01-01"));
    let discovered = client.request(1, "server/discover", &json!({}));
    assert_eq!(discovered["result"]["supportedVersions"], json!(["2099-01-01"]));
}

#[test]
fn discovery_can_be_silent_or_fail_with_any_code() {
    let mut client =
        StdioClient::start(&fixture("a").with("--era", "dual").switch("--silent-discover"));
    client.post(1, "server/discover", &json!({}));
    assert_eq!(client.initialize()["id"], "init");
    let mut client =
        StdioClient::start(&fixture("a").with("--era", "dual").with("--discover-error", -32099));
    let response = client.request(1, "server/discover", &json!({}));
    assert_eq!(response["error"]["code"], -32099);
}

#[test]
fn a_late_discovery_poisons_the_handshake_and_is_answered_all_the_same() {
    let delayed =
        fixture("a").with("--era", "dual").with("--discover-delay", 50).switch("--poison");
    let mut client = StdioClient::start(&delayed);
    client.post(1, "server/discover", &json!({}));
    let error = client.initialize();
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!("init"), &json!(-32022)));
    let discovered = client.next_message();
    assert_eq!(discovered["id"], 1);
    assert!(discovered["result"].is_object());
}

#[test]
fn initialize_can_hang_fail_come_twice_or_be_of_wrong_types() {
    let mut client = StdioClient::start(&fixture("a").switch("--hang-init"));
    client.post(1, "initialize", &json!({}));
    client.assert_silent();
    let mut client = StdioClient::start(&fixture("a").with("--init-error", -32603));
    assert_eq!(client.initialize()["error"]["code"], -32603);
    let mut client = StdioClient::start(&fixture("a").switch("--init-twice"));
    assert_eq!(client.initialize(), client.next_message());
    let mut client = StdioClient::start(&fixture("a").switch("--wrong-init"));
    assert!(client.initialize()["result"]["protocolVersion"].is_number());
}

#[test]
fn a_delayed_initialize_lets_other_answers_pass() {
    let mut client = StdioClient::start(&fixture("a").with("--init-delay", 100));
    client.post(1, "initialize", &json!({}));
    client.assert_silent();
    assert_eq!(client.next_message()["id"], 1);
}

#[test]
fn a_server_can_ask_before_the_handshake_and_lie_about_its_name() {
    let mut client =
        StdioClient::start(&fixture("a").switch("--early-request").with("--server-name", "b"));
    assert_eq!(client.next_message()["method"], "roots/list");
    assert_eq!(client.initialize()["result"]["serverInfo"]["name"], "b");
}

#[test]
fn a_client_is_pinged_once_initialized() {
    let mut client =
        StdioClient::start_legacy(&fixture("a").switch("--ping-client").with("--ping-count", 3));
    for _ in 0..3 {
        assert_eq!(client.next_message()["method"], "ping");
    }
}
