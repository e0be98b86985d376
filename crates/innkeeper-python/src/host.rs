//! A running host.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use innkeeper::catalog::split_name;
use innkeeper::error::Violation;
use innkeeper::lock::{Lock, PinPolicy};
use innkeeper::reload::{ReloadOptions, ReloadReport};
use innkeeper::server::{LatencySummary, ServerMetrics};
use innkeeper::trust::TrustPolicy;
use innkeeper::{
    Arguments, CallError, CallOptions, Callback, CallbackCapabilities, Host as LibraryHost,
    HostBuilder,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::callback::PythonCallback;
use crate::config::Config;
use crate::events::EventStream;
use crate::failure::{Failure, FailureRecord};
use crate::json::{Tape, to_arguments};
use crate::loop_queue::LoopQueue;
use crate::operation::{Beginning, Operation, Outcome, Output};
use crate::runtime;

/// A host with the process that started it: its servers' pipes and supervisors belong to that process.
pub(crate) struct RunningHost {
    pid: u32,
    /// `None` only while the value is dropped.
    host: Option<LibraryHost>,
    /// Whether the host has been shut down.
    ended: watch::Sender<bool>,
}

impl RunningHost {
    fn new(host: LibraryHost) -> Self {
        Self { pid: std::process::id(), host: Some(host), ended: watch::Sender::new(false) }
    }

    /// Returns the running host of another file of this module.
    pub(crate) fn of(host: LibraryHost) -> Self {
        Self::new(host)
    }

    pub(crate) fn kill(&self) {
        if let Ok(host) = self.host() {
            host.kill();
        }
    }

    fn host(&self) -> Result<&LibraryHost, Failure> {
        let is_own = self.pid == std::process::id();
        self.host.as_ref().filter(|_| is_own).ok_or(Failure::OtherProcess)
    }
}

impl Drop for RunningHost {
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            // A dropped host kills its servers, and these are the parent's.
            std::mem::forget(self.host.take());
        }
    }
}

/// A host whose servers have started.
#[pyclass(frozen, module = "innkeeper._core")]
pub(crate) struct Host(Arc<RunningHost>);

impl Host {
    pub(crate) fn host(&self, py: Python<'_>) -> PyResult<LibraryHost> {
        self.0.host().cloned().map_err(|failure| failure.into_error(py))
    }

    /// Returns the running host for another file of this module.
    pub(crate) fn running(&self, py: Python<'_>) -> PyResult<LibraryHost> {
        self.host(py)
    }
}

fn call_options(timeout: Option<f64>, use_cache: bool) -> PyResult<CallOptions> {
    let timeout = timeout.map(timeout_from).transpose()?;
    Ok(CallOptions { timeout, fresh: !use_cache, ..CallOptions::default() })
}

/// Returns a timeout in seconds as a duration.
pub(crate) fn timeout_from(seconds: f64) -> PyResult<Duration> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(timeout) if !timeout.is_zero() => Ok(timeout),
        // The host limits long times.
        _ if seconds > 0.0 => Ok(Duration::MAX),
        _ => Err(PyValueError::new_err(format!(
            "`timeout` is {seconds}: use a number of seconds above zero"
        ))),
    }
}

fn prompt_arguments(text: &RawValue, prompt: &str) -> Result<Map<String, Value>, CallError> {
    serde_json::from_str(text.get()).map_err(|_| {
        let message = "expected object: prompt arguments are named".to_owned();
        let problems = vec![Violation { pointer: String::new(), message }];
        CallError::Validation { item: prompt.into(), problems }
    })
}

/// Returns the arguments of a call as JSON text. What JSON cannot express is refused by its place.
fn call_arguments(
    host: &LibraryHost,
    name: &str,
    arguments: &Bound<'_, PyAny>,
) -> PyResult<Box<RawValue>> {
    let py = arguments.py();
    to_arguments(arguments).map_err(|error| {
        let refused = call_failure(host, error.to_call_error(name)).into_error(py);
        error.into_error(py, refused)
    })
}

/// The longest arguments, in bytes, that are checked and written on the thread of the caller.
const MAX_BYTES_HERE: usize = 16 << 10;

/// Returns where a call begins. Long arguments would keep an event loop from its other work.
fn beginning(arguments: &RawValue) -> Beginning {
    if arguments.get().len() <= MAX_BYTES_HERE { Beginning::Here } else { Beginning::Runtime }
}

/// Returns the failure of a call. Wrong arguments have the name of the server that they are for.
fn call_failure(host: &LibraryHost, error: CallError) -> Failure {
    let CallError::Validation { item, .. } = &error else { return Failure::Call(error) };
    let status = host.status();
    let split = split_name(item, |name| status.contains_key(name));
    Failure::Arguments { server: split.map(|(server, _)| server.to_owned()), error }
}

#[pymethods]
impl Host {
    /// Starts all servers of a configuration.
    #[staticmethod]
    #[pyo3(signature = (config, *, respond, queue, allow_bare_names, watch, lock, max_message_bytes))]
    fn start(
        config: &Config,
        respond: Option<Py<PyAny>>,
        queue: Option<&Bound<'_, LoopQueue>>,
        allow_bare_names: bool,
        watch: bool,
        lock: Option<PathBuf>,
        max_message_bytes: Option<usize>,
    ) -> Operation {
        let source = config.source();
        let callback = python_callback(respond, queue);
        Operation::new(async move {
            let mut config = source.load().map_err(Failure::Config)?;
            config.host.allow_bare_names |= allow_bare_names;
            let mut builder = LibraryHost::builder(config);
            if let Some(callback) = callback {
                builder = builder.callback(&CallbackCapabilities::all(), callback);
            }
            if let Some(bytes) = max_message_bytes {
                builder = builder.max_message_bytes(bytes);
            }
            if watch {
                builder = builder.watch(TrustPolicy::AllowAll);
            }
            if let Some(path) = lock {
                builder = with_pins(builder, &path)?;
            }
            let host = builder.start().await.map_err(Failure::Start)?;
            let running = Arc::new(RunningHost::new(host));
            runtime::register(&running)?;
            Ok(Output::Object(Box::new(|py| Ok(Py::new(py, Self(running))?.into_any()))))
        })
    }

    /// Stops all servers and waits until no process of them is left.
    fn shutdown(&self, py: Python<'_>) -> PyResult<Operation> {
        let host = self.host(py)?;
        let running = self.0.clone();
        Ok(Operation::new(async move {
            // Goes on when nobody waits any more: half of a shutdown helps nobody.
            let shutdown = Handle::current().spawn(async move {
                host.shutdown().await;
                running.ended.send_replace(true);
            });
            shutdown.await.map_err(|error| Failure::Internal(error.to_string()))?;
            Ok(Output::None)
        }))
    }

    /// Kills all servers at once.
    fn kill(&self) {
        self.0.kill();
    }

    #[pyo3(signature = (name, arguments, timeout))]
    fn call_tool(
        &self,
        py: Python<'_>,
        name: String,
        arguments: &Bound<'_, PyAny>,
        timeout: Option<f64>,
    ) -> PyResult<Operation> {
        let host = self.host(py)?;
        let arguments = call_arguments(&host, &name, arguments)?;
        let options = call_options(timeout, true)?;
        Ok(Operation::beginning(beginning(&arguments), async move {
            let call = host.call_tool_with(&name, Arguments::from(arguments), options);
            let result = call.await.map_err(|error| call_failure(&host, error))?;
            Ok(Output::Json(Tape::new(result.into_raw())))
        }))
    }

    #[pyo3(signature = (name, arguments, timeout, use_cache))]
    fn get_prompt(
        &self,
        py: Python<'_>,
        name: String,
        arguments: &Bound<'_, PyAny>,
        timeout: Option<f64>,
        use_cache: bool,
    ) -> PyResult<Operation> {
        let host = self.host(py)?;
        let arguments = call_arguments(&host, &name, arguments)?;
        let options = call_options(timeout, use_cache)?;
        Ok(Operation::beginning(beginning(&arguments), async move {
            let arguments =
                prompt_arguments(&arguments, &name).map_err(|error| call_failure(&host, error))?;
            let result = host.get_prompt(&name, &arguments, options).await;
            Ok(Output::Json(Tape::new(result.map_err(|error| call_failure(&host, error))?)))
        }))
    }

    #[pyo3(signature = (uri, server, timeout, use_cache))]
    fn get_resource(
        &self,
        py: Python<'_>,
        uri: String,
        server: Option<String>,
        timeout: Option<f64>,
        use_cache: bool,
    ) -> PyResult<Operation> {
        let host = self.host(py)?;
        let options = call_options(timeout, use_cache)?;
        Ok(Operation::beginning(Beginning::Here, async move {
            let result = host.read_resource(&uri, server.as_deref(), options).await;
            Ok(Output::Json(Tape::from_resource(
                result.map_err(|error| call_failure(&host, error))?,
            )))
        }))
    }

    /// Returns every available server with all that it offers.
    fn get_tools(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let catalog = self.host(py)?.catalog();
        to_python(py, &SerializedMap(|| catalog.servers()))
    }

    /// Returns the counts and latencies of every server.
    fn get_metrics(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let mut metrics = self.host(py)?.metrics();
        metrics.values_mut().for_each(to_seconds);
        to_python(py, &metrics)
    }

    /// Returns the state of every server of the configuration.
    fn get_status(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let status = self.host(py)?.status();
        to_python(
            py,
            &SerializedMap(|| {
                status.iter().map(|(name, status)| (&**name, StatusRecord::new(status)))
            }),
        )
    }

    /// Subscribes to the events from now on.
    fn events(&self, py: Python<'_>) -> PyResult<EventStream> {
        Ok(EventStream::new(self.host(py)?.events(), self.0.ended.subscribe()))
    }

    /// Replaces the callback for requests of servers.
    fn set_callback(
        &self,
        py: Python<'_>,
        respond: Option<Py<PyAny>>,
        queue: Option<&Bound<'_, LoopQueue>>,
    ) -> PyResult<()> {
        let callback = python_callback(respond, queue);
        let callback = callback.map(|callback| Arc::new(callback) as Arc<dyn Callback>);
        self.host(py)?.set_callback(&CallbackCapabilities::all(), callback.as_ref());
        Ok(())
    }

    /// Applies the changed configuration; with `config`, another one.
    #[pyo3(signature = (config, restart_changed))]
    fn reload(
        &self,
        py: Python<'_>,
        config: Option<&Config>,
        restart_changed: bool,
    ) -> PyResult<Operation> {
        let host = self.host(py)?;
        let source = config.map(Config::source);
        Ok(Operation::new(async move {
            let config = source.map(|source| source.load()).transpose().map_err(Failure::Config)?;
            let options = ReloadOptions { config, apply_changes: restart_changed, trust: None };
            let report = host.reload_with(options).await.map_err(Failure::Reload)?;
            json_output(&ReloadRecord::new(&report))
        }))
    }

    fn restart_server(&self, py: Python<'_>, name: String) -> PyResult<Operation> {
        let host = self.host(py)?;
        Ok(Operation::new(async move {
            host.restart_server(&name).await.map_err(Failure::Restart)?;
            Ok(Output::None)
        }))
    }

    fn stop_server(&self, py: Python<'_>, name: String) -> PyResult<Operation> {
        let host = self.host(py)?;
        Ok(Operation::new(async move {
            host.stop_server(&name).await.map_err(Failure::Stop)?;
            Ok(Output::None)
        }))
    }
}

fn python_callback(
    respond: Option<Py<PyAny>>,
    queue: Option<&Bound<'_, LoopQueue>>,
) -> Option<PythonCallback> {
    Some(PythonCallback::new(respond?, queue?.get().messages()))
}

fn with_pins(builder: HostBuilder, path: &Path) -> Result<HostBuilder, Failure> {
    let lock = Lock::from_file(path).map_err(|error| Failure::Lock(error.to_string()))?;
    let lock = lock.ok_or_else(|| {
        Failure::Lock(format!("no file `{}`: write it with `innkeeper lock`", path.display()))
    })?;
    Ok(builder.pins(lock, PinPolicy::Refuse))
}

/// Converts the latencies from milliseconds.
fn to_seconds(metrics: &mut ServerMetrics) {
    let LatencySummary { avg, min, max, p50, p95, p99 } = &mut metrics.latency;
    for latency in [avg, min, max, p50, p95, p99] {
        *latency /= 1_000.0;
    }
}

/// A JSON object from pairs, in their order.
struct SerializedMap<F>(F);

impl<F, I, K, V> Serialize for SerializedMap<F>
where
    F: Fn() -> I,
    I: Iterator<Item = (K, V)>,
    K: Serialize,
    V: Serialize,
{
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map((self.0)())
    }
}

fn to_python(py: Python<'_>, value: &impl Serialize) -> PyResult<Py<PyAny>> {
    let json = to_raw_value(value).map_err(|error| internal(&error).into_error(py))?;
    Tape::new(json).into_python(py)
}

fn json_output(value: &impl Serialize) -> Outcome {
    let json = to_raw_value(value).map_err(|error| internal(&error))?;
    Ok(Output::Json(Tape::new(json)))
}

fn internal(error: &serde_json::Error) -> Failure {
    Failure::Internal(error.to_string())
}

/// The state of one server.
#[derive(Serialize)]
struct StatusRecord<'s> {
    state: innkeeper::ServerState,
    pid: Option<u32>,
    reason: Option<&'s str>,
    hint: Option<&'s str>,
    in_flight: usize,
    stderr: &'s str,
    pending_restart: &'s [&'static str],
}

impl<'s> StatusRecord<'s> {
    fn new(status: &'s innkeeper::ServerStatus) -> Self {
        Self {
            state: status.state,
            pid: status.pid,
            reason: status.reason.as_deref(),
            hint: status.start_hint.as_deref(),
            in_flight: status.in_flight,
            stderr: &status.stderr,
            pending_restart: &status.pending_restart,
        }
    }
}

/// What a reload changed.
#[derive(Serialize)]
struct ReloadRecord<'r> {
    added: &'r [Arc<str>],
    removed: &'r [Arc<str>],
    changed: Vec<ChangeRecord<'r>>,
    failed: Vec<FailureRecord<'r>>,
    invalid: &'r [Arc<str>],
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct ChangeRecord<'r> {
    server: &'r str,
    keys: &'r [&'static str],
    pending: &'r [&'static str],
}

impl<'r> ReloadRecord<'r> {
    fn new(report: &'r ReloadReport) -> Self {
        let changed = report.changed.iter().map(|change| ChangeRecord {
            server: &change.server,
            keys: &change.keys,
            pending: &change.pending,
        });
        Self {
            added: &report.added,
            removed: &report.removed,
            changed: changed.collect(),
            failed: report.failed.iter().map(FailureRecord::new).collect(),
            invalid: &report.invalid,
            warnings: report.warnings.iter().map(ToString::to_string).collect(),
        }
    }
}
