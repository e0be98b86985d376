//! The responses to clients whose calls need an approval, and the form in which questions keep results.

use innkeeper_protocol::Era;
use innkeeper_protocol::envelope::code;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::error::{ErrorKind, RpcError, shown_name};
use crate::json_text::complete_result;
use crate::pending_questions::store::{QuestionAdded, StoreError};
use crate::pending_questions::{MAX_RESPONSE_BYTES, Question, QuestionState};
use crate::request::Reply;

/// The response of a call as a question keeps it.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum KeptReply<'a> {
    Result(&'a RawValue),
    Error { code: i64, message: &'a str, data: Option<&'a RawValue> },
}

pub(super) fn kept_reply(reply: &Reply) -> Box<RawValue> {
    let kept = match reply {
        Ok(result) => KeptReply::Result(result),
        Err(RpcError { kind: _, code, message, data }) => {
            KeptReply::Error { code: *code, message, data: data.as_deref() }
        }
    };
    let small = to_raw_value(&kept).ok().filter(|kept| kept.get().len() <= MAX_RESPONSE_BYTES);
    small.unwrap_or_else(|| {
        let message = format!(
            "the tool ran; its result has more than {MAX_RESPONSE_BYTES} bytes and is not kept: \
             `largeResults` of an endpoint stores such results"
        );
        let data = to_raw_value(&json!({ "mayHaveRun": true })).ok();
        let code = code::INTERNAL_ERROR;
        let data = data.as_deref();
        to_raw_value(&KeptReply::Error { code, message: &message, data }).unwrap_or_default()
    })
}

/// Returns the response to the client of a question that is not open.
pub(super) fn reply_of(question: &Question, era: Era) -> Reply {
    let name = shown_name(&question.content.tool.item);
    let id = question.id;
    let why = question.answer.reason.as_deref().map(|reason| format!(": {}", shown_name(reason)));
    let why = why.unwrap_or_default();
    let message = match question.state {
        QuestionState::Done => return kept_response(question, era),
        QuestionState::Declined => format!(
            "the call of `{name}` was declined{why} (question {id}): the tool did not run; ask the \
             operator of the gateway before another call"
        ),
        QuestionState::Expired => format!(
            "nobody approved the call of `{name}` in time (question {id}): the tool did not run; \
             call the tool again, and ask the operator of the gateway to answer"
        ),
        QuestionState::OutcomeUnknown => return Err(lost_call(question)),
        QuestionState::Ended
        | QuestionState::Answered
        | QuestionState::Waiting
        | QuestionState::Running => {
            format!("the call of `{name}` has ended{why} (question {id}): the tool did not run")
        }
    };
    let data = json!({
        "kind": "approval",
        "question": id,
        "state": question.state,
        "mayHaveRun": false,
    });
    Err(RpcError::not_approved(message, &data))
}

fn kept_response(question: &Question, era: Era) -> Reply {
    #[derive(Deserialize)]
    struct Kept<'a> {
        #[serde(borrow)]
        result: Option<&'a RawValue>,
        error: Option<KeptError>,
    }
    #[derive(Deserialize)]
    struct KeptError {
        code: i64,
        message: String,
        data: Option<Box<RawValue>>,
    }
    let response = question.answer.response.as_deref().map_or("{}", RawValue::get);
    match serde_json::from_str(response) {
        Ok(Kept { result: Some(result), error: None }) => {
            Ok(complete_result(result.to_owned(), era))
        }
        Ok(Kept { result: None, error: Some(KeptError { code, message, data }) }) => {
            Err(RpcError { data, kind: ErrorKind::Server, ..RpcError::new(code, message) })
        }
        Ok(_) | Err(_) => Err(lost_call(question)),
    }
}

pub(super) fn lost_call(question: &Question) -> RpcError {
    let name = shown_name(&question.content.tool.item);
    let message = format!(
        "the outcome of the approved call of `{name}` is unknown (question {}): the gateway ended \
         during the call, and does not repeat the call; check what the tool did",
        question.id
    );
    may_have_run(message, question)
}

pub(super) fn cancelled_call(question: &Question) -> RpcError {
    let name = shown_name(&question.content.tool.item);
    may_have_run(format!("the client cancelled the approved call of `{name}`"), question)
}

fn may_have_run(message: String, question: &Question) -> RpcError {
    let data = json!({ "kind": "approval", "question": question.id, "mayHaveRun": true });
    let error = RpcError::new(code::INTERNAL_ERROR, message);
    RpcError { kind: ErrorKind::Unavailable, data: to_raw_value(&data).ok(), ..error }
}

pub(super) fn unknown_state() -> RpcError {
    RpcError::invalid_params(
        "`requestState` belongs to no call of this client that waits for an approval or has a \
         result: call the tool without it",
    )
}

pub(super) fn too_many(limit: QuestionAdded, name: &str) -> RpcError {
    let whose = match limit {
        QuestionAdded::PrincipalLimit => "of this client ",
        QuestionAdded::TotalLimit | QuestionAdded::Added | QuestionAdded::AlreadyExists => "",
    };
    let message = format!(
        "`{name}` needs an approval, and too many questions {whose}wait for an answer: call the tool \
         again after some are answered"
    );
    RpcError::not_approved(message, &json!({ "kind": "approval", "mayHaveRun": false }))
}

pub(super) fn store_failed(error: &StoreError, name: &str) -> RpcError {
    tracing::error!(%error, "the store of questions does not respond");
    let message =
        format!("`{name}` needs an approval, and the store of questions does not respond");
    let data = to_raw_value(&json!({ "kind": "approval", "mayHaveRun": false })).ok();
    let error = RpcError::new(code::INTERNAL_ERROR, message);
    RpcError { kind: ErrorKind::Unavailable, data, ..error }
}
