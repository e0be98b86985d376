//! Conversations in the format of each API.

use serde_json::{Value, json};

/// A user message with one offered tool.
pub(crate) fn first_request(api: &str) -> Value {
    let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let flat = json!({"type": "function", "name": "fs_read", "parameters": parameters});
    let function = json!({"name": "fs_read", "parameters": parameters});
    let messages = json!([{"role": "user", "content": "Go."}]);
    match api {
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

/// Returns the messages of a conversation.
pub(crate) fn messages<'a>(api: &str, body: &'a mut Value) -> &'a mut Vec<Value> {
    let key = match api {
        "responses" | "interactions" => "input",
        "gemini" => "contents",
        _ => "messages",
    };
    body[key].as_array_mut().unwrap()
}

/// Returns the messages that a client adds for a response, unchanged.
pub(crate) fn assistant_messages(api: &str, response: &Value) -> Vec<Value> {
    match api {
        "chat" => vec![response["choices"][0]["message"].clone()],
        "responses" => response["output"].as_array().unwrap().clone(),
        "anthropic" => vec![json!({"role": "assistant", "content": response["content"]})],
        "gemini" => vec![response["candidates"][0]["content"].clone()],
        "interactions" => response["steps"].as_array().unwrap().clone(),
        "ollama" => vec![response["message"].clone()],
        other => panic!("no wire `{other}`"),
    }
}

/// Returns the result of a call.
pub(crate) fn tool_result(api: &str, id: &str) -> Value {
    match api {
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

/// Returns a conversation with a response and the result of its call.
pub(crate) fn next_request(api: &str, response: &Value, id: &str) -> Value {
    let mut body = first_request(api);
    let list = messages(api, &mut body);
    list.extend(assistant_messages(api, response));
    list.push(tool_result(api, id));
    body
}

/// Returns the message of an error response.
pub(crate) fn error_message(api: &str, failure: &Value) -> String {
    let text = match api {
        "ollama" => &failure["error"],
        _ => &failure["error"]["message"],
    };
    text.as_str().unwrap_or_else(|| panic!("no message in {failure}")).to_owned()
}
