//! Decodes generateContent responses, streamed or not.

use serde_json::value::RawValue;

use super::partial_tool_call::PartialToolCall;
use crate::conversation::{AssistantMessage, ContentPart, PartContent, ProviderBlock, ToolCall};
use crate::provider::codec::{ApiError, MAX_CONTENT_PARTS, ObjectView, is_sendable_object};
use crate::provider::gemini::decode_error_object;
use crate::provider::{FinishReason, ProviderApi, Response, StreamChunk, Usage};

/// The response received so far.
pub(super) struct ResponseAccumulator {
    request_model: String,
    parts: Vec<ContentPart>,
    call_count: usize,
    /// The open call with streamed arguments.
    partial_call: Option<PartialToolCall>,
    finish_reason: Option<String>,
    is_prompt_blocked: bool,
    usage: Option<Usage>,
    /// The model that sent the response.
    response_model: Option<String>,
}

impl ResponseAccumulator {
    pub(super) fn new(model: &str) -> Self {
        Self {
            request_model: model.to_owned(),
            parts: Vec::new(),
            call_count: 0,
            partial_call: None,
            finish_reason: None,
            is_prompt_blocked: false,
            usage: None,
            response_model: None,
        }
    }

    pub(super) fn decode_body(mut self, body: &str) -> Result<Response, ApiError> {
        self.feed_event(body, &mut Vec::new())?;
        if self.finish_reason.is_none() && !self.is_prompt_blocked {
            self.close_partial_call(true, &mut Vec::new());
            if self.parts.is_empty() {
                return Err(ApiError::invalid_response("the response has no candidate"));
            }
            self.finish_reason = Some(String::new());
        }
        self.finish()
    }

    pub(super) fn feed_event(
        &mut self,
        text: &str,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError> {
        // Some proxies end the stream with this marker of OpenAI's APIs.
        if text.trim() == "[DONE]" {
            return Ok(());
        }
        let Some(fields) = ObjectView::parse(text) else {
            return Err(ApiError::invalid_response("the response is not a JSON object"));
        };
        if fields.get("error").is_some() {
            let partial_output = Some(self.partial_output()).filter(|output| !output.is_empty());
            return Err(ApiError { partial_output, ..decode_error_object(&fields, 500) });
        }
        self.response_model = fields.text("modelVersion").or(self.response_model.take());
        self.usage = fields.object("usageMetadata").as_ref().map(parse_usage).or(self.usage);
        self.is_prompt_blocked |= fields
            .object("promptFeedback")
            .is_some_and(|feedback| feedback.get("blockReason").is_some());
        // The request asks for one candidate.
        let candidates = fields.list("candidates").unwrap_or_default();
        let mut candidates = candidates.into_iter().filter_map(ObjectView::from_raw);
        let Some(candidate) = candidates.find(|entry| entry.number("index").unwrap_or(0) == 0)
        else {
            return Ok(());
        };
        for part in candidate.object("content").unwrap_or_default().bounded_list("parts")? {
            self.feed_part(part, chunks)?;
            if self.parts.len() > MAX_CONTENT_PARTS {
                return Err(ApiError::too_many("parts"));
            }
        }
        self.finish_reason = candidate.text("finishReason").or(self.finish_reason.take());
        if self.finish_reason.is_some() {
            self.close_partial_call(true, chunks);
        }
        Ok(())
    }

    /// Returns the response at the end of the body.
    pub(super) fn finish(self) -> Result<Response, ApiError> {
        let finish_reason = match self.finish_reason.as_deref() {
            Some(reason) => parse_finish_reason(reason, self.call_count > 0),
            None if self.is_prompt_blocked => FinishReason::Refusal,
            None => return Err(ApiError::incomplete_stream(self.partial_output())),
        };
        let assistant = AssistantMessage { parts: self.parts };
        Ok(Response {
            message: assistant,
            finish_reason,
            usage: self.usage,
            model: self.response_model,
        })
    }

    fn feed_part(&mut self, raw: &RawValue, chunks: &mut Vec<StreamChunk>) -> Result<(), ApiError> {
        let fields = ObjectView::from_raw(raw).unwrap_or_default();
        let mut goes_back = true;
        let content = if let Some(call) = fields.get("functionCall") {
            let call = ObjectView::from_raw(call).unwrap_or_default();
            let partly = call.is_true("willContinue") || call.get("partialArgs").is_some();
            if partly || (self.partial_call.is_some() && call.get("name").is_none()) {
                return self.feed_partial_call(&fields, &call, chunks);
            }
            self.close_partial_call(true, chunks);
            // The API accepts only an object as arguments in a later request.
            goes_back = call.get("args").is_none_or(|args| is_sendable_object(args.get()));
            self.feed_call(&call, chunks)
        } else if let Some(text) = fields.text("text") {
            let is_thought = fields.is_true("thought");
            if !text.is_empty() {
                let text = text.clone();
                chunks.push(if is_thought {
                    StreamChunk::Reasoning(text)
                } else {
                    StreamChunk::Text(text)
                });
            }
            let content =
                if is_thought { PartContent::Reasoning(text) } else { PartContent::Text(text) };
            if fields.iter().all(|(name, _)| matches!(name, "text" | "thought")) {
                self.append_plain(content);
                return Ok(());
            }
            content
        } else {
            PartContent::Other
        };
        let provider_block = goes_back.then(|| self.provider_block(raw.to_owned()));
        self.parts.push(ContentPart { content, provider_block });
        Ok(())
    }

    fn provider_block(&self, json: Box<RawValue>) -> ProviderBlock {
        ProviderBlock { api: ProviderApi::GeminiGenerate, model: self.request_model.clone(), json }
    }

    /// Feeds a chunk of a call with streamed arguments.
    fn feed_partial_call(
        &mut self,
        part: &ObjectView<'_>,
        call: &ObjectView<'_>,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError> {
        let mut partial = self.partial_call.take().unwrap_or_else(|| {
            let partial = PartialToolCall::new(part, call);
            chunks.push(StreamChunk::ToolCallStart {
                index: self.call_count,
                name: partial.name.clone(),
            });
            self.call_count += 1;
            partial
        });
        partial.feed_arguments(call)?;
        self.partial_call = Some(partial);
        if !call.is_true("willContinue") {
            self.close_partial_call(false, chunks);
        }
        Ok(())
    }

    /// Ends the call with streamed arguments, if there is an open one.
    fn close_partial_call(&mut self, is_cut: bool, chunks: &mut Vec<StreamChunk>) {
        let Some(partial) = self.partial_call.take() else { return };
        let arguments = partial.arguments();
        let index = self.call_count.saturating_sub(1);
        chunks.push(StreamChunk::ArgumentsDelta { index, fragment: arguments.clone() });
        let provider_block = partial.to_raw_part().map(|part| self.provider_block(part));
        let PartialToolCall { id, name, .. } = partial;
        self.parts.push(ContentPart {
            content: PartContent::ToolCall(ToolCall { id, name, arguments, is_cut }),
            provider_block,
        });
    }

    /// Appends plain text or reasoning to the last part if that part has the same type and is plain
    /// too.
    fn append_plain(&mut self, content: PartContent) {
        let last = self.parts.last_mut().filter(|part| part.provider_block.is_none());
        match (last.map(|part| &mut part.content), content) {
            (Some(PartContent::Text(text)), PartContent::Text(more))
            | (Some(PartContent::Reasoning(text)), PartContent::Reasoning(more)) => {
                text.push_str(&more);
            }
            (_, PartContent::Text(more) | PartContent::Reasoning(more)) if more.is_empty() => {}
            (_, content) => self.parts.push(ContentPart::new(content)),
        }
    }

    fn feed_call(&mut self, call: &ObjectView<'_>, chunks: &mut Vec<StreamChunk>) -> PartContent {
        let name = call.text("name").unwrap_or_default();
        let arguments = call.text("args").unwrap_or_else(|| {
            call.get("args").map_or_else(|| "{}".to_owned(), |args| args.get().to_owned())
        });
        let index = self.call_count;
        self.call_count += 1;
        chunks.push(StreamChunk::ToolCallStart { index, name: name.clone() });
        chunks.push(StreamChunk::ArgumentsDelta { index, fragment: arguments.clone() });
        PartContent::ToolCall(ToolCall {
            id: call.text("id").unwrap_or_default(),
            name,
            arguments,
            is_cut: false,
        })
    }

    /// Returns the text so far.
    fn partial_output(&self) -> String {
        let texts = self.parts.iter().map(|part| match &part.content {
            PartContent::Text(text) => text.as_str(),
            PartContent::Reasoning(_) | PartContent::ToolCall(_) | PartContent::Other => "",
        });
        texts.collect()
    }
}

fn parse_usage(usage: &ObjectView<'_>) -> Usage {
    let count = |name| usage.number(name).unwrap_or(0);
    let thought_tokens = count("thoughtsTokenCount");
    Usage {
        prompt_tokens: count("promptTokenCount").saturating_add(count("toolUsePromptTokenCount")),
        completion_tokens: count("candidatesTokenCount").saturating_add(thought_tokens),
        cached_tokens: count("cachedContentTokenCount"),
        reasoning_tokens: thought_tokens,
        cost: None,
    }
}

fn parse_finish_reason(code: &str, has_calls: bool) -> FinishReason {
    match code {
        "STOP" | "FINISH_REASON_UNSPECIFIED" | "" if has_calls => FinishReason::ToolCalls,
        "STOP" | "FINISH_REASON_UNSPECIFIED" | "" => FinishReason::Stop,
        "MAX_TOKENS" | "CONTINUATION" => FinishReason::Length,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "MODEL_ARMOR"
        | "ESCALATION"
        | "PUP_LIMITED_DISABLED" => FinishReason::Refusal,
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "MISSING_THOUGHT_SIGNATURE"
        | "TOO_MANY_TOOL_CALLS"
        | "MALFORMED_RESPONSE" => FinishReason::MalformedToolCall,
        other => FinishReason::Other(other.to_owned()),
    }
}
