//! Refuses a tool that fails repeatedly, for the rest of a run.
//!
//! A response counts as one failure of a tool if all its calls of the tool failed, because the model
//! sees the errors of a response together.

use std::collections::HashMap;

/// Number of consecutive responses with only failed calls of a tool after which the tool is refused
/// (C47). Within one response, the tool is refused after the same number of failed calls.
pub const MAX_CONSECUTIVE_FAILURES: u32 = 3;

/// The consecutive failures of each tool. An open tool stays refused until the run ends, because no
/// call can show that the tool works again.
#[derive(Debug, Default)]
pub(super) struct CircuitBreaker {
    consecutive_failures: HashMap<String, u32>,
    /// The failed and the successful calls of the current response.
    current: HashMap<String, (u32, u32)>,
}

impl CircuitBreaker {
    /// Records the end of a call that was run.
    pub(super) fn record(&mut self, tool: &str, is_success: bool) {
        let (failed, succeeded) = self.current.entry(tool.to_owned()).or_default();
        *(if is_success { succeeded } else { failed }) += 1;
    }

    /// Records a call that was not run because it was invalid or refused. A response with nothing but
    /// such calls counts as a failure of the tool; they don't stop the other calls of the response,
    /// which may be right.
    pub(super) fn record_rejection(&mut self, tool: &str) {
        self.current.entry(tool.to_owned()).or_default();
    }

    /// Counts the response whose calls have all ended.
    pub(super) fn end_response(&mut self) {
        for (tool, (_, succeeded)) in self.current.drain() {
            let failures = self.consecutive_failures.entry(tool).or_default();
            if *failures < MAX_CONSECUTIVE_FAILURES {
                *failures = if succeeded > 0 { 0 } else { *failures + 1 };
            }
        }
    }

    /// Returns the reason if the tool is refused.
    pub(super) fn refusal(&self, tool: &str) -> Option<String> {
        let failures = self.consecutive_failures.get(tool).copied().unwrap_or_default();
        if failures >= MAX_CONSECUTIVE_FAILURES {
            return Some(format!(
                "`{tool}` failed {MAX_CONSECUTIVE_FAILURES} times in a row and is not called again \
                 in this run; use another tool, or respond without the tool"
            ));
        }
        let (failed, succeeded) = self.current.get(tool).copied().unwrap_or_default();
        (failed >= MAX_CONSECUTIVE_FAILURES && succeeded == 0).then(|| {
            format!("{MAX_CONSECUTIVE_FAILURES} other calls of `{tool}` in this response failed")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn responses(calls: &[&[bool]]) -> CircuitBreaker {
        let mut breaker = CircuitBreaker::default();
        for response in calls {
            response.iter().for_each(|is_success| breaker.record("read", *is_success));
            breaker.end_response();
        }
        breaker
    }

    /// Proves: G58
    #[test]
    fn three_consecutive_failures_open_the_breaker_for_the_rest_of_the_run() {
        assert_eq!(responses(&[&[false], &[false], &[true], &[false]]).refusal("read"), None);
        let mut breaker = responses(&[&[false], &[true], &[false], &[false], &[false]]);
        assert!(breaker.refusal("read").is_some_and(|reason| reason.contains("`read`")));
        breaker.record("read", true);
        breaker.end_response();
        assert!(breaker.refusal("read").is_some());
        assert_eq!(breaker.refusal("list"), None);
    }

    #[test]
    fn the_calls_of_one_response_count_once_and_one_success_counts_for_all() {
        assert_eq!(responses(&[&[false; 5], &[false; 5]]).refusal("read"), None);
        assert_eq!(responses(&[&[false], &[false], &[false, true, false]]).refusal("read"), None);
        let mut breaker = CircuitBreaker::default();
        for _ in 0..3 {
            assert_eq!(breaker.refusal("read"), None);
            breaker.record("read", false);
        }
        assert!(breaker.refusal("read").is_some_and(|reason| reason.contains("this response")));
        breaker.end_response();
        assert_eq!(breaker.refusal("read"), None, "the model can use other arguments");
    }

    #[test]
    fn rejected_calls_open_the_breaker_and_stop_no_right_call_of_their_response() {
        let mut breaker = CircuitBreaker::default();
        for _ in 0..2 {
            (0..5).for_each(|_| breaker.record_rejection("read"));
            assert_eq!(breaker.refusal("read"), None);
            breaker.end_response();
        }
        breaker.record_rejection("read");
        breaker.record("read", true);
        breaker.end_response();
        assert_eq!(breaker.refusal("read"), None, "the right call counts");
        for _ in 0..3 {
            breaker.record_rejection("read");
            breaker.end_response();
        }
        assert!(breaker.refusal("read").is_some());
    }
}
