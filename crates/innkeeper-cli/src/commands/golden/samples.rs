//! A golden for unit tests: three iterations with every kind of failure. It does not replay.

use innkeeper_agent::golden::{Golden, ToolRecord};
use serde_json::json;
use serde_json::value::RawValue;

/// The definition of the tool `notes.find`.
const DEFINITION: &str = r#"{"name":"find","description":"Finds a note.","inputSchema":{"type":"object","properties":{"q":{"type":"string"}}}}"#;

/// Returns a run of `gpt-4o` that finds one note, fails at another, is refused, and answers.
pub(super) fn sample() -> Golden {
    let definition = RawValue::from_string(DEFINITION.to_owned()).unwrap();
    let exchange = |iteration, response: serde_json::Value| {
        json!({
            "iteration": iteration,
            "request": {
                "method": "POST",
                "url": "https://api.openai.com/v1/chat/completions",
                "body": {"model": "gpt-4o"},
                "begin_ms": 100 * iteration,
            },
            "response": response,
        })
    };
    let http = |status: u16, end: serde_json::Value| {
        let chunks = [json!({"ms": 5, "text": "data: {}"}), json!({"ms": 6, "text": "\n\n"})];
        json!({"http": {"status": status, "ms": 4, "headers": [], "chunks": chunks, "end": end}})
    };
    let complete = || json!({"complete": {"ms": 7}});
    let mut answered = exchange(3, http(200, complete()));
    answered["token_usage"] =
        json!({"prompt_tokens": 30, "completion_tokens": 4, "total_tokens": 34});
    let lost = json!({"failed": {"ms": 9, "kind": "disconnected", "message": "reset by peer"}});
    let cut = json!({"failed": {"ms": 8, "kind": "disconnected", "message": "reset by peer"}});
    let responses = json!([
        exchange(1, http(429, complete())),
        exchange(1, http(200, complete())),
        exchange(2, lost),
        exchange(2, http(200, cut)),
        exchange(2, json!({"silent": {}})),
        exchange(2, http(200, complete())),
        answered,
    ]);
    let call = |name: &str, begin_ms: u64, outcome: serde_json::Value| {
        json!({"name": name, "arguments": {"q": "a"}, "round": 2, "begin_ms": begin_ms,
            "end_ms": begin_ms + 80, "outcome": outcome})
    };
    let failed = json!({"failed": {"class": "timeout", "message": "no answer within 80 ms"}});
    let text = json!({
        "version": 1,
        "test_name": "find_a_note",
        "origin": "recorded",
        "category": "error_recovery",
        "recorded_at": "2026-10-01T08:00:00Z",
        "program": concat!("innkeeper ", env!("CARGO_PKG_VERSION")),
        "input": {
            "server_config": {"servers": {"notes": {"command": "notes"}}},
            "system_prompt": "Be brief.",
            "provider": "openai",
            "model": "gpt-4o",
            "api": "openai-chat",
            "base_url": "https://api.openai.com/v1",
            "user_prompt": "Look for both notes.",
            "namespace": "",
            "streaming": true,
            "settings": {},
        },
        "golden_output": output(),
        "provider_responses": responses,
        "servers": {"notes": {"ready": true}, "mail": {"ready": false, "reason": "no such program"}},
        "tools": [{
            "name": "notes.find",
            "hash": ToolRecord::hash_of(&definition),
            "from_server": true,
            "definition": definition,
        }],
        "offers": [{"requests": 0, "calls": 0, "tools": [0]}],
        "tool_calls": [
            call("notes.find", 110, json!({"result": {"content": []}})),
            call("notes.find", 110, failed),
        ],
        "approvals": [
            {"tool": "notes.drop", "arguments": {}, "answer": {"denied": "not today"}},
        ],
    });
    Golden::from_json(&text.to_string()).unwrap()
}

fn output() -> serde_json::Value {
    let call = |iteration: u32, name: &str, id: &str, error: Option<&str>| {
        json!({
            "iteration": iteration,
            "tool_name": name,
            "arguments": {"q": "a"},
            "success": error.is_none(),
            "result": error.is_none().then(|| json!({"content": [{"type": "text", "text": "found"}]})),
            "error": error,
            "execution_time": 0.08,
            "reasoning": if iteration == 1 { "I look." } else { "" },
            "retry_attempt": 0,
            "failed_attempts": 0,
            "cached": false,
            "mechanism": "native",
            "tool_call_id": id,
            "visible_results": [],
        })
    };
    let message = |role: &str, content: &str, ids: &[&str]| {
        let calls: Vec<_> =
            ids.iter().map(|id| json!({"id": id, "name": "notes_find", "arguments": {}})).collect();
        let calls = (!calls.is_empty()).then_some(calls);
        json!({"role": role, "content": content, "tool_calls": calls, "tool_call_id": null})
    };
    json!({
        "success": true,
        "final_result": "Only one is there.",
        "summary": "3 responses, 3 calls.",
        "tool_chain": [
            call(1, "notes.find", "c1", None),
            call(1, "notes.find", "c2", Some("no answer within 80 ms")),
            call(2, "notes.drop", "c3", Some("the user denied the call: not today")),
        ],
        "conversation_history": [
            message("system", "Be brief.", &[]),
            message("user", "Look for both notes.", &[]),
            message("assistant", "I look.", &["c1", "c2"]),
            message("tool", "found", &[]),
            message("tool", "no answer within 80 ms", &[]),
            message("assistant", "", &["c3"]),
            message("tool", "denied", &[]),
            message("assistant", "Only one is there.", &[]),
        ],
        "errors": [
            {"iteration": 0, "tool_name": null, "tool_call_id": null,
                "error": "server `mail`: no such program", "recovery_action": null},
            {"iteration": 1, "tool_name": "notes.find", "tool_call_id": "c2",
                "error": "no answer within 80 ms", "recovery_action": "other_tool"},
            {"iteration": 2, "tool_name": "notes.drop", "tool_call_id": "c3",
                "error": "the user denied the call: not today", "recovery_action": "gave_up"},
        ],
        "execution_metadata": {
            "total_execution_time": 1.25,
            "total_iterations": 3,
            "token_usage": {"prompt_tokens": 60, "completion_tokens": 9, "total_tokens": 69,
                "available": true},
        },
    })
}
