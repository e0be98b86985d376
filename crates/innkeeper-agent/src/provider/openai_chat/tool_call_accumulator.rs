//! Assembles tool calls from the deltas of different servers.
//!
//! OpenAI sends an index with every delta, and the id and the name with the first. Other servers
//! send no index, or 0 for every call, no ids, arguments as an object instead of text, the name with
//! every delta, or the name in several deltas. The start of a call is therefore emitted with its
//! first arguments.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::call_name::{CallName, NextPart};
use crate::conversation::{ContentPart, PartContent, ProviderBlock, ToolCall};
use crate::provider::codec::{
    ApiError, MAX_CONTENT_PARTS, ObjectView, StringJoiner, are_same_arguments, decode_string,
    is_sendable_object,
};
use crate::provider::openai::{BraceTracker, ObjectBuilder, to_raw};
use crate::provider::tool_encoding::EncodedTools;
use crate::provider::{ProviderApi, StreamChunk};

/// Members of a delta with a known meaning. All other members are stored for later requests.
const KNOWN_MEMBERS: [&str; 6] = ["index", "id", "type", "function", "name", "arguments"];

pub(super) struct ToolCallAccumulator {
    /// The tools of the request, whose names decide what is a name.
    tools: Arc<EncodedTools>,
    calls: Vec<PartialToolCall>,
    by_index: HashMap<u64, usize>,
    by_id: HashMap<String, usize>,
    /// Whether the call came as `function_call`, as before `tool_calls` existed.
    has_legacy_call: bool,
}

#[derive(Default)]
struct PartialToolCall {
    id: String,
    name: CallName,
    arguments: String,
    /// Whether the call may have been superseded before its arguments came.
    is_cut: bool,
    joiner: StringJoiner,
    brace_tracker: BraceTracker,
    /// Other members of the call, such as signatures of reasoning.
    extra_members: ObjectBuilder,
    /// Whether the start chunk of the call was emitted.
    is_start_emitted: bool,
}

struct ToolCallDelta<'a> {
    index: Option<u64>,
    id: Option<String>,
    name: Option<String>,
    arguments: Option<&'a RawValue>,
}

impl ToolCallAccumulator {
    pub(super) fn new(tools: Arc<EncodedTools>) -> Self {
        Self {
            tools,
            calls: Vec::new(),
            by_index: HashMap::new(),
            by_id: HashMap::new(),
            has_legacy_call: false,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Whether the arguments of every call are complete.
    pub(super) fn are_closed(&self) -> bool {
        self.calls.iter().all(|call| call.brace_tracker.is_closed())
    }

    /// Feeds the calls of a message or a delta.
    pub(super) fn feed_message(
        &mut self,
        message: &ObjectView<'_>,
        is_complete: bool,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError> {
        let entries = message.bounded_list("tool_calls")?;
        let mut entries: Vec<_> = entries.into_iter().filter_map(ObjectView::from_raw).collect();
        // Some servers send the call in both members.
        if entries.is_empty() && (self.has_legacy_call || self.calls.is_empty()) {
            entries.extend(message.object("function_call"));
            self.has_legacy_call |= !entries.is_empty();
        }
        for (at, entry) in entries.iter().enumerate() {
            let delta = ToolCallDelta::from_entry(entry);
            // Two entries of one list without indexes are two calls.
            let begins = is_complete || (at > 0 && delta.index.is_none() && delta.name.is_some());
            let at = match self.find_call(&delta).filter(|_| !begins) {
                Some(at) if !self.calls[at].is_superseded_by(&delta, &self.tools) => at,
                Some(at) => {
                    self.calls[at].end_before(&delta, &self.tools);
                    if !self.calls[at].is_start_emitted {
                        self.calls[at].emit_start(at, &self.tools, chunks);
                    }
                    self.start_call()?
                }
                None => self.start_call()?,
            };
            self.apply_delta(at, delta, entry, chunks);
        }
        Ok(())
    }

    /// Finds the call that a delta continues or supersedes.
    fn find_call(&self, delta: &ToolCallDelta<'_>) -> Option<usize> {
        let by_id = delta.id.as_ref().and_then(|id| self.by_id.get(id)).copied();
        match delta.index {
            Some(index) => match self.by_index.get(&index) {
                Some(at) => Some(*at),
                None => by_id.filter(|_| delta.name.is_none()),
            },
            None if delta.id.is_some() => by_id,
            None => self.calls.len().checked_sub(1),
        }
    }

    fn start_call(&mut self) -> Result<usize, ApiError> {
        if self.calls.len() == MAX_CONTENT_PARTS {
            return Err(ApiError::too_many("calls"));
        }
        self.calls.push(PartialToolCall::default());
        Ok(self.calls.len() - 1)
    }

    fn apply_delta(
        &mut self,
        at: usize,
        delta: ToolCallDelta<'_>,
        entry: &ObjectView<'_>,
        chunks: &mut Vec<StreamChunk>,
    ) {
        let ToolCallDelta { index, id, name, arguments } = delta;
        if let Some(index) = index {
            self.by_index.insert(index, at);
        }
        let call = &mut self.calls[at];
        if let Some(id) = id.filter(|_| call.id.is_empty()) {
            self.by_id.insert(id.clone(), at);
            call.id = id;
        }
        if let Some(name) = name.filter(|_| call.name.is_empty() || !call.has_arguments()) {
            call.name.push(&name, &self.tools);
        }
        let others = entry.iter().filter(|(name, _)| !KNOWN_MEMBERS.contains(name));
        for (name, value) in others.filter_map(|(name, _)| Some((name, entry.get(name)?))) {
            call.extra_members.set_if_absent(name, &value);
        }
        let arguments = arguments
            .map(|raw| call.joiner.decode_next(raw).unwrap_or_else(|| raw.get().to_owned()))
            .unwrap_or_default();
        if call.brace_tracker.is_closed() && are_same_arguments(&call.arguments, &arguments) {
            return; // Some servers repeat the whole arguments at the end.
        }
        call.append_arguments(&arguments);
        if call.is_start_emitted {
            if !arguments.is_empty() {
                chunks.push(StreamChunk::ArgumentsDelta { index: at, fragment: arguments });
            }
        } else if !call.name.is_empty() && !call.arguments.is_empty() {
            call.emit_start(at, &self.tools, chunks);
        }
    }

    /// Ends all calls: emits missing start chunks and sets empty arguments to `{}`. In a truncated
    /// response, the arguments of such a call may be missing.
    pub(super) fn flush(&mut self, is_truncated: bool, chunks: &mut Vec<StreamChunk>) {
        for (index, call) in self.calls.iter_mut().enumerate() {
            if !call.is_start_emitted {
                call.emit_start(index, &self.tools, chunks);
            }
            if call.has_arguments() {
                continue;
            }
            call.is_cut |= is_truncated;
            if !call.is_cut {
                call.append_arguments("{}");
                chunks.push(StreamChunk::ArgumentsDelta { index, fragment: "{}".to_owned() });
            }
        }
    }

    pub(super) fn into_parts(self, model: &str) -> impl Iterator<Item = ContentPart> {
        let Self { calls, tools, .. } = self;
        calls.into_iter().map(move |call| call.into_part(model, &tools))
    }
}

impl<'a> ToolCallDelta<'a> {
    fn from_entry(entry: &ObjectView<'a>) -> Self {
        let function = entry.object("function").unwrap_or_default();
        let arguments = function.get("arguments").or_else(|| entry.get("arguments"));
        Self {
            index: entry.number("index"),
            id: entry.non_empty_text("id"),
            name: function.non_empty_text("name").or_else(|| entry.non_empty_text("name")),
            arguments,
        }
    }

    /// Whether the arguments of this delta start a JSON object.
    fn begins_object(&self) -> bool {
        self.arguments.is_some_and(|raw| {
            let decoded = decode_string(raw);
            decoded.as_deref().unwrap_or(raw.get()).trim_start().starts_with('{')
        })
    }
}

impl PartialToolCall {
    fn has_arguments(&self) -> bool {
        !self.arguments.trim().is_empty()
    }

    /// Whether a delta for the same index starts another call. A new id alone does not: some
    /// servers generate an id for each delta.
    fn is_superseded_by(&self, delta: &ToolCallDelta<'_>, tools: &EncodedTools) -> bool {
        let Some(name) = &delta.name else { return false };
        let has_other_id =
            delta.id.as_ref().is_some_and(|id| !self.id.is_empty() && *id != self.id);
        if self.name.is_empty() {
            return has_other_id;
        }
        let is_same_name = self.name.resolve(tools).name == name;
        if self.has_arguments() {
            // Some servers repeat the name with every delta, or the whole call at the end.
            let is_closed = self.brace_tracker.is_closed();
            return !is_same_name || (is_closed && (has_other_id || delta.begins_object()));
        }
        let may_continue = is_same_name || self.may_continue_name(delta);
        match self.name.next_part(name, tools) {
            NextPart::Fragment => false,
            NextPart::OtherName => has_other_id || !is_same_name,
            NextPart::Either => has_other_id,
            NextPart::Unknown => has_other_id || !may_continue,
        }
    }

    /// Whether the name in a delta may be the next part of this call's name: the delta has the index
    /// of the call, which servers without fragments use for one call only, or no id of its own.
    fn may_continue_name(&self, delta: &ToolCallDelta<'_>) -> bool {
        delta.index.is_some() || (!self.id.is_empty() && delta.id.is_none())
    }

    /// Ends the call before the first delta of another one. A second call of the same tool without
    /// arguments before it may have the arguments of this one.
    fn end_before(&mut self, delta: &ToolCallDelta<'_>, tools: &EncodedTools) {
        let is_same_name = delta.name.as_deref() == Some(self.name.resolve(tools).name);
        self.is_cut |= is_same_name && !self.has_arguments();
    }

    fn append_arguments(&mut self, arguments: &str) {
        let mut rest = arguments.as_bytes();
        while let Some(at) = self.brace_tracker.push(rest) {
            rest = &rest[at..];
        }
        self.arguments.push_str(arguments);
    }

    fn emit_start(&mut self, index: usize, tools: &EncodedTools, chunks: &mut Vec<StreamChunk>) {
        self.is_start_emitted = true;
        let name = self.name.resolve(tools).name.to_owned();
        chunks.push(StreamChunk::ToolCallStart { index, name });
        if !self.arguments.is_empty() {
            chunks.push(StreamChunk::ArgumentsDelta { index, fragment: self.arguments.clone() });
        }
    }

    /// Converts the call to a content part. The raw call is stored only if every server accepts it.
    fn into_part(self, model: &str, tools: &EncodedTools) -> ContentPart {
        let Self { id, name, arguments, extra_members, is_cut, .. } = self;
        let resolved = name.resolve(tools);
        let is_cut = is_cut || resolved.is_unclear;
        let name = resolved.name.to_owned();
        let mut provider_block = None;
        if !id.is_empty() && is_sendable_object(&arguments) {
            let mut members = ObjectBuilder::default();
            members.set_if_absent("id", &id);
            members.set_if_absent("type", &"function");
            members.set_if_absent(
                "function",
                &serde_json::json!({"name": name, "arguments": arguments}),
            );
            members.append(extra_members);
            let model = model.to_owned();
            provider_block =
                Some(ProviderBlock { api: ProviderApi::OpenAiChat, model, json: to_raw(&members) });
        }
        ContentPart {
            content: PartContent::ToolCall(ToolCall { id, name, arguments, is_cut }),
            provider_block,
        }
    }
}
