//! Answers of operators: exactly one answer of a question wins.

use std::sync::Arc;

use innkeeper_host::config::NameStyle;
use innkeeper_protocol::skim;
use innkeeper_schema::Schema;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use super::Calls;
use super::approvals::Approvals;
use super::approved_calls::NotRun;
use crate::error::shown_name;
use crate::item_names::ItemNames;
use crate::pending_questions::store::{Changed, QuestionChange, StoreError};
use crate::pending_questions::{
    MAX_REASON_BYTES, MAX_RESPONSE_BYTES, Question, QuestionId, QuestionKind, QuestionState,
    log_answer,
};
use crate::principal::Principal;

/// The answer of an operator.
#[derive(Clone, Debug, PartialEq)]
pub enum OperatorAnswer {
    /// The call may run.
    Approve,
    /// The values of the form of a server.
    Fill(Map<String, Value>),
    /// The call may not run, or the form stays empty. The client of a call gets the reason.
    Decline {
        /// The reason, at most [`MAX_REASON_BYTES`].
        reason: Option<String>,
    },
}

/// What became of an answer.
#[derive(Clone, Debug)]
pub enum AnswerOutcome {
    /// The answer is the one that counts.
    Won(Box<Question>),
    /// The question had another answer before, or has expired or ended.
    Lost(Box<Question>),
    /// The answer does not fit the question, which waits on. The text says why.
    Invalid(String),
    /// The question cannot be answered this way now, and waits on. The text says why.
    NotNow(String),
    /// No such question exists, or it is no longer kept.
    Unknown,
}

impl Calls {
    pub(crate) async fn answer_question(
        self: &Arc<Self>,
        id: QuestionId,
        operator: &str,
        answer: OperatorAnswer,
    ) -> Result<AnswerOutcome, StoreError> {
        let outcome = self.try_answer(id, operator, answer).await;
        if let Ok(AnswerOutcome::Won(question)) = &outcome {
            let Question { content, state, .. } = &**question;
            let kind = content.kind;
            let name = shown_name(&content.tool.host_name);
            let text = format!("{kind} of `{name}` for `{}`: {state}", content.asker.principal);
            self.audit_log.record_answer(&Principal::new(operator), &text);
        }
        outcome
    }

    async fn try_answer(
        self: &Arc<Self>,
        id: QuestionId,
        operator: &str,
        answer: OperatorAnswer,
    ) -> Result<AnswerOutcome, StoreError> {
        let Some(approvals) = &self.approvals else { return Ok(AnswerOutcome::Unknown) };
        let questions = &approvals.questions;
        let Some(question) = questions.store().find(id).await? else {
            return Ok(AnswerOutcome::Unknown);
        };
        if question.state != QuestionState::Waiting {
            return Ok(AnswerOutcome::Lost(Box::new(question)));
        }
        let change = match (answer, question.content.kind) {
            (OperatorAnswer::Approve, QuestionKind::Approval) => {
                return self.approve(approvals, question, operator).await;
            }
            (OperatorAnswer::Fill(values), QuestionKind::Elicitation) => {
                let requested = &question.content.params;
                match form_response(requested, values) {
                    Ok(response) => QuestionChange::answer(operator, response),
                    Err(problem) => return Ok(AnswerOutcome::Invalid(problem)),
                }
            }
            (OperatorAnswer::Decline { reason }, _) => {
                if reason.as_ref().is_some_and(|reason| reason.len() > MAX_REASON_BYTES) {
                    let problem = format!("the reason has more than {MAX_REASON_BYTES} bytes");
                    return Ok(AnswerOutcome::Invalid(problem));
                }
                QuestionChange::decline(operator, reason.filter(|reason| !reason.is_empty()))
            }
            (OperatorAnswer::Approve, QuestionKind::Elicitation) => {
                let problem = "the question is a form: fill or decline it".to_owned();
                return Ok(AnswerOutcome::Invalid(problem));
            }
            (OperatorAnswer::Fill(_), QuestionKind::Approval) => {
                let problem = "the question has no form: approve or decline the call".to_owned();
                return Ok(AnswerOutcome::Invalid(problem));
            }
        };
        Ok(match questions.store().change(id, &change).await? {
            Changed::Done(question) => {
                log_answer(&question);
                AnswerOutcome::Won(question)
            }
            Changed::Refused(question) => AnswerOutcome::Lost(question),
            Changed::Unknown => AnswerOutcome::Unknown,
        })
    }

    /// Claims a call and runs the call in a task of the gateway.
    async fn approve(
        self: &Arc<Self>,
        approvals: &Approvals,
        question: Question,
        operator: &str,
    ) -> Result<AnswerOutcome, StoreError> {
        let id = question.id;
        let questions = &approvals.questions;
        let call = approvals.waiting.find(id);
        let in_use = match self.prepare_approved(&question, call.as_deref()).await {
            Ok(in_use) => in_use,
            Err(NotRun::Now(why)) => return Ok(AnswerOutcome::NotNow(why)),
            Err(NotRun::Ever(why)) => {
                return Ok(
                    match questions.store().change(id, &QuestionChange::end(&why)).await? {
                        Changed::Done(question) | Changed::Refused(question) => {
                            log_answer(&question);
                            AnswerOutcome::Lost(question)
                        }
                        Changed::Unknown => AnswerOutcome::Unknown,
                    },
                );
            }
        };
        // The process that asked has counted the call.
        if question.content.process != questions.process() {
            let principal = Principal::new(question.content.asker.principal.as_str());
            let Question { content, .. } = &question;
            let style = NameStyle::Prefixed;
            let tool =
                ItemNames::from_offered(style, &content.tool.server, &content.tool.host_name);
            if let Err(exceeded) = self.rate_limits.count_call(&principal, &tool) {
                return Ok(AnswerOutcome::NotNow(exceeded.to_string()));
            }
        }
        let change = QuestionChange::claim(operator, questions.process());
        let (sender, receiver) = oneshot::channel();
        let calls = self.clone();
        let questions = questions.clone();
        // In a task: a claim whose operator leaves meanwhile must run, because nobody else runs the call.
        approvals.tasks.spawn(async move {
            let outcome = match questions.store().change(id, &change).await {
                Ok(Changed::Done(question)) => {
                    log_answer(&question);
                    let _ = sender.send(Ok(AnswerOutcome::Won(question.clone())));
                    return calls.run_claimed(questions, question, call, in_use).await;
                }
                Ok(Changed::Refused(question)) => Ok(AnswerOutcome::Lost(question)),
                Ok(Changed::Unknown) => Ok(AnswerOutcome::Unknown),
                Err(error) => Err(error),
            };
            // Without the operator, nobody needs the outcome.
            let _ = sender.send(outcome);
        });
        receiver
            .await
            .unwrap_or_else(|_| Err(StoreError { reason: "the gateway has ended".to_owned() }))
    }
}

/// Returns the response to an elicitation with values that match its schema.
fn form_response(
    requested: &RawValue,
    values: Map<String, Value>,
) -> Result<Box<RawValue>, String> {
    let values = Value::Object(values);
    let schema = skim::member(requested.get(), "requestedSchema").unwrap_or("{}");
    let schema = RawValue::from_string(schema.to_owned()).map_err(|error| error.to_string())?;
    let violations = Schema::from_text(schema).violations(&values);
    let violations =
        violations.map_err(|error| format!("the values cannot be checked: {error}"))?;
    if !violations.is_empty() {
        let problems: Vec<String> = violations.iter().map(ToString::to_string).collect();
        return Err(problems.join("; "));
    }
    let response = to_raw_value(&json!({ "action": "accept", "content": values }));
    let response = response.map_err(|error| error.to_string())?;
    if response.get().len() > MAX_RESPONSE_BYTES {
        return Err(format!("the values have more than {MAX_RESPONSE_BYTES} bytes"));
    }
    Ok(response)
}
