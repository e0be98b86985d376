//! What a question is about.

use std::fmt;

/// What a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    /// Whether a call of a tool may run.
    Approval,
    /// A form of a server.
    Elicitation,
}

impl QuestionKind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Approval, Self::Elicitation];

    /// Returns the name of the kind in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Elicitation => "elicitation",
        }
    }
}

impl fmt::Display for QuestionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
