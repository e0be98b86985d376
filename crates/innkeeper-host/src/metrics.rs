//! Counts and latencies per server.

pub(crate) mod prometheus;

use std::sync::Mutex;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;
use tokio::time::Instant;

use crate::error::CallErrorKind;
use crate::event::CallOutcome;

/// The upper bounds of duration histogram buckets in seconds, from the OpenTelemetry semantic
/// conventions for MCP.
pub(crate) const DURATION_BUCKETS_SECS: [f64; 14] =
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// Maximum recorded latency (one hour, in microseconds). A slower call counts as this value.
const MAX_LATENCY_MICROS: u64 = 3_600_000_000;

/// The metrics of one server since the start of the host. Latencies are in milliseconds. In the
/// minimum, the maximum and the percentiles, a call of more than one hour counts as one hour.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ServerMetrics {
    /// Number of calls that were sent or attempted.
    pub request_count: u64,
    /// Number of calls with a result that is not an error.
    pub success_count: u64,
    /// Number of failed calls, including tool errors.
    pub error_count: u64,
    /// Number of calls with an `isError` result; included in `error_count`.
    pub tool_error_count: u64,
    /// Number of calls whose caller dropped the future; included only in `request_count`.
    pub cancelled_count: u64,
    /// The shares of calls with and without an error.
    #[serde(flatten)]
    pub rates: CallRates,
    /// The latencies of finished calls.
    #[serde(flatten)]
    pub latency: LatencySummary,
    /// The use of the cache; not included in the counts above.
    #[serde(flatten)]
    pub cache: CacheMetrics,
}

/// The shares of the finished calls of one server, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CallRates {
    /// `success_count` divided by the number of finished calls; 1 without finished calls.
    #[serde(rename = "success_rate")]
    pub success: f64,
    /// `error_count` divided by the number of finished calls.
    #[serde(rename = "error_rate")]
    pub error: f64,
}

/// The latencies of the finished calls of one server in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LatencySummary {
    /// Mean latency.
    #[serde(rename = "avg_latency")]
    pub avg: f64,
    /// Minimum latency.
    #[serde(rename = "min_latency")]
    pub min: f64,
    /// Maximum latency.
    #[serde(rename = "max_latency")]
    pub max: f64,
    /// Latency at the 50th percentile.
    #[serde(rename = "p50_latency")]
    pub p50: f64,
    /// Latency at the 95th percentile.
    #[serde(rename = "p95_latency")]
    pub p95: f64,
    /// Latency at the 99th percentile.
    #[serde(rename = "p99_latency")]
    pub p99: f64,
}

/// The use of the cache of one server. Its look-ups are no calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CacheMetrics {
    /// Number of prompts and resources from the cache.
    #[serde(rename = "cache_hits")]
    pub hits: u64,
    /// Number of prompts and resources that the server returned.
    #[serde(rename = "cache_misses")]
    pub misses: u64,
    /// Current number of cache entries.
    #[serde(rename = "cache_entries")]
    pub entries: usize,
    /// Current size of the cache in bytes.
    #[serde(rename = "cache_bytes")]
    pub bytes: u64,
}

/// A copy of the counters. Latencies are in microseconds.
#[derive(Clone, Debug)]
pub(crate) struct MetricsSnapshot {
    successes: u64,
    tool_errors: u64,
    /// Indexed by [`CallErrorKind`].
    failures_by_kind: [u64; CallErrorKind::ALL.len()],
    cancelled: u64,
    total_latency_micros: u64,
    latencies: Histogram<u64>,
    last_success: Option<Instant>,
    /// [`Host::metrics`](crate::Host::metrics) sets the size from the server's connection.
    cache: CacheMetrics,
}

impl MetricsSnapshot {
    fn latency_summary(&self) -> LatencySummary {
        let count = self.latencies.len();
        if count == 0 {
            return LatencySummary::default();
        }
        LatencySummary {
            avg: millis(self.total_latency_micros / count),
            min: millis(self.latencies.min()),
            max: millis(self.latencies.max()),
            p50: millis(self.latencies.value_at_quantile(0.50)),
            p95: millis(self.latencies.value_at_quantile(0.95)),
            p99: millis(self.latencies.value_at_quantile(0.99)),
        }
    }
}

fn millis(micros: u64) -> f64 {
    micros as f64 / 1000.0
}

/// The live counters of [`ServerMetrics`].
#[derive(Debug)]
pub(crate) struct MetricsRecorder(Mutex<MetricsSnapshot>);

impl MetricsRecorder {
    pub(crate) fn new() -> Self {
        // Two significant digits need about 20 kB for a server with calls of one hour, a tenth of
        // the memory for three digits. The histogram grows with the slowest call, so a server
        // without calls needs almost no memory.
        let latencies = Histogram::new(2).expect("a constant number of digits");
        Self(Mutex::new(MetricsSnapshot {
            successes: 0,
            tool_errors: 0,
            failures_by_kind: [0; CallErrorKind::ALL.len()],
            cancelled: 0,
            total_latency_micros: 0,
            latencies,
            last_success: None,
            cache: CacheMetrics::default(),
        }))
    }

    pub(crate) fn record(&self, outcome: CallOutcome, latency: Duration, now: Instant) {
        let mut counts = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match outcome {
            CallOutcome::Ok => {
                counts.successes += 1;
                counts.last_success = Some(now);
            }
            CallOutcome::ToolError => counts.tool_errors += 1,
            CallOutcome::Failed(kind) => counts.failures_by_kind[kind as usize] += 1,
            CallOutcome::Cancelled => {
                counts.cancelled += 1;
                return;
            }
        }
        let micros = u64::try_from(latency.as_micros()).unwrap_or(MAX_LATENCY_MICROS).max(1);
        counts.total_latency_micros += micros;
        // The histogram resizes automatically, so `record` cannot fail.
        let _ = counts.latencies.record(micros.min(MAX_LATENCY_MICROS));
    }

    /// Counts a prompt or resource as cache hit or cache miss.
    pub(crate) fn record_cache_lookup(&self, hit: bool) {
        let mut counts = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *if hit { &mut counts.cache.hits } else { &mut counts.cache.misses } += 1;
    }

    /// Returns the time of the last call with a result that is not an error.
    pub(crate) fn last_success(&self) -> Option<Instant> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).last_success
    }

    /// Returns a copy, so that no call waits for a reader of the metrics.
    pub(crate) fn snapshot(&self) -> MetricsSnapshot {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    pub(crate) fn server_metrics(&self) -> ServerMetrics {
        let counts = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let errors = counts.failures_by_kind.iter().sum::<u64>() + counts.tool_errors;
        let ended = counts.successes + errors;
        ServerMetrics {
            request_count: ended + counts.cancelled,
            success_count: counts.successes,
            error_count: errors,
            tool_error_count: counts.tool_errors,
            cancelled_count: counts.cancelled,
            rates: CallRates {
                success: if ended == 0 { 1.0 } else { counts.successes as f64 / ended as f64 },
                error: errors as f64 / ended.max(1) as f64,
            },
            latency: counts.latency_summary(),
            cache: counts.cache,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Proves: TR4.3
    #[test]
    fn metrics_that_are_read_during_recording_are_whole() {
        const READINGS: usize = 100;
        let (recorder, now) = (MetricsRecorder::new(), Instant::now());
        let is_done = AtomicBool::new(false);
        let (mut counts, mut torn) = (HashSet::new(), None);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    recorder.record(CallOutcome::Ok, Duration::from_secs(1), now);
                }
            });
            while counts.len() < READINGS && torn.is_none() {
                let metrics = recorder.server_metrics();
                // Every call takes a second, so counts and times of one state give this mean.
                let is_whole = metrics.latency.avg == 1000.0 && metrics.latency.min > 0.0;
                counts.insert(metrics.request_count);
                torn = (metrics.request_count > 0 && !is_whole).then_some(metrics);
            }
            is_done.store(true, Ordering::Relaxed);
        });
        assert!(torn.is_none(), "{torn:?}");
    }

    /// Proves: FR9.3
    #[test]
    fn three_successes_and_one_error_are_counted_with_their_rates_and_latencies() {
        let (recorder, now) = (MetricsRecorder::new(), Instant::now());
        for millis in [1, 2, 3] {
            recorder.record(CallOutcome::Ok, Duration::from_millis(millis), now);
        }
        recorder.record(
            CallOutcome::Failed(CallErrorKind::Timeout),
            Duration::from_millis(10),
            now,
        );
        recorder.record(CallOutcome::Cancelled, Duration::from_secs(9), now);
        let metrics = recorder.server_metrics();
        assert_eq!((metrics.request_count, metrics.success_count, metrics.error_count), (5, 3, 1));
        assert_eq!(
            (metrics.rates.success, metrics.rates.error, metrics.cancelled_count),
            (0.75, 0.25, 1)
        );
        assert_eq!(metrics.latency.avg, 4.0);
        assert!((9.9..10.2).contains(&metrics.latency.max), "{}", metrics.latency.max);
    }

    #[test]
    fn a_server_without_requests_has_no_failures() {
        let metrics = MetricsRecorder::new().server_metrics();
        assert_eq!(
            (metrics.request_count, metrics.rates.success, metrics.rates.error),
            (0, 1.0, 0.0)
        );
        assert_eq!((metrics.latency.min, metrics.latency.p99), (0.0, 0.0));
    }
}
