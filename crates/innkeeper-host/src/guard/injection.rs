//! Detects instructions to a model in the normalized form of a text.
//!
//! Text that is only quoted or reported (a page about such attacks, a ticket that reports one) is
//! not a finding if the same sentence says so before the match.

mod patterns;
mod rules;

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

use super::FindingKind;
use rules::{InjectionRule, Near, RULES, expand};

/// Number of bytes before a match that are searched for words that introduce a quotation.
const QUOTATION_CONTEXT_BYTES: usize = 160;

/// Maximum number of matches of a rule that are checked in a text.
const MAX_MATCHES: usize = 256;

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
    rules: Vec<CompiledRule>,
    quotation: Regex,
    /// Words that introduce a quotation only before a quotation mark.
    example: Regex,
}

struct CompiledRule {
    pattern: Regex,
    near: Option<Regex>,
}

static COMPILED_RULES: LazyLock<CompiledRules> = LazyLock::new(|| {
    let made = "a test compiles every rule";
    // Normalized text and rules are ASCII; without Unicode the compiled rules stay small.
    let one = |pattern: &str| RegexBuilder::new(pattern).unicode(false).build().expect(made);
    let patterns = RULES.iter().map(InjectionRule::pattern);
    CompiledRules {
        set: RegexSetBuilder::new(patterns).unicode(false).build().expect(made),
        rules: RULES
            .iter()
            .map(|rule| CompiledRule {
                pattern: one(&rule.pattern()),
                near: match rule.near {
                    Near::Anything => None,
                    Near::Before(pattern, _) | Near::After(pattern, _) => {
                        Some(one(&expand(pattern)))
                    }
                },
            })
            .collect(),
        quotation: one(patterns::QUOTATION_PATTERN),
        example: one(patterns::EXAMPLE_PATTERN),
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

/// The rules that match a text.
#[derive(Debug, Default)]
pub(super) struct Injections {
    /// Each rule once.
    pub(super) found: Vec<(FindingKind, &'static str)>,
    /// Whether a rule without a finding has more matches than the limit.
    pub(super) is_incomplete: bool,
}

/// The reason of an incomplete search.
pub(super) const TOO_MANY_MATCHES: &str =
    "not scanned: more than 256 quoted matches of one pattern in one text";

/// Returns the rules that match a text. One search finds the rules with a match, and ordinary text
/// has none.
pub(super) fn find_injections(plain: &str, source: TextSource) -> Injections {
    let mut injections = Injections::default();
    let ready = &*COMPILED_RULES;
    for at in &ready.set.matches(plain.as_bytes()) {
        let rule = &RULES[at];
        let compiled = &ready.rules[at];
        if !rule.applies_to(source) {
            continue;
        }
        let mut matches = Matches { plain, rule, compiled, at: 0 };
        if matches.by_ref().take(MAX_MATCHES).any(|range| is_meant(plain, rule, range)) {
            injections.found.push((rule.kind, rule.reason));
        } else {
            injections.is_incomplete |= matches.next().is_some();
        }
    }
    injections
}

/// The matches of a rule that have near them what the rule needs.
struct Matches<'t> {
    plain: &'t str,
    rule: &'t InjectionRule,
    compiled: &'t CompiledRule,
    at: usize,
}

impl Iterator for Matches<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        loop {
            let found = self.compiled.pattern.find_at(self.plain.as_bytes(), self.at)?.range();
            if is_near(self.plain, self.rule, self.compiled, &found) {
                self.at = found.end.max(found.start + 1);
                return Some(found);
            }
            // A later word of this match can be the start of another.
            self.at = found.start + 1;
        }
    }
}

fn is_near(
    plain: &str,
    rule: &InjectionRule,
    compiled: &CompiledRule,
    found: &Range<usize>,
) -> bool {
    let Some(near) = &compiled.near else { return true };
    let window = match rule.near {
        Near::Anything => return true,
        Near::Before(_, bytes) => found.start.saturating_sub(bytes)..found.start,
        Near::After(_, bytes) => found.end..plain.len().min(found.end + bytes),
    };
    near.is_match(&plain.as_bytes()[window])
}

fn is_meant(plain: &str, rule: &InjectionRule, found: Range<usize>) -> bool {
    let start = found.start;
    let excerpt = &plain[found];
    !rule.exceptions.iter().any(|word| excerpt.contains(word)) && !is_quoted(plain, start)
}

/// Returns whether the sentence introduces a position as a quotation.
pub(super) fn is_quoted(plain: &str, at: usize) -> bool {
    let ready = &*COMPILED_RULES;
    let before = sentence_before(plain, at).as_bytes();
    // An example is a quotation only with a quotation mark: "for example:" is also an introduction
    // of an order.
    ready.quotation.is_match(before)
        || ready
            .example
            .find_iter(before)
            .any(|found| before[found.end()..].iter().any(|byte| b"\"'`(<[".contains(byte)))
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
