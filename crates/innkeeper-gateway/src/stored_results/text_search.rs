//! Search of a text for a regular expression, in bounded time.

use std::time::Duration;

use memchr::{memchr, memrchr};
use regex::{Regex, RegexBuilder};
use tokio::time::Instant;

/// Maximum number of bytes of a pattern.
pub(crate) const MAX_PATTERN_BYTES: usize = 1_000;

/// Maximum size in bytes of a compiled pattern: the time for each byte of the text grows with it.
const MAX_COMPILED_BYTES: usize = 128 << 10;

/// Maximum number of bytes that are searched at once: behind a block, the time is checked. A block
/// takes at most about a third of a second, with the largest pattern.
const BLOCK_BYTES: usize = 8 << 10;

/// Number of bytes that two blocks within one line share: a longer match may be missed there.
const OVERLAP_BYTES: usize = 1 << 10;

/// Maximum time of one search; the next search continues.
const MAX_SEARCH_TIME: Duration = Duration::from_secs(1);

/// Maximum number of bytes of a match's line before and behind the start of the match.
const BYTES_BEFORE: usize = 100;
const BYTES_BEHIND: usize = 300;

/// The reason why a pattern cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PatternError {
    #[error("the pattern has more than {MAX_PATTERN_BYTES} bytes")]
    TooLong,
    #[error("the pattern is not a regular expression of bounded size: {0}")]
    Invalid(#[from] regex::Error),
}

#[derive(Clone, Debug)]
pub(crate) struct TextPattern(Regex);

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TextMatch {
    /// Offset of the match in bytes.
    pub(crate) offset: usize,
    /// The line of the match, or a part of a long line.
    pub(crate) text: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TextMatches {
    pub(crate) matches: Vec<TextMatch>,
    /// Where the next search continues; `None` at the end of the text.
    pub(crate) next_offset: Option<usize>,
}

impl TextPattern {
    /// Compiles a pattern. `^` and `$` match at the start and the end of each line.
    pub(crate) fn new(pattern: &str) -> Result<Self, PatternError> {
        if pattern.len() > MAX_PATTERN_BYTES {
            return Err(PatternError::TooLong);
        }
        let mut builder = RegexBuilder::new(pattern);
        builder.multi_line(true).size_limit(MAX_COMPILED_BYTES).dfa_size_limit(MAX_COMPILED_BYTES);
        Ok(Self(builder.build()?))
    }

    /// Returns the matches from `offset` on, at most `limit`. Matches in the shown surroundings of a
    /// match are not returned again. A match over several lines may be missed. The search ends early
    /// after [`MAX_SEARCH_TIME`].
    pub(crate) fn search(&self, text: &str, offset: usize, limit: usize) -> TextMatches {
        let deadline = Instant::now() + MAX_SEARCH_TIME;
        self.search_until(text, offset, limit, || Instant::now() >= deadline)
    }

    fn search_until(
        &self,
        text: &str,
        offset: usize,
        limit: usize,
        mut is_over: impl FnMut() -> bool,
    ) -> TextMatches {
        let mut matches = Vec::new();
        let start = text.floor_char_boundary(offset);
        let mut at = start;
        while at < text.len() {
            // Each search makes progress.
            if matches.len() >= limit || (at > start && is_over()) {
                return TextMatches { matches, next_offset: Some(at) };
            }
            let end = block_end(text, at);
            let is_cut = end < text.len() && !text[..end].ends_with('\n');
            let shared = if is_cut { text.floor_char_boundary(end - OVERLAP_BYTES) } else { end };
            at = match self.0.find_at(&text[..end], at) {
                None => shared,
                // The next block shows what follows the match.
                Some(found) if is_cut && found.end() == end && found.start() >= shared => {
                    found.start()
                }
                Some(found) => {
                    let shown = surroundings(text, found.start());
                    let next = shown.end.max(found.end());
                    matches.push(TextMatch { offset: found.start(), text: text[shown].to_owned() });
                    // The line break that ends a shown line, and an empty match at the end.
                    if text[next..].starts_with('\n') { next + 1 } else { next }
                }
            };
        }
        TextMatches { matches, next_offset: None }
    }
}

/// Returns the end of the block that starts at an offset: the end of a line if possible.
fn block_end(text: &str, start: usize) -> usize {
    let end = text.floor_char_boundary(start + BLOCK_BYTES);
    if end == text.len() {
        return end;
    }
    memrchr(b'\n', &text.as_bytes()[start..end]).map_or(end, |line_end| start + line_end + 1)
}

/// Returns the line of a match without its line break, or a part of a long line.
fn surroundings(text: &str, start: usize) -> std::ops::Range<usize> {
    let first = text.ceil_char_boundary(start.saturating_sub(BYTES_BEFORE));
    let last = text.floor_char_boundary(start + BYTES_BEHIND);
    let bytes = text.as_bytes();
    let line_start = memrchr(b'\n', &bytes[first..start]).map_or(first, |found| first + found + 1);
    let line_end = memchr(b'\n', &bytes[start..last]).map_or(last, |found| start + found);
    line_start..line_end
}

#[cfg(test)]
mod tests;
