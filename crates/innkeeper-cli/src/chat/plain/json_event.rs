//! The events of `chat --json`, one JSON object a line.

use innkeeper_agent::agent::AgentEvent;
use innkeeper_agent::provider::Cost;
use serde::Serialize;

use crate::chat::question::Question;
use crate::chat::terminal::outcome_text;

/// One event.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum JsonEvent<'e> {
    Text {
        text: &'e str,
    },
    Reasoning {
        text: &'e str,
    },
    CallStarted {
        id: &'e str,
        tool: &'e str,
        arguments: &'e str,
    },
    CallProgress {
        id: &'e str,
        tool: &'e str,
        progress: f64,
        total: Option<f64>,
        message: Option<&'e str>,
    },
    CallFinished {
        id: &'e str,
        tool: &'e str,
        success: bool,
        result: &'e str,
        elapsed_ms: u64,
        /// How the model made the call.
        origin: &'static str,
    },
    /// A question that nobody answers: a call that needs approval does not run.
    Question {
        kind: &'static str,
        server: Option<&'e str>,
        text: &'e str,
    },
    Notice {
        text: &'e str,
    },
    Finished {
        success: bool,
        text: &'e str,
        /// Why the run has no complete response.
        problem: Option<String>,
        prompt_tokens: u64,
        completion_tokens: u64,
        /// In the unit of the provider; without a member if no response reported a cost.
        #[serde(skip_serializing_if = "Option::is_none")]
        cost: Option<Cost>,
    },
}

impl<'e> JsonEvent<'e> {
    pub(super) fn from_event(event: &'e AgentEvent) -> Option<Self> {
        Some(match event {
            AgentEvent::Text(text) => Self::Text { text },
            AgentEvent::Reasoning(text) => Self::Reasoning { text },
            AgentEvent::ToolCallStarted { id, tool, arguments } => {
                Self::CallStarted { id, tool, arguments }
            }
            AgentEvent::ToolCallProgress { id, tool, progress } => Self::CallProgress {
                id,
                tool,
                progress: progress.progress,
                total: progress.total,
                message: progress.message.as_deref(),
            },
            AgentEvent::ToolCallFinished(record) => Self::CallFinished {
                id: &record.id,
                tool: &record.tool,
                success: record.success,
                result: &record.result_text,
                elapsed_ms: u64::try_from(record.elapsed.as_millis()).unwrap_or(u64::MAX),
                origin: record.origin.name(),
            },
            AgentEvent::Finished(result) => Self::Finished {
                success: result.is_success(),
                text: &result.text,
                problem: outcome_text(&result.outcome),
                prompt_tokens: result.stats.usage.prompt_tokens,
                completion_tokens: result.stats.usage.completion_tokens,
                cost: result.stats.usage.cost,
            },
            AgentEvent::ToolCallDetected { .. }
            | AgentEvent::Planned(_)
            | AgentEvent::HistorySummaryStarted { .. }
            | AgentEvent::HistoryShortened { .. }
            | AgentEvent::ResponseFinished { .. }
            | AgentEvent::Warned(_)
            | AgentEvent::MessagesAdded(_)
            | AgentEvent::Retrying { .. } => return None,
        })
    }

    pub(super) fn question(question: &'e Question) -> Self {
        match question {
            Question::Approval(call, _) => Self::Question {
                kind: "approval",
                server: call.server.as_deref(),
                text: &call.tool,
            },
            Question::Sampling(request, _) => Self::Question {
                kind: "sampling",
                server: Some(&request.server),
                text: &request.model,
            },
            Question::Elicitation(request, _) => Self::Question {
                kind: "elicitation",
                server: Some(&request.server),
                text: &request.message,
            },
        }
    }
}
