//! Decodes interactions, streamed or not.

mod events;

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::response_step::{ResponseStep, StepKind};
use crate::conversation::AssistantMessage;
use crate::provider::codec::{ApiError, MAX_CONTENT_PARTS, ObjectView};
use crate::provider::gemini::decode_error_object;
use crate::provider::{FinishReason, LlmErrorKind, Response, StreamChunk, Usage};

/// The interaction received so far.
pub(super) struct ResponseAccumulator {
    request_model: String,
    steps: Vec<ResponseStep>,
    /// The position of the last step that started with each index.
    step_positions: HashMap<u64, usize>,
    call_count: usize,
    status: Option<String>,
    /// Whether the stream reported the end of the interaction.
    completed: bool,
    usage: Option<Usage>,
    /// The model that sent the response.
    response_model: Option<String>,
}

impl ResponseAccumulator {
    pub(super) fn new(request_model: &str) -> Self {
        Self {
            request_model: request_model.to_owned(),
            steps: Vec::new(),
            step_positions: HashMap::new(),
            call_count: 0,
            status: None,
            completed: false,
            usage: None,
            response_model: None,
        }
    }

    pub(super) fn decode_body(mut self, body: &str) -> Result<Response, ApiError> {
        let Some(interaction) = ObjectView::parse(body) else { return Err(invalid_interaction()) };
        if interaction.get("steps").is_none() && interaction.get("status").is_none() {
            return Err(self.decode_failure(&interaction).unwrap_or_else(invalid_interaction));
        }
        self.feed_interaction(&interaction, &mut Vec::new())?;
        self.completed = true;
        self.flush_arguments(&mut Vec::new());
        self.finish()
    }

    /// Returns the response at the end of the body.
    pub(super) fn finish(self) -> Result<Response, ApiError> {
        // Without a completion event, a terminal status ends the interaction once all calls have
        // stopped.
        let mut calls = self.steps.iter().filter(|step| step.is_call());
        let is_complete =
            self.completed || self.has_terminal_status() && calls.all(|step| step.stopped);
        if !is_complete {
            return Err(ApiError::incomplete_stream(self.partial_output()));
        }
        let status = self.status.as_deref().unwrap_or_default();
        let finish_reason = match status {
            "" | "completed" if self.call_count == 0 => FinishReason::Stop,
            "" | "completed" | "requires_action" => FinishReason::ToolCalls,
            "incomplete" | "requires_continuation" => FinishReason::Length,
            "failed" => {
                let error = self.steps.iter().find_map(ResponseStep::decode_failure);
                let error = error.unwrap_or_else(|| {
                    ApiError::new(
                        LlmErrorKind::RetryLater { after: None },
                        "the interaction failed",
                    )
                });
                return Err(self.with_partial_output(error));
            }
            status => FinishReason::Other(status.to_owned()),
        };
        let Self { request_model, steps, usage, response_model, .. } = self;
        let parts = steps.into_iter().filter_map(|step| step.into_part(&request_model)).collect();
        Ok(Response {
            message: AssistantMessage { parts },
            finish_reason,
            usage,
            model: response_model,
        })
    }

    /// Feeds the fields of the interaction object.
    fn feed_interaction(
        &mut self,
        interaction: &ObjectView<'_>,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError> {
        self.status = interaction.text("status").or(self.status.take());
        self.response_model = interaction.text("model").or(self.response_model.take());
        self.usage = interaction.object("usage").as_ref().map(parse_usage).or(self.usage);
        if self.steps.is_empty() {
            for (index, step) in (0..).zip(interaction.bounded_list("steps")?) {
                self.start_step(Some(index), step, chunks)?;
            }
            // The steps of an interaction that has ended are complete.
            let is_ended = !matches!(self.status.as_deref(), Some("in_progress" | "queued"));
            self.steps.iter_mut().for_each(|step| step.stopped = is_ended);
        }
        if self.status.as_deref() == Some("failed")
            && let Some(error) = self.decode_failure(interaction)
        {
            return Err(error);
        }
        Ok(())
    }

    /// Starts a step. In an unstreamed response the step is already complete.
    fn start_step(
        &mut self,
        index: Option<u64>,
        raw: &RawValue,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError> {
        let fields = ObjectView::from_raw(raw).unwrap_or_default();
        let kind = match fields.text("type").as_deref() {
            // These steps repeat the request.
            Some("user_input" | "function_result") => return Ok(()),
            Some("model_output") => StepKind::ModelOutput,
            Some("thought") => StepKind::Thought,
            Some("function_call") => {
                let call = (self.call_count, fields.text("name").unwrap_or_default());
                self.call_count += 1;
                StepKind::FunctionCall { index: call.0, name: call.1 }
            }
            Some(_) | None => StepKind::Other,
        };
        self.push_step(index, kind, raw, chunks)
    }

    fn push_step(
        &mut self,
        index: Option<u64>,
        kind: StepKind,
        raw: &RawValue,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError> {
        if self.steps.len() == MAX_CONTENT_PARTS {
            return Err(ApiError::too_many("parts"));
        }
        let step = ResponseStep::from_raw(kind, raw)?;
        match &step.kind {
            StepKind::ModelOutput if !step.content_text().is_empty() => {
                chunks.push(StreamChunk::Text(step.content_text().to_owned()));
            }
            StepKind::Thought if !step.content_text().is_empty() => {
                chunks.push(StreamChunk::Reasoning(step.content_text().to_owned()));
            }
            StepKind::FunctionCall { index, name } => {
                chunks.push(StreamChunk::ToolCallStart { index: *index, name: name.clone() });
            }
            StepKind::ModelOutput | StepKind::Thought | StepKind::Other => {}
        }
        if let Some(index) = index {
            self.step_positions.insert(index, self.steps.len());
        }
        self.steps.push(step);
        Ok(())
    }

    /// Whether the status ends the interaction. `idle` does not: a stream that ends behind this
    /// status was cut, because the interaction continues.
    fn has_terminal_status(&self) -> bool {
        !matches!(self.status.as_deref(), None | Some("" | "in_progress" | "queued" | "idle"))
    }

    /// Emits the initial arguments of each ended call without argument deltas.
    fn flush_arguments(&mut self, chunks: &mut Vec<StreamChunk>) {
        if !self.completed && !self.has_terminal_status() {
            return;
        }
        for step in self.steps.iter_mut().filter(|step| step.stopped) {
            let fragment = step.take_initial_arguments();
            if let (StepKind::FunctionCall { index, .. }, Some(fragment)) = (&step.kind, fragment) {
                chunks.push(StreamChunk::ArgumentsDelta { index: *index, fragment });
            }
        }
    }

    /// Returns the error that an interaction or an event reports.
    fn decode_failure(&self, interaction: &ObjectView<'_>) -> Option<ApiError> {
        let errors = interaction.list("errors").unwrap_or_default();
        let interaction_error =
            interaction.get("error").map(|_| decode_error_object(interaction, 500));
        let error = interaction_error.or_else(|| {
            let first = errors.first().copied().and_then(ObjectView::from_raw)?;
            Some(decode_error_object(&first, 500))
        })?;
        Some(self.with_partial_output(error))
    }

    fn with_partial_output(&self, error: ApiError) -> ApiError {
        let partial_output = Some(self.partial_output()).filter(|text| !text.is_empty());
        ApiError { partial_output, ..error }
    }

    /// Returns the text so far.
    fn partial_output(&self) -> String {
        let outputs = self.steps.iter().filter(|step| step.kind == StepKind::ModelOutput);
        outputs.map(ResponseStep::content_text).collect()
    }
}

fn invalid_interaction() -> ApiError {
    ApiError::invalid_response("the response is not an interaction object")
}

fn parse_usage(usage: &ObjectView<'_>) -> Usage {
    let count = |name| usage.number(name).unwrap_or(0);
    let thought_tokens = count("total_thought_tokens");
    Usage {
        prompt_tokens: count("total_input_tokens").saturating_add(count("total_tool_use_tokens")),
        completion_tokens: count("total_output_tokens").saturating_add(thought_tokens),
        cached_tokens: count("total_cached_tokens"),
        reasoning_tokens: thought_tokens,
        cost: None,
    }
}
