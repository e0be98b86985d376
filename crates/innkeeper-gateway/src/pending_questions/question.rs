//! A question with its answer.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use ring::digest::{SHA256, digest};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::{QuestionKind, QuestionState};

/// Maximum size in bytes of the arguments of a call, and of the parameters of an elicitation.
pub const MAX_ARGUMENT_BYTES: usize = 64 << 10;

/// Maximum size in bytes of a kept answer or result.
pub const MAX_RESPONSE_BYTES: usize = 256 << 10;

/// Maximum size in bytes of the reason of a refusal.
pub const MAX_REASON_BYTES: usize = 1 << 10;

/// The id of a question: a UUID. The id alone permits nothing: an answer needs an
/// operator, and a result the principal of the question.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct QuestionId(Uuid);

/// The text is not the id of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the id of a question is a UUID")]
pub struct InvalidQuestionId;

impl QuestionId {
    /// Creates an id that nobody can guess.
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }

    /// Returns the id for a call that several replicas receive, one after the other: the same for the
    /// same call. Nobody can guess the id without `call`.
    pub(crate) fn of_call(call: &str) -> Self {
        let digest = digest(&SHA256, call.as_bytes());
        let bytes = digest.as_ref().first_chunk().copied().unwrap_or_default();
        Self(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }
}

impl FromStr for QuestionId {
    type Err = InvalidQuestionId;

    fn from_str(text: &str) -> Result<Self, InvalidQuestionId> {
        let id = Uuid::try_parse(text).ok().map(Self);
        // The library also parses other spellings.
        id.filter(|id| id.to_string() == text).ok_or(InvalidQuestionId)
    }
}

impl fmt::Display for QuestionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What does not change of a question.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct NewQuestion {
    /// What the question is about.
    pub kind: QuestionKind,
    /// The client of the call.
    pub asker: QuestionAsker,
    /// The process that asked.
    pub process: String,
    /// The tool, or another item of the call.
    pub tool: QuestionTool,
    /// The arguments of the call, or the parameters of the elicitation, as they were sent.
    pub params: Box<RawValue>,
}

/// The client whose call has a question.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct QuestionAsker {
    /// The principal of the call.
    pub principal: String,
    /// How the client is connected, with its revision.
    pub client: String,
    /// The endpoint of the client; `None` for `/mcp`, and `:SERVER` for that of one server.
    pub endpoint: Option<String>,
    /// The revision of the client.
    pub revision: String,
}

/// The tool that a question is about.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct QuestionTool {
    /// The server.
    pub server: String,
    /// The tool by the name that the client used.
    pub item: String,
    /// The tool as `SERVER.TOOL`.
    pub host_name: String,
    /// The definition of the tool as the server sent it, if the store has room for it.
    pub definition: Option<Box<RawValue>>,
    /// The SHA-256 of the definition, in hexadecimal; empty for an elicitation.
    pub digest: String,
}

/// A question in a store.
#[derive(Clone, Debug)]
pub struct Question {
    /// The id.
    pub id: QuestionId,
    /// What does not change.
    pub content: NewQuestion,
    /// The state.
    pub state: QuestionState,
    /// The position among all questions: a question gets a new one at each step.
    pub position: u64,
    /// When the question changes state.
    pub times: QuestionTimes,
    /// The process that runs or ran the call.
    pub claimed_by: Option<String>,
    /// The answer, as far as there is one.
    pub answer: QuestionAnswer,
}

/// When a question changes state.
#[derive(Clone, Copy, Debug)]
pub struct QuestionTimes {
    /// The time of the creation.
    pub created: DateTime<Utc>,
    /// The time until which an answer is possible.
    pub expires: DateTime<Utc>,
    /// The time of the last step.
    pub changed: DateTime<Utc>,
}

/// How a question ended.
#[derive(Clone, Debug, Default)]
pub struct QuestionAnswer {
    /// Who answered: an operator, or the client.
    pub by: Option<String>,
    /// The reason of a refusal or of the end.
    pub reason: Option<String>,
    /// The answer of an elicitation, or a JSON object with the `result` or the `error` of a call.
    pub response: Option<Box<RawValue>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack: remote | a text that is almost the id of a question | only the one spelling of an id is
    /// an id | Isolation
    #[test]
    fn an_id_has_one_spelling_and_is_random() {
        let id = QuestionId::random();
        let text = id.to_string();
        assert_eq!(text.parse(), Ok(id));
        assert_eq!(text.len(), 36);
        let others =
            [text.to_uppercase(), text.replace('-', ""), format!("{{{text}}}"), String::new()];
        for other in others.iter().filter(|other| **other != text) {
            assert_eq!(other.parse::<QuestionId>(), Err(InvalidQuestionId), "{other}");
        }
        assert_ne!(id, QuestionId::random());
        let of_call = QuestionId::of_call("request 7");
        assert_eq!(of_call, QuestionId::of_call("request 7"));
        assert_ne!(of_call, QuestionId::of_call("request 8"));
        assert_eq!(of_call.to_string().parse(), Ok(of_call));
    }
}
