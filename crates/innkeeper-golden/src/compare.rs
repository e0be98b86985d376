//! The comparison of a run with its golden.
//!
//! The comparison is pure and gives values: a [`Judgement`] for each rule that was applied, with typed
//! [`Mismatch`]es. Their `Display` is the report of a failed test. A comparison that judged nothing
//! has not passed.

mod exact;
mod mismatch;
mod report;
mod responses;
mod result;
mod tool_chain;

use std::fmt;

use serde_json::value::RawValue;

use crate::output::RunOutput;
use crate::rules::{Rules, pointer};

pub use mismatch::{Bound, CallPlace, Mismatch};

/// Maximum number of mismatches of one rule. More say nothing new.
pub const MAX_MISMATCHES: usize = 1000;

/// What the rules found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// The applied rules, in the order of the members of [`Rules`].
    pub judged: Vec<Judgement>,
}

/// What one rule found.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The rule: the name of its member in [`Rules`].
    pub rule: &'static str,
    /// Whether the run keeps the rule.
    pub verdict: Verdict,
}

/// Whether a run keeps a rule.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The run keeps the rule.
    Passed,
    /// The run breaks the rule, at most [`MAX_MISMATCHES`] times.
    Failed(Vec<Mismatch>),
}

/// One of the two compared results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The recorded result.
    Golden,
    /// The result that is compared with the recorded one.
    Actual,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Golden => "the recorded output",
            Self::Actual => "the output to compare",
        })
    }
}

/// Why results cannot be compared.
#[derive(Debug, thiserror::Error)]
#[error("{side} is not the result of a run: invalid value at `{place}`")]
pub struct CompareError {
    /// The result.
    pub side: Side,
    /// The JSON pointer of the wrong value, or `/`.
    pub place: String,
    /// What is wrong.
    pub source: serde_json::Error,
}

impl Comparison {
    /// Returns whether at least one rule was applied, and the run keeps all rules.
    pub fn passed(&self) -> bool {
        !self.judged.is_empty()
            && self.judged.iter().all(|judgement| judgement.verdict == Verdict::Passed)
    }
}

impl Judgement {
    fn new(rule: &'static str, mut mismatches: Vec<Mismatch>) -> Self {
        mismatches.truncate(MAX_MISMATCHES);
        let verdict =
            if mismatches.is_empty() { Verdict::Passed } else { Verdict::Failed(mismatches) };
        Self { rule, verdict }
    }
}

/// Compares the result of a run with the golden's `golden_output`. Without rules, the results must be
/// equal but for what differs from run to run.
///
/// # Errors
///
/// A rule needs to look into a value that is not the result of a run.
pub fn compare(
    golden: &RawValue,
    actual: &RawValue,
    rules: Option<&Rules>,
) -> Result<Comparison, CompareError> {
    let default_rules = Rules::exact();
    let rules = rules.unwrap_or(&default_rules);
    let mut judged = Vec::new();
    if rules.exact {
        judged.push(Judgement::new("exact", exact::find_differences(golden, actual)));
    }
    // Equality is also judged of values that are not the result of a run.
    let other_rules = Rules { exact: false, ..rules.clone() };
    if other_rules != Rules::default() {
        let golden = read(golden, Side::Golden)?;
        let actual = read(actual, Side::Actual)?;
        judge_run(&golden, &actual, &other_rules, &mut judged);
    }
    Ok(Comparison { judged })
}

fn judge_run(
    golden: &RunOutput<'_>,
    actual: &RunOutput<'_>,
    rules: &Rules,
    judged: &mut Vec<Judgement>,
) {
    let mut judge = |rule, mismatches| judged.push(Judgement::new(rule, mismatches));
    if let Some(rule) = &rules.tool_chain {
        let skips_new_tools = rules.allow_new_tools == Some(true);
        judge("tool_chain", tool_chain::find_mismatches(golden, actual, rule, skips_new_tools));
    }
    if !rules.forbidden_tools.is_empty() {
        judge("forbidden_tools", tool_chain::find_forbidden(actual, &rules.forbidden_tools));
    }
    if rules.allow_new_tools == Some(false) {
        judge("allow_new_tools", tool_chain::find_new(golden, actual));
    }
    if rules.outcome {
        judge("outcome", result::compare_outcomes(golden, actual));
    }
    if let Some(rule) = rules.errors {
        judge("errors", result::compare_errors(golden, actual, rule));
    }
    if let Some(bounds) = &rules.bounds {
        judge("bounds", result::check_bounds(actual, bounds));
    }
    if let Some(rule) = &rules.final_text {
        judge("final_text", result::compare_texts(golden, actual, rule));
    }
}

fn read(output: &RawValue, side: Side) -> Result<RunOutput<'_>, CompareError> {
    let mut deserializer = serde_json::Deserializer::from_str(output.get());
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| CompareError {
        side,
        place: pointer(error.path()),
        source: error.into_inner(),
    })
}

#[cfg(test)]
mod tests;
