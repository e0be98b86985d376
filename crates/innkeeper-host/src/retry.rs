//! Decides when a lost request is sent again.
//!
//! The host retries a request only if the request provably did not run or may run twice, and only
//! while the cause can disappear by itself: a deadline, any response or a terminated server ends
//! the retries.

use std::ops::ControlFlow;
use std::time::Duration;

use futures_util::FutureExt;
use innkeeper_config::RetryPolicy;
use tokio::time::{Instant, sleep};

use crate::backoff::{doubled, with_jitter};
use crate::error::UnavailableReason;
use crate::session::{RequestError, RequestResult};

/// Maximum number of retries of any caller; also the upper limit of `retry.max`.
const MAX_RETRIES: u32 = 10;

/// The retry limits of one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryPlan {
    pub(crate) policy: RetryPolicy,
    /// Maximum number of retries; overrides the number of the policy.
    pub(crate) max_retries: u32,
    /// Whether the request may run twice.
    pub(crate) retry_safe: bool,
    /// Latest end of a backoff.
    pub(crate) deadline: Instant,
}

/// A notice that a request is about to be retried.
#[derive(Debug)]
pub(crate) struct RetryNotice<'a> {
    /// Number of the next attempt, starting at 2.
    pub(crate) attempt: u32,
    pub(crate) delay: Duration,
    pub(crate) reason: &'a UnavailableReason,
}

impl RetryPlan {
    /// Returns the backoff after this number of attempts; `None` if no retry is allowed. The last
    /// argument selects the jitter, from 0 to 1.
    fn backoff(
        &self,
        attempts: u32,
        reason: &UnavailableReason,
        sent: bool,
        jitter: f64,
    ) -> Option<Duration> {
        if attempts > self.max_retries.min(MAX_RETRIES) || (sent && !self.retry_safe) {
            return None;
        }
        let retry_after_floor = match reason {
            UnavailableReason::Unreachable { .. }
            | UnavailableReason::ConnectionLost(_)
            | UnavailableReason::ConnectionRejected(_) => Duration::ZERO,
            UnavailableReason::Busy { retry_after, .. } => retry_after.unwrap_or_default(),
            UnavailableReason::Exited { .. }
            | UnavailableReason::ClosedOutput
            | UnavailableReason::ClosedInput
            | UnavailableReason::Unresponsive { .. }
            | UnavailableReason::NotStarted(_)
            | UnavailableReason::InvalidConfiguration(_)
            | UnavailableReason::Starting { .. }
            | UnavailableReason::Shutdown
            | UnavailableReason::Unauthorized(_)
            | UnavailableReason::InvalidMessages
            | UnavailableReason::ResultBufferFull
            | UnavailableReason::NotSent(_) => return None,
        };
        let RetryPolicy { initial_delay, max_delay, .. } = self.policy;
        let delay = doubled(initial_delay, attempts.saturating_sub(1), max_delay);
        Some(with_jitter(delay, jitter).max(retry_after_floor).min(max_delay))
    }
}

#[derive(Debug)]
pub(crate) struct Attempts {
    plan: RetryPlan,
    count: u32,
    may_have_run: bool,
    /// Error of the last attempt; initially a timeout.
    last_error: RequestError,
}

impl Attempts {
    pub(crate) fn new(plan: RetryPlan) -> Self {
        Self { plan, count: 0, may_have_run: false, last_error: RequestError::Timeout }
    }

    /// Returns the number of attempts.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Counts an attempt with a response, which ends the retries.
    pub(crate) fn record_response(&mut self) {
        self.count += 1;
    }

    /// Handles the result of an attempt; `None` if the deadline passed before the attempt was sent.
    /// Waits for the backoff and continues if a retry is allowed, else breaks with the final
    /// result. The future resolves when no further attempt can succeed; the closure is called when
    /// a backoff starts.
    pub(crate) async fn handle_result(
        &mut self,
        result: Option<RequestResult>,
        closed: impl Future<Output = UnavailableReason>,
        report: impl FnOnce(RetryNotice<'_>),
    ) -> ControlFlow<RequestResult> {
        let (reason, sent) = match result {
            Some(Err(RequestError::Unavailable { reason, sent })) => (reason, sent),
            Some(final_result) => {
                self.record_response();
                return ControlFlow::Break(final_result);
            }
            None => return ControlFlow::Break(Err(self.take_last_error())),
        };
        self.count += 1;
        self.may_have_run |= sent;
        let wait_time = self.plan.backoff(self.count, &reason, sent, fastrand::f64());
        let delay = wait_time.filter(|delay| Instant::now() + *delay < self.plan.deadline);
        let Some(delay) = delay else {
            return ControlFlow::Break(Err(self.unavailable_error(reason)));
        };
        tokio::pin!(closed);
        if closed.as_mut().now_or_never().is_some() {
            return ControlFlow::Break(Err(self.unavailable_error(reason)));
        }
        report(RetryNotice { attempt: self.count + 1, delay, reason: &reason });
        self.last_error = self.unavailable_error(reason);
        tokio::select! {
            biased;
            _ = closed => ControlFlow::Break(Err(self.take_last_error())),
            () = sleep(delay) => ControlFlow::Continue(()),
        }
    }

    fn unavailable_error(&self, reason: UnavailableReason) -> RequestError {
        RequestError::Unavailable { reason, sent: self.may_have_run }
    }

    fn take_last_error(&mut self) -> RequestError {
        std::mem::replace(&mut self.last_error, RequestError::Timeout)
    }
}

#[cfg(test)]
mod tests;
