//! A response of the model: a scripted reply with names, ids and signatures.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use serde_json::Value;

use super::script;

/// Bytes per token where the script has no token count.
const BYTES_PER_TOKEN: usize = 4;

/// Characters per chunk of streamed text and arguments.
const CHUNK_CHARS: usize = 7;

/// The creation time of every response in seconds since 1970; the server reads no clock.
pub(super) const CREATED_AT: u64 = 1_795_000_000;

/// A response before its conversion to a provider's format.
#[derive(Debug)]
pub(super) struct ModelResponse {
    /// The number of the response, starting at one.
    pub(super) number: usize,
    /// The model name in the request.
    pub(super) model: String,
    pub(super) content_parts: Vec<ContentPart>,
    pub(super) finish_reason: FinishReason,
    /// The reported token counts, if the response reports any.
    pub(super) usage: Option<Usage>,
    /// The message of the error that ends the response.
    pub(super) error: Option<String>,
    /// Whether a Chat Completions stream includes the usage.
    pub(super) includes_usage: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ContentPart {
    Reasoning(String),
    Text(String),
    ToolCall(ToolCall),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ToolCall {
    /// The index of the call in the response.
    pub(super) index: usize,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FinishReason {
    Stop,
    ToolCalls,
    Length,
    Refusal,
}

/// Token counts, including cached and reasoning tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    pub(super) prompt: u64,
    pub(super) completion: u64,
    pub(super) cached: u64,
    pub(super) reasoning: u64,
    pub(super) cost: Option<f64>,
}

impl ModelResponse {
    /// Creates the response to `request`; `offered_tools` are the names of the request's tools.
    pub(super) fn new(
        model_reply: &script::ModelReply,
        number: usize,
        id_prefix: &str,
        model: &str,
        request: &[u8],
        offered_tools: &[String],
    ) -> Self {
        let mut index = 0;
        let parts = model_reply.parts.iter().map(|part| match part {
            script::ReplyPart::Reasoning(text) => ContentPart::Reasoning(text.clone()),
            script::ReplyPart::Text(text) => ContentPart::Text(text.clone()),
            script::ReplyPart::ToolCall { name, arguments } => {
                let id = format!("{id_prefix}{number:04}{index:02}");
                let name = match_tool_name(name, offered_tools);
                let arguments = arguments.clone();
                let call = ToolCall { index, id, name, arguments };
                index += 1;
                ContentPart::ToolCall(call)
            }
        });
        let content_parts: Vec<_> = parts.collect();
        let finish_reason = match (model_reply.refused, model_reply.truncated, index) {
            (true, _, _) => FinishReason::Refusal,
            (false, true, _) => FinishReason::Length,
            (false, false, 0) => FinishReason::Stop,
            (false, false, _) => FinishReason::ToolCalls,
        };
        let content_bytes = content_parts.iter().map(ContentPart::byte_len).sum::<usize>();
        let (prompt, completion) = model_reply
            .usage
            .tokens
            .unwrap_or_else(|| (count_tokens(request.len()), count_tokens(content_bytes)));
        let usage = (!model_reply.usage.is_hidden).then_some(Usage {
            prompt,
            completion,
            cached: model_reply.usage.cached_tokens,
            reasoning: model_reply.usage.reasoning_tokens,
            cost: model_reply.usage.cost,
        });
        let model = model.to_owned();
        let error = model_reply.stream_error.clone();
        Self { number, model, content_parts, finish_reason, usage, error, includes_usage: false }
    }

    pub(super) fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content_parts.iter().filter_map(|part| match part {
            ContentPart::ToolCall(call) => Some(call),
            ContentPart::Reasoning(_) | ContentPart::Text(_) => None,
        })
    }

    pub(super) fn text(&self) -> String {
        let texts = self.content_parts.iter().filter_map(|part| match part {
            ContentPart::Text(text) => Some(text.as_str()),
            ContentPart::Reasoning(_) | ContentPart::ToolCall(_) => None,
        });
        texts.collect()
    }

    pub(super) fn reasoning(&self) -> String {
        let texts = self.content_parts.iter().filter_map(|part| match part {
            ContentPart::Reasoning(text) => Some(text.as_str()),
            ContentPart::Text(_) | ContentPart::ToolCall(_) => None,
        });
        texts.collect()
    }

    /// The first call whose arguments are not a JSON object.
    pub(super) fn malformed_call(&self) -> Option<&ToolCall> {
        self.tool_calls().find(|call| !call.is_object())
    }

    /// Serializes JSON; the unchanged arguments of calls replace
    /// [`ToolCall::arguments_placeholder`].
    pub(super) fn to_json_text(&self, value: &Value) -> String {
        self.tool_calls().fold(value.to_string(), |text, call| {
            text.replace(&Value::String(placeholder_text(call.index)).to_string(), &call.arguments)
        })
    }
}

impl ContentPart {
    fn byte_len(&self) -> usize {
        match self {
            Self::Reasoning(text) | Self::Text(text) => text.len(),
            Self::ToolCall(call) => call.name.len() + call.arguments.len(),
        }
    }
}

impl ToolCall {
    /// Whether the arguments are a JSON object.
    pub(super) fn is_object(&self) -> bool {
        serde_json::from_str::<serde_json::Map<String, Value>>(&self.arguments).is_ok()
    }

    /// The placeholder for the arguments until serialization; an empty object if the arguments are
    /// not an object. A [`Value`] would round large numbers.
    pub(super) fn arguments_placeholder(&self) -> Value {
        match self.is_object() {
            true => Value::String(placeholder_text(self.index)),
            false => Value::Object(serde_json::Map::new()),
        }
    }

    /// The signature of the call.
    pub(super) fn signature(&self) -> String {
        let arguments: Value = serde_json::from_str(&self.arguments).unwrap_or_default();
        call_signature(&self.name, &arguments)
    }
}

/// The placeholder contains control characters, which no test text contains.
fn placeholder_text(index: usize) -> String {
    format!("\u{1}{index}\u{1}")
}

/// The signature of a call with these arguments, independent of whitespace and escapes.
pub(super) fn call_signature(name: &str, arguments: &Value) -> String {
    signature(&format!("call {name} {arguments}"))
}

pub(super) fn reasoning_signature(text: &str) -> String {
    signature(&format!("thought {text}"))
}

/// A signature of the content only; valid as hexadecimal and as Base64.
pub(super) fn signature(content: &str) -> String {
    let hashes = (0..6_u64).map(|salt| {
        let mut hasher = DefaultHasher::new();
        (salt, content).hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    });
    hashes.collect()
}

/// Returns the offered name that matches this name, else this name.
fn match_tool_name(name: &str, offered_tools: &[String]) -> String {
    let normalized = normalize_name(name);
    let matched = offered_tools.iter().find(|tool| normalize_name(tool) == normalized);
    matched.map_or(name, String::as_str).to_owned()
}

fn normalize_name(name: &str) -> String {
    name.replace(
        |letter: char| !letter.is_ascii_alphanumeric() && !matches!(letter, '_' | '-'),
        "_",
    )
}

/// Splits a text into its stream chunks; no chunk for an empty text.
pub(super) fn text_chunks(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(CHUNK_CHARS).map(|chunk| chunk.iter().collect()).collect()
}

fn count_tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(0)
}
