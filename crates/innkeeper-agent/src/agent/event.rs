//! Borrowed events of a run in progress.

use std::time::Duration;

use super::run_result::ToolCallRecord;
use crate::run::ResponseEvent;

/// An event of a run. [`AgentEvent`](super::AgentEvent) is the owned form.
#[derive(Clone, Copy, Debug)]
pub enum AgentEventRef<'e> {
    /// Text for the user.
    Text(&'e str),
    /// Reasoning text, as far as the provider exposes it.
    Reasoning(&'e str),
    /// The model has started to write a call of this tool. The call may still turn out to be
    /// invalid.
    ToolCallDetected {
        /// The name of the tool.
        tool: &'e str,
    },
    /// A tool call starts to run.
    ToolCallStarted {
        /// The name of the tool.
        tool: &'e str,
        /// The arguments as JSON text.
        arguments: &'e str,
    },
    /// A tool call has ended, or was refused.
    ToolCallFinished(&'e ToolCallRecord),
    /// The agent sends another request. The text that the model wrote since its last call is not
    /// part of its response.
    Retrying {
        /// The delay before the request.
        delay: Duration,
    },
}

impl<'e> From<ResponseEvent<'e>> for AgentEventRef<'e> {
    fn from(event: ResponseEvent<'e>) -> Self {
        match event {
            ResponseEvent::Text(text) => Self::Text(text),
            ResponseEvent::Reasoning(text) => Self::Reasoning(text),
            ResponseEvent::ToolCallDetected { tool } => Self::ToolCallDetected { tool },
        }
    }
}
