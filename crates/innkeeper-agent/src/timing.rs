//! The clock, the delays and the randomness of runs, calls, requests and logs.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Either, select};
use tokio::task::unconstrained;
use tokio::time::Instant;

/// The only source of time and chance for an agent, a chat, their executor and the transport, so
/// that a simulation can replace each function. Default: the clocks of Tokio and of the system, and
/// a random generator.
#[derive(Clone)]
pub(crate) struct Timing {
    /// Returns the current time.
    pub(crate) now: Arc<dyn Fn() -> Instant + Send + Sync>,
    /// Returns the date and the time of day, for logs.
    pub(crate) system_time: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    /// Returns a future that completes after a duration.
    pub(crate) sleep: Arc<dyn Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync>,
    /// Returns a number from 0 to 1 that varies a delay.
    pub(crate) jitter: Arc<dyn Fn() -> f64 + Send + Sync>,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            now: Arc::new(Instant::now),
            system_time: Arc::new(SystemTime::now),
            // Without Tokio's task budget: a model that always has the next chunk uses the budget
            // up, and the timeout of the response would never fire.
            sleep: Arc::new(|duration| unconstrained(tokio::time::sleep(duration)).boxed()),
            jitter: Arc::new(fastrand::f64),
        }
    }
}

impl fmt::Debug for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timing").finish_non_exhaustive()
    }
}

impl Timing {
    pub(crate) fn now(&self) -> Instant {
        (self.now)()
    }

    pub(crate) fn system_time(&self) -> SystemTime {
        (self.system_time)()
    }

    /// Returns the time since `start`.
    pub(crate) fn elapsed(&self, start: Instant) -> Duration {
        self.now().saturating_duration_since(start)
    }

    pub(crate) async fn sleep(&self, duration: Duration) {
        (self.sleep)(duration).await;
    }

    pub(crate) fn jitter(&self) -> f64 {
        (self.jitter)()
    }

    /// Returns the output of the future, or `None` after `limit`.
    pub(crate) async fn timeout<T>(
        &self,
        limit: Duration,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        match select(pin!(future), (self.sleep)(limit)).await {
            Either::Left((output, _)) => Some(output),
            Either::Right(((), _)) => None,
        }
    }

    /// Returns the output of the future, or `None` after `deadline`.
    pub(crate) async fn timeout_at<T>(
        &self,
        deadline: Instant,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        self.timeout(deadline.saturating_duration_since(self.now()), future).await
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use super::*;

    /// A future that is never idle: each poll uses the task budget up and takes a millisecond.
    async fn stay_busy(limit: Duration) {
        let start = Instant::now();
        poll_fn(|context| {
            while pin!(tokio::task::consume_budget()).poll(context).is_ready() {}
            let _ = pin!(tokio::time::advance(Duration::from_millis(1))).poll(context);
            if start.elapsed() < limit { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_timeout_ends_a_future_that_is_never_idle() {
        let busy = stay_busy(Duration::from_secs(10));
        let output = Timing::default().timeout(Duration::from_secs(1), busy).await;
        assert_eq!(output, None);
    }

    #[tokio::test(start_paused = true)]
    async fn an_output_at_the_limit_is_not_lost() {
        let limit = Duration::from_secs(1);
        let output = async { tokio::time::sleep(limit).await };
        assert_eq!(Timing::default().timeout(limit, output).await, Some(()));
    }
}
