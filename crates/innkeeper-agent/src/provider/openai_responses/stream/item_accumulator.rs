//! Assembles one streamed output item.

use serde_json::value::RawValue;

use crate::conversation::{ContentPart, PartContent, ToolCall};
use crate::provider::StreamChunk;
use crate::provider::codec::{StringJoiner, are_same_arguments, is_json};
use crate::provider::openai_responses::output_item::{
    OutputItem, PARAGRAPH_SEPARATOR, is_encrypted_reasoning,
};

/// The type of a delta. Reasoning deltas have a paragraph number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DeltaKind {
    Text,
    Refusal,
    ReasoningSummary(u64),
    ReasoningText(u64),
    Arguments,
}

#[derive(Default)]
pub(super) struct ItemAccumulator {
    /// The type of the last delta.
    last_kind: Option<DeltaKind>,
    /// The concatenated deltas.
    received: String,
    joiner: StringJoiner,
    call: Option<StartedCall>,
    finished_part: Option<ContentPart>,
    /// The complete arguments of a call whose finished item has not come.
    finished_arguments: Option<String>,
    pub(super) is_refusal: bool,
}

/// A call with an emitted start chunk.
struct StartedCall {
    index: usize,
    id: String,
    name: String,
}

impl ItemAccumulator {
    /// Whether the accumulator needs the given item: its own item is missing, is reasoning without
    /// encrypted content, which some servers send only in the response object, or is a call whose
    /// end the given item knows better.
    pub(super) fn lacks(&self, item: &OutputItem) -> bool {
        self.finished_part.as_ref().is_none_or(|finished| {
            (!is_encrypted_reasoning(finished) && is_encrypted_reasoning(&item.part))
                || is_cut_call(&finished.content) != is_cut_call(&item.part.content)
        })
    }

    /// Whether an item at the place of the streamed one may be its end. A complete call is not
    /// continued: another call may have moved to its place.
    pub(super) fn may_become(&self, item: &OutputItem) -> bool {
        let is_open = match &item.part.content {
            PartContent::ToolCall(other) => {
                self.to_call().is_none_or(|call| call.is_cut && call.name == other.name)
            }
            PartContent::Text(_) | PartContent::Reasoning(_) | PartContent::Other => true,
        };
        is_open && self.is_kind_of(item)
    }

    /// Whether an item has the kind of the streamed one. Before its first content, a streamed item
    /// may become any item.
    pub(super) fn is_kind_of(&self, item: &OutputItem) -> bool {
        if let Some(finished) = &self.finished_part {
            return std::mem::discriminant(&finished.content)
                == std::mem::discriminant(&item.part.content);
        }
        match (&item.part.content, self.last_kind) {
            (PartContent::ToolCall(_), _) if self.call.is_some() => true,
            (_, _) if self.call.is_some() => false,
            (PartContent::ToolCall(_), None | Some(DeltaKind::Arguments)) => true,
            (_, Some(DeltaKind::Arguments)) => false,
            (PartContent::Text(_), Some(DeltaKind::Text | DeltaKind::Refusal)) => true,
            (
                PartContent::Reasoning(_),
                Some(DeltaKind::ReasoningSummary(_) | DeltaKind::ReasoningText(_)),
            ) => true,
            (
                PartContent::ToolCall(_) | PartContent::Text(_) | PartContent::Reasoning(_),
                Some(_),
            ) => false,
            // A message without text may stand for a streamed one.
            (PartContent::Other, _) | (_, None) => true,
        }
    }

    pub(super) fn repeats(&self, item: &OutputItem) -> bool {
        match (&item.part.content, self.finished_part.as_ref().map(|part| &part.content)) {
            (PartContent::ToolCall(other), _) => self.to_call().is_some_and(|call| {
                let is_same_call = !call.is_cut
                    && call.name == other.name
                    && are_same_arguments(&call.arguments, &other.arguments);
                is_same_call || (!call.id.is_empty() && call.id == other.id)
            }),
            (PartContent::Text(other), Some(PartContent::Text(text)))
            | (PartContent::Reasoning(other), Some(PartContent::Reasoning(text))) => text == other,
            (PartContent::Text(other) | PartContent::Reasoning(other), None) => {
                self.is_kind_of(item) && self.last_kind.is_some() && self.received == *other
            }
            (PartContent::Text(_) | PartContent::Reasoning(_) | PartContent::Other, _) => false,
        }
    }

    /// Returns the call that was streamed so far. Without any event that ends it, a call is complete
    /// only if its arguments are.
    fn to_call(&self) -> Option<ToolCall> {
        if let Some(finished) = &self.finished_part {
            let PartContent::ToolCall(call) = &finished.content else { return None };
            return Some(call.clone());
        }
        let StartedCall { id, name, .. } = self.call.as_ref()?;
        let is_cut = self.finished_arguments.is_none() && !is_json(&self.received);
        let arguments = self.finished_arguments.as_ref().unwrap_or(&self.received).clone();
        Some(ToolCall { id: id.clone(), name: name.clone(), arguments, is_cut })
    }

    /// Stores the complete arguments of a call, and emits what its deltas did not contain.
    pub(super) fn finish_arguments(&mut self, arguments: &str, chunks: &mut Vec<StreamChunk>) {
        let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
        if let (Some(call), Some(rest)) = (&self.call, arguments.strip_prefix(&self.received))
            && !rest.is_empty()
        {
            let fragment = rest.to_owned();
            chunks.push(StreamChunk::ArgumentsDelta { index: call.index, fragment });
            self.received.push_str(rest);
        }
        self.finished_arguments = Some(arguments.to_owned());
    }

    pub(super) fn feed_delta(
        &mut self,
        kind: DeltaKind,
        delta: &RawValue,
        chunks: &mut Vec<StreamChunk>,
    ) {
        let delta = self.joiner.decode_next(delta).unwrap_or_default();
        if delta.is_empty() {
            return;
        }
        let paragraph = match (self.last_kind, kind) {
            (None, _) | (_, DeltaKind::Text | DeltaKind::Refusal | DeltaKind::Arguments) => false,
            (Some(before), DeltaKind::ReasoningSummary(_) | DeltaKind::ReasoningText(_)) => {
                before != kind
            }
        };
        self.last_kind = Some(kind);
        self.is_refusal |= kind == DeltaKind::Refusal;
        let delta = if paragraph { format!("{PARAGRAPH_SEPARATOR}{delta}") } else { delta };
        self.received.push_str(&delta);
        match (kind, &self.call) {
            (DeltaKind::Text | DeltaKind::Refusal, _) => chunks.push(StreamChunk::Text(delta)),
            (DeltaKind::ReasoningSummary(_) | DeltaKind::ReasoningText(_), _) => {
                chunks.push(StreamChunk::Reasoning(delta));
            }
            (DeltaKind::Arguments, Some(call)) => {
                chunks.push(StreamChunk::ArgumentsDelta { index: call.index, fragment: delta });
            }
            // The name of the call is not known yet.
            (DeltaKind::Arguments, None) => {}
        }
    }

    /// Emits the start of a call and the arguments received before. Returns `false` if the start
    /// was already emitted.
    pub(super) fn start_call(
        &mut self,
        index: usize,
        id: &str,
        name: &str,
        chunks: &mut Vec<StreamChunk>,
    ) -> bool {
        if self.call.is_some() {
            return false;
        }
        let id = id.to_owned();
        let name = name.to_owned();
        chunks.push(StreamChunk::ToolCallStart { index, name: name.clone() });
        if !self.received.is_empty() {
            chunks.push(StreamChunk::ArgumentsDelta { index, fragment: self.received.clone() });
        }
        self.call = Some(StartedCall { index, id, name });
        true
    }

    /// Stores the finished item and emits the content that its deltas did not contain. Returns
    /// `true` if this starts a call.
    pub(super) fn finish(
        &mut self,
        calls: usize,
        item: OutputItem,
        chunks: &mut Vec<StreamChunk>,
    ) -> bool {
        let OutputItem { part, is_refusal } = item;
        self.is_refusal |= is_refusal;
        let whole = match &part.content {
            PartContent::Text(text) | PartContent::Reasoning(text) => text.as_str(),
            PartContent::ToolCall(call) => &call.arguments,
            PartContent::Other => "",
        };
        let rest = whole.strip_prefix(&self.received).unwrap_or_default().to_owned();
        let mut has_started = false;
        if let PartContent::ToolCall(call) = &part.content {
            has_started = self.start_call(calls, &call.id, &call.name, chunks);
        }
        if !rest.is_empty() {
            chunks.push(match &part.content {
                PartContent::ToolCall(_) => {
                    let index = self.call.as_ref().map_or(calls, |open_call| open_call.index);
                    StreamChunk::ArgumentsDelta { index, fragment: rest }
                }
                PartContent::Reasoning(_) => StreamChunk::Reasoning(rest),
                PartContent::Text(_) | PartContent::Other => StreamChunk::Text(rest),
            });
            whole.clone_into(&mut self.received);
        }
        self.finished_part = Some(part);
        has_started
    }

    /// Returns the visible text so far.
    pub(super) fn partial_output(&self) -> &str {
        match self.last_kind {
            Some(DeltaKind::Text | DeltaKind::Refusal) => &self.received,
            Some(
                DeltaKind::ReasoningSummary(_) | DeltaKind::ReasoningText(_) | DeltaKind::Arguments,
            )
            | None => "",
        }
    }

    /// Returns the part of the finished item, or the deltas if the finished item never came.
    pub(super) fn into_part(self) -> Option<ContentPart> {
        if self.finished_part.is_some() {
            return self.finished_part;
        }
        let call = self.to_call();
        let received = self.received;
        let content = match (call, self.last_kind) {
            (Some(call), _) => PartContent::ToolCall(call),
            (None, Some(DeltaKind::Text | DeltaKind::Refusal)) => PartContent::Text(received),
            (None, Some(DeltaKind::ReasoningSummary(_) | DeltaKind::ReasoningText(_))) => {
                PartContent::Reasoning(received)
            }
            (None, Some(DeltaKind::Arguments) | None) => return None,
        };
        Some(ContentPart::new(content))
    }
}

fn is_cut_call(content: &PartContent) -> bool {
    matches!(content, PartContent::ToolCall(call) if call.is_cut)
}
