//! Configuration problems: position, key, message and hint.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// The severity of a problem: whether the host may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The configuration is rejected.
    Error,
    /// The configuration is usable; the user should know about the problem.
    Warning,
}

/// A position in a file; lines and columns start at 1.
///
/// A configuration that is a JSON value has no lines: both numbers are 0 and are not printed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Position {
    /// File, as the user named it.
    pub source: Arc<str>,
    /// Line, starting at 1; 0 if there is no line.
    pub line: u32,
    /// Column in characters, starting at 1; 0 if there is no line.
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

/// One error or warning about a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Severity of the problem.
    pub severity: Severity,
    /// File, as the user named it.
    pub source: String,
    /// Line, starting at 1; 0, and omitted in JSON, if the configuration is not a text.
    #[serde(skip_serializing_if = "is_none")]
    pub line: u32,
    /// Column in characters, starting at 1; 0, and omitted in JSON, if the configuration is not a
    /// text.
    #[serde(skip_serializing_if = "is_none")]
    pub column: u32,
    /// Key as written in the file: `servers.fs.args[1]`. Empty, and omitted in JSON, for the whole
    /// file.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// Description of the problem, without values of variables.
    pub message: String,
    /// Suggested change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

fn is_none(number: &u32) -> bool {
    *number == 0
}

impl Diagnostic {
    pub(crate) fn error(at: &Position, key: impl Into<String>, message: impl Into<String>) -> Self {
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

    pub(crate) fn warning(
        at: &Position,
        key: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Warning, ..Self::error(at, key, message) }
    }

    /// Returns the hint as a separate line for output below the problem.
    pub fn hint_line(&self) -> Option<String> {
        self.hint.as_ref().map(|hint| format!("    hint: {hint}"))
    }

    /// Returns whether the problem is an error, so that the configuration is rejected.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Diagnostic {
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

/// The problems of a rejected configuration: errors and warnings, sorted by position.
///
/// At least one problem is an error. `Display` lists the errors with their hints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigError(pub Vec<Diagnostic>);

impl ConfigError {
    /// Returns the problems that are errors.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
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
