//! What is wrong with a configuration: where, which key, why, and what would help.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// Whether a problem stops the host from starting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The configuration is refused.
    Error,
    /// The configuration is used; the user should know.
    Warning,
}

/// A place in a file, lines and columns counted from 1.
///
/// A configuration handed over as a value has no lines: both numbers are 0 and are not printed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Position {
    /// The file as the user named it.
    pub source: Arc<str>,
    /// The line, from 1; 0 when there is none.
    pub line: u32,
    /// The column in characters, from 1; 0 when there is none.
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.source),
            line => write!(f, "{}:{line}:{}", self.source, self.column),
        }
    }
}

/// One thing that is wrong, or doubtful, in a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Whether the configuration is refused because of it.
    pub severity: Severity,
    /// The file as the user named it.
    pub source: String,
    /// The line, from 1; 0, and not written as JSON, when the configuration is not a text.
    #[serde(skip_serializing_if = "is_none")]
    pub line: u32,
    /// The column in characters, from 1; 0, and not written as JSON, when the configuration is not a
    /// text.
    #[serde(skip_serializing_if = "is_none")]
    pub column: u32,
    /// The key, as it stands in the file: `servers.fs.args[1]`. Empty, and not written as JSON, for
    /// the file as a whole.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// What is wrong, without any value that came from a variable.
    pub message: String,
    /// What to write instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

fn is_none(number: &u32) -> bool {
    *number == 0
}

impl Problem {
    pub(super) fn error(at: &Position, key: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            source: at.source.to_string(),
            line: at.line,
            column: at.column,
            key: key.into(),
            message: message.into(),
            hint: None,
        }
    }

    pub(super) fn warning(
        at: &Position,
        key: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Warning, ..Self::error(at, key, message) }
    }

    /// The hint as a line of its own, to be printed under the problem.
    pub fn hint_line(&self) -> Option<String> {
        self.hint.as_ref().map(|hint| format!("    hint: {hint}"))
    }

    /// Whether the configuration is refused because of it.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        if !self.key.is_empty() {
            write!(f, " {}", self.key)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Why a configuration was refused: every problem found, warnings included, sorted by place.
///
/// There is always at least one error among them. Printed, it lists the errors with their hints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigError(pub Vec<Problem>);

impl ConfigError {
    /// The problems that stop the host from starting.
    pub fn errors(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter().filter(|problem| problem.is_error())
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.errors().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
            if let Some(hint) = problem.hint_line() {
                write!(f, "\n{hint}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}
