//! What a model is told after calls that were none.

use std::fmt::Write;

use crate::{Family, safe};

/// The most attempts listed; runs end after fewer.
pub(super) const ATTEMPTS: usize = 16;

/// The most characters said of one attempt.
pub(super) const ATTEMPT_CHARS: usize = 600;

/// An attempt that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// What was wrong with it.
    pub problem: String,
    /// What to send instead, if that is known.
    pub instead: Option<String>,
}

impl Attempt {
    /// An attempt with nothing better known.
    pub fn new(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), instead: None }
    }

    /// The same, with what to send instead.
    #[must_use]
    pub fn instead(mut self, words: impl Into<String>) -> Self {
        self.instead = Some(words.into());
        self
    }
}

/// The text that asks again: every earlier attempt by its number with what was wrong, each on one
/// line, then how to do it right, in the family's form. Empty without attempts.
///
/// Of more than 16 attempts the last 16 are listed, with their numbers; of one, 600 characters.
pub fn retry(family: Family, attempts: &[Attempt]) -> String {
    if attempts.is_empty() {
        return String::new();
    }
    let mut text = "IMPORTANT: Previous attempts failed with these errors:\n".to_owned();
    let skipped = attempts.len().saturating_sub(ATTEMPTS);
    if skipped > 0 {
        text.push_str("(earlier attempts failed too)\n");
    }
    for (at, attempt) in attempts.iter().enumerate().skip(skipped) {
        let problem = safe::line(&attempt.problem, ATTEMPT_CHARS);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "Attempt {}: {problem}", at + 1);
        if let Some(instead) = &attempt.instead {
            let _ = writeln!(text, "  Send instead: {}", safe::line(instead, ATTEMPT_CHARS));
        }
    }
    let _ = write!(
        text,
        "\nPlease correct these issues in your response. Ensure:\n\
         1. Tool calls use valid JSON format, exactly in this form:\n{}\n\
         2. Parameter names match the schema exactly\n\
         3. Required parameters are not missing\n",
        family.form()
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: P22, P23
    #[test]
    fn a_retry_lists_every_earlier_error_in_order_and_says_how_to_do_it_right() {
        let attempts = [
            Attempt::new("Invalid JSON format - expected {\"tool\": \"name\", \"params\": {...}}"),
            Attempt::new("Missing required parameter 'path'\nin `read`")
                .instead("{\"path\": \"a.txt\"}"),
        ];
        assert_eq!(
            retry(Family::Generic, &attempts),
            "IMPORTANT: Previous attempts failed with these errors:\n\
             Attempt 1: Invalid JSON format - expected {\"tool\": \"name\", \"params\": {...}}\n\
             Attempt 2: Missing required parameter 'path' in `read`\n  \
               Send instead: {\"path\": \"a.txt\"}\n\
             \n\
             Please correct these issues in your response. Ensure:\n\
             1. Tool calls use valid JSON format, exactly in this form:\n\
             {\"tool\": \"name\", \"params\": {...}}\n\
             2. Parameter names match the schema exactly\n\
             3. Required parameters are not missing\n"
        );
        assert!(retry(Family::Mistral, &attempts).contains("[TOOL_CALLS][{\"name\": \"name\""));
        assert_eq!(retry(Family::Generic, &[]), "");
    }

    #[test]
    fn sixteen_attempts_are_listed_and_of_seventeen_the_last_sixteen() {
        let attempts = vec![Attempt::new("x".repeat(ATTEMPT_CHARS + 1)); ATTEMPTS + 1];
        let all = retry(Family::Generic, &attempts[1..]);
        assert!(all.contains("\nAttempt 1: ") && !all.contains("earlier attempts"));
        let most = retry(Family::Generic, &attempts);
        assert!(!most.contains("Attempt 1: ") && most.contains("Attempt 2: "));
        assert!(most.contains("Attempt 17: ") && most.contains("earlier attempts"));
        assert!(most.contains(&format!("{}…\n", "x".repeat(ATTEMPT_CHARS))));
    }
}
