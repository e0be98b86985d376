//! Elicitations of servers that operators answer, in place of a client or beside the client.

use std::sync::{Arc, Weak};

use innkeeper_host::{Callback, CallbackError, CallbackFuture, CallbackResult, ServerRequest};
use innkeeper_protocol::envelope::code;
use innkeeper_protocol::{Era, method, skim};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::oneshot;

use super::Calls;
use super::approvals::Approvals;
use super::approved_calls::renew;
use super::forwarding::CallTarget;
use crate::json_text::empty_object;
use crate::pending_questions::store::{Changed, QuestionAdded, QuestionChange};
use crate::pending_questions::{
    MAX_ARGUMENT_BYTES, NewQuestion, PendingQuestions, Question, QuestionId, QuestionKind,
    QuestionState, QuestionTool, log_answer,
};
use crate::request::ClientRequest;

/// The reason of an elicitation that its server no longer needs.
const CALL_ENDED: &str = "the call or its server has ended";

/// Passes forms of a server to operators, and to the client of the call if the client declares that it
/// answers them. Other requests go to the client.
pub(super) struct OperatorCallback {
    approvals: Weak<Approvals>,
    /// The question without the parameters of the form.
    question: NewQuestion,
    client: Option<Arc<dyn Callback>>,
    client_fills_forms: bool,
}

impl OperatorCallback {
    /// Adds the callback of the client of the call.
    pub(super) fn with_client(self, client: Option<Arc<dyn Callback>>) -> Self {
        Self { client, ..self }
    }
}

impl Calls {
    /// Returns the callback that passes forms to operators; `None` if only the client answers. A client
    /// of the modern era that answers requests answers them alone, because the form is the result of
    /// its request.
    pub(super) fn operator_callback(
        &self,
        request: &ClientRequest<'_>,
        target: &CallTarget<'_>,
    ) -> Option<OperatorCallback> {
        let approvals = self.approvals.as_ref()?;
        let questions = Some(&approvals.questions).filter(|one| one.options().elicitations)?;
        let caller = request.caller;
        let client_answers = caller.identity.answers_requests();
        if self.offers.servers.sole_client().is_some()
            || target.task.is_some()
            || (caller.era() == Era::Modern && client_answers)
        {
            return None;
        }
        let server = (*target.server.name).to_owned();
        let item = target.item.to_owned();
        let question = NewQuestion {
            kind: QuestionKind::Elicitation,
            asker: caller.asker(&self.offers.endpoints),
            process: questions.process().to_owned(),
            tool: QuestionTool {
                host_name: format!("{server}: {item}"),
                server,
                item,
                definition: None,
                digest: String::new(),
            },
            params: empty_object(),
        };
        Some(OperatorCallback {
            approvals: Arc::downgrade(approvals),
            question,
            client: None,
            client_fills_forms: caller.identity.declares(method::ELICITATION_CREATE),
        })
    }
}

impl Callback for OperatorCallback {
    fn respond(&self, request: ServerRequest) -> CallbackFuture {
        let client = self.client.clone();
        let is_form = &*request.method == method::ELICITATION_CREATE && is_form(&request);
        let approvals = self.approvals.upgrade().filter(|_| is_form);
        let Some(approvals) = approvals else {
            return match client {
                Some(client) => client.respond(request),
                None => Box::pin(std::future::ready(Err(not_supported()))),
            };
        };
        let client = client.filter(|_| self.client_fills_forms);
        let mut question = self.question.clone();
        if let Some(params) = &request.params {
            question.params.clone_from(params);
        }
        let questions = approvals.questions.clone();
        Box::pin(async move {
            let id = QuestionId::random();
            match questions.ask(id, &question).await {
                Ok(QuestionAdded::Added) => {}
                Ok(_) => return without_operators(client, request, "too many questions").await,
                Err(error) => {
                    tracing::error!(%error, "the store of questions does not respond");
                    return without_operators(client, request, "the store does not respond").await;
                }
            }
            let (_needed, dropped) = oneshot::channel();
            approvals.tasks.spawn(keep_elicitation(questions.clone(), id, dropped));
            drop(approvals);
            answer(&questions, id, client, request, &question.asker.principal).await
        })
    }
}

/// Renews an elicitation, and ends the question when `needed` is dropped before an answer.
async fn keep_elicitation(
    questions: PendingQuestions,
    id: QuestionId,
    needed: oneshot::Receiver<()>,
) {
    tokio::select! {
        biased;
        _ = needed => {}
        () = renew(&questions, id) => return,
    }
    match questions.store().change(id, &QuestionChange::end(CALL_ENDED)).await {
        Ok(Changed::Done(question)) => log_answer(&question),
        // An answer came first.
        Ok(Changed::Refused(_) | Changed::Unknown) => {}
        Err(error) => tracing::warn!(question = %id, %error, "question not ended"),
    }
}

/// Waits for the first answer: of an operator, or of the client.
async fn answer(
    questions: &PendingQuestions,
    id: QuestionId,
    client: Option<Arc<dyn Callback>>,
    request: ServerRequest,
    principal: &str,
) -> CallbackResult {
    let of_client = async {
        match client {
            Some(client) => client.respond(request).await,
            None => std::future::pending().await,
        }
    };
    let response = tokio::select! {
        biased;
        // The client gets a cancellation of its request.
        ended = questions.wait_for_end(id, None) => {
            return match ended {
                Ok(Some(question)) => response_of(&question),
                Ok(None) | Err(_) => Err(failed("the question is lost")),
            };
        }
        response = of_client => response?,
    };
    // The question keeps what the client decided, and not its values.
    let action = skim::member(response.get(), "action").and_then(skim::decode_string);
    let by = format!("the client of {principal}");
    let change = match action.as_deref() {
        Some("accept") => {
            let kept = to_raw_value(&json!({ "action": "accept" }));
            QuestionChange::answer(&by, kept.unwrap_or_default())
        }
        _ => QuestionChange::decline(&by, None),
    };
    match questions.store().change(id, &change).await {
        Ok(Changed::Done(question)) => {
            log_answer(&question);
            Ok(response)
        }
        // An operator was first.
        Ok(Changed::Refused(question)) => response_of(&question),
        Ok(Changed::Unknown) => Err(failed("the question is lost")),
        Err(error) => {
            tracing::error!(%error, "the store of questions does not respond");
            Err(failed("the store of questions does not respond"))
        }
    }
}

async fn without_operators(
    client: Option<Arc<dyn Callback>>,
    request: ServerRequest,
    why: &str,
) -> CallbackResult {
    match client {
        Some(client) => client.respond(request).await,
        None => Err(failed(why)),
    }
}

/// Returns whether a request of a server is a form of a size that a question can have.
fn is_form(request: &ServerRequest) -> bool {
    let Some(params) = request.params.as_deref().map(RawValue::get) else { return false };
    let mode = skim::member(params, "mode");
    mode.is_none_or(|mode| mode == r#""form""#) && params.len() <= MAX_ARGUMENT_BYTES
}

/// Returns the response to the server of a question that is not open.
fn response_of(question: &Question) -> CallbackResult {
    let action = match question.state {
        QuestionState::Answered => {
            return question.answer.response.clone().ok_or_else(|| failed("the answer is lost"));
        }
        QuestionState::Declined => "decline",
        QuestionState::Waiting
        | QuestionState::Running
        | QuestionState::Done
        | QuestionState::Expired
        | QuestionState::Ended
        | QuestionState::OutcomeUnknown => "cancel",
    };
    to_raw_value(&json!({ "action": action })).map_err(|error| failed(&error.to_string()))
}

fn failed(why: &str) -> CallbackError {
    CallbackError::new(code::INTERNAL_ERROR, format!("no operator can answer: {why}"))
}

fn not_supported() -> CallbackError {
    CallbackError::new(code::METHOD_NOT_FOUND, "method not supported by the client")
}
