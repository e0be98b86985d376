//! Decodes a streamed response.

use serde::Serialize;
use serde::ser::Serializer;
use serde_json::value::{RawValue, to_raw_value};

use super::block::{self, BlockKind};
use super::error;
use super::response::{UsageCounts, finish_reason};
use crate::conversation::{AssistantMessage, ContentPart, PartContent, ToolCall};
use crate::provider::codec::{
    ApiError, EventSplitter, MAX_CONTENT_PARTS, ObjectView, ResponseDecoder, StringJoiner,
    arguments_text, is_json,
};
use crate::provider::{Response, StreamChunk};

/// Events that must be valid JSON. The decoder skips other invalid events, which may be new.
const REQUIRED_EVENTS: &[&str] = &[
    "message",
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
];

pub(super) struct StreamDecoder {
    events: EventSplitter,
    message: MessageAccumulator,
}

/// The response received so far.
struct MessageAccumulator {
    request_model: String,
    blocks: Vec<OpenBlock>,
    call_count: usize,
    counts: UsageCounts,
    response_model: Option<String>,
    stop_reason: Option<String>,
    /// Whether the event that says why the message ends came, with a reason or without.
    has_delta: bool,
    stopped: bool,
}

/// A content block received so far.
struct OpenBlock {
    kind: BlockKind,
    /// The index by which deltas refer to the block.
    index: Option<u64>,
    /// The members of the block's start event.
    members: Vec<(String, Box<RawValue>)>,
    deltas: BlockDeltas,
    /// The index of the tool call in the response, if the block is a tool call.
    call_index: usize,
    closed: bool,
}

#[derive(Default)]
struct BlockDeltas {
    /// The concatenated texts, reasonings or pieces of the JSON of an input.
    text: String,
    joiner: StringJoiner,
    signature: Option<String>,
    citations: Vec<Box<RawValue>>,
    /// Whether a delta of unknown type came; the decoder cannot rebuild such a block.
    has_unknown: bool,
}

impl StreamDecoder {
    pub(super) fn new(request_model: String) -> Self {
        let message = MessageAccumulator {
            request_model,
            blocks: Vec::new(),
            call_count: 0,
            counts: UsageCounts::default(),
            response_model: None,
            stop_reason: None,
            has_delta: false,
            stopped: false,
        };
        Self { events: EventSplitter::new(), message }
    }
}

impl ResponseDecoder for StreamDecoder {
    fn push(&mut self, bytes: &[u8], chunks: &mut Vec<StreamChunk>) -> Result<(), ApiError> {
        let Self { events, message } = self;
        let result = events.push(bytes, |name, data| message.feed_event(name, data, chunks));
        result.map_err(|error| ApiError { partial_output: Some(message.partial_output()), ..error })
    }

    fn is_finished(&self) -> bool {
        self.message.stopped
    }

    fn finish(self: Box<Self>) -> Result<Response, ApiError> {
        let message = self.message;
        // Nothing of value follows the stop reason.
        let has_ended = message.stopped && message.has_delta;
        if !has_ended && message.stop_reason.is_none() {
            return Err(ApiError::incomplete_stream(message.partial_output()));
        }
        Ok(message.into_response())
    }
}

impl MessageAccumulator {
    fn feed_event(
        &mut self,
        name: &str,
        data: &str,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError> {
        if self.stopped {
            return Ok(());
        }
        let Some(event) = ObjectView::parse(data) else {
            let matters =
                name == "error" || (REQUIRED_EVENTS.contains(&name) && data.trim() != "[DONE]");
            return if matters { Err(invalid_event(name, data)) } else { Ok(()) };
        };
        if name == "error" {
            return Err(error::decode_error_object(None, &event));
        }
        let kind = event.text("type").unwrap_or_else(|| name.to_owned());
        match kind.as_str() {
            "message_start" => self.start_message(&event),
            "content_block_start" => self.start_block(&event, chunks)?,
            "content_block_delta" => self.feed_delta(&event, chunks)?,
            "content_block_stop" => {
                if let Some(at) = self.block_position(event.number("index")) {
                    self.blocks[at].close(chunks);
                }
            }
            "message_delta" => {
                self.has_delta = true;
                let delta = event.object("delta");
                self.stop_reason = delta
                    .and_then(|delta_fields| delta_fields.text("stop_reason"))
                    .or(self.stop_reason.take());
                self.update_usage(&event);
            }
            "message_stop" => self.stopped = true,
            "error" => return Err(error::decode_error_object(None, &event)),
            _ if event.object("error").is_some() => {
                return Err(error::decode_error_object(None, &event));
            }
            _ => {}
        }
        Ok(())
    }

    /// Starts a message. A second start comes from a proxy that has sent the request again: the
    /// message before it has no end and does not count.
    fn start_message(&mut self, event: &ObjectView<'_>) {
        self.blocks.clear();
        self.stop_reason = None;
        self.has_delta = false;
        let Some(message) = event.object("message") else { return };
        self.response_model = message.text("model");
        self.update_usage(&message);
    }

    fn update_usage(&mut self, event: &ObjectView<'_>) {
        if let Some(usage) = event.object("usage") {
            self.counts.update(&usage);
        }
    }

    fn start_block(
        &mut self,
        event: &ObjectView<'_>,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError> {
        let raw = event.get("content_block").map_or("{}", RawValue::get);
        self.push_block(event.number("index"), raw, chunks)
    }

    fn push_block(
        &mut self,
        index: Option<u64>,
        raw: &str,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError> {
        if self.blocks.len() == MAX_CONTENT_PARTS {
            return Err(ApiError::too_many("parts"));
        }
        let Some(members) = ObjectView::parse(raw) else {
            return Err(invalid_event("content_block_start", raw));
        };
        let kind = BlockKind::from_block(&members);
        let mut block = OpenBlock {
            kind,
            index,
            members: members.iter().map(|(name, raw)| (name.to_owned(), raw.to_owned())).collect(),
            deltas: BlockDeltas::default(),
            call_index: self.call_count,
            closed: false,
        };
        match kind {
            BlockKind::Text => block.append_text(members.text("text"), chunks),
            BlockKind::Thinking => block.append_text(members.text("thinking"), chunks),
            BlockKind::ToolUse => {
                let name = members.text("name").unwrap_or_default();
                chunks.push(StreamChunk::ToolCallStart { index: self.call_count, name });
                self.call_count += 1;
            }
            BlockKind::RedactedThinking | BlockKind::Other => {}
        }
        self.blocks.push(block);
        Ok(())
    }

    /// Returns the position of the block that an event refers to. An event without an index refers
    /// to the last block.
    fn block_position(&self, index: Option<u64>) -> Option<usize> {
        match index {
            Some(_) => self.blocks.iter().rposition(|block| block.index == index),
            None => self.blocks.len().checked_sub(1),
        }
    }

    fn feed_delta(
        &mut self,
        event: &ObjectView<'_>,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError> {
        let Some(delta) = event.object("delta") else { return Ok(()) };
        let kind = delta.text("type").unwrap_or_default();
        let index = event.number("index");
        let at = match self.block_position(index) {
            Some(at) => at,
            None => {
                // The start event is missing; text does not need one.
                let raw = match kind.as_str() {
                    "text_delta" => r#"{"type":"text"}"#,
                    "thinking_delta" => r#"{"type":"thinking"}"#,
                    "input_json_delta" => {
                        return Err(ApiError::invalid_response(
                            "tool call arguments without a `content_block_start` event",
                        ));
                    }
                    _ => return Ok(()),
                };
                self.push_block(index, raw, chunks)?;
                self.blocks.len() - 1
            }
        };
        self.blocks[at].feed_delta(&kind, &delta, chunks);
        Ok(())
    }

    /// Returns all visible text so far.
    fn partial_output(&self) -> String {
        let texts = self.blocks.iter().filter(|block| block.kind == BlockKind::Text);
        texts.map(|block| block.deltas.text.as_str()).collect()
    }

    fn into_response(self) -> Response {
        let request_model = self.request_model;
        let parts: Vec<ContentPart> =
            self.blocks.into_iter().map(|block| block.into_part(&request_model)).collect();
        Response {
            finish_reason: finish_reason(self.stop_reason.as_deref(), &parts),
            message: AssistantMessage { parts },
            usage: self.counts.usage(),
            model: self.response_model,
        }
    }
}

impl OpenBlock {
    fn feed_delta(&mut self, kind: &str, delta: &ObjectView<'_>, chunks: &mut Vec<StreamChunk>) {
        match (kind, self.kind) {
            ("text_delta", BlockKind::Text) => {
                let more = self.deltas.joiner.decode_next_field(delta, "text");
                self.append_text(more, chunks);
            }
            ("thinking_delta", BlockKind::Thinking) => {
                let more = self.deltas.joiner.decode_next_field(delta, "thinking");
                self.append_text(more, chunks);
            }
            ("input_json_delta", BlockKind::ToolUse | BlockKind::Other) => {
                let more = self.deltas.joiner.decode_next_field(delta, "partial_json");
                self.append_text(more, chunks);
            }
            ("signature_delta", BlockKind::Thinking) => {
                self.deltas.signature = delta.text("signature");
            }
            ("citations_delta", BlockKind::Text) => {
                self.deltas.citations.extend(delta.get("citation").map(ToOwned::to_owned));
            }
            _ => self.deltas.has_unknown = true,
        }
    }

    fn append_text(&mut self, text: Option<String>, chunks: &mut Vec<StreamChunk>) {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return };
        self.deltas.text.push_str(&text);
        match self.kind {
            BlockKind::Text => chunks.push(StreamChunk::Text(text)),
            BlockKind::Thinking => chunks.push(StreamChunk::Reasoning(text)),
            BlockKind::ToolUse => {
                chunks.push(StreamChunk::ArgumentsDelta { index: self.call_index, fragment: text });
            }
            BlockKind::RedactedThinking | BlockKind::Other => {}
        }
    }

    fn close(&mut self, chunks: &mut Vec<StreamChunk>) {
        self.closed = true;
        if self.kind == BlockKind::ToolUse && self.deltas.text.trim().is_empty() {
            let input = self.members.iter().rfind(|(name, _)| name == "input");
            let arguments = arguments_text(input.map(|(_, raw)| &**raw));
            self.append_text(Some(arguments), chunks);
        }
    }

    fn into_part(mut self, model: &str) -> ContentPart {
        let raw = self.build_block();
        let content = match self.kind {
            BlockKind::Text => PartContent::Text(self.deltas.text),
            BlockKind::Thinking => PartContent::Reasoning(self.deltas.text),
            BlockKind::RedactedThinking => PartContent::Reasoning(String::new()),
            BlockKind::ToolUse => {
                let raw = to_raw_value(&ObjectMembers(&self.members)).unwrap_or_default();
                let Some(block) = ObjectView::from_raw(&raw) else {
                    return ContentPart::new(PartContent::Other);
                };
                // Without the end of the block, a call is complete only if its arguments are.
                let is_cut = !self.closed && !is_json(&self.deltas.text);
                PartContent::ToolCall(ToolCall {
                    is_cut,
                    ..block::tool_call(&block, self.deltas.text)
                })
            }
            BlockKind::Other => PartContent::Other,
        };
        block::content_part(content, raw, model)
    }

    /// Rebuilds the block as an unstreamed response contains it; `None` if the block cannot be
    /// rebuilt.
    fn build_block(&mut self) -> Option<Box<RawValue>> {
        match self.kind {
            BlockKind::Text => {
                self.set("text", to_raw_value(&self.deltas.text).ok()?);
                if !self.deltas.citations.is_empty() {
                    self.set("citations", to_raw_value(&self.deltas.citations).ok()?);
                }
            }
            BlockKind::Thinking => {
                self.set("thinking", to_raw_value(&self.deltas.text).ok()?);
                if let Some(signature) = self.deltas.signature.take() {
                    self.set("signature", to_raw_value(&signature).ok()?);
                }
            }
            BlockKind::ToolUse | BlockKind::Other => {
                if !self.deltas.text.is_empty() {
                    let input = RawValue::from_string(self.deltas.text.trim().to_owned()).ok()?;
                    self.set("input", input);
                }
                if self.deltas.has_unknown && self.kind == BlockKind::Other {
                    return None;
                }
            }
            BlockKind::RedactedThinking => {}
        }
        to_raw_value(&ObjectMembers(&self.members)).ok()
    }

    fn set(&mut self, name: &str, value: Box<RawValue>) {
        match self.members.iter_mut().rfind(|(key, _)| key == name) {
            Some((_, slot)) => *slot = value,
            None => self.members.push((name.to_owned(), value)),
        }
    }
}

struct ObjectMembers<'a>(&'a [(String, Box<RawValue>)]);

impl Serialize for ObjectMembers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

fn invalid_event(name: &str, data: &str) -> ApiError {
    let excerpt: String = data.chars().take(200).collect();
    ApiError::invalid_response(format!("invalid event `{name}`: {excerpt}"))
}
