//! The method of a client's request, and what the gateway does for it.

mod handshake;
mod lists;
mod telemetry;

pub(crate) use handshake::supported_versions;

use std::sync::Arc;

use innkeeper_host::{LogLevel, Telemetry};
use innkeeper_protocol::{Era, RequestId, method, skim};
use serde_json::value::RawValue;

use crate::calls::Calls;
use crate::client::Client;
use crate::error::RpcError;
use crate::json_text::empty_object;
use crate::offering::ListKind;
use crate::offers::Offers;
use crate::request::{ClientRequest, Reply};
use crate::subscriptions::Subscriptions;

/// The start of the methods of requests about tasks.
const TASKS_PREFIX: &str = "tasks/";

/// The methods of clients, with what handles each of them.
#[derive(Debug)]
pub(crate) struct Methods {
    offers: Arc<Offers>,
    calls: Arc<Calls>,
    pub(crate) subscriptions: Subscriptions,
    telemetry: Option<Telemetry>,
}

impl Methods {
    pub(crate) fn new(
        offers: Arc<Offers>,
        calls: Arc<Calls>,
        subscriptions: Subscriptions,
        telemetry: Option<Telemetry>,
    ) -> Self {
        Self { offers, calls, subscriptions, telemetry }
    }

    /// Handles one request of a client. Dropping the future cancels the request at its server.
    pub(crate) async fn handle(&self, request: ClientRequest<'_>) -> Reply {
        match &self.telemetry {
            None => self.dispatch(request).await,
            Some(telemetry) => self.dispatch_in_span(telemetry, request).await,
        }
    }

    async fn dispatch(&self, request: ClientRequest<'_>) -> Reply {
        match request.method {
            method::TOOLS_CALL => self.calls.call_tool(&request).await,
            // Boxed to keep the future of a tool call small.
            _ => Box::pin(self.dispatch_other(request)).await,
        }
    }

    /// Handles a request that is no call of a tool.
    async fn dispatch_other(&self, request: ClientRequest<'_>) -> Reply {
        let era = request.caller.era();
        match (request.method, era) {
            (method::TOOLS_LIST, _) => self.list(&request, ListKind::Tools).await,
            (method::PROMPTS_LIST, _) => self.list(&request, ListKind::Prompts).await,
            (method::RESOURCES_LIST, _) => self.list(&request, ListKind::Resources).await,
            (method::RESOURCES_TEMPLATES_LIST, _) => {
                self.list(&request, ListKind::ResourceTemplates).await
            }
            (method::PROMPTS_GET, _) => self.calls.get_prompt(&request).await,
            (method::RESOURCES_READ, _) => self.calls.read_resource(&request).await,
            (method::COMPLETION_COMPLETE, _) => self.calls.complete(&request).await,
            (method::INITIALIZE, Era::Legacy) => self.initialize(&request).await,
            (method::PING, Era::Legacy) => Ok(empty_object()),
            (method::LOGGING_SET_LEVEL, Era::Legacy) => Self::set_log_level(&request),
            (method::RESOURCES_SUBSCRIBE, Era::Legacy) => {
                self.subscriptions.subscribe(&request, true).await
            }
            (method::RESOURCES_UNSUBSCRIBE, Era::Legacy) => {
                self.subscriptions.subscribe(&request, false).await
            }
            (method::SERVER_DISCOVER, Era::Modern) => self.discover(&request).await,
            (method::SUBSCRIPTIONS_LISTEN, Era::Modern) => {
                self.subscriptions.listen(&request).await
            }
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
                self.calls.handle_task_request(&request).await
            }
            _ => self.calls.pass_through(&request).await,
        }
    }

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
                    self.calls.withdraw(client, &id);
                    client.cancel(&id);
                }
            }
            // The client may send it more than once.
            method::INITIALIZED => {
                let _ = client.settings.initialized.set(());
            }
            method::ROOTS_LIST_CHANGED => self.offers.servers.forward_roots_changed(client),
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
            client.settings.set_log_level(level);
        }
        Ok(empty_object())
    }
}
