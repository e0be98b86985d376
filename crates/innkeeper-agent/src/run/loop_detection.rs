//! Detects calls that repeat without a new result.
//!
//! A result is new if the run had no equal call with an equal result before. Since the last new
//! result, each pair of call and result is counted: the second occurrence gets a warning, after the
//! third the call is refused, and a second response with a refused call ends the run. Calls in any
//! cycle, such as two tools in turn, count in the same way. A call whose result changes, such as a
//! poll, is new each time. Equal calls of one response count once, because the model wrote them
//! before it saw a result.

use std::collections::{HashMap, HashSet};

use sha2::{Digest as _, Sha256};

use super::recovery::CallKey;

/// Number of equal calls with equal results after which the call is refused (G-b10).
const MAX_EQUAL_RESULTS: u32 = 3;

/// What a repeated result leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LoopAction {
    /// Add this warning to the result.
    Warn(String),
    /// Add this text to the result, and refuse the call from now on.
    Refuse(String),
}

type Hash = [u8; 32];

/// The calls of a run with their results.
#[derive(Debug, Default)]
pub(super) struct LoopDetector {
    /// All pairs of call and result.
    seen: HashSet<(Hash, Hash)>,
    /// The occurrences of each pair since the last new pair.
    repeats: HashMap<(Hash, Hash), u32>,
    /// The refused calls.
    refused: HashSet<Hash>,
    /// The pairs of the current response.
    current: HashSet<(Hash, Hash)>,
    /// Whether the current response has a refused call.
    has_refusal: bool,
    /// The number of responses with a refused call since the last new pair.
    refusals: u32,
}

impl LoopDetector {
    /// Records the result of a call that was run.
    pub(super) fn record(&mut self, call: CallKey<'_>, result: &[u8]) -> Option<LoopAction> {
        let pair = (hash_call(call), Sha256::digest(result).into());
        if !self.current.insert(pair) {
            return None;
        }
        if self.seen.insert(pair) {
            self.repeats.clear();
            self.refused.clear();
            self.refusals = 0;
        }
        let count = self.repeats.entry(pair).or_default();
        *count += 1;
        let tool = call.tool;
        match *count {
            1 => None,
            MAX_EQUAL_RESULTS.. => {
                self.refused.insert(pair.0);
                Some(LoopAction::Refuse(format!(
                    "`{tool}` returned the same result to the same arguments \
                     {MAX_EQUAL_RESULTS} times; the same call is refused from now on. Use other \
                     arguments or another tool, or respond with what you have."
                )))
            }
            _ => Some(LoopAction::Warn(format!(
                "Note: `{tool}` already returned this result to the same arguments. A further call \
                 will not change the result."
            ))),
        }
    }

    /// Returns the reason if a call is refused.
    pub(super) fn refusal(&mut self, call: CallKey<'_>) -> Option<String> {
        if !self.refused.contains(&hash_call(call)) {
            return None;
        }
        self.has_refusal = true;
        Some(format!(
            "the same call returned the same result {MAX_EQUAL_RESULTS} times and was not run again"
        ))
    }

    /// Counts the response whose calls have all ended.
    pub(super) fn end_response(&mut self) {
        self.current.clear();
        self.refusals += u32::from(std::mem::take(&mut self.has_refusal));
    }

    /// Returns whether the model made a refused call again in a later response.
    pub(super) fn ends_run(&self) -> bool {
        self.refusals > 1
    }
}

fn hash_call(call: CallKey<'_>) -> Hash {
    // The separator cannot be part of a tool name or of JSON text.
    let digest = Sha256::new().chain_update(call.tool).chain_update([0]);
    digest.chain_update(call.arguments).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: CallKey<'static> = CallKey { tool: "a", arguments: "{}" };
    const B: CallKey<'static> = CallKey { tool: "b", arguments: "{}" };

    /// Returns `n` for a new result, `w` for a warning and `r` for a refusal of the next call.
    fn letters(calls: &[(CallKey<'_>, &str)]) -> String {
        let mut detector = LoopDetector::default();
        let letter = |(call, result): &(CallKey<'_>, &str)| {
            let action = detector.record(*call, result.as_bytes());
            detector.end_response();
            match action {
                None => 'n',
                Some(LoopAction::Warn(text)) => {
                    assert!(text.contains(call.tool));
                    'w'
                }
                Some(LoopAction::Refuse(_)) => 'r',
            }
        };
        calls.iter().map(letter).collect()
    }

    /// Proves: G-b10
    #[test]
    fn the_second_equal_result_gets_a_warning_and_the_third_stops_the_call() {
        assert_eq!(letters(&[(A, "1"), (A, "1"), (A, "1")]), "nwr");
        let mut detector = LoopDetector::default();
        for _ in 0..3 {
            assert_eq!(detector.refusal(A), None);
            detector.record(A, b"1");
            detector.end_response();
        }
        for ends_run in [false, true] {
            // Two refused calls of one response count once.
            assert!(detector.refusal(A).is_some() && detector.refusal(A).is_some());
            assert!(detector.refusal(B).is_none());
            detector.end_response();
            assert_eq!(detector.ends_run(), ends_run);
        }
    }

    #[test]
    fn calls_in_a_cycle_are_a_loop() {
        let cycle = [(A, "1"), (B, "2")];
        assert_eq!(letters(&cycle.repeat(4)), "nnnwwrrr");
    }

    #[test]
    fn equal_calls_of_one_response_count_once() {
        let mut detector = LoopDetector::default();
        for _ in 0..5 {
            assert_eq!(detector.record(A, b"ok"), None);
        }
        detector.end_response();
        assert!(matches!(detector.record(A, b"ok"), Some(LoopAction::Warn(_))));
    }

    #[test]
    fn a_poll_is_no_loop_and_a_new_result_ends_a_loop() {
        let polls: Vec<String> = (0..20).map(|at| at.to_string()).collect();
        let polls: Vec<_> = polls.iter().map(|result| (A, result.as_str())).collect();
        assert_eq!(letters(&polls), "n".repeat(20));
        assert_eq!(letters(&[(A, "1"), (A, "1"), (B, "2"), (A, "1"), (A, "1")]), "nwnnw");
        let mut detector = LoopDetector::default();
        for result in [b"1", b"1", b"1", b"2"] {
            detector.record(A, result);
            detector.end_response();
        }
        assert_eq!(detector.refusal(A), None);
    }
}
