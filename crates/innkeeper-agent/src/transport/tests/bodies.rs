//! Response bodies in the form of each API.

use serde_json::{Value, json};

use crate::provider::ProviderApi;

/// Returns a complete response with one text.
pub(super) fn text_body(api: ProviderApi, text: &str) -> Value {
    match api {
        ProviderApi::OpenAiChat => {
            json!({"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}]})
        }
        ProviderApi::OpenAiResponses => {
            let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
            let item = json!({"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": content});
            json!({"status": "completed", "output": [item]})
        }
        ProviderApi::Anthropic => {
            json!({"role": "assistant", "stop_reason": "end_turn", "content": [{"type": "text", "text": text}]})
        }
        ProviderApi::GeminiGenerate => {
            json!({"candidates": [{"finishReason": "STOP", "content": {"role": "model", "parts": [{"text": text}]}}]})
        }
        ProviderApi::GeminiInteractions => {
            let content = json!([{"type": "text", "text": text}]);
            json!({"status": "completed", "steps": [{"type": "model_output", "content": content}]})
        }
        ProviderApi::Ollama => {
            json!({"done": true, "done_reason": "stop", "message": {"role": "assistant", "content": text}})
        }
    }
}

/// Returns a response with one call, as text: the arguments stay unchanged.
pub(super) fn call_body(api: ProviderApi, tool: &str, arguments: &str) -> String {
    // A placeholder, because a JSON value would round large numbers.
    let placeholder = json!("ARGUMENTS");
    let body = match api {
        ProviderApi::OpenAiChat => {
            let call = json!({"id": "c1", "type": "function", "function": {"name": tool, "arguments": arguments}});
            json!({"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": "", "tool_calls": [call]}}]})
        }
        ProviderApi::OpenAiResponses => {
            let item = json!({"type": "function_call", "id": "f1", "call_id": "c1", "status": "completed", "name": tool, "arguments": arguments});
            json!({"status": "completed", "output": [item]})
        }
        ProviderApi::Anthropic => {
            let block = json!({"type": "tool_use", "id": "c1", "name": tool, "input": placeholder});
            json!({"role": "assistant", "stop_reason": "tool_use", "content": [block]})
        }
        ProviderApi::GeminiGenerate => {
            let part = json!({"functionCall": {"id": "c1", "name": tool, "args": placeholder}});
            json!({"candidates": [{"finishReason": "STOP", "content": {"role": "model", "parts": [part]}}]})
        }
        ProviderApi::GeminiInteractions => {
            let step = json!({"type": "function_call", "id": "c1", "name": tool, "arguments": placeholder});
            json!({"status": "requires_action", "steps": [step]})
        }
        ProviderApi::Ollama => {
            let call = json!({"function": {"name": tool, "arguments": placeholder}});
            json!({"done": true, "done_reason": "stop", "message": {"role": "assistant", "content": "", "tool_calls": [call]}})
        }
    };
    body.to_string().replace(&placeholder.to_string(), arguments)
}
