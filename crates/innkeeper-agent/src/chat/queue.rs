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
    segments: Lane<TextSegment>,
    executions: Lane<ToolExecution>,
    /// The number of the last queued item; the numbers order both kinds.
    last_stamp: u64,
    /// Whether the application last waited for something other than text.
    waits_for_executions: bool,
    results: ResultLines,
    skipped_calls: usize,
    end_waker: Option<Waker>,
    capacity_waker: Option<Waker>,
}

/// The queued items of one kind.
#[derive(Debug)]
struct Lane<T> {
    items: VecDeque<QueuedItem<T>>,
    bytes: usize,
    /// Set after the last item.
    end: Option<StreamEnd>,
    /// Whether the application wants no items of this kind.
    is_dropped: bool,
    waker: Option<Waker>,
}

#[derive(Debug)]
struct QueuedItem<T> {
    stamp: u64,
    bytes: usize,
    item: T,
}

impl<T> Default for Lane<T> {
    fn default() -> Self {
        Self { items: VecDeque::new(), bytes: 0, end: None, is_dropped: false, waker: None }
    }
}

impl<T> Lane<T> {
    fn push(&mut self, queued: QueuedItem<T>) {
        self.bytes += queued.bytes;
        self.items.push_back(queued);
        wake(&mut self.waker);
    }

    fn pop(&mut self) -> Option<T> {
        let queued = self.items.pop_front()?;
        self.bytes -= queued.bytes;
        Some(queued.item)
    }

    fn finish(&mut self, end: StreamEnd) {
        self.end.get_or_insert(end);
        wake(&mut self.waker);
    }

    /// Refuses items from now on, and returns those that are queued.
    fn close(&mut self) -> VecDeque<QueuedItem<T>> {
        self.is_dropped = true;
        self.bytes = 0;
        std::mem::take(&mut self.items)
    }

    fn first_stamp(&self) -> Option<u64> {
        self.items.front().map(|queued| queued.stamp)
    }
}

/// The result lines of the message, by the index of their call.
#[derive(Debug, Default)]
struct ResultLines {
    lines: BTreeMap<usize, String>,
    bytes: usize,
}

impl ResultLines {
    /// Returns the number of bytes that the message can still hold.
    fn remaining_bytes(&self) -> usize {
        tool_results::MAX_MESSAGE_BYTES.saturating_sub(self.bytes)
    }

    fn add(&mut self, call_index: usize, line: tool_results::ResultLine) {
        let line = line.into_string_within(self.remaining_bytes());
        self.bytes += line.len();
        self.lines.insert(call_index, line);
    }
}

impl QueueState {
    fn next_stamp(&mut self) -> u64 {
        self.last_stamp += 1;
        self.last_stamp
    }

    fn set_waits_for_executions(&mut self, tools: bool) {
        self.waits_for_executions = tools;
        wake(&mut self.capacity_waker);
    }

    fn poll_segment(&mut self, context: &Context<'_>) -> Poll<Option<TextSegment>> {
        let segment = self.segments.pop();
        if segment.is_none() && self.segments.end.is_some() {
            return Poll::Ready(None);
        }
        self.set_waits_for_executions(false);
        match segment {
            Some(segment) => Poll::Ready(Some(segment)),
            None => register_waker(&mut self.segments.waker, context),
        }
    }

    fn poll_execution(&mut self, context: &Context<'_>) -> Poll<Option<ToolExecution>> {
        let execution = self.executions.pop();
        if execution.is_some() || self.executions.end.is_some() {
            return Poll::Ready(execution);
        }
        self.set_waits_for_executions(true);
        register_waker(&mut self.executions.waker, context)
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
        if state.segments.is_dropped || state.segments.bytes < TEXT_BUFFER_BYTES {
            Poll::Ready(Ok(()))
        } else if !state.waits_for_executions {
            register_waker(&mut state.capacity_waker, context)
        } else if state.segments.bytes < MAX_UNREAD_BYTES {
            Poll::Ready(Ok(()))
        } else {
            Poll::Ready(Err(StreamEnd::BufferFull))
        }
    }

    pub(super) fn push_segment(&self, token: TextSegment) {
        let mut state = self.state();
        if !state.segments.is_dropped {
            let stamp = state.next_stamp();
            let bytes = token.memory_bytes();
            state.segments.push(QueuedItem { stamp, bytes, item: token });
        }
    }

    pub(super) fn push_execution(&self, execution: ToolExecution) {
        let capacity = self.state().results.remaining_bytes();
        // Formatting a long result takes time, so the lock is released here.
        let line = tool_results::ResultLine::new(&execution, capacity);
        let mut state = self.state();
        state.results.add(execution.index, line);
        if !state.executions.is_dropped {
            let stamp = state.next_stamp();
            let bytes = execution.memory_bytes();
            state.executions.push(QueuedItem { stamp, bytes, item: execution });
        }
    }

    /// Returns the number of bytes of unread executions.
    pub(super) fn unread_execution_bytes(&self) -> usize {
        self.state().executions.bytes
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
        self.state().segments.finish(how);
    }

    /// Marks the end of the executions.
    pub(super) fn finish_executions(&self) {
        let mut state = self.state();
        state.executions.finish(StreamEnd::Complete);
        wake(&mut state.end_waker);
    }

    pub(super) fn stream_end(&self) -> Option<StreamEnd> {
        self.state().segments.end
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
        let tool_first = match (state.segments.first_stamp(), state.executions.first_stamp()) {
            (Some(token), Some(tool)) => tool < token,
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
        if state.executions.end.is_some() {
            return Poll::Ready(());
        }
        state.set_waits_for_executions(true);
        register_waker(&mut state.end_waker, context)
    }

    /// Returns the results so far as a message; `None` without results.
    pub(super) fn results_message(&self) -> Option<String> {
        tool_results::results_message(self.state().results.lines.values())
    }

    /// Discards text segments from now on.
    pub(super) fn drop_segments(&self) {
        let mut state = self.state();
        let segments = state.segments.close();
        wake(&mut state.capacity_waker);
        drop(state);
        drop(segments);
    }

    /// Discards executions from now on.
    pub(super) fn drop_executions(&self) {
        // Outside of the lock, because the executions may be large.
        let executions = self.state().executions.close();
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
