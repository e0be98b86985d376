//! Failures of the library as exceptions of the Python package.

use std::error::Error;

use innkeeper::error::{
    ProtocolError, RestartError, RoutingError, ServerFailure, StartError, StopError, Violation,
};
use innkeeper::reload::ReloadError;
use innkeeper::{CallError, ConfigError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use serde::Serialize;
use serde_json::value::to_raw_value;

use crate::json::Tape;

/// Why a call of the application has no result.
pub(crate) enum Failure {
    Config(ConfigError),
    Start(StartError),
    Call(CallError),
    /// The call's arguments don't fit; `server` is the server that they are for.
    Arguments {
        server: Option<String>,
        error: CallError,
    },
    /// The result has a number that is too long, as a message.
    Endless(String),
    Reload(ReloadError),
    Restart(RestartError),
    Stop(StopError),
    /// The file of the pins has no use, as a message.
    Lock(String),
    /// A model that cannot be used, or that failed, as a message.
    Model(String),
    /// A golden that cannot be used, as a message.
    Golden(String),
    /// A run that a golden does not answer, as a message.
    Replay(String),
    /// The gateway cannot serve, as a message.
    Serve(String),
    /// The host belongs to another process: its servers' pipes end there.
    OtherProcess,
    /// The interpreter ends.
    InterpreterExits,
    /// A defect of the library.
    Internal(String),
}

/// An exception on its way to Python: the class of `innkeeper.errors` with its attributes.
struct Exception<'py> {
    class: &'static str,
    message: String,
    attributes: Bound<'py, PyDict>,
    causes: Vec<String>,
}

impl<'py> Exception<'py> {
    fn new(py: Python<'py>, class: &'static str, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), attributes: PyDict::new(py), causes: Vec::new() }
    }

    fn from_error(py: Python<'py>, class: &'static str, error: &dyn Error) -> Self {
        let mut causes = Vec::new();
        let mut source = error.source();
        while let Some(cause) = source {
            causes.push(cause.to_string());
            source = cause.source();
        }
        Self { causes, ..Self::new(py, class, error.to_string()) }
    }

    fn with(self, name: &str, value: impl IntoPyObject<'py>) -> PyResult<Self> {
        self.attributes.set_item(name, value)?;
        Ok(self)
    }

    fn with_json(self, name: &str, value: &(impl Serialize + ?Sized)) -> PyResult<Self> {
        let py = self.attributes.py();
        let json = to_raw_value(value).map_err(|error| PyValueError::new_err(error.to_string()))?;
        self.with(name, Tape::new(json).into_python(py)?)
    }

    fn create(self) -> PyResult<PyErr> {
        static CREATE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = self.attributes.py();
        let create = CREATE.get_or_try_init(py, || -> PyResult<_> {
            Ok(py.import("innkeeper.errors")?.getattr("_create")?.unbind())
        })?;
        let exception =
            create.call1(py, (self.class, self.message, self.attributes, self.causes))?;
        Ok(PyErr::from_value(exception.into_bound(py)))
    }
}

impl Failure {
    pub(crate) fn into_error(self, py: Python<'_>) -> PyErr {
        self.to_exception(py).and_then(Exception::create).unwrap_or_else(|error| error)
    }

    fn to_exception<'py>(&self, py: Python<'py>) -> PyResult<Exception<'py>> {
        match self {
            Self::Config(error)
            | Self::Start(StartError::Config(error))
            | Self::Reload(ReloadError::Config(error)) => Exception::from_config(py, error),
            Self::Reload(error @ ReloadError::NoFiles) => {
                Ok(Exception::new(py, "ConfigurationError", error.to_string()))
            }
            Self::Start(error @ StartError::Servers(failures)) => {
                Exception::from_start(py, error, failures)
            }
            Self::Restart(error @ RestartError::Failed(failure)) => {
                Exception::from_start(py, error, std::slice::from_ref(&**failure))
            }
            Self::Restart(RestartError::UnknownServer(name))
            | Self::Stop(StopError::UnknownServer(name)) => {
                let message = format!("no server `{name}`");
                let exception = Exception::new(py, "RoutingError", message);
                exception.with("target", &**name)?.with("reason", "server_not_found")
            }
            Self::Reload(error @ ReloadError::Shutdown) => {
                Ok(Exception::new(py, "NotInitializedError", error.to_string()))
            }
            Self::Restart(error @ RestartError::Shutdown) => {
                Ok(Exception::new(py, "NotInitializedError", error.to_string()))
            }
            Self::Stop(error @ StopError::Shutdown) => {
                Ok(Exception::new(py, "NotInitializedError", error.to_string()))
            }
            Self::Call(error) => Exception::from_call(py, error),
            Self::Arguments { server, error } => {
                Exception::from_call(py, error)?.with("server_name", server.as_deref())
            }
            Self::Endless(message) => {
                Exception::new(py, "ProtocolError", message.clone()).with("details", message)
            }
            Self::Lock(message) => Ok(Exception::new(py, "ConfigurationError", message.clone())),
            Self::Model(message) => Ok(Exception::new(py, "ModelError", message.clone())),
            Self::Golden(message) => Ok(Exception::new(py, "GoldenError", message.clone())),
            Self::Replay(message) => Ok(Exception::new(py, "ReplayError", message.clone())),
            Self::Serve(message) => Ok(Exception::new(py, "ConfigurationError", message.clone())),
            Self::OtherProcess => Ok(Exception::new(
                py,
                "NotInitializedError",
                "the host belongs to another process: call `initialize` to start servers in this one",
            )),
            Self::InterpreterExits => {
                Ok(Exception::new(py, "MCPHostError", "the interpreter ends: its hosts have ended"))
            }
            Self::Internal(message) => Ok(Exception::new(
                py,
                "InternalError",
                format!("a defect in Innkeeper, please report it: {message}"),
            )),
        }
    }
}

impl<'py> Exception<'py> {
    fn from_config(py: Python<'py>, error: &ConfigError) -> PyResult<Self> {
        Self::new(py, "ConfigurationError", error.to_string()).with_json("problems", &error.0)
    }

    fn from_start(
        py: Python<'py>,
        error: &dyn Error,
        failures: &[ServerFailure],
    ) -> PyResult<Self> {
        let server = failures.first().map(|failure| &*failure.server);
        let failures: Vec<_> = failures.iter().map(FailureRecord::new).collect();
        Self::new(py, "ServerStartupError", error.to_string())
            .with("server_name", server)?
            .with_json("failures", &failures)
    }

    fn from_call(py: Python<'py>, error: &CallError) -> PyResult<Self> {
        let exception =
            |class| Self::from_error(py, class, error).with("server_name", error.server());
        match error {
            CallError::Routing(routing) => Self::from_routing(py, routing),
            CallError::Validation { item, problems } => {
                let problems: Vec<_> = problems.iter().map(ViolationRecord::new).collect();
                exception("ValidationError")?.with("item", &**item)?.with_json("details", &problems)
            }
            CallError::Unavailable { reason, may_have_run, attempts, .. } => {
                exception("ServerUnavailableError")?
                    .with("reason", reason.to_string())?
                    .with("may_have_run", may_have_run)?
                    .with("attempts", attempts)
            }
            CallError::Timeout { item, timeout, .. } => exception("TimeoutError")?
                .with("operation", &**item)?
                .with("timeout_seconds", timeout.as_secs_f64()),
            CallError::Protocol { item, source, .. } => {
                let mut exception = exception("ProtocolError")?;
                exception.message = format!("{error}: {source}");
                if matches!(source, ProtocolError::TooLarge { .. }) {
                    exception.message.push_str("; `max_message_bytes` of the host allows more");
                }
                exception.with("item", &**item)?.with("details", source.to_string())
            }
            CallError::Server { item, error, .. } => exception("ServerError")?
                .with("item", &**item)?
                .with("code", error.code)?
                .with_json("data", &error.data),
            CallError::Withheld { item, findings, .. } => {
                let findings: Vec<_> = findings.iter().map(ToString::to_string).collect();
                exception("ResultWithheldError")?.with("item", &**item)?.with("findings", findings)
            }
        }
    }

    fn from_routing(py: Python<'py>, error: &RoutingError) -> PyResult<Self> {
        let exception = Self::new(py, "RoutingError", error.to_string());
        match error {
            RoutingError::UnknownServer { name, suggestion } => exception
                .with("target", &**name)?
                .with("reason", "server_not_found")?
                .with("suggestion", suggestion.as_deref()),
            RoutingError::UnknownItem { server, item_kind, item, suggestion } => exception
                .with("server_name", &**server)?
                .with("target", format!("{server}.{item}"))?
                .with("reason", format!("{item_kind}_not_found"))?
                .with("suggestion", suggestion.as_deref()),
            RoutingError::ToolWithheld { server, tool, .. } => exception
                .with("server_name", &**server)?
                .with("target", format!("{server}.{tool}"))?
                .with("reason", "tool_withheld"),
            RoutingError::ItemWithheld { server, item_kind, item, .. } => exception
                .with("server_name", &**server)?
                .with("target", &**item)?
                .with("reason", format!("{}_withheld", item_kind.replace(' ', "_"))),
            RoutingError::UnusableItem { server, item_kind, item, .. } => exception
                .with("server_name", &**server)?
                .with("target", format!("{server}.{item}"))?
                .with("reason", format!("{item_kind}_unusable")),
            RoutingError::UnknownResource { uri, suggestion } => exception
                .with("target", &**uri)?
                .with("reason", "resource_not_found")?
                .with("suggestion", suggestion.as_deref()),
            RoutingError::Ambiguous { name, candidates } => {
                let candidates: Vec<&str> = candidates.iter().map(|name| &**name).collect();
                exception
                    .with("target", &**name)?
                    .with("reason", "ambiguous")?
                    .with("candidates", candidates)
            }
        }
    }
}

/// The failed start of one server.
#[derive(Serialize)]
pub(crate) struct FailureRecord<'f> {
    server: &'f str,
    phase: String,
    reason: String,
    hint: Option<String>,
    attempts: u32,
    stderr: &'f str,
}

impl<'f> FailureRecord<'f> {
    pub(crate) fn new(failure: &'f ServerFailure) -> Self {
        Self {
            server: &failure.server,
            phase: failure.phase.to_string(),
            reason: failure.summary(),
            hint: failure.hint(),
            attempts: failure.attempts,
            stderr: &failure.stderr,
        }
    }
}

/// A problem of the arguments.
#[derive(Serialize)]
struct ViolationRecord<'v> {
    pointer: &'v str,
    message: &'v str,
}

impl<'v> ViolationRecord<'v> {
    fn new(violation: &'v Violation) -> Self {
        Self { pointer: &violation.pointer, message: &violation.message }
    }
}
