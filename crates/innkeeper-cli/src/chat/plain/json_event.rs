//! The events of `chat --json`, one JSON object a line.

use std::time::Duration;

use innkeeper_agent::agent::AgentEvent;
use innkeeper_agent::provider::Cost;
use innkeeper_agent::server_requests::form::{ChoiceOption, FieldKind, FormField};
use serde::Serialize;
use serde_json::Value;

use crate::chat::question::{Question, RequestedInput};
use crate::chat::terminal::outcome_text;

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
    /// A question. Without an id, nobody answers: a call that needs approval does not run.
    Question {
        kind: &'static str,
        server: Option<&'e str>,
        text: &'e str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<u64>,
        /// What the answer needs; only with an id.
        #[serde(flatten)]
        details: Option<QuestionDetails<'e>>,
    },
    /// Nobody waits for the answer of a question any more.
    QuestionWithdrawn {
        id: u64,
    },
    /// A line of stdin that has no effect.
    Error {
        /// The id of the question that the line names.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<u64>,
        text: &'e str,
    },
    Warning {
        id: &'e str,
        tool: &'e str,
        text: &'e str,
    },
    /// The model does not get these tools.
    ToolsOmitted {
        tools: &'e [String],
        reason: &'e str,
    },
    /// The text since the last call is not part of the response, and the request is sent again.
    Retry {
        delay_ms: u64,
    },
    HistorySummaryStarted {
        messages: usize,
    },
    HistoryShortened {
        messages: usize,
        is_summarized: bool,
    },
    Notice {
        text: &'e str,
    },
    /// A log message of a server, or how many were left out.
    Log {
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
                success: record.outcome.success,
                result: &record.result_text,
                elapsed_ms: milliseconds(record.elapsed),
                origin: record.origin.name(),
            },
            AgentEvent::Finished(result) => Self::Finished {
                success: result.is_completed(),
                text: &result.text,
                problem: outcome_text(&result.outcome),
                prompt_tokens: result.stats.usage.prompt_tokens,
                completion_tokens: result.stats.usage.completion_tokens,
                cost: result.stats.usage.cost,
            },
            AgentEvent::Warned(warning) => {
                Self::Warning { id: &warning.call_id, tool: &warning.tool, text: &warning.text }
            }
            AgentEvent::ToolsOmitted(omitted) => {
                Self::ToolsOmitted { tools: &omitted.tools, reason: &omitted.reason }
            }
            AgentEvent::Retrying { delay } => Self::Retry { delay_ms: milliseconds(*delay) },
            AgentEvent::HistorySummaryStarted { messages } => {
                Self::HistorySummaryStarted { messages: *messages }
            }
            AgentEvent::HistoryShortened { messages, is_summarized } => {
                Self::HistoryShortened { messages: *messages, is_summarized: *is_summarized }
            }
            AgentEvent::ToolCallDetected { .. }
            | AgentEvent::Planned(_)
            | AgentEvent::ResponseFinished { .. }
            | AgentEvent::MessagesAdded(_) => return None,
        })
    }

    /// Returns the event of a question, with what the answer needs if the question has an id.
    pub(super) fn question(question: &'e Question, id: Option<u64>) -> Self {
        let (kind, server, text) = match question {
            Question::Approval(call, _) => ("approval", call.server.as_deref(), &*call.tool),
            Question::Sampling(request, _) => ("sampling", Some(&*request.server), &*request.model),
            Question::Elicitation(request, _) => {
                ("elicitation", Some(&*request.server), &*request.message)
            }
        };
        let details = id.map(|_| QuestionDetails::new(question));
        Self::Question { kind, server, text, id, details }
    }
}

/// What the answer of a question needs.
#[derive(Debug, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub(super) enum QuestionDetails<'e> {
    Approval {
        arguments: &'e str,
        description: Option<&'e str>,
        read_only: bool,
        destructive: bool,
        open_world: bool,
        pinned: bool,
        /// Whether the answer may have the scope `always`.
        can_allow_always: bool,
    },
    Sampling {
        call: Option<&'e str>,
        messages: Vec<SampledMessage<'e>>,
        max_tokens: u32,
    },
    Form {
        call: Option<&'e str>,
        fields: Vec<FieldDetails<'e>>,
    },
    Url {
        call: Option<&'e str>,
        url: &'e str,
        host: &'e str,
    },
}

#[derive(Debug, Serialize)]
pub(super) struct SampledMessage<'e> {
    role: &'static str,
    text: &'e str,
}

#[derive(Debug, Serialize)]
pub(super) struct FieldDetails<'e> {
    name: &'e str,
    label: &'e str,
    description: Option<&'e str>,
    r#type: &'static str,
    required: bool,
    default: Option<&'e Value>,
    /// The values of a choice.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    options: Vec<OptionDetails<'e>>,
}

#[derive(Debug, Serialize)]
pub(super) struct OptionDetails<'e> {
    value: &'e str,
    label: &'e str,
}

impl<'e> QuestionDetails<'e> {
    fn new(question: &'e Question) -> Self {
        match question {
            Question::Approval(call, _) => Self::Approval {
                arguments: &call.arguments,
                description: call.description.as_deref(),
                read_only: call.annotations.read_only,
                destructive: call.annotations.destructive,
                open_world: call.annotations.open_world,
                pinned: call.is_pinned,
                can_allow_always: call.permanent_obstacle.is_none(),
            },
            Question::Sampling(request, _) => Self::Sampling {
                call: request.call.as_deref(),
                messages: request
                    .messages
                    .iter()
                    .map(|(role, text)| SampledMessage { role, text })
                    .collect(),
                max_tokens: request.max_tokens,
            },
            Question::Elicitation(request, _) => match &request.input {
                RequestedInput::Form(form) => Self::Form {
                    call: request.call.as_deref(),
                    fields: form.fields().iter().map(FieldDetails::new).collect(),
                },
                RequestedInput::Url { url, host } => {
                    Self::Url { call: request.call.as_deref(), url, host }
                }
            },
        }
    }
}

impl<'e> FieldDetails<'e> {
    fn new(field: &'e FormField) -> Self {
        let (r#type, options): (_, &[ChoiceOption]) = match &field.kind {
            FieldKind::Text { .. } => ("string", &[]),
            FieldKind::Number { is_integer: true, .. } => ("integer", &[]),
            FieldKind::Number { is_integer: false, .. } => ("number", &[]),
            FieldKind::Boolean => ("boolean", &[]),
            FieldKind::SingleChoice { options } => ("choice", options),
            FieldKind::MultiChoice { options, .. } => ("choices", options),
        };
        let options = options.iter();
        Self {
            name: &field.name,
            label: field.label(),
            description: field.description.as_deref(),
            r#type,
            required: field.is_required,
            default: field.default.as_ref(),
            options: options
                .map(|option| OptionDetails { value: &option.value, label: option.label() })
                .collect(),
        }
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use innkeeper_agent::run::{CallWarning, OmittedTools};
    use serde_json::json;

    use super::*;

    #[test]
    fn warnings_retries_and_shortened_histories_have_their_events() {
        let warning = CallWarning {
            call_id: "call-1".to_owned(),
            tool: "one.add".to_owned(),
            text: "the call repeats".to_owned(),
        };
        let events = [
            (
                AgentEvent::Warned(warning),
                json!({"event": "warning", "id": "call-1", "tool": "one.add",
                    "text": "the call repeats"}),
            ),
            (
                AgentEvent::ToolsOmitted(OmittedTools {
                    tools: vec!["one.add".to_owned()],
                    reason: "the provider rejects it".to_owned(),
                }),
                json!({"event": "tools_omitted", "tools": ["one.add"],
                    "reason": "the provider rejects it"}),
            ),
            (
                AgentEvent::Retrying { delay: Duration::from_millis(1_500) },
                json!({"event": "retry", "delayMs": 1500}),
            ),
            (
                AgentEvent::HistorySummaryStarted { messages: 4 },
                json!({"event": "history_summary_started", "messages": 4}),
            ),
            (
                AgentEvent::HistoryShortened { messages: 6, is_summarized: false },
                json!({"event": "history_shortened", "messages": 6, "isSummarized": false}),
            ),
        ];
        for (event, expected) in events {
            let event = JsonEvent::from_event(&event).unwrap();
            assert_eq!(serde_json::to_value(event).unwrap(), expected);
        }
    }
}
