//! Names of tools that are kept out, by pattern.

use regex::RegexSet;

/// The most patterns, and the longest one in bytes.
const MOST: usize = 1_000;
const LONGEST: usize = 1_000;

/// The most memory one set of patterns takes, in bytes.
const SIZE: usize = 1 << 20;

/// Patterns of names of tools, compiled.
///
/// A pattern with `*` or `?` is a glob over the whole public name; one that begins with `re:` is a
/// regular expression found anywhere in it. Any other is a whole part of the name: names part where
/// a character is no letter or digit, between letters and digits, and before a capital letter that
/// begins a word. So `rm` blocks `fs.rm`, `rm_file`, `rm2` and `fileRm`, and not `format_text`. Case
/// does not matter.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    parts: Vec<Vec<String>>,
    whole: RegexSet,
}

/// A pattern that is none.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    /// Empty, or without a letter or digit.
    #[error("the pattern `{pattern}` matches nothing: write a part of a name, a glob or `re:…`")]
    Empty {
        /// The pattern.
        pattern: String,
    },
    /// Not a regular expression.
    #[error("the pattern `{pattern}` cannot be used")]
    Regex {
        /// The pattern.
        pattern: String,
        /// Why.
        source: regex::Error,
    },
    /// Too long, or one too many.
    #[error("{MOST} patterns of {LONGEST} bytes each are the limit")]
    TooMany,
}

impl Patterns {
    /// These patterns; none block nothing.
    ///
    /// # Errors
    ///
    /// The first that is none.
    pub fn new<I>(patterns: I) -> Result<Self, PatternError>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let mut parts = Vec::new();
        let mut whole = Vec::new();
        for (at, pattern) in patterns.into_iter().enumerate() {
            let pattern = pattern.as_ref();
            if at == MOST || pattern.len() > LONGEST {
                return Err(PatternError::TooMany);
            }
            let expression = match pattern.strip_prefix("re:") {
                Some(expression) => Some(expression.to_owned()),
                None if pattern.contains(['*', '?']) => Some(glob(pattern)),
                None => None,
            };
            if let Some(expression) = expression {
                if let Err(source) = compiled(&[&expression]) {
                    return Err(PatternError::Regex { pattern: pattern.to_owned(), source });
                }
                whole.push(expression);
                continue;
            }
            let segments = segments(pattern);
            if segments.is_empty() {
                return Err(PatternError::Empty { pattern: pattern.to_owned() });
            }
            parts.push(segments);
        }
        let whole = compiled(&whole).map_err(|source| {
            let pattern = "all patterns together".to_owned();
            PatternError::Regex { pattern, source }
        })?;
        Ok(Self { parts, whole })
    }

    /// Whether a tool of this public name is kept out.
    pub fn block(&self, name: &str) -> bool {
        if self.parts.is_empty() && self.whole.is_empty() {
            return false;
        }
        let has = segments(name);
        let part = |wanted: &Vec<String>| has.windows(wanted.len()).any(|part| part == wanted);
        self.parts.iter().any(part) || self.whole.is_match(name)
    }
}

fn compiled<S: AsRef<str>>(expressions: &[S]) -> Result<RegexSet, regex::Error> {
    regex::RegexSetBuilder::new(expressions).case_insensitive(true).size_limit(SIZE).build()
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

/// The parts of a name, in small letters.
fn segments(name: &str) -> Vec<String> {
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
            let patterns = Patterns::new([pattern]).unwrap();
            for name in blocked {
                assert!(patterns.block(name), "{pattern} {name}");
            }
            for name in open {
                assert!(!patterns.block(name), "{pattern} {name}");
            }
        }
        assert!(!Patterns::default().block("rm"));
    }

    #[test]
    fn what_is_no_pattern_is_named() {
        assert!(Patterns::new([""]).unwrap_err().to_string().contains("matches nothing"));
        assert!(Patterns::new(["re:("]).unwrap_err().to_string().contains("`re:(`"));
        assert!(Patterns::new(vec!["a"; MOST]).is_ok());
        assert!(matches!(Patterns::new(vec!["a"; MOST + 1]), Err(PatternError::TooMany)));
        assert!(Patterns::new(["a".repeat(LONGEST)]).is_ok());
        assert!(matches!(Patterns::new(["a".repeat(LONGEST + 1)]), Err(PatternError::TooMany)));
    }
}
