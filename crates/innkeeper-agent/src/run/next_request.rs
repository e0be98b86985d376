//! The next request of a run: what precedes it, and what follows from that.

use std::sync::Arc;

use super::history::CompactionStep;
use super::request::BuiltRequest;
use super::response_parser::{ResponseParser, text_without_reasoning};
use super::{Effect, Run, RunOutcome, ToolCallMode, plan, request};
use crate::conversation::AssistantMessage;
use crate::provider::{Request, Response};

/// The last request of a run, and what limits further ones.
#[derive(Debug, Default)]
pub(super) struct RequestState {
    /// Whether the run has reached its iteration limit, so that the model can only answer.
    pub(super) is_last: bool,
    /// The ids of the calls of this run whose results the request contains.
    pub(super) visible_results: Arc<[String]>,
    pub(super) response_parser: Option<ResponseParser>,
    /// How many failed requests are sent again, or responses corrected.
    pub(super) retries_remaining: u32,
    /// The failed requests since the last response.
    pub(super) consecutive_failures: u32,
}

impl Run {
    /// Returns the next request, or the request for a summary or a plan that precedes it.
    pub(super) fn request_effect(&mut self) -> Effect {
        let mode = if self.correction.constrained { ToolCallMode::Prompt } else { self.tools.mode };
        loop {
            let attempts = &self.correction.attempts;
            let conversation = self.history.view(&self.config);
            let built = match self.requests.is_last {
                true => Ok(request::build_last_request(&self.config, &conversation)),
                false => request::build_request(&self.config, &conversation, mode, attempts),
            };
            let BuiltRequest { mut request, fixed_tokens, visible_results } = match built {
                Ok(built) => built,
                Err(error) => {
                    return Effect::Finish(RunOutcome::NotSent { reason: error.to_string() });
                }
            };
            if self.correction.constrained {
                request.messages.splice(..0, request::few_shot_example(&self.config));
            }
            match self.history.next_step(&self.config, &request, fixed_tokens) {
                CompactionStep::Send => {
                    self.requests.visible_results = visible_results;
                    return match self.plan.is_requested {
                        true => self.plan_effect(),
                        false => self.send_effect(request),
                    };
                }
                CompactionStep::Rebuild => {}
                CompactionStep::Summarize(request, messages) => {
                    self.stats.requests += 1;
                    self.requests.response_parser = None;
                    return Effect::Summarize { request, messages };
                }
            }
        }
    }

    fn send_effect(&mut self, mut request: Request) -> Effect {
        request.temperature = self.correction.temperature(&self.config);
        let constrained = self.correction.constrained;
        if constrained {
            request.output_constraint = self.config.constraint();
        }
        self.stats.requests += 1;
        self.requests.response_parser = Some(ResponseParser::new(&self.config, constrained));
        Effect::SendRequest(Box::new(request))
    }

    fn plan_effect(&mut self) -> Effect {
        self.stats.requests += 1;
        self.requests.response_parser = None;
        let request = plan::plan_request(&self.config, &self.history.conversation);
        Effect::RequestPlan(Box::new(request))
    }

    /// Adds the plan in a response to the conversation. Without a valid plan, the run continues as
    /// if none was requested, and its errors say why.
    pub(super) fn on_plan(&mut self, response: &Response) -> Effect {
        let text = text_without_reasoning(response);
        match self.plan.parse(&text) {
            Ok(()) => {
                let repeats_plan = !self.config.settings.requests.conversation_memory;
                let start =
                    plan::start_message(&self.history.conversation, repeats_plan.then_some(&*text));
                // No call is pending before the first iteration's response.
                if self
                    .history
                    .conversation
                    .push_assistant(AssistantMessage::from_text(text))
                    .is_ok()
                {
                    let _ = self.history.conversation.push_user(start);
                }
            }
            Err(problem) => return self.continue_without_plan(&problem),
        }
        self.request_effect()
    }

    pub(super) fn continue_without_plan(&mut self, problem: &str) -> Effect {
        self.plan.is_requested = false;
        self.record_error(None, format!("the run continues without a plan: {problem}"));
        self.request_effect()
    }

    /// Returns the next request of a summary of the whole history before the last exchange, and the
    /// number of messages in it; `None` if no message is left to summarize. The next input is
    /// [`Self::on_compaction_response`].
    pub(crate) fn compaction_request(&mut self) -> Option<(Request, usize)> {
        self.requests.response_parser = None;
        self.history.full_summary_request(&self.config)
    }

    /// Handles the response to [`Self::compaction_request`]. Returns whether the summary is usable.
    pub(crate) fn on_compaction_response(&mut self, response: &Response) -> bool {
        self.history.take_summary(&self.config, response).is_ok()
    }

    /// Replaces old messages by the summary in a response, and builds the request that waits.
    pub(super) fn on_summary(&mut self, response: &Response) -> Effect {
        self.stats.summaries += 1;
        self.history.on_summary(&self.config, response);
        self.request_effect()
    }
}
