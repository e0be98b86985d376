//! Event log of a chat: one JSON object per line.
//!
//! The log never delays a response: a separate thread writes the lines, and lines that exceed the
//! queue are dropped and counted. The log contains no text of models or tools, except for the first
//! characters of each text segment if [`LogConfig::token_classifications`] is set.
//!
//! [`LogConfig::token_classifications`]: super::LogConfig::token_classifications

mod analyzer;
mod redacted_error;
mod writer;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::{ChatError, LogConfig};
use crate::timing::Timing;
use crate::tools::{ToolError, ToolOutput};
use writer::WriterCommand;

pub use analyzer::{
    LogAnalyzer, LogReadError, MAX_LINE_BYTES, MAX_TIMELINE_ENTRIES, TimelineEntry, ToolStats,
};

/// The type of a log entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LogEventKind {
    /// The addition of the tools to a system prompt starts.
    PromptEnhancementStart,
    /// The tools were added to a system prompt.
    PromptEnhancementComplete,
    /// A call of an available tool starts in the text.
    ToolDetectionStart,
    /// The call is complete.
    ToolDetectionComplete,
    /// The execution of a tool starts.
    ToolExecutionStart,
    /// The tool returned a result.
    ToolExecutionComplete,
    /// The tool returned no result, or reported a failure.
    ToolExecutionError,
    /// The reading of a response starts.
    ContinuationRequest,
    /// The text of the response has ended.
    ContinuationResponse,
    /// The duration of an operation.
    PerformanceMetric,
    /// The class of a text segment.
    TokenClassification,
}

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogEntry {
    /// The time in milliseconds since the Unix epoch.
    pub timestamp: u64,
    /// The type of the event.
    pub event_type: LogEventKind,
    /// The details of the event.
    pub details: Value,
    /// The duration in milliseconds, if durations are logged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
}

/// Maximum number of queued entries. One response needs fewer while a disk is slow.
const MAX_QUEUED_ENTRIES: usize = 4096;

/// Maximum number of characters of a text segment in an entry.
const MAX_SHOWN_CHARS: usize = 200;

const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The start of an operation; `None` without a log.
#[derive(Clone, Copy, Debug)]
pub(super) struct StartTime(Option<Instant>);

/// Queues entries for the writer thread. Clones share the file, which is closed with the last
/// clone.
#[derive(Clone, Debug)]
pub(super) struct LogWriter(Option<Arc<OpenLog>>);

#[derive(Debug)]
struct OpenLog {
    timing: Timing,
    sender: mpsc::Sender<WriterCommand>,
    token_classifications: bool,
    performance_metrics: bool,
    dropped_entries: AtomicUsize,
}

impl LogWriter {
    pub(super) fn open(recording: &LogConfig, timing: Timing) -> Result<Self, ChatError> {
        let Some(path) = &recording.log_path else { return Ok(Self(None)) };
        let (sender, lines) = mpsc::channel(MAX_QUEUED_ENTRIES);
        writer::start(path, lines)
            .map_err(|source| ChatError::Log { path: path.clone(), source })?;
        Ok(Self(Some(Arc::new(OpenLog {
            timing,
            sender,
            token_classifications: recording.token_classifications,
            performance_metrics: recording.performance_metrics,
            dropped_entries: AtomicUsize::new(0),
        }))))
    }

    pub(super) fn log(&self, kind: LogEventKind, details: impl FnOnce() -> Value) {
        if let Some(open) = &self.0 {
            open.send(kind, details(), None);
        }
    }

    pub(super) fn log_start(&self, kind: LogEventKind) -> StartTime {
        self.log(kind, || json!({}));
        StartTime(self.0.as_ref().map(|open| open.timing.now()))
    }

    /// Logs the end of an operation.
    pub(super) fn log_complete(
        &self,
        kind: LogEventKind,
        start_time: StartTime,
        details: impl FnOnce() -> Value,
    ) {
        if let Some(open) = &self.0 {
            open.send(kind, details(), open.elapsed(start_time));
        }
    }

    /// Logs the duration of an operation, without an event of its own.
    pub(super) fn log_metric(&self, subject: &str, start_time: StartTime) {
        if let Some(open) = self.0.as_ref().filter(|open| open.performance_metrics) {
            let elapsed = open.elapsed(start_time);
            open.send(LogEventKind::PerformanceMetric, json!({"of": subject}), elapsed);
        }
    }

    pub(super) fn log_execution(
        &self,
        call: usize,
        tool: &str,
        outcome: Result<&ToolOutput, &ToolError>,
        elapsed: Duration,
        cached: bool,
    ) {
        let Some(open) = &self.0 else { return };
        let (kind, details) = match outcome {
            Ok(output) => {
                let bytes = output.raw().get().len();
                let details = json!({"tool": tool, "call": call, "bytes": bytes, "cached": cached});
                let is_error = output.is_error();
                let kind = if is_error {
                    LogEventKind::ToolExecutionError
                } else {
                    LogEventKind::ToolExecutionComplete
                };
                (kind, details)
            }
            Err(error) => {
                let error: String =
                    redacted_error::describe(error).chars().take(MAX_SHOWN_CHARS).collect();
                (
                    LogEventKind::ToolExecutionError,
                    json!({"tool": tool, "call": call, "error": error}),
                )
            }
        };
        open.send(kind, details, Some(elapsed));
    }

    pub(super) fn log_classification(&self, class: &'static str, text: &str) {
        if let Some(open) = self.0.as_ref().filter(|open| open.token_classifications) {
            let excerpt: String = text.chars().take(MAX_SHOWN_CHARS).collect();
            let details = json!({"class": class, "bytes": text.len(), "text": excerpt});
            open.send(LogEventKind::TokenClassification, details, None);
        }
    }

    pub(super) async fn flush(&self) {
        let Some(open) = &self.0 else { return };
        let flushed = async {
            let (done, flushed) = oneshot::channel();
            if open.sender.send(WriterCommand::Flush(done)).await.is_ok() {
                // A writer that has stopped has no more entries to write.
                drop(flushed.await);
            }
        };
        // A slow disk must not delay the response.
        open.timing.timeout(FLUSH_TIMEOUT, flushed).await.unwrap_or_default();
    }
}

impl OpenLog {
    fn elapsed(&self, start_time: StartTime) -> Option<Duration> {
        start_time.0.map(|start| self.timing.elapsed(start))
    }

    fn send(&self, kind: LogEventKind, mut details: Value, took: Option<Duration>) {
        let dropped = self.dropped_entries.load(Ordering::Relaxed);
        if dropped > 0 {
            details["lines_left_out"] = json!(dropped);
        }
        let since = self.timing.system_time().duration_since(UNIX_EPOCH).unwrap_or_default();
        let line = LogEntry {
            timestamp: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            event_type: kind,
            details,
            duration_ms: took.filter(|_| self.performance_metrics).map(milliseconds),
        };
        if self.sender.try_send(WriterCommand::Write(Box::new(line))).is_err() {
            self.dropped_entries.fetch_add(1, Ordering::Relaxed);
        } else if dropped > 0 {
            self.dropped_entries.fetch_sub(dropped, Ordering::Relaxed);
        }
    }
}

/// Returns milliseconds with three decimals.
fn milliseconds(span: Duration) -> f64 {
    (span.as_secs_f64() * 1e6).round() / 1e3
}

#[cfg(test)]
mod tests;
