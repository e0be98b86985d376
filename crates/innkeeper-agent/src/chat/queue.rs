//! What stands between the task that reads an answer and the application that takes it.
//!
//! Tokens and results are taken in any order, or one kind only, and nobody waits for ever: the
//! reading stops where too much text is untaken, but goes on while the application waits for
//! results alone.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::calls::Executed;
use super::message;
use super::token::Token;

/// How much text may wait to be taken, in bytes, before no more is read. More would only be memory:
/// a model writes for minutes at this size.
pub const ROOM: usize = 1 << 20;

/// How much text, and how much of calls and results, may wait at the very most, in bytes, where the
/// application takes the other first. No answer of a model comes near it.
pub const UNTAKEN: usize = 64 << 20;

/// How the reading of an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The model's stream came to its end.
    Whole,
    /// [`UNTAKEN`] bytes of text waited while only results were taken; the rest was not read.
    Overrun,
    /// The stream or the reading panicked.
    Broken,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Queue(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    tokens: VecDeque<(u64, Token)>,
    token_bytes: usize,
    tools: VecDeque<(u64, Executed)>,
    tool_bytes: usize,
    /// Counts what was put in, so that both kinds can be taken in one order.
    count: u64,
    /// No more tokens come.
    text_ended: Option<Ended>,
    /// No more results come.
    tools_ended: bool,
    tokens_unwanted: bool,
    tools_unwanted: bool,
    /// Whether what the application waited for last is not text.
    wants_tools: bool,
    /// Results as lines of the message, by the index of their call.
    lines: BTreeMap<usize, String>,
    line_bytes: usize,
    withheld: usize,
    token_waker: Option<Waker>,
    tool_waker: Option<Waker>,
    end_waker: Option<Waker>,
    room_waker: Option<Waker>,
}

impl State {
    fn next_stamp(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// How many bytes the message has left.
    fn room(&self) -> usize {
        message::LENGTH.saturating_sub(self.line_bytes)
    }

    fn wants(&mut self, tools: bool) {
        self.wants_tools = tools;
        wake(&mut self.room_waker);
    }

    fn poll_token(&mut self, context: &Context<'_>) -> Poll<Option<Token>> {
        if let Some((_, token)) = self.tokens.pop_front() {
            self.token_bytes -= token.weight();
            self.wants(false);
            return Poll::Ready(Some(token));
        }
        if self.text_ended.is_some() {
            return Poll::Ready(None);
        }
        self.wants(false);
        wait(&mut self.token_waker, context)
    }

    fn poll_executed(&mut self, context: &Context<'_>) -> Poll<Option<Executed>> {
        if let Some((_, executed)) = self.tools.pop_front() {
            self.tool_bytes -= executed.weight();
            return Poll::Ready(Some(executed));
        }
        if self.tools_ended {
            return Poll::Ready(None);
        }
        self.wants(true);
        wait(&mut self.tool_waker, context)
    }
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

fn wait<T>(slot: &mut Option<Waker>, context: &Context<'_>) -> Poll<T> {
    *slot = Some(context.waker().clone());
    Poll::Pending
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ready when more text may be read; with the reason if none may be ever.
    pub(super) fn poll_room(&self, context: &Context<'_>) -> Poll<Result<(), Ended>> {
        let mut state = self.state();
        if state.tokens_unwanted || state.token_bytes < ROOM {
            Poll::Ready(Ok(()))
        } else if !state.wants_tools {
            wait(&mut state.room_waker, context)
        } else if state.token_bytes < UNTAKEN {
            Poll::Ready(Ok(()))
        } else {
            Poll::Ready(Err(Ended::Overrun))
        }
    }

    pub(super) fn put_token(&self, token: Token) {
        let mut state = self.state();
        if state.tokens_unwanted {
            return;
        }
        state.token_bytes += token.weight();
        let stamp = state.next_stamp();
        state.tokens.push_back((stamp, token));
        wake(&mut state.token_waker);
    }

    pub(super) fn put_executed(&self, executed: Executed) {
        let room = self.state().room();
        // A long result takes a while to write, in which the application may take what is there.
        let line = message::Line::of(&executed, room);
        let mut state = self.state();
        let line = line.within(state.room());
        state.line_bytes += line.len();
        state.lines.insert(executed.index, line);
        if state.tools_unwanted {
            return;
        }
        state.tool_bytes += executed.weight();
        let stamp = state.next_stamp();
        state.tools.push_back((stamp, executed));
        wake(&mut state.tool_waker);
    }

    /// How many bytes of results wait to be taken.
    pub(super) fn untaken_results(&self) -> usize {
        self.state().tool_bytes
    }

    /// A call was not run because there were too many rounds.
    pub(super) fn withhold(&self) {
        self.state().withheld += 1;
    }

    pub(super) fn withheld(&self) -> usize {
        self.state().withheld
    }

    /// No more tokens come.
    pub(super) fn end_text(&self, how: Ended) {
        let mut state = self.state();
        state.text_ended.get_or_insert(how);
        wake(&mut state.token_waker);
    }

    /// No more results come.
    pub(super) fn end_tools(&self) {
        let mut state = self.state();
        state.tools_ended = true;
        wake(&mut state.tool_waker);
        wake(&mut state.end_waker);
    }

    pub(super) fn ended(&self) -> Option<Ended> {
        self.state().text_ended
    }

    pub(super) fn poll_token(&self, context: &Context<'_>) -> Poll<Option<Token>> {
        self.state().poll_token(context)
    }

    pub(super) fn poll_executed(&self, context: &Context<'_>) -> Poll<Option<Executed>> {
        self.state().poll_executed(context)
    }

    /// Whichever kind came first; nothing when both have ended.
    pub(super) fn poll_either(
        &self,
        context: &Context<'_>,
    ) -> Poll<Option<Result<Token, Executed>>> {
        let mut state = self.state();
        let tool_first = match (state.tokens.front(), state.tools.front()) {
            (Some((token, _)), Some((tool, _))) => tool < token,
            (Some(_), None) => false,
            (None, Some(_)) => true,
            (None, None) => {
                let tools = state.poll_executed(context).is_ready();
                // Text is asked for last: it is what keeps the reading going.
                let text = state.poll_token(context).is_ready();
                return if tools && text { Poll::Ready(None) } else { Poll::Pending };
            }
        };
        if tool_first {
            state.poll_executed(context).map(|executed| executed.map(Err))
        } else {
            state.poll_token(context).map(|token| token.map(Ok))
        }
    }

    /// Ready when every call has its result, whoever takes them.
    pub(super) fn poll_end(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.tools_ended {
            return Poll::Ready(());
        }
        state.wants(true);
        wait(&mut state.end_waker, context)
    }

    /// The results so far as a message; `None` without any.
    pub(super) fn message(&self) -> Option<String> {
        let state = self.state();
        message::of(state.lines.values())
    }

    /// Nobody takes tokens any more.
    pub(super) fn leave_tokens(&self) {
        let mut state = self.state();
        state.tokens_unwanted = true;
        state.token_bytes = 0;
        let left = std::mem::take(&mut state.tokens);
        wake(&mut state.room_waker);
        drop(state);
        drop(left);
    }

    /// Nobody takes results any more.
    pub(super) fn leave_tools(&self) {
        let mut state = self.state();
        state.tools_unwanted = true;
        state.tool_bytes = 0;
        let left = std::mem::take(&mut state.tools);
        drop(state);
        drop(left);
    }
}

/// Ends both kinds when the reading ends in whatever way, so that nobody waits for a task that is
/// gone.
#[derive(Debug)]
pub(super) struct Ending(pub(super) Arc<Queue>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end_text(Ended::Broken);
        self.0.end_tools();
    }
}
