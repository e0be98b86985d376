//! Decodes a streamed response.
//!
//! The deltas of an item become stream chunks. The response contains the finished item, because
//! some servers lose deltas or send deltas before the start of their item.

mod item_accumulator;

use std::collections::{HashMap, HashSet};

use super::output_item::OutputItem;
use super::response::{ResponseEnd, decode_body};
use crate::provider::codec::{ApiError, MAX_CONTENT_PARTS, ObjectView};
use crate::provider::openai::{EventAccumulator, decode_error_object};
use crate::provider::{Response, StreamChunk};
use item_accumulator::{DeltaKind, ItemAccumulator};

/// The items of a response, in the order of their first event.
pub(super) struct ResponseAccumulator {
    request_model: String,
    items: Vec<ItemAccumulator>,
    by_index: HashMap<u64, usize>,
    by_id: HashMap<String, usize>,
    /// Number of started calls.
    call_count: usize,
    response: Option<Response>,
}

impl ResponseAccumulator {
    pub(super) fn new(request_model: String) -> Self {
        Self {
            request_model,
            items: Vec::new(),
            by_index: HashMap::new(),
            by_id: HashMap::new(),
            call_count: 0,
            response: None,
        }
    }

    /// Returns the accumulator of an item. An event without index and id belongs to the last item.
    fn item_mut(
        &mut self,
        index: Option<u64>,
        id: Option<String>,
    ) -> Result<&mut ItemAccumulator, ApiError> {
        let by_index = index.and_then(|index| self.by_index.get(&index));
        let position = by_index.or_else(|| self.by_id.get(id.as_ref()?)).copied();
        let unsaid = index.is_none() && id.is_none();
        let last = self.items.len().checked_sub(1).filter(|_| unsaid);
        let at = match position.or(last) {
            Some(at) => at,
            None if self.items.len() == MAX_CONTENT_PARTS => {
                return Err(ApiError::too_many("items"));
            }
            None => {
                self.items.push(ItemAccumulator::default());
                self.items.len() - 1
            }
        };
        if let Some(index) = index {
            self.by_index.insert(index, at);
        }
        if let Some(id) = id {
            self.by_id.insert(id, at);
        }
        Ok(&mut self.items[at])
    }

    fn feed_delta(
        &mut self,
        kind: DeltaKind,
        event: &ObjectView<'_>,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError> {
        let delta =
            event.get("delta").filter(|raw| raw.get().starts_with('"') && raw.get() != "\"\"");
        let Some(delta) = delta else { return Ok(()) };
        let slot = self.item_mut(event.number("output_index"), event.non_empty_text("item_id"))?;
        slot.feed_delta(kind, delta, chunks);
        Ok(())
    }

    fn start_item(
        &mut self,
        event: &ObjectView<'_>,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError> {
        let Some(item) = event.object("item") else { return Ok(()) };
        let is_call = item.text("type").is_some_and(|item_type| item_type == "function_call");
        let calls = self.call_count;
        let slot = self.item_mut(event.number("output_index"), item.non_empty_text("id"))?;
        if let Some(name) = item.non_empty_text("name").filter(|_| is_call) {
            let id = item.non_empty_text("call_id").unwrap_or_default();
            if slot.start_call(calls, &id, &name, chunks) {
                self.call_count += 1;
            }
        }
        Ok(())
    }

    fn feed_done_item(
        &mut self,
        event: &ObjectView<'_>,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError> {
        let Some(block) = event.get("item") else { return Ok(()) };
        let Some(item) = OutputItem::decode(block, &self.request_model)? else { return Ok(()) };
        let id = event.object("item").and_then(|item| item.non_empty_text("id"));
        self.finish_item(event.number("output_index"), id, item, chunks)
    }

    fn finish_item(
        &mut self,
        index: Option<u64>,
        id: Option<String>,
        item: OutputItem,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError> {
        let calls = self.call_count;
        let slot = self.item_mut(index, id)?;
        if slot.finish(calls, item, chunks) {
            self.call_count += 1;
        }
        Ok(())
    }

    /// Feeds the complete arguments of a call, which some servers send without the finished item.
    fn finish_arguments(
        &mut self,
        event: &ObjectView<'_>,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError> {
        let Some(arguments) = event.text("arguments") else { return Ok(()) };
        let slot = self.item_mut(event.number("output_index"), event.non_empty_text("item_id"))?;
        slot.finish_arguments(&arguments, chunks);
        Ok(())
    }

    /// Returns the streamed item that an item of the response object repeats: by its id, by its
    /// content, or by its place if the item may be the end of the streamed one. Some servers list
    /// other items at the end than they streamed, or the same items with other ids. A streamed item
    /// is repeated once.
    fn streamed_item(
        &self,
        index: u64,
        id: Option<&str>,
        item: &OutputItem,
        repeated: &HashSet<usize>,
    ) -> Option<usize> {
        let by_id = id.and_then(|id| self.by_id.get(id)).copied();
        let by_index = self.by_index.get(&index).copied();
        let is_free = |at: &usize| !repeated.contains(at);
        by_id
            .filter(|at| self.items[*at].is_kind_of(item))
            .or_else(|| {
                let mut free = (0..self.items.len()).filter(is_free);
                free.find(|at| self.items[*at].repeats(item))
            })
            .or(by_index.filter(|at| is_free(at) && self.items[*at].may_become(item)))
    }

    /// Decodes the response object at the end. Its items count if their own events are missing.
    fn finish_response(
        &mut self,
        event: &ObjectView<'_>,
        status: &str,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError> {
        let response = event.object("response").unwrap_or_default();
        let end = ResponseEnd::from_response(&response, status)?;
        let mut repeated = HashSet::new();
        for (index, block) in (0..).zip(response.list("output").unwrap_or_default()) {
            let id = ObjectView::from_raw(block).and_then(|item| item.non_empty_text("id"));
            let Some(item) = OutputItem::decode(block, &self.request_model)? else { continue };
            let streamed = self.streamed_item(index, id.as_deref(), &item, &repeated);
            repeated.extend(streamed);
            let at = match streamed {
                Some(at) if self.items[at].lacks(&item) => at,
                Some(_) => continue,
                None if self.items.len() == MAX_CONTENT_PARTS => {
                    return Err(ApiError::too_many("items"));
                }
                None => {
                    self.items.push(ItemAccumulator::default());
                    repeated.insert(self.items.len() - 1);
                    self.items.len() - 1
                }
            };
            if self.items[at].finish(self.call_count, item, chunks) {
                self.call_count += 1;
            }
        }
        let has_refusal = self.items.iter().any(|slot| slot.is_refusal);
        let parts =
            std::mem::take(&mut self.items).into_iter().filter_map(ItemAccumulator::into_part);
        self.response = Some(end.into_response(parts.collect(), has_refusal));
        Ok(())
    }

    fn partial_output(&self) -> String {
        self.items.iter().map(ItemAccumulator::partial_output).collect()
    }

    fn with_partial_output(&self, mut error: ApiError) -> ApiError {
        if error.partial_output.is_none() {
            error.partial_output = Some(self.partial_output()).filter(|text| !text.is_empty());
        }
        error
    }

    /// Feeds an event of a response that is not complete yet.
    fn dispatch_event(
        &mut self,
        name: &str,
        data: &str,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError> {
        let Some(event) = ObjectView::parse(data) else {
            return Err(ApiError::invalid_response("an event is not a JSON object"));
        };
        let kind = event.non_empty_text("type");
        match kind.as_deref().unwrap_or(name) {
            "response.output_text.delta" => self.feed_delta(DeltaKind::Text, &event, chunks),
            "response.refusal.delta" => self.feed_delta(DeltaKind::Refusal, &event, chunks),
            "response.reasoning_summary_text.delta" => {
                let index = event.number("summary_index").unwrap_or_default();
                self.feed_delta(DeltaKind::ReasoningSummary(index), &event, chunks)
            }
            "response.reasoning_text.delta" => {
                let index = event.number("content_index").unwrap_or_default();
                self.feed_delta(DeltaKind::ReasoningText(index), &event, chunks)
            }
            "response.function_call_arguments.delta" => {
                self.feed_delta(DeltaKind::Arguments, &event, chunks)
            }
            "response.function_call_arguments.done" => self.finish_arguments(&event, chunks),
            "response.output_item.added" => self.start_item(&event, chunks),
            "response.output_item.done" => self.feed_done_item(&event, chunks),
            "response.completed" | "response.done" => {
                self.finish_response(&event, "completed", chunks)
            }
            "response.incomplete" => self.finish_response(&event, "incomplete", chunks),
            "response.failed" => {
                let response = event.object("response").unwrap_or_default();
                Err(decode_error_object(&response))
            }
            "error" => Err(decode_error_object(&event)),
            _ if event.get("error").is_some() => Err(decode_error_object(&event)),
            _ => Ok(()),
        }
    }
}

impl EventAccumulator for ResponseAccumulator {
    fn feed_event(
        &mut self,
        name: &str,
        data: &str,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError> {
        if self.response.is_some() || data == "[DONE]" {
            return Ok(());
        }
        let result = self.dispatch_event(name, data, chunks);
        result.map_err(|error| self.with_partial_output(error))
    }

    fn decode_body(
        &mut self,
        body: &str,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<Response, ApiError> {
        let response = decode_body(&self.request_model, body)?;
        chunks.extend(response.clone().into_chunks());
        chunks.pop();
        Ok(response)
    }

    fn is_finished(&self) -> bool {
        self.response.is_some()
    }

    fn finish(self) -> Result<Response, ApiError> {
        let partial_output = self.partial_output();
        self.response.ok_or_else(|| ApiError::incomplete_stream(partial_output))
    }
}
