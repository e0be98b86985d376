//! The task of one call.
//!
//! The first step of a call writes its request. Where the thread that starts the call does that itself,
//! no other thread wakes up before the answer is there; a wake-up can cost more than all of the rest.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::logging;
use crate::operation::Beginning;

type Steps = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A call that has begun.
pub(crate) struct CallTask {
    runtime: Handle,
    state: Mutex<State>,
}

enum State {
    /// The first step is under way.
    Beginning {
        is_woken: bool,
    },
    /// The first step has been made. The runtime takes over when there is something to do.
    Waiting(Steps),
    Running(AbortHandle),
    Ended,
}

impl CallTask {
    /// Starts a call; it ends early if it is aborted.
    pub(crate) fn start(
        runtime: Handle,
        beginning: Beginning,
        steps: impl Future<Output = ()> + Send + 'static,
    ) -> Arc<Self> {
        match beginning {
            Beginning::Here => Self::start_here(runtime, Box::pin(steps)),
            Beginning::Runtime => {
                let state = Mutex::new(State::Running(runtime.spawn(steps).abort_handle()));
                Arc::new(Self { runtime, state })
            }
        }
    }

    fn start_here(runtime: Handle, mut steps: Steps) -> Arc<Self> {
        let state = Mutex::new(State::Beginning { is_woken: false });
        let task = Arc::new(Self { runtime, state });
        let waker = Waker::from(task.clone());
        let context = task.runtime.enter();
        let step = logging::with_log(|| steps.as_mut().poll(&mut Context::from_waker(&waker)));
        drop(context);
        let mut state = task.state();
        *state = match (step, &*state) {
            (Poll::Ready(()), _) => State::Ended,
            (Poll::Pending, State::Beginning { is_woken: true }) => task.spawn(steps),
            (Poll::Pending, _) => State::Waiting(steps),
        };
        drop(state);
        task
    }

    /// Drops the call.
    pub(crate) fn abort(&self) {
        let state = std::mem::replace(&mut *self.state(), State::Ended);
        match state {
            State::Running(task) => task.abort(),
            State::Waiting(steps) => {
                // The call has timers, which need the runtime.
                let _context = self.runtime.enter();
                logging::with_log(|| drop(steps));
            }
            State::Beginning { .. } | State::Ended => {}
        }
    }

    fn spawn(&self, steps: Steps) -> State {
        State::Running(self.runtime.spawn(steps).abort_handle())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for CallTask {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.state();
        *state = match std::mem::replace(&mut *state, State::Ended) {
            State::Waiting(steps) => self.spawn(steps),
            State::Beginning { .. } => State::Beginning { is_woken: true },
            other => other,
        };
    }
}
