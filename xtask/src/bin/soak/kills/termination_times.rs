//! Termination times per kind of termination.

use std::collections::BTreeMap;
use std::time::Duration;

use super::process_tree::Termination;

/// All durations, for exact percentiles.
#[derive(Debug, Default)]
pub(super) struct TerminationTimes(BTreeMap<Termination, Vec<Duration>>);

impl TerminationTimes {
    pub(super) fn add(&mut self, termination: Termination, took: Duration) {
        self.0.entry(termination).or_default().push(took);
    }

    pub(super) fn extend(&mut self, other: Self) {
        for (termination, times) in other.0 {
            self.0.entry(termination).or_default().extend(times);
        }
    }

    pub(super) fn count(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// A table with one line per kind of termination.
    pub(super) fn table(&self) -> String {
        let head = "| end | trees | p50, ms | p99, ms | longest, ms |\n\
                    | --- | ---: | ---: | ---: | ---: |";
        let mut lines = vec![head.to_owned()];
        for (termination, times) in &self.0 {
            let mut sorted = times.clone();
            sorted.sort_unstable();
            let at = |percent: usize| {
                let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
                sorted.get(index).map_or(0, Duration::as_millis)
            };
            let (name, count) = (termination_name(*termination), sorted.len());
            lines.push(format!("| {name} | {count} | {} | {} | {} |", at(50), at(99), at(100)));
        }
        lines.join("\n")
    }
}

fn termination_name(termination: Termination) -> &'static str {
    match termination {
        Termination::Shutdown => "shutdown",
        Termination::ServerKilled => "server killed during a call",
        Termination::Dropped => "host dropped",
        Termination::Killed => "`Host::kill`",
        Termination::HostKilled => "host killed during a call, no sweep",
        Termination::HostSwept => "host killed during a call, sweep by the next host",
    }
}
