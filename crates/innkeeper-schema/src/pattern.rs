//! Compiles the regular expressions of a schema with bounded matching time.

use std::ops::RangeInclusive;

use jsonschema::{Draft, PatternOptions, ValidationOptions};
use serde_json::json;

use crate::error::SchemaError;
use crate::limits::{MAX_PATTERNS, MAX_TOTAL_BYTES};

/// Sizes tried for a compiled expression, as powers of two, in bytes. Compiling an expression of
/// the last size takes about a tenth of a second.
const SIZE_EXPONENTS: RangeInclusive<u32> = 12..=22;

/// Size of a small expression, in bytes: that many expressions never exceed the total.
const SMALL_BYTES: u64 = MAX_TOTAL_BYTES / MAX_PATTERNS as u64;

/// Maximum size of the matching cache of one expression, in bytes; allocated on demand.
const MAX_CACHE_BYTES: usize = 1 << 19;

/// Maximum number of backtracks in one match, before the match is undecided.
const MAX_BACKTRACKS: usize = 20_000;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PatternCost {
    /// Compiled size in bytes, rounded up.
    pub(crate) size: u64,
    /// Whether the expression has look-around or back-references, which need backtracking.
    pub(crate) needs_backtracking: bool,
}

impl PatternCost {
    /// Returns the maximum number of steps, each below a nanosecond, to match a string of `bytes`.
    pub(crate) fn match_steps(self, bytes: usize) -> u64 {
        let bytes = bytes as u64 + 1;
        let starts = if self.needs_backtracking { bytes } else { 1 };
        self.size.saturating_mul(bytes).saturating_mul(starts)
    }
}

/// Returns upper bounds under which small expressions compile. Returns `None` without expressions,
/// and if an expression may need backtracking.
pub(crate) fn bound_small(patterns: &[String]) -> Option<Vec<PatternCost>> {
    let bound = PatternCost { size: SMALL_BYTES, needs_backtracking: false };
    let is_usual = !patterns.is_empty() && !patterns.iter().any(|text| may_backtrack(text));
    is_usual.then(|| vec![bound; patterns.len()])
}

/// Measures the compiled size of the expressions.
///
/// # Errors
///
/// Returns the expression that cannot be compiled, or the exceeded total size.
pub(crate) fn measure(patterns: &[String]) -> Result<Vec<PatternCost>, SchemaError> {
    let mut measured = Vec::with_capacity(patterns.len());
    let mut together = 0;
    for text in patterns {
        let pattern =
            probe(text).ok_or_else(|| SchemaError::InvalidPattern { pattern: text.clone() })?;
        together += pattern.size;
        if together > MAX_TOTAL_BYTES {
            return Err(SchemaError::PatternsTooLarge);
        }
        measured.push(pattern);
    }
    Ok(measured)
}

fn probe(text: &str) -> Option<PatternCost> {
    let needs_backtracking = may_backtrack(text);
    SIZE_EXPONENTS.map(|power| 1 << power).find_map(|size| {
        let linear = PatternCost { size, needs_backtracking: false };
        let choices = [
            Some(linear),
            needs_backtracking.then_some(PatternCost { needs_backtracking, ..linear }),
        ];
        choices.into_iter().flatten().find(|pattern| {
            let schema = json!({"pattern": text});
            options(Draft::Draft202012, &[*pattern]).build(&schema).is_ok()
        })
    })
}

/// Returns whether the text may need backtracking; false positives are possible.
fn may_backtrack(text: &str) -> bool {
    let looks_around = text.contains("(?")
        && ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|start| text.contains(start));
    let refers_back =
        text.split('\\').skip(1).any(|rest| rest.starts_with(|c| matches!(c, '1'..='9' | 'k')));
    looks_around || refers_back
}

/// Returns the compile options: nothing is fetched, `format` and `content…` stay annotations (the
/// specification's default), and no match exceeds [`PatternCost::match_steps`].
pub(crate) fn options(draft: Draft, patterns: &[PatternCost]) -> ValidationOptions<'static> {
    let size = patterns.iter().map(|pattern| pattern.size).max().unwrap_or_default();
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let options = jsonschema::options()
        .with_draft(draft)
        .offline()
        .should_validate_formats(false)
        .without_content_encoding_support("base64")
        .without_content_media_type_support("application/json");
    if patterns.iter().any(|pattern| pattern.needs_backtracking) {
        options.with_pattern_options(
            PatternOptions::fancy_regex()
                .backtrack_limit(MAX_BACKTRACKS)
                .size_limit(size)
                .dfa_size_limit(MAX_CACHE_BYTES),
        )
    } else {
        options.with_pattern_options(
            PatternOptions::regex().size_limit(size).dfa_size_limit(MAX_CACHE_BYTES),
        )
    }
}
