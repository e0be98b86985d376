//! The states of a question and the steps between them, as a pure function.

use std::fmt;

use super::QuestionKind;

/// The state of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionState {
    /// Nobody has answered.
    Waiting,
    /// An operator has approved the call, and one process runs the call.
    Running,
    /// The approved call has a result or an error.
    Done,
    /// The elicitation has an answer.
    Answered,
    /// An operator or the client has declined.
    Declined,
    /// Nobody answered in time.
    Expired,
    /// Nobody needs the answer any more: the reason says why. Nothing was sent for an approval.
    Ended,
    /// The process that ran the call has ended, or lost its store, before the call had a result. The
    /// call may have run, and does not run again.
    OutcomeUnknown,
}

/// What happens to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuestionStep {
    /// An approval: the process that takes the step runs the call.
    Claim,
    /// An answer of an elicitation.
    Answer,
    /// A refusal.
    Decline,
    /// The time for an answer is over.
    Expire,
    /// Nobody needs the answer any more.
    End,
    /// The call has a result or an error.
    Finish,
    /// The process that runs the call has not shown for some time that it still does.
    Lose,
}

/// A step that the state of a question does not permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{step}` is not permitted for {kind} in the state `{state}`")]
pub struct InvalidQuestionStep {
    /// The kind of the question.
    pub kind: QuestionKind,
    /// The state of the question.
    pub state: QuestionState,
    /// The step.
    pub step: QuestionStep,
}

impl QuestionState {
    /// All states.
    pub const ALL: [Self; 8] = [
        Self::Waiting,
        Self::Running,
        Self::Done,
        Self::Answered,
        Self::Declined,
        Self::Expired,
        Self::Ended,
        Self::OutcomeUnknown,
    ];

    /// Returns the state after a step. No step leads out of a final state.
    ///
    /// # Errors
    ///
    /// Returns an error if the state does not permit the step.
    pub fn after(
        self,
        kind: QuestionKind,
        step: QuestionStep,
    ) -> Result<Self, InvalidQuestionStep> {
        match (self, kind, step) {
            (Self::Waiting, QuestionKind::Approval, QuestionStep::Claim) => Ok(Self::Running),
            (Self::Waiting, QuestionKind::Elicitation, QuestionStep::Answer) => Ok(Self::Answered),
            (Self::Waiting, _, QuestionStep::Decline) => Ok(Self::Declined),
            (Self::Waiting, _, QuestionStep::Expire) => Ok(Self::Expired),
            (Self::Waiting, _, QuestionStep::End) => Ok(Self::Ended),
            (Self::Running, _, QuestionStep::Finish) => Ok(Self::Done),
            (Self::Running, _, QuestionStep::Lose) => Ok(Self::OutcomeUnknown),
            (state, kind, step) => Err(InvalidQuestionStep { kind, state, step }),
        }
    }

    /// Returns whether the question is not in a final state.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Waiting | Self::Running)
    }

    /// Returns the name of the state in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Answered => "answered",
            Self::Declined => "declined",
            Self::Expired => "expired",
            Self::Ended => "ended",
            Self::OutcomeUnknown => "outcome_unknown",
        }
    }
}

impl QuestionStep {
    /// All steps.
    pub const ALL: [Self; 7] = [
        Self::Claim,
        Self::Answer,
        Self::Decline,
        Self::Expire,
        Self::End,
        Self::Finish,
        Self::Lose,
    ];

    /// Returns the name of the step.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Answer => "answer",
            Self::Decline => "decline",
            Self::Expire => "expire",
            Self::End => "end",
            Self::Finish => "finish",
            Self::Lose => "lose",
        }
    }
}

impl fmt::Display for QuestionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for QuestionStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_permits_exactly_these_steps_and_no_final_state_permits_any() {
        use QuestionState::{
            Answered, Declined, Done, Ended, Expired, OutcomeUnknown, Running, Waiting,
        };
        let waiting_approval =
            [Some(Running), None, Some(Declined), Some(Expired), Some(Ended), None, None];
        let waiting_elicitation =
            [None, Some(Answered), Some(Declined), Some(Expired), Some(Ended), None, None];
        let running = [None, None, None, None, None, Some(Done), Some(OutcomeUnknown)];
        for kind in QuestionKind::ALL {
            for state in QuestionState::ALL {
                let row = match (state, kind) {
                    (Waiting, QuestionKind::Approval) => waiting_approval,
                    (Waiting, QuestionKind::Elicitation) => waiting_elicitation,
                    (Running, _) => running,
                    _ => [None; 7],
                };
                for (step, expected) in QuestionStep::ALL.into_iter().zip(row) {
                    let expected = expected.ok_or(InvalidQuestionStep { kind, state, step });
                    assert_eq!(state.after(kind, step), expected);
                }
                assert_eq!(state.is_open(), row.iter().any(Option::is_some), "{state}");
            }
        }
    }
}
