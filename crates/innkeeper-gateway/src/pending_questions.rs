//! Questions that wait for the answer of a person: calls of tools that need an approval, and
//! elicitations of servers.
//!
//! A question is an item in a [`store`]. It outlives the request that created it, and with Redis
//! also the process. Exactly one answer wins, whether an operator or the client gives it.

pub mod store;

mod kind;
mod question;
mod service;
mod state;

pub use kind::QuestionKind;
pub use question::{
    MAX_ARGUMENT_BYTES, MAX_REASON_BYTES, MAX_RESPONSE_BYTES, NewQuestion, Question,
    QuestionAnswer, QuestionAsker, QuestionId, QuestionTimes, QuestionTool,
};
pub use service::{PendingQuestions, QuestionOptions};
pub use state::{InvalidQuestionStep, QuestionState, QuestionStep};

pub(crate) use service::log_answer;
