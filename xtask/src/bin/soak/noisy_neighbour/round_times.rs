//! Call durations of a round, with percentiles.

use std::time::Duration;

/// The sorted call durations of one round.
#[derive(Debug)]
pub(super) struct RoundTimes(Vec<Duration>);

impl RoundTimes {
    pub(super) fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// A percentile of the durations, in microseconds.
    pub(super) fn percentile(&self, percent: usize) -> f64 {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).map_or(0.0, |time| time.as_secs_f64() * 1e6)
    }
}

/// The median of several figures; of an even number, the upper of the two middle ones.
pub(super) fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(0.0)
}
