//! What a turn wants done next, and how it ends.

use std::time::Duration;

use innkeeper_toolcall::Call;
use innkeeper_toolcall::prompt::Attempt;

use crate::provider::{LlmError, Request};

/// What has to be done next.
#[derive(Debug)]
pub enum Effect {
    /// Ask the model; then [`Turn::answered`](super::Turn::answered) or
    /// [`Turn::failed`](super::Turn::failed).
    Ask(Box<Request>),
    /// Wait this long; then [`Turn::resume`](super::Turn::resume).
    Pause(Duration),
    /// Run these calls, in any order; then [`Turn::ran`](super::Turn::ran) for each.
    Run(Vec<Planned>),
    /// Other calls still run.
    Wait,
    /// Nothing: the turn is over.
    End(Ended),
}

/// A call that is to be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// Its id in the conversation.
    pub id: String,
    /// The call; its arguments fit the tool's schema, as far as that can be told.
    pub call: Call,
    /// How it was made.
    pub mechanism: Mechanism,
    /// How many attempts before it were none.
    pub retries: u32,
    /// What the model said before it, in the same answer.
    pub reasoning: String,
}

/// How a call was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mechanism {
    /// In the provider's own form.
    Native,
    /// It was found in the text.
    Recovered,
    /// What the model wrote was put right.
    Repaired,
    /// The model was told what was wrong, and then got it right.
    Corrected,
    /// The server held the answer to the form of a call.
    Constrained,
}

impl Mechanism {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Recovered => "recovered",
            Self::Repaired => "repaired",
            Self::Corrected => "corrected",
            Self::Constrained => "constrained",
        }
    }
}

/// How a turn ended.
#[derive(Debug)]
pub enum Ended {
    /// The model gave its last answer.
    Answered,
    /// Its last answer was cut at the greatest length.
    Cut,
    /// The model, or who watches it, declined.
    Refused,
    /// It still called tools when no more rounds were left.
    OutOfRounds,
    /// It did not manage to write a call.
    NoCall {
        /// What was wrong with each attempt.
        attempts: Vec<Attempt>,
    },
    /// It gave no answer.
    Failed(LlmError),
    /// What it would be asked cannot be put together.
    Unasked {
        /// Why.
        reason: String,
    },
}
