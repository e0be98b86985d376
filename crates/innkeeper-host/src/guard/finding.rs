//! What the guard has found: its kind, its place, and why, never the text itself.

use std::fmt;

use serde::Serialize;

use crate::text::display_safe;

/// The most of a place that is told: names in it are chosen by servers and models.
const PLACE: usize = 128;

/// The families of what is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// Words that have a model disregard what it was told before.
    Override,
    /// Words that pretend to be of another role than the data they stand in.
    Frame,
    /// Words that have a model keep something from its user.
    Concealment,
    /// Words that ask a model for its instructions, its conversation or credentials.
    Solicitation,
    /// Words that have a model send such things somewhere.
    Exfiltration,
    /// Words that lead a model to another tool, server or more rights.
    Steering,
    /// Characters that people do not see.
    Hidden,
    /// A key, token or password.
    Secret,
    /// A key, token or password that another server gave.
    Carried,
    /// A file that has credentials.
    CredentialFile,
    /// The address at which clouds give credentials.
    MetadataAddress,
    /// Syntax of a shell where no code is expected.
    Shell,
    /// An argument that the tool does not declare.
    Undeclared,
    /// A path outside the folders that the owner has stated.
    Outside,
}

impl FindingKind {
    /// The word used in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Override => "override",
            Self::Frame => "frame",
            Self::Concealment => "concealment",
            Self::Solicitation => "solicitation",
            Self::Exfiltration => "exfiltration",
            Self::Steering => "steering",
            Self::Hidden => "hidden",
            Self::Secret => "secret",
            Self::Carried => "carried",
            Self::CredentialFile => "credential-file",
            Self::MetadataAddress => "metadata-address",
            Self::Shell => "shell",
            Self::Undeclared => "undeclared",
            Self::Outside => "outside",
        }
    }
}

/// One thing the guard has found. It has no text of a server, no secret and no value of an argument.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The family.
    pub kind: FindingKind,
    /// Where: `definition`, `instructions`, `arguments`, `result` or `error`, with a JSON pointer
    /// into it, of 128 characters at most, escaped for display.
    pub place: String,
    /// What about it.
    pub reason: &'static str,
}

impl Finding {
    pub(super) fn new(kind: FindingKind, of: &str, pointer: &str, reason: &'static str) -> Self {
        let shown: String = display_safe(pointer).chars().take(PLACE).collect();
        let place = if shown.is_empty() { of.to_owned() } else { format!("{of} {shown}") };
        Self { kind, place, reason }
    }
}

#[cfg(test)]
impl Finding {
    /// One for tests elsewhere.
    pub(crate) fn sample() -> Self {
        Self::new(FindingKind::Hidden, "result", "/x", "has hidden characters")
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.reason)
    }
}
