//! One pending request, with its deadline.

use std::ops::ControlFlow;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::call_context::PendingCall;
use super::call_hold::CallHold;
use super::{Progress, RequestDeadline, RequestResult};

/// The caller that waits for a response.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) responder: Responder,
    pub(super) deadline: RequestDeadline,
}

#[derive(Debug)]
pub(super) struct PendingRequest {
    /// `None` after the response or the timeout.
    pub(super) waiter: Option<Waiter>,
    /// Whether the deadline passed without a response.
    pub(super) timed_out: bool,
    pub(super) progress: Option<mpsc::Sender<Progress>>,
    pub(super) last_progress: f64,
    /// Time of the server's last activity on this request.
    pub(super) last_activity: Option<Instant>,
    /// Whether the request is excluded from the number of calls.
    pub(super) background: bool,
    /// The call that the request belongs to; `None` for requests of the host itself.
    pub(super) call: Option<Box<PendingCall>>,
    /// The task that the request created, or whose result the request returns.
    pub(super) task_id: Option<Box<str>>,
}

impl PendingRequest {
    pub(super) fn new(
        waiter: Option<Waiter>,
        progress: Option<mpsc::Sender<Progress>>,
        background: bool,
        call: Option<Box<PendingCall>>,
    ) -> Self {
        Self {
            waiter,
            timed_out: false,
            progress,
            last_progress: f64::NEG_INFINITY,
            last_activity: None,
            background,
            call,
            task_id: None,
        }
    }

    /// Returns what the application gave the host to hold while the server processes the call.
    pub(super) fn hold(&self) -> Option<&Arc<dyn CallHold>> {
        self.call.as_ref()?.caller.as_ref()?.hold.as_ref()
    }

    /// Returns whether the server has not responded.
    pub(super) fn is_unanswered(&self) -> bool {
        self.waiter.is_some() || self.timed_out
    }

    /// Takes the responder if the deadline has passed, else returns the deadline.
    pub(super) fn expire(
        &mut self,
        now: Instant,
        is_active: bool,
    ) -> ControlFlow<Responder, Option<Instant>> {
        let Some(waiter) = &mut self.waiter else { return ControlFlow::Continue(None) };
        if waiter.deadline.at <= now {
            let last_activity = if is_active { Some(now) } else { self.last_activity };
            waiter.deadline.at = waiter.deadline.extended(last_activity);
        }
        if waiter.deadline.at > now {
            return ControlFlow::Continue(Some(waiter.deadline.at));
        }
        self.timed_out = true;
        let waiter = self.waiter.take();
        waiter.map_or(ControlFlow::Continue(None), |waiter| ControlFlow::Break(waiter.responder))
    }
}

pub(super) type Responder = oneshot::Sender<RequestResult>;
