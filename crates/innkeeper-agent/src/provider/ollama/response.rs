//! Decodes Ollama's responses: one line, or one line per chunk.

use serde_json::value::{RawValue, to_raw_value};

use super::error;
use crate::conversation::{AssistantMessage, ContentPart, PartContent, ProviderBlock, ToolCall};
use crate::provider::codec::{
    ApiError, LineSplitter, MAX_CONTENT_PARTS, ObjectView, ResponseDecoder, arguments_text,
    is_sendable_object,
};
use crate::provider::{FinishReason, ProviderApi, Response, StreamChunk, Usage};

pub(super) fn decode_body(body: &str, model: String) -> Result<Response, ApiError> {
    let Some(line) = ObjectView::parse(body) else {
        return Err(ApiError::invalid_response("the response is not a JSON object"));
    };
    if line.get("message").is_none() && line.get("error").is_none() {
        return Err(ApiError::invalid_response("the response has no `message`"));
    }
    let mut message = MessageAccumulator::new(model);
    message.feed_line(&line, &mut Vec::new())?;
    Ok(message.into_response())
}

pub(super) struct StreamDecoder {
    lines: LineSplitter,
    message: MessageAccumulator,
}

/// The response received so far. The API has one text, one reasoning text and a list of calls,
/// without an order between them.
struct MessageAccumulator {
    request_model: String,
    thinking: String,
    text: String,
    calls: Vec<ContentPart>,
    response_model: Option<String>,
    done: bool,
    done_reason: Option<String>,
    usage: Option<Usage>,
}

impl StreamDecoder {
    pub(super) fn new(request_model: String) -> Self {
        Self { lines: LineSplitter::default(), message: MessageAccumulator::new(request_model) }
    }
}

impl ResponseDecoder for StreamDecoder {
    fn push(&mut self, bytes: &[u8], chunks: &mut Vec<StreamChunk>) -> Result<(), ApiError> {
        let Self { lines, message } = self;
        let result = lines.push(bytes, |line| message.feed_text(line, chunks));
        result.map_err(|error| message.with_partial_output(error))
    }

    fn is_finished(&self) -> bool {
        self.message.done
    }

    /// Returns the response. Content in a last line without a line break is only in the response,
    /// not in a chunk.
    fn finish(self: Box<Self>) -> Result<Response, ApiError> {
        let Self { mut lines, mut message } = *self;
        let mut rest = None;
        let ended = lines.finish(|line| {
            rest = Some(line.to_owned());
            Ok(())
        });
        // An incomplete last line is ignored.
        if let (Ok(()), Some(line)) = (ended, rest.as_deref().and_then(ObjectView::parse)) {
            let result = message.feed_line(&line, &mut Vec::new());
            result.map_err(|error| message.with_partial_output(error))?;
        }
        // Tool calls may follow the line with `done`, so the response ends with the stream.
        if message.done {
            Ok(message.into_response())
        } else {
            Err(ApiError::incomplete_stream(message.text))
        }
    }
}

impl MessageAccumulator {
    fn new(request_model: String) -> Self {
        Self {
            request_model,
            thinking: String::new(),
            text: String::new(),
            calls: Vec::new(),
            response_model: None,
            done: false,
            done_reason: None,
            usage: None,
        }
    }

    fn feed_text(&mut self, line: &str, chunks: &mut Vec<StreamChunk>) -> Result<(), ApiError> {
        let Some(members) = ObjectView::parse(line) else {
            if self.done {
                return Ok(());
            }
            let excerpt: String = line.chars().take(200).collect();
            return Err(ApiError::invalid_response(format!(
                "a line is not a JSON object: {excerpt}"
            )));
        };
        self.feed_line(&members, chunks)
    }

    fn feed_line(
        &mut self,
        line: &ObjectView<'_>,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError> {
        if let Some(fault) = error::decode_error_object(None, line) {
            return Err(fault);
        }
        if let Some(message) = line.object("message") {
            if let Some(text) = message.text("thinking").filter(|thinking| !thinking.is_empty()) {
                self.thinking.push_str(&text);
                chunks.push(StreamChunk::Reasoning(text));
            }
            if let Some(text) = message.text("content").filter(|content| !content.is_empty()) {
                self.text.push_str(&text);
                chunks.push(StreamChunk::Text(text));
            }
            for raw in message.list("tool_calls").unwrap_or_default() {
                self.feed_call(raw, chunks)?;
            }
        }
        self.response_model = line.text("model").or(self.response_model.take());
        self.done_reason = line
            .text("done_reason")
            .filter(|reason| !reason.is_empty())
            .or(self.done_reason.take());
        self.done |= line.is_true("done");
        self.update_usage(line);
        Ok(())
    }

    fn feed_call(&mut self, raw: &RawValue, chunks: &mut Vec<StreamChunk>) -> Result<(), ApiError> {
        if self.calls.len() == MAX_CONTENT_PARTS {
            return Err(ApiError::too_many("calls"));
        }
        let Some(outer) = ObjectView::from_raw(raw) else { return Ok(()) };
        let inner = outer.object("function");
        let function = inner.as_ref().unwrap_or(&outer);
        let arguments = function.get("arguments");
        let call = ToolCall {
            id: outer.text("id").unwrap_or_default(),
            name: function.text("name").unwrap_or_default(),
            arguments: arguments_text(arguments),
            is_cut: false,
        };
        let index = self.calls.len();
        chunks.push(StreamChunk::ToolCallStart { index, name: call.name.clone() });
        chunks.push(StreamChunk::ArgumentsDelta { index, fragment: call.arguments.clone() });
        // The API accepts only an object as arguments in a later request.
        let goes_back = inner.is_some()
            && arguments.is_some_and(|raw_arguments| is_sendable_object(raw_arguments.get()));
        let provider_block = goes_back.then(|| self.provider_block(raw.to_owned()));
        self.calls.push(ContentPart { content: PartContent::ToolCall(call), provider_block });
        Ok(())
    }

    fn update_usage(&mut self, line: &ObjectView<'_>) {
        let read = line.number("prompt_eval_count");
        let completion = line.number("eval_count");
        if read.is_none() && completion.is_none() {
            return;
        }
        self.usage = Some(Usage {
            prompt_tokens: read.unwrap_or_default(),
            completion_tokens: completion.unwrap_or_default(),
            cached_tokens: line.number("prompt_eval_cached_count").unwrap_or_default(),
            reasoning_tokens: 0,
            cost: None,
        });
    }

    fn provider_block(&self, json: Box<RawValue>) -> ProviderBlock {
        ProviderBlock { api: ProviderApi::Ollama, model: self.request_model.clone(), json }
    }

    fn with_partial_output(&self, error: ApiError) -> ApiError {
        let partial_output = error.partial_output.or_else(|| Some(self.text.clone()));
        ApiError { partial_output, ..error }
    }

    fn into_response(mut self) -> Response {
        let mut parts = Vec::new();
        if !self.thinking.is_empty() {
            let block = to_raw_value(&serde_json::json!({"thinking": self.thinking}));
            let provider_block = block.ok().map(|block| self.provider_block(block));
            parts.push(ContentPart {
                content: PartContent::Reasoning(self.thinking),
                provider_block,
            });
        }
        if !self.text.is_empty() {
            parts.push(ContentPart::new(PartContent::Text(self.text)));
        }
        let finish_reason = match self.done_reason.as_deref() {
            Some("stop") | None if self.calls.is_empty() => FinishReason::Stop,
            Some("stop" | "tool_calls") | None => FinishReason::ToolCalls,
            Some("length") => FinishReason::Length,
            Some(other) => FinishReason::Other(other.to_owned()),
        };
        parts.append(&mut self.calls);
        Response {
            message: AssistantMessage { parts },
            finish_reason,
            usage: self.usage,
            model: self.response_model,
        }
    }
}
