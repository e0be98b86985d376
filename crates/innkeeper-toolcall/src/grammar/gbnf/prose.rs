//! Text that does not hold a marker, except where a call follows it.

use super::rules::{Rules, in_class};

/// The rule of text in which each `trigger` is followed by `call`.
///
/// One rule for each length of the trigger's beginning that the text ends with so far; every
/// character leads to the longest beginning it completes.
pub(super) fn rules(rules: &mut Rules, trigger: &str, call: &str) -> String {
    let marker: Vec<char> = trigger.chars().collect();
    let names: Vec<String> = marker.iter().map(|_| rules.name("prose")).collect();
    let mut letters = marker.clone();
    letters.sort_unstable();
    letters.dedup();
    let none: String = letters.iter().map(|letter| in_class(*letter)).collect();
    for (matched, name) in names.iter().enumerate() {
        let mut ways = vec![String::new()];
        for letter in &letters {
            let next = completed(&marker, matched, *letter);
            let rest = if next == marker.len() {
                format!("{call} {}", names[0])
            } else {
                names[next].clone()
            };
            ways.push(format!("[{}] {rest}", in_class(*letter)));
        }
        ways.push(format!("[^{none}] {}", names[0]));
        rules.define(name.clone(), ways.join(" | "));
    }
    names.first().cloned().unwrap_or_else(|| call.to_owned())
}

/// How much of the marker's beginning the text ends with after one more character.
fn completed(marker: &[char], matched: usize, letter: char) -> usize {
    let mut text = marker[..matched].to_vec();
    text.push(letter);
    let ends_with = |length: &usize| text.ends_with(&marker[..*length]);
    (0..=text.len()).rev().find(ends_with).unwrap_or(0)
}
