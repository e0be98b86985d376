//! Calls that wait for an approval: the question, the wait of the client, and the run after an approval.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::envelope::{self, code};
use innkeeper_protocol::request_meta::IncomingMeta;
use innkeeper_protocol::{Era, RequestId, RequestParams, Revision, method, skim};
use serde::Serialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::SetOnce;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::forwarding::{complete_result, sha256_hex};
use super::{Caller, ClientRequest, Reply};
use crate::client::{Client, ClientIdentity};
use crate::error::{ErrorKind, RpcError, shown_name};
use crate::gateway::GatewayInner;
use crate::metrics::ClientTransport;
use crate::offering::NamedItem;
use crate::pending_questions::store::{
    Changed, LEASE_TIME, QuestionAdded, QuestionChange, StoreError,
};
use crate::pending_questions::{
    MAX_ARGUMENT_BYTES, MAX_RESPONSE_BYTES, NewQuestion, PendingQuestions, Question, QuestionId,
    QuestionKind, QuestionState, log_answer,
};
use crate::principal::Principal;
use crate::server_use::InUse;
use crate::sink::MessageSink;
use crate::waiting_calls::WaitingCall;

/// The start of the `requestState` of a call that waits. The id after it is no secret: the question has
/// the principal and the arguments, with which the request must agree.
const STATE_PREFIX: &str = "innkeeper-approval:";

/// Time for which a request of a client of the modern era waits. Many clients give up after 60 seconds.
const MAX_POLL_TIME: Duration = Duration::from_secs(45);

/// Time between two progress notifications to a client that waits with an open request.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(15);

/// Interval at which the process says that it still runs a call.
pub(super) const RENEWAL_INTERVAL: Duration = LEASE_TIME.checked_div(3).expect("not zero");

/// Maximum size in bytes of a definition in a question: a larger one is not shown.
const MAX_DEFINITION_BYTES: usize = 32 << 10;

/// Why an approved call does not run.
#[derive(Debug)]
pub(super) enum NotRun {
    /// The answer may succeed later: the question still waits.
    Now(String),
    /// The question ends.
    Ever(String),
}

/// The response of a call as a question keeps it.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum KeptReply<'a> {
    Result(&'a RawValue),
    Error { code: i64, message: &'a str, data: Option<&'a RawValue> },
}

impl GatewayInner {
    /// Returns the questions of the gateway if calls of a tool need an approval.
    pub(super) fn approval_of(&self, tool: &NamedItem, name: &str) -> Option<&PendingQuestions> {
        let questions = self.questions.as_ref()?;
        questions.need_approval(&tool.host_name, name).then_some(questions)
    }

    /// Returns what an endpoint is called in questions: the number may be another one after a restart.
    /// `None` for `/mcp`.
    pub(super) fn endpoint_label(&self, index: usize) -> Option<String> {
        let endpoint = self.endpoints.get(index)?;
        let servers = endpoint.options.servers.as_ref().filter(|_| endpoint.is_legacy);
        // No name of an endpoint has a colon.
        let of_server = servers.and_then(|servers| Some(format!(":{}", servers.first()?)));
        of_server.or_else(|| endpoint.name.clone())
    }

    /// Asks whether a call may run, and waits for the answer.
    pub(super) async fn call_after_approval(
        self: &Arc<Self>,
        request: &ClientRequest<'_>,
        questions: &PendingQuestions,
        (tool, name): (&NamedItem, &str),
    ) -> Reply {
        if request.raw_param("task").is_some() {
            let message = format!("`{name}` needs an approval: call the tool without `task`");
            return Err(RpcError::invalid_params(message));
        }
        let question = self.approval_question(request, questions, (tool, name))?;
        let id = match questions.ask(&question).await {
            Ok(Ok(id)) => id,
            Ok(Err(limit)) => return Err(too_many(limit, name)),
            Err(error) => return Err(store_failed(&error, name)),
        };
        match request.caller.era() {
            Era::Legacy => self.wait_with_open_request(request, questions, id).await,
            Era::Modern => still_waits(id),
        }
    }

    fn approval_question(
        &self,
        request: &ClientRequest<'_>,
        questions: &PendingQuestions,
        (tool, name): (&NamedItem, &str),
    ) -> Result<NewQuestion, RpcError> {
        let arguments = arguments_of(request);
        if arguments.get().len() > MAX_ARGUMENT_BYTES {
            return Err(RpcError::invalid_params(format!(
                "`{name}` needs an approval, and its arguments have more than {MAX_ARGUMENT_BYTES} \
                 bytes: call the tool with smaller arguments"
            )));
        }
        let Some(definition) = definition(tool) else {
            let message =
                format!("server `{}` is not ready: call `{name}` again", tool.server.name);
            let error = RpcError::new(code::INTERNAL_ERROR, message);
            return Err(RpcError { kind: ErrorKind::Unavailable, ..error });
        };
        let caller = request.caller;
        let revision = caller.identity.revision.as_str();
        let digest = sha256_hex(definition.get());
        Ok(NewQuestion {
            kind: QuestionKind::Approval,
            principal: (**caller.principal.id()).to_owned(),
            client: format!("{} {revision}", caller.transport.as_str()),
            endpoint: self.endpoint_label(caller.endpoint),
            revision: revision.to_owned(),
            process: questions.process().to_owned(),
            server: (*tool.server.name).to_owned(),
            item: name.to_owned(),
            host_name: (*tool.host_name).to_owned(),
            params: arguments,
            definition: (definition.get().len() <= MAX_DEFINITION_BYTES).then_some(definition),
            digest,
        })
    }

    /// Continues the wait of a client of the modern era; `None` if the request does not continue one.
    pub(super) async fn continue_wait(
        &self,
        request: &ClientRequest<'_>,
        questions: &PendingQuestions,
        (tool, name): (&NamedItem, &str),
    ) -> Option<Reply> {
        if request.caller.era() == Era::Legacy {
            return None;
        }
        let state = request.param("requestState").and_then(skim::decode_string)?;
        let id = state.strip_prefix(STATE_PREFIX).and_then(|id| id.parse().ok());
        let Some(id) = id else {
            return Some(Err(unknown_state()));
        };
        let deadline = Instant::now() + MAX_POLL_TIME;
        let is_own = |question: &Question| {
            let NewQuestion { kind, principal, host_name, params, endpoint, .. } =
                &question.content;
            *kind == QuestionKind::Approval
                && **principal == **request.caller.principal.id()
                && **host_name == *tool.host_name
                && *endpoint == self.endpoint_label(request.caller.endpoint)
                && params.get() == arguments_of(request).get()
        };
        // Before the wait: a question of another client is as unknown as any other text.
        match questions.store().find(id).await {
            Ok(Some(question)) if is_own(&question) => {}
            Ok(_) => return Some(Err(unknown_state())),
            Err(error) => return Some(Err(store_failed(&error, name))),
        }
        Some(match questions.wait_for_end(id, Some(deadline)).await {
            Ok(Some(question)) if question.state.is_open() => still_waits(id),
            Ok(Some(question)) => reply_of(&question, Era::Modern),
            Ok(None) => Err(unknown_state()),
            Err(error) => Err(store_failed(&error, name)),
        })
    }

    /// Waits for the end of the question. Dropping the future leaves the question as it is: only a
    /// cancellation of the client ends the question.
    async fn wait_with_open_request(
        &self,
        request: &ClientRequest<'_>,
        questions: &PendingQuestions,
        id: QuestionId,
    ) -> Reply {
        let call = Arc::new(WaitingCall {
            client: request.caller.client.clone(),
            identity: request.caller.identity.clone(),
            sink: request.sink.clone(),
            request: request.id.clone(),
            meta: request.raw_param("_meta").map(ToOwned::to_owned),
            reply: SetOnce::new(),
            cancelled: SetOnce::new(),
        });
        let _registered = self.waiting_calls.register(id, call.clone());
        let ended = async {
            match questions.wait_for_end(id, None).await {
                Ok(Some(question)) => reply_of(&question, Era::Legacy),
                Ok(None) => Err(unknown_state()),
                Err(error) => Err(store_failed(&error, "the call")),
            }
        };
        let progress = send_progress(request, questions.options().expiry, id);
        tokio::select! {
            biased;
            // The whole result, of which the question may keep less.
            reply = call.reply.wait() => reply.clone(),
            reply = ended => reply,
            () = progress => Err(unknown_state()),
        }
    }

    /// Ends the question of a call that the client cancels.
    pub(super) fn withdraw_call(&self, client: &Client, request: &RequestId) {
        let Some(questions) = &self.questions else { return };
        let Some(id) = self.waiting_calls.cancel(client, request) else { return };
        let store = questions.store().clone();
        self.tasks.spawn(async move {
            let change = QuestionChange::end("the client cancelled the call");
            if let Err(error) = store.change(id, &change).await {
                tracing::warn!(question = %id, %error, "cancelled question not ended");
            }
        });
    }

    /// Checks everything that an approved call needs, and starts its server. The definition must be the
    /// one that the operator saw.
    pub(super) async fn prepare_approved(
        self: &Arc<Self>,
        question: &Question,
        call: Option<&WaitingCall>,
    ) -> Result<InUse, NotRun> {
        let caller = self.approved_caller(question, call)?;
        let content = &question.content;
        let name = shown_name(&content.item);
        let mut in_use = None;
        loop {
            let offering =
                self.offering(&caller).await.map_err(|error| NotRun::Now(error.message))?;
            if !self.policy.permits(&caller.principal, &content.item) {
                return Err(NotRun::Ever(format!("the client may no longer use `{name}`")));
            }
            let Some(tool) = offering.tool(&content.item) else {
                return Err(NotRun::Now(format!("`{name}` is not offered now")));
            };
            if *tool.host_name != *content.host_name {
                let message = format!("`{name}` is now the name of another tool");
                return Err(NotRun::Ever(message));
            }
            if caller.client.is_none() && self.is_session_server(&tool.server.name) {
                return Err(NotRun::Ever("the session of the call has ended".to_owned()));
            }
            let Some(in_use) = in_use.take() else {
                // A start may change the definition.
                let used = self.use_offered(&tool.server).await;
                in_use = Some(used.map_err(|error| NotRun::Now(error.message))?);
                continue;
            };
            let Some(definition) = definition(tool) else {
                return Err(NotRun::Now(format!("server `{}` is not ready", tool.server.name)));
            };
            if sha256_hex(definition.get()) != content.digest {
                return Err(NotRun::Ever(format!(
                    "the definition of `{name}` has changed since the call: call the tool again"
                )));
            }
            return Ok(in_use);
        }
    }

    /// Returns the caller of an approved call: the client that waits in this process, else the principal
    /// alone.
    fn approved_caller(
        &self,
        question: &Question,
        call: Option<&WaitingCall>,
    ) -> Result<Caller, NotRun> {
        let content = &question.content;
        let mut endpoints = 0..self.endpoints.len();
        let endpoint = endpoints.find(|index| self.endpoint_label(*index) == content.endpoint);
        let endpoint = endpoint.ok_or_else(|| {
            NotRun::Ever("the endpoint of the call does not exist any more".to_owned())
        })?;
        let revision: Option<Revision> = content.revision.parse().ok();
        let revision = revision.filter(|revision| revision.era() == Era::Legacy);
        let alone = || ClientIdentity {
            revision: revision.unwrap_or(Revision::LATEST_LEGACY),
            capabilities: super::empty_object().into(),
        };
        Ok(Caller {
            principal: Principal::new(content.principal.as_str()),
            endpoint,
            client: call.and_then(|call| call.client.clone()),
            subscription: None,
            identity: call.map_or_else(alone, |call| call.identity.clone()),
            transport: ClientTransport::Http,
            header_trace: None,
            calls: None,
        })
    }

    /// Runs a call that this process has claimed, and keeps its result. The run does not end with the
    /// request of the client.
    pub(super) async fn run_claimed(
        self: Arc<Self>,
        questions: PendingQuestions,
        question: Box<Question>,
        (call, in_use): (Option<Arc<WaitingCall>>, InUse),
    ) {
        let id = question.id;
        let cancelled = async {
            match &call {
                Some(call) => call.cancelled.wait().await,
                None => std::future::pending().await,
            };
        };
        let reply = tokio::select! {
            biased;
            reply = self.call_approved(&question, call.as_deref()) => reply,
            () = cancelled => Err(cancelled_call(&question)),
            () = renew(&questions, id) => Err(lost_call(&question)),
        };
        drop(in_use);
        let change = QuestionChange::finish(kept_reply(&reply));
        if let Some(call) = &call {
            // Only the process that claimed the call sets the cell.
            drop(call.reply.set(reply));
        }
        match change_reliably(&questions, id, &change).await {
            Ok(Changed::Done(question)) => log_answer(&question),
            Ok(Changed::Refused(_) | Changed::Unknown) => {
                tracing::warn!(question = %id, "result of a call came too late to be kept");
            }
            Err(error) => tracing::error!(question = %id, %error, "result of a call not kept"),
        }
    }

    async fn call_approved(
        self: &Arc<Self>,
        question: &Question,
        call: Option<&WaitingCall>,
    ) -> Reply {
        let content = &question.content;
        let not_run = |error| match error {
            NotRun::Now(message) | NotRun::Ever(message) => {
                RpcError::new(code::INTERNAL_ERROR, message)
            }
        };
        let caller = self.approved_caller(question, call).map_err(not_run)?;
        let mut params = json!({ "name": content.item }).to_string();
        params = skim::replace_member(&params, "arguments", content.params.get());
        if let Some(meta) = call.and_then(|call| call.meta.as_deref()) {
            params = skim::replace_member(&params, "_meta", meta.get());
        }
        let params = RawValue::from_string(params)
            .map_err(|error| RpcError::invalid_params(error.to_string()))?;
        let params = RequestParams::from_raw(Some(&params))?;
        let request = ClientRequest {
            id: &RequestId::Integer(0),
            method: method::TOOLS_CALL,
            params: &params,
            meta: IncomingMeta::from_params(&params)?,
            caller: &caller,
            sink: call.map_or(&MessageSink::None, |call| &call.sink),
        };
        let offering = self.offering(&caller).await?;
        let tool = offering.tool(&content.item);
        let tool = tool.ok_or_else(|| RpcError::unknown_item("tool", &content.item))?;
        self.run_tool(&request, tool, &content.item).await
    }
}

/// Renews a question until the store says that the question is not open any more. An error of the store
/// is not the end: the next renewal may succeed in time.
pub(super) async fn renew(questions: &PendingQuestions, id: QuestionId) {
    let mut ticks = interval(RENEWAL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match questions.store().renew(id).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => tracing::warn!(question = %id, %error, "question not renewed"),
        }
    }
}

/// Takes a step, again while the store does not respond, for as long as the step can still count.
async fn change_reliably(
    questions: &PendingQuestions,
    id: QuestionId,
    change: &QuestionChange,
) -> Result<Changed, StoreError> {
    let deadline = Instant::now() + LEASE_TIME;
    loop {
        match questions.store().change(id, change).await {
            Ok(changed) => return Ok(changed),
            Err(error) if Instant::now() >= deadline => return Err(error),
            Err(_) => tokio::time::sleep(Duration::from_secs(1)).await,
        }
    }
}

/// Sends progress to a client that waits, so that its time does not run out. The numbers increase up to
/// zero, so that those of the server can follow.
async fn send_progress(request: &ClientRequest<'_>, expiry: Duration, id: QuestionId) {
    let Some(token) = request.meta.progress_token.filter(|_| request.sink.is_some()) else {
        return std::future::pending().await;
    };
    let mut left = expiry.as_secs().saturating_add(LEASE_TIME.as_secs());
    let mut ticks = interval(PROGRESS_INTERVAL);
    loop {
        ticks.tick().await;
        let message = format!("waits for an approval (question {id})");
        let params =
            format!(r#"{{"progressToken":{token},"progress":-{left},"message":"{message}"}}"#);
        let mut line = Vec::new();
        if left > 0
            && let Ok(params) = RawValue::from_string(params)
            && envelope::write_notification(&mut line, method::PROGRESS, Some(&params)).is_ok()
        {
            request.sink.notify(line.into());
        }
        left = left.saturating_sub(PROGRESS_INTERVAL.as_secs());
    }
}

/// Returns the arguments of a call as they were sent.
fn arguments_of(request: &ClientRequest<'_>) -> Box<RawValue> {
    request.raw_param("arguments").map_or_else(super::empty_object, ToOwned::to_owned)
}

/// Returns the definition of a tool as its server sent it.
fn definition(tool: &NamedItem) -> Option<Box<RawValue>> {
    let upstream = &tool.server.upstream;
    let catalog = upstream.host.catalog();
    let stopped = upstream.stopped();
    let stopped = stopped.get(&tool.server.name).map(|catalog| &**catalog);
    [Some(&*catalog), stopped].into_iter().flatten().find_map(|catalog| {
        let found = catalog.tools().find(|known| *known.public_name == *tool.host_name)?;
        Some((*found.definition.raw).to_owned())
    })
}

/// Returns the result that lets a client of the modern era ask again.
fn still_waits(id: QuestionId) -> Reply {
    let state = format!("{STATE_PREFIX}{id}");
    let result = json!({ "resultType": "input_required", "requestState": state });
    to_raw_value(&result).map_err(|error| RpcError::new(code::INTERNAL_ERROR, error.to_string()))
}

fn kept_reply(reply: &Reply) -> Box<RawValue> {
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
        let (code, data) = (code::INTERNAL_ERROR, data.as_deref());
        to_raw_value(&KeptReply::Error { code, message: &message, data }).unwrap_or_default()
    })
}

/// Returns the response to the client of a question that is not open.
fn reply_of(question: &Question, era: Era) -> Reply {
    let name = shown_name(&question.content.item);
    let id = question.id;
    let why = question.reason.as_deref().map(|reason| format!(": {}", shown_name(reason)));
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
    #[derive(serde::Deserialize)]
    struct Kept<'a> {
        #[serde(borrow)]
        result: Option<&'a RawValue>,
        error: Option<KeptError>,
    }
    #[derive(serde::Deserialize)]
    struct KeptError {
        code: i64,
        message: String,
        data: Option<Box<RawValue>>,
    }
    let response = question.response.as_deref().map_or("{}", RawValue::get);
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

fn lost_call(question: &Question) -> RpcError {
    let name = shown_name(&question.content.item);
    let message = format!(
        "the outcome of the approved call of `{name}` is unknown (question {}): the gateway ended \
         during the call, and does not repeat the call; check what the tool did",
        question.id
    );
    may_have_run(message, question)
}

fn cancelled_call(question: &Question) -> RpcError {
    let name = shown_name(&question.content.item);
    may_have_run(format!("the client cancelled the approved call of `{name}`"), question)
}

fn may_have_run(message: String, question: &Question) -> RpcError {
    let data = json!({ "kind": "approval", "question": question.id, "mayHaveRun": true });
    let error = RpcError::new(code::INTERNAL_ERROR, message);
    RpcError { kind: ErrorKind::Unavailable, data: to_raw_value(&data).ok(), ..error }
}

fn unknown_state() -> RpcError {
    RpcError::invalid_params(
        "`requestState` belongs to no call of this client that waits for an approval or has a \
         result: call the tool without it",
    )
}

fn too_many(limit: QuestionAdded, name: &str) -> RpcError {
    let whose = match limit {
        QuestionAdded::PrincipalLimit => "of this client ",
        QuestionAdded::TotalLimit | QuestionAdded::Added => "",
    };
    let message = format!(
        "`{name}` needs an approval, and too many questions {whose}wait for an answer: call the tool \
         again after some are answered"
    );
    RpcError::not_approved(message, &json!({ "kind": "approval", "mayHaveRun": false }))
}

fn store_failed(error: &StoreError, name: &str) -> RpcError {
    tracing::error!(%error, "the store of questions does not respond");
    let message =
        format!("`{name}` needs an approval, and the store of questions does not respond");
    let data = to_raw_value(&json!({ "kind": "approval", "mayHaveRun": false })).ok();
    let error = RpcError::new(code::INTERNAL_ERROR, message);
    RpcError { kind: ErrorKind::Unavailable, data, ..error }
}
