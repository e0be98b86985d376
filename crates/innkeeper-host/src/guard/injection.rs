//! Detects instructions to a model in the normalized form of a text.
//!
//! Text that is only quoted or reported (a page about such attacks, a ticket that reports one) is
//! not a finding if the same sentence says so before the match.

mod patterns;
mod rules;

use std::sync::LazyLock;

use regex::bytes::{Match, Regex, RegexBuilder, RegexSet, RegexSetBuilder};

use super::FindingKind;
use rules::{InjectionRule, RULES};

/// Number of bytes before a match that are searched for words that introduce a quotation.
const QUOTATION_CONTEXT_BYTES: usize = 160;

/// Maximum number of matches of a rule that are checked in a text; a text with more is about
/// attacks.
const MAX_MATCHES: usize = 256;

/// The origin of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextSource {
    /// A definition or instructions of a server.
    Definition,
    /// A tool result.
    Result,
}

/// The rules, compiled once.
struct CompiledRules {
    set: RegexSet,
    rules: Vec<Regex>,
    quotation: Regex,
}

static COMPILED_RULES: LazyLock<CompiledRules> = LazyLock::new(|| {
    let patterns: Vec<String> = RULES.iter().map(InjectionRule::pattern).collect();
    let made = "a test compiles every rule";
    // Normalized text and rules are ASCII; without Unicode the compiled rules stay small.
    let one = |pattern: &str| RegexBuilder::new(pattern).unicode(false).build().expect(made);
    CompiledRules {
        set: RegexSetBuilder::new(&patterns).unicode(false).build().expect(made),
        rules: patterns.iter().map(|pattern| one(pattern)).collect(),
        quotation: one(patterns::QUOTATION_PATTERN),
    }
});

/// Compiles the rules.
pub(super) fn prepare() {
    LazyLock::force(&COMPILED_RULES);
}

/// Returns whether the rules are compiled.
#[cfg(test)]
pub(super) fn is_ready() -> bool {
    LazyLock::get(&COMPILED_RULES).is_some()
}

/// Returns the rules that match a text, each rule once.
pub(super) fn find_injections(plain: &str, source: TextSource) -> Vec<(FindingKind, &'static str)> {
    let ready = &*COMPILED_RULES;
    let bytes = plain.as_bytes();
    let matched = ready.set.matches(bytes);
    let mut kinds = Vec::new();
    for at in matched.iter() {
        let rule = &RULES[at];
        if !rule.applies_to(source) {
            continue;
        }
        let is_meant = |matched_text: &Match<'_>| {
            let excerpt = &plain[matched_text.range()];
            let excepted = rule.exceptions.iter().any(|word| excerpt.contains(word));
            !excepted
                && !ready
                    .quotation
                    .is_match(sentence_before(plain, matched_text.start()).as_bytes())
        };
        if ready.rules[at].find_iter(bytes).take(MAX_MATCHES).any(|candidate| is_meant(&candidate))
        {
            kinds.push((rule.kind, rule.reason));
        }
    }
    kinds
}

/// Returns the text before a position in its sentence.
fn sentence_before(plain: &str, at: usize) -> &str {
    let start = plain.ceil_char_boundary(at.saturating_sub(QUOTATION_CONTEXT_BYTES));
    let before = &plain[start.min(at)..at];
    let terminators = ["\n", ". ", "! ", "? "];
    let sentence = terminators
        .iter()
        .filter_map(|terminator| before.rfind(terminator).map(|at| at + terminator.len()))
        .max();
    &before[sentence.unwrap_or(0)..]
}

#[cfg(test)]
mod tests;
