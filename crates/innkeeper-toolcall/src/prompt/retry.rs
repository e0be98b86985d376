//! Prompt that asks the model to correct invalid calls.

use std::fmt::Write;

use crate::{ModelFamily, sanitize};

/// Maximum number of listed attempts; usual runs end earlier.
pub(super) const MAX_ATTEMPTS: usize = 16;

/// Maximum number of characters per attempt.
pub(super) const MAX_ATTEMPT_CHARS: usize = 600;

/// A failed attempt to call a tool.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FailedAttempt {
    /// Error of the attempt.
    pub problem: String,
    /// Corrected call, if known.
    pub suggestion: Option<String>,
}

impl FailedAttempt {
    /// Creates an attempt without a suggestion.
    pub fn new(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), suggestion: None }
    }

    /// Sets the suggestion: the corrected call.
    #[must_use]
    pub fn with_suggestion(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }
}

/// Returns the correction prompt: every failed attempt with its number and error on one line, then
/// instructions and an example in the family's form. Empty without attempts.
///
/// The prompt lists the last 16 attempts, with at most 600 characters each.
pub fn retry_prompt(family: ModelFamily, attempts: &[FailedAttempt]) -> String {
    if attempts.is_empty() {
        return String::new();
    }
    let mut text = "IMPORTANT: Previous attempts failed with these errors:\n".to_owned();
    let skipped = attempts.len().saturating_sub(MAX_ATTEMPTS);
    if skipped > 0 {
        text.push_str("(earlier attempts failed too)\n");
    }
    for (at, attempt) in attempts.iter().enumerate().skip(skipped) {
        let problem = sanitize::to_single_line(&attempt.problem, MAX_ATTEMPT_CHARS);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "Attempt {}: {problem}", at + 1);
        if let Some(instead) = &attempt.suggestion {
            let _ = writeln!(
                text,
                "  Send instead: {}",
                sanitize::to_single_line(instead, MAX_ATTEMPT_CHARS)
            );
        }
    }
    let _ = write!(
        text,
        "\nPlease correct these issues in your response. Ensure:\n\
         1. Tool calls use valid JSON format, exactly in this form:\n{}\n\
         2. Parameter names match the schema exactly\n\
         3. Required parameters are not missing\n",
        family.call_template()
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
            FailedAttempt::new(
                "Invalid JSON format - expected {\"tool\": \"name\", \"params\": {...}}",
            ),
            FailedAttempt::new("Missing required parameter 'path'\nin `read`")
                .with_suggestion("{\"path\": \"a.txt\"}"),
        ];
        assert_eq!(
            retry_prompt(ModelFamily::Generic, &attempts),
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
        assert!(
            retry_prompt(ModelFamily::Mistral, &attempts)
                .contains("[TOOL_CALLS][{\"name\": \"name\"")
        );
        assert_eq!(retry_prompt(ModelFamily::Generic, &[]), "");
    }

    #[test]
    fn sixteen_attempts_are_listed_and_of_seventeen_the_last_sixteen() {
        let attempts =
            vec![FailedAttempt::new("x".repeat(MAX_ATTEMPT_CHARS + 1)); MAX_ATTEMPTS + 1];
        let all = retry_prompt(ModelFamily::Generic, &attempts[1..]);
        assert!(all.contains("\nAttempt 1: ") && !all.contains("earlier attempts"));
        let longest = retry_prompt(ModelFamily::Generic, &attempts);
        assert!(!longest.contains("Attempt 1: ") && longest.contains("Attempt 2: "));
        assert!(longest.contains("Attempt 17: ") && longest.contains("earlier attempts"));
        assert!(longest.contains(&format!("{}…\n", "x".repeat(MAX_ATTEMPT_CHARS))));
    }
}
