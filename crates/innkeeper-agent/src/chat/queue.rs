//! Queues between the task that reads a response and the application.
//!
//! The application takes text segments and executions in any order, or only one kind, without a
//! deadlock: the task stops reading when too much text is unread, but continues while the
//! application waits for executions only.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::segment::TextSegment;
use super::tool_results;
use crate::executor::ToolExecution;

/// Number of bytes of unread text at which the task stops reading. More would only cost memory: a
/// model writes for minutes at this size.
pub const TEXT_BUFFER_BYTES: usize = 1 << 20;

/// Maximum number of bytes of unread text while the application takes only executions. The same
/// limit applies to queued calls and unread results. No response of a model comes near this size.
pub const MAX_UNREAD_BYTES: usize = 64 << 20;

/// The reason why the reading of a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// The model's stream ended.
    Complete,
    /// [`MAX_UNREAD_BYTES`] bytes of text were unread while the application took only executions;
    /// the rest of the stream was not read.
    BufferFull,
    /// The stream or the reading task panicked.
    Panicked,
}

/// The queues of one response. See the [module](self).
#[derive(Debug, Default)]
pub(super) struct ResponseQueue(Mutex<QueueState>);

#[derive(Debug, Default)]
struct QueueState {
    segments: VecDeque<(u64, TextSegment)>,
    segment_bytes: usize,
    executions: VecDeque<(u64, ToolExecution)>,
    execution_bytes: usize,
    /// The number of the last queued item; the numbers order both kinds.
    last_stamp: u64,
    /// Set after the last text segment.
    text_end: Option<StreamEnd>,
    /// Set after the last execution.
    executions_ended: bool,
    segments_dropped: bool,
    executions_dropped: bool,
    /// Whether the application last waited for something other than text.
    waits_for_executions: bool,
    /// The result lines of the message, by the index of their call.
    result_lines: BTreeMap<usize, String>,
    result_line_bytes: usize,
    skipped_calls: usize,
    segment_waker: Option<Waker>,
    execution_waker: Option<Waker>,
    end_waker: Option<Waker>,
    capacity_waker: Option<Waker>,
}

impl QueueState {
    fn next_stamp(&mut self) -> u64 {
        self.last_stamp += 1;
        self.last_stamp
    }

    /// Returns the number of bytes that the message can still hold.
    fn remaining_message_bytes(&self) -> usize {
        tool_results::MAX_MESSAGE_BYTES.saturating_sub(self.result_line_bytes)
    }

    fn set_waits_for_executions(&mut self, tools: bool) {
        self.waits_for_executions = tools;
        wake(&mut self.capacity_waker);
    }

    fn poll_segment(&mut self, context: &Context<'_>) -> Poll<Option<TextSegment>> {
        if let Some((_, token)) = self.segments.pop_front() {
            self.segment_bytes -= token.memory_bytes();
            self.set_waits_for_executions(false);
            return Poll::Ready(Some(token));
        }
        if self.text_end.is_some() {
            return Poll::Ready(None);
        }
        self.set_waits_for_executions(false);
        register_waker(&mut self.segment_waker, context)
    }

    fn poll_execution(&mut self, context: &Context<'_>) -> Poll<Option<ToolExecution>> {
        if let Some((_, execution)) = self.executions.pop_front() {
            self.execution_bytes -= execution.memory_bytes();
            return Poll::Ready(Some(execution));
        }
        if self.executions_ended {
            return Poll::Ready(None);
        }
        self.set_waits_for_executions(true);
        register_waker(&mut self.execution_waker, context)
    }
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

fn register_waker<T>(slot: &mut Option<Waker>, context: &Context<'_>) -> Poll<T> {
    *slot = Some(context.waker().clone());
    Poll::Pending
}

impl ResponseQueue {
    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ready when the task may read more text; an error if the task must stop for good.
    pub(super) fn poll_capacity(&self, context: &Context<'_>) -> Poll<Result<(), StreamEnd>> {
        let mut state = self.state();
        if state.segments_dropped || state.segment_bytes < TEXT_BUFFER_BYTES {
            Poll::Ready(Ok(()))
        } else if !state.waits_for_executions {
            register_waker(&mut state.capacity_waker, context)
        } else if state.segment_bytes < MAX_UNREAD_BYTES {
            Poll::Ready(Ok(()))
        } else {
            Poll::Ready(Err(StreamEnd::BufferFull))
        }
    }

    pub(super) fn push_segment(&self, token: TextSegment) {
        let mut state = self.state();
        if state.segments_dropped {
            return;
        }
        state.segment_bytes += token.memory_bytes();
        let stamp = state.next_stamp();
        state.segments.push_back((stamp, token));
        wake(&mut state.segment_waker);
    }

    pub(super) fn push_execution(&self, execution: ToolExecution) {
        let capacity = self.state().remaining_message_bytes();
        // Formatting a long result takes time, so the lock is released here.
        let line = tool_results::ResultLine::new(&execution, capacity);
        let mut state = self.state();
        let line = line.into_string_within(state.remaining_message_bytes());
        state.result_line_bytes += line.len();
        state.result_lines.insert(execution.index, line);
        if state.executions_dropped {
            return;
        }
        state.execution_bytes += execution.memory_bytes();
        let stamp = state.next_stamp();
        state.executions.push_back((stamp, execution));
        wake(&mut state.execution_waker);
    }

    /// Returns the number of bytes of unread executions.
    pub(super) fn unread_execution_bytes(&self) -> usize {
        self.state().execution_bytes
    }

    /// Counts a call that was not run after too many iterations.
    pub(super) fn skip_call(&self) {
        self.state().skipped_calls += 1;
    }

    pub(super) fn skipped_calls(&self) -> usize {
        self.state().skipped_calls
    }

    /// Marks the end of the text segments.
    pub(super) fn finish_text(&self, how: StreamEnd) {
        let mut state = self.state();
        state.text_end.get_or_insert(how);
        wake(&mut state.segment_waker);
    }

    /// Marks the end of the executions.
    pub(super) fn finish_executions(&self) {
        let mut state = self.state();
        state.executions_ended = true;
        wake(&mut state.execution_waker);
        wake(&mut state.end_waker);
    }

    pub(super) fn stream_end(&self) -> Option<StreamEnd> {
        self.state().text_end
    }

    pub(super) fn poll_segment(&self, context: &Context<'_>) -> Poll<Option<TextSegment>> {
        self.state().poll_segment(context)
    }

    pub(super) fn poll_execution(&self, context: &Context<'_>) -> Poll<Option<ToolExecution>> {
        self.state().poll_execution(context)
    }

    /// Returns the item that was queued first; `None` after both kinds have ended.
    pub(super) fn poll_item(
        &self,
        context: &Context<'_>,
    ) -> Poll<Option<Result<TextSegment, ToolExecution>>> {
        let mut state = self.state();
        let tool_first = match (state.segments.front(), state.executions.front()) {
            (Some((token, _)), Some((tool, _))) => tool < token,
            (Some(_), None) => false,
            (None, Some(_)) => true,
            (None, None) => {
                let tools = state.poll_execution(context).is_ready();
                // Text comes last: waiting for text lets the task read on.
                let text = state.poll_segment(context).is_ready();
                return if tools && text { Poll::Ready(None) } else { Poll::Pending };
            }
        };
        if tool_first {
            state.poll_execution(context).map(|execution| execution.map(Err))
        } else {
            state.poll_segment(context).map(|token| token.map(Ok))
        }
    }

    /// Ready when every call has a result, taken or not.
    pub(super) fn poll_finished(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.executions_ended {
            return Poll::Ready(());
        }
        state.set_waits_for_executions(true);
        register_waker(&mut state.end_waker, context)
    }

    /// Returns the results so far as a message; `None` without results.
    pub(super) fn results_message(&self) -> Option<String> {
        let state = self.state();
        tool_results::results_message(state.result_lines.values())
    }

    /// Discards text segments from now on.
    pub(super) fn drop_segments(&self) {
        let mut state = self.state();
        state.segments_dropped = true;
        state.segment_bytes = 0;
        let segments = std::mem::take(&mut state.segments);
        wake(&mut state.capacity_waker);
        drop(state);
        drop(segments);
    }

    /// Discards executions from now on.
    pub(super) fn drop_executions(&self) {
        let mut state = self.state();
        state.executions_dropped = true;
        state.execution_bytes = 0;
        let executions = std::mem::take(&mut state.executions);
        drop(state);
        drop(executions);
    }
}

/// Ends both queues when the reading task ends for any reason, including a panic, so that no
/// receiver waits for ever.
#[derive(Debug)]
pub(super) struct CloseOnDrop(pub(super) Arc<ResponseQueue>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.finish_text(StreamEnd::Panicked);
        self.0.finish_executions();
    }
}
