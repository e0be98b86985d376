//! Counts of finished calls per minute.

use std::collections::VecDeque;
use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::time::Instant;

use super::CallEnd;

/// Number of minutes that are kept, with the current one.
pub(crate) const MAX_MINUTES: usize = 60;

/// Maximum recorded latency: a slower call counts as one hour.
const MAX_LATENCY_MICROS: u64 = 3_600_000_000;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Minute {
    /// The number of the minute since the start of the gateway.
    pub(crate) number: u64,
    pub(crate) calls: u64,
    pub(crate) errors: u64,
    pub(crate) cancelled: u64,
    /// Median latency in milliseconds; 0 without a call that has an end of its own.
    pub(crate) p50_millis: f64,
    /// Latency in milliseconds at the 95th percentile.
    pub(crate) p95_millis: f64,
}

#[derive(Debug)]
struct RecordedMinute {
    number: u64,
    calls: u64,
    errors: u64,
    cancelled: u64,
    /// In microseconds.
    latencies: Option<Histogram<u32>>,
}

/// The minutes in which calls ended, the newest last.
#[derive(Debug)]
pub(super) struct MinuteSeries {
    start: Instant,
    minutes: VecDeque<RecordedMinute>,
}

impl MinuteSeries {
    pub(super) fn new(start: Instant) -> Self {
        Self { start, minutes: VecDeque::new() }
    }

    fn number(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.start).as_secs() / 60
    }

    /// Counts the end of a call.
    pub(super) fn record(&mut self, now: Instant, latency: Duration, end: CallEnd) {
        let number = self.number(now);
        if self.minutes.back().is_none_or(|last| last.number < number) {
            if self.minutes.len() >= MAX_MINUTES {
                self.minutes.pop_front();
            }
            // Two significant digits, as in the metrics of the host.
            let latencies = Histogram::new(2).ok();
            let minute = RecordedMinute { number, calls: 0, errors: 0, cancelled: 0, latencies };
            self.minutes.push_back(minute);
        }
        let Some(minute) = self.minutes.back_mut() else { return };
        minute.calls += 1;
        minute.errors += u64::from(end.is_error());
        if end.is_cancelled() {
            minute.cancelled += 1;
            return;
        }
        let micros = u64::try_from(latency.as_micros()).unwrap_or(MAX_LATENCY_MICROS);
        if let Some(latencies) = &mut minute.latencies {
            // The histogram resizes automatically, so `record` cannot fail.
            let _ = latencies.record(micros.clamp(1, MAX_LATENCY_MICROS));
        }
    }

    /// Returns the last [`MAX_MINUTES`] up to now, with minutes without calls; fewer after the start.
    pub(super) fn read(&self, now: Instant) -> Vec<Minute> {
        let last = self.number(now);
        let first = last.saturating_sub(MAX_MINUTES as u64 - 1);
        let mut recorded =
            self.minutes.iter().skip_while(|minute| minute.number < first).peekable();
        let minutes = (first..=last).map(|number| {
            let Some(minute) = recorded.next_if(|minute| minute.number == number) else {
                return Minute { number, ..Minute::default() };
            };
            let millis = |quantile| {
                let latencies = minute.latencies.as_ref().filter(|latencies| !latencies.is_empty());
                latencies.map_or(0.0, |known| known.value_at_quantile(quantile) as f64 / 1000.0)
            };
            let RecordedMinute { calls, errors, cancelled, .. } = *minute;
            let p50_millis = millis(0.50);
            let p95_millis = millis(0.95);
            Minute { number, calls, errors, cancelled, p50_millis, p95_millis }
        });
        minutes.collect()
    }
}
