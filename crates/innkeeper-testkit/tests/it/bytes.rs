//! Lines no client can take as they are.

use innkeeper_testkit::{Fixture, fx};
use serde_json::{Value, json};

use crate::talk::Talk;

fn line(fixture: &Fixture) -> Vec<u8> {
    let mut talk = Talk::legacy(fixture);
    talk.post_call(7, "a.b", &json!({}));
    talk.line()
}

fn malformed(kind: &str) -> Vec<u8> {
    line(&fx("a").with("--malformed", kind))
}

fn parsed(kind: &str) -> Value {
    serde_json::from_slice(&malformed(kind)).unwrap()
}

fn is_json(line: &[u8]) -> bool {
    serde_json::from_slice::<Value>(line).is_ok()
}

#[test]
fn malformed_replies_that_are_json_break_the_envelope() {
    let none = parsed("nojsonrpc");
    assert!(none.get("jsonrpc").is_none() && none["result"].is_object());
    let both = parsed("both");
    assert!(both["result"].is_object() && both["error"].is_object());
    let neither = parsed("neither");
    assert!(neither.get("result").is_none() && neither.get("error").is_none());
    assert_eq!(parsed("batch")[0]["id"], 7);
    assert_eq!(parsed("stringid")["id"], "7");
    assert!(parsed("floatid")["id"].is_f64());
    let wrong = parsed("wrongcase");
    assert!(wrong["Result"].is_object() && wrong.get("id").is_none());
}

#[test]
fn malformed_replies_that_are_json_have_no_tool_result() {
    assert!(parsed("resultnull")["result"].is_null());
    assert!(parsed("notobject")["result"].is_string());
    assert!(parsed("wrongtypes")["result"]["content"].is_string());
}

#[test]
fn malformed_replies_that_are_not_json() {
    assert!(std::str::from_utf8(&malformed("notutf8")).is_err());
    assert!(malformed("nul").starts_with(b"\0\0\0{"));
    assert_eq!(malformed("pretty"), b"{\n");
    for kind in ["truncated", "nobody"] {
        assert!(!is_json(&malformed(kind)), "{kind}");
    }
    assert!(String::from_utf8(malformed("truncated")).unwrap().contains(r#""id":7"#));
    assert!(!String::from_utf8(malformed("nobody")).unwrap().contains(r#""id""#));
    assert!(String::from_utf8(malformed("bignumber")).unwrap().contains("1e999"));
    let twice = String::from_utf8(malformed("duplicatekey")).unwrap();
    assert_eq!(twice.matches(r#""result":"#).count(), 2);
    let deep = malformed("deep");
    assert_eq!(deep.iter().filter(|byte| **byte == b'[').count(), 100_000);
}

#[test]
fn the_handshake_is_well_formed_whatever_calls_are() {
    let mut talk = Talk::start(&fx("a").with("--malformed", "nojsonrpc"));
    assert_eq!(talk.initialize()["jsonrpc"], "2.0");
    let list = talk.request(1, "tools/list", &json!({}));
    assert_eq!(list["jsonrpc"], "2.0");
}

#[test]
fn lines_can_end_with_crlf_and_start_with_a_mark() {
    let mut talk = Talk::start(&fx("a").switch("--crlf").switch("--bom"));
    talk.post(1, "ping", &json!({}));
    let first = talk.line();
    assert!(first.starts_with(b"\xef\xbb\xbf{") && first.ends_with(b"}\r\n"));
    talk.post(2, "ping", &json!({}));
    assert!(talk.line().starts_with(b"{"), "only the stream starts with a mark");
}

#[test]
fn chunks_together_are_the_whole_line() {
    let chunked = line(&fx("a").with("--chunk", 3).with("--chunk-delay", 1));
    assert_eq!(chunked, line(&fx("a")));
}

#[test]
fn noise_comes_before_every_response() {
    let mut talk = Talk::start(&fx("a").switch("--bad-json"));
    for id in 1..3 {
        talk.post(id, "ping", &json!({}));
        assert!(!is_json(&talk.line()));
        assert_eq!(talk.message()["id"], id);
    }
    for noisy in [fx("a").with("--noise", 30), fx("a").switch("--bad-json").with("--noise", 30)] {
        let mut talk = Talk::start(&noisy);
        talk.post(1, "ping", &json!({}));
        for _ in 0..30 {
            assert!(!is_json(&talk.line()));
        }
        assert_eq!(talk.message()["id"], 1);
    }
}

#[test]
fn an_answer_can_stall_half_way_or_follow_an_endless_line() {
    assert_eq!(line(&fx("a").with("--stall", 50)), line(&fx("a")));
    let mut talk = Talk::legacy(&fx("a").with("--endless-line", 200_000));
    talk.post_call(1, "a.b", &json!({}));
    assert_eq!(talk.line().len(), 200_001);
    assert_eq!(talk.message()["id"], 1);
}
