//! An answer in the words of each wire, as its provider would send it whole.

use serde_json::{Value, json};

use crate::provider::Wire;

/// A part of an answer.
#[derive(Clone, Debug)]
pub(super) enum Bit {
    Text(String),
    /// Signed with a mark that is found again.
    Thought(String),
    Call {
        id: String,
        name: String,
        arguments: String,
    },
}

/// How an answer ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ending {
    Normal,
    Length,
    Refused,
    Malformed,
    Paused,
    Strange,
}

/// Marks stand in the words of a provider only, each once.
pub(super) struct Marks(pub(super) usize);

impl Marks {
    fn next(&mut self) -> String {
        self.0 += 1;
        format!("mark{}=", self.0)
    }
}

/// The marks in a text, in their order.
pub(super) fn marks(text: &str) -> Vec<usize> {
    let ends = text.split("mark").skip(1).filter_map(|rest| rest.split_once('='));
    ends.filter_map(|(number, _)| number.parse().ok()).collect()
}

/// The body of an answer with status 200.
pub(super) fn body(wire: Wire, bits: &[Bit], ending: Ending, marks: &mut Marks) -> String {
    let said = match wire {
        Wire::OpenAiChat => chat(bits, ending, marks),
        Wire::OpenAiResponses => responses(bits, ending, marks),
        Wire::Anthropic => anthropic(bits, ending, marks),
        Wire::GeminiGenerate => generate(bits, ending, marks),
        Wire::GeminiInteractions => interactions(bits, ending, marks),
        Wire::Ollama => ollama(bits, ending, marks),
    };
    // As nobody writes who writes it again: spaces around the colons.
    said.to_string().replace("\":", "\" : ")
}

fn object(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap_or_else(|_| json!(arguments))
}

fn texts(bits: &[Bit]) -> String {
    let texts = bits.iter().map(|bit| match bit {
        Bit::Text(text) => text.as_str(),
        Bit::Thought(_) | Bit::Call { .. } => "",
    });
    texts.collect()
}

fn chat(bits: &[Bit], ending: Ending, marks: &mut Marks) -> Value {
    let (mut details, mut calls, mut thoughts) = (Vec::new(), Vec::new(), String::new());
    for bit in bits {
        match bit {
            Bit::Text(_) => {}
            Bit::Thought(text) => {
                thoughts.push_str(text);
                details.push(json!({"type": "reasoning.encrypted", "data": marks.next()}));
            }
            Bit::Call { id, name, arguments } => calls.push(json!({
                "id": id, "type": "function",
                "function": {"name": name, "arguments": arguments},
                "extra_content": {"google": {"thought_signature": marks.next()}},
            })),
        }
    }
    let finish = match ending {
        Ending::Normal | Ending::Malformed if calls.is_empty() => "stop",
        Ending::Normal | Ending::Malformed => "tool_calls",
        Ending::Length => "length",
        Ending::Refused => "content_filter",
        Ending::Paused | Ending::Strange => "strange",
    };
    let mut message = json!({"role": "assistant", "content": texts(bits)});
    if !details.is_empty() {
        message["reasoning"] = json!(thoughts);
        message["reasoning_details"] = json!(details);
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    json!({"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": finish}]})
}

fn responses(bits: &[Bit], ending: Ending, marks: &mut Marks) -> Value {
    let items: Vec<_> = bits
        .iter()
        .map(|bit| match bit {
            Bit::Text(text) => json!({
                "type": "message", "id": marks.next(), "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": text, "annotations": []}],
            }),
            Bit::Thought(text) => json!({
                "type": "reasoning", "id": "rs", "encrypted_content": marks.next(),
                "summary": [{"type": "summary_text", "text": text}],
            }),
            Bit::Call { id, name, arguments } => json!({
                "type": "function_call", "id": "fc", "call_id": id, "name": name,
                "arguments": arguments, "status": "completed", "caller": marks.next(),
            }),
        })
        .collect();
    match ending {
        Ending::Length => json!({
            "status": "incomplete", "output": items,
            "incomplete_details": {"reason": "max_output_tokens"},
        }),
        Ending::Refused => json!({
            "status": "incomplete", "output": items,
            "incomplete_details": {"reason": "content_filter"},
        }),
        Ending::Normal | Ending::Malformed | Ending::Paused | Ending::Strange => {
            json!({"status": "completed", "output": items})
        }
    }
}

fn anthropic(bits: &[Bit], ending: Ending, marks: &mut Marks) -> Value {
    let blocks: Vec<_> = bits
        .iter()
        .map(|bit| match bit {
            Bit::Text(text) => json!({"type": "text", "text": text}),
            Bit::Thought(text) if text.is_empty() => {
                json!({"type": "redacted_thinking", "data": marks.next()})
            }
            Bit::Thought(text) => {
                json!({"type": "thinking", "thinking": text, "signature": marks.next()})
            }
            Bit::Call { id, name, arguments } => {
                json!({"type": "tool_use", "id": id, "name": name, "input": object(arguments)})
            }
        })
        .collect();
    let called = bits.iter().any(|bit| matches!(bit, Bit::Call { .. }));
    let reason = match ending {
        Ending::Normal | Ending::Malformed if called => "tool_use",
        Ending::Normal | Ending::Malformed => "end_turn",
        Ending::Length => "max_tokens",
        Ending::Refused => "refusal",
        Ending::Paused => "pause_turn",
        Ending::Strange => "strange",
    };
    json!({"type": "message", "role": "assistant", "content": blocks, "stop_reason": reason})
}

fn generate(bits: &[Bit], ending: Ending, marks: &mut Marks) -> Value {
    let mut first = true;
    let mut parts = Vec::new();
    for bit in bits {
        parts.push(match bit {
            Bit::Text(text) => json!({"text": text}),
            Bit::Thought(text) => {
                json!({"text": text, "thought": true, "thoughtSignature": marks.next()})
            }
            Bit::Call { id, name, arguments } => {
                let mut part = json!({"functionCall": {"name": name, "args": object(arguments)}});
                if !id.is_empty() {
                    part["functionCall"]["id"] = json!(id);
                }
                if std::mem::take(&mut first) {
                    part["thoughtSignature"] = json!(marks.next());
                }
                part
            }
        });
    }
    let reason = match ending {
        Ending::Normal => "STOP",
        Ending::Length => "MAX_TOKENS",
        Ending::Refused => "SAFETY",
        Ending::Malformed => "MALFORMED_FUNCTION_CALL",
        Ending::Paused | Ending::Strange => "STRANGE",
    };
    json!({"candidates": [{
        "index": 0, "content": {"role": "model", "parts": parts}, "finishReason": reason,
    }]})
}

fn interactions(bits: &[Bit], ending: Ending, marks: &mut Marks) -> Value {
    let call = bits.iter().position(|bit| matches!(bit, Bit::Call { .. }));
    let thought = bits.iter().position(|bit| matches!(bit, Bit::Thought(_)));
    // Calls are signed by a thought in front of them.
    let unsigned = call.is_some_and(|call| thought.is_none_or(|thought| thought > call));
    let before = unsigned.then(|| Bit::Thought(String::new()));
    let steps: Vec<_> = before
        .iter()
        .chain(bits)
        .map(|bit| match bit {
            Bit::Text(text) => {
                json!({"type": "model_output", "content": [{"type": "text", "text": text}]})
            }
            Bit::Thought(text) => json!({
                "type": "thought", "signature": marks.next(),
                "summary": [{"type": "text", "text": text}],
            }),
            Bit::Call { id, name, arguments } => json!({
                "type": "function_call", "id": id, "name": name, "arguments": object(arguments),
            }),
        })
        .collect();
    let called = bits.iter().any(|bit| matches!(bit, Bit::Call { .. }));
    let status = match ending {
        Ending::Normal if called => "requires_action",
        Ending::Normal | Ending::Refused => "completed",
        Ending::Length => "incomplete",
        Ending::Malformed | Ending::Paused | Ending::Strange => "strange",
    };
    json!({"id": "i", "steps": steps, "status": status})
}

/// What is thought stands in one text, mark and all.
fn ollama(bits: &[Bit], ending: Ending, marks: &mut Marks) -> Value {
    let (mut thinking, mut calls) = (String::new(), Vec::new());
    for bit in bits {
        match bit {
            Bit::Text(_) => {}
            Bit::Thought(text) => {
                thinking.push_str(&marks.next());
                thinking.push_str(text);
            }
            Bit::Call { id, name, arguments } => calls.push(json!({
                "id": id, "mark": marks.next(),
                "function": {"name": name, "arguments": object(arguments)},
            })),
        }
    }
    let reason = match ending {
        Ending::Normal | Ending::Refused | Ending::Malformed => "stop",
        Ending::Length => "length",
        Ending::Paused | Ending::Strange => "strange",
    };
    let mut message = json!({"role": "assistant", "content": texts(bits), "thinking": thinking});
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    json!({"model": "m", "message": message, "done": true, "done_reason": reason})
}
