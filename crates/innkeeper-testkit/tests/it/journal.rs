//! Tests of the journal and of configuration entries.

use innkeeper_testkit::{Journal, ProcessTag, fixture, fixture_program, mcp_json};
use serde_json::json;

use crate::stdio_client::StdioClient;

#[test]
fn a_journal_has_the_life_and_the_messages_of_a_server_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    let mut client = StdioClient::start_legacy(&fixture("a").journal(&path).switch("--ask-roots"));
    let server_request = client.call(5, "echo", &json!({"message": "x"}));
    client.send(&json!({"jsonrpc": "2.0", "id": server_request["id"], "result": {"roots": []}}));
    let _ = client.next_message();
    let pid = client.child.id();
    assert_eq!(client.close_and_wait(), Some(0));
    let journal = Journal::read(&path);
    let events: Vec<&str> = journal.entries.iter().map(|entry| entry.event.as_str()).collect();
    assert_eq!(events, ["start", "recv", "recv", "recv", "recv", "stdin_eof", "exit"]);
    assert_eq!(journal.methods(), ["initialize", "notifications/initialized", "tools/call"]);
    assert_eq!(journal.count("tools/call"), 1);
    assert_eq!(journal.params("tools/call")[0]["arguments"], json!({"message": "x"}));
    assert_eq!(journal.responses()[0]["result"], json!({"roots": []}));
    assert_eq!(journal.pids(), [pid]);
    assert_eq!(journal.events("exit")[0].message["code"], 0);
    assert!(journal.entries.is_sorted_by_key(|entry| entry.ts_ms));
}

#[test]
fn servers_share_a_journal_and_are_distinguished() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    let mut both = ["a", "b"].map(|name| StdioClient::start_legacy(&fixture(name).journal(&path)));
    for id in 0..50 {
        for client in &mut both {
            client.post_call(id, "echo", &json!({"message": "y".repeat(10_000)}));
        }
    }
    for client in both {
        assert_eq!(client.close_and_wait(), Some(0));
    }
    let journal = Journal::read(&path);
    assert_eq!(journal.count("tools/call"), 100);
    assert_eq!(journal.for_server("a").count("tools/call"), 50);
    assert_eq!(journal.for_server("b").pids().len(), 1);
    assert!(Journal::read(&directory.path().join("none")).entries.is_empty());
}

#[test]
#[should_panic(expected = "`a` received {\"jsonrpc\":\"1.0\",")]
fn a_received_message_that_violates_the_schema_of_the_specification_fails_the_test() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    let mut client = StdioClient::start_legacy(&fixture("a").journal(&path));
    client.send(&json!({"jsonrpc": "1.0", "id": 5, "method": "ping"}));
    assert_eq!(client.close_and_wait(), Some(0));
    let _ = Journal::read(&path);
}

#[test]
fn what_was_received_is_kept_exactly() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    let sent = concat!(
        r#"{"jsonrpc":"2.0", "method":"x", "params":{"n":123456789012345678901234567890,"#,
        r#""message":"\u0041"}}"#,
    );
    let nested = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
    let mut command = fixture("a").journal(&path).command();
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let lines = format!("{sent}\nnot json \"at all\n{nested}\n");
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), lines.as_bytes()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let journal = Journal::read_unchecked(&path);
    let received = journal.events("recv");
    assert_eq!(received[0].raw, sent);
    assert_eq!(received[1].message, "not json \"at all");
    assert_eq!(received[2].raw, nested);
}

#[test]
fn configuration_text_starts_the_servers_it_was_made_from() {
    let tag = ProcessTag::new();
    let first = fixture("a").process_tag(&tag).with("--slow", 5).config_key("timeout", 0.2);
    let text = mcp_json([first, fixture("b")]);
    let names: Vec<&String> = text["servers"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(
        text["servers"]["a"],
        json!({
            "command": fixture_program().display().to_string(),
            "args": ["--name", "a", "--slow", "5"],
            "env": {"INNKEEPER_TEST_NONCE": tag.as_str()},
            "timeout": 0.2,
        })
    );
    assert_ne!(tag.as_str(), ProcessTag::new().as_str());
}
