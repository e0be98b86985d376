//! The path of every tool call, from the name of the tool to its result.
//!
//! Read `call_tool` first. It finds the tool, checks the headers that repeat arguments, counts the rate, asks
//! for an approval, shows the call in the monitor, forwards it to its server (`forwarding.rs`) and stores a
//! large result. Other requests that go to a server are in `items.rs` and `client_tasks.rs`.

mod approval_replies;
mod approvals;
mod approved_calls;
mod client_tasks;
mod forwarding;
mod gateway_tools;
mod items;
mod large_results;
mod operator_answers;
mod operator_callback;

use std::sync::Arc;

use http::HeaderValue;
use innkeeper_host::{Arguments, CallError, CallOptions};
use innkeeper_protocol::{RequestId, Revision};
use serde_json::json;

use crate::audit_log::AuditLog;
use crate::call_monitor::{CallInFlight, CallMonitor, CallSubject};
use crate::client::Client;
use crate::error::{ErrorKind, RpcError, shown_name};
use crate::gateway_tools::{GatewayTool, text_result};
use crate::json_text::complete_result;
use crate::offering::NamedItem;
use crate::offers::{CallerOffering, Need, Offers};
use crate::parked_calls::ParkedCalls;
use crate::pending_questions::PendingQuestions;
use crate::rate_limits::RateLimits;
use crate::request::{ClientRequest, Reply};
use crate::tasks::GatewayTasks;
use approvals::Approvals;
use client_tasks::{ClientTasks, TaskCall};
use forwarding::{CallTarget, Forwarding};
use large_results::LargeResults;
pub use operator_answers::{AnswerOutcome, OperatorAnswer};

/// What every call of a client uses.
#[derive(Debug)]
pub(crate) struct Calls {
    offers: Arc<Offers>,
    rate_limits: Arc<RateLimits>,
    pub(crate) monitor: CallMonitor,
    audit_log: Arc<AuditLog>,
    forwarding: Forwarding,
    large_results: LargeResults,
    client_tasks: ClientTasks,
    /// `None` if no operator answers questions.
    approvals: Option<Arc<Approvals>>,
}

/// What the calls use of the gateway.
pub(crate) struct CallsContext<'a> {
    pub(crate) offers: Arc<Offers>,
    pub(crate) rate_limits: Arc<RateLimits>,
    pub(crate) audit_log: Arc<AuditLog>,
    pub(crate) parked_calls: Arc<ParkedCalls>,
    pub(crate) questions: Option<PendingQuestions>,
    pub(crate) tasks: GatewayTasks,
    /// The id of this replica, if there are several.
    pub(crate) replica: Option<&'a str>,
    /// Whether the hosts send trace contexts of their own.
    pub(crate) has_traces: bool,
}

impl Calls {
    pub(crate) fn new(context: CallsContext<'_>) -> Arc<Self> {
        let CallsContext { offers, questions, tasks, replica, .. } = context;
        let endpoints = offers.endpoints.clone();
        let approvals = questions
            .map(|questions| Arc::new(Approvals::new(questions, endpoints.clone(), tasks)));
        Arc::new(Self {
            offers,
            rate_limits: context.rate_limits,
            monitor: CallMonitor::new(),
            audit_log: context.audit_log,
            forwarding: Forwarding::new(context.parked_calls, context.has_traces),
            large_results: LargeResults::new(endpoints, replica),
            client_tasks: ClientTasks::new(replica),
            approvals,
        })
    }

    pub(crate) fn questions(&self) -> Option<&PendingQuestions> {
        self.approvals.as_ref().map(|approvals| &approvals.questions)
    }

    /// Removes the results and the waiting calls whose time is over. Returns the number of calls that
    /// still wait for their clients.
    pub(crate) fn remove_expired(&self) -> usize {
        self.large_results.remove_expired();
        self.forwarding.parked.remove_expired()
    }

    /// Ends the wait for an approval of a call that its client cancels.
    pub(crate) fn withdraw(&self, client: &Client, request: &RequestId) {
        if let Some(approvals) = &self.approvals {
            approvals.withdraw(client, request);
        }
    }

    /// Handles `tools/call`.
    pub(crate) async fn call_tool(self: &Arc<Self>, request: &ClientRequest<'_>) -> Reply {
        let name = request.string_param("name")?;
        let options = self.offers.endpoints.options(request.caller.endpoint);
        match GatewayTool::find(options, &name) {
            // Boxed, because a nested call makes the future large.
            Some(tool) => Box::pin(self.call_gateway_tool(request, tool)).await,
            None => {
                let offering = self.offers.offering_for(request.caller, Need::Tool(&name)).await?;
                self.call_offered_tool(request, &offering, &name).await
            }
        }
    }

    async fn call_offered_tool(
        self: &Arc<Self>,
        request: &ClientRequest<'_>,
        offering: &CallerOffering,
        name: &str,
    ) -> Reply {
        let principal = &request.caller.principal;
        let Some(tool) = self.offers.permitted_tool(principal, offering, name) else {
            let unknown = RpcError::unknown_item("tool", name);
            let error =
                self.offers.missing_item(request.caller, offering, Need::Tool(name), unknown);
            if error.kind == ErrorKind::UnknownItem {
                self.audit_log.record_refused_tool(principal, name);
            }
            return Err(error);
        };
        if let Some(headers) = request.param_headers {
            let checked = tool.param_headers.check_call(request.params.raw(), |name| {
                headers.get(name).map(HeaderValue::as_bytes)
            });
            checked.map_err(|mismatch| RpcError::new(mismatch.code(), mismatch.to_string()))?;
        }
        let approvals = self.approvals.as_ref().filter(|approvals| approvals.are_needed_for(tool));
        if let Some(approvals) = approvals
            && let Some(reply) = Box::pin(approvals.continue_wait(request, tool, name)).await
        {
            return reply;
        }
        self.rate_limits.count_call(principal, &tool.names).map_err(|exceeded| {
            let text = format!("call of `{}`: {exceeded}", shown_name(name));
            self.audit_log.record("rate", Some(principal), &text);
            RpcError::from_rate(exceeded)
        })?;
        match approvals {
            Some(approvals) => Box::pin(approvals.ask(request, tool, name)).await,
            None => self.run_tool(request, tool, name).await,
        }
    }

    /// Runs a call that the client may make.
    async fn run_tool(
        self: &Arc<Self>,
        request: &ClientRequest<'_>,
        tool: &NamedItem,
        name: &str,
    ) -> Reply {
        let monitored = self.monitor.start(CallSubject {
            principal: request.caller.principal.clone(),
            server: tool.server.name.clone(),
            tool: name.into(),
            transport: request.caller.transport,
        });
        let call = monitored.call().clone();
        // Boxed to keep the futures of its callers small.
        monitored.run(Box::pin(self.forward_call(request, tool, name, call))).await
    }

    async fn forward_call(
        self: &Arc<Self>,
        request: &ClientRequest<'_>,
        tool: &NamedItem,
        name: &str,
        in_flight: Arc<CallInFlight>,
    ) -> Reply {
        let arguments = request.raw_param("arguments");
        let target = CallTarget {
            server: &tool.server,
            item: name,
            digest_of: arguments,
            task: None,
            may_repeat: tool.may_repeat,
        };
        let host = tool.server.upstream.host.clone();
        let host_name: Box<str> = tool.names.prefixed().into();
        let task_call = self.client_tasks.call(request, tool, self.passes_tasks(request.caller))?;
        let call = {
            let arguments = arguments.map(ToOwned::to_owned);
            let task_call = task_call.as_ref().map(TaskCall::for_host);
            let in_flight = in_flight.clone();
            move |options: CallOptions| async move {
                let arguments = arguments.map_or(Arguments::from(json!({})), Arguments::from);
                let result = match task_call {
                    // Boxed to keep the future of an ordinary call small.
                    Some(call) => Box::pin(call.call(&host_name, arguments, options)).await?,
                    None => host.call_tool_with(&host_name, arguments, options).await?,
                };
                in_flight.record_result(&result);
                Ok(result.into_raw())
            }
        };
        let revision = request.caller.identity.revision;
        let result = match self.forward(request, target, call).await {
            // A model can correct its arguments only if it sees the problem.
            Err(error @ CallError::Validation { .. }) if revision >= Revision::V2025_11_25 => {
                in_flight.record_tool_error();
                text_result(&[error.to_string()], true)
            }
            Err(error) => return Err(RpcError::from_call_error(error, name)),
            Ok(result) => {
                let result = result?;
                let task = task_call.and_then(|call| {
                    self.client_tasks.created(request.caller, name, call, &result)
                });
                match task {
                    Some(task) => return task,
                    None => self.large_results.store(request.caller, name, result),
                }
            }
        };
        Ok(complete_result(result, request.caller.era()))
    }
}
