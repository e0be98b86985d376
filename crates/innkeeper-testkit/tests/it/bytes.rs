//! Tests of malformed lines.

use innkeeper_testkit::{Fixture, fixture};
use serde_json::{Value, json};

use crate::stdio_client::StdioClient;

fn response_line(fixture: &Fixture) -> Vec<u8> {
    let mut client = StdioClient::start_legacy(fixture);
    client.post_call(7, "a.b", &json!({}));
    client.next_line()
}

fn malformed_reply(kind: &str) -> Vec<u8> {
    response_line(&fixture("a").with("--malformed", kind))
}

fn parsed_malformed_reply(kind: &str) -> Value {
    serde_json::from_slice(&malformed_reply(kind)).unwrap()
}

fn is_json(line: &[u8]) -> bool {
    serde_json::from_slice::<Value>(line).is_ok()
}

#[test]
fn malformed_replies_that_are_json_break_the_envelope() {
    let none = parsed_malformed_reply("nojsonrpc");
    assert!(none.get("jsonrpc").is_none() && none["result"].is_object());
    let both = parsed_malformed_reply("both");
    assert!(both["result"].is_object() && both["error"].is_object());
    let neither = parsed_malformed_reply("neither");
    assert!(neither.get("result").is_none() && neither.get("error").is_none());
    assert_eq!(parsed_malformed_reply("batch")[0]["id"], 7);
    assert_eq!(parsed_malformed_reply("stringid")["id"], "7");
    assert!(parsed_malformed_reply("floatid")["id"].is_f64());
    let wrong = parsed_malformed_reply("wrongcase");
    assert!(wrong["Result"].is_object() && wrong.get("id").is_none());
}

#[test]
fn malformed_replies_that_are_json_have_no_tool_result() {
    assert!(parsed_malformed_reply("resultnull")["result"].is_null());
    assert!(parsed_malformed_reply("notobject")["result"].is_string());
    assert!(parsed_malformed_reply("wrongtypes")["result"]["content"].is_string());
}

#[test]
fn malformed_replies_that_are_not_json() {
    assert!(std::str::from_utf8(&malformed_reply("notutf8")).is_err());
    assert!(malformed_reply("nul").starts_with(b"\0\0\0{"));
    assert_eq!(malformed_reply("pretty"), b"{\n");
    for kind in ["truncated", "nobody"] {
        assert!(!is_json(&malformed_reply(kind)), "{kind}");
    }
    assert!(String::from_utf8(malformed_reply("truncated")).unwrap().contains(r#""id":7"#));
    assert!(!String::from_utf8(malformed_reply("nobody")).unwrap().contains(r#""id""#));
    assert!(String::from_utf8(malformed_reply("bignumber")).unwrap().contains("1e999"));
    let duplicate_key = String::from_utf8(malformed_reply("duplicatekey")).unwrap();
    assert_eq!(duplicate_key.matches(r#""result":"#).count(), 2);
    let nested = malformed_reply("deep");
    assert_eq!(nested.iter().filter(|byte| **byte == b'[').count(), 100_000);
}

#[test]
fn the_handshake_is_well_formed_whatever_calls_are() {
    let mut client = StdioClient::start(&fixture("a").with("--malformed", "nojsonrpc"));
    assert_eq!(client.initialize()["jsonrpc"], "2.0");
    let list = client.request(1, "tools/list", &json!({}));
    assert_eq!(list["jsonrpc"], "2.0");
}

#[test]
fn lines_can_end_with_crlf_and_start_with_a_mark() {
    let mut client = StdioClient::start(&fixture("a").switch("--crlf").switch("--bom"));
    client.post(1, "ping", &json!({}));
    let first = client.next_line();
    assert!(first.starts_with(b"\xef\xbb\xbf{") && first.ends_with(b"}\r\n"));
    client.post(2, "ping", &json!({}));
    assert!(client.next_line().starts_with(b"{"), "only the stream starts with a mark");
}

#[test]
fn chunks_together_are_the_whole_line() {
    let chunked = response_line(&fixture("a").with("--chunk", 3).with("--chunk-delay", 1));
    assert_eq!(chunked, response_line(&fixture("a")));
}

#[test]
fn noise_comes_before_every_response() {
    let mut client = StdioClient::start(&fixture("a").switch("--bad-json"));
    for id in 1..3 {
        client.post(id, "ping", &json!({}));
        assert!(!is_json(&client.next_line()));
        assert_eq!(client.next_message()["id"], id);
    }
    for noisy in
        [fixture("a").with("--noise", 30), fixture("a").switch("--bad-json").with("--noise", 30)]
    {
        let mut client = StdioClient::start(&noisy);
        client.post(1, "ping", &json!({}));
        for _ in 0..30 {
            assert!(!is_json(&client.next_line()));
        }
        assert_eq!(client.next_message()["id"], 1);
    }
}

#[test]
fn an_answer_can_stall_half_way_or_follow_an_endless_line() {
    assert_eq!(response_line(&fixture("a").with("--stall", 50)), response_line(&fixture("a")));
    let mut client = StdioClient::start_legacy(&fixture("a").with("--endless-line", 200_000));
    client.post_call(1, "a.b", &json!({}));
    assert_eq!(client.next_line().len(), 200_001);
    assert_eq!(client.next_message()["id"], 1);
}
