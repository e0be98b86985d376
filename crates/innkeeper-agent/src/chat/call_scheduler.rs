//! Passes the calls of one response to the executor, and bounds the memory of waiting calls.

use innkeeper_toolcall::ResolvedCall;
use serde_json::json;

use super::event_log::{LogEventKind, LogWriter};
use super::foreign_texts::ForeignTexts;
use super::queue::MAX_UNREAD_BYTES;
use crate::executor::{CallQueue, MAX_CALLS_PER_RESPONSE, QueueEvent, QueuedCall, ToolExecution};
use crate::tools::ToolError;

/// Queued and running calls of one response.
#[derive(Debug)]
pub(super) struct CallScheduler {
    calls: CallQueue,
    log_writer: LogWriter,
    /// The results go here, because a model may quote them.
    foreign_texts: ForeignTexts,
    queued_bytes: usize,
    accepted_calls: usize,
}

impl CallScheduler {
    pub(super) fn new(
        calls: CallQueue,
        log_writer: LogWriter,
        foreign_texts: ForeignTexts,
    ) -> Self {
        Self { calls, log_writer, foreign_texts, queued_bytes: 0, accepted_calls: 0 }
    }

    pub(super) fn log_writer(&self) -> &LogWriter {
        &self.log_writer
    }

    /// Whether another call may be queued.
    pub(super) fn has_capacity(&self) -> bool {
        self.accepted_calls < MAX_CALLS_PER_RESPONSE
    }

    /// Queues a call; returns the call with an error if too many bytes are queued.
    pub(super) fn enqueue(&mut self, index: usize, call: ResolvedCall) -> Option<ToolExecution> {
        self.accepted_calls += 1;
        let queued = QueuedCall::new(index, call);
        let memory_bytes = queued.memory_bytes();
        if self.queued_bytes + memory_bytes > MAX_UNREAD_BYTES {
            return Some(refuse_for_full_buffer(queued));
        }
        self.queued_bytes += memory_bytes;
        self.calls.push(queued);
        None
    }

    /// Starts approved calls up to the limits, with `untaken_bytes` bytes of unread results.
    pub(super) fn start_next(&mut self, untaken_bytes: usize) -> Option<ToolExecution> {
        while let Some(queued) = self.calls.take_ready() {
            self.queued_bytes -= queued.memory_bytes();
            if untaken_bytes >= MAX_UNREAD_BYTES {
                return Some(refuse_for_full_buffer(queued));
            }
            self.log_writer.log(
                LogEventKind::ToolExecutionStart,
                || json!({"tool": queued.call.name, "call": queued.index}),
            );
            self.calls.start(queued);
        }
        None
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns the next call that ends; `None` after a change without an end, or if no call is
    /// running or undecided. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<ToolExecution> {
        let execution = match self.calls.next().await? {
            QueueEvent::Approved | QueueEvent::Progress { .. } => return None,
            QueueEvent::Refused { execution, queued_bytes } => {
                self.queued_bytes -= queued_bytes;
                execution
            }
            QueueEvent::Finished(execution) => execution,
        };
        let ToolExecution { index, tool, outcome, elapsed, cached, .. } = &execution;
        if let Ok(output) = outcome {
            self.foreign_texts.add_result(output);
        }
        let outcome = outcome.as_deref().map_err(|error| &**error);
        self.log_writer.log_execution(*index, tool, outcome, *elapsed, *cached);
        Some(execution)
    }
}

fn refuse_for_full_buffer(queued: QueuedCall) -> ToolExecution {
    let tool = queued.call.name.clone();
    let limit = MAX_UNREAD_BYTES;
    CallQueue::refuse(queued, ToolError::BufferFull { tool, limit })
}
