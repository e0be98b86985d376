//! The tokio runtime of this process.
//!
//! The runtime belongs to a process: a child after `fork` starts one of its own.

use std::panic;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use pyo3::prelude::*;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::failure::Failure;
use crate::host::RunningHost;
use crate::per_process::PerProcess;

/// Threads of the runtime: servers and their pipes need few, and an application has its own work.
const WORKER_THREADS: usize = 2;

/// The longest wait for the runtime's threads at the exit of the interpreter.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);

#[derive(Default)]
enum ProcessRuntime {
    #[default]
    NotStarted,
    Running {
        runtime: Runtime,
        /// The hosts to end at exit.
        hosts: Vec<Weak<RunningHost>>,
    },
    /// The exit of the interpreter has begun.
    Ended,
}

static CURRENT: PerProcess<Mutex<ProcessRuntime>> = PerProcess::new();

/// Returns the runtime's handle, and starts the runtime at the first use in this process.
pub(crate) fn handle() -> Result<Handle, Failure> {
    with_runtime(|runtime, _| runtime.handle().clone())
}

/// Registers a host whose servers end when the interpreter exits.
pub(crate) fn register(host: &Arc<RunningHost>) -> Result<(), Failure> {
    with_runtime(|_, hosts| {
        hosts.retain(|host| host.strong_count() > 0);
        hosts.push(Arc::downgrade(host));
    })
}

fn with_runtime<T>(
    use_runtime: impl FnOnce(&Runtime, &mut Vec<Weak<RunningHost>>) -> T,
) -> Result<T, Failure> {
    let current = CURRENT.get();
    let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
    if matches!(*current, ProcessRuntime::NotStarted) {
        *current = ProcessRuntime::Running { runtime: start()?, hosts: Vec::new() };
    }
    let ProcessRuntime::Running { runtime, hosts } = &mut *current else {
        return Err(Failure::InterpreterExits);
    };
    Ok(use_runtime(runtime, hosts))
}

fn start() -> Result<Runtime, Failure> {
    Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .thread_name("innkeeper")
        .enable_all()
        .on_thread_start(crate::logging::use_on_this_thread)
        .build()
        .map_err(|error| Failure::Internal(format!("cannot start the runtime: {error}")))
}

/// Ends all servers and all threads of this process's runtime. Python calls this at exit, before it
/// destroys the interpreter.
#[pyfunction]
pub(crate) fn shut_down(py: Python<'_>) {
    py.detach(|| {
        let previous = {
            let current = CURRENT.get();
            let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *current, ProcessRuntime::Ended)
        };
        let ProcessRuntime::Running { runtime, hosts } = previous else { return };
        for host in hosts.iter().filter_map(Weak::upgrade) {
            host.kill();
        }
        runtime.shutdown_timeout(EXIT_TIMEOUT);
    });
}

/// Keeps the panics of this module off stderr: each becomes an `InternalError` of the call.
pub(crate) fn silence_panics() {
    panic::set_hook(Box::new(|panic| {
        tracing::error!(severity = "critical", panic = %panic, "internal error");
    }));
}
