//! Grammar rule for text in which a marker always starts a call.

use super::rules::{RuleSet, escape_in_class};

/// Returns the rule of text in which `call` follows each `trigger`.
///
/// The rule is a Knuth-Morris-Pratt automaton: one grammar rule per length of the trigger's prefix
/// that the text ends with. Each character leads to the longest matching prefix.
pub(super) fn free_text_rule(rules: &mut RuleSet, trigger: &str, call: &str) -> String {
    let marker: Vec<char> = trigger.chars().collect();
    let names: Vec<String> = marker.iter().map(|_| rules.unique_name("prose")).collect();
    let mut letters = marker.clone();
    letters.sort_unstable();
    letters.dedup();
    let none: String = letters.iter().map(|letter| escape_in_class(*letter)).collect();
    for (matched, name) in names.iter().enumerate() {
        let mut alternatives = vec![String::new()];
        for letter in &letters {
            let next = matched_prefix_len(&marker, matched, *letter);
            let rest = if next == marker.len() {
                format!("{call} {}", names[0])
            } else {
                names[next].clone()
            };
            alternatives.push(format!("[{}] {rest}", escape_in_class(*letter)));
        }
        alternatives.push(format!("[^{none}] {}", names[0]));
        rules.define(name.clone(), alternatives.join(" | "));
    }
    names.first().cloned().unwrap_or_else(|| call.to_owned())
}

/// Length of the marker's prefix that the text ends with after one more character.
fn matched_prefix_len(marker: &[char], matched: usize, letter: char) -> usize {
    let mut text = marker[..matched].to_vec();
    text.push(letter);
    (0..=text.len()).rev().find(|length| text.ends_with(&marker[..*length])).unwrap_or(0)
}
