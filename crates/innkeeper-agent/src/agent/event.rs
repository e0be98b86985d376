//! The events of a run.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_host::Progress;

use super::run_result::{RunResult, ToolCallRecord};
use crate::conversation::Message;
use crate::provider::Usage;
use crate::run::{CallWarning, OmittedTools, PlanStep, ResponseEvent};

/// An event of a run.
#[derive(Debug)]
pub enum AgentEvent {
    /// Text for the user.
    Text(String),
    /// Reasoning text, as far as the provider exposes it.
    Reasoning(String),
    /// The model has started to write a call of this tool. The call may still turn out to be
    /// invalid.
    ToolCallDetected {
        /// The name of the tool.
        tool: String,
    },
    /// A tool call starts to run.
    ToolCallStarted {
        /// The id of the call in the conversation.
        id: String,
        /// The name of the tool.
        tool: String,
        /// The arguments as JSON text.
        arguments: Arc<str>,
    },
    /// A running tool call reports progress.
    ToolCallProgress {
        /// The id of the call in the conversation.
        id: String,
        /// The name of the tool.
        tool: String,
        /// The progress, as the server reports it.
        progress: Progress,
    },
    /// A tool call has ended, or was refused or rejected. [`RunResult::tool_calls`] has the same
    /// record, except that the model may turn out to have only looked around
    /// ([`retry_attempt`](super::ToolCallAttempts::retry_attempt)).
    ToolCallFinished(Arc<ToolCallRecord>),
    /// The result of a call got a warning, because the call repeats without a new result (the event
    /// follows the end of the call), or a call in the text was not taken for one, because someone
    /// else wrote it.
    Warned(CallWarning),
    /// The model does not get some tools, because the provider does not take them.
    ToolsOmitted(OmittedTools),
    /// The model has responded, also with a summary or a plan. A response that is interrupted has no
    /// event.
    ResponseFinished {
        /// The token usage of the response, as reported by the provider; `None` without a report.
        usage: Option<Usage>,
    },
    /// The model has written a plan. Without a valid plan, the run continues without this event.
    Planned(Vec<PlanStep>),
    /// The history is too long for the next request: the model writes a summary of its oldest
    /// messages. No event shows the summary.
    HistorySummaryStarted {
        /// The number of messages that the summary replaces.
        messages: usize,
    },
    /// The run has added messages to the conversation, in their order. An application that stores
    /// each message continues the conversation after a kill with what the run had reached.
    MessagesAdded(Vec<Message>),
    /// The next requests leave out more messages of the conversation than the requests before.
    HistoryShortened {
        /// The number of messages, from the start of the conversation.
        messages: usize,
        /// Whether the requests contain the model's summary of all these messages.
        is_summarized: bool,
    },
    /// The agent sends another request. The text that the model wrote since its last call is not
    /// part of its response.
    Retrying {
        /// The delay before the request.
        delay: Duration,
    },
    /// The run has ended. The event is the last event of each stream; no sink gets the event,
    /// because [`Agent::run_streaming`](super::Agent::run_streaming) returns the result.
    Finished(Box<RunResult>),
}

impl From<ResponseEvent<'_>> for AgentEvent {
    fn from(event: ResponseEvent<'_>) -> Self {
        match event {
            ResponseEvent::Text(text) => Self::Text(text.to_owned()),
            ResponseEvent::Reasoning(text) => Self::Reasoning(text.to_owned()),
            ResponseEvent::ToolCallDetected { tool } => {
                Self::ToolCallDetected { tool: tool.to_owned() }
            }
        }
    }
}
