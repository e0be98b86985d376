//! Pace: what nobody asked for is read no faster than this.
//!
//! A server that floods then waits in its own pipe, and leaves the processors to its neighbours.
//! Answers to calls are never held back for their own sake: there are no more of them than were asked
//! for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

/// What a message counts beside its bytes: reading one and dropping it takes about as long as
/// copying this much.
const EACH: u64 = 2 << 10;

/// What a request counts, beside an eighth of its bytes: it is answered, and what it carries (a
/// picture for a model) is wanted.
const ASKED: u64 = 16 << 10;

/// Bytes a millisecond: 32 small messages, a tenth of what one processor could read. No server that
/// has anything to say reports, logs or asks that often.
const RATE: u64 = 64 << 10;

/// Bytes that may come at once after a rest: 1,000 small messages, as at a start or a great change.
const BURST: u64 = 2 << 20;

/// Bytes that are read at once from a pipe whose server goes on too fast: it then has room for some
/// dozens of small messages, and waits again before its turn at a processor is over.
const SIP: u64 = 4 << 10;

/// What may come at once again when it is not read in sips any more: some 8 ms without a flood.
const CALM: u64 = BURST / 4;

/// How fast one server's unasked messages are read.
#[derive(Debug)]
pub(crate) struct Pace {
    bucket: Mutex<Bucket>,
    over: AtomicBool,
    spent: AtomicBool,
    told: AtomicBool,
    ended: AtomicBool,
    ending: Notify,
}

#[derive(Debug)]
struct Bucket {
    /// What may still come at once.
    left: u64,
    /// What came beyond that.
    owed: u64,
    since: Instant,
}

impl Bucket {
    /// Counts the time that went by; whole milliseconds, as timers have them.
    fn refill(&mut self) {
        let millis = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.since += Duration::from_millis(millis);
        let earned = millis.saturating_mul(RATE);
        let paid = earned.min(self.owed);
        self.owed -= paid;
        self.left = self.left.saturating_add(earned - paid).min(BURST);
    }
}

impl Pace {
    pub(crate) fn new() -> Self {
        let bucket = Bucket { left: BURST, owed: 0, since: Instant::now() };
        let [over, spent, told, ended] = std::array::from_fn(|_| AtomicBool::default());
        Self { bucket: Mutex::new(bucket), over, spent, told, ended, ending: Notify::new() }
    }

    /// Counts one message that nobody asked for, or bytes that are dropped.
    pub(crate) fn count(&self, bytes: u64) {
        self.spend(bytes.saturating_add(EACH));
    }

    /// Counts a request.
    pub(crate) fn count_request(&self, bytes: u64) {
        self.spend((bytes / 8).saturating_add(ASKED));
    }

    fn spend(&self, cost: u64) {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        bucket.refill();
        let at_once = cost.min(bucket.left);
        bucket.left -= at_once;
        bucket.owed = bucket.owed.saturating_add(cost - at_once);
        if bucket.left == 0 {
            self.spent.store(true, Ordering::Relaxed);
        }
        if bucket.owed > 0 {
            self.over.store(true, Ordering::Relaxed);
        }
    }

    /// How much is to be read at once.
    pub(crate) fn sip(&self) -> u64 {
        if !self.spent.load(Ordering::Relaxed) {
            return u64::MAX;
        }
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        bucket.refill();
        let calm = bucket.left >= CALM;
        self.spent.store(!calm, Ordering::Relaxed);
        if calm { u64::MAX } else { SIP }
    }

    /// Rests no more: the process has ended, and what is left in its pipe is all there is.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.ending.notify_waiters();
    }

    /// Whether whoever reads should rest first.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Whether this is the first time that somebody asks; then the log should tell.
    pub(crate) fn is_news(&self) -> bool {
        !self.told.swap(true, Ordering::Relaxed)
    }

    /// Waits until what came too fast has been made up for: a millisecond for each [`RATE`] of it, so
    /// a quarter of a second for one message at the usual limit of 16 MiB.
    pub(crate) async fn rest(&self) {
        self.over.store(false, Ordering::Relaxed);
        let ending = self.ending.notified();
        if self.ended.load(Ordering::Acquire) {
            return;
        }
        let owed = {
            let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
            bucket.refill();
            bucket.owed
        };
        if owed > 0 {
            tokio::select! {
                () = sleep(Duration::from_millis(owed.div_ceil(RATE))) => {}
                () = ending => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: u64 = BURST / EACH;

    #[tokio::test(start_paused = true)]
    async fn a_burst_at_the_limit_is_read_at_once_and_one_message_more_after_a_rest() {
        let pace = Pace::new();
        (0..SMALL).for_each(|_| pace.count(0));
        assert!(!pace.is_over());
        pace.count(0);
        assert!(pace.is_over());
        let before = Instant::now();
        pace.rest().await;
        assert_eq!(before.elapsed(), Duration::from_millis(1));
        assert!(!pace.is_over());
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_read_at_the_rate_and_a_quiet_time_makes_up_for_it() {
        let pace = Pace::new();
        let before = Instant::now();
        for _ in 0..100 * RATE / EACH + SMALL {
            pace.count(0);
            if pace.is_over() {
                pace.rest().await;
            }
        }
        assert_eq!(before.elapsed(), Duration::from_millis(100));
        sleep(Duration::from_millis(BURST / RATE)).await;
        (0..SMALL).for_each(|_| pace.count(0));
        assert!(!pace.is_over());
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_that_are_dropped_count_by_their_number() {
        let pace = Pace::new();
        pace.count(BURST - EACH);
        assert!(!pace.is_over());
        pace.count(10 * RATE - EACH);
        let before = Instant::now();
        pace.rest().await;
        assert_eq!(before.elapsed(), Duration::from_millis(10));
    }

    #[tokio::test(start_paused = true)]
    async fn requests_count_for_more_and_a_server_without_credit_is_read_in_sips() {
        let pace = Pace::new();
        (1..BURST / ASKED).for_each(|_| pace.count_request(0));
        assert_eq!(pace.sip(), u64::MAX);
        pace.count_request(0);
        assert_eq!((pace.sip(), pace.is_over()), (SIP, false));
        pace.count_request(0);
        assert_eq!((pace.sip(), pace.is_over()), (SIP, true));
        sleep(Duration::from_millis((CALM + ASKED) / RATE)).await;
        assert_eq!(pace.sip(), SIP);
        sleep(Duration::from_millis(1)).await;
        assert_eq!(pace.sip(), u64::MAX, "it was quiet long enough");
    }

    #[tokio::test(start_paused = true)]
    async fn what_an_ended_process_has_left_is_read_without_a_rest() {
        let pace = Pace::new();
        pace.count(BURST + 1000 * RATE);
        let before = Instant::now();
        let end = async {
            sleep(Duration::from_millis(10)).await;
            pace.end();
        };
        tokio::join!(pace.rest(), end);
        pace.count(1000 * RATE);
        pace.rest().await;
        assert_eq!(before.elapsed(), Duration::from_millis(10));
    }
}
