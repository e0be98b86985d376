//! One call into the library, which Python awaits on an event loop or waits for on a thread.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::call_task::CallTask;
use crate::failure::Failure;
use crate::json::Tape;
use crate::loop_queue::LoopQueue;
use crate::{logging, runtime};

/// How often a waiting thread looks for signals, so that Ctrl-C ends the wait.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// The outcome of an operation, without a Python object: it is made on a thread of the runtime, which
/// never touches the interpreter.
pub(crate) enum Output {
    /// `None`.
    None,
    /// A JSON value.
    Json(Tape),
    /// A value that becomes a Python object on the thread that waits.
    Object(MakeObject),
}

/// Makes the Python object of a result.
pub(crate) type MakeObject = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

pub(crate) type Outcome = Result<Output, Failure>;

pub(crate) type Work = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// Where an operation begins.
#[derive(Clone, Copy)]
pub(crate) enum Beginning {
    /// On the thread that starts it: its first step is short, and waits for nothing.
    Here,
    /// On a thread of the runtime.
    Runtime,
}

/// A call that has not started: `future()` starts it on the running event loop, `wait()` on this
/// thread.
#[pyclass(frozen, module = "innkeeper._core")]
pub(crate) struct Operation {
    work: Mutex<Option<Work>>,
    beginning: Beginning,
}

impl Operation {
    pub(crate) fn new(work: impl Future<Output = Outcome> + Send + 'static) -> Self {
        Self::beginning(Beginning::Runtime, work)
    }

    pub(crate) fn beginning(
        beginning: Beginning,
        work: impl Future<Output = Outcome> + Send + 'static,
    ) -> Self {
        Self { work: Mutex::new(Some(Box::pin(work))), beginning }
    }

    fn take_work(&self) -> PyResult<Work> {
        let work = self.work.lock().unwrap_or_else(PoisonError::into_inner).take();
        work.ok_or_else(|| PyRuntimeError::new_err("the operation has already started"))
    }
}

#[pymethods]
impl Operation {
    /// Returns an `asyncio.Future` of the running event loop. To cancel the future drops the call.
    fn future<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        logging::refresh_level(py)?;
        LoopQueue::start(py, self.take_work()?, self.beginning)
    }

    /// Waits for the result without holding the interpreter. A signal, for example Ctrl-C, drops the
    /// call.
    fn wait(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        logging::refresh_level(py)?;
        let work = self.take_work()?;
        let (sender, result) = mpsc::sync_channel(1);
        let result = Mutex::new(result);
        let task = CallTask::start(runtime::handle(py)?, self.beginning, async move {
            // The waiting thread may be gone after a signal.
            sender.send(complete(work).await).ok();
        });
        let outcome = loop {
            let received = py.detach(|| {
                let result = result.lock().unwrap_or_else(PoisonError::into_inner);
                result.recv_timeout(SIGNAL_INTERVAL)
            });
            match received {
                Ok(outcome) => break outcome,
                Err(RecvTimeoutError::Disconnected) => break Err(Failure::InterpreterExits),
                Err(RecvTimeoutError::Timeout) => {
                    py.check_signals().inspect_err(|_| task.abort())?;
                }
            }
            logging::deliver(py).inspect_err(|_| task.abort())?;
        };
        logging::deliver(py)?;
        match outcome {
            Ok(Output::None) => Ok(py.None()),
            Ok(Output::Json(tape)) => tape.into_python(py),
            Ok(Output::Object(make)) => make(py),
            Err(failure) => Err(failure.into_error(py)),
        }
    }
}

/// Returns an operation that panics, for the test of panics.
#[cfg(debug_assertions)]
#[pyfunction]
pub(crate) fn panicking_operation() -> Operation {
    Operation::new(async { panic!("as the test asked") })
}

/// Runs a call to its end; a panic is an outcome.
pub(crate) async fn complete(work: Work) -> Outcome {
    AssertUnwindSafe(work)
        .catch_unwind()
        .await
        .unwrap_or_else(|panic| Err(Failure::Internal(panic_message(&*panic).to_owned())))
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("panic")
}
