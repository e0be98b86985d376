//! The bridge between the runtime and one event loop.
//!
//! A thread of the runtime never touches the interpreter: it would have to wait for its lock, and a
//! thread that waits while the interpreter is destroyed crashes the process. So everything that must
//! happen in Python (the result of a call, a request of a server) becomes a message without Python
//! objects. The messages of one loop wait in one queue; the first of a batch writes a byte to a
//! socket, which the loop watches like any other. The loop then takes the whole batch on its own
//! thread, where the futures are.
//!
//! A loop that cannot watch a socket (the one of Windows) is woken by `call_soon_threadsafe`.
//!
//! The loop owns its queue: its reader of the socket has it, or a timer that is never due. Our map from
//! loops to queues is weak at both ends, so a closed loop goes with its queue and its futures, and the
//! calls behind them are cancelled. The futures refer to their loop and to the queue: Python's garbage
//! collector sees all of these references, and must.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tokio::time::Instant;

use crate::call_task::CallTask;
use crate::callback::ServerCall;
use crate::json::{Progress, ToPython};
use crate::logging::is_interrupt;
use crate::operation::{Beginning, Outcome, Output, Work, complete};
use crate::{logging, runtime};

/// What must happen on the thread of a loop.
pub(crate) enum Message {
    /// A call ended.
    Done { call: u64, outcome: Outcome },
    /// A server asks the application.
    Ask(ServerCall),
    /// Nobody waits for the application's answer any more.
    Withdraw { request: u64 },
}

/// The part of a queue that the runtime's threads see.
pub(crate) struct Messages {
    waiting: Mutex<Waiting>,
    /// Whether the loop has been woken for the waiting messages.
    is_woken: AtomicBool,
    waker: Waker,
    next_id: AtomicU64,
}

#[derive(Default)]
struct Waiting {
    messages: VecDeque<Message>,
    /// Whether the queue went with its loop.
    is_closed: bool,
}

impl Messages {
    fn new(waker: Waker) -> Self {
        Self {
            waiting: Mutex::default(),
            is_woken: AtomicBool::new(false),
            waker,
            next_id: AtomicU64::new(0),
        }
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Adds a message, and wakes the loop unless it has been woken already.
    pub(crate) fn push(&self, message: Message) {
        {
            let mut waiting = lock(&self.waiting);
            if waiting.is_closed {
                drop(waiting);
                return message.refuse();
            }
            waiting.messages.push_back(message);
        }
        if !self.is_woken.swap(true, Ordering::AcqRel) {
            self.waker.wake();
        }
    }

    fn take(&self) -> VecDeque<Message> {
        self.is_woken.store(false, Ordering::Release);
        std::mem::take(&mut lock(&self.waiting).messages)
    }

    fn close(&self) {
        let messages = {
            let mut waiting = lock(&self.waiting);
            waiting.is_closed = true;
            std::mem::take(&mut waiting.messages)
        };
        messages.into_iter().for_each(Message::refuse);
    }
}

impl Message {
    /// Ends a message for a loop that is closed.
    fn refuse(self) {
        match self {
            Self::Ask(call) => call.refuse(),
            Self::Done { .. } | Self::Withdraw { .. } => {}
        }
    }
}

/// Wakes a loop from any thread.
enum Waker {
    /// The loop watches the other end.
    #[cfg(unix)]
    Socket(std::os::unix::net::UnixStream),
    /// A weak reference to the loop, and what its `call_soon_threadsafe` has it call.
    Call { weak_loop: Py<PyAny>, drain: Py<PyAny> },
}

impl Waker {
    fn wake(&self) {
        match self {
            #[cfg(unix)]
            Self::Socket(socket) => {
                use std::io::Write as _;
                // A full socket has woken the loop; a closed one has no loop.
                (&*socket).write_all(&[1]).ok();
            }
            Self::Call { weak_loop, drain } => {
                // A loop that is gone or closed, and an interpreter that ends, need no message.
                Python::try_attach(|py| {
                    weak_loop
                        .call0(py)?
                        .call_method1(py, "call_soon_threadsafe", (drain,))
                        .map(drop)
                });
            }
        }
    }
}

/// The queue of one event loop.
#[pyclass(frozen, module = "innkeeper._core", weakref)]
pub(crate) struct LoopQueue {
    pid: u32,
    messages: Arc<Messages>,
    /// The end of the socket that the loop watches.
    #[cfg(unix)]
    watched: Option<std::os::unix::net::UnixStream>,
    state: Mutex<LoopState>,
}

/// What only the thread of the loop touches.
#[derive(Default)]
struct LoopState {
    futures: HashMap<u64, Py<PyAny>>,
    /// The tasks of the application that answer servers.
    answers: HashMap<u64, Py<PyAny>>,
    /// A large result that is being made, a slice at a time.
    in_progress: Option<(u64, ToPython)>,
    taken: VecDeque<Message>,
    /// Whether the loop goes on with the messages by itself.
    is_paused: bool,
}

/// How long the messages may keep the loop from its other work.
pub(crate) const SLICE: Duration = Duration::from_millis(4);

/// Far in the future, in seconds.
const NEVER_DUE: f64 = 1e9;

/// Weak references to the queues, by loop.
static QUEUES: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static GET_RUNNING_LOOP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

impl LoopQueue {
    /// Starts a call, and returns its future.
    pub(crate) fn start(
        py: Python<'_>,
        work: Work,
        beginning: Beginning,
    ) -> PyResult<Bound<'_, PyAny>> {
        let running_loop = running_loop(py)?;
        let queue = Self::of_loop(py, &running_loop)?;
        let handle = runtime::handle(py)?;
        let future = running_loop.call_method0("create_future")?;
        let messages = queue.get().messages.clone();
        let call = messages.next_id();
        lock(&queue.get().state).futures.insert(call, future.clone().unbind());
        let task = CallTask::start(handle, beginning, async move {
            let outcome = complete(work).await;
            messages.push(Message::Done { call, outcome });
        });
        let on_done = FutureDone { call, task, queue: queue.unbind() };
        future.call_method1("add_done_callback", (on_done,))?;
        Ok(future)
    }

    pub(crate) fn messages(&self) -> Arc<Messages> {
        self.messages.clone()
    }

    /// Returns the loop's queue, and makes one at the first call of the loop.
    fn of_loop<'py>(py: Python<'py>, running: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        let queues = QUEUES.get_or_try_init(py, || -> PyResult<_> {
            Ok(py.import("weakref")?.call_method0("WeakKeyDictionary")?.unbind())
        })?;
        let queues = queues.bind(py);
        let known = queues.call_method1("get", (running,))?;
        if !known.is_none()
            && let Ok(queue) = known.call0()?.cast_into::<Self>()
            // A child after `fork` that goes on with its parent's loop needs a socket of its own.
            && queue.get().pid == std::process::id()
        {
            return Ok(queue);
        }
        let queue = Self::create(py, running)?;
        let weak = py.import("weakref")?.call_method1("ref", (&queue,))?;
        queues.set_item(running, weak)?;
        Ok(queue)
    }

    #[cfg(unix)]
    fn create<'py>(py: Python<'py>, running: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        use std::os::fd::AsRawFd as _;

        use pyo3::exceptions::PyNotImplementedError;

        let (waker, watched) = std::os::unix::net::UnixStream::pair()?;
        waker.set_nonblocking(true)?;
        watched.set_nonblocking(true)?;
        let descriptor = watched.as_raw_fd();
        let messages = Arc::new(Messages::new(Waker::Socket(waker)));
        let queue = Bound::new(py, Self::with_messages(messages, Some(watched)))?;
        match running.call_method1("add_reader", (descriptor, queue.getattr("drain")?)) {
            Ok(_) => Ok(queue),
            Err(error) if error.is_instance_of::<PyNotImplementedError>(py) => {
                Self::create_without_socket(py, running)
            }
            Err(error) => Err(error),
        }
    }

    #[cfg(not(unix))]
    fn create<'py>(py: Python<'py>, running: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        Self::create_without_socket(py, running)
    }

    /// The queue of a loop that watches no socket. `drain` finds the queue through the weak map, so that
    /// the queue and its waker do not keep each other.
    fn create_without_socket<'py>(
        py: Python<'py>,
        running: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Self>> {
        let waker = Waker::Call {
            weak_loop: py.import("weakref")?.call_method1("ref", (running,))?.unbind(),
            drain: Bound::new(py, DrainRunningLoop)?.into_any().unbind(),
        };
        let messages = Arc::new(Messages::new(waker));
        #[cfg(unix)]
        let queue = Bound::new(py, Self::with_messages(messages, None))?;
        #[cfg(not(unix))]
        let queue = Bound::new(py, Self::with_messages(messages))?;
        running.call_method1("call_later", (NEVER_DUE, queue.getattr("drain")?))?;
        Ok(queue)
    }

    fn with_messages(
        messages: Arc<Messages>,
        #[cfg(unix)] watched: Option<std::os::unix::net::UnixStream>,
    ) -> Self {
        Self {
            pid: std::process::id(),
            messages,
            #[cfg(unix)]
            watched,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, LoopState> {
        lock(&self.state)
    }

    /// Takes the bytes of the wakers from the socket.
    fn empty_socket(&self) {
        #[cfg(unix)]
        if let Some(watched) = &self.watched {
            use std::io::Read as _;

            let mut bytes = [0; 64];
            while matches!((&*watched).read(&mut bytes), Ok(64)) {}
        }
    }

    /// Goes on with a large result, for a slice of time.
    fn advance(&self, py: Python<'_>, call: u64, mut conversion: ToPython) -> PyResult<Step> {
        match conversion.advance(py) {
            Progress::Unfinished => {
                self.state().in_progress = Some((call, conversion));
                Ok(Step::Pause)
            }
            Progress::Finished(value) => {
                self.set_result(py, call, value)?;
                Ok(Step::Next)
            }
        }
    }

    fn set_result(&self, py: Python<'_>, call: u64, value: PyResult<Py<PyAny>>) -> PyResult<()> {
        let future = self.state().futures.remove(&call);
        let Some(future) = future else { return Ok(()) };
        let future = future.bind(py);
        if future.call_method0("done")?.is_truthy()? {
            return Ok(());
        }
        match value {
            Ok(value) => future.call_method1("set_result", (value,))?,
            Err(error) => {
                future.call_method1("set_exception", (error,))?;
                // Only coroutines of this package see the future, and they raise the error. If an
                // interrupt keeps one from its `await`, asyncio must not report the error too.
                future.call_method0("exception")?
            }
        };
        Ok(())
    }

    fn handle(&self, py: Python<'_>, message: Message) -> PyResult<Step> {
        match message {
            Message::Done { call, outcome: Ok(Output::Json(tape)) } => {
                return self.advance(py, call, ToPython::new(tape));
            }
            Message::Done { call, outcome: Ok(Output::None) } => {
                self.set_result(py, call, Ok(py.None()))?;
            }
            Message::Done { call, outcome: Ok(Output::Object(make)) } => {
                self.set_result(py, call, make(py))?;
            }
            Message::Done { call, outcome: Err(failure) } => {
                self.set_result(py, call, Err(failure.into_error(py)))?;
            }
            Message::Ask(server_call) => {
                let request = server_call.id();
                let task = server_call.ask(py)?;
                if !task.is_none(py) {
                    self.state().answers.insert(request, task);
                }
            }
            Message::Withdraw { request } => {
                let task = self.state().answers.remove(&request);
                if let Some(task) = task {
                    task.call_method0(py, "cancel")?;
                }
            }
        }
        Ok(Step::Next)
    }
}

/// What the queue does after a message.
enum Step {
    Next,
    /// Other work of the loop is due.
    Pause,
}

#[pymethods]
impl LoopQueue {
    /// Returns the queue of the running loop.
    #[staticmethod]
    fn running(py: Python<'_>) -> PyResult<Bound<'_, Self>> {
        Self::of_loop(py, &running_loop(py)?)
    }

    /// Handles the waiting messages. The loop calls this.
    fn drain(slf: &Bound<'_, Self>) -> PyResult<()> {
        let queue = slf.get();
        queue.empty_socket();
        let logged = logging::deliver(slf.py());
        let taken = queue.messages.take();
        let is_paused = {
            let mut state = queue.state();
            state.taken.extend(taken);
            state.is_paused
        };
        // A second series of slices would keep the loop from its other work.
        let resumed = if is_paused { Ok(()) } else { Self::resume(slf) };
        logged.and(resumed)
    }

    /// Handles the messages that have been taken, for a slice of time.
    fn resume(slf: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        let queue = slf.get();
        let start = Instant::now();
        queue.state().is_paused = false;
        loop {
            let in_progress = queue.state().in_progress.take();
            let step = if let Some((call, conversion)) = in_progress {
                queue.advance(py, call, conversion)
            } else {
                let Some(message) = queue.state().taken.pop_front() else { return Ok(()) };
                queue.handle(py, message)
            };
            let interrupt = match step {
                Ok(Step::Next) if start.elapsed() < SLICE => continue,
                Ok(_) => None,
                Err(error) if is_interrupt(py, &error) => Some(error),
                // One bad message must not keep the others.
                Err(error) => {
                    error.write_unraisable(py, Some(slf.as_any()));
                    continue;
                }
            };
            running_loop(py)?.call_method1("call_soon", (slf.getattr("resume")?,))?;
            queue.state().is_paused = true;
            return interrupt.map_or(Ok(()), Err);
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Ok(state) = self.state.try_lock() else { return Ok(()) };
        state
            .futures
            .values()
            .chain(state.answers.values())
            .try_for_each(|object| visit.call(object))
    }

    fn __clear__(&self) {
        let state = std::mem::take(&mut *self.state());
        drop(state);
    }
}

impl Drop for LoopQueue {
    fn drop(&mut self) {
        if self.pid == std::process::id() {
            self.messages.close();
            return;
        }
        // In a child after `fork`, a thread of the parent may hold the locks behind these for ever.
        std::mem::forget(self.messages.clone());
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        std::mem::forget(std::mem::take(&mut state.taken));
    }
}

/// Drains the queue of the running loop.
#[pyclass(frozen, module = "innkeeper._core")]
struct DrainRunningLoop;

#[pymethods]
impl DrainRunningLoop {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        LoopQueue::drain(&LoopQueue::running(py)?)
    }
}

/// Called when a future is done: to cancel a future drops the call.
#[pyclass(frozen, module = "innkeeper._core")]
struct FutureDone {
    call: u64,
    task: Arc<CallTask>,
    queue: Py<LoopQueue>,
}

impl FutureDone {
    fn cancel(&self) {
        // A task of the parent does not run in a child after `fork`.
        if self.queue.get().pid == std::process::id() {
            self.task.abort();
        }
    }
}

#[pymethods]
impl FutureDone {
    fn __call__(&self, _future: &Bound<'_, PyAny>) {
        let was_pending = self.queue.get().state().futures.remove(&self.call).is_some();
        if was_pending {
            self.cancel();
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.queue)
    }
}

/// The future is done, or gone with its loop.
impl Drop for FutureDone {
    fn drop(&mut self) {
        self.cancel();
    }
}

fn running_loop(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let get = GET_RUNNING_LOOP.get_or_try_init(py, || -> PyResult<_> {
        Ok(py.import("asyncio")?.getattr("get_running_loop")?.unbind())
    })?;
    get.bind(py).call0()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
