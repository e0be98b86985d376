//! Judges a replay: the one place that compares its result with that of the golden.

use innkeeper_agent::golden::{
    Difference, Golden, Rules, compare, differences, is_varying_in_output,
};

use crate::error_chain::error_chain;

/// Maximum number of differences in a report.
const MAX_DIFFERENCES: usize = 50;

/// What a comparison says.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::commands) struct Judgement {
    /// Whether the result is that of the golden.
    pub(super) passed: bool,
    /// What differs, one line each; empty if nothing does.
    pub(in crate::commands) report: String,
}

/// Compares the result of a replay with the recorded one: by the rules next to the golden, else by
/// those in it, else exactly.
pub(in crate::commands) fn judge(
    golden: &Golden,
    replayed: &Golden,
    rules: Option<&Rules>,
) -> Judgement {
    let rules = rules.or(golden.rules.as_ref());
    match compare(&golden.golden_output, &replayed.golden_output, rules) {
        Ok(comparison) if comparison.passed() => Judgement { passed: true, report: String::new() },
        Ok(comparison) => Judgement { passed: false, report: comparison.to_string() },
        Err(error) => {
            let report: Vec<_> = error_chain(&error).map(ToString::to_string).collect();
            Judgement { passed: false, report: report.join(": ") }
        }
    }
}

/// Returns the differences between the results of two runs, except for what varies from run to run.
pub(super) fn result_differences(golden: &Golden, replayed: &Golden) -> Vec<Difference> {
    let expected = &golden.golden_output;
    let actual = &replayed.golden_output;
    differences(expected, actual, &is_varying_in_output, MAX_DIFFERENCES)
}

#[cfg(test)]
mod tests {
    use super::super::samples::sample;
    use super::*;
    use serde_json::value::RawValue;

    #[test]
    fn the_report_names_each_changed_field_and_rules_decide_what_counts() {
        let golden = sample();
        let same = Judgement { passed: true, report: String::new() };
        assert_eq!(judge(&golden, &golden, None), same);
        let mut changed = golden.clone();
        let text = golden.golden_output.get().replace("Only one", "None");
        changed.golden_output = RawValue::from_string(text).unwrap();
        let Judgement { passed, report } = judge(&golden, &changed, None);
        assert!(!passed && report.contains("`/final_result`"), "{report}");
        let rules = Rules::from_json(br#"{"tool_chain": {"order": "strict"}}"#).unwrap();
        assert_eq!(judge(&golden, &changed, Some(&rules)), same);
    }
}
