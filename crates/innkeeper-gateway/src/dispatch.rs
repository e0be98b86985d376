//! The method of a client's request, and what the gateway does for it.

mod approval_replies;
mod approvals;
mod approved_calls;
mod calls;
mod client_tasks;
mod forwarding;
mod gateway_tools;
mod handshake;
mod lists;
mod operator_answers;
mod operator_callback;
mod resources;
mod stored_results;
mod telemetry;

pub(crate) use handshake::supported_versions;
pub use operator_answers::{AnswerOutcome, OperatorAnswer};

use std::sync::Arc;

use http::HeaderMap;
use innkeeper_host::LogLevel;
use innkeeper_protocol::request_meta::IncomingMeta;
use innkeeper_protocol::{Era, RequestId, RequestParams, method, skim};
use serde_json::value::RawValue;

use crate::caller::Caller;
use crate::client::Client;
use crate::error::RpcError;
use crate::gateway::GatewayInner;
use crate::json_text::empty_object;
use crate::offering::ListKind;
use crate::sink::MessageSink;

/// The start of the methods of requests about tasks.
const TASKS_PREFIX: &str = "tasks/";

/// A request of a client, without its id.
#[derive(Debug)]
pub(crate) struct ClientRequest<'a> {
    pub(crate) id: &'a RequestId,
    pub(crate) method: &'a str,
    pub(crate) params: &'a RequestParams<'a>,
    pub(crate) meta: IncomingMeta<'a>,
    pub(crate) caller: &'a Caller,
    /// Receives the messages that belong to the request.
    pub(crate) sink: &'a MessageSink,
    /// The headers in which a client of the modern era repeats arguments; `None` for a request that has
    /// none to check.
    pub(crate) param_headers: Option<&'a HeaderMap>,
}

impl ClientRequest<'_> {
    /// Returns a parameter as JSON text.
    fn param(&self, key: &str) -> Option<&str> {
        self.raw_param(key).map(RawValue::get)
    }

    /// Returns a parameter that must be a string.
    fn string_param(&self, key: &str) -> Result<String, RpcError> {
        let value = self.param(key).and_then(skim::decode_string);
        value
            .map(std::borrow::Cow::into_owned)
            .ok_or_else(|| RpcError::invalid_params(format!("`params/{key}` must be a string")))
    }

    /// Returns a parameter as raw JSON.
    fn raw_param(&self, key: &str) -> Option<&RawValue> {
        self.params.get(key)
    }
}

/// The result of a request: JSON text.
pub(crate) type Reply = Result<Box<RawValue>, RpcError>;

impl GatewayInner {
    /// Handles one request of a client. Dropping the future cancels the request at its server.
    pub(crate) async fn handle(self: &Arc<Self>, request: ClientRequest<'_>) -> Reply {
        match &self.telemetry {
            None => self.dispatch(request).await,
            Some(telemetry) => self.dispatch_in_span(telemetry, request).await,
        }
    }

    async fn dispatch(self: &Arc<Self>, request: ClientRequest<'_>) -> Reply {
        match request.method {
            method::TOOLS_CALL => self.call_tool(&request).await,
            // In a box: each call of a tool would have room for the largest of these futures.
            _ => Box::pin(self.dispatch_other(request)).await,
        }
    }

    /// Handles a request that is no call of a tool.
    async fn dispatch_other(self: &Arc<Self>, request: ClientRequest<'_>) -> Reply {
        let era = request.caller.era();
        match (request.method, era) {
            (method::TOOLS_LIST, _) => self.list(&request, ListKind::Tools).await,
            (method::PROMPTS_LIST, _) => self.list(&request, ListKind::Prompts).await,
            (method::RESOURCES_LIST, _) => self.list(&request, ListKind::Resources).await,
            (method::RESOURCES_TEMPLATES_LIST, _) => {
                self.list(&request, ListKind::ResourceTemplates).await
            }
            (method::PROMPTS_GET, _) => self.get_prompt(&request).await,
            (method::RESOURCES_READ, _) => self.read_resource(&request).await,
            (method::COMPLETION_COMPLETE, _) => self.complete(&request).await,
            (method::INITIALIZE, Era::Legacy) => self.initialize(&request).await,
            (method::PING, Era::Legacy) => Ok(empty_object()),
            (method::LOGGING_SET_LEVEL, Era::Legacy) => Self::set_log_level(&request),
            (method::RESOURCES_SUBSCRIBE, Era::Legacy) => self.subscribe(&request, true).await,
            (method::RESOURCES_UNSUBSCRIBE, Era::Legacy) => self.subscribe(&request, false).await,
            (method::SERVER_DISCOVER, Era::Modern) => self.discover(&request).await,
            (method::SUBSCRIPTIONS_LISTEN, Era::Modern) => self.listen(&request).await,
            (
                method::INITIALIZE
                | method::PING
                | method::LOGGING_SET_LEVEL
                | method::RESOURCES_SUBSCRIBE
                | method::RESOURCES_UNSUBSCRIBE
                | method::SERVER_DISCOVER
                | method::SUBSCRIPTIONS_LISTEN,
                _,
            ) => Err(RpcError::method_not_found(request.method)),
            (method, _) if method.starts_with(TASKS_PREFIX) => {
                self.handle_task_request(&request).await
            }
            _ => self.pass_through(&request).await,
        }
    }

    /// Handles a notification of a client.
    pub(crate) fn handle_notification(
        &self,
        client: &Client,
        method: &str,
        params: Option<&RawValue>,
    ) {
        match method {
            method::CANCELLED => {
                let id = params.and_then(|params| skim::member(params.get(), "requestId"));
                if let Some(id) = id.and_then(RequestId::from_raw) {
                    // First: the cancelled request ends its wait.
                    self.withdraw_call(client, &id);
                    client.cancel(&id);
                }
            }
            // The client may send it more than once.
            method::INITIALIZED => drop(client.initialized.set(())),
            method::ROOTS_LIST_CHANGED => self.servers.forward_roots_changed(client),
            _ => tracing::debug!(method, "notification of a client not forwarded"),
        }
    }

    /// Sets the level for one client; the servers send all log messages.
    fn set_log_level(request: &ClientRequest<'_>) -> Reply {
        let level = request.string_param("level")?;
        let level = LogLevel::ALL.into_iter().find(|known| known.as_str() == level);
        let level =
            level.ok_or_else(|| RpcError::invalid_params("`params/level` is not a log level"))?;
        if let Some(client) = &request.caller.client {
            client.set_log_level(level);
        }
        Ok(empty_object())
    }
}
