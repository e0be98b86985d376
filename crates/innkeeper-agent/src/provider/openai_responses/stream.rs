//! An answer that comes as events.
//!
//! What is told of an item while it comes is for those who watch; what counts is the item when it is
//! done, for pieces were seen to be missing, or to come before the item they are of.

mod slot;

use std::collections::HashMap;

use super::item::Item;
use super::read::{End, whole};
use crate::provider::codec::{Fault, Fields, PARTS};
use crate::provider::openai::{Gather, told};
use crate::provider::{Piece, Response};
use slot::{Kind, Slot};

/// The items of an answer in the order in which they are first heard of.
pub(super) struct Items {
    model: String,
    slots: Vec<Slot>,
    by_index: HashMap<u64, usize>,
    by_id: HashMap<String, usize>,
    /// Calls that have begun.
    calls: usize,
    answer: Option<Response>,
}

impl Items {
    pub(super) fn new(model: String) -> Self {
        Self {
            model,
            slots: Vec::new(),
            by_index: HashMap::new(),
            by_id: HashMap::new(),
            calls: 0,
            answer: None,
        }
    }

    /// The slot of an item; an event that does not say which is of the last one.
    fn slot(&mut self, index: Option<u64>, id: Option<String>) -> Result<&mut Slot, Fault> {
        let by_index = index.and_then(|index| self.by_index.get(&index));
        let known = by_index.or_else(|| self.by_id.get(id.as_ref()?)).copied();
        let unsaid = index.is_none() && id.is_none();
        let last = self.slots.len().checked_sub(1).filter(|_| unsaid);
        let at = match known.or(last) {
            Some(at) => at,
            None if self.slots.len() == PARTS => {
                return Err(Fault::too_many("items"));
            }
            None => {
                self.slots.push(Slot::default());
                self.slots.len() - 1
            }
        };
        if let Some(index) = index {
            self.by_index.insert(index, at);
        }
        if let Some(id) = id {
            self.by_id.insert(id, at);
        }
        Ok(&mut self.slots[at])
    }

    fn delta(
        &mut self,
        kind: Kind,
        event: &Fields<'_>,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Fault> {
        let delta = event.get("delta").filter(|it| it.get().starts_with('"') && it.get() != "\"\"");
        let Some(delta) = delta else { return Ok(()) };
        let slot = self.slot(event.number("output_index"), event.word("item_id"))?;
        slot.write(kind, delta, pieces);
        Ok(())
    }

    fn added(&mut self, event: &Fields<'_>, pieces: &mut Vec<Piece>) -> Result<(), Fault> {
        let Some(item) = event.object("item") else { return Ok(()) };
        let is_call = item.text("type").is_some_and(|it| it == "function_call");
        let calls = self.calls;
        let slot = self.slot(event.number("output_index"), item.word("id"))?;
        if let Some(name) = item.word("name").filter(|_| is_call) {
            let id = item.word("call_id").unwrap_or_default();
            if slot.begin(calls, &id, &name, pieces) {
                self.calls += 1;
            }
        }
        Ok(())
    }

    fn done(&mut self, event: &Fields<'_>, pieces: &mut Vec<Piece>) -> Result<(), Fault> {
        let Some(block) = event.get("item") else { return Ok(()) };
        let Some(item) = Item::read(block, &self.model)? else { return Ok(()) };
        let id = event.object("item").and_then(|item| item.word("id"));
        self.finished(event.number("output_index"), id, item, pieces)
    }

    fn finished(
        &mut self,
        index: Option<u64>,
        id: Option<String>,
        item: Item,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Fault> {
        let calls = self.calls;
        let slot = self.slot(index, id)?;
        if slot.finish(calls, item, pieces) {
            self.calls += 1;
        }
        Ok(())
    }

    /// The response object that ends the answer. Items in it count where their own events are missing.
    fn over(
        &mut self,
        event: &Fields<'_>,
        status: &str,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Fault> {
        let response = event.object("response").unwrap_or_default();
        let end = End::of(&response, status)?;
        for (index, block) in (0..).zip(response.list("output").unwrap_or_default()) {
            let id = Fields::of(block).and_then(|item| item.word("id"));
            let known = self.by_index.get(&index).or_else(|| self.by_id.get(id.as_ref()?));
            let slot = known.and_then(|at| self.slots.get(*at));
            let Some(item) = Item::read(block, &self.model)? else { continue };
            if slot.is_none_or(|slot| slot.lacks(&item)) {
                self.finished(Some(index), id, item, pieces)?;
            }
        }
        let refused = self.slots.iter().any(|slot| slot.refused);
        let parts = std::mem::take(&mut self.slots).into_iter().filter_map(Slot::into_part);
        self.answer = Some(end.with(parts.collect(), refused));
        Ok(())
    }

    fn written(&self) -> String {
        self.slots.iter().map(Slot::text).collect()
    }

    /// A failure, with what was written before.
    fn failed(&self, mut fault: Fault) -> Fault {
        if fault.written.is_none() {
            fault.written = Some(self.written()).filter(|it| !it.is_empty());
        }
        fault
    }

    /// Takes an event of an answer that is not over.
    fn take(&mut self, name: &str, data: &str, pieces: &mut Vec<Piece>) -> Result<(), Fault> {
        let Some(event) = Fields::parse(data) else {
            return Err(Fault::unreadable("an event is no JSON object"));
        };
        let kind = event.word("type");
        match kind.as_deref().unwrap_or(name) {
            "response.output_text.delta" => self.delta(Kind::Text, &event, pieces),
            "response.refusal.delta" => self.delta(Kind::Refusal, &event, pieces),
            "response.reasoning_summary_text.delta" => {
                let index = event.number("summary_index").unwrap_or_default();
                self.delta(Kind::Summary(index), &event, pieces)
            }
            "response.reasoning_text.delta" => {
                let index = event.number("content_index").unwrap_or_default();
                self.delta(Kind::Thought(index), &event, pieces)
            }
            "response.function_call_arguments.delta" => self.delta(Kind::Arguments, &event, pieces),
            "response.output_item.added" => self.added(&event, pieces),
            "response.output_item.done" => self.done(&event, pieces),
            "response.completed" => self.over(&event, "completed", pieces),
            "response.incomplete" => self.over(&event, "incomplete", pieces),
            "response.failed" => {
                let response = event.object("response").unwrap_or_default();
                Err(told(&response))
            }
            "error" => Err(told(&event)),
            _ if event.get("error").is_some() => Err(told(&event)),
            _ => Ok(()),
        }
    }
}

impl Gather for Items {
    fn event(&mut self, name: &str, data: &str, pieces: &mut Vec<Piece>) -> Result<(), Fault> {
        if self.answer.is_some() || data == "[DONE]" {
            return Ok(());
        }
        let taken = self.take(name, data, pieces);
        taken.map_err(|fault| self.failed(fault))
    }

    fn whole(&mut self, body: &str, pieces: &mut Vec<Piece>) -> Result<Response, Fault> {
        let response = whole(&self.model, body)?;
        pieces.extend(response.clone().into_pieces());
        pieces.pop();
        Ok(response)
    }

    fn is_over(&self) -> bool {
        self.answer.is_some()
    }

    fn end(self) -> Result<Response, Fault> {
        let written = self.written();
        self.answer.ok_or_else(|| Fault::broken_off(written))
    }
}
