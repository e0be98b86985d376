//! Decodes complete responses, finish reasons and token counts.

use super::{block, error};
use crate::conversation::{AssistantMessage, ContentPart, PartContent};
use crate::provider::codec::{ApiError, MAX_CONTENT_PARTS, ObjectView, is_json};
use crate::provider::{FinishReason, Response, Usage};

pub(super) fn decode_body(body: &str, model: &str) -> Result<Response, ApiError> {
    let Some(message) = ObjectView::parse(body) else {
        return Err(ApiError::invalid_response("the response is not a JSON object"));
    };
    let Some(content) = message.list("content") else {
        return Err(match message.get("error") {
            Some(_) => error::decode_error_object(None, &message),
            None => ApiError::invalid_response("the response has no `content` array"),
        });
    };
    if content.len() > MAX_CONTENT_PARTS {
        return Err(ApiError::too_many("parts"));
    }
    let parts: Vec<ContentPart> =
        content.into_iter().map(|raw| block::decode_block(raw, model)).collect();
    let mut counts = UsageCounts::default();
    if let Some(usage) = message.object("usage") {
        counts.update(&usage);
    }
    Ok(Response {
        finish_reason: finish_reason(message.text("stop_reason").as_deref(), &parts),
        message: AssistantMessage { parts },
        usage: counts.usage(),
        model: message.text("model"),
    })
}

/// Returns the finish reason. A stop sequence can occur in the middle of a tool call.
pub(super) fn finish_reason(reason: Option<&str>, parts: &[ContentPart]) -> FinishReason {
    let mut calls = parts.iter().filter_map(|part| match &part.content {
        PartContent::ToolCall(call) => Some(call),
        PartContent::Text(_) | PartContent::Reasoning(_) | PartContent::Other => None,
    });
    match reason {
        Some("stop_sequence") if calls.clone().any(|call| !is_json(&call.arguments)) => {
            FinishReason::Length
        }
        Some("tool_use") => FinishReason::ToolCalls,
        Some("end_turn" | "stop_sequence") | None => match calls.next() {
            Some(_) => FinishReason::ToolCalls,
            None => FinishReason::Stop,
        },
        Some("max_tokens") => FinishReason::Length,
        Some("model_context_window_exceeded") => FinishReason::ContextFull,
        Some("refusal") => FinishReason::Refusal,
        Some("pause_turn") => FinishReason::Paused,
        Some(other) => FinishReason::Other(other.to_owned()),
    }
}

/// Token counts so far. Each count is a total and replaces the count before it.
#[derive(Default)]
pub(super) struct UsageCounts {
    input: Option<u64>,
    cache_written: Option<u64>,
    cache_read: Option<u64>,
    output: Option<u64>,
    thinking: Option<u64>,
}

impl UsageCounts {
    pub(super) fn update(&mut self, usage: &ObjectView<'_>) {
        let details = usage.object("output_tokens_details");
        for (count, new) in [
            (&mut self.input, usage.number("input_tokens")),
            (&mut self.cache_written, usage.number("cache_creation_input_tokens")),
            (&mut self.cache_read, usage.number("cache_read_input_tokens")),
            (&mut self.output, usage.number("output_tokens")),
            (&mut self.thinking, details.and_then(|fields| fields.number("thinking_tokens"))),
        ] {
            *count = new.or(*count);
        }
    }

    pub(super) fn usage(&self) -> Option<Usage> {
        let read = [self.input, self.cache_written, self.cache_read];
        if self.output.is_none() && read.iter().all(Option::is_none) {
            return None;
        }
        Some(Usage {
            prompt_tokens: read.into_iter().flatten().fold(0, u64::saturating_add),
            completion_tokens: self.output.unwrap_or_default(),
            cached_tokens: self.cache_read.unwrap_or_default(),
            reasoning_tokens: self.thinking.unwrap_or_default(),
            cost: None,
        })
    }
}
