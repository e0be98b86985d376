//! Decodes the choices of a response, streamed or not.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::message_content::MessageContent;
use super::reasoning::Reasoning;
use super::tool_call_accumulator::ToolCallAccumulator;
use crate::conversation::AssistantMessage;
use crate::provider::codec::{ApiError, ObjectView, decode_string};
use crate::provider::openai::decode_error_object;
use crate::provider::tool_encoding::EncodedTools;
use crate::provider::{Cost, FinishReason, Response, StreamChunk, Usage};

pub(super) fn decode_body(
    model: String,
    tools: Arc<EncodedTools>,
    body: &str,
    chunks: &mut Vec<StreamChunk>,
) -> Result<Response, ApiError> {
    let fields = ObjectView::parse(body);
    let fields =
        fields.ok_or_else(|| ApiError::invalid_response("the response is not a JSON object"))?;
    let mut gathered = ResponseAccumulator::new(model, tools);
    gathered.feed(&fields, true, chunks)?;
    if !gathered.has_message {
        return Err(ApiError::invalid_response("the response has no `choices` with a message"));
    }
    gathered.flush(chunks);
    Ok(gathered.into_response())
}

/// The response received so far.
pub(super) struct ResponseAccumulator {
    request_model: String,
    response_model: Option<String>,
    reasoning: Reasoning,
    content: MessageContent,
    calls: ToolCallAccumulator,
    finish_reason: Option<String>,
    usage: Option<Usage>,
    /// Whether a message or a delta came.
    has_message: bool,
}

impl ResponseAccumulator {
    pub(super) fn new(request_model: String, tools: Arc<EncodedTools>) -> Self {
        Self {
            request_model,
            response_model: None,
            reasoning: Reasoning::default(),
            content: MessageContent::default(),
            calls: ToolCallAccumulator::new(tools),
            finish_reason: None,
            usage: None,
            has_message: false,
        }
    }

    /// Feeds a complete response or a chunk.
    pub(super) fn feed(
        &mut self,
        fields: &ObjectView<'_>,
        is_complete: bool,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError> {
        let is_error = fields.text("object").is_some_and(|object| object == "error");
        if is_error || fields.get("error").is_some() {
            return Err(self.with_partial_output(decode_error_object(fields)));
        }
        if self.response_model.is_none() {
            self.response_model = fields.non_empty_text("model");
        }
        if let Some(usage) = fields.object("usage").and_then(|usage| parse_usage(&usage)) {
            self.usage = Some(usage);
        }
        let choices = fields.list("choices").unwrap_or_default();
        let mut choices = choices.into_iter().filter_map(ObjectView::from_raw);
        // Only the first choice counts.
        let choice = choices.find(|choice| choice.number("index").unwrap_or(0) == 0);
        match choice {
            Some(choice) => self.feed_choice(&choice, is_complete, chunks),
            None => Ok(()),
        }
    }

    fn feed_choice(
        &mut self,
        choice: &ObjectView<'_>,
        is_complete: bool,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError> {
        if choice.get("error").is_some() {
            return Err(self.with_partial_output(decode_error_object(choice)));
        }
        let delta = choice.object("delta").filter(|_| !is_complete);
        let message = delta.or_else(|| choice.object("message").filter(|_| !self.has_message));
        if let Some(message) = message {
            self.has_message = true;
            self.feed_message(&message, is_complete, chunks)?;
        }
        if let Some(reason) = choice.non_empty_text("finish_reason") {
            self.finish_reason = Some(reason);
            if !is_complete {
                self.flush(chunks);
            }
        }
        Ok(())
    }

    fn feed_message(
        &mut self,
        message: &ObjectView<'_>,
        is_complete: bool,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError> {
        self.reasoning.feed_message(message, chunks)?;
        if let Some(content) = message.get("content") {
            match decode_string(content) {
                Some(content) => self.content.append_text(content, chunks),
                None => {
                    for part in message.bounded_list("content")? {
                        self.feed_part(part, chunks)?;
                    }
                }
            }
        }
        if let Some(refusal) = message.non_empty_text("refusal") {
            self.content.append_refusal(refusal, chunks);
        }
        self.calls.feed_message(message, is_complete, chunks)
    }

    /// Feeds one item of a content list.
    fn feed_part(
        &mut self,
        part: &RawValue,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError> {
        let fields = ObjectView::from_raw(part).unwrap_or_default();
        match fields.text("type").as_deref() {
            Some("text") => {
                self.content.append_text(fields.text("text").unwrap_or_default(), chunks);
            }
            Some("refusal") => {
                self.content.append_refusal(fields.text("refusal").unwrap_or_default(), chunks);
            }
            Some("thinking") => self.reasoning.feed_thinking(&fields, chunks)?,
            Some(_) | None => self.content.add_other(part)?,
        }
        Ok(())
    }

    /// Ends the tool calls at the end of the message.
    pub(super) fn flush(&mut self, chunks: &mut Vec<StreamChunk>) {
        let is_truncated = self.resolve_finish_reason() != FinishReason::ToolCalls;
        self.calls.flush(is_truncated, chunks);
    }

    /// Whether the response is complete: a finish reason came, or the stream ended and no call is
    /// incomplete.
    pub(super) fn is_finished(&self, done: bool) -> bool {
        self.has_message && (self.finish_reason.is_some() || (done && self.calls.are_closed()))
    }

    pub(super) fn with_partial_output(&self, mut error: ApiError) -> ApiError {
        if error.partial_output.is_none() && !self.content.text.is_empty() {
            error.partial_output = Some(self.content.text.clone());
        }
        error
    }

    pub(super) fn into_incomplete_stream(self) -> ApiError {
        ApiError::incomplete_stream(self.content.text)
    }

    fn resolve_finish_reason(&self) -> FinishReason {
        let stop = if !self.calls.is_empty() {
            FinishReason::ToolCalls
        } else if self.content.is_refusal {
            FinishReason::Refusal
        } else {
            FinishReason::Stop
        };
        let Some(reason) = self.finish_reason.as_deref() else { return stop };
        // Servers of other APIs pass their own words on.
        match reason.to_ascii_lowercase().as_str() {
            "stop" | "eos" | "eos_token" | "stop_sequence" | "end_turn" | "complete" => stop,
            "tool_calls" | "tool_call" | "function_call" | "tool_use"
                if !self.content.is_refusal =>
            {
                FinishReason::ToolCalls
            }
            "tool_calls" | "tool_call" | "function_call" | "tool_use" => stop,
            "length" | "max_tokens" | "model_length" => FinishReason::Length,
            "model_context_window_exceeded" => FinishReason::ContextFull,
            "content_filter" | "refusal" | "sensitive" => FinishReason::Refusal,
            _ => FinishReason::Other(reason.to_owned()),
        }
    }

    pub(super) fn into_response(self) -> Response {
        let finish_reason = self.resolve_finish_reason();
        let mut parts = Vec::new();
        parts.extend(self.reasoning.into_part(&self.request_model));
        parts.extend(self.content.into_parts(&self.request_model));
        parts.extend(self.calls.into_parts(&self.request_model));
        Response {
            message: AssistantMessage { parts },
            finish_reason,
            usage: self.usage,
            model: self.response_model,
        }
    }
}

fn parse_usage(usage: &ObjectView<'_>) -> Option<Usage> {
    let prompt = usage.number("prompt_tokens");
    let completion = usage.number("completion_tokens");
    if prompt.is_none() && completion.is_none() {
        return None;
    }
    let read = usage.object("prompt_tokens_details").unwrap_or_default();
    let completion_details = usage.object("completion_tokens_details").unwrap_or_default();
    let cached = read.number("cached_tokens").or_else(|| usage.number("prompt_cache_hit_tokens"));
    let counted = Usage {
        prompt_tokens: prompt.unwrap_or_default(),
        completion_tokens: completion.unwrap_or_default(),
        cached_tokens: cached.unwrap_or_default(),
        reasoning_tokens: completion_details.number("reasoning_tokens").unwrap_or_default(),
        cost: usage.get("cost").and_then(|cost| Cost::from_json_number(cost.get())),
    };
    Some(counted.with_cached_tokens_included())
}
