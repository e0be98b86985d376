//! Fuzz target: rules of a comparison, and the two results that they judge, separated by lines with
//! `---`.

use innkeeper_golden::{Rules, compare};
use serde_json::value::RawValue;

/// Reads the input as rules and two results, and compares the results.
pub fn golden_rules(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let mut parts = text.split("\n---\n");
    let rules = parts.next().and_then(|rules| Rules::from_json(rules.as_bytes()).ok());
    let mut result = || serde_json::from_str::<Box<RawValue>>(parts.next()?).ok();
    let (Some(golden), Some(actual)) = (result(), result()) else { return };
    for rules in [rules.as_ref(), None] {
        if let Ok(comparison) = compare(&golden, &actual, rules) {
            assert!(!comparison.judged.is_empty(), "rules that judge nothing were read");
            assert!(!comparison.to_string().is_empty());
        }
    }
}
