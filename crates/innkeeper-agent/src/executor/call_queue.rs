//! Decides and runs the calls of one response, in order and with bounded concurrency.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use innkeeper_host::Progress;
use innkeeper_toolcall::{Json, ResolvedCall};
use tokio::sync::mpsc;

use super::execution::{RunningCall, json_memory_bytes};
use super::{Executor, ToolExecution, ToolSnapshot};
use crate::tools::ToolError;

/// A call that waits for its decision or its start.
#[derive(Debug)]
pub(crate) struct QueuedCall {
    /// The number of the call in the response.
    pub(crate) index: usize,
    pub(crate) call: ResolvedCall,
    /// The arguments as JSON text.
    pub(crate) arguments_text: Arc<str>,
    /// Whether the approver replaced the arguments of the model.
    pub(crate) has_changed_arguments: bool,
    /// The reason if the call is not to be run.
    pub(crate) refusal: Option<String>,
}

impl QueuedCall {
    pub(crate) fn new(index: usize, call: ResolvedCall) -> Self {
        let arguments_text = call.arguments.to_string().into();
        Self { index, call, arguments_text, has_changed_arguments: false, refusal: None }
    }

    pub(super) fn replace_arguments(&mut self, arguments: Json) {
        self.has_changed_arguments |= arguments != self.call.arguments;
        self.arguments_text = arguments.to_string().into();
        self.call.arguments = arguments;
    }

    /// Returns the approximate memory size in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        json_memory_bytes(&self.call.arguments) + self.arguments_text.len()
    }
}

/// The rule that decides when an approved call starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartRule {
    /// After the decisions about all queued calls.
    AfterAllDecisions,
    /// After the decision about the call itself.
    AfterItsDecision,
}

/// Capacity of the progress channel of one call. The agent reads progress as fast as its sink; a
/// server that reports faster loses steps between two displayed ones.
const PROGRESS_CAPACITY: usize = 16;

#[derive(Debug)]
pub(crate) enum QueueEvent {
    /// A call was approved: [`CallQueue::take_ready`] may return a call.
    Approved,
    /// A call was refused before its start.
    Refused {
        /// The record of the call.
        execution: ToolExecution,
        /// The memory size of the queued call in bytes.
        queued_bytes: usize,
    },
    /// A running call reports progress.
    Progress {
        /// The number of the call in the response.
        index: usize,
        progress: Progress,
    },
    /// A call has ended.
    Finished(ToolExecution),
}

/// The decision about one call; an error refuses the call.
type CheckResult = (QueuedCall, Result<(), ToolError>);

/// The calls of one response. Calls are decided one after the other, in their order. Dropping the
/// queue cancels the running calls.
pub(crate) struct CallQueue {
    executor: Executor,
    snapshot: Arc<ToolSnapshot>,
    start_rule: StartRule,
    decisions: Decisions,
    approved: VecDeque<QueuedCall>,
    running: FuturesUnordered<BoxFuture<'static, ToolExecution>>,
    progress: RunningProgress,
    /// The calls that have ended and are not reported yet.
    ended: VecDeque<ToolExecution>,
}

/// The calls without a decision.
#[derive(Default)]
struct Decisions {
    waiting: VecDeque<QueuedCall>,
    current: Option<BoxFuture<'static, CheckResult>>,
}

impl Decisions {
    fn is_empty(&self) -> bool {
        self.current.is_none() && self.waiting.is_empty()
    }
}

#[derive(Default)]
struct RunningProgress {
    is_reported: bool,
    /// By the numbers of the calls.
    receivers: Vec<(usize, mpsc::Receiver<Progress>)>,
}

impl RunningProgress {
    fn open(&mut self, index: usize) -> Option<mpsc::Sender<Progress>> {
        if !self.is_reported {
            return None;
        }
        let (sender, receiver) = mpsc::channel(PROGRESS_CAPACITY);
        self.receivers.push((index, receiver));
        Some(sender)
    }
}

impl std::fmt::Debug for CallQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallQueue")
            .field("undecided", &self.decisions.waiting)
            .field("approved", &self.approved)
            .field("running", &self.running.len())
            .finish_non_exhaustive()
    }
}

impl CallQueue {
    pub(crate) fn new(
        executor: Executor,
        snapshot: Arc<ToolSnapshot>,
        start_rule: StartRule,
    ) -> Self {
        Self {
            executor,
            snapshot,
            start_rule,
            decisions: Decisions::default(),
            approved: VecDeque::new(),
            running: FuturesUnordered::new(),
            progress: RunningProgress::default(),
            ended: VecDeque::new(),
        }
    }

    /// Reports the progress of each call that starts from now on, as [`QueueEvent::Progress`].
    #[must_use]
    pub(crate) fn with_progress(mut self, reports_progress: bool) -> Self {
        self.progress.is_reported = reports_progress;
        self
    }

    /// Adds a call to the queue.
    pub(crate) fn push(&mut self, queued: QueuedCall) {
        self.decisions.waiting.push_back(queued);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty()
            && self.ended.is_empty()
            && self.approved.is_empty()
            && self.decisions.is_empty()
    }

    /// Returns the next approved call if a permit is free. The caller passes the call to
    /// [`Self::start`] or [`Self::refuse`].
    pub(crate) fn take_ready(&mut self) -> Option<QueuedCall> {
        let permits = self.executor.settings.calls.max_parallel.max(1);
        let must_wait =
            self.start_rule == StartRule::AfterAllDecisions && !self.decisions.is_empty();
        // A call that is not reported yet keeps its permit, so that the caller counts its result.
        if must_wait || self.running.len() + self.ended.len() >= permits {
            return None;
        }
        self.approved.pop_front()
    }

    /// Returns calls that [`Self::take_ready`] returned to the start of the queue.
    pub(crate) fn requeue(&mut self, queued: impl DoubleEndedIterator<Item = QueuedCall>) {
        queued.rev().for_each(|queued| self.approved.push_front(queued));
    }

    /// Starts a call that [`Self::take_ready`] returned.
    pub(crate) fn start(&mut self, queued: QueuedCall) {
        let executor = self.executor.clone();
        let snapshot = self.snapshot.clone();
        let sender = self.progress.open(queued.index);
        let running = async move {
            let running_call = RunningCall::new(&queued, executor.timing.clone());
            let (outcome, cached) = executor.run(&snapshot, &queued, sender).await;
            ToolExecution::record(queued, outcome, running_call.finish(), cached)
        };
        self.running.push(running.boxed());
    }

    /// Ends a call that is not run.
    pub(crate) fn refuse(queued: QueuedCall, error: ToolError) -> ToolExecution {
        ToolExecution::record(queued, Err(error), Duration::ZERO, false)
    }

    /// Returns the next change; `None` if the queue is empty or approved calls wait for
    /// [`Self::take_ready`]. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<QueueEvent> {
        poll_fn(|context| self.poll_event(context)).await
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<QueueEvent>> {
        if self.decisions.current.is_none()
            && let Some(queued) = self.decisions.waiting.pop_front()
        {
            self.decisions.current = Some(self.decide(queued).boxed());
        }
        if let Some(deciding) = &mut self.decisions.current
            && let Poll::Ready((queued, decision)) = deciding.poll_unpin(context)
        {
            self.decisions.current = None;
            return Poll::Ready(Some(match decision {
                Ok(()) => {
                    self.approved.push_back(queued);
                    QueueEvent::Approved
                }
                Err(error) => QueueEvent::Refused {
                    queued_bytes: queued.memory_bytes(),
                    execution: Self::refuse(queued, error),
                },
            }));
        }
        // The calls run first: their deadlines must not wait for the reader of their progress.
        while let Poll::Ready(Some(execution)) = self.running.poll_next_unpin(context) {
            self.ended.push_back(execution);
        }
        if let Some(event) = self.next_end() {
            return Poll::Ready(Some(event));
        }
        for (index, receiver) in &mut self.progress.receivers {
            if let Poll::Ready(Some(progress)) = receiver.poll_recv(context) {
                return Poll::Ready(Some(QueueEvent::Progress { index: *index, progress }));
            }
        }
        match self.running.is_empty() && self.decisions.current.is_none() {
            true => Poll::Ready(None),
            false => Poll::Pending,
        }
    }

    /// Returns the remaining progress of the first call that has ended, then its end.
    fn next_end(&mut self) -> Option<QueueEvent> {
        let index = self.ended.front()?.index;
        let receivers = &mut self.progress.receivers;
        if let Some(at) = receivers.iter().position(|(at, _)| *at == index) {
            if let Ok(progress) = receivers[at].1.try_recv() {
                return Some(QueueEvent::Progress { index, progress });
            }
            receivers.swap_remove(at);
        }
        self.ended.pop_front().map(QueueEvent::Finished)
    }

    fn decide(&self, mut queued: QueuedCall) -> impl Future<Output = CheckResult> + Send + 'static {
        let executor = self.executor.clone();
        let snapshot = self.snapshot.clone();
        async move {
            let decision = executor.check(&snapshot, &mut queued).await;
            (queued, decision)
        }
    }
}
