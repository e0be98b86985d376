//! Detects calls that repeat without a new result.
//!
//! A result is new if the run had no equal call with an equal result before. Since the last new
//! result, each pair of call and result is counted: the second occurrence gets a warning, after the
//! third the call is refused, and a second response with a refused call ends the run. Calls in any
//! cycle, such as two tools in turn, count in the same way. A call whose result changes, such as a
//! poll, is new each time. Equal calls of one response count once, because the model wrote them
//! before it saw a result.
//!
//! A model also loops if it varies the arguments and the result stays the same: it turns pages that
//! do not exist, or polls with a counter. But ten notes that are all answered with `ok` look alike,
//! so this rule counts responses and is patient: a warning after the fifth, and a refusal of the
//! tool after the tenth, if no tool had a result in between that it didn't have before.
//!
//! A call that was not run has its error as result. It counts in the same way, but is never progress.

use std::collections::{HashMap, HashSet};

use sha2::{Digest as _, Sha256};

use super::recovery::CallKey;

/// Number of equal calls with equal results after which the call is refused (G-b10).
const MAX_EQUAL_RESULTS: u32 = 3;

/// Number of responses in which a tool returned the same result to various arguments after which
/// the result gets a warning.
const VARIED_CALLS_BEFORE_WARNING: u32 = 8;

/// Number of responses in which a tool returned the same result to various arguments after which
/// the tool is refused: more than a run has by default, because every write may return "ok".
const MAX_VARIED_CALLS: u32 = 15;

/// What a repeated result leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LoopAction {
    /// Add this warning to the result.
    Warn(String),
    /// Add this text to the result, and refuse the call from now on.
    Refuse(String),
}

type Hash = [u8; 32];

/// The result of a call, or the error of a call that was not run.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallResult<'r> {
    pub(super) content: &'r [u8],
    pub(super) was_run: bool,
}

/// A tool with one of its results, whatever the arguments were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ToolOutcome {
    tool: Hash,
    result: Hash,
}

/// The calls that led to one outcome since the last new outcome.
#[derive(Debug, Default)]
struct VariedCalls {
    calls: HashSet<Hash>,
    responses: u32,
    is_in_current_response: bool,
}

#[derive(Debug, Default)]
struct CurrentResponse {
    /// The pairs of call and result.
    pairs: HashSet<(Hash, Hash)>,
    /// Whether a call was refused.
    has_refusal: bool,
}

/// The calls of a run with their results.
#[derive(Debug, Default)]
pub(super) struct LoopDetector {
    /// All pairs of call and result.
    seen: HashSet<(Hash, Hash)>,
    /// The occurrences of each pair since the last new pair.
    repeats: HashMap<(Hash, Hash), u32>,
    seen_outcomes: HashSet<ToolOutcome>,
    /// The calls of each outcome since the last new outcome.
    varied: HashMap<ToolOutcome, VariedCalls>,
    refused: HashSet<Hash>,
    /// The tools that are refused whatever their arguments are.
    refused_tools: HashSet<Hash>,
    current: CurrentResponse,
    /// The number of responses with a refused call since the last new pair.
    refusals: u32,
}

impl LoopDetector {
    /// Records the result of a call.
    pub(super) fn record(
        &mut self,
        call: CallKey<'_>,
        result: CallResult<'_>,
    ) -> Option<LoopAction> {
        let hash: Hash = Sha256::digest(result.content).into();
        let pair = (hash_call(call), hash);
        if !self.current.pairs.insert(pair) {
            return None;
        }
        if self.seen.insert(pair) && result.was_run {
            self.repeats.clear();
            self.refused.clear();
            self.refusals = 0;
        }
        let varied = self.record_outcome(call, pair.0, pair.1, result.was_run);
        let count = self.repeats.entry(pair).or_default();
        *count += 1;
        let tool = call.tool;
        match (*count, result.was_run) {
            (1, _) => varied,
            (MAX_EQUAL_RESULTS.., was_run) => {
                self.refused.insert(pair.0);
                let what = if was_run { "returned the same result" } else { "failed alike" };
                Some(LoopAction::Refuse(format!(
                    "`{tool}` {what} to the same arguments {MAX_EQUAL_RESULTS} times; the same \
                     call is refused from now on. Use other arguments or another tool, or respond \
                     with what you have."
                )))
            }
            (_, true) => Some(LoopAction::Warn(format!(
                "Note: `{tool}` already returned this result to the same arguments. A further call \
                 will not change the result."
            ))),
            (_, false) => Some(LoopAction::Warn(format!(
                "Note: the same call of `{tool}` already failed for this reason. A further call \
                 will not change that."
            ))),
        }
    }

    /// Counts the outcome of a call whose arguments may vary.
    fn record_outcome(
        &mut self,
        call: CallKey<'_>,
        call_hash: Hash,
        result: Hash,
        was_run: bool,
    ) -> Option<LoopAction> {
        let tool: Hash = Sha256::digest(call.tool).into();
        let outcome = ToolOutcome { tool, result };
        if self.seen_outcomes.insert(outcome) && was_run {
            self.varied.clear();
            self.refused_tools.clear();
        }
        let varied = self.varied.entry(outcome).or_default();
        varied.calls.insert(call_hash);
        if !std::mem::replace(&mut varied.is_in_current_response, true) {
            varied.responses += 1;
        }
        if varied.calls.len() < VARIED_CALLS_BEFORE_WARNING as usize {
            return None;
        }
        let tool_name = call.tool;
        let responses = varied.responses;
        match responses {
            MAX_VARIED_CALLS.. => {
                self.refused_tools.insert(tool);
                Some(LoopAction::Refuse(format!(
                    "`{tool_name}` gave the same result to different arguments {responses} times; \
                     it is refused until another tool has a new result. Use another tool, or \
                     respond with what you have."
                )))
            }
            VARIED_CALLS_BEFORE_WARNING.. => Some(LoopAction::Warn(format!(
                "Note: `{tool_name}` gave this same result to different arguments {responses} \
                 times. If that is not what you expect, other arguments will not change it."
            ))),
            _ => None,
        }
    }

    /// Returns the reason if a call is refused.
    pub(super) fn refusal(&mut self, call: CallKey<'_>) -> Option<String> {
        let tool: Hash = Sha256::digest(call.tool).into();
        let reason = if self.refused.contains(&hash_call(call)) {
            format!(
                "the same call returned the same result {MAX_EQUAL_RESULTS} times and was not run \
                 again"
            )
        } else if self.refused_tools.contains(&tool) {
            format!(
                "`{}` gave the same result to different arguments {MAX_VARIED_CALLS} times and was \
                 not run again",
                call.tool
            )
        } else {
            return None;
        };
        self.current.has_refusal = true;
        Some(reason)
    }

    /// Counts the response whose calls have all ended.
    pub(super) fn end_response(&mut self) {
        let current = std::mem::take(&mut self.current);
        self.varied.values_mut().for_each(|varied| varied.is_in_current_response = false);
        self.refusals += u32::from(current.has_refusal);
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
mod tests;
