//! The tokio runtime of this process.
//!
//! The runtime belongs to a process: a child after `fork` starts one of its own. The runtime's threads
//! stand still while the process forks, so that none of them holds a lock that the child would find
//! locked for ever.

use std::panic;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
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
pub(crate) fn handle(py: Python<'_>) -> PyResult<Handle> {
    let handle = || with_runtime(|runtime, _| runtime.handle().clone());
    let handle = if is_started() {
        handle()
    } else {
        // The runtime's threads inherit the mask of this one.
        let mask = SignalMask::block(py)?;
        let handle = handle();
        mask.restore(py)?;
        handle
    };
    handle.map_err(|failure| failure.into_error(py))
}

fn is_started() -> bool {
    !matches!(*lock(&CURRENT.get()), ProcessRuntime::NotStarted)
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
    let mut current = lock(&current);
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
            let mut current = lock(&current);
            std::mem::replace(&mut *current, ProcessRuntime::Ended)
        };
        let ProcessRuntime::Running { runtime, hosts } = previous else { return };
        for host in hosts.iter().filter_map(Weak::upgrade) {
            host.kill();
        }
        runtime.shutdown_timeout(EXIT_TIMEOUT);
    });
}

/// Whether this process's hosts have ended with the interpreter.
#[pyfunction]
pub(crate) fn has_shut_down() -> bool {
    matches!(*lock(&CURRENT.get()), ProcessRuntime::Ended)
}

/// Keeps the panics of this module off stderr: each becomes an `InternalError` of the call.
pub(crate) fn silence_panics() {
    panic::set_hook(Box::new(|panic| {
        tracing::error!(severity = "critical", panic = %panic, "internal error");
    }));
}

/// The signals that this thread lets in.
///
/// The runtime's threads let none in. An application expects its signals on threads of its own, for
/// example with `sigwait`; and a program that has set `SIGPIPE` to its default, which kills, must not
/// die when a server does.
struct SignalMask(Option<Py<PyAny>>);

/// Signals of faults: to block these hides crashes.
const FAULTS: [&str; 7] = ["SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGSYS", "SIGTRAP"];

impl SignalMask {
    fn block(py: Python<'_>) -> PyResult<Self> {
        let signal = py.import("signal")?;
        let Ok(set_mask) = signal.getattr("pthread_sigmask") else { return Ok(Self(None)) };
        let blocked = signal.call_method0("valid_signals")?;
        for fault in FAULTS {
            blocked.call_method1("discard", (signal.getattr(fault)?,))?;
        }
        let previous = set_mask.call1((signal.getattr("SIG_BLOCK")?, blocked))?;
        Ok(Self(Some(previous.unbind())))
    }

    fn restore(self, py: Python<'_>) -> PyResult<()> {
        let Some(previous) = self.0 else { return Ok(()) };
        let signal = py.import("signal")?;
        signal.call_method1("pthread_sigmask", (signal.getattr("SIG_SETMASK")?, previous))?;
        Ok(())
    }
}

/// The longest wait for the runtime's threads before a fork. A thread that is busy for longer forks
/// as it is.
const FORK_TIMEOUT: Duration = Duration::from_secs(2);

/// The longest stop of the runtime's threads, should a fork never end.
const MAX_STOP: Duration = Duration::from_secs(10);

/// Stops the runtime's threads.
#[derive(Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    stopped_threads: usize,
    is_open: bool,
}

/// The closed gate, and how many forks it is closed for: several threads may fork at once.
#[derive(Default)]
struct ClosedGate {
    gate: Option<Arc<Gate>>,
    forks: usize,
}

static CLOSED: PerProcess<Mutex<ClosedGate>> = PerProcess::new();

/// Stops the runtime's threads between two tasks. Python calls this before a fork.
#[pyfunction]
pub(crate) fn before_fork(py: Python<'_>) {
    py.detach(|| {
        let handle = match &*lock(&CURRENT.get()) {
            ProcessRuntime::Running { runtime, .. } => runtime.handle().clone(),
            ProcessRuntime::NotStarted | ProcessRuntime::Ended => return,
        };
        let closed = CLOSED.get();
        let gate = {
            let mut closed = lock(&closed);
            closed.forks += 1;
            closed.gate.get_or_insert_with(|| Gate::close(&handle)).clone()
        };
        gate.wait_for_threads();
    });
}

/// Lets the runtime's threads go on. Python calls this after a fork, in the parent.
#[pyfunction]
pub(crate) fn after_fork_in_parent() {
    let closed = CLOSED.get();
    let mut closed = lock(&closed);
    closed.forks = closed.forks.saturating_sub(1);
    if closed.forks > 0 {
        return;
    }
    if let Some(gate) = closed.gate.take() {
        lock(&gate.state).is_open = true;
        gate.changed.notify_all();
    }
}

impl Gate {
    fn close(handle: &Handle) -> Arc<Self> {
        let gate = Arc::new(Self::default());
        for _ in 0..WORKER_THREADS {
            let gate = gate.clone();
            // Blocks the thread on purpose: the next task of the runtime must not begin.
            handle.spawn(async move { gate.stop() });
        }
        gate
    }

    fn stop(&self) {
        let mut state = lock(&self.state);
        state.stopped_threads += 1;
        self.changed.notify_all();
        let _ = self.changed.wait_timeout_while(state, MAX_STOP, |state| !state.is_open);
    }

    fn wait_for_threads(&self) {
        let state = lock(&self.state);
        let _ = self.changed.wait_timeout_while(state, FORK_TIMEOUT, |state| {
            state.stopped_threads < WORKER_THREADS
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
