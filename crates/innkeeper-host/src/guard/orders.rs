//! Words that give orders to a model where there should be data, found in the plain form of a text.
//!
//! What is only quoted or told of (a page about such attacks, a ticket that reports one) is left,
//! where the same sentence says so before.

mod table;
mod words;

use std::sync::LazyLock;

use regex::bytes::{Match, Regex, RegexBuilder, RegexSet, RegexSetBuilder};

use super::FindingKind;
use table::{RULES, Rule};

/// How far before a match the sentence is read for words that say it is only told of.
const TOLD_BEFORE: usize = 160;

/// Matches of one rule that are weighed in one text; one that has more of them is about such things.
const MATCHES: usize = 256;

/// Where a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// What a server says of itself and its tools.
    Definition,
    /// What a tool answered.
    Result,
}

/// The rules, made ready once.
struct Ready {
    set: RegexSet,
    each: Vec<Regex>,
    told: Regex,
}

static READY: LazyLock<Ready> = LazyLock::new(|| {
    let patterns: Vec<String> = RULES.iter().map(Rule::pattern).collect();
    let made = "a test makes every rule";
    // Plain text is ASCII, and so are the rules: what is made of them stays small.
    let one = |pattern: &str| RegexBuilder::new(pattern).unicode(false).build().expect(made);
    Ready {
        set: RegexSetBuilder::new(&patterns).unicode(false).build().expect(made),
        each: patterns.iter().map(|pattern| one(pattern)).collect(),
        told: one(words::TOLD_OF),
    }
});

/// Makes the rules ready.
pub(super) fn prepare() {
    LazyLock::force(&READY);
}

/// Whether that was done.
#[cfg(test)]
pub(super) fn is_ready() -> bool {
    LazyLock::get(&READY).is_some()
}

/// Which orders stand in a text, each rule once.
pub(super) fn orders(plain: &str, source: Source) -> Vec<(FindingKind, &'static str)> {
    let ready = &*READY;
    let bytes = plain.as_bytes();
    let matched = ready.set.matches(bytes);
    let mut found = Vec::new();
    for at in matched.iter() {
        let rule = &RULES[at];
        if !rule.holds_in(source) {
            continue;
        }
        let is_meant = |found: &Match<'_>| {
            let said = &plain[found.range()];
            let excepted = rule.except.iter().any(|word| said.contains(word));
            !excepted && !ready.told.is_match(before(plain, found.start()).as_bytes())
        };
        if ready.each[at].find_iter(bytes).take(MATCHES).any(|found| is_meant(&found)) {
            found.push((rule.kind, rule.reason));
        }
    }
    found
}

/// What stands before a place in its sentence.
fn before(plain: &str, at: usize) -> &str {
    let start = plain.ceil_char_boundary(at.saturating_sub(TOLD_BEFORE));
    let before = &plain[start.min(at)..at];
    let ends = ["\n", ". ", "! ", "? "];
    let sentence = ends.iter().filter_map(|end| before.rfind(end).map(|at| at + end.len())).max();
    &before[sentence.unwrap_or(0)..]
}

#[cfg(test)]
mod tests;
