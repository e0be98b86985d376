//! Regular expressions of a schema: compiled so that matching takes a bounded time.

use std::ops::RangeInclusive;

use jsonschema::{Draft, PatternOptions, ValidationOptions};
use serde_json::json;

use super::words::quoted;

/// The sizes tried for a compiled expression, as powers of two, in bytes. Compiling one of the last
/// size takes about a tenth of a second.
const SIZES: RangeInclusive<u32> = 12..=22;

/// The most all expressions of a schema may take together, in bytes.
const TOGETHER: u64 = 1 << 22;

/// What matching may remember of one expression, in bytes; only used as far as needed.
const REMEMBERED: usize = 1 << 19;

/// How often one match may take back a choice, before it is given up as undecided.
const BACKTRACKS: usize = 20_000;

/// What is known of one expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pattern {
    /// Its compiled size in bytes, rounded up.
    pub(super) size: u64,
    /// Whether it looks around or refers back, which no linear-time matcher can do.
    pub(super) backtracks: bool,
}

impl Pattern {
    /// The most a match against a string of `bytes` can take, in steps below a nanosecond.
    pub(super) fn steps(self, bytes: usize) -> u64 {
        let bytes = bytes as u64 + 1;
        let starts = if self.backtracks { bytes } else { 1 };
        self.size.saturating_mul(bytes).saturating_mul(starts)
    }
}

/// Finds out how large the expressions are when compiled.
///
/// # Errors
///
/// The expression that cannot be compiled, or that they are too large together, as a sentence.
pub(super) fn measure(patterns: &[String]) -> Result<Vec<Pattern>, String> {
    let mut measured = Vec::with_capacity(patterns.len());
    let mut together = 0;
    for text in patterns {
        let pattern = probe(text)
            .ok_or_else(|| format!("its pattern {} is invalid or too large", quoted(text)))?;
        together += pattern.size;
        if together > TOGETHER {
            return Err(format!("its patterns take more than {TOGETHER} bytes together"));
        }
        measured.push(pattern);
    }
    Ok(measured)
}

fn probe(text: &str) -> Option<Pattern> {
    let backtracks = may_backtrack(text);
    SIZES.map(|power| 1 << power).find_map(|size| {
        let linear = Pattern { size, backtracks: false };
        let choices = [Some(linear), backtracks.then_some(Pattern { backtracks, ..linear })];
        choices.into_iter().flatten().find(|pattern| {
            let schema = json!({"pattern": text});
            options(Draft::Draft202012, &[*pattern]).build(&schema).is_ok()
        })
    })
}

/// Whether the text has what only a backtracking matcher can do; sometimes says so in vain.
fn may_backtrack(text: &str) -> bool {
    let looks_around = ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|start| text.contains(start));
    let refers_back =
        text.split('\\').skip(1).any(|rest| rest.starts_with(|c| matches!(c, '1'..='9' | 'k')));
    looks_around || refers_back
}

/// How schemas are compiled: nothing is fetched, `format` and `content…` stay annotations (the
/// specification's default), and no match takes longer than [`Pattern::steps`] says.
pub(super) fn options(draft: Draft, patterns: &[Pattern]) -> ValidationOptions<'static> {
    let size = patterns.iter().map(|pattern| pattern.size).max().unwrap_or_default();
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let options = jsonschema::options()
        .with_draft(draft)
        .offline()
        .should_validate_formats(false)
        .without_content_encoding_support("base64")
        .without_content_media_type_support("application/json");
    if patterns.iter().any(|pattern| pattern.backtracks) {
        options.with_pattern_options(
            PatternOptions::fancy_regex()
                .backtrack_limit(BACKTRACKS)
                .size_limit(size)
                .dfa_size_limit(REMEMBERED),
        )
    } else {
        options.with_pattern_options(
            PatternOptions::regex().size_limit(size).dfa_size_limit(REMEMBERED),
        )
    }
}
