//! Refuses a tool that fails repeatedly, for the rest of a run.

use std::collections::HashMap;

/// Number of consecutive failures of a tool after which the tool is refused (C47).
pub const MAX_CONSECUTIVE_FAILURES: u32 = 3;

/// The consecutive failures of each tool. A success closes nothing: an open tool stays refused until
/// the run ends, because no call can show that the tool works again.
#[derive(Debug, Default)]
pub(super) struct CircuitBreaker {
    consecutive_failures: HashMap<String, u32>,
}

impl CircuitBreaker {
    /// Records the end of a call that was run.
    pub(super) fn record(&mut self, tool: &str, is_success: bool) {
        match self.consecutive_failures.get_mut(tool) {
            // Calls of the same response may succeed after the breaker opened.
            Some(failures) if *failures >= MAX_CONSECUTIVE_FAILURES => {}
            Some(failures) => *failures = if is_success { 0 } else { *failures + 1 },
            None if is_success => {}
            None => drop(self.consecutive_failures.insert(tool.to_owned(), 1)),
        }
    }

    /// Returns the reason if the tool is refused.
    pub(super) fn refusal(&self, tool: &str) -> Option<String> {
        let failures = *self.consecutive_failures.get(tool)?;
        (failures >= MAX_CONSECUTIVE_FAILURES).then(|| {
            format!(
                "`{tool}` failed {MAX_CONSECUTIVE_FAILURES} times in a row and is not called again \
                 in this run; use another tool, or respond without the tool"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: G58
    #[test]
    fn three_consecutive_failures_open_the_breaker_for_the_rest_of_the_run() {
        let mut breaker = CircuitBreaker::default();
        for outcome in [false, false, true, false, false] {
            breaker.record("read", outcome);
        }
        assert_eq!(breaker.refusal("read"), None);
        breaker.record("read", false);
        assert!(breaker.refusal("read").is_some_and(|reason| reason.contains("`read`")));
        breaker.record("read", true);
        assert!(breaker.refusal("read").is_some());
        assert_eq!(breaker.refusal("list"), None);
    }
}
