//! How long trees took to be gone, by the way they ended.

use std::collections::BTreeMap;
use std::time::Duration;

use super::plan::End;

/// All of them, so that the percentiles are exact.
#[derive(Debug, Default)]
pub(super) struct Times(BTreeMap<End, Vec<Duration>>);

impl Times {
    pub(super) fn add(&mut self, end: End, took: Duration) {
        self.0.entry(end).or_default().push(took);
    }

    pub(super) fn extend(&mut self, other: Self) {
        for (end, times) in other.0 {
            self.0.entry(end).or_default().extend(times);
        }
    }

    pub(super) fn count(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// One line for each way.
    pub(super) fn table(&self) -> String {
        let head = "| end | trees | p50, ms | p99, ms | longest, ms |\n\
                    | --- | ---: | ---: | ---: | ---: |";
        let mut lines = vec![head.to_owned()];
        for (end, times) in &self.0 {
            let mut sorted = times.clone();
            sorted.sort_unstable();
            let at = |percent: usize| {
                let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
                sorted.get(index).map_or(0, Duration::as_millis)
            };
            let (name, count) = (name(*end), sorted.len());
            lines.push(format!("| {name} | {count} | {} | {} | {} |", at(50), at(99), at(100)));
        }
        lines.join("\n")
    }
}

fn name(end: End) -> &'static str {
    match end {
        End::Shutdown => "orderly shutdown",
        End::ServerKilled => "server killed in a call",
        End::Dropped => "host dropped",
        End::Killed => "`Host::kill`",
        End::HostKilled => "host killed in a call, nobody sweeps",
        End::HostSwept => "host killed in a call, the next one sweeps",
    }
}
