//! What calls took, in rounds: percentiles of each, and the round in the middle.

use std::time::Duration;

/// What the calls of one round took, sorted.
#[derive(Debug)]
pub(super) struct Round(Vec<Duration>);

impl Round {
    pub(super) fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// The time that so many of a hundred calls did not exceed, in microseconds.
    pub(super) fn percentile(&self, percent: usize) -> f64 {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).map_or(0.0, |time| time.as_secs_f64() * 1e6)
    }
}

/// The figure in the middle; of an even number, the higher of both.
pub(super) fn middle(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(0.0)
}
