//! A conversation between a user, a model and tools, valid for every provider.
//!
//! A [`Conversation`] keeps one invariant: every call has exactly one result, and the results of a
//! response directly follow that response.

mod history_budget;
mod history_view;
mod message;
mod provider_api;
mod stored;

use std::collections::HashSet;
use std::ops::Range;

use crate::content::{Content, ContentBlock};

pub use history_budget::{HistoryBudget, estimate_tokens};
pub(crate) use history_budget::{estimate_content_tokens, estimate_message_tokens};
pub use history_view::OmittedHistory;
pub(crate) use history_view::{
    choose_cut, cuts, latest_iteration, newest_iteration_start, visible_messages,
};
pub use message::{
    AssistantMessage, ContentPart, Message, PartContent, ProviderBlock, ToolCall, ToolResult,
};
pub use provider_api::ProviderApi;
pub use stored::CONVERSATION_VERSION;

/// Maximum number of messages in a conversation, more than any model reads.
pub const MAX_MESSAGES: usize = 10_000;

/// Maximum number of bytes of all messages in a conversation: sixteen times the context of the
/// largest models.
pub const MAX_BYTES: usize = 64 << 20;

/// The messages between a user, a model and the tools. See the [module](self).
///
/// A conversation holds at most [`MAX_MESSAGES`] and [`MAX_BYTES`]. Beyond a limit, the
/// conversation evicts the oldest exchanges; if only one exchange remains, the conversation evicts
/// its oldest iterations. The last user message and the newest iteration always remain. An
/// iteration is a response, its continuations after a pause, and the results of its calls.
///
/// `serde` writes and reads a conversation in a form with the version [`CONVERSATION_VERSION`].
/// Reading fails for another version, and for messages in an invalid order.
///
/// # Examples
///
/// ```
/// # use innkeeper_agent::conversation::{Conversation, ConversationError, ToolResult};
/// # use innkeeper_agent::provider::Response;
/// let mut conversation = Conversation::new();
/// conversation.push_user("What is in a.txt?")?;
/// let calls = Response::from_tool_calls([("files.read", r#"{"path": "a.txt"}"#)]);
/// conversation.push_assistant(calls.message)?;
/// let results = conversation.pending_calls().map(|call| {
///     let (id, name) = (call.id.clone(), call.name.clone());
///     ToolResult { id, name, content: "Hello.".into(), is_error: false }
/// });
/// conversation.push_tool_results(results.collect())?;
/// assert_eq!(conversation.messages().len(), 3);
/// # Ok::<(), ConversationError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    messages: Vec<Message>,
    /// The approximate size of all messages.
    bytes: usize,
    /// The ids of all calls, so that an id belongs to one call only.
    call_ids: HashSet<String>,
    generated_ids: usize,
    added_messages: u64,
    omitted: OmittedHistory,
    token_correction: TokenCorrection,
}

/// The tokens that a provider reports, divided by the estimate.
#[derive(Clone, Copy, Debug)]
struct TokenCorrection(f64);

impl Default for TokenCorrection {
    fn default() -> Self {
        Self(1.0)
    }
}

/// Largest correction of an estimate. A text with more than one token per byte does not exist.
const MAX_TOKEN_CORRECTION: f64 = 4.0;

/// Conversations with the same messages are equal.
impl PartialEq for Conversation {
    fn eq(&self, other: &Self) -> bool {
        self.messages == other.messages
    }
}

/// A message that does not fit the order or the limits. The conversation is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConversationError {
    /// A call has no result.
    #[error("call `{id}` of `{tool}` has no result: add the result or fail the pending calls")]
    MissingResult {
        /// The id of the first call without a result.
        id: String,
        /// The tool of that call.
        tool: String,
    },
    /// A result belongs to no pending call.
    #[error("result for call `{id}`, which is not pending")]
    UnknownCall {
        /// The call id of the result.
        id: String,
    },
    /// The user message exceeds the limit of the whole conversation.
    #[error("message has {bytes} bytes, the limit is {MAX_BYTES}: shorten it")]
    MessageTooLong {
        /// The size of the message in bytes.
        bytes: usize,
    },
}

/// The messages of a conversation at one time, without what a conversation derives from them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConversationSnapshot {
    messages: Vec<Message>,
    omitted: OmittedHistory,
}

impl Conversation {
    /// Returns the messages, which share their contents with the conversation.
    pub(crate) fn snapshot(&self) -> ConversationSnapshot {
        ConversationSnapshot { messages: self.messages.clone(), omitted: self.omitted.clone() }
    }

    /// Creates a conversation with the messages of another one.
    pub(crate) fn from_snapshot(snapshot: ConversationSnapshot) -> Self {
        let ConversationSnapshot { messages, omitted } = snapshot;
        let calls = messages.iter().flat_map(|message| match message {
            Message::Assistant(assistant) => {
                assistant.calls().map(|call| call.id.clone()).collect()
            }
            Message::User(_) | Message::ToolResults(_) => Vec::new(),
        });
        let call_ids = calls.collect();
        let bytes = messages.iter().map(Message::byte_size).sum();
        Self { messages, bytes, call_ids, omitted, ..Self::default() }
    }

    /// Creates an empty conversation.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the messages in their order.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    pub(crate) fn last_user_message(&self) -> Option<&Content> {
        self.messages.iter().rev().find_map(|message| match message {
            Message::User(content) => Some(content),
            Message::Assistant(_) | Message::ToolResults(_) => None,
        })
    }

    /// Returns the conversation with other contents of its messages, for a request.
    pub(crate) fn with_messages(&self, messages: Vec<Message>) -> Self {
        Self {
            messages,
            bytes: self.bytes,
            call_ids: HashSet::new(),
            generated_ids: self.generated_ids,
            added_messages: self.added_messages,
            omitted: self.omitted.clone(),
            token_correction: self.token_correction,
        }
    }

    /// Returns the oldest messages that requests leave out, with the model's summary of them. The
    /// messages themselves stay in the conversation.
    pub fn omitted_history(&self) -> &OmittedHistory {
        &self.omitted
    }

    /// Sets the messages that requests leave out; a summary of other messages is ignored.
    pub(crate) fn set_omitted_history(&mut self, omitted: OmittedHistory) {
        if omitted.fits(&self.messages) {
            self.omitted = omitted;
        }
    }

    /// Corrects later estimates by a count of the provider. Only an estimate that is too small is
    /// corrected: some servers do not count the tokens in their cache.
    pub(crate) fn correct_estimate(&mut self, estimated: usize, reported: u64) {
        let ratio = reported as f64 / estimated.max(1) as f64;
        self.token_correction.0 = self.token_correction.0.max(ratio).min(MAX_TOKEN_CORRECTION);
    }

    /// Returns the estimate that corresponds to this number of the provider's tokens.
    pub(crate) fn to_estimated_tokens(&self, tokens: usize) -> usize {
        (tokens as f64 / self.token_correction.0) as usize
    }

    /// Returns the number of the provider's tokens that corresponds to this estimate.
    pub(crate) fn to_provider_tokens(&self, estimated: usize) -> usize {
        (estimated as f64 * self.token_correction.0) as usize
    }

    /// Returns the number of messages that were added, with those that were evicted since.
    pub(crate) fn added_messages(&self) -> u64 {
        self.added_messages
    }

    /// Removes the last user message with everything after it, and returns its content; `None`
    /// without a user message.
    pub fn remove_last_exchange(&mut self) -> Option<Content> {
        let at = self.messages.iter().rposition(|message| matches!(message, Message::User(_)))?;
        let mut removed = self.messages.split_off(at);
        let Message::User(content) = removed.swap_remove(0) else { return None };
        let omitted = std::mem::take(&mut self.omitted);
        let snapshot =
            ConversationSnapshot { messages: std::mem::take(&mut self.messages), omitted };
        let has_summary_of_removed = !snapshot.omitted.fits(&snapshot.messages);
        let Self { generated_ids, token_correction, added_messages, .. } = *self;
        *self = Self::from_snapshot(snapshot);
        self.generated_ids = generated_ids;
        self.token_correction = token_correction;
        self.added_messages = added_messages;
        if has_summary_of_removed {
            self.omitted = OmittedHistory::default();
        }
        Some(content)
    }

    /// Adds a user message.
    ///
    /// # Errors
    ///
    /// - [`ConversationError::MissingResult`] if a call is pending.
    /// - [`ConversationError::MessageTooLong`] beyond [`MAX_BYTES`].
    pub fn push_user(&mut self, content: impl Into<Content>) -> Result<(), ConversationError> {
        self.ensure_no_pending()?;
        let content = content.into();
        let bytes = content.byte_size();
        if bytes > MAX_BYTES {
            return Err(ConversationError::MessageTooLong { bytes });
        }
        self.push(Message::User(content));
        Ok(())
    }

    /// Adds a response of the model. A call without an id, or with an id that another call has,
    /// gets a new id; [`Self::pending_calls`] returns the calls with their final ids.
    ///
    /// # Errors
    ///
    /// [`ConversationError::MissingResult`] if a call is pending.
    pub fn push_assistant(
        &mut self,
        mut message: AssistantMessage,
    ) -> Result<(), ConversationError> {
        self.ensure_no_pending()?;
        for part in &mut message.parts {
            let PartContent::ToolCall(call) = &mut part.content else { continue };
            if !call.id.is_empty() && self.call_ids.insert(call.id.clone()) {
                continue;
            }
            if !call.id.is_empty() {
                // The provider's block would repeat an id that belongs to another call.
                part.provider_block = None;
            }
            call.id = loop {
                self.generated_ids += 1;
                let id = format!("call_{}", self.generated_ids);
                if self.call_ids.insert(id.clone()) {
                    break id;
                }
            };
        }
        self.push(Message::Assistant(message.into()));
        Ok(())
    }

    /// Adds the results of the pending calls: one per call, in any order. The conversation stores
    /// the results in the order of the calls. If the results exceed [`MAX_BYTES`], lines of text
    /// replace images and other binary content, last block first.
    ///
    /// # Errors
    ///
    /// - [`ConversationError::MissingResult`] if a pending call has no result.
    /// - [`ConversationError::UnknownCall`] if a result belongs to no pending call.
    pub fn push_tool_results(
        &mut self,
        mut results: Vec<ToolResult>,
    ) -> Result<(), ConversationError> {
        let mut ordered = Vec::with_capacity(results.len());
        for call in self.pending_calls() {
            let at = results.iter().position(|result| result.id == call.id);
            let Some(at) = at else {
                return Err(ConversationError::MissingResult {
                    id: call.id.clone(),
                    tool: call.name.clone(),
                });
            };
            ordered.push(results.swap_remove(at));
        }
        if let Some(ToolResult { id, .. }) = results.first() {
            return Err(ConversationError::UnknownCall { id: id.clone() });
        }
        if !ordered.is_empty() {
            limit_media(&mut ordered);
            self.push(Message::ToolResults(ordered.into()));
        }
        Ok(())
    }

    /// Returns the calls of the last response that have no results yet.
    pub fn pending_calls(&self) -> impl Iterator<Item = &ToolCall> {
        let last = match self.messages.last() {
            Some(Message::Assistant(assistant)) => Some(&**assistant),
            Some(Message::User(_) | Message::ToolResults(_)) | None => None,
        };
        last.into_iter().flat_map(AssistantMessage::calls)
    }

    /// Adds an error result with this reason for each pending call, so that the conversation can
    /// continue after an interruption.
    pub fn fail_pending(&mut self, reason: &str) {
        let closed: Vec<ToolResult> = self
            .pending_calls()
            .map(|call| ToolResult {
                id: call.id.clone(),
                name: call.name.clone(),
                content: reason.into(),
                is_error: true,
            })
            .collect();
        if !closed.is_empty() {
            self.push(Message::ToolResults(closed.into()));
        }
    }

    fn push(&mut self, message: Message) {
        self.bytes += message.byte_size();
        self.added_messages += 1;
        self.messages.push(message);
        while self.messages.len() > MAX_MESSAGES || self.bytes > MAX_BYTES {
            let Some(oldest) = self.next_evicted() else { break };
            self.omitted.evict(&oldest);
            for message in self.messages.drain(oldest) {
                self.bytes -= message.byte_size();
                if let Message::Assistant(assistant) = &message {
                    for call in assistant.calls() {
                        self.call_ids.remove(&call.id);
                    }
                }
            }
        }
    }

    /// Returns the range to evict next: the oldest exchange, or the oldest iteration of the last
    /// exchange.
    fn next_evicted(&self) -> Option<Range<usize>> {
        let mut later = self.messages.iter().skip(1);
        if let Some(at) = later.position(|message| matches!(message, Message::User(_))) {
            return Some(0..at + 1);
        }
        let mut starts = (0..self.messages.len()).filter(|at| {
            let before = at.checked_sub(1).map(|before| &self.messages[before]);
            message::starts_iteration(before, &self.messages[*at])
        });
        Some(starts.next()?..starts.next()?)
    }

    fn ensure_no_pending(&self) -> Result<(), ConversationError> {
        match self.pending_calls().next() {
            Some(call) => Err(ConversationError::MissingResult {
                id: call.id.clone(),
                tool: call.name.clone(),
            }),
            None => Ok(()),
        }
    }
}

/// Replaces media by text, last block first, until the results do not exceed [`MAX_BYTES`]. A
/// medium that is not larger than its text stays.
fn limit_media(results: &mut [ToolResult]) {
    let mut bytes: usize = results.iter().map(|result| result.content.byte_size()).sum();
    for result in results.iter_mut().rev() {
        if bytes <= MAX_BYTES {
            return;
        }
        if !result.content.has_media() {
            continue;
        }
        let mut blocks = result.content.blocks().to_vec();
        for block in blocks.iter_mut().rev().filter(|block| block.media().is_some()) {
            if bytes <= MAX_BYTES {
                break;
            }
            let reason = format!("the results have more than {MAX_BYTES} bytes");
            let line = ContentBlock::from(block.to_text_with_reason(&reason));
            let Some(saved_bytes) = block.byte_size().checked_sub(line.byte_size()) else {
                continue;
            };
            bytes = bytes.saturating_sub(saved_bytes);
            *block = line;
        }
        result.content = blocks.into();
    }
}

#[cfg(test)]
mod tests;
