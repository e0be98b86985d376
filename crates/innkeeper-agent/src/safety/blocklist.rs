//! Blocks tools by name patterns.

use innkeeper_toolcall::{RejectReason, RejectedCall, Repair, ResolvedCall, quote_for_prompt};
use regex::RegexSet;

/// Maximum number of patterns, and maximum number of bytes per pattern.
const MAX_PATTERNS: usize = 1_000;
const MAX_PATTERN_BYTES: usize = 1_000;

/// Maximum number of bytes of memory per compiled set of patterns.
const MAX_REGEX_BYTES: usize = 1 << 20;

/// Compiled patterns of blocked tool names.
///
/// A pattern with `*` or `?` is a glob for the whole public name. A pattern that starts with `re:`
/// is a regular expression that matches anywhere in the name. Any other pattern matches a whole
/// segment of the name. Segments end at characters that are neither letters nor digits, between
/// letters and digits, and before a capital letter that starts a word: `rm` blocks `fs.rm`,
/// `rm_file`, `rm2` and `fileRm`, but not `format_text`. Patterns ignore case.
#[derive(Clone, Debug, Default)]
pub struct ToolBlocklist {
    patterns: Vec<String>,
    name_parts: Vec<Vec<String>>,
    regexes: RegexSet,
}

/// An invalid pattern.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    /// The pattern is empty, or has neither letters nor digits.
    #[error("pattern `{pattern}` matches nothing: use a segment of a name, a glob or `re:…`")]
    Empty {
        /// The pattern.
        pattern: String,
    },
    /// The regular expression is invalid.
    #[error("invalid pattern `{pattern}`")]
    Regex {
        /// The pattern.
        pattern: String,
        /// The cause.
        source: regex::Error,
    },
    /// A pattern is too long, or there are too many patterns.
    #[error(
        "more than {MAX_PATTERNS} patterns, or a pattern longer than {MAX_PATTERN_BYTES} bytes"
    )]
    LimitExceeded,
}

impl ToolBlocklist {
    /// Compiles at most 1,000 patterns of at most 1,000 bytes each. An empty list blocks nothing.
    ///
    /// # Errors
    ///
    /// The first invalid pattern, or [`PatternError::LimitExceeded`].
    pub fn new<I>(patterns: I) -> Result<Self, PatternError>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let mut written = Vec::new();
        let mut segment_patterns = Vec::new();
        let mut globs = Vec::new();
        for (at, pattern) in patterns.into_iter().enumerate() {
            let pattern = pattern.as_ref();
            if at == MAX_PATTERNS || pattern.len() > MAX_PATTERN_BYTES {
                return Err(PatternError::LimitExceeded);
            }
            written.push(pattern.to_owned());
            let expression = match pattern.strip_prefix("re:") {
                Some(expression) => Some(expression.to_owned()),
                None if pattern.contains(['*', '?']) => Some(glob(pattern)),
                None => None,
            };
            if let Some(expression) = expression {
                if let Err(source) = compile(&[&expression]) {
                    return Err(PatternError::Regex { pattern: pattern.to_owned(), source });
                }
                globs.push(expression);
                continue;
            }
            let segments = split_segments(pattern);
            if segments.is_empty() {
                return Err(PatternError::Empty { pattern: pattern.to_owned() });
            }
            segment_patterns.push(segments);
        }
        // Each pattern is valid, so the set of all patterns exceeds a limit.
        let globs = compile(&globs)
            .map_err(|source| PatternError::Regex { pattern: globs.join("|"), source })?;
        Ok(Self { patterns: written, name_parts: segment_patterns, regexes: globs })
    }

    /// Returns the patterns as written.
    pub fn patterns(&self) -> &[String] {
        &self.patterns
    }

    /// Returns whether the tool with this public name is blocked.
    pub fn is_blocked(&self, name: &str) -> bool {
        if self.name_parts.is_empty() && self.regexes.is_empty() {
            return false;
        }
        let segments = split_segments(name);
        self.name_parts
            .iter()
            .any(|pattern| segments.windows(pattern.len()).any(|window| window == pattern))
            || self.regexes.is_match(name)
    }

    /// Returns the blocked name of a call: the name of the tool, or the name that the model wrote.
    /// The resolver may have mapped the name of a blocked tool to a similar allowed name.
    pub(crate) fn blocked_name<'c>(&self, call: &'c ResolvedCall) -> Option<&'c str> {
        let written_names = call.repairs.iter().filter_map(|repair| match repair {
            Repair::Name { written_name, .. } => Some(written_name.as_str()),
            Repair::Syntax { .. }
            | Repair::EmbeddedSyntax { .. }
            | Repair::Coercion { .. }
            | Repair::Omitted { .. } => None,
        });
        written_names.chain([call.name.as_str()]).find(|name| self.is_blocked(name))
    }

    /// Returns the message to the model for an invalid call, without the names of blocked tools.
    pub(crate) fn rejection_message(&self, rejected: &RejectedCall) -> String {
        if rejected.reason == RejectReason::UnknownTool && self.is_blocked(&rejected.name) {
            return blocked_tool_message(&rejected.name);
        }
        let suggestions = rejected.suggestions.iter().filter(|name| !self.is_blocked(name));
        RejectedCall { suggestions: suggestions.cloned().collect(), ..rejected.clone() }.to_string()
    }
}

/// Two lists are equal if they have equal patterns in the same order.
impl PartialEq for ToolBlocklist {
    fn eq(&self, other: &Self) -> bool {
        self.name_parts == other.name_parts && self.regexes.patterns() == other.regexes.patterns()
    }
}

/// Maximum number of characters of a name in a message to the model.
const MAX_SHOWN_NAME_CHARS: usize = 60;

/// Returns the message to the model about a call of a blocked tool.
pub(crate) fn blocked_tool_message(written_name: &str) -> String {
    let shown_name: String = written_name.chars().take(MAX_SHOWN_NAME_CHARS).collect();
    format!("the tool {} may not be called here", quote_for_prompt(&shown_name))
}

fn compile<S: AsRef<str>>(expressions: &[S]) -> Result<RegexSet, regex::Error> {
    regex::RegexSetBuilder::new(expressions)
        .case_insensitive(true)
        .size_limit(MAX_REGEX_BYTES)
        .build()
}

fn glob(pattern: &str) -> String {
    let mut expression = "^".to_owned();
    for character in pattern.chars() {
        match character {
            '*' => expression.push_str("(?s:.*)"),
            '?' => expression.push_str("(?s:.)"),
            other => expression.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    expression + "$"
}

/// Splits a name into segments, in lower case.
fn split_segments(name: &str) -> Vec<String> {
    let mut segments = vec![String::new()];
    let mut before = ' ';
    let mut letters = name.chars().peekable();
    while let Some(character) = letters.next() {
        let small_next = letters.peek().is_some_and(|next| next.is_lowercase());
        let begins = character.is_uppercase() && (before.is_lowercase() || small_next)
            || character.is_numeric() != before.is_numeric();
        if begins || !character.is_alphanumeric() {
            segments.push(String::new());
        }
        if let Some(last) = segments.last_mut().filter(|_| character.is_alphanumeric()) {
            last.extend(character.to_lowercase());
        }
        before = character;
    }
    segments.retain(|segment| !segment.is_empty());
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: P9
    #[test]
    fn a_pattern_is_a_whole_part_of_a_name_a_glob_or_a_regular_expression() {
        for (pattern, blocked, open) in [
            (
                "rm",
                &["fs.rm", "rm_file", "fileRm", "RM", "a-rm-b", "rm2"][..],
                &["format_text", "confirm", "transform", "firm"][..],
            ),
            ("delete", &["HTTPDelete", "deleteAll"], &["deleted"]),
            (
                "delete_file",
                &["fs.delete_file", "deleteFileNow", "delete-file"],
                &["delete", "file.delete"],
            ),
            ("fs.*", &["fs.rm", "fs.", "FS.read"], &["xfs.rm", "fs"]),
            ("fs.r?", &["fs.rm"], &["fs.r", "fs.rmm", "fsxrm"]),
            ("re:^fs\\.(rm|mv)$", &["fs.rm", "fs.mv"], &["fs.rmdir", "afs.rm"]),
            ("grün", &["ist_Grün"], &["grun"]),
        ] {
            let patterns = ToolBlocklist::new([pattern]).unwrap();
            for name in blocked {
                assert!(patterns.is_blocked(name), "{pattern} {name}");
            }
            for name in open {
                assert!(!patterns.is_blocked(name), "{pattern} {name}");
            }
        }
        assert!(!ToolBlocklist::default().is_blocked("rm"));
    }

    #[test]
    fn an_invalid_pattern_is_named_in_the_error() {
        assert!(ToolBlocklist::new([""]).unwrap_err().to_string().contains("matches nothing"));
        assert!(ToolBlocklist::new(["re:("]).unwrap_err().to_string().contains("`re:(`"));
        assert!(ToolBlocklist::new(vec!["a"; MAX_PATTERNS]).is_ok());
        assert!(matches!(
            ToolBlocklist::new(vec!["a"; MAX_PATTERNS + 1]),
            Err(PatternError::LimitExceeded)
        ));
        assert!(ToolBlocklist::new(["a".repeat(MAX_PATTERN_BYTES)]).is_ok());
        assert!(matches!(
            ToolBlocklist::new(["a".repeat(MAX_PATTERN_BYTES + 1)]),
            Err(PatternError::LimitExceeded)
        ));
    }
}
