//! What a chat writes down about itself: one JSON object a line.
//!
//! Writing never holds up an answer: lines go to a thread of their own, and where it falls behind,
//! lines are left out and counted. What models and tools say stays out of the log, except for the
//! beginning of each piece of text where [`Recording::token_classifications`] asks for it.
//!
//! [`Recording::token_classifications`]: super::Recording::token_classifications

mod analyse;
mod fault;
mod writer;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use super::{ChatError, Recording};
use crate::tools::{Output, RunError};
use writer::Order;

pub use analyse::{AnalyseError, LINE, LogAnalyzer, Moment, TIMELINE, ToolStats};

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// The tools are about to be added to a system prompt.
    PromptEnhancementStart,
    /// They have been.
    PromptEnhancementComplete,
    /// A call of an offered tool has begun in the text.
    ToolDetectionStart,
    /// It is complete.
    ToolDetectionComplete,
    /// A tool is about to run.
    ToolExecutionStart,
    /// It has answered.
    ToolExecutionComplete,
    /// It has no answer, or reports a failure.
    ToolExecutionError,
    /// An answer of the model is about to be read.
    ContinuationRequest,
    /// Its text has ended.
    ContinuationResponse,
    /// How long something took.
    PerformanceMetric,
    /// What a piece of text was taken for.
    TokenClassification,
}

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// When, in milliseconds since 1970.
    pub timestamp: u64,
    /// What happened.
    pub event_type: Kind,
    /// What there is to say of it.
    pub details: Value,
    /// How long it took, in milliseconds; only where that is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
}

/// Lines that wait to be written. More than an answer has while a disk thinks.
const LINES: usize = 4096;

/// How much of a piece of text is told, in characters.
const SHOWN: usize = 200;

/// How long a flush may take.
const FLUSH: Duration = Duration::from_secs(1);

/// When something began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun(Instant);

/// Hands lines on to be written; clones share the file. It is closed with the last of them.
#[derive(Clone, Debug)]
pub(super) struct Recorder(Option<Arc<Open>>);

#[derive(Debug)]
struct Open {
    to: mpsc::Sender<Order>,
    classes: bool,
    durations: bool,
    left_out: AtomicUsize,
}

impl Recorder {
    pub(super) fn open(recording: &Recording) -> Result<Self, ChatError> {
        let Some(path) = &recording.log_path else { return Ok(Self(None)) };
        let failed = |source| ChatError::Log { path: path.clone(), source };
        let (to, lines) = mpsc::channel(LINES);
        writer::begin(path, lines).map_err(failed)?;
        Ok(Self(Some(Arc::new(Open {
            to,
            classes: recording.token_classifications,
            durations: recording.performance_metrics,
            left_out: AtomicUsize::new(0),
        }))))
    }

    pub(super) fn tell(&self, kind: Kind, details: impl FnOnce() -> Value) {
        if let Some(open) = &self.0 {
            open.send(kind, details(), None);
        }
    }

    /// Tells that something begins.
    pub(super) fn begin(&self, kind: Kind) -> Begun {
        self.tell(kind, || json!({}));
        Begun(Instant::now())
    }

    /// Tells that something has come to its end.
    pub(super) fn complete(&self, kind: Kind, begun: Begun, details: impl FnOnce() -> Value) {
        if let Some(open) = &self.0 {
            open.send(kind, details(), Some(begun.0.elapsed()));
        }
    }

    /// Tells how long something took, and nothing else.
    pub(super) fn metric(&self, of: &str, begun: Begun) {
        if let Some(open) = self.0.as_ref().filter(|open| open.durations) {
            open.send(Kind::PerformanceMetric, json!({"of": of}), Some(begun.0.elapsed()));
        }
    }

    pub(super) fn executed(
        &self,
        call: usize,
        tool: &str,
        outcome: Result<&Output, &RunError>,
        (elapsed, cached): (Duration, bool),
    ) {
        let Some(open) = &self.0 else { return };
        let (kind, details) = match outcome {
            Ok(output) => {
                let bytes = output.raw().get().len();
                let details = json!({"tool": tool, "call": call, "bytes": bytes, "cached": cached});
                let failed = output.is_error();
                let kind =
                    if failed { Kind::ToolExecutionError } else { Kind::ToolExecutionComplete };
                (kind, details)
            }
            Err(error) => {
                let error: String = fault::words(error).chars().take(SHOWN).collect();
                (Kind::ToolExecutionError, json!({"tool": tool, "call": call, "error": error}))
            }
        };
        open.send(kind, details, Some(elapsed));
    }

    pub(super) fn classified(&self, class: &'static str, text: &str) {
        if let Some(open) = self.0.as_ref().filter(|open| open.classes) {
            let shown: String = text.chars().take(SHOWN).collect();
            let details = json!({"class": class, "bytes": text.len(), "text": shown});
            open.send(Kind::TokenClassification, details, None);
        }
    }

    pub(super) async fn flush(&self) {
        let Some(open) = &self.0 else { return };
        let flushed = async {
            let (done, flushed) = oneshot::channel();
            if open.to.send(Order::Flush(done)).await.is_ok() {
                // A writer that is gone has nothing left to write.
                drop(flushed.await);
            }
        };
        // A disk that takes longer does not hold up the answer.
        drop(timeout(FLUSH, flushed).await);
    }
}

impl Open {
    fn send(&self, kind: Kind, mut details: Value, took: Option<Duration>) {
        let left_out = self.left_out.load(Ordering::Relaxed);
        if left_out > 0 {
            details["lines_left_out"] = json!(left_out);
        }
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let line = Line {
            timestamp: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            event_type: kind,
            details,
            duration_ms: took.filter(|_| self.durations).map(milliseconds),
        };
        if self.to.try_send(Order::Write(Box::new(line))).is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        } else if left_out > 0 {
            self.left_out.fetch_sub(left_out, Ordering::Relaxed);
        }
    }
}

/// With three digits behind the point.
fn milliseconds(span: Duration) -> f64 {
    (span.as_secs_f64() * 1e6).round() / 1e3
}
