//! Where questions are kept.

mod memory;
mod redis;

use std::fmt;
use std::time::Duration;

use serde_json::value::RawValue;

use super::question::{NewQuestion, Question, QuestionId};
use super::state::QuestionStep;

pub use self::memory::MemoryQuestionStore;
pub use self::redis::RedisQuestionStore;

pub use crate::store_error::{StoreError, StoreFuture};

/// Maximum number of questions that wait or whose call runs.
pub const MAX_OPEN_QUESTIONS: usize = 256;

/// Maximum number of open questions of one principal that is not the local user.
pub const MAX_OPEN_PER_PRINCIPAL: usize = 64;

/// Maximum number of questions with a final state in a store. The oldest of the principal with the most
/// make room.
pub const MAX_FINAL_QUESTIONS: usize = 256;

/// Maximum number of questions of one page.
pub const MAX_PAGE: usize = 100;

/// Time for which a store keeps a question with a final state.
pub const KEEP_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// Time after which a process that does not renew a question counts as ended.
pub const LEASE_TIME: Duration = Duration::from_secs(30);

/// Maximum expiry of a question.
pub const MAX_EXPIRY: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The reason of an elicitation whose process does not renew it.
pub const PROCESS_ENDED: &str = "the process that passed the question on has ended";

/// Whether a store added a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionAdded {
    /// The question waits.
    Added,
    /// A question with the id is in the store.
    AlreadyExists,
    /// The principal has [`MAX_OPEN_PER_PRINCIPAL`] open questions.
    PrincipalLimit,
    /// The store has [`MAX_OPEN_QUESTIONS`] open questions.
    TotalLimit,
}

/// A step with what it records.
#[derive(Clone, Debug)]
pub struct QuestionChange {
    /// The step.
    pub step: QuestionStep,
    /// Who answers.
    pub by: Option<String>,
    /// The process that claims.
    pub process: Option<String>,
    /// The reason of a refusal or of the end.
    pub reason: Option<String>,
    /// The answer or the result.
    pub response: Option<Box<RawValue>>,
}

impl QuestionChange {
    fn new(step: QuestionStep) -> Self {
        Self { step, by: None, process: None, reason: None, response: None }
    }

    /// An operator approves a call, and a process runs the call.
    pub fn claim(operator: &str, process: &str) -> Self {
        let by = Some(operator.to_owned());
        let process = Some(process.to_owned());
        Self { by, process, ..Self::new(QuestionStep::Claim) }
    }

    /// Somebody answers an elicitation.
    pub fn answer(by: &str, response: Box<RawValue>) -> Self {
        Self {
            by: Some(by.to_owned()),
            response: Some(response),
            ..Self::new(QuestionStep::Answer)
        }
    }

    /// Somebody declines.
    pub fn decline(by: &str, reason: Option<String>) -> Self {
        Self { by: Some(by.to_owned()), reason, ..Self::new(QuestionStep::Decline) }
    }

    /// Nobody needs the answer any more.
    pub fn end(reason: &str) -> Self {
        Self { reason: Some(reason.to_owned()), ..Self::new(QuestionStep::End) }
    }

    /// The call has a result or an error.
    pub fn finish(response: Box<RawValue>) -> Self {
        Self { response: Some(response), ..Self::new(QuestionStep::Finish) }
    }
}

/// What a store did with a step.
#[derive(Clone, Debug)]
pub enum Changed {
    /// The step was taken: the question after it.
    Done(Box<Question>),
    /// The state of the question does not permit the step: the question as it is.
    Refused(Box<Question>),
    /// The store has no such question.
    Unknown,
}

/// Which questions a page has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionList {
    /// Questions that wait or whose call runs.
    Open,
    /// Questions with a final state.
    Final,
}

impl QuestionList {
    /// Returns the name of the list.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Final => "final",
        }
    }
}

/// Keeps questions. All replicas of a gateway use one store.
///
/// Each method is atomic and looks at questions as of its time: a question whose expiry has passed is
/// `expired`, a running call whose process has not renewed it for [`LEASE_TIME`] is `outcome_unknown`,
/// and so long an elicitation has `ended`. Dropping a future, and an error, can leave the change made or
/// not made.
pub trait QuestionStore: fmt::Debug + Send + Sync + 'static {
    /// Adds a waiting question that expires after `expiry`, at most [`MAX_EXPIRY`].
    fn add<'a>(
        &'a self,
        id: QuestionId,
        question: &'a NewQuestion,
        expiry: Duration,
    ) -> StoreFuture<'a, QuestionAdded>;

    /// Returns a question; `None` for an id that is unknown or no longer kept.
    fn find(&self, id: QuestionId) -> StoreFuture<'_, Option<Question>>;

    /// Returns at most `limit` questions, and at most [`MAX_PAGE`], with the newest step first: those
    /// before a position, else the newest.
    fn list(
        &self,
        list: QuestionList,
        before: Option<u64>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<Question>>;

    /// Returns the number of open questions.
    fn count_open(&self) -> StoreFuture<'_, usize>;

    /// Takes a step, if the state of the question permits it.
    fn change<'a>(&'a self, id: QuestionId, change: &'a QuestionChange)
    -> StoreFuture<'a, Changed>;

    /// Says that the process still waits for the answer of an elicitation, or runs the call. Returns
    /// whether the question is open.
    fn renew(&self, id: QuestionId) -> StoreFuture<'_, bool>;

    /// Waits until the store may have changed after `seen`, a number that an earlier call returned; 0
    /// returns at once. Returns the number of the last change. The wait ends after 30 seconds also
    /// without a change.
    fn changes(&self, seen: u64) -> StoreFuture<'_, u64>;
}

/// Time after which a wait for a change ends.
const MAX_CHANGE_WAIT: Duration = Duration::from_secs(30);
