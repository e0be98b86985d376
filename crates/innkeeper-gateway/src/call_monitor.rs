//! The tool calls in flight of all clients, the last finished calls, and counts per minute.
//!
//! A call costs two short locks; everything else is the work of a reader.

mod minutes;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use innkeeper_host::{ResultType, ToolResult};
use innkeeper_protocol::skim;
use serde_json::value::RawValue;
use tokio::sync::SetOnce;
use tokio::time::Instant;

use crate::error::{ErrorKind, RpcError, shown_name};
use crate::metrics::ClientTransport;
use crate::principal::Principal;

use minutes::MinuteSeries;
pub(crate) use minutes::{MAX_MINUTES, Minute};

/// Number of finished calls that are kept: some pages of a table, in less than 1 MiB.
pub(crate) const MAX_FINISHED_CALLS: usize = 500;

/// Maximum size of the name of a tool in bytes; a longer one is shortened.
const MAX_TOOL_BYTES: usize = 256;

/// Maximum number of characters of the message of a failed call.
const MAX_MESSAGE_CHARS: usize = 300;

/// How a call ended for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallEnd {
    /// The tool returned a result.
    Ok,
    /// The tool returned a result with `isError`.
    ToolError,
    /// The client got a request for input, and sends its request again.
    InputRequired,
    /// The client got an error.
    Failed(&'static str),
    /// The client cancelled the call or left.
    Cancelled,
    /// An operator cancelled the call in the console.
    CancelledByOperator,
}

impl CallEnd {
    /// Returns the name of the end.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool error",
            Self::InputRequired => "input required",
            Self::Failed(kind) => kind,
            Self::Cancelled => "cancelled",
            Self::CancelledByOperator => "cancelled by an operator",
        }
    }

    pub(crate) fn is_error(self) -> bool {
        matches!(self, Self::ToolError | Self::Failed(_))
    }

    fn is_cancelled(self) -> bool {
        matches!(self, Self::Cancelled | Self::CancelledByOperator)
    }
}

/// Who calls which tool.
#[derive(Clone, Debug)]
pub(crate) struct CallSubject {
    pub(crate) principal: Principal,
    pub(crate) server: Arc<str>,
    /// The name that the client used.
    pub(crate) tool: Box<str>,
    pub(crate) transport: ClientTransport,
}

#[derive(Debug)]
pub(crate) struct CallInFlight {
    pub(crate) number: u64,
    pub(crate) subject: CallSubject,
    pub(crate) started: Instant,
    cancelled: SetOnce<()>,
    result: ResultKind,
}

/// What the host says about the result of a call.
#[derive(Debug, Default)]
struct ResultKind(AtomicU8);

const RESULT_OK: u8 = 1;
const RESULT_TOOL_ERROR: u8 = 2;
const RESULT_INPUT_REQUIRED: u8 = 3;

/// A call that ended.
#[derive(Clone, Debug)]
pub(crate) struct FinishedCall {
    pub(crate) call: Arc<CallInFlight>,
    pub(crate) duration: Duration,
    pub(crate) end: CallEnd,
    pub(crate) message: Option<Box<str>>,
}

impl CallInFlight {
    /// Returns the time of the start, as of the clock now.
    pub(crate) fn started_at(&self) -> DateTime<Utc> {
        Utc::now() - self.started.elapsed()
    }

    /// Cancels the call. Its client gets an error.
    pub(crate) fn cancel(&self) {
        // A second call finds the cell set.
        let _ = self.cancelled.set(());
    }

    /// Records what the host says about the result.
    pub(crate) fn record_result(&self, result: &ToolResult) {
        let kind = match result.result_type() {
            ResultType::InputRequired => RESULT_INPUT_REQUIRED,
            _ if result.is_error() => RESULT_TOOL_ERROR,
            _ => RESULT_OK,
        };
        self.result.0.store(kind, Ordering::Relaxed);
    }

    /// Records that the client gets a problem of its arguments as a result.
    pub(crate) fn record_tool_error(&self) {
        self.result.0.store(RESULT_TOOL_ERROR, Ordering::Relaxed);
    }

    fn end_of_result(&self, result: &RawValue) -> CallEnd {
        match self.result.0.load(Ordering::Relaxed) {
            RESULT_OK => CallEnd::Ok,
            RESULT_TOOL_ERROR => CallEnd::ToolError,
            RESULT_INPUT_REQUIRED => CallEnd::InputRequired,
            // The call waits in the gateway for input, or an earlier request started the call.
            _ if skim::member(result.get(), "resultType") == Some("\"input_required\"") => {
                CallEnd::InputRequired
            }
            _ if skim::member(result.get(), "isError") == Some("true") => CallEnd::ToolError,
            _ => CallEnd::Ok,
        }
    }
}

#[derive(Debug)]
pub(crate) struct CallMonitor {
    table: Mutex<CallTable>,
    next: AtomicU64,
}

#[derive(Debug)]
struct CallTable {
    /// In the order of their start. As many as the limits of the transports permit.
    in_flight: BTreeMap<u64, Arc<CallInFlight>>,
    /// The newest last.
    finished: VecDeque<FinishedCall>,
    minutes: MinuteSeries,
}

impl CallMonitor {
    pub(crate) fn new() -> Self {
        let minutes = MinuteSeries::new(Instant::now());
        let table = CallTable { in_flight: BTreeMap::new(), finished: VecDeque::new(), minutes };
        Self { table: Mutex::new(table), next: AtomicU64::new(1) }
    }

    fn table(&self) -> MutexGuard<'_, CallTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a call until the result is dropped. A call without a result counts as cancelled.
    pub(crate) fn start(&self, mut subject: CallSubject) -> MonitoredCall<'_> {
        if subject.tool.len() > MAX_TOOL_BYTES {
            subject.tool = shown_name(&subject.tool).into();
        }
        let call = Arc::new(CallInFlight {
            number: self.next.fetch_add(1, Ordering::Relaxed),
            subject,
            started: Instant::now(),
            cancelled: SetOnce::new(),
            result: ResultKind::default(),
        });
        self.table().in_flight.insert(call.number, call.clone());
        MonitoredCall { monitor: self, call, end: CallEnd::Cancelled, message: None }
    }

    /// Returns the calls in flight, the oldest first.
    pub(crate) fn in_flight(&self) -> Vec<Arc<CallInFlight>> {
        self.table().in_flight.values().cloned().collect()
    }

    pub(crate) fn find(&self, number: u64) -> Option<Arc<CallInFlight>> {
        self.table().in_flight.get(&number).cloned()
    }

    /// Returns the last finished calls, the newest first.
    pub(crate) fn finished(&self) -> Vec<FinishedCall> {
        self.table().finished.iter().rev().cloned().collect()
    }

    /// Returns the counts of the last minutes up to now, the oldest first.
    pub(crate) fn minutes(&self) -> Vec<Minute> {
        self.table().minutes.read(Instant::now())
    }
}

/// The registration of a call in flight.
#[derive(Debug)]
pub(crate) struct MonitoredCall<'m> {
    monitor: &'m CallMonitor,
    call: Arc<CallInFlight>,
    end: CallEnd,
    message: Option<Box<str>>,
}

impl MonitoredCall<'_> {
    pub(crate) fn call(&self) -> &Arc<CallInFlight> {
        &self.call
    }

    /// Returns the reply of the call, or an error as soon as an operator cancels the call.
    pub(crate) async fn run(
        mut self,
        call: impl Future<Output = Result<Box<RawValue>, RpcError>>,
    ) -> Result<Box<RawValue>, RpcError> {
        let in_flight = self.call.clone();
        let (reply, is_cancelled) = tokio::select! {
            biased;
            reply = call => (reply, false),
            _ = in_flight.cancelled.wait() => (Err(RpcError::cancelled_by_operator()), true),
        };
        self.end = match &reply {
            Ok(result) => in_flight.end_of_result(result),
            Err(_) if is_cancelled => CallEnd::CancelledByOperator,
            Err(error) => CallEnd::Failed(failure_name(error.kind)),
        };
        self.message = match &reply {
            Err(error) if !is_cancelled => {
                let end = error.message.char_indices().nth(MAX_MESSAGE_CHARS);
                let end = end.map_or(error.message.len(), |(at, _)| at);
                Some(error.message[..end].into())
            }
            _ => None,
        };
        reply
    }
}

impl Drop for MonitoredCall<'_> {
    fn drop(&mut self) {
        let now = Instant::now();
        let duration = now.saturating_duration_since(self.call.started);
        let call = self.call.clone();
        let message = self.message.take();
        let finished = FinishedCall { call, duration, end: self.end, message };
        let mut table = self.monitor.table();
        table.in_flight.remove(&self.call.number);
        table.minutes.record(now, duration, self.end);
        if table.finished.len() >= MAX_FINISHED_CALLS {
            table.finished.pop_front();
        }
        table.finished.push_back(finished);
    }
}

fn failure_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Request => "invalid request",
        ErrorKind::UnknownItem => "unknown tool",
        ErrorKind::Rate { .. } => "rate",
        ErrorKind::Server => "server error",
        ErrorKind::Unavailable => "unavailable",
        ErrorKind::ProcessLimit => "process limit",
        ErrorKind::Timeout => "timeout",
        ErrorKind::Protocol => "protocol error",
        ErrorKind::Withheld => "withheld",
        ErrorKind::NotApproved => "not approved",
        ErrorKind::Cancelled => "cancelled",
        ErrorKind::Internal => "internal error",
    }
}

#[cfg(test)]
mod tests;
