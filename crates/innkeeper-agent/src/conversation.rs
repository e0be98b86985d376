//! What was said between a person, a model and the tools, in an order that every provider takes.
//!
//! Every call has exactly one result, and the results of one answer stand directly behind it: there
//! is no way to put a [`Conversation`] together in which a call or a result is alone.

mod budget;
mod message;

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

pub use budget::{Budget, tokens};
pub use message::{Answer, Message, Native, Part, Said, ToolCall, ToolResult};

/// The most messages that are kept. No model reads as many.
pub const MESSAGES: usize = 10_000;

/// The most bytes that the messages which are kept say together: sixteen times what the largest models
/// read at once.
pub const BYTES: usize = 64 << 20;

/// See the [module](self).
///
/// It keeps at most [`MESSAGES`] and [`BYTES`]: of more, the oldest exchanges go, and if there is only
/// one, its oldest steps. The last question and the newest step behind it stay in any case. A step is
/// an answer, those it was gone on with after a pause, and the results of their calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    messages: Vec<Message>,
    /// What the messages say together.
    bytes: usize,
    /// Ids of calls that are taken, so that none stands for two calls.
    ids: HashSet<String>,
    minted: usize,
}

/// What was said out of turn, or at too great a length. The conversation is as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutOfTurn {
    /// Calls wait for their results.
    #[error("the call `{id}` of `{tool}` has no result yet: give it one, or close the open calls")]
    OpenCall {
        /// The first call without a result.
        id: String,
        /// Its tool.
        tool: String,
    },
    /// Results that are not those of the open calls, one each.
    #[error("a result for the call `{id}`, which waits for none")]
    NoSuchCall {
        /// The id of the result.
        id: String,
    },
    /// What the person says is longer than all that is kept.
    #[error("the message has {bytes} bytes, {BYTES} are the limit: shorten it")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
}

impl Conversation {
    /// Nothing was said yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What was said, in its order.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Adds what the person says.
    ///
    /// # Errors
    ///
    /// While calls are open, or it is longer than [`BYTES`].
    pub fn user(&mut self, text: impl Into<Arc<str>>) -> Result<(), OutOfTurn> {
        self.nothing_open()?;
        let text = text.into();
        if text.len() > BYTES {
            return Err(OutOfTurn::TooLong { bytes: text.len() });
        }
        self.push(Message::User(text));
        Ok(())
    }

    /// Adds what the model answered. A call without an id, or with one that is taken, gets an id of
    /// its own: the ids are as they are found in [`Self::open_calls`] afterwards.
    ///
    /// # Errors
    ///
    /// While calls are open.
    pub fn answer(&mut self, mut answer: Answer) -> Result<(), OutOfTurn> {
        self.nothing_open()?;
        for part in &mut answer.parts {
            let Said::Call(call) = &mut part.said else { continue };
            if !call.id.is_empty() && self.ids.insert(call.id.clone()) {
                continue;
            }
            if !call.id.is_empty() {
                // Its own words would repeat an id that stands for another call.
                part.native = None;
            }
            call.id = loop {
                self.minted += 1;
                let id = format!("call_{}", self.minted);
                if self.ids.insert(id.clone()) {
                    break id;
                }
            };
        }
        self.push(Message::Answer(answer.into()));
        Ok(())
    }

    /// Adds the results of the open calls: one for each, in any order; they are kept in the order of
    /// the calls.
    ///
    /// # Errors
    ///
    /// One is missing, or is for no open call.
    pub fn results(&mut self, mut results: Vec<ToolResult>) -> Result<(), OutOfTurn> {
        let mut ordered = Vec::with_capacity(results.len());
        for call in self.open_calls() {
            let at = results.iter().position(|result| result.id == call.id);
            let Some(at) = at else {
                return Err(OutOfTurn::OpenCall { id: call.id.clone(), tool: call.name.clone() });
            };
            ordered.push(results.swap_remove(at));
        }
        if let Some(ToolResult { id, .. }) = results.first() {
            return Err(OutOfTurn::NoSuchCall { id: id.clone() });
        }
        if !ordered.is_empty() {
            self.push(Message::Results(ordered.into()));
        }
        Ok(())
    }

    /// The calls of the last answer, while they have no results.
    pub fn open_calls(&self) -> impl Iterator<Item = &ToolCall> {
        let last = match self.messages.last() {
            Some(Message::Answer(answer)) => Some(&**answer),
            Some(Message::User(_) | Message::Results(_)) | None => None,
        };
        last.into_iter().flat_map(Answer::calls)
    }

    /// Gives each open call a result that says why it has none. Whatever was interrupted, the
    /// conversation can go on afterwards.
    pub fn close(&mut self, why: &str) {
        let closed: Vec<ToolResult> = self
            .open_calls()
            .map(|call| ToolResult {
                id: call.id.clone(),
                name: call.name.clone(),
                text: why.to_owned(),
                is_error: true,
            })
            .collect();
        if !closed.is_empty() {
            self.push(Message::Results(closed.into()));
        }
    }

    fn push(&mut self, message: Message) {
        self.bytes += message.bytes();
        self.messages.push(message);
        while self.messages.len() > MESSAGES || self.bytes > BYTES {
            let Some(oldest) = self.oldest() else { break };
            for message in self.messages.drain(oldest) {
                self.bytes -= message.bytes();
                if let Message::Answer(answer) = &message {
                    for call in answer.calls() {
                        self.ids.remove(&call.id);
                    }
                }
            }
        }
    }

    /// What goes first: an exchange that is not the last, or a step of it that is not the newest.
    fn oldest(&self) -> Option<Range<usize>> {
        let later = |message: &Message| matches!(message, Message::User(_));
        if let Some(at) = self.messages.iter().skip(1).position(later) {
            return Some(0..at + 1);
        }
        let mut steps = (0..self.messages.len()).filter(|at| {
            let before = at.checked_sub(1).map(|before| &self.messages[before]);
            message::opens_step(before, &self.messages[*at])
        });
        Some(steps.next()?..steps.next()?)
    }

    fn nothing_open(&self) -> Result<(), OutOfTurn> {
        match self.open_calls().next() {
            Some(call) => Err(OutOfTurn::OpenCall { id: call.id.clone(), tool: call.name.clone() }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
