//! The pending requests of a session.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldhash::fast::RandomState;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::{Instant, timeout_at};

use super::call_context::PendingCall;
use super::call_hold::CallHold;
use super::inbound_sink::MessageSource;
use super::open_ids::OpenIds;
use super::pending_request::{PendingRequest, Responder, Waiter};
use super::{OutgoingRequest, Progress, RequestError, RequestResult};
use crate::error::UnavailableReason;

#[derive(Debug, Default)]
struct RequestTable {
    /// By id. The host chooses the ids, so a fast hash is safe.
    requests: HashMap<u64, PendingRequest, RandomState>,
    /// Number of requests that are not in the background.
    call_count: usize,
    /// Requests that the host cancelled.
    cancelled: OpenIds<u64, Option<Arc<dyn CallHold>>>,
    /// Tasks that the application polls.
    detached_tasks: OpenIds<Box<str>>,
    /// Whether a task waits until no call is pending.
    idle_awaited: bool,
    /// When the deadlines are checked next; `None` if no request had a deadline at the last check.
    next_check: Option<Instant>,
    unavailable_reason: Option<UnavailableReason>,
}

/// The state of the connection, for tasks that wait for a change.
#[derive(Clone, Debug, Default)]
struct ConnectionState {
    output_ended: bool,
    unavailable_reason: Option<UnavailableReason>,
    idle: bool,
}

/// Pending requests by id. The lock is held for one map operation, never across an await.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    table: Mutex<RequestTable>,
    /// Notified when the next check of the deadlines must be earlier, and at the close.
    check_moved: Notify,
    /// Whether a request timed out and the server has not responded to any request since.
    overdue: AtomicBool,
    /// Notified of the first response after a timeout.
    responded: Notify,
    next_id: AtomicU64,
    connection_state: watch::Sender<ConnectionState>,
}

impl PendingRequests {
    pub(super) fn new() -> Self {
        // A random start prevents a server from responding to requests before it receives them.
        Self { next_id: AtomicU64::new(fastrand::u64(1..1 << 31)), ..Self::default() }
    }

    fn table(&self) -> MutexGuard<'_, RequestTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the id of the next request; ids are unique.
    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns a number that grows with each request.
    pub(super) fn sent(&self) -> u64 {
        self.next_id.load(Ordering::Relaxed)
    }

    /// Returns whether a caller waits for a response.
    pub(super) fn has_calls(&self) -> bool {
        self.table().call_count > 0
    }

    /// Adds a request; returns whether it is the only call.
    pub(super) fn insert<P>(
        &self,
        out: &OutgoingRequest<'_, P>,
        call: Option<Box<PendingCall>>,
    ) -> Result<(oneshot::Receiver<RequestResult>, bool), RequestError> {
        let deadline = out.deadline;
        let (sender, receiver) = oneshot::channel();
        let mut table = self.table();
        if let Some(reason) = &table.unavailable_reason {
            return Err(RequestError::Unavailable { reason: reason.clone(), sent: false });
        }
        let is_only_call = table.call_count == 0;
        table.call_count += usize::from(!out.background);
        let waiter = Waiter { responder: sender, deadline };
        let mut request =
            PendingRequest::new(Some(waiter), out.progress.clone(), out.background, call);
        request.task_id = out.task_id.map(Into::into);
        table.requests.insert(out.id, request);
        // Deadlines mostly grow, so that a request rarely moves the check.
        let is_earlier = table.next_check.is_none_or(|next| deadline.at < next);
        if is_earlier {
            table.next_check = Some(deadline.at);
        }
        drop(table);
        if is_earlier {
            self.check_moved.notify_one();
        }
        Ok((receiver, is_only_call))
    }

    /// Fails each request at its deadline, until the connection closes. `is_busy` returns whether
    /// the server waits for the application, which counts as activity.
    ///
    /// One timer for all requests: a timer for each costs more than the rest of its wait.
    pub(super) async fn expire(&self, is_busy: impl Fn() -> bool) {
        loop {
            let moved = self.check_moved.notified();
            let next = {
                let table = self.table();
                if table.unavailable_reason.is_some() {
                    return;
                }
                table.next_check
            };
            let Some(next) = next else {
                moved.await;
                continue;
            };
            if timeout_at(next, moved).await.is_err() {
                self.fail_expired(is_busy());
            }
        }
    }

    /// Fails the requests whose deadlines have passed, and sets the next check.
    fn fail_expired(&self, is_active: bool) {
        let now = Instant::now();
        let mut next_check = None;
        let mut expired = Vec::new();
        {
            let mut table = self.table();
            for (id, request) in &mut table.requests {
                match request.expire(now, is_active) {
                    ControlFlow::Break(responder) => expired.push((*id, responder)),
                    ControlFlow::Continue(deadline) => {
                        next_check = [next_check, deadline].into_iter().flatten().min();
                    }
                }
            }
            table.next_check = next_check;
            if !expired.is_empty() {
                // Before the responses that follow, which need the table.
                self.overdue.store(true, Ordering::Release);
            }
        }
        // The oldest requests first.
        expired.sort_unstable_by_key(|(id, _)| *id);
        for (_, responder) in expired {
            // The caller may have been dropped.
            let _ = responder.send(Err(RequestError::Timeout));
        }
    }

    /// Counts a request with a response as open and forwards its progress until it is removed.
    pub(super) fn hold_open(
        &self,
        id: u64,
        progress: Option<mpsc::Sender<Progress>>,
        call: Option<Box<PendingCall>>,
    ) {
        let waiter = PendingRequest::new(None, progress, false, call);
        let mut table = self.table();
        if table.unavailable_reason.is_none() {
            table.call_count += 1;
            table.requests.insert(id, waiter);
        }
    }

    /// Records the task of a request that is held open.
    pub(super) fn set_task_id(&self, id: u64, task_id: &str) {
        if let Some(waiter) = self.table().requests.get_mut(&id) {
            waiter.task_id = Some(task_id.into());
        }
    }

    /// Returns the call that a message from this source belongs to.
    pub(super) fn call_of(&self, source: MessageSource) -> Option<PendingCall> {
        match source {
            MessageSource::Pipe => self.only_call(),
            MessageSource::Response(id) => self.call(id),
            MessageSource::Standalone => None,
        }
    }

    /// Returns the call of a pending request.
    pub(super) fn call(&self, id: u64) -> Option<PendingCall> {
        self.table().requests.get(&id)?.call.as_deref().cloned()
    }

    /// Returns the call that created a task, or that waits for its result if no other call does.
    pub(super) fn call_of_task(&self, task_id: &str) -> Option<PendingCall> {
        let table = self.table();
        let mut waiters =
            table.requests.values().filter(|waiter| waiter.task_id.as_deref() == Some(task_id));
        let call = waiters.next()?.call.as_deref()?;
        waiters.next().is_none().then(|| call.clone())
    }

    /// Records a task that the application polls, so that a message without a task belongs to no
    /// call until the task ends.
    pub(super) fn detach_task(&self, task_id: &str, lifetime: Duration) {
        // Of too many tasks, the last to expire counts for all of them.
        let _forgotten =
            self.table().detached_tasks.insert(task_id.into(), Instant::now() + lifetime, ());
    }

    pub(super) fn end_task(&self, task_id: &str) {
        self.table().detached_tasks.remove(task_id);
    }

    /// Returns the call that all requests in flight belong to. A request with a response and
    /// without a task has ended for the server, although its caller has not removed it yet.
    fn only_call(&self) -> Option<PendingCall> {
        let mut table = self.table();
        if !table.cancelled.is_empty() || !table.detached_tasks.is_empty() {
            return None;
        }
        let mut waiters = table.requests.values().filter(|waiter| {
            !waiter.background && (waiter.is_unanswered() || waiter.task_id.is_some())
        });
        let call = waiters.next()?.call.as_deref()?;
        waiters
            .all(|waiter| waiter.call.as_ref().is_some_and(|other| other.id == call.id))
            .then(|| call.clone())
    }

    /// Prepares for a request of the server that may belong to any call in flight: the results of
    /// all of them may depend on the answer, and calls whose time is over are held no more.
    pub(super) fn prepare_shared_request(&self) {
        let mut table = self.table();
        table.cancelled.remove_expired();
        for call in table.requests.values().filter_map(|request| request.call.as_ref()) {
            if let Some(callback) = &call.callback {
                callback.use_callback();
            }
        }
    }

    /// Returns the principal of all requests in flight, if they are of one principal. The limits of
    /// open requests apply to the principal, also for a request that belongs to no certain call.
    pub(super) fn only_principal(&self) -> Option<Arc<str>> {
        let table = self.table();
        let open = table.requests.values().filter(|waiter| !waiter.background);
        let mut principals =
            open.map(|waiter| waiter.call.as_ref()?.caller.as_ref()?.principal.as_ref());
        let first = principals.next()??;
        principals.all(|other| other == Some(first)).then(|| first.clone())
    }

    /// Returns the sender for a request's response; the request counts as open until it is removed.
    pub(super) fn take_responder(&self, id: u64) -> Option<Responder> {
        let mut table = self.table();
        let Some(request) = table.requests.get_mut(&id) else {
            table.cancelled.remove(&id);
            return None;
        };
        request.timed_out = false;
        let waiter = request.waiter.take()?;
        // Reject progress after the response.
        request.last_progress = f64::INFINITY;
        Some(waiter.responder)
    }

    pub(super) fn record_response(&self) {
        if self.is_overdue() && self.overdue.swap(false, Ordering::AcqRel) {
            self.responded.notify_waiters();
        }
    }

    /// Waits until the server has responded to any request since the last timeout.
    pub(super) async fn responded(&self) {
        loop {
            let responded = self.responded.notified();
            if !self.is_overdue() {
                return;
            }
            responded.await;
        }
    }

    /// Returns whether a request timed out and the server has not responded to any request since.
    pub(super) fn is_overdue(&self) -> bool {
        self.overdue.load(Ordering::Acquire)
    }

    /// Returns whether a call with a lower id still waits for its response.
    pub(super) fn has_earlier_call(&self, id: u64) -> bool {
        self.table()
            .requests
            .iter()
            .any(|(other, request)| *other < id && !request.background && request.waiter.is_some())
    }

    /// Returns whether the server may still process a cancelled request.
    pub(super) fn has_cancelled(&self) -> bool {
        !self.table().cancelled.is_empty()
    }

    /// Removes a request; returns whether it had no response. If the server may continue to process
    /// the request without a response, the request counts as ended after `open_for`.
    pub(super) fn remove(&self, id: u64, open_for: Option<Duration>) -> bool {
        let mut table = self.table();
        let waiter = table.requests.remove(&id);
        let mut forgotten = None;
        if waiter.as_ref().is_some_and(|waiter| !waiter.background) {
            table.call_count -= 1;
        }
        if table.call_count == 0 && std::mem::take(&mut table.idle_awaited) {
            self.connection_state.send_modify(|state| state.idle = true);
        }
        let unanswered = waiter.as_ref().is_some_and(PendingRequest::is_unanswered);
        if let Some(open_for) = open_for.filter(|_| unanswered) {
            let hold = waiter.as_ref().and_then(PendingRequest::hold).cloned();
            let overflow = table.cancelled.insert(id, Instant::now() + open_for, hold).flatten();
            forgotten = overflow.map(|hold| (hold, open_for));
        }
        drop(table);
        if let Some((hold, open_for)) = forgotten {
            hold.forget(open_for);
        }
        unanswered
    }

    /// Records progress of a request and returns its progress receiver; `None` if the progress did
    /// not increase or the request is not pending.
    pub(super) fn record_progress(
        &self,
        id: u64,
        new_progress: f64,
    ) -> Option<Option<mpsc::Sender<Progress>>> {
        let mut table = self.table();
        let waiter =
            table.requests.get_mut(&id).filter(|waiter| new_progress > waiter.last_progress)?;
        waiter.last_progress = new_progress;
        waiter.last_activity = Some(Instant::now());
        Some(waiter.progress.clone())
    }

    /// Returns whether this request is waiting for its response.
    pub(super) fn is_awaited(&self, id: u64) -> bool {
        self.table().requests.get(&id).is_some_and(|request| request.waiter.is_some())
    }

    /// Resets the idle time of all pending requests.
    pub(super) fn touch_all(&self) {
        let now = Instant::now();
        for waiter in self.table().requests.values_mut() {
            waiter.last_activity = Some(now);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.table().call_count
    }

    /// Fails all pending and future requests; the first reason is kept.
    pub(super) fn close(&self, reason: &UnavailableReason) {
        let waiting = {
            let mut table = self.table();
            table.unavailable_reason.get_or_insert_with(|| reason.clone());
            table.call_count = 0;
            table.cancelled = OpenIds::default();
            std::mem::take(&mut table.requests)
        };
        // Fail the oldest requests first.
        let mut waiting: Vec<_> = waiting.into_iter().collect();
        waiting.sort_unstable_by_key(|(id, _)| *id);
        for (_, waiter) in waiting {
            let error = RequestError::Unavailable { reason: reason.clone(), sent: true };
            // The caller may have been dropped.
            let _ = waiter.waiter.map(|waiter| waiter.responder.send(Err(error)));
        }
        self.check_moved.notify_one();
        self.connection_state.send_modify(|state| {
            state.unavailable_reason.get_or_insert_with(|| reason.clone());
            state.output_ended = true;
            state.idle = true;
        });
    }

    pub(super) fn end_output(&self) {
        self.connection_state.send_modify(|state| state.output_ended = true);
    }

    pub(super) async fn output_ended(&self) {
        // `self` holds the sender, so the wait cannot fail.
        let _ = self.connection_state.subscribe().wait_for(|state| state.output_ended).await;
    }

    pub(super) async fn closed(&self) -> UnavailableReason {
        let mut state = self.connection_state.subscribe();
        let observed = state.wait_for(|state| state.unavailable_reason.is_some()).await;
        observed
            .ok()
            .and_then(|state| state.unavailable_reason.clone())
            .unwrap_or(UnavailableReason::ClosedOutput)
    }

    pub(super) async fn idle(&self) {
        let mut state = self.connection_state.subscribe();
        // A call may have started further work, so check again after the session is idle.
        loop {
            self.connection_state.send_modify(|state| state.idle = false);
            let is_idle = {
                let mut table = self.table();
                table.idle_awaited = table.call_count > 0;
                table.call_count == 0
            };
            if is_idle {
                // Other tasks may wait for the same state.
                return self.connection_state.send_modify(|state| state.idle = true);
            }
            let _ = state.wait_for(|state| state.idle).await;
        }
    }
}
