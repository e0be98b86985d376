//! Counts and latencies per server, fed by one record a call.

pub(crate) mod prometheus;

use std::sync::Mutex;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;
use tokio::time::Instant;

use crate::error::CallKind;
use crate::event::CallOutcome;

/// The upper bounds of durations told to others, in seconds, as the semantic conventions of
/// OpenTelemetry for MCP have them.
pub(crate) const BUCKETS: [f64; 14] =
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// The longest latency told apart; anything slower counts as this (one hour, in microseconds).
const SLOWEST_MICROS: u64 = 3_600_000_000;

/// What a server was asked and how it went, since the host was started. Latencies in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ServerMetrics {
    /// Calls that were sent or tried.
    pub request_count: u64,
    /// Calls with a result that is not an error.
    pub success_count: u64,
    /// Calls that failed, tool errors included.
    pub error_count: u64,
    /// Those of `error_count` where the tool itself answered `isError`.
    pub tool_error_count: u64,
    /// Calls whose caller went away; in neither of the counts above but in `request_count`.
    pub cancelled_count: u64,
    /// `success_count` by all calls that ended, 0 to 1; 1 while there is none.
    pub success_rate: f64,
    /// `error_count` by all calls that ended, 0 to 1.
    pub error_rate: f64,
    /// Mean latency.
    pub avg_latency: f64,
    /// Fastest call.
    pub min_latency: f64,
    /// Slowest call.
    pub max_latency: f64,
    /// Half of the calls were at least this fast.
    pub p50_latency: f64,
    /// 95 of 100 calls were at least this fast.
    pub p95_latency: f64,
    /// 99 of 100 calls were at least this fast.
    pub p99_latency: f64,
    /// Prompts and resources that were given without a request: in none of the counts above.
    pub cache_hits: u64,
    /// Prompts and resources the server was asked for and answered.
    pub cache_misses: u64,
    /// Copies kept now.
    pub cache_entries: usize,
    /// Their bytes.
    pub cache_bytes: u64,
}

/// What was counted so far. Latencies in microseconds.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    ok: u64,
    tool_errors: u64,
    /// By the number of their kind.
    failed: [u64; CallKind::ALL.len()],
    cancelled: u64,
    micros: u64,
    latencies: Histogram<u64>,
    last_success: Option<Instant>,
    hits: u64,
    misses: u64,
}

/// The live counters behind [`ServerMetrics`].
#[derive(Debug)]
pub(crate) struct Meter(Mutex<Counts>);

impl Meter {
    pub(crate) fn new() -> Self {
        // Two digits: some 20 kB for a server whose calls take an hour, a tenth of what three would
        // take; it grows with the slowest call, so that a server without calls costs next to nothing.
        let latencies = Histogram::new(2).expect("a constant number of digits");
        Self(Mutex::new(Counts {
            ok: 0,
            tool_errors: 0,
            failed: [0; CallKind::ALL.len()],
            cancelled: 0,
            micros: 0,
            latencies,
            last_success: None,
            hits: 0,
            misses: 0,
        }))
    }

    pub(crate) fn record(&self, outcome: CallOutcome, latency: Duration, now: Instant) {
        let mut counts = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match outcome {
            CallOutcome::Ok => {
                counts.ok += 1;
                counts.last_success = Some(now);
            }
            CallOutcome::ToolError => counts.tool_errors += 1,
            CallOutcome::Failed(kind) => counts.failed[kind as usize] += 1,
            CallOutcome::Cancelled => {
                counts.cancelled += 1;
                return;
            }
        }
        let micros = u64::try_from(latency.as_micros()).unwrap_or(SLOWEST_MICROS).max(1);
        counts.micros += micros;
        // It grows with what it is given, up to any number there is.
        let _ = counts.latencies.record(micros.min(SLOWEST_MICROS));
    }

    /// Counts a prompt or resource by where it came from.
    pub(crate) fn looked_up(&self, hit: bool) {
        let mut counts = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *if hit { &mut counts.hits } else { &mut counts.misses } += 1;
    }

    /// When a call last had a result that is not an error.
    pub(crate) fn last_success(&self) -> Option<Instant> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).last_success
    }

    /// A copy, so that no call waits for whoever looks at all of it.
    pub(crate) fn counts(&self) -> Counts {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    pub(crate) fn snapshot(&self) -> ServerMetrics {
        let counts = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let errors = counts.failed.iter().sum::<u64>() + counts.tool_errors;
        let ended = counts.ok + errors;
        let share = |n: u64| if ended == 0 { 0.0 } else { n as f64 / ended as f64 };
        let millis = |micros: u64| if ended == 0 { 0.0 } else { micros as f64 / 1000.0 };
        ServerMetrics {
            request_count: ended + counts.cancelled,
            success_count: counts.ok,
            error_count: errors,
            tool_error_count: counts.tool_errors,
            cancelled_count: counts.cancelled,
            success_rate: if ended == 0 { 1.0 } else { share(counts.ok) },
            error_rate: share(errors),
            avg_latency: millis(counts.micros.checked_div(ended).unwrap_or(0)),
            min_latency: millis(counts.latencies.min()),
            max_latency: millis(counts.latencies.max()),
            p50_latency: millis(counts.latencies.value_at_quantile(0.50)),
            p95_latency: millis(counts.latencies.value_at_quantile(0.95)),
            p99_latency: millis(counts.latencies.value_at_quantile(0.99)),
            cache_hits: counts.hits,
            cache_misses: counts.misses,
            // Whoever knows the server's connection fills these in.
            cache_entries: 0,
            cache_bytes: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: FR9.3
    #[test]
    fn three_successes_and_one_error_are_counted_with_their_rates_and_latencies() {
        let (meter, now) = (Meter::new(), Instant::now());
        for millis in [1, 2, 3] {
            meter.record(CallOutcome::Ok, Duration::from_millis(millis), now);
        }
        meter.record(CallOutcome::Failed(CallKind::Timeout), Duration::from_millis(10), now);
        meter.record(CallOutcome::Cancelled, Duration::from_secs(9), now);
        let seen = meter.snapshot();
        assert_eq!((seen.request_count, seen.success_count, seen.error_count), (5, 3, 1));
        assert_eq!((seen.success_rate, seen.error_rate, seen.cancelled_count), (0.75, 0.25, 1));
        assert_eq!(seen.avg_latency, 4.0);
        assert!((9.9..10.2).contains(&seen.max_latency), "{}", seen.max_latency);
    }

    #[test]
    fn nothing_asked_is_no_failure() {
        let seen = Meter::new().snapshot();
        assert_eq!((seen.request_count, seen.success_rate, seen.error_rate), (0, 1.0, 0.0));
        assert_eq!((seen.min_latency, seen.p99_latency), (0.0, 0.0));
    }
}
