//! Complete response bodies in the form of each API.

use serde_json::{Value, json};

use crate::provider::ProviderApi;

#[derive(Clone, Debug)]
pub(super) enum ResponsePart {
    Text(String),
    /// Carries a signature with a marker that a later request must contain.
    Reasoning(String),
    Call {
        id: String,
        name: String,
        arguments: String,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) enum ResponseEnd {
    Normal,
    Length,
    Refused,
    Malformed,
    Paused,
    Unknown,
}

/// Makes unique markers. A marker occurs only in a provider's native blocks.
pub(super) struct MarkerCounter(pub(super) usize);

impl MarkerCounter {
    fn next_marker(&mut self) -> String {
        self.0 += 1;
        format!("mark{}=", self.0)
    }
}

/// Returns the markers in a text, in their order.
pub(super) fn find_markers(text: &str) -> Vec<usize> {
    let numbers = text.split("mark").skip(1).filter_map(|rest| rest.split_once('='));
    numbers.filter_map(|(number, _)| number.parse().ok()).collect()
}

/// Returns the body of a response with status 200.
pub(super) fn response_body(
    api: ProviderApi,
    content: &[ResponsePart],
    end: ResponseEnd,
    markers: &mut MarkerCounter,
) -> String {
    let body = match api {
        ProviderApi::OpenAiChat => chat_body(content, end, markers),
        ProviderApi::OpenAiResponses => responses_body(content, end, markers),
        ProviderApi::Anthropic => anthropic_body(content, end, markers),
        ProviderApi::GeminiGenerate => generate_content_body(content, end, markers),
        ProviderApi::GeminiInteractions => interactions_body(content, end, markers),
        ProviderApi::Ollama => ollama_body(content, end, markers),
    };
    // Spaces around the colons: a re-encoded block would lose them.
    body.to_string().replace("\":", "\" : ")
}

fn parse_arguments(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap_or_else(|_| json!(arguments))
}

fn join_text(content: &[ResponsePart]) -> String {
    let texts = content.iter().map(|item| match item {
        ResponsePart::Text(text) => text.as_str(),
        ResponsePart::Reasoning(_) | ResponsePart::Call { .. } => "",
    });
    texts.collect()
}

fn chat_body(content: &[ResponsePart], end: ResponseEnd, markers: &mut MarkerCounter) -> Value {
    let (mut details, mut calls, mut reasoning) = (Vec::new(), Vec::new(), String::new());
    for item in content {
        match item {
            ResponsePart::Text(_) => {}
            ResponsePart::Reasoning(text) => {
                reasoning.push_str(text);
                details.push(json!({"type": "reasoning.encrypted", "data": markers.next_marker()}));
            }
            ResponsePart::Call { id, name, arguments } => calls.push(json!({
                "id": id, "type": "function",
                "function": {"name": name, "arguments": arguments},
                "extra_content": {"google": {"thought_signature": markers.next_marker()}},
            })),
        }
    }
    let finish_reason = match end {
        ResponseEnd::Normal | ResponseEnd::Malformed if calls.is_empty() => "stop",
        ResponseEnd::Normal | ResponseEnd::Malformed => "tool_calls",
        ResponseEnd::Length => "length",
        ResponseEnd::Refused => "content_filter",
        ResponseEnd::Paused | ResponseEnd::Unknown => "strange",
    };
    let mut message = json!({"role": "assistant", "content": join_text(content)});
    if !details.is_empty() {
        message["reasoning"] = json!(reasoning);
        message["reasoning_details"] = json!(details);
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    json!({"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}]})
}

fn responses_body(
    content: &[ResponsePart],
    end: ResponseEnd,
    markers: &mut MarkerCounter,
) -> Value {
    let items: Vec<_> = content
        .iter()
        .map(|item| match item {
            ResponsePart::Text(text) => json!({
                "type": "message", "id": markers.next_marker(), "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": text, "annotations": []}],
            }),
            ResponsePart::Reasoning(text) => json!({
                "type": "reasoning", "id": "rs", "encrypted_content": markers.next_marker(),
                "summary": [{"type": "summary_text", "text": text}],
            }),
            ResponsePart::Call { id, name, arguments } => json!({
                "type": "function_call", "id": "fc", "call_id": id, "name": name,
                "arguments": arguments, "status": "completed", "caller": markers.next_marker(),
            }),
        })
        .collect();
    match end {
        ResponseEnd::Length => json!({
            "status": "incomplete", "output": items,
            "incomplete_details": {"reason": "max_output_tokens"},
        }),
        ResponseEnd::Refused => json!({
            "status": "incomplete", "output": items,
            "incomplete_details": {"reason": "content_filter"},
        }),
        ResponseEnd::Normal
        | ResponseEnd::Malformed
        | ResponseEnd::Paused
        | ResponseEnd::Unknown => {
            json!({"status": "completed", "output": items})
        }
    }
}

fn anthropic_body(
    content: &[ResponsePart],
    end: ResponseEnd,
    markers: &mut MarkerCounter,
) -> Value {
    let blocks: Vec<_> = content
        .iter()
        .map(|item| match item {
            ResponsePart::Text(text) => json!({"type": "text", "text": text}),
            ResponsePart::Reasoning(text) if text.is_empty() => {
                json!({"type": "redacted_thinking", "data": markers.next_marker()})
            }
            ResponsePart::Reasoning(text) => {
                json!({"type": "thinking", "thinking": text, "signature": markers.next_marker()})
            }
            ResponsePart::Call { id, name, arguments } => {
                json!({"type": "tool_use", "id": id, "name": name, "input": parse_arguments(arguments)})
            }
        })
        .collect();
    let has_call = content.iter().any(|item| matches!(item, ResponsePart::Call { .. }));
    let reason = match end {
        ResponseEnd::Normal | ResponseEnd::Malformed if has_call => "tool_use",
        ResponseEnd::Normal | ResponseEnd::Malformed => "end_turn",
        ResponseEnd::Length => "max_tokens",
        ResponseEnd::Refused => "refusal",
        ResponseEnd::Paused => "pause_turn",
        ResponseEnd::Unknown => "strange",
    };
    json!({"type": "message", "role": "assistant", "content": blocks, "stop_reason": reason})
}

fn generate_content_body(
    content: &[ResponsePart],
    end: ResponseEnd,
    markers: &mut MarkerCounter,
) -> Value {
    let mut first = true;
    let mut parts = Vec::new();
    for item in content {
        parts.push(match item {
            ResponsePart::Text(text) => json!({"text": text}),
            ResponsePart::Reasoning(text) => {
                json!({"text": text, "thought": true, "thoughtSignature": markers.next_marker()})
            }
            ResponsePart::Call { id, name, arguments } => {
                let mut part =
                    json!({"functionCall": {"name": name, "args": parse_arguments(arguments)}});
                if !id.is_empty() {
                    part["functionCall"]["id"] = json!(id);
                }
                if std::mem::take(&mut first) {
                    part["thoughtSignature"] = json!(markers.next_marker());
                }
                part
            }
        });
    }
    let reason = match end {
        ResponseEnd::Normal => "STOP",
        ResponseEnd::Length => "MAX_TOKENS",
        ResponseEnd::Refused => "SAFETY",
        ResponseEnd::Malformed => "MALFORMED_FUNCTION_CALL",
        ResponseEnd::Paused | ResponseEnd::Unknown => "STRANGE",
    };
    json!({"candidates": [{
        "index": 0, "content": {"role": "model", "parts": parts}, "finishReason": reason,
    }]})
}

fn interactions_body(
    content: &[ResponsePart],
    end: ResponseEnd,
    markers: &mut MarkerCounter,
) -> Value {
    let call = content.iter().position(|item| matches!(item, ResponsePart::Call { .. }));
    let reasoning = content.iter().position(|item| matches!(item, ResponsePart::Reasoning(_)));
    // Reasoning signs the calls after it.
    let unsigned = call.is_some_and(|call| reasoning.is_none_or(|reasoning| reasoning > call));
    let before = unsigned.then(|| ResponsePart::Reasoning(String::new()));
    let steps: Vec<_> = before
        .iter()
        .chain(content)
        .map(|item| match item {
            ResponsePart::Text(text) => {
                json!({"type": "model_output", "content": [{"type": "text", "text": text}]})
            }
            ResponsePart::Reasoning(text) => json!({
                "type": "thought", "signature": markers.next_marker(),
                "summary": [{"type": "text", "text": text}],
            }),
            ResponsePart::Call { id, name, arguments } => json!({
                "type": "function_call", "id": id, "name": name, "arguments": parse_arguments(arguments),
            }),
        })
        .collect();
    let has_call = content.iter().any(|item| matches!(item, ResponsePart::Call { .. }));
    let status = match end {
        ResponseEnd::Normal if has_call => "requires_action",
        ResponseEnd::Normal | ResponseEnd::Refused => "completed",
        ResponseEnd::Length => "incomplete",
        ResponseEnd::Malformed | ResponseEnd::Paused | ResponseEnd::Unknown => "strange",
    };
    json!({"id": "i", "steps": steps, "status": status})
}

/// Joins all reasoning, with its markers, into one string.
fn ollama_body(content: &[ResponsePart], end: ResponseEnd, markers: &mut MarkerCounter) -> Value {
    let (mut thinking, mut calls) = (String::new(), Vec::new());
    for item in content {
        match item {
            ResponsePart::Text(_) => {}
            ResponsePart::Reasoning(text) => {
                thinking.push_str(&markers.next_marker());
                thinking.push_str(text);
            }
            ResponsePart::Call { id, name, arguments } => calls.push(json!({
                "id": id, "mark": markers.next_marker(),
                "function": {"name": name, "arguments": parse_arguments(arguments)},
            })),
        }
    }
    let reason = match end {
        ResponseEnd::Normal | ResponseEnd::Refused | ResponseEnd::Malformed => "stop",
        ResponseEnd::Length => "length",
        ResponseEnd::Paused | ResponseEnd::Unknown => "strange",
    };
    let mut message =
        json!({"role": "assistant", "content": join_text(content), "thinking": thinking});
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    json!({"model": "m", "message": message, "done": true, "done_reason": reason})
}
