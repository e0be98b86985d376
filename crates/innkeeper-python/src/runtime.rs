//! The tokio runtime of this process.
//!
//! The runtime belongs to a process id. A child after `fork` has a copy of its parent's memory, and no
//! thread of the parent's runtime: the child forgets the copy, because to drop it would end the
//! parent's servers, and starts a runtime of its own.

use std::panic;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use pyo3::prelude::*;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::failure::Failure;
use crate::host::RunningHost;

/// Threads of the runtime: servers and their pipes need few, and an application has its own work.
const WORKER_THREADS: usize = 2;

/// The longest wait for the runtime's threads at the exit of the interpreter.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);

/// The runtime of one process.
struct ProcessRuntime {
    pid: u32,
    handle: Handle,
    /// `None` after the exit of the interpreter began.
    runtime: Option<Runtime>,
    /// The hosts to end at exit.
    hosts: Vec<Weak<RunningHost>>,
}

static CURRENT: Mutex<Option<ProcessRuntime>> = Mutex::new(None);

fn current() -> MutexGuard<'static, Option<ProcessRuntime>> {
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the runtime's handle, and starts the runtime at the first use in this process.
pub(crate) fn handle() -> Result<Handle, Failure> {
    with_runtime(|runtime| runtime.handle.clone())
}

/// Registers a host whose servers end when the interpreter exits.
pub(crate) fn register(host: &Arc<RunningHost>) -> Result<(), Failure> {
    with_runtime(|runtime| {
        runtime.hosts.retain(|host| host.strong_count() > 0);
        runtime.hosts.push(Arc::downgrade(host));
    })
}

fn with_runtime<T>(use_runtime: impl FnOnce(&mut ProcessRuntime) -> T) -> Result<T, Failure> {
    let mut current = current();
    let pid = std::process::id();
    if let Some(of_parent) = current.take_if(|runtime| runtime.pid != pid) {
        std::mem::forget(of_parent);
    }
    let runtime = match &mut *current {
        Some(runtime) => runtime,
        None => current.insert(ProcessRuntime::start(pid)?),
    };
    if runtime.runtime.is_none() {
        return Err(Failure::InterpreterExits);
    }
    Ok(use_runtime(runtime))
}

impl ProcessRuntime {
    fn start(pid: u32) -> Result<Self, Failure> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(WORKER_THREADS)
            .thread_name("innkeeper")
            .enable_all()
            .on_thread_start(crate::logging::use_on_this_thread)
            .build()
            .map_err(|error| Failure::Internal(format!("cannot start the runtime: {error}")))?;
        let handle = runtime.handle().clone();
        Ok(Self { pid, handle, runtime: Some(runtime), hosts: Vec::new() })
    }
}

/// Ends all servers and all threads of this process's runtime. Python calls this at exit, before it
/// destroys the interpreter.
#[pyfunction]
pub(crate) fn shut_down(py: Python<'_>) {
    py.detach(|| {
        let (runtime, hosts) = {
            let mut current = current();
            match &mut *current {
                Some(current) if current.pid == std::process::id() => {
                    (current.runtime.take(), std::mem::take(&mut current.hosts))
                }
                Some(_) | None => return,
            }
        };
        for host in hosts.iter().filter_map(Weak::upgrade) {
            host.kill();
        }
        if let Some(runtime) = runtime {
            runtime.shutdown_timeout(EXIT_TIMEOUT);
        }
    });
}

/// Keeps the panics of this module off stderr: each becomes an `InternalError` of the call.
pub(crate) fn silence_panics() {
    panic::set_hook(Box::new(|panic| {
        tracing::error!(severity = "critical", panic = %panic, "internal error");
    }));
}
