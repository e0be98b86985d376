//! `ProcessedToken` and `ExecutedTool`, and the streams of both.

use innkeeper_agent::chat::{ExecutionStream, SegmentStream, TextSegment, ToolExecution};
use serde_json::{Value, json};

/// A chunk of the model's text: a simplified [`TextSegment`]. All chunks except `Buffered` ones and
/// placeholders, concatenated, equal the model's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessedToken {
    /// Visible text: text, reasoning with its tags, placeholders, and rejected calls.
    Narrative(String),
    /// A call or the markup of a call, hidden from the user.
    ToolCall(String),
    /// Text under analysis, hidden from the user. The text is repeated in a later token.
    Buffered(String),
}

impl From<TextSegment> for ProcessedToken {
    fn from(token: TextSegment) -> Self {
        match token {
            TextSegment::Narrative(text)
            | TextSegment::Reasoning(text)
            | TextSegment::RejectedCall { text, .. } => Self::Narrative(text),
            TextSegment::Placeholder { replacement, .. } => Self::Narrative(replacement),
            TextSegment::ToolCall(text) => Self::ToolCall(text),
            TextSegment::Buffered(text) => Self::Buffered(text),
        }
    }
}

/// A finished tool call: a [`ToolExecution`] with plain JSON values.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutedTool {
    /// Name of the tool.
    pub tool_name: String,
    /// Arguments of the call.
    pub parameters: Value,
    /// The result object as the server sent it, or `{"error": …}` if there is no result.
    pub result: Value,
    /// Duration of the call in milliseconds.
    pub execution_time_ms: u64,
    /// Index of the call in the response, from 0.
    pub index: usize,
}

impl From<ToolExecution> for ExecutedTool {
    fn from(execution: ToolExecution) -> Self {
        let result = match &execution.outcome {
            Ok(output) => serde_json::from_str(output.raw().get()).unwrap_or_default(),
            Err(error) => json!({ "error": error.to_string() }),
        };
        Self {
            parameters: serde_json::from_str(&execution.arguments.to_string()).unwrap_or_default(),
            tool_name: execution.tool,
            result,
            execution_time_ms: u64::try_from(execution.elapsed.as_millis()).unwrap_or(u64::MAX),
            index: execution.index,
        }
    }
}

/// A stream of the text of a response.
#[derive(Debug)]
pub struct ProcessedTokens(pub(super) SegmentStream);

impl ProcessedTokens {
    /// Returns the next token, or `None` at the end. Cancel-safe.
    pub async fn recv(&mut self) -> Option<ProcessedToken> {
        self.0.recv().await.map(Into::into)
    }
}

/// A stream of the executed calls of a response.
#[derive(Debug)]
pub struct ExecutedTools(pub(super) ExecutionStream);

impl ExecutedTools {
    /// Returns the next executed call, or `None` after the last one. Cancel-safe.
    pub async fn recv(&mut self) -> Option<ExecutedTool> {
        self.0.recv().await.map(Into::into)
    }
}
