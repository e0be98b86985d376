//! The durations of the calls of each tool.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::agent::ToolCallRecord;

/// The durations of the calls of one tool in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ToolTimes {
    /// The number of calls that the tool ran, failed calls included. Refused calls and results from the
    /// cache do not count, because their durations say nothing about the tool.
    pub calls: usize,
    /// Half of the calls took at most this time.
    pub p50: f64,
    /// 95 % of the calls took at most this time.
    pub p95: f64,
}

/// Returns the durations by the public name of the tool.
pub(super) fn tool_times(records: &[Arc<ToolCallRecord>]) -> BTreeMap<&str, ToolTimes> {
    let mut durations: BTreeMap<&str, Vec<Duration>> = BTreeMap::new();
    for record in records.iter().filter(|record| record.outcome.was_run && !record.outcome.cached) {
        durations.entry(&record.tool).or_default().push(record.elapsed);
    }
    let times = durations.into_iter().map(|(tool, mut durations)| {
        durations.sort_unstable();
        let [p50, p95] = [50, 95].map(|percent| percentile(&durations, percent).as_secs_f64());
        (tool, ToolTimes { calls: durations.len(), p50, p95 })
    });
    times.collect()
}

/// Returns the smallest duration that this percentage of the sorted durations does not exceed.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_smallest_duration_that_enough_calls_do_not_exceed() {
        let seconds: Vec<_> = (1..=20).map(Duration::from_secs).collect();
        let at = |count: usize, percent| percentile(&seconds[..count], percent).as_secs();
        assert_eq!((at(20, 50), at(20, 95)), (10, 19));
        assert_eq!((at(19, 50), at(19, 95)), (10, 19));
        assert_eq!((at(2, 50), at(2, 95)), (1, 2));
        assert_eq!((at(1, 50), at(1, 95)), (1, 1));
        assert_eq!(at(0, 50), 0);
    }
}
