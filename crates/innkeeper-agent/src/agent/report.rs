//! What came of a message.

use std::time::Duration;

use innkeeper_toolcall::Json;

use crate::conversation::Message;
use crate::tools::Output;
use crate::turn::{Ended, Lesson, Mechanism, Tally, Turn, Way};

/// What came of one message.
#[derive(Debug)]
pub struct Report {
    /// How it ended.
    pub ended: Ended,
    /// The model's last text; empty where it gave none.
    pub text: String,
    /// The calls, in the order in which they came to their end.
    pub steps: Vec<Step>,
    /// What it took.
    pub tally: Tally,
    /// How tools were called at the end.
    pub way: Option<Way>,
    /// Calls that went wrong and then right.
    pub lessons: Vec<Lesson>,
    /// How long all of it took.
    pub elapsed: Duration,
}

/// One call that was run or refused.
#[derive(Clone, Debug)]
pub struct Step {
    /// In which round, counted from 1.
    pub iteration: u32,
    /// The call's id in the conversation.
    pub id: String,
    /// The tool, by its public name.
    pub tool: String,
    /// The arguments.
    pub arguments: Json,
    /// What it answered; `None` where there is no answer.
    pub output: Option<Output>,
    /// Whether it did what it was asked to.
    pub success: bool,
    /// What the model was told.
    pub told: String,
    /// How long it ran.
    pub elapsed: Duration,
    /// How the call was made.
    pub mechanism: Mechanism,
    /// How many attempts before it were none.
    pub retries: u32,
    /// What the model thought or said before it.
    pub reasoning: String,
}

impl Report {
    pub(super) fn new(ended: Ended, turn: &Turn<'_>, steps: Vec<Step>, elapsed: Duration) -> Self {
        let text = match turn.conversation().messages().last() {
            Some(Message::Answer(answer)) => answer.shown().trim().to_owned(),
            Some(Message::User(_) | Message::Results(_)) | None => String::new(),
        };
        Self {
            ended,
            text,
            steps,
            tally: turn.tally().clone(),
            way: Some(turn.way()),
            lessons: turn.lessons().to_vec(),
            elapsed,
        }
    }

    pub(super) fn unasked(reason: String, elapsed: Duration) -> Self {
        Self {
            ended: Ended::Unasked { reason },
            text: String::new(),
            steps: Vec::new(),
            tally: Tally::default(),
            way: None,
            lessons: Vec::new(),
            elapsed,
        }
    }

    /// Whether the model gave its last answer, whole.
    pub fn is_success(&self) -> bool {
        match self.ended {
            Ended::Answered => true,
            Ended::Cut
            | Ended::Refused
            | Ended::OutOfRounds
            | Ended::NoCall { .. }
            | Ended::Failed(_)
            | Ended::Unasked { .. } => false,
        }
    }
}
