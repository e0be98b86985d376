//! Decodes the stream events of an interaction.

use serde_json::value::RawValue;

use super::super::response_step::{ResponseStep, StepKind};
use super::{ResponseAccumulator, invalid_interaction};
use crate::provider::StreamChunk;
use crate::provider::codec::{ApiError, ObjectView};
use crate::provider::gemini::decode_error_object;

impl ResponseAccumulator {
    pub(in super::super) fn feed_event(
        &mut self,
        name: &str,
        data: &str,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError> {
        if data.trim() == "[DONE]" {
            return Ok(());
        }
        let Some(event) = ObjectView::parse(data) else { return Err(invalid_interaction()) };
        if event.get("error").is_some() {
            return Err(self.with_partial_output(decode_error_object(&event, 500)));
        }
        let event_type = event.text("event_type");
        let index = event.number("index");
        match event_type.as_deref().unwrap_or(name) {
            "step.start" => match event.get("step") {
                Some(step) => self.start_step(index, step, chunks),
                None => Ok(()),
            },
            "step.delta" => {
                self.feed_delta(index, &event.object("delta").unwrap_or_default(), chunks)
            }
            "step.stop" => {
                let at = index
                    .map_or(self.steps.len().checked_sub(1), |index| self.step_position(index));
                if let Some(step) = at.and_then(|at| self.steps.get_mut(at)) {
                    step.stopped = true;
                }
                self.flush_arguments(chunks);
                Ok(())
            }
            "interaction.status_update" => {
                self.status = event.text("status").or(self.status.take());
                self.flush_arguments(chunks);
                Ok(())
            }
            "error" => Err(self.with_partial_output(decode_error_object(&event, 500))),
            kind => {
                self.feed_interaction(&event.object("interaction").unwrap_or_default(), chunks)?;
                self.completed |= kind == "interaction.completed";
                self.flush_arguments(chunks);
                Ok(())
            }
        }
    }

    fn feed_delta(
        &mut self,
        index: Option<u64>,
        delta: &ObjectView<'_>,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError> {
        let kind = delta.text("type").unwrap_or_default();
        match kind.as_str() {
            "text" => {
                let text = delta.text("text").unwrap_or_default();
                self.step_of_kind_mut(index, &StepKind::ModelOutput, chunks)?.append_text(&text)?;
                if !text.is_empty() {
                    chunks.push(StreamChunk::Text(text));
                }
            }
            "text_annotation_delta" => {
                let citations = delta.bounded_list("annotations")?;
                self.step_of_kind_mut(index, &StepKind::ModelOutput, chunks)?
                    .append_citations(&citations)?;
            }
            "thought_summary" => {
                let Some(content) = delta.get("content") else { return Ok(()) };
                let text = self
                    .step_of_kind_mut(index, &StepKind::Thought, chunks)?
                    .append_item(content)?;
                if !text.is_empty() {
                    chunks.push(StreamChunk::Reasoning(text));
                }
            }
            "arguments_delta" | "arguments" => self.feed_arguments(index, delta, chunks),
            "thought_signature" => {
                let Some(signature) = delta.get("signature") else { return Ok(()) };
                match self.find_step_mut(index) {
                    Some(step) => step.set_signature(signature),
                    None => self
                        .step_of_kind_mut(index, &StepKind::Thought, chunks)?
                        .set_signature(signature),
                }
            }
            "image" | "audio" | "video" | "document" => {
                let raw = to_raw_object(delta);
                self.step_of_kind_mut(index, &StepKind::ModelOutput, chunks)?.append_item(&raw)?;
            }
            _ => {
                if let Some(step) =
                    self.find_step_mut(index).filter(|step| step.kind == StepKind::Other)
                {
                    step.set_fields(delta);
                }
            }
        }
        Ok(())
    }

    /// Feeds argument deltas to the call at the index. If the step at the index is not a call, the
    /// deltas belong to the last call: some servers send the index of the thought before the call.
    fn feed_arguments(
        &mut self,
        index: Option<u64>,
        delta: &ObjectView<'_>,
        chunks: &mut Vec<StreamChunk>,
    ) {
        let fields = ["arguments", "partial_arguments"];
        let mut fields = fields.into_iter().filter_map(|name| delta.get(name));
        let Some(fragment) = fields.find(|value| value.get().starts_with('"')) else {
            return;
        };
        let call_at_index = index
            .and_then(|index| self.step_position(index))
            .filter(|at| self.steps[*at].is_call());
        let at = call_at_index.or_else(|| self.steps.iter().rposition(ResponseStep::is_call));
        let Some(at) = at else { return };
        let step = &mut self.steps[at];
        let fragment = step.append_arguments(fragment);
        if let StepKind::FunctionCall { index, .. } = step.kind
            && !fragment.is_empty()
        {
            chunks.push(StreamChunk::ArgumentsDelta { index, fragment });
        }
    }

    /// Returns the step at the index, or the last step if there is no index.
    fn find_step_mut(&mut self, index: Option<u64>) -> Option<&mut ResponseStep> {
        match index {
            Some(index) => self.step_position(index).and_then(|at| self.steps.get_mut(at)),
            None => self.steps.last_mut(),
        }
    }

    /// Returns the step at the index if it has this kind, else starts a new step.
    fn step_of_kind_mut(
        &mut self,
        index: Option<u64>,
        kind: &StepKind,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<&mut ResponseStep, ApiError> {
        let position = match index {
            Some(index) => self.step_position(index),
            None => self.steps.len().checked_sub(1),
        };
        let at = match position.filter(|at| self.steps[*at].kind == *kind) {
            Some(at) => at,
            None => {
                let step_type = if *kind == StepKind::Thought { "thought" } else { "model_output" };
                let raw = RawValue::from_string(format!(r#"{{"type":"{step_type}"}}"#));
                let raw = raw.map_err(|_| invalid_interaction())?;
                self.push_step(index, kind.clone(), &raw, chunks)?;
                self.steps.len() - 1
            }
        };
        Ok(&mut self.steps[at])
    }

    fn step_position(&self, index: u64) -> Option<usize> {
        self.step_positions.get(&index).copied()
    }
}

/// Returns the fields as a JSON object in their order.
fn to_raw_object(fields: &ObjectView<'_>) -> Box<RawValue> {
    let fields = fields.iter().map(|(name, value)| {
        let name = serde_json::Value::from(name);
        format!("{name}:{}", value.get())
    });
    let text = format!("{{{}}}", fields.collect::<Vec<_>>().join(","));
    RawValue::from_string(text).unwrap_or_default()
}
