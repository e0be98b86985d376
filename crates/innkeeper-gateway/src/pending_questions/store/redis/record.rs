//! A question as the fields of a hash in Redis.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde_json::value::RawValue;

use crate::pending_questions::{
    Question, QuestionAnswer, QuestionId, QuestionState, QuestionTimes,
};
use crate::store_error::StoreError;

/// The number of fields of a question in a response: those of `record` in `prelude.lua`.
const FIELDS: usize = 11;

/// Parses questions from their fields, one after the other.
pub(super) fn parse(fields: &[Bytes]) -> Result<Vec<Question>, StoreError> {
    fields.chunks(FIELDS).map(parse_one).collect()
}

fn parse_one(fields: &[Bytes]) -> Result<Question, StoreError> {
    let texts: Vec<&str> =
        fields.iter().filter_map(|field| std::str::from_utf8(field).ok()).collect();
    let [
        id,
        content,
        state,
        position,
        created,
        expires,
        changed,
        claimed_by,
        answered_by,
        reason,
        response,
    ] = texts[..]
    else {
        return Err(invalid("a field"));
    };
    let response: Option<Box<RawValue>> = match response {
        "" => None,
        json => Some(serde_json::from_str(json).map_err(|_| invalid("response"))?),
    };
    let id: QuestionId = id.parse().map_err(|_| invalid("id"))?;
    let mut states = QuestionState::ALL.into_iter();
    Ok(Question {
        id,
        content: serde_json::from_str(content).map_err(|_| invalid("content"))?,
        state: states.find(|known| known.as_str() == state).ok_or_else(|| invalid("state"))?,
        position: position.parse().map_err(|_| invalid("position"))?,
        times: QuestionTimes {
            created: time(created, "created")?,
            expires: time(expires, "expires")?,
            changed: time(changed, "changed")?,
        },
        claimed_by: optional(claimed_by),
        answer: QuestionAnswer { by: optional(answered_by), reason: optional(reason), response },
    })
}

fn optional(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn time(text: &str, field: &str) -> Result<DateTime<Utc>, StoreError> {
    let time = text.parse().ok().and_then(DateTime::from_timestamp_millis);
    time.ok_or_else(|| invalid(field))
}

fn invalid(field: &str) -> StoreError {
    StoreError { reason: format!("{field} of a question in Redis is not valid") }
}
