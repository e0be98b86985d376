//! The next request of a run: what precedes it, and what follows from that.

use super::compaction::CompactionStep;
use super::request::BuiltRequest;
use super::response_parser::{ResponseParser, text_without_reasoning};
use super::{Effect, ErrorRecord, Run, RunOutcome, ToolCallMode, plan, request};
use crate::conversation::AssistantMessage;
use crate::provider::{Request, Response};

impl Run {
    /// Returns the next request, or the request for a summary or a plan that precedes it.
    pub(super) fn request_effect(&mut self) -> Effect {
        let mode =
            if self.correction.constrained { ToolCallMode::Prompt } else { self.tool_call_mode };
        loop {
            let attempts = &self.correction.attempts;
            let conversation = self.compaction.view(&self.config, &self.conversation);
            let built = match self.is_last_request {
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
            let config = &self.config;
            let conversation = &self.conversation;
            match self.compaction.next_step(config, conversation, &request, fixed_tokens) {
                CompactionStep::Send => {
                    self.visible_results = visible_results;
                    return match self.plan.is_requested {
                        true => self.plan_effect(),
                        false => self.send_effect(request),
                    };
                }
                CompactionStep::Rebuild => {}
                CompactionStep::Omit(omitted) => self.conversation.set_omitted_history(omitted),
                CompactionStep::Summarize(request, messages) => {
                    self.stats.requests += 1;
                    self.response_parser = None;
                    return Effect::Summarize { request, messages };
                }
            }
        }
    }

    fn send_effect(&mut self, mut request: Request) -> Effect {
        request.temperature = self.correction.temperature(&self.config, self.rejected_calls);
        let constrained = self.correction.constrained;
        if constrained {
            request.output_constraint = self.config.constraint();
        }
        self.stats.requests += 1;
        self.response_parser = Some(ResponseParser::new(&self.config, constrained));
        Effect::SendRequest(Box::new(request))
    }

    fn plan_effect(&mut self) -> Effect {
        self.stats.requests += 1;
        self.response_parser = None;
        let request = plan::plan_request(&self.config, &self.conversation);
        Effect::RequestPlan(Box::new(request))
    }

    /// Adds the plan in a response to the conversation. Without a valid plan, the run continues as
    /// if none was requested, and its errors say why.
    pub(super) fn on_plan(&mut self, response: &Response) -> Effect {
        let text = text_without_reasoning(response);
        match self.plan.parse(&text) {
            Ok(()) => {
                let repeats_plan = !self.config.settings.requests.conversation_memory;
                let start = plan::start_message(&self.conversation, repeats_plan.then_some(&*text));
                // No call is pending before the first iteration's response.
                if self.conversation.push_assistant(AssistantMessage::from_text(text)).is_ok() {
                    let _ = self.conversation.push_user(start);
                }
            }
            Err(problem) => return self.continue_without_plan(&problem),
        }
        self.request_effect()
    }

    /// Continues as if no plan was requested.
    pub(super) fn continue_without_plan(&mut self, problem: &str) -> Effect {
        self.plan.is_requested = false;
        self.calls.record_run_error(ErrorRecord {
            iteration: self.stats.iterations,
            tool: None,
            call_id: None,
            error: format!("the run continues without a plan: {problem}"),
            recovery_action: None,
        });
        self.request_effect()
    }

    /// Returns the next request of a summary of the whole history before the last exchange, and the
    /// number of messages in it; `None` if no message is left to summarize. The next input is
    /// [`Self::on_compaction_response`].
    pub(crate) fn compaction_request(&mut self) -> Option<(Request, usize)> {
        self.response_parser = None;
        self.compaction.full_summary_request(&self.config, &self.conversation)
    }

    /// Handles the response to [`Self::compaction_request`]. Returns whether the summary is usable.
    pub(crate) fn on_compaction_response(&mut self, response: &Response) -> bool {
        let omitted = self.compaction.on_summary(&self.config, &self.conversation, response);
        let is_usable = !self.compaction.has_failed();
        if is_usable {
            self.conversation.set_omitted_history(omitted);
        }
        is_usable
    }

    /// Replaces old messages by the summary in a response, and builds the request that waits.
    pub(super) fn on_summary(&mut self, response: &Response) -> Effect {
        self.stats.summaries += 1;
        let omitted = self.compaction.on_summary(&self.config, &self.conversation, response);
        self.conversation.set_omitted_history(omitted);
        self.request_effect()
    }
}
