//! A provider with scripted replies, for tests of applications.
//!
//! The provider runs no model and is named `scripted`.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;

use super::{
    Capabilities, FinishReason, LlmError, LlmErrorKind, LlmProvider, Request, Response, ToolSupport,
};
use crate::conversation::{AssistantMessage, ContentPart, PartContent, ToolCall};

/// Maximum number of recorded requests; the oldest are dropped first.
const MAX_RECORDED_REQUESTS: usize = 1_000;

/// A provider with scripted replies. Each request gets the next reply; after the last reply, each
/// request gets an error.
///
/// # Examples
///
/// ```
/// use innkeeper_agent::provider::{LlmProvider as _, Request, Response, ScriptedProvider};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), innkeeper_agent::provider::LlmError> {
/// let call = Response::from_tool_calls([("files.read", r#"{"path": "a.txt"}"#)]);
/// let model = ScriptedProvider::new([Ok(call)]);
/// let response = model.generate(Request::default()).await?;
/// assert_eq!(response.message.calls().count(), 1);
/// assert!(model.generate(Request::default()).await.is_err());
/// assert_eq!(model.requests().len(), 2);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct ScriptedProvider {
    name: String,
    model: String,
    capabilities: Capabilities,
    state: Mutex<ScriptState>,
}

#[derive(Debug, Default)]
struct ScriptState {
    remaining: VecDeque<Result<Response, LlmError>>,
    requests: VecDeque<Request>,
}

impl ScriptedProvider {
    /// Creates a provider from its replies. The provider supports native tool calling.
    pub fn new(replies: impl IntoIterator<Item = Result<Response, LlmError>>) -> Self {
        let remaining = replies.into_iter().collect();
        Self {
            name: "scripted".to_owned(),
            model: "scripted".to_owned(),
            capabilities: Capabilities {
                tools: ToolSupport { native: true, ..ToolSupport::default() },
                temperature: true,
                stop_sequences: true,
                ..Capabilities::default()
            },
            state: Mutex::new(ScriptState { remaining, requests: VecDeque::new() }),
        }
    }

    /// Sets the model name, which selects the prompt.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = model.into();
        self
    }

    /// Sets the capabilities.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Returns the last 1,000 requests, oldest first.
    pub fn requests(&self) -> Vec<Request> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.requests.iter().cloned().collect()
    }
}

impl Response {
    /// Creates a response with tool calls: the public name of each tool and the text of its
    /// arguments.
    pub fn from_tool_calls<'c>(calls: impl IntoIterator<Item = (&'c str, &'c str)>) -> Self {
        let parts = calls.into_iter().map(|(name, arguments)| {
            ContentPart::new(PartContent::ToolCall(ToolCall {
                id: String::new(),
                name: name.to_owned(),
                arguments: arguments.to_owned(),
                is_cut: false,
            }))
        });
        let message = AssistantMessage { parts: parts.collect() };
        let finish_reason =
            if message.parts.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
        Self { message, finish_reason, ..Self::default() }
    }
}

#[async_trait]
impl LlmProvider for ScriptedProvider {
    async fn generate(&self, request: Request) -> Result<Response, LlmError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.requests.len() == MAX_RECORDED_REQUESTS {
            state.requests.pop_front();
        }
        state.requests.push_back(request);
        state.remaining.pop_front().unwrap_or_else(|| {
            Err(LlmError::new(
                &self.name,
                LlmErrorKind::InvalidRequest,
                "the script has no reply left",
            ))
        })
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn supports_tools(&self) -> bool {
        self.capabilities.tools.native
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }
}
