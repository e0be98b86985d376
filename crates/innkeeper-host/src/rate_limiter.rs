//! Limits the rate at which unsolicited messages are read while other servers do work.
//!
//! A server that floods the host then blocks on its own pipe, and leaves the CPU to other servers.
//! Responses to calls are not limited, because their number cannot exceed the number of requests.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

/// Cost of a message in addition to its bytes: reading and dropping a message takes as long as
/// copying this many bytes.
const MESSAGE_COST: u64 = 2 << 10;

/// Cost of a request in addition to an eighth of its bytes: the host responds to a request and uses
/// its content (an image for a model).
const REQUEST_COST: u64 = 16 << 10;

/// Rate limit in bytes per millisecond: 32 small messages, a tenth of what one CPU can read. No
/// useful server reports, logs or requests that often.
const BYTES_PER_MILLISECOND: u64 = 64 << 10;

/// Maximum burst in bytes: 1,000 small messages, as after a start or a large change.
const BURST_BYTES: u64 = 2 << 20;

/// Maximum number of bytes per read of a throttled pipe: the server can then write a few dozen
/// small messages, and blocks again before its CPU time slice ends.
const THROTTLED_READ_BYTES: u64 = 4 << 10;

/// Burst capacity in bytes that ends small reads: about 8 ms without a flood.
const RECOVERY_BYTES: u64 = BURST_BYTES / 4;

/// The rate limiter for unsolicited messages of one server.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    bucket: Mutex<TokenBucket>,
    over_limit: AtomicBool,
    exhausted: AtomicBool,
    reported: AtomicBool,
    stopped: AtomicBool,
    stopping: Notify,
}

#[derive(Debug)]
struct TokenBucket {
    /// Remaining burst capacity in bytes.
    remaining: u64,
    /// Bytes received beyond the burst capacity.
    debt: u64,
    refilled_at: Instant,
}

impl TokenBucket {
    fn full() -> Self {
        Self { remaining: BURST_BYTES, debt: 0, refilled_at: Instant::now() }
    }

    /// Adds capacity for the elapsed time, in whole milliseconds like tokio's timers.
    fn refill(&mut self) {
        let millis = u64::try_from(self.refilled_at.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.refilled_at += Duration::from_millis(millis);
        let earned = millis.saturating_mul(BYTES_PER_MILLISECOND);
        let paid = earned.min(self.debt);
        self.debt -= paid;
        self.remaining = self.remaining.saturating_add(earned - paid).min(BURST_BYTES);
    }
}

impl RateLimiter {
    pub(crate) fn new() -> Self {
        let [over_limit, exhausted, reported, stopped] =
            std::array::from_fn(|_| AtomicBool::default());
        Self {
            bucket: Mutex::new(TokenBucket::full()),
            over_limit,
            exhausted,
            reported,
            stopped,
            stopping: Notify::new(),
        }
    }

    /// Counts one unsolicited message or discarded bytes.
    pub(crate) fn count(&self, bytes: u64) {
        self.spend(bytes.saturating_add(MESSAGE_COST));
    }

    pub(crate) fn count_request(&self, bytes: u64) {
        self.spend((bytes / 8).saturating_add(REQUEST_COST));
    }

    fn spend(&self, cost: u64) {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        bucket.refill();
        let at_once = cost.min(bucket.remaining);
        bucket.remaining -= at_once;
        bucket.debt = bucket.debt.saturating_add(cost - at_once);
        if bucket.remaining == 0 {
            self.exhausted.store(true, Ordering::Relaxed);
        }
        if bucket.debt > 0 {
            self.over_limit.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the maximum number of bytes for the next read.
    pub(crate) fn read_limit(&self) -> u64 {
        if !self.exhausted.load(Ordering::Relaxed) {
            return u64::MAX;
        }
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        bucket.refill();
        let calm = bucket.remaining >= RECOVERY_BYTES;
        self.exhausted.store(!calm, Ordering::Relaxed);
        if calm { u64::MAX } else { THROTTLED_READ_BYTES }
    }

    /// Cancels the debt: nobody else needs the CPU time.
    pub(crate) fn forgive(&self) {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        *bucket = TokenBucket::full();
        self.over_limit.store(false, Ordering::Relaxed);
        self.exhausted.store(false, Ordering::Relaxed);
    }

    /// Disables throttling: the process has exited, and only the rest of its pipe remains.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.stopping.notify_waiters();
    }

    /// Returns whether the reader must call [`Self::throttle`] first.
    pub(crate) fn should_throttle(&self) -> bool {
        self.over_limit.load(Ordering::Relaxed)
    }

    /// Returns true on the first call, for a single log message.
    pub(crate) fn take_first_report(&self) -> bool {
        !self.reported.swap(true, Ordering::Relaxed)
    }

    /// Waits until the debt is repaid: one millisecond for each [`BYTES_PER_MILLISECOND`], which is
    /// a quarter of a second for one message at the usual limit of 16 MiB.
    pub(crate) async fn throttle(&self) {
        self.over_limit.store(false, Ordering::Relaxed);
        let stop_signal = self.stopping.notified();
        if self.stopped.load(Ordering::Acquire) {
            return;
        }
        let owed = {
            let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
            bucket.refill();
            bucket.debt
        };
        if owed > 0 {
            tokio::select! {
                () = sleep(Duration::from_millis(owed.div_ceil(BYTES_PER_MILLISECOND))) => {}
                () = stop_signal => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGES_PER_BURST: u64 = BURST_BYTES / MESSAGE_COST;

    #[tokio::test(start_paused = true)]
    async fn a_burst_at_the_limit_is_read_at_once_and_one_message_more_after_a_pause() {
        let pace = RateLimiter::new();
        (0..MESSAGES_PER_BURST).for_each(|_| pace.count(0));
        assert!(!pace.should_throttle());
        pace.count(0);
        assert!(pace.should_throttle());
        let before = Instant::now();
        pace.throttle().await;
        assert_eq!(before.elapsed(), Duration::from_millis(1));
        assert!(!pace.should_throttle());
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_read_at_the_rate_and_a_quiet_time_makes_up_for_it() {
        let pace = RateLimiter::new();
        let before = Instant::now();
        for _ in 0..100 * BYTES_PER_MILLISECOND / MESSAGE_COST + MESSAGES_PER_BURST {
            pace.count(0);
            if pace.should_throttle() {
                pace.throttle().await;
            }
        }
        assert_eq!(before.elapsed(), Duration::from_millis(100));
        sleep(Duration::from_millis(BURST_BYTES / BYTES_PER_MILLISECOND)).await;
        (0..MESSAGES_PER_BURST).for_each(|_| pace.count(0));
        assert!(!pace.should_throttle());
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_that_are_dropped_count_by_their_number() {
        let pace = RateLimiter::new();
        pace.count(BURST_BYTES - MESSAGE_COST);
        assert!(!pace.should_throttle());
        pace.count(10 * BYTES_PER_MILLISECOND - MESSAGE_COST);
        let before = Instant::now();
        pace.throttle().await;
        assert_eq!(before.elapsed(), Duration::from_millis(10));
    }

    #[tokio::test(start_paused = true)]
    async fn requests_cost_more_and_a_server_without_credit_is_read_in_small_pieces() {
        let pace = RateLimiter::new();
        (1..BURST_BYTES / REQUEST_COST).for_each(|_| pace.count_request(0));
        assert_eq!(pace.read_limit(), u64::MAX);
        pace.count_request(0);
        assert_eq!((pace.read_limit(), pace.should_throttle()), (THROTTLED_READ_BYTES, false));
        pace.count_request(0);
        assert_eq!((pace.read_limit(), pace.should_throttle()), (THROTTLED_READ_BYTES, true));
        sleep(Duration::from_millis((RECOVERY_BYTES + REQUEST_COST) / BYTES_PER_MILLISECOND)).await;
        assert_eq!(pace.read_limit(), THROTTLED_READ_BYTES);
        sleep(Duration::from_millis(1)).await;
        assert_eq!(pace.read_limit(), u64::MAX, "it was quiet long enough");
    }

    #[tokio::test(start_paused = true)]
    async fn what_an_ended_process_has_left_is_read_without_a_pause() {
        let pace = RateLimiter::new();
        pace.count(BURST_BYTES + 1000 * BYTES_PER_MILLISECOND);
        let before = Instant::now();
        let stop_later = async {
            sleep(Duration::from_millis(10)).await;
            pace.stop();
        };
        tokio::join!(pace.throttle(), stop_later);
        pace.count(1000 * BYTES_PER_MILLISECOND);
        pace.throttle().await;
        assert_eq!(before.elapsed(), Duration::from_millis(10));
    }
}
