//! The rules about the end of a run: its outcome, errors, limits and last text.

use super::{Bound, Mismatch};
use crate::output::{ErrorOutput, RunOutput};
use crate::rules::{Bounds, ErrorRule, FinalTextRule};
use crate::similarity::{contains, similarity};
use crate::varying::normalize_message;

/// Compares success and the messages of failures. Ids, dates, times and case do not count.
pub(super) fn compare_outcomes(golden: &RunOutput<'_>, actual: &RunOutput<'_>) -> Vec<Mismatch> {
    let [expected, got] = [golden, actual].map(|output| {
        (!output.success).then(|| output.error.clone().unwrap_or_else(|| "no reason".to_owned()))
    });
    if expected.as_deref().map(normalize_message) == got.as_deref().map(normalize_message) {
        return Vec::new();
    }
    vec![Mismatch::OutcomeChanged { expected, actual: got }]
}

pub(super) fn compare_errors(
    golden: &RunOutput<'_>,
    actual: &RunOutput<'_>,
    rule: ErrorRule,
) -> Vec<Mismatch> {
    match rule {
        ErrorRule::Pattern => {}
    }
    let [expected, got] =
        [golden, actual].map(|output| output.errors.iter().map(pattern).collect::<Vec<String>>());
    let same_start = expected.iter().zip(&got).take_while(|(left, right)| left == right).count();
    let same_end = expected
        .iter()
        .rev()
        .zip(got.iter().rev())
        .take_while(|(left, right)| left == right)
        .count()
        .min(expected.len() - same_start)
        .min(got.len() - same_start);
    let [expected, got] =
        [&expected, &got].map(|errors| &errors[same_start..errors.len() - same_end]);
    let mismatches = (0..expected.len().max(got.len())).map(|at| Mismatch::ErrorDiffers {
        error: same_start + at + 1,
        expected: expected.get(at).cloned(),
        actual: got.get(at).cloned(),
    });
    mismatches.filter(|mismatch| !is_same_error(mismatch)).collect()
}

fn is_same_error(mismatch: &Mismatch) -> bool {
    matches!(mismatch, Mismatch::ErrorDiffers { expected, actual, .. } if expected == actual)
}

/// Returns what counts of an error, as one line: ``"timed out" of `fs.read`, then `same_call` ``.
fn pattern(error: &ErrorOutput) -> String {
    let message = serde_json::Value::from(normalize_message(&error.error)).to_string();
    let tool = error.tool_name.as_ref().map(|tool| format!(" of `{tool}`")).unwrap_or_default();
    let action = error.recovery_action.as_ref();
    let action = action.map(|action| format!(", then `{action}`")).unwrap_or_default();
    format!("{message}{tool}{action}")
}

/// Returns the exceeded limits.
pub(super) fn check_bounds(actual: &RunOutput<'_>, bounds: &Bounds) -> Vec<Mismatch> {
    let Bounds { max_tokens, max_calls, max_iterations, max_seconds } = *bounds;
    let metadata = &actual.execution_metadata;
    let usage = &metadata.token_usage;
    let calls = actual.tool_chain.len() as u64;
    let mut mismatches = Vec::new();
    let counts = [
        (Bound::Tokens, usage.total_tokens, max_tokens),
        (Bound::Calls, calls, max_calls),
        (Bound::Iterations, metadata.total_iterations, max_iterations),
    ];
    for (bound, value, limit) in counts {
        match limit {
            Some(limit) if value > limit => mismatches.push(Mismatch::BoundExceeded {
                bound,
                value: value as f64,
                limit: limit as f64,
            }),
            Some(_) if bound == Bound::Tokens && !usage.available => {
                mismatches.push(Mismatch::BoundUnknown { bound });
            }
            Some(_) | None => {}
        }
    }
    let value = metadata.total_execution_time;
    if let Some(limit) = max_seconds.filter(|limit| value > *limit) {
        mismatches.push(Mismatch::BoundExceeded { bound: Bound::Seconds, value, limit });
    }
    mismatches
}

/// Compares the last texts.
pub(super) fn compare_texts(
    golden: &RunOutput<'_>,
    actual: &RunOutput<'_>,
    rule: &FinalTextRule,
) -> Vec<Mismatch> {
    let [expected, got] = [golden, actual].map(|output| output.final_result.as_deref());
    let mut mismatches = Vec::new();
    if let Some(min_similarity) = rule.min_similarity {
        let similarity = match (expected, got) {
            (Some(expected), Some(got)) => similarity(expected, got),
            (None, None) => 1.0,
            (Some(_), None) | (None, Some(_)) => 0.0,
        };
        // Written so that a limit that is not a number is never reached.
        let is_similar = similarity >= min_similarity;
        if !is_similar {
            mismatches.push(Mismatch::TextDiffers {
                similarity,
                min_similarity,
                expected: expected.map(str::to_owned),
                actual: got.map(str::to_owned),
            });
        }
    }
    let missing = rule.contains.iter().filter(|part| !got.is_some_and(|text| contains(text, part)));
    mismatches.extend(
        missing.map(|part| Mismatch::TextMissing {
            part: part.clone(),
            actual: got.map(str::to_owned),
        }),
    );
    mismatches
}
