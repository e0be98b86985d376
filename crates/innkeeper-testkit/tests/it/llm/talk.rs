//! Conversations in the form of each provider.

use serde_json::{Value, json};

/// What a person says, with one tool on offer.
pub(crate) fn begin(wire: &str) -> Value {
    let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let flat = json!({"type": "function", "name": "fs_read", "parameters": parameters});
    let function = json!({"name": "fs_read", "parameters": parameters});
    let messages = json!([{"role": "user", "content": "Go."}]);
    match wire {
        "chat" => json!({
            "model": "m", "messages": messages, "stream_options": {"include_usage": true},
            "tools": [{"type": "function", "function": function}],
        }),
        "responses" => json!({"model": "m", "input": messages, "tools": [flat], "store": false}),
        "anthropic" => json!({
            "model": "m", "max_tokens": 100, "messages": messages,
            "tools": [{"name": "fs_read", "input_schema": parameters}],
        }),
        "gemini" => json!({
            "contents": [{"role": "user", "parts": [{"text": "Go."}]}],
            "tools": [{"functionDeclarations": [function]}],
        }),
        "interactions" => json!({
            "model": "m", "store": false, "tools": [flat],
            "input": [{"type": "user_input", "content": [{"type": "text", "text": "Go."}]}],
        }),
        "ollama" => json!({
            "model": "m", "messages": messages,
            "tools": [{"type": "function", "function": function}],
        }),
        other => panic!("no wire `{other}`"),
    }
}

/// Where the messages of a conversation are.
pub(crate) fn messages<'a>(wire: &str, body: &'a mut Value) -> &'a mut Vec<Value> {
    let key = match wire {
        "responses" | "interactions" => "input",
        "gemini" => "contents",
        _ => "messages",
    };
    body[key].as_array_mut().unwrap()
}

/// What a client adds of an answer: all of it as it came.
pub(crate) fn answered(wire: &str, answer: &Value) -> Vec<Value> {
    match wire {
        "chat" => vec![answer["choices"][0]["message"].clone()],
        "responses" => answer["output"].as_array().unwrap().clone(),
        "anthropic" => vec![json!({"role": "assistant", "content": answer["content"]})],
        "gemini" => vec![answer["candidates"][0]["content"].clone()],
        "interactions" => answer["steps"].as_array().unwrap().clone(),
        "ollama" => vec![answer["message"].clone()],
        other => panic!("no wire `{other}`"),
    }
}

/// The result of a call.
pub(crate) fn result(wire: &str, id: &str) -> Value {
    match wire {
        "chat" => json!({"role": "tool", "tool_call_id": id, "content": "ok"}),
        "responses" => json!({"type": "function_call_output", "call_id": id, "output": "ok"}),
        "anthropic" => json!({
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": id, "content": "ok"}],
        }),
        "gemini" => {
            let response = json!({"id": id, "name": "fs_read", "response": {"result": "ok"}});
            json!({"role": "user", "parts": [{"functionResponse": response}]})
        }
        "interactions" => json!({"type": "function_result", "call_id": id, "result": "ok"}),
        "ollama" => json!({"role": "tool", "tool_name": "fs_read", "content": "ok"}),
        other => panic!("no wire `{other}`"),
    }
}

/// A conversation with an answer and the result of the call in it.
pub(crate) fn go_on(wire: &str, answer: &Value, id: &str) -> Value {
    let mut body = begin(wire);
    let list = messages(wire, &mut body);
    list.extend(answered(wire, answer));
    list.push(result(wire, id));
    body
}

/// The message of a failure.
pub(crate) fn message(wire: &str, failure: &Value) -> String {
    let text = match wire {
        "ollama" => &failure["error"],
        _ => &failure["error"]["message"],
    };
    text.as_str().unwrap_or_else(|| panic!("no message in {failure}")).to_owned()
}
