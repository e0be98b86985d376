//! The run of a call after its approval.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::envelope::code;
use innkeeper_protocol::request_meta::IncomingMeta;
use innkeeper_protocol::{Era, RequestId, RequestParams, Revision, method, skim};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::Calls;
use super::approval_replies::{cancelled_call, kept_reply, lost_call};
use super::approvals::definition;
use super::forwarding::sha256_hex;
use crate::caller::Caller;
use crate::client::ClientIdentity;
use crate::error::{RpcError, shown_name};
use crate::json_text::empty_object;
use crate::metrics::ClientTransport;
use crate::offers::Need;
use crate::pending_questions::store::{Changed, LEASE_TIME, QuestionChange, StoreError};
use crate::pending_questions::{PendingQuestions, Question, QuestionId, log_answer};
use crate::principal::Principal;
use crate::replicas::Claim;
use crate::request::{ClientRequest, Reply};
use crate::server_use::InUse;
use crate::sink::MessageSink;
use crate::waiting_calls::WaitingCall;

/// Interval at which the process says that it still runs a call.
pub(super) const RENEWAL_INTERVAL: Duration = LEASE_TIME.checked_div(3).expect("not zero");

/// Why an approved call does not run.
#[derive(Debug)]
pub(super) enum NotRun {
    /// The answer may succeed later: the question still waits.
    Now(String),
    /// The question ends.
    Ever(String),
}

impl Calls {
    /// Checks everything that an approved call needs, and starts its server. The definition must be the
    /// one that the operator saw.
    pub(super) async fn prepare_approved(
        self: &Arc<Self>,
        question: &Question,
        call: Option<&WaitingCall>,
    ) -> Result<InUse, NotRun> {
        let caller = self.approved_caller(question, call)?;
        self.own_servers_of(&caller.principal, caller.endpoint).await?;
        let content = &question.content;
        let name = shown_name(&content.tool.item);
        let mut in_use = None;
        loop {
            let offering = self.offers.offering_for(&caller, Need::Tool(&content.tool.item)).await;
            let offering = offering.map_err(|error| NotRun::Now(error.message))?;
            let Some(tool) = offering.tool(&content.tool.item) else {
                let reason = offering.not_started.first().map(|error| error.message.clone());
                return Err(NotRun::Now(
                    reason.unwrap_or_else(|| format!("`{name}` is not offered now")),
                ));
            };
            if *tool.names.prefixed() != *content.tool.host_name {
                let message = format!("`{name}` is now the name of another tool");
                return Err(NotRun::Ever(message));
            }
            if !self.offers.policy.permits(&caller.principal, &tool.names) {
                return Err(NotRun::Ever(format!("the client may no longer use `{name}`")));
            }
            if caller.client.is_none()
                && self.offers.servers.private().has_session_server(&tool.server.name)
            {
                return Err(NotRun::Ever("the session of the call has ended".to_owned()));
            }
            let Some(in_use) = in_use.take() else {
                // A start may change the definition.
                let used = self.offers.servers.use_offered(&tool.server).await;
                in_use = Some(used.map_err(|error| NotRun::Now(error.message))?);
                continue;
            };
            let Some(definition) = definition(tool) else {
                return Err(NotRun::Now(format!("server `{}` is not ready", tool.server.name)));
            };
            if sha256_hex(definition.get()) != content.tool.digest {
                return Err(NotRun::Ever(format!(
                    "the definition of `{name}` has changed since the call: call the tool again"
                )));
            }
            return Ok(in_use);
        }
    }

    /// Makes sure that no other replica has the private servers of a principal.
    async fn own_servers_of(&self, principal: &Principal, endpoint: usize) -> Result<(), NotRun> {
        let servers = &self.offers.servers;
        let Some(key) = servers.owned_key(principal, None, endpoint) else { return Ok(()) };
        match servers.claim(&key).await {
            Ok(None | Some(Claim::Owned(_))) => Ok(()),
            Ok(Some(Claim::Elsewhere(replica))) => Err(NotRun::Now(format!(
                "the servers of the client run at the replica `{}`: answer in its console, or after \
                 its end",
                replica.id
            ))),
            Ok(Some(Claim::Unknown)) => Err(NotRun::Now("no replica has the client".to_owned())),
            Err(error) => Err(NotRun::Now(error.to_string())),
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
        let principal = Principal::new(content.asker.principal.as_str());
        let mut endpoints = 0..self.offers.endpoints.all().len();
        let endpoint =
            endpoints.find(|index| self.offers.endpoints.label(*index) == content.asker.endpoint);
        let endpoint =
            endpoint.and_then(|index| self.offers.endpoints.place_for(&principal, index));
        let endpoint = endpoint.ok_or_else(|| {
            NotRun::Ever(
                "the endpoint of the call does not exist any more for the client".to_owned(),
            )
        })?;
        let revision: Option<Revision> = content.asker.revision.parse().ok();
        let revision = revision.filter(|revision| revision.era() == Era::Legacy);
        Ok(Caller {
            principal,
            endpoint,
            client: call.and_then(|call| call.client.clone()),
            subscription: None,
            identity: call.map_or_else(
                || ClientIdentity {
                    revision: revision.unwrap_or(Revision::LATEST_LEGACY),
                    capabilities: empty_object().into(),
                },
                |call| call.identity.clone(),
            ),
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
        call: Option<Arc<WaitingCall>>,
        in_use: InUse,
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
            reply = self.call_approved(&question, call.as_deref(), &in_use) => reply,
            () = cancelled => Err(cancelled_call(&question)),
            () = renew(&questions, id) => Err(lost_call(&question)),
        };
        drop(in_use);
        let change = QuestionChange::finish(kept_reply(&reply));
        if let Some(call) = &call {
            // Only the process that claimed the call sets the cell.
            let _ = call.reply.set(reply);
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
        in_use: &InUse,
    ) -> Reply {
        let content = &question.content;
        let caller = self.approved_caller(question, call).map_err(|error| match error {
            NotRun::Now(message) | NotRun::Ever(message) => {
                RpcError::new(code::INTERNAL_ERROR, message)
            }
        })?;
        let mut params = json!({ "name": content.tool.item }).to_string();
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
            param_headers: None,
        };
        let offering = self.offers.offering_for(&caller, Need::Known).await?;
        let tool = offering.tool(&content.tool.item);
        let tool = tool.ok_or_else(|| {
            let unknown = RpcError::unknown_item("tool", &content.tool.item);
            self.offers.missing_item(&caller, &offering, Need::Tool(&content.tool.item), unknown)
        })?;
        self.run_tool(&request, &tool.with_use(in_use), &content.tool.item).await
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
