//! Tests of tool calls: results, delays, duplicates.

use innkeeper_testkit::{fixture, read_call_log};
use serde_json::{Value, json};

use crate::stdio_client::{StdioClient, result_text};

#[test]
fn the_default_tools_do_what_they_say() {
    let mut client = StdioClient::start_legacy(&fixture("a").env("FX_COLOUR", "blue"));
    assert_eq!(result_text(&client.call(1, "echo", &json!({"message": "naïve 😀"}))), "naïve 😀");
    let sum = client.call(2, "add", &json!({"a": 1, "b": 2.5}));
    assert_eq!(
        (result_text(&sum), &sum["result"]["structuredContent"]["sum"]),
        ("3.5", &json!(3.5))
    );
    assert_eq!(result_text(&client.call(3, "a.b", &json!({}))), "a.b");
    assert_eq!(client.call(4, "fail", &json!({}))["result"]["isError"], true);
    let response = client.call(5, "env", &json!({"name": "FX_COLOUR"}));
    let started: Value = serde_json::from_str(result_text(&response)).unwrap();
    assert_eq!(started["env"], json!({"FX_COLOUR": "blue"}));
    assert_eq!(started["argv"][2], "a");
    assert_eq!(started["cwd"], std::env::current_dir().unwrap().display().to_string());
    assert_eq!(result_text(&client.call(6, "big", &json!({"bytes": 1_048_576}))).len(), 1_048_576);
    assert_eq!(result_text(&client.call(7, "pid", &json!({}))), client.child.id().to_string());
    assert_eq!(result_text(&client.call(8, "sleep", &json!({"ms": 1}))), "slept");
    assert_eq!(client.call(9, "no such tool", &json!({}))["error"]["code"], -32602);
}

#[test]
fn read_is_read_only_and_reads_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.txt");
    std::fs::write(&file, "content").unwrap();
    let mut client = StdioClient::start_legacy(&fixture("a"));
    assert_eq!(
        result_text(&client.call(1, "read", &json!({"path": file.display().to_string()}))),
        "content"
    );
    let missing_file = directory.path().join("b.txt").display().to_string();
    assert_eq!(client.call(2, "read", &json!({"path": missing_file}))["result"]["isError"], true);
    let list = client.request(3, "tools/list", &json!({}));
    let tools = list["result"]["tools"].as_array().unwrap();
    let read = tools.iter().find(|tool| tool["name"] == "read").unwrap();
    assert_eq!(read["annotations"]["readOnlyHint"], true);
}

#[test]
fn slow_calls_run_at_the_same_time() {
    let mut client = StdioClient::start_legacy(&fixture("a").with("--slow", 200));
    let start = std::time::SystemTime::now();
    for id in 0..20 {
        client.post_call(id, "a.b", &json!({}));
    }
    for id in 0..20 {
        assert_eq!(client.next_message()["id"], id);
    }
    let took = start.elapsed().unwrap().as_millis();
    assert!((200..4000).contains(&took), "{took} ms");
}

#[test]
fn a_hanging_call_is_never_answered() {
    let mut client = StdioClient::start_legacy(&fixture("a").switch("--hang-calls"));
    client.post_call(1, "a.b", &json!({}));
    client.assert_silent();
}

#[test]
fn a_cancelled_call_is_answered_only_by_a_server_that_ignores_it() {
    for (ignores, fixture) in
        [(false, fixture("a")), (true, fixture("a").switch("--ignore-cancel"))]
    {
        let mut client = StdioClient::start_legacy(&fixture);
        client.post_call(1, "sleep", &json!({"ms": 150}));
        client.notify("notifications/cancelled", &json!({"requestId": 1}));
        client.post_call(2, "sleep", &json!({"ms": 200}));
        assert_eq!(client.next_message()["id"], if ignores { 1 } else { 2 });
    }
}

#[test]
fn a_server_can_crash_on_the_nth_call_with_a_code_or_a_signal() {
    use std::os::unix::process::ExitStatusExt;
    let mut client = StdioClient::start_legacy(&fixture("a").with("--crash-after", 2));
    assert_eq!(result_text(&client.call(1, "a.b", &json!({}))), "a.b");
    client.post_call(2, "a.b", &json!({}));
    assert_eq!(client.wait().0.code(), Some(3));
    let mut client = StdioClient::start_legacy(&fixture("a").switch("--crash-signal"));
    client.post_call(1, "a.b", &json!({}));
    assert_eq!(client.wait().0.signal(), Some(9));
}

#[test]
fn answers_can_come_out_of_order_twice_and_unasked() {
    let mut client = StdioClient::start_legacy(&fixture("a").with("--out-of-order", 3));
    for id in 1..=4 {
        client.post_call(id, "a.b", &json!({}));
    }
    let ids: Vec<Value> = (0..4).map(|_| client.next_message()["id"].clone()).collect();
    assert_eq!(ids, [3, 2, 1, 4], "the fourth is let go after a while");
    let mut client =
        StdioClient::start_legacy(&fixture("a").switch("--dup-reply").switch("--unknown-id"));
    let stray = client.call(1, "a.b", &json!({}));
    assert!(stray["id"].as_u64().unwrap() > 1 << 40);
    assert_eq!(
        (&client.next_message()["id"], &client.next_message()["id"]),
        (&json!(1), &json!(1))
    );
}

#[test]
fn the_tally_notes_every_run_and_answers_with_the_fault_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tally");
    let fixture = fixture("a").with("--tally", path.display());
    let mut client = StdioClient::start_legacy(&fixture);
    let arguments = |id: u64, fault: &str| json!({"id": id, "fault": fault});
    assert_eq!(result_text(&client.call(1, "tally", &json!({"id": 70}))), "70");
    assert_eq!(client.call(2, "tally", &arguments(71, "failure"))["result"]["isError"], true);
    assert_eq!(client.call(3, "tally", &arguments(72, "error"))["error"]["message"], "72");
    assert_eq!(result_text(&client.call(4, "tally", &arguments(73, "twice"))), "73");
    assert_eq!(result_text(&client.next_message()), "73");
    assert!(client.call(5, "tally", &arguments(74, "stranger"))["id"].as_u64().unwrap() > 1 << 40);
    assert_eq!(result_text(&client.next_message()), "74");
    assert!(client.call(6, "tally", &arguments(75, "malformed")).get("result").is_none());
    client.post_call(7, "tally", &arguments(76, "late"));
    client.notify("notifications/cancelled", &json!({"requestId": 7}));
    assert_eq!(result_text(&client.next_message()), "76", "although it is not wanted any more");
    assert!(client.call(8, "tally", &arguments(77, "odd")).get("error").is_some());
    client.post_call(9, "tally", &arguments(78, "crash"));
    assert_eq!(client.wait().0.code(), Some(3));
    assert_eq!(
        result_text(&StdioClient::start_legacy(&fixture).call(1, "tally", &json!({"id": 79}))),
        "79"
    );
    assert_eq!(read_call_log(&path), Vec::from_iter(70..80));
}

#[test]
fn progress_comes_before_the_answer_and_only_when_wanted() {
    let mut client =
        StdioClient::start_legacy(&fixture("a").with("--progress", 2).with("--progress-delay", 5));
    assert_eq!(client.call(1, "a.b", &json!({}))["id"], 1);
    let params = json!({"name": "a.b", "_meta": {"progressToken": "p"}});
    client.post(2, "tools/call", &params);
    for step in 1..=2 {
        let progress = client.next_message();
        assert_eq!(progress["method"], "notifications/progress");
        assert_eq!(progress["params"], json!({"progressToken": "p", "progress": step, "total": 2}));
    }
    assert_eq!(client.next_message()["id"], 2);
    let mut client =
        StdioClient::start_legacy(&fixture("a").with("--progress", 1).switch("--bad-progress"));
    client.post(3, "tools/call", &params);
    assert_ne!(client.next_message()["params"]["progressToken"], "p");
}

#[test]
fn notifications_can_flood_and_cancel_what_is_not_theirs() {
    let mut client =
        StdioClient::start_legacy(&fixture("a").with("--log-flood", 100).switch("--cancel-ours"));
    client.post_call(1, "a.b", &json!({}));
    for number in 0..100 {
        assert_eq!(client.next_message()["params"]["data"], number);
    }
    assert_eq!(client.next_message()["params"]["requestId"], 1);
    assert_eq!(client.next_message()["id"], 1);
}

#[test]
fn results_can_be_errors_huge_odd_or_against_their_schema() {
    let mut client = StdioClient::start_legacy(&fixture("a").with("--server-error", -32000));
    assert_eq!(client.call(1, "a.b", &json!({}))["error"]["code"], -32000);
    let mut client = StdioClient::start_legacy(&fixture("a").with("--huge", 300_000));
    assert_eq!(result_text(&client.call(1, "a.b", &json!({}))).len(), 300_000);
    let mut client = StdioClient::start_legacy(&fixture("a").switch("--bad-structured"));
    let sum = client.call(1, "add", &json!({"a": 1, "b": 2}));
    assert!(sum["result"]["structuredContent"]["sum"].is_string());
    let mut client = StdioClient::start_legacy(&fixture("a").switch("--odd-result"));
    client.post_call(1, "a.b", &json!({}));
    let line = String::from_utf8(client.next_line()).unwrap();
    for literal in ["123456789012345678901234567890", "hologram", "vendorField", "1.10e-7", "😀"]
    {
        assert!(line.contains(literal), "{literal}: {line}");
    }
}
