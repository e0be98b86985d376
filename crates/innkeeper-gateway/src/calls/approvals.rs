//! Calls that wait for an approval: the question, and the wait of the client.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::envelope::{self, code};
use innkeeper_protocol::{Era, RequestId, method, skim};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::SetOnce;
use tokio::time::{Instant, interval};

use super::approval_replies::{reply_of, store_failed, too_many, unknown_state};
use super::forwarding::sha256_hex;
use crate::bindings::Endpoints;
use crate::client::Client;
use crate::error::{ErrorKind, RpcError};
use crate::json_text::empty_object;
use crate::metrics::ClientTransport;
use crate::offering::NamedItem;
use crate::pending_questions::store::{LEASE_TIME, QuestionAdded, QuestionChange};
use crate::pending_questions::{
    MAX_ARGUMENT_BYTES, NewQuestion, PendingQuestions, QuestionId, QuestionKind, QuestionTool,
};
use crate::request::{ClientRequest, Reply};
use crate::tasks::GatewayTasks;
use crate::waiting_calls::{WaitingCall, WaitingCalls};

/// The start of the `requestState` of a call that waits. The id after it is no secret: the question has
/// the principal and the arguments, with which the request must agree.
const STATE_PREFIX: &str = "innkeeper-approval:";

/// Time for which a request of a client of the modern era waits. Many clients give up after 60 seconds.
const MAX_POLL_TIME: Duration = Duration::from_secs(45);

/// Time between two progress notifications to a client that waits with an open request.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(15);

/// Maximum size in bytes of a definition in a question: a larger one is not shown.
const MAX_DEFINITION_BYTES: usize = 32 << 10;

/// The questions about calls, and the clients that wait for the answers.
#[derive(Debug)]
pub(super) struct Approvals {
    pub(super) questions: PendingQuestions,
    pub(super) waiting: WaitingCalls,
    endpoints: Arc<Endpoints>,
    pub(super) tasks: GatewayTasks,
}

impl Approvals {
    pub(super) fn new(
        questions: PendingQuestions,
        endpoints: Arc<Endpoints>,
        tasks: GatewayTasks,
    ) -> Self {
        Self { questions, waiting: WaitingCalls::default(), endpoints, tasks }
    }

    pub(super) fn are_needed_for(&self, tool: &NamedItem) -> bool {
        self.questions.need_approval(&tool.names)
    }

    /// Asks whether a call may run, and waits for the answer.
    pub(super) async fn ask(
        &self,
        request: &ClientRequest<'_>,
        tool: &NamedItem,
        name: &str,
    ) -> Reply {
        if request.raw_param("task").is_some() {
            let message = format!("`{name}` needs an approval: call the tool without `task`");
            return Err(RpcError::invalid_params(message));
        }
        let question = self.question(request, tool, name)?;
        // A call that another replica received before its end has its question already.
        let known = request.caller.calls.as_ref().map(|calls| calls.id_of(request.id));
        let id = known.map_or_else(QuestionId::random, |call| QuestionId::of_call(&call));
        match self.questions.ask(id, &question).await {
            Ok(QuestionAdded::Added | QuestionAdded::AlreadyExists) => {}
            Ok(limit) => return Err(too_many(limit, name)),
            Err(error) => return Err(store_failed(&error, name)),
        }
        match request.caller.era() {
            Era::Legacy => self.wait_with_open_request(request, id).await,
            Era::Modern => still_waits(id),
        }
    }

    fn question(
        &self,
        request: &ClientRequest<'_>,
        tool: &NamedItem,
        name: &str,
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
        Ok(NewQuestion {
            kind: QuestionKind::Approval,
            asker: caller.asker(&self.endpoints),
            process: self.questions.process().to_owned(),
            tool: QuestionTool {
                server: (*tool.server.name).to_owned(),
                item: name.to_owned(),
                host_name: tool.names.prefixed().to_owned(),
                digest: sha256_hex(definition.get()),
                definition: (definition.get().len() <= MAX_DEFINITION_BYTES).then_some(definition),
            },
            params: arguments,
        })
    }

    /// Returns whether a question is about this call of the same client.
    fn is_about(
        &self,
        question: &NewQuestion,
        request: &ClientRequest<'_>,
        tool: &NamedItem,
    ) -> bool {
        let NewQuestion { kind, asker, tool: asked, params, .. } = question;
        *kind == QuestionKind::Approval
            && *asker.principal == **request.caller.principal.id()
            && *asked.host_name == *tool.names.prefixed()
            && asker.endpoint == self.endpoints.label(request.caller.endpoint)
            && params.get() == arguments_of(request).get()
    }

    /// Continues the wait of a client of the modern era; `None` if the request does not continue one.
    pub(super) async fn continue_wait(
        &self,
        request: &ClientRequest<'_>,
        tool: &NamedItem,
        name: &str,
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
        // Before the wait: a question of another client is as unknown as any other text.
        match self.questions.store().find(id).await {
            Ok(Some(question)) if self.is_about(&question.content, request, tool) => {}
            Ok(_) => return Some(Err(unknown_state())),
            Err(error) => return Some(Err(store_failed(&error, name))),
        }
        Some(match self.questions.wait_for_end(id, Some(deadline)).await {
            Ok(Some(question)) if question.state.is_open() => still_waits(id),
            Ok(Some(question)) => reply_of(&question, Era::Modern),
            Ok(None) => Err(unknown_state()),
            Err(error) => Err(store_failed(&error, name)),
        })
    }

    /// Waits for the end of the question. Dropping the future leaves the question as it is: only a
    /// cancellation of the client ends the question.
    async fn wait_with_open_request(&self, request: &ClientRequest<'_>, id: QuestionId) -> Reply {
        let call = Arc::new(WaitingCall {
            client: request.caller.client.clone(),
            identity: request.caller.identity.clone(),
            sink: request.sink.clone(),
            request: request.id.clone(),
            meta: request.raw_param("_meta").map(ToOwned::to_owned),
            reply: SetOnce::new(),
            cancelled: SetOnce::new(),
        });
        let _registered = self.waiting.register(id, call.clone());
        // An operator who drops the call has cancelled it: no connection of the console can be lost.
        let cancels = request.caller.transport == ClientTransport::Console;
        let _withdrawal = cancels.then(|| Withdrawal { approvals: self, call: &call, id });
        let ended = async {
            match self.questions.wait_for_end(id, None).await {
                Ok(Some(question)) => reply_of(&question, Era::Legacy),
                Ok(None) => Err(unknown_state()),
                Err(error) => Err(store_failed(&error, "the call")),
            }
        };
        let progress = send_progress(request, self.questions.options().expiry, id);
        tokio::select! {
            biased;
            // The whole result, of which the question may keep less.
            reply = call.reply.wait() => reply.clone(),
            reply = ended => reply,
            () = progress => Err(unknown_state()),
        }
    }

    /// Ends the question of a call that the client cancels.
    pub(super) fn withdraw(&self, client: &Client, request: &RequestId) {
        if let Some(id) = self.waiting.cancel(client, request) {
            self.end_question(id, "the client cancelled the call");
        }
    }

    /// Ends a question that waits.
    fn end_question(&self, id: QuestionId, reason: &'static str) {
        let store = self.questions.store().clone();
        self.tasks.spawn(async move {
            let change = QuestionChange::end(reason);
            if let Err(error) = store.change(id, &change).await {
                tracing::warn!(question = %id, %error, "cancelled question not ended");
            }
        });
    }
}

/// Cancels a call that waits or runs when the value is dropped before its reply.
struct Withdrawal<'a> {
    approvals: &'a Approvals,
    call: &'a WaitingCall,
    id: QuestionId,
}

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        // A question with a final state stays as it is, and so does a call with a reply.
        let _ = self.call.cancelled.set(());
        self.approvals.end_question(self.id, "the operator cancelled the call");
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
    request.raw_param("arguments").map_or_else(empty_object, ToOwned::to_owned)
}

/// Returns the definition of a tool as its server sent it.
pub(super) fn definition(tool: &NamedItem) -> Option<Box<RawValue>> {
    let upstream = &tool.server.upstream;
    let catalog = upstream.host.catalog();
    let stopped = upstream.dormant.stopped();
    let stopped = stopped.get(&tool.server.name).map(|catalog| &**catalog);
    [Some(&*catalog), stopped].into_iter().flatten().find_map(|catalog| {
        let found = catalog.tools().find(|known| *known.public_name == *tool.names.prefixed())?;
        Some((*found.definition.raw).to_owned())
    })
}

/// Returns the result that lets a client of the modern era ask again.
fn still_waits(id: QuestionId) -> Reply {
    let state = format!("{STATE_PREFIX}{id}");
    let result = json!({ "resultType": "input_required", "requestState": state });
    to_raw_value(&result).map_err(|error| RpcError::new(code::INTERNAL_ERROR, error.to_string()))
}
