//! Who says yes to a call before it is run.

use async_trait::async_trait;

use crate::tools::Hints;

/// Which calls need a yes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// None: all are run.
    #[default]
    All,
    /// Those of tools that do not say that they change nothing. What a tool says of itself is a hint
    /// and no proof.
    Ask,
    /// None is run.
    Never,
}

/// A call that needs a yes.
#[derive(Clone, Debug)]
pub struct Approval<'c> {
    /// The tool, by its public name.
    pub tool: &'c str,
    /// The arguments as JSON text.
    pub arguments: &'c str,
    /// What the tool says of itself.
    pub hints: Hints,
}

/// What is decided about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is run.
    Run,
    /// It is not; the model is told so, with these words if there are any.
    Refuse(String),
}

/// Whoever decides, a person as a rule. Dropping the future takes the question back.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Decides about one call. The turn waits for it, with all its calls.
    async fn decide(&self, call: Approval<'_>) -> Decision;
}

impl Policy {
    /// Whether a call of a tool with these hints needs a yes; `None` where it is not run at all.
    pub(crate) fn asks(self, hints: Hints) -> Option<bool> {
        match self {
            Self::All => Some(false),
            Self::Ask => Some(!hints.read_only),
            Self::Never => None,
        }
    }
}
