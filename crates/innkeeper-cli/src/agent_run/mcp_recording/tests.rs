//! What a client and a server say becomes records.

use serde_json::{Value, json};

use super::*;

/// A recorded connection with its run.
struct Fixture {
    mcp: McpRecording,
    recording: Recording,
    connection: RecordedConnection,
}

impl Fixture {
    fn new() -> Self {
        let mut mcp = McpRecording::default();
        let connection = mcp.connect(vec!["serve".to_owned()], empty_object());
        Self { mcp, recording: Recording::default(), connection }
    }

    fn client(&mut self, message: &Value) {
        let line = message.to_string();
        let line = line.as_bytes();
        self.mcp.on_client_line(&mut self.connection, &mut self.recording, 7, line);
    }

    fn server(&mut self, message: &Value) {
        let line = message.to_string();
        let line = line.as_bytes();
        self.mcp.on_server_line(&mut self.connection, &mut self.recording, 9, line);
    }

    fn exchange(&mut self, id: u64, method: &str, params: &Value, result: &Value) {
        self.client(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        self.server(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }
}

#[test]
fn calls_have_what_was_sent_and_what_came_back_and_progress_without_its_token() {
    let mut run = Fixture::new();
    let params = json!({"name": "find", "arguments": {"q": 1.50}, "_meta": {"progressToken": 4},
        "requestState": "s"});
    run.client(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}));
    let progress = json!({"progressToken": 4, "progress": 1});
    run.server(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}));
    run.server(&json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [], "isError": true}}));
    run.client(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "lose"}}));
    let error = json!({"code": -32602, "message": "no", "data": [1]});
    run.server(&json!({"jsonrpc": "2.0", "id": 2, "error": error}));
    let calls = serde_json::to_value(run.recording.calls()).unwrap();
    assert_eq!(
        calls,
        json!([
            {"name": "find", "arguments": {"q": 1.5}, "round": 0, "begin_ms": 7, "end_ms": 9,
                "progress": [{"ms": 2, "params": {"progress": 1}}],
                "outcome": {"tool_error": {"content": [], "isError": true}},
                "params": {"requestState": "s"}},
            {"name": "lose", "arguments": {}, "round": 0, "begin_ms": 7, "end_ms": 9,
                "ended_before": 1, "outcome": {"error": error}},
        ])
    );
}

#[test]
fn answers_are_kept_in_their_order_and_definitions_once() {
    let mut run = Fixture::new();
    let tools = |names: &[&str]| {
        let tools: Vec<_> =
            names.iter().map(|name| json!({"name": name, "inputSchema": {}})).collect();
        json!({"tools": tools, "ttlMs": 5})
    };
    run.exchange(1, "tools/list", &json!({"_meta": {"a": 1}}), &tools(&["a"]));
    run.exchange(2, "tools/call", &json!({"name": "a"}), &json!({}));
    run.server(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    run.exchange(3, "tools/list", &json!({}), &tools(&["a", "b"]));
    run.client(&json!({"jsonrpc": "2.0", "id": 4, "method": "subscriptions/listen"}));
    let Fixture { mut mcp, recording, connection } = run;
    mcp.on_end(connection);
    let names: Vec<_> = recording.tools().iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(names, ["a", "b"]);
    let (served, _) = mcp.into_records();
    let rest = json!({"ttlMs": 5});
    assert_eq!(
        serde_json::to_value(&served).unwrap(),
        json!([{
            "arguments": ["serve"],
            "server_config": {},
            "answers": [
                {"method": "tools/list", "outcome": {"result": rest}, "tools": [0]},
                {"method": "tools/list", "outcome": {"result": rest}, "tools": [0, 1]},
                {"method": "subscriptions/listen", "outcome": {"abandoned": {}}},
            ],
            "notifications": [{"method": "notifications/tools/list_changed", "requests": 0,
                "begun": 1, "calls": 1, "answers": 1}],
        }])
    );
}

#[test]
fn a_question_belongs_to_the_call_that_ends_next_and_has_the_answer_of_the_client() {
    let mut run = Fixture::new();
    run.client(
        &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a"}}),
    );
    let params = json!({"message": "Which?"});
    run.server(&json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create",
        "params": params}));
    run.client(&json!({"jsonrpc": "2.0", "id": 1, "result": {"action": "decline"}}));
    run.server(&json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    assert_eq!(run.recording.ended_calls(), 1);
    let (_, questions) = run.mcp.into_records();
    assert_eq!(
        serde_json::to_value(&questions).unwrap(),
        json!([{"server": "serve", "method": "elicitation/create", "params": params,
            "answer": {"action": "decline"}, "call": 0}])
    );
}

#[test]
fn a_command_line_that_starts_again_has_one_record_unless_its_configuration_differs() {
    let mut mcp = McpRecording::default();
    mcp.connect(vec!["serve".to_owned()], empty_object());
    mcp.connect(vec!["serve".to_owned(), "--names".to_owned()], empty_object());
    mcp.connect(vec!["serve".to_owned()], empty_object());
    let other = RawValue::from_string(r#"{"servers":{}}"#.to_owned()).unwrap();
    mcp.connect(vec!["serve".to_owned()], other);
    assert_eq!(mcp.into_records().0.len(), 3);
}
