//! When a request that was lost is sent again, and after which pause.
//!
//! Only a request that provably did not run, or that may run twice, and only while the reason can
//! pass by itself: a deadline, an answer of any kind and a server that is gone end it.

use std::ops::ControlFlow;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::{Instant, sleep};

use crate::config::Retry;
use crate::error::Lost;
use crate::server::session::{Answer, Fault};

/// The most repetitions, whatever a caller asks for; the bound of `retry.max` as well.
const MOST: u32 = 10;

/// The share by which a pause is moved to either side, so that those who failed together do not
/// come back together.
const SPREAD: f64 = 0.1;

/// How one request may be sent again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) policy: Retry,
    /// How often; instead of the policy's own number.
    pub(crate) most: u32,
    /// Whether it may run twice.
    pub(crate) harmless: bool,
    /// No pause ends after this.
    pub(crate) deadline: Instant,
}

/// A request that is about to be sent again.
#[derive(Debug)]
pub(crate) struct Again<'a> {
    /// Which attempt comes next, from 2.
    pub(crate) attempt: u32,
    pub(crate) delay: Duration,
    pub(crate) reason: &'a Lost,
}

impl Plan {
    /// The pause after so many attempts; `None` if there must not be another one. `luck` is from
    /// 0 to 1.
    fn pause(&self, attempts: u32, reason: &Lost, sent: bool, luck: f64) -> Option<Duration> {
        if attempts > self.most.min(MOST) || (sent && !self.harmless) {
            return None;
        }
        let asked = match reason {
            Lost::Unreachable(_) | Lost::Broken(_) | Lost::Refused(_) => Duration::ZERO,
            Lost::Busy { retry_after, .. } => retry_after.unwrap_or_default(),
            Lost::Exited(_)
            | Lost::ClosedOutput
            | Lost::ClosedInput
            | Lost::Silent { .. }
            | Lost::NotStarted(_)
            | Lost::Starting
            | Lost::Shutdown
            | Lost::NotSignedIn(_)
            | Lost::Noise
            | Lost::ResultsNotTaken => return None,
        };
        let Retry { initial_delay, max_delay, .. } = self.policy;
        let doubled = initial_delay.saturating_mul(1 << attempts.saturating_sub(1).min(MOST));
        let spread = doubled.min(max_delay).mul_f64(1.0 - SPREAD + 2.0 * SPREAD * luck);
        Some(spread.max(asked).min(max_delay))
    }
}

/// The attempts of one request so far.
#[derive(Debug)]
pub(crate) struct Attempts {
    plan: Plan,
    made: u32,
    may_have_run: bool,
    /// What became of the last one; the deadline while there was none.
    last: Fault,
}

impl Attempts {
    pub(crate) fn new(plan: Plan) -> Self {
        Self { plan, made: 0, may_have_run: false, last: Fault::Late }
    }

    /// How many there were.
    pub(crate) fn made(&self) -> u32 {
        self.made
    }

    /// Takes what came of an attempt, `None` if there was no time to send it. Goes on after a pause
    /// if there may be another one, else gives the answer of all. `over` resolves when no further
    /// one can succeed; `tell` learns of a pause as it begins.
    pub(crate) async fn after(
        &mut self,
        answer: Option<Answer>,
        over: impl Future<Output = Lost>,
        tell: impl FnOnce(Again<'_>),
    ) -> ControlFlow<Answer> {
        let (reason, sent) = match answer {
            Some(Err(Fault::Lost { reason, sent })) => (reason, sent),
            Some(answered) => {
                self.made += 1;
                return ControlFlow::Break(answered);
            }
            None => return ControlFlow::Break(Err(self.take_last())),
        };
        self.made += 1;
        self.may_have_run |= sent;
        let pause = self.plan.pause(self.made, &reason, sent, fastrand::f64());
        let in_time = |delay: &Duration| Instant::now() + *delay < self.plan.deadline;
        let Some(delay) = pause.filter(in_time) else {
            return ControlFlow::Break(Err(self.lost(reason)));
        };
        tokio::pin!(over);
        if over.as_mut().now_or_never().is_some() {
            return ControlFlow::Break(Err(self.lost(reason)));
        }
        tell(Again { attempt: self.made + 1, delay, reason: &reason });
        self.last = self.lost(reason);
        tokio::select! {
            biased;
            _ = over => ControlFlow::Break(Err(self.take_last())),
            () = sleep(delay) => ControlFlow::Continue(()),
        }
    }

    fn lost(&self, reason: Lost) -> Fault {
        Fault::Lost { reason, sent: self.may_have_run }
    }

    fn take_last(&mut self) -> Fault {
        std::mem::replace(&mut self.last, Fault::Late)
    }
}

#[cfg(test)]
mod tests;
