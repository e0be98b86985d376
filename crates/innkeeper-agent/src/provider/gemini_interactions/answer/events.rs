//! The events of a stream, which steps begin, grow and end with.

use serde_json::value::RawValue;

use super::super::step::{Kind, Step};
use super::{Gathered, no_interaction};
use crate::provider::Piece;
use crate::provider::codec::{Fault, Fields};
use crate::provider::gemini::fault_of;

impl Gathered {
    /// Takes one event of a stream.
    pub(in super::super) fn event(
        &mut self,
        name: &str,
        data: &str,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Fault> {
        if data.trim() == "[DONE]" {
            return Ok(());
        }
        let Some(event) = Fields::parse(data) else { return Err(no_interaction()) };
        if event.get("error").is_some() {
            return Err(self.with_written(fault_of(&event, 500)));
        }
        let told = event.text("event_type");
        let index = event.number("index");
        match told.as_deref().unwrap_or(name) {
            "step.start" => match event.get("step") {
                Some(step) => self.start(index, step, pieces),
                None => Ok(()),
            },
            "step.delta" => self.delta(index, &event.object("delta").unwrap_or_default(), pieces),
            "step.stop" => {
                let at = index.map_or(self.steps.len().checked_sub(1), |index| self.at(index));
                if let Some(step) = at.and_then(|at| self.steps.get_mut(at)) {
                    step.stopped = true;
                }
                self.settle(pieces);
                Ok(())
            }
            "interaction.status_update" => {
                self.status = event.text("status").or(self.status.take());
                self.settle(pieces);
                Ok(())
            }
            "error" => Err(self.with_written(fault_of(&event, 500))),
            kind => {
                self.interaction(&event.object("interaction").unwrap_or_default(), pieces)?;
                self.completed |= kind == "interaction.completed";
                self.settle(pieces);
                Ok(())
            }
        }
    }

    fn delta(
        &mut self,
        index: Option<u64>,
        delta: &Fields<'_>,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Fault> {
        let kind = delta.text("type").unwrap_or_default();
        match kind.as_str() {
            "text" => {
                let text = delta.text("text").unwrap_or_default();
                self.of_kind(index, &Kind::Output, pieces)?.text(&text)?;
                if !text.is_empty() {
                    pieces.push(Piece::Text(text));
                }
            }
            "text_annotation_delta" => {
                let citations = delta.parts("annotations")?;
                self.of_kind(index, &Kind::Output, pieces)?.citations(&citations)?;
            }
            "thought_summary" => {
                let Some(content) = delta.get("content") else { return Ok(()) };
                let text = self.of_kind(index, &Kind::Thought, pieces)?.item(content)?;
                if !text.is_empty() {
                    pieces.push(Piece::Reasoning(text));
                }
            }
            "arguments_delta" | "arguments" => self.arguments(index, delta, pieces),
            "thought_signature" => {
                let Some(signature) = delta.get("signature") else { return Ok(()) };
                match self.find(index) {
                    Some(step) => step.signature(signature),
                    None => self.of_kind(index, &Kind::Thought, pieces)?.signature(signature),
                }
            }
            "image" | "audio" | "video" | "document" => {
                let raw = written(delta);
                self.of_kind(index, &Kind::Output, pieces)?.item(&raw)?;
            }
            _ => {
                if let Some(step) = self.find(index).filter(|step| step.kind == Kind::Other) {
                    step.set(delta);
                }
            }
        }
        Ok(())
    }

    /// Arguments are those of the step that the index names, or else of the last call: servers are
    /// seen to count on from a thought.
    fn arguments(&mut self, index: Option<u64>, delta: &Fields<'_>, pieces: &mut Vec<Piece>) {
        let named = |name| delta.get(name).filter(|it| it.get().starts_with('"'));
        let Some(fragment) = named("arguments").or_else(|| named("partial_arguments")) else {
            return;
        };
        let is_call = |step: &Step| matches!(step.kind, Kind::Call { .. });
        let named = index.and_then(|index| self.at(index)).filter(|at| is_call(&self.steps[*at]));
        let Some(at) = named.or(self.last_call) else { return };
        let step = &mut self.steps[at];
        let fragment = step.arguments(fragment);
        if let Kind::Call { index, .. } = step.kind
            && !fragment.is_empty()
        {
            pieces.push(Piece::Arguments { index, fragment });
        }
    }

    /// The step of an index, or the last where none is told.
    fn find(&mut self, index: Option<u64>) -> Option<&mut Step> {
        match index {
            Some(index) => self.at(index).and_then(|at| self.steps.get_mut(at)),
            None => self.steps.last_mut(),
        }
    }

    /// The step of an index, if it is of this kind; else one that begins now.
    fn of_kind(
        &mut self,
        index: Option<u64>,
        kind: &Kind,
        pieces: &mut Vec<Piece>,
    ) -> Result<&mut Step, Fault> {
        let found = match index {
            Some(index) => self.at(index),
            None => self.steps.len().checked_sub(1),
        };
        let at = match found.filter(|at| self.steps[*at].kind == *kind) {
            Some(at) => at,
            None => {
                let word = if *kind == Kind::Thought { "thought" } else { "model_output" };
                let raw = RawValue::from_string(format!(r#"{{"type":"{word}"}}"#));
                let raw = raw.map_err(|_| no_interaction())?;
                self.open(index, kind.clone(), &raw, pieces)?;
                self.steps.len() - 1
            }
        };
        Ok(&mut self.steps[at])
    }

    fn at(&self, index: u64) -> Option<usize> {
        self.indexed.get(&index).copied()
    }
}

/// An object again, with its fields in their order.
fn written(fields: &Fields<'_>) -> Box<RawValue> {
    let fields = fields.iter().map(|(name, value)| {
        let name = serde_json::Value::from(name);
        format!("{name}:{}", value.get())
    });
    let text = format!("{{{}}}", fields.collect::<Vec<_>>().join(","));
    RawValue::from_string(text).unwrap_or_default()
}
