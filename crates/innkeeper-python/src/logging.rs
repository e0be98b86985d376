//! The library's log, on its way to Python's `logging`.
//!
//! The log of the runtime's threads goes to a queue, never to a global subscriber: an application has
//! its own. The Python package takes the records from the queue on a thread of its own, and each
//! thread that gets a result takes them first, so that the log of a call precedes its result.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Dispatch, Event, Level, Metadata, Subscriber};

use crate::per_process::PerProcess;

/// The longest queue: a program that takes no record loses the oldest.
const MAX_RECORDS: usize = 1_024;

/// Python's levels.
const DEBUG: u8 = 10;
const INFO: u8 = 20;
const WARNING: u8 = 30;
const ERROR: u8 = 40;
const CRITICAL: u8 = 50;

/// The level of Python's logger `innkeeper`; nothing below is formatted.
static LEVEL: AtomicU8 = AtomicU8::new(WARNING);

static QUEUE: PerProcess<LogQueue> = PerProcess::new();

/// The function of the Python package that passes a record to `logging`.
static EMIT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

#[derive(Default)]
struct LogQueue {
    waiting: Mutex<WaitingRecords>,
    arrived: Condvar,
}

#[derive(Default)]
struct WaitingRecords {
    records: VecDeque<LogRecord>,
    lost: usize,
    stopped: bool,
}

struct LogRecord {
    level: u8,
    target: &'static str,
    message: String,
    fields: Vec<(&'static str, String)>,
}

impl LogQueue {
    fn waiting(&self) -> MutexGuard<'_, WaitingRecords> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes all records, the oldest first.
    fn take(&self) -> VecDeque<LogRecord> {
        let mut waiting = self.waiting();
        let lost = std::mem::take(&mut waiting.lost);
        let mut records = std::mem::take(&mut waiting.records);
        if lost > 0 {
            records.push_front(LogRecord {
                level: WARNING,
                target: "innkeeper",
                message: format!("{lost} log records were lost: the queue was full"),
                fields: Vec::new(),
            });
        }
        records
    }
}

/// The log's way to the queue.
struct ToQueue(Dispatch);

impl Default for ToQueue {
    fn default() -> Self {
        Self(Dispatch::new(QueueSubscriber(QUEUE.get())))
    }
}

static TO_QUEUE: PerProcess<ToQueue> = PerProcess::new();

/// Sends the log of this thread, which belongs to the runtime, to the queue.
pub(crate) fn use_on_this_thread() {
    let guard = tracing::dispatcher::set_default(&TO_QUEUE.get().0);
    // The thread belongs to the runtime until its end.
    std::mem::forget(guard);
}

/// Sends the log of a step of the runtime, on a thread of the application, to the queue.
pub(crate) fn with_log<T>(step: impl FnOnce() -> T) -> T {
    tracing::dispatcher::with_default(&TO_QUEUE.get().0, step)
}

/// Takes over the level of Python's logger, which the application can change at any time. An error is
/// an interrupt of the thread.
pub(crate) fn refresh_level(py: Python<'_>) -> PyResult<()> {
    static LOGGER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let level = LOGGER.get_or_try_init(py, || -> PyResult<_> {
        Ok(py.import("logging")?.call_method1("getLogger", ("innkeeper",))?.unbind())
    });
    let level = level.and_then(|logger| logger.call_method0(py, "getEffectiveLevel")?.extract(py));
    let level = match level {
        Err(error) if is_interrupt(py, &error) => return Err(error),
        // A level that is no small number disables the log.
        level => level.unwrap_or(u8::MAX),
    };
    LEVEL.store(level, Ordering::Relaxed);
    Ok(())
}

/// Returns whether the error ends the program or a thread, as `KeyboardInterrupt` does. Python raises it
/// in whatever code runs when a signal arrives, so nobody may drop it.
pub(crate) fn is_interrupt(py: Python<'_>, error: &PyErr) -> bool {
    !error.is_instance_of::<PyException>(py)
}

thread_local! {
    /// Whether this thread is passing on records.
    static IS_DELIVERING: Cell<bool> = const { Cell::new(false) };
}

/// Passes the waiting records to Python. A handler of the application that calls a host gets here
/// again: its records wait, because to pass them on would call the handler without end. An error is an
/// interrupt of the thread.
pub(crate) fn deliver(py: Python<'_>) -> PyResult<()> {
    if IS_DELIVERING.replace(true) {
        return Ok(());
    }
    let mut outcome = Ok(());
    for record in QUEUE.get().take() {
        match emit(py, record) {
            Err(error) if is_interrupt(py, &error) => outcome = Err(error),
            Err(error) => error.write_unraisable(py, None),
            Ok(()) => {}
        }
    }
    IS_DELIVERING.set(false);
    outcome
}

fn emit(py: Python<'_>, record: LogRecord) -> PyResult<()> {
    let emit = EMIT.get_or_try_init(py, || -> PyResult<_> {
        Ok(py.import("innkeeper._logging")?.getattr("emit")?.unbind())
    })?;
    let fields = PyDict::new(py);
    for (name, value) in record.fields {
        fields.set_item(name, value)?;
    }
    emit.call1(py, (record.level, record.target, record.message, fields))?;
    Ok(())
}

/// Waits for records for at most some seconds, then passes them on. Returns `False` after
/// `stop_logging`.
#[pyfunction]
pub(crate) fn next_log_records(py: Python<'_>, seconds: f64) -> PyResult<bool> {
    let patience = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let queue = QUEUE.get();
    let stopped = py.detach(|| {
        let waited = queue.arrived.wait_timeout_while(queue.waiting(), patience, |waiting| {
            waiting.records.is_empty() && !waiting.stopped
        });
        waited.unwrap_or_else(PoisonError::into_inner).0.stopped
    });
    deliver(py)?;
    Ok(!stopped)
}

/// Ends the wait of the thread that takes records.
#[pyfunction]
pub(crate) fn stop_logging(py: Python<'_>) -> PyResult<()> {
    py.detach(|| {
        let queue = QUEUE.get();
        queue.waiting().stopped = true;
        queue.arrived.notify_all();
    });
    deliver(py)
}

/// Returns the level below which nothing is formatted.
#[pyfunction]
pub(crate) fn log_level(py: Python<'_>) -> PyResult<u8> {
    refresh_level(py)?;
    Ok(LEVEL.load(Ordering::Relaxed))
}

/// The subscriber of the runtime's threads, with the queue of their process.
struct QueueSubscriber(Arc<LogQueue>);

impl Subscriber for QueueSubscriber {
    fn register_callsite(&self, _metadata: &'static Metadata<'static>) -> Interest {
        // The level can change at any time.
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && metadata.target().starts_with("innkeeper")
            && highest_level(metadata) >= LEVEL.load(Ordering::Relaxed)
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut record = LogRecord {
            level: python_level(*metadata.level()),
            target: metadata.target(),
            message: String::new(),
            fields: Vec::new(),
        };
        event.record(&mut record);
        if record.level < LEVEL.load(Ordering::Relaxed) {
            return;
        }
        let mut waiting = self.0.waiting();
        if waiting.records.len() == MAX_RECORDS {
            waiting.records.pop_front();
            waiting.lost += 1;
        }
        waiting.records.push_back(record);
        self.0.arrived.notify_one();
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

impl Visit for LogRecord {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.to_owned());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        let mut text = value.to_string();
        let mut source = value.source();
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        self.add(field, text);
    }
}

impl LogRecord {
    fn add(&mut self, field: &Field, value: String) {
        match field.name() {
            "message" => self.message = value,
            "severity" if value == "critical" => self.level = CRITICAL,
            name => self.fields.push((name, value)),
        }
    }
}

/// Returns the level that an event can have: its fields may make it critical.
fn highest_level(metadata: &Metadata<'_>) -> u8 {
    match metadata.fields().field("severity") {
        Some(_) => CRITICAL,
        None => python_level(*metadata.level()),
    }
}

fn python_level(level: Level) -> u8 {
    match level {
        Level::TRACE | Level::DEBUG => DEBUG,
        Level::INFO => INFO,
        Level::WARN => WARNING,
        Level::ERROR => ERROR,
    }
}
