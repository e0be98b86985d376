//! `StreamingInterceptor` and its states, based on [`ToolCallParser`].

use std::future::ready;
use std::sync::Arc;

use futures_util::{Stream, StreamExt as _, stream};
use innkeeper_toolcall::{
    ParseEvent, ParserOptions, ParserState, ResolvedCall, TextEnd, ToolCallParser, Tools,
};

use super::ProcessedToken;

/// The state of a [`StreamingInterceptor`] after its last token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterceptorState {
    /// In text for the user, or in the model's reasoning.
    Narrative,
    /// In text that may become a call of an offered tool, or after a call in reasoning. The
    /// interceptor holds the text.
    MaybeToolStart,
    /// In a call of an offered tool. The interceptor holds the call.
    InToolCall {
        /// Number of open brackets; 0 in a call whose syntax has no brackets.
        depth: usize,
    },
    /// After a call, before any other text than white space.
    AfterToolCall,
}

/// The text and the calls that one token completes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InterceptedText {
    /// The classified text. Never contains [`ProcessedToken::Buffered`]:
    /// [`StreamingInterceptor::state`] tells whether the interceptor holds text.
    pub tokens: Vec<ProcessedToken>,
    /// The complete calls of offered tools, which the caller executes. The arguments may still
    /// violate the schema of the tool.
    pub calls: Vec<ResolvedCall>,
}

impl InterceptedText {
    fn push(&mut self, event: &ParseEvent<'_>) {
        if let ParseEvent::Call { call, .. } = event {
            self.calls.push((*call).clone());
        }
        let text = event.text();
        if text.is_empty() {
            return;
        }
        let text = text.to_owned();
        self.tokens.push(match event {
            ParseEvent::Call { .. } | ParseEvent::Markup(_) => ProcessedToken::ToolCall(text),
            ParseEvent::Text(_)
            | ParseEvent::Reasoning(_)
            | ParseEvent::CallStart { .. }
            | ParseEvent::Arguments { .. }
            | ParseEvent::Rejected { .. }
            | ParseEvent::Incomplete { .. } => ProcessedToken::Narrative(text),
        });
    }
}

/// Separates the text of one response from its tool calls, without I/O: a [`ToolCallParser`] with
/// the states of document 001. [`McpChatIntegration`](super::McpChatIntegration) also executes the
/// calls.
///
/// [`ProcessedToken::Narrative`] contains text, reasoning, invalid calls and unfinished calls.
/// [`ProcessedToken::ToolCall`] contains valid calls and the markup of the model. All tokens,
/// concatenated, equal the text of the model.
///
/// ```
/// use innkeeper::compat::{InterceptorState, ProcessedToken, StreamingInterceptor};
/// use innkeeper_toolcall::Tool;
///
/// let tools = [Tool::new("echo", "Repeats a message.", serde_json::json!({}))];
/// let mut interceptor = StreamingInterceptor::new(tools.into_iter().collect());
/// let text = interceptor.push("I say it. {\"tool\": \"echo\", \"params\": {");
/// assert_eq!(text.tokens, [ProcessedToken::Narrative("I say it. ".to_owned())]);
/// assert_eq!(interceptor.state(), InterceptorState::InToolCall { depth: 2 });
/// assert_eq!(interceptor.push("}}").calls[0].name, "echo");
/// assert_eq!(interceptor.state(), InterceptorState::AfterToolCall);
/// ```
#[derive(Debug)]
pub struct StreamingInterceptor(ToolCallParser);

impl StreamingInterceptor {
    /// Creates the interceptor for one response of a model with these tools. At most 200 characters
    /// of undecided text and 1 MiB of a call are held.
    pub fn new(tools: Tools) -> Self {
        Self::with_options(tools, &ParserOptions::default())
    }

    /// Like [`Self::new`], with the format of the calls and the limits.
    pub fn with_options(tools: Tools, options: &ParserOptions) -> Self {
        Self(ToolCallParser::new(Arc::new(tools), options))
    }

    /// Classifies the next token of the model. A token may end anywhere, even inside a call.
    pub fn push(&mut self, token: &str) -> InterceptedText {
        let mut text = InterceptedText::default();
        self.0.push(token, &mut |event| text.push(&event));
        text
    }

    /// Ends the response. Held text and an unfinished call become
    /// [`Narrative`](ProcessedToken::Narrative); an unfinished call is never returned as a call.
    pub fn finish(&mut self) -> InterceptedText {
        let mut text = InterceptedText::default();
        self.0.finish(TextEnd::Unknown, &mut |event| text.push(&event));
        text
    }

    /// Returns the state after the last token.
    pub fn state(&self) -> InterceptorState {
        match self.0.state() {
            ParserState::Narrative | ParserState::Reasoning => InterceptorState::Narrative,
            ParserState::MaybeToolStart => InterceptorState::MaybeToolStart,
            ParserState::InToolCall => InterceptorState::InToolCall { depth: self.0.call_depth() },
            ParserState::AfterToolCall => InterceptorState::AfterToolCall,
        }
    }

    /// Returns the classified text and the calls as a stream: one item for each token, and one for
    /// the end of the response.
    pub fn process_stream<S>(self, tokens: S) -> impl Stream<Item = InterceptedText>
    where
        S: Stream<Item = String>,
    {
        let end = stream::once(ready(None));
        tokens.map(Some).chain(end).scan(self, |interceptor, token| {
            ready(Some(match token {
                Some(token) => interceptor.push(&token),
                None => interceptor.finish(),
            }))
        })
    }
}
