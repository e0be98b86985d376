//! `ProcessedToken` and `ExecutedTool`, and the streams of them.

use innkeeper_agent::chat::{Executed, Token, TokenStream, ToolStream};
use serde_json::{Value, json};

/// A piece of the model's text; a [`Token`] in fewer words. Without those that are `Buffered`, and
/// without placeholders, all put together are the text that came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessedToken {
    /// To be shown: text, thoughts with their tags, placeholders, and what was meant as a call and is
    /// none.
    Narrative(String),
    /// A call or its markup: not to be shown.
    ToolCall(String),
    /// Still being analysed; it comes again as something else: not to be shown.
    Buffered(String),
}

impl From<Token> for ProcessedToken {
    fn from(token: Token) -> Self {
        match token {
            Token::Narrative(text) | Token::Reasoning(text) | Token::NoCall { text, .. } => {
                Self::Narrative(text)
            }
            Token::Placeholder { shown, .. } => Self::Narrative(shown),
            Token::ToolCall(text) => Self::ToolCall(text),
            Token::Buffered(text) => Self::Buffered(text),
        }
    }
}

/// A call that came to its end; an [`Executed`] with values in place of types.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutedTool {
    /// The tool.
    pub tool_name: String,
    /// The arguments.
    pub parameters: Value,
    /// The result object as the server sent it, or `{"error": …}` where there is none.
    pub result: Value,
    /// How long it took.
    pub execution_time_ms: u64,
    /// Which call of the answer, from 0.
    pub index: usize,
}

impl From<Executed> for ExecutedTool {
    fn from(executed: Executed) -> Self {
        let result = match &executed.outcome {
            Ok(output) => serde_json::from_str(output.raw().get()).unwrap_or_default(),
            Err(error) => json!({ "error": error.to_string() }),
        };
        Self {
            parameters: serde_json::from_str(&executed.arguments.to_string()).unwrap_or_default(),
            tool_name: executed.tool,
            result,
            execution_time_ms: u64::try_from(executed.elapsed.as_millis()).unwrap_or(u64::MAX),
            index: executed.index,
        }
    }
}

/// The text of an answer.
#[derive(Debug)]
pub struct ProcessedTokens(pub(super) TokenStream);

impl ProcessedTokens {
    /// The next piece; nothing at the end. Cancel-safe.
    pub async fn recv(&mut self) -> Option<ProcessedToken> {
        self.0.recv().await.map(Into::into)
    }
}

/// The results of an answer's calls.
#[derive(Debug)]
pub struct ExecutedTools(pub(super) ToolStream);

impl ExecutedTools {
    /// The next result; nothing when all calls have ended. Cancel-safe.
    pub async fn recv(&mut self) -> Option<ExecutedTool> {
        self.0.recv().await.map(Into::into)
    }
}
