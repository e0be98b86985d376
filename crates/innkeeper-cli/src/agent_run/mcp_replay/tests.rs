//! A client gets what was recorded, and a miss for everything else.

use innkeeper_agent::golden::Recording;
use serde_json::{Value, json};

use super::super::mcp_recording::McpRecording;
use super::*;

/// Records what a client and a server said, and returns the golden.
fn recorded(lines: &[(bool, Value)]) -> Arc<Golden> {
    let (mut mcp, mut recording) = (McpRecording::default(), Recording::default());
    let mut connection = mcp.connect(vec!["serve".to_owned()], empty_object());
    for (is_client, message) in lines {
        let mut message = message.clone();
        message["jsonrpc"] = "2.0".into();
        let line = message.to_string();
        let line = line.as_bytes();
        match is_client {
            true => mcp.on_client_line(&mut connection, &mut recording, 1, line),
            false => mcp.on_server_line(&mut connection, &mut recording, 1, line),
        }
    }
    let (served, questions) = mcp.into_records();
    let golden = json!({
        "version": 1, "test_name": "t", "origin": "recorded", "program": "p",
        "recorded_at": "2026-11-29T05:40:00Z",
        "input": {"server_config": {}, "system_prompt": "", "provider": "", "model": "", "api": "",
            "base_url": "", "user_prompt": "", "namespace": "", "streaming": false, "settings": {},
            "agent": {"command": ["agent"], "base_urls": {}}},
        "golden_output": {}, "provider_responses": [],
        "tools": recording.tools(), "tool_calls": recording.calls(), "served": served,
        "questions": questions,
    });
    Arc::new(Golden::from_json(&golden.to_string()).unwrap())
}

struct Client {
    golden: Arc<Golden>,
    connection: ReplayedConnection,
    servers: ServersState,
}

impl Client {
    fn new(golden: &Arc<Golden>) -> Self {
        let mut servers = ServersState::new(golden);
        let arguments = ["serve".to_owned()];
        let connection = ReplayedConnection::new(golden.clone(), &mut servers, &arguments).unwrap();
        Self { golden: golden.clone(), connection, servers }
    }

    /// Sends a message; returns the messages that come back.
    fn send(&mut self, message: &Value) -> Result<Vec<Value>, String> {
        let mut message = message.clone();
        message["jsonrpc"] = "2.0".into();
        let (text, mut out) = (message.to_string(), Vec::new());
        let sent = self.connection.on_line(&mut self.servers, text.as_bytes(), &mut out);
        for call in self.connection.take_answered() {
            self.connection.end_call(&mut self.servers, &call, &mut out);
        }
        let lines = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let messages = lines.map(|line| {
            let mut message: Value = serde_json::from_slice(line).unwrap();
            message.as_object_mut().unwrap().remove("jsonrpc");
            message
        });
        let messages = messages.collect();
        sent.map(|()| messages).map_err(|miss| miss.to_string())
    }

    fn unused(&self) -> Vec<String> {
        self.servers.unused(&self.golden)
    }
}

fn call(id: u64, query: u64) -> Value {
    let meta = json!({"progressToken": id});
    json!({"id": id, "method": "tools/call",
        "params": {"name": "find", "arguments": {"q": query}, "_meta": meta}})
}

/// Proves: G67
#[test]
fn a_client_gets_the_lists_that_held_and_the_results_of_recorded_calls() {
    let changed = json!({"method": "notifications/tools/list_changed"});
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let initialize =
        json!({"id": 0, "method": "initialize", "params": {"clientInfo": {"version": "1"}}});
    let golden = recorded(&[
        (true, initialize.clone()),
        (false, json!({"id": 0, "result": {"protocolVersion": "2025-11-25"}})),
        (true, json!({"method": "notifications/initialized"})),
        (true, json!({"id": 1, "method": "tools/list"})),
        (false, json!({"id": 1, "result": {"tools": [tool("find")], "ttlMs": 3}})),
        (true, call(2, 1)),
        (
            false,
            json!({"method": "notifications/progress",
            "params": {"progressToken": 2, "progress": 1}}),
        ),
        (false, changed.clone()),
        (false, json!({"id": 2, "result": {"content": []}})),
        (true, json!({"id": 3, "method": "tools/list"})),
        (false, json!({"id": 3, "result": {"tools": [tool("find"), tool("new")], "ttlMs": 3}})),
    ]);
    let mut client = Client::new(&golden);
    let mut newer = initialize;
    newer["params"]["clientInfo"]["version"] = "2".into();
    let result = json!({"id": 0, "result": {"protocolVersion": "2025-11-25"}});
    assert_eq!(client.send(&newer), Ok(vec![result]));
    assert_eq!(client.send(&json!({"method": "notifications/initialized"})), Ok(vec![]));
    assert_eq!(
        client.send(&json!({"id": 7, "method": "ping"})),
        Ok(vec![json!({"id": 7, "result": {}})])
    );
    let list = json!({"id": 8, "method": "tools/list", "params": {"_meta": {"x": 1}}});
    let listed = |tools: &[Value]| vec![json!({"id": 8, "result": {"ttlMs": 3, "tools": tools}})];
    assert_eq!(client.send(&list), Ok(listed(&[tool("find")])));
    let progress =
        json!({"method": "notifications/progress", "params": {"progress": 1, "progressToken": 9}});
    let result = json!({"id": 9, "result": {"content": []}});
    assert_eq!(client.send(&call(9, 1)), Ok(vec![changed, progress, result]));
    for _ in 0..2 {
        assert_eq!(client.send(&list), Ok(listed(&[tool("find"), tool("new")])));
    }
    assert_eq!(client.unused(), [""; 0]);
}

/// Proves: G64
#[test]
fn a_call_that_was_not_recorded_is_refused_by_name_with_the_nearest() {
    let golden = recorded(&[
        (true, call(2, 1)),
        (false, json!({"id": 2, "error": {"code": -32602, "message": "no", "data": 1}})),
    ]);
    let mut client = Client::new(&golden);
    let miss = client.send(&call(2, 5)).unwrap_err();
    assert_eq!(
        miss,
        "no recording answers the call of `find` after request 0; the nearest is call 1 (`find`): \
         `/arguments/q` was 1, is now 5"
    );
    let error = json!({"code": -32602, "message": "no", "data": 1});
    assert_eq!(client.send(&call(3, 1)), Ok(vec![json!({"id": 3, "error": error})]));
    let miss = client.send(&json!({"id": 4, "method": "prompts/list"})).unwrap_err();
    assert!(miss.starts_with("no recording answers the request `prompts/list`"), "{miss}");
}

#[test]
fn a_question_comes_before_the_result_and_its_answer_must_be_the_recorded_one() {
    let question =
        json!({"id": 1, "method": "elicitation/create", "params": {"message": "Which?"}});
    let golden = recorded(&[
        (true, call(5, 1)),
        (false, question.clone()),
        (true, json!({"id": 1, "result": {"action": "decline"}})),
        (false, json!({"id": 5, "result": {"content": []}})),
    ]);
    let mut client = Client::new(&golden);
    assert_eq!(client.send(&call(2, 1)), Ok(vec![question]));
    let answer = json!({"id": 1, "result": {"action": "decline"}});
    let result = json!({"id": 2, "result": {"content": []}});
    assert_eq!(client.send(&answer), Ok(vec![result]));
    let mut client = Client::new(&golden);
    client.send(&call(2, 1)).unwrap();
    let miss = client.send(&json!({"id": 1, "result": {"action": "cancel"}})).unwrap_err();
    assert!(miss.contains("`/action` was \"decline\", is now \"cancel\""), "{miss}");
}

#[test]
fn what_an_agent_reads_on_purpose_counts_as_asked_for_and_a_list_does_not() {
    let golden = recorded(&[
        (true, json!({"id": 1, "method": "tools/list"})),
        (false, json!({"id": 1, "result": {"tools": []}})),
        (true, json!({"id": 2, "method": "resources/read", "params": {"uri": "a:b"}})),
        (false, json!({"id": 2, "result": {"contents": []}})),
    ]);
    assert_eq!(ServersState::new(&golden).unused(&golden), ["`innkeeper serve`"]);
    assert_eq!(Client::new(&golden).unused(), ["`resources/read` of `innkeeper serve`"]);
}

#[test]
fn what_is_no_message_and_a_batch_get_an_error() {
    let golden = recorded(&[]);
    let mut client = Client::new(&golden);
    for line in ["{oops", r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#] {
        let mut out = Vec::new();
        client.connection.on_line(&mut client.servers, line.as_bytes(), &mut out).unwrap();
        let response: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!((&response["id"], &response["error"]["code"]), (&Value::Null, &json!(-32600)));
    }
}

#[test]
fn a_command_line_is_found_by_its_arguments_then_by_its_file_names_then_by_its_turn() {
    let mut golden = (*recorded(&[])).clone();
    let arguments = |words: &str| words.split(' ').map(str::to_owned).collect::<Vec<_>>();
    golden.served.push(golden.served[0].clone());
    golden.served[0].arguments = arguments("serve --config /a/one.json");
    golden.served[1].arguments = arguments("serve --config /a/two.json");
    let found = |golden: &Golden, words: &[&str]| {
        let mut servers = ServersState::new(golden);
        words.iter().map(|words| servers.connect(golden, &arguments(words))).collect::<Vec<_>>()
    };
    let [one, two] = ["serve --config /a/one.json", "serve --config /a/two.json"];
    assert_eq!(found(&golden, &[two, one, two]), [Some(1), Some(0), Some(1)]);
    let there = ["serve --config /b/two.json", "serve --config /b/one.json"];
    assert_eq!(found(&golden, &there), [Some(1), Some(0)]);
    assert_eq!(found(&golden, &["serve", "serve", "serve"]), [Some(0), Some(1), None]);
    golden.served.truncate(1);
    assert_eq!(found(&golden, &["serve", "serve"]), [Some(0), Some(0)]);
}
