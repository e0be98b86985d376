//! Decodes the choices of a response, streamed or not.

use std::sync::Arc;

use serde_json::json;
use serde_json::value::RawValue;

use super::reasoning_details::ReasoningDetails;
use super::tool_call_accumulator::ToolCallAccumulator;
use crate::conversation::{AssistantMessage, ContentPart, PartContent, ProviderBlock};
use crate::provider::codec::{
    ApiError, MAX_CONTENT_PARTS, ObjectView, decode_string, texts_of_field,
};
use crate::provider::openai::{ObjectBuilder, decode_error_object, to_raw};
use crate::provider::tool_encoding::EncodedTools;
use crate::provider::{Cost, FinishReason, ProviderApi, Response, StreamChunk, Usage};

/// Decodes an unstreamed response.
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
    /// The requested model.
    request_model: String,
    response_model: Option<String>,
    reasoning: String,
    /// The field in which the first reasoning came.
    reasoning_field: Option<ReasoningField>,
    reasoning_details: ReasoningDetails,
    text: String,
    refused: bool,
    other_parts: Vec<Box<RawValue>>,
    calls: ToolCallAccumulator,
    /// Whether the call came as `function_call`, as before `tool_calls` existed.
    has_legacy_call: bool,
    finish_reason: Option<String>,
    usage: Option<Usage>,
    /// Whether a message or a delta came.
    has_message: bool,
}

/// The field in which a server sends reasoning.
#[derive(Clone, Copy)]
enum ReasoningField {
    ReasoningContent,
    Reasoning,
    /// Parts of the content, as Mistral sends them.
    ThinkingParts,
}

impl ResponseAccumulator {
    pub(super) fn new(request_model: String, tools: Arc<EncodedTools>) -> Self {
        Self {
            request_model,
            response_model: None,
            reasoning: String::new(),
            reasoning_field: None,
            reasoning_details: ReasoningDetails::default(),
            text: String::new(),
            refused: false,
            other_parts: Vec::new(),
            calls: ToolCallAccumulator::new(tools),
            has_legacy_call: false,
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
        // Some servers send the same reasoning in both fields.
        if let Some(reasoning) = message.non_empty_text("reasoning_content") {
            self.append_reasoning(ReasoningField::ReasoningContent, &reasoning, chunks);
        } else if let Some(reasoning) = message.non_empty_text("reasoning") {
            self.append_reasoning(ReasoningField::Reasoning, &reasoning, chunks);
        }
        for detail in message.bounded_list("reasoning_details")? {
            self.reasoning_details.feed(detail)?;
        }
        if let Some(content) = message.get("content") {
            match decode_string(content) {
                Some(content) => self.append_text(content, chunks),
                None => {
                    for part in message.bounded_list("content")? {
                        self.feed_part(part, chunks)?;
                    }
                }
            }
        }
        if let Some(refusal) = message.non_empty_text("refusal") {
            self.refused = true;
            self.append_text(refusal, chunks);
        }
        let entries = message.bounded_list("tool_calls")?;
        let mut entries: Vec<_> = entries.into_iter().filter_map(ObjectView::from_raw).collect();
        // Some servers send the call in both members.
        if entries.is_empty() && (self.has_legacy_call || self.calls.is_empty()) {
            entries.extend(message.object("function_call"));
            self.has_legacy_call = !entries.is_empty() || self.has_legacy_call;
        }
        self.calls.feed(&entries, is_complete, chunks)
    }

    /// Feeds one item of a content list.
    fn feed_part(
        &mut self,
        part: &RawValue,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError> {
        let fields = ObjectView::from_raw(part).unwrap_or_default();
        match fields.text("type").as_deref() {
            Some("text") => self.append_text(fields.text("text").unwrap_or_default(), chunks),
            Some("refusal") => {
                self.refused = true;
                self.append_text(fields.text("refusal").unwrap_or_default(), chunks);
            }
            Some("thinking") => {
                let thinking = fields.text("thinking");
                let thinking = match thinking {
                    Some(thinking) => thinking,
                    None => texts_of_field(&fields.bounded_list("thinking")?, "text").concat(),
                };
                self.append_reasoning(ReasoningField::ThinkingParts, &thinking, chunks);
            }
            Some(_) | None => {
                if self.other_parts.len() == MAX_CONTENT_PARTS {
                    return Err(ApiError::too_many("parts"));
                }
                self.other_parts.push(part.to_owned());
            }
        }
        Ok(())
    }

    fn append_text(&mut self, text: String, chunks: &mut Vec<StreamChunk>) {
        if !text.is_empty() {
            self.text.push_str(&text);
            chunks.push(StreamChunk::Text(text));
        }
    }

    fn append_reasoning(
        &mut self,
        field: ReasoningField,
        text: &str,
        chunks: &mut Vec<StreamChunk>,
    ) {
        if !text.is_empty() {
            self.reasoning_field.get_or_insert(field);
            self.reasoning.push_str(text);
            chunks.push(StreamChunk::Reasoning(text.to_owned()));
        }
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

    /// Adds the partial output to an error.
    pub(super) fn with_partial_output(&self, mut error: ApiError) -> ApiError {
        if error.partial_output.is_none() && !self.text.is_empty() {
            error.partial_output = Some(self.text.clone());
        }
        error
    }

    pub(super) fn into_incomplete_stream(self) -> ApiError {
        ApiError::incomplete_stream(self.text)
    }

    fn resolve_finish_reason(&self) -> FinishReason {
        let stop = if !self.calls.is_empty() {
            FinishReason::ToolCalls
        } else if self.refused {
            FinishReason::Refusal
        } else {
            FinishReason::Stop
        };
        let Some(reason) = self.finish_reason.as_deref() else { return stop };
        // Servers of other APIs pass their own words on.
        match reason.to_ascii_lowercase().as_str() {
            "stop" | "eos" | "eos_token" | "stop_sequence" | "end_turn" | "complete" => stop,
            "tool_calls" | "tool_call" | "function_call" | "tool_use" if !self.refused => {
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
        let native = |json| ProviderBlock {
            api: ProviderApi::OpenAiChat,
            model: self.request_model.clone(),
            json,
        };
        let mut parts = Vec::new();
        let raw_block = self.reasoning_field.map(|field| field.to_raw_block(&self.reasoning));
        let raw_block = if self.reasoning_details.is_empty() {
            raw_block
        } else {
            let mut members = ObjectBuilder::default();
            members.set_if_absent("reasoning_details", &self.reasoning_details.finish());
            Some(to_raw(&members))
        };
        if let Some(raw_block) = raw_block {
            let provider_block = Some(native(raw_block));
            parts.push(ContentPart {
                content: PartContent::Reasoning(self.reasoning),
                provider_block,
            });
        }
        if !self.text.is_empty() {
            parts.push(ContentPart::new(PartContent::Text(self.text)));
        }
        let others = self.other_parts.into_iter();
        parts.extend(others.map(|part| ContentPart {
            content: PartContent::Other,
            provider_block: Some(native(part)),
        }));
        parts.extend(self.calls.into_parts(&self.request_model));
        Response {
            message: AssistantMessage { parts },
            finish_reason,
            usage: self.usage,
            model: self.response_model,
        }
    }
}

impl ReasoningField {
    /// Returns the raw block for later requests: a member of the message, or a part of its content.
    fn to_raw_block(self, reasoning: &str) -> Box<RawValue> {
        to_raw(&match self {
            Self::ReasoningContent => json!({"reasoning_content": reasoning}),
            Self::Reasoning => json!({"reasoning": reasoning}),
            Self::ThinkingParts => {
                json!({"type": "thinking", "thinking": [{"type": "text", "text": reasoning}]})
            }
        })
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
