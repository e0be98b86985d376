//! Forwards one request to its server: callback, notifications, cancellation.

use std::pin::{Pin, pin};
use std::sync::Arc;

use innkeeper_host::error::UnavailableReason;
use innkeeper_host::{
    CallError, CallNotification, CallOptions, Callback, LogLevel, RemoteClient, RoundTripMode,
    TraceContext,
};
use innkeeper_protocol::request_meta::META_RELATED_TASK;
use innkeeper_protocol::{Era, envelope, method, skim};
use ring::digest::{SHA256, digest};
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::Calls;
use crate::client::ClientCallback;
use crate::error::RpcError;
use crate::json_text::complete_result;
use crate::offering::OfferedServer;
use crate::parked_calls::{
    CallContext, CallIdentity, CurrentStream, ParkableCall, ParkedCalls, RequestStream,
};
use crate::question_owners::{CallClient, RunningCall};
use crate::request::{ClientRequest, Reply};
use crate::task_ids::TaskIdPair;

/// Number of notifications of one call that wait for the client; further ones are dropped.
const MAX_QUEUED_NOTIFICATIONS: usize = 64;

/// The minimum level of log messages for a client of the legacy era that sets none.
const DEFAULT_LOG_LEVEL: LogLevel = LogLevel::Info;

/// The state that only forwarding needs.
#[derive(Debug)]
pub(super) struct Forwarding {
    /// Calls that wait for input of their clients.
    pub(super) parked: Arc<ParkedCalls>,
    /// Whether the hosts send trace contexts of their own.
    has_traces: bool,
}

impl Forwarding {
    pub(super) fn new(parked: Arc<ParkedCalls>, has_traces: bool) -> Self {
        Self { parked, has_traces }
    }
}

/// The server and the item of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallTarget<'a> {
    pub(super) server: &'a Arc<OfferedServer>,
    /// The name that the client used.
    pub(super) item: &'a str,
    /// The arguments, for the digest of a parked call.
    pub(super) digest_of: Option<&'a RawValue>,
    /// The task that the request is about.
    pub(super) task: Option<&'a TaskIdPair>,
    /// Whether the request may run twice.
    pub(super) may_repeat: bool,
}

impl Calls {
    /// Runs `call` with the options of the request. The outer result is that of the host, the inner
    /// one that of the gateway.
    pub(super) async fn forward<F>(
        self: &Arc<Self>,
        request: &ClientRequest<'_>,
        target: CallTarget<'_>,
        call: impl FnOnce(CallOptions) -> F + Send + 'static,
    ) -> Result<Reply, CallError>
    where
        F: Future<Output = Result<Box<RawValue>, CallError>> + Send + 'static,
    {
        let caller = request.caller;
        let server = target.server;
        let answers = caller.identity.answers_requests() && request.sink.is_some();
        let mut options = self.call_options(request, server);
        if let Some(calls) = &caller.calls {
            options.client.send_check =
                Some(calls.check(request.id, target.item, target.may_repeat));
        }
        let operators = self.operator_callback(request, &target);
        match (caller.era(), server.declared.era, operators) {
            (Era::Legacy, _, operators) | (Era::Modern, _, operators @ Some(_)) => {
                let client =
                    caller.client.as_ref().filter(|_| answers && caller.era() == Era::Legacy);
                let mut callback: Option<Arc<dyn Callback>> = None;
                if let Some(client) = client {
                    let client = client.clone();
                    let sink = request.sink.clone();
                    let task = target.task.cloned();
                    callback = Some(Arc::new(ClientCallback { client, sink, task }));
                }
                if let Some(operators) = operators {
                    options.client.capabilities = Some(caller.identity.with_elicitation().into());
                    callback = Some(Arc::new(operators.with_client(callback)));
                }
                options.callback = callback;
            }
            (Era::Modern, Era::Modern, None) => {
                options.round_trips = RoundTripMode::PassThrough {
                    input_responses: request.raw_param("inputResponses").map(ToOwned::to_owned),
                    request_state: request.raw_param("requestState").map(ToOwned::to_owned),
                };
            }
            (Era::Modern, Era::Legacy, None) => {
                // Boxed to keep the futures of other requests small.
                let forwarding = self.forward_parkable(request, target, options, call);
                return Ok(Box::pin(forwarding).await);
            }
        }
        let in_use = match self.offers.servers.use_offered(server).await {
            Ok(in_use) => in_use,
            Err(error) => return Ok(Err(error)),
        };
        // Only a request with the name of the task is passed to the request for its result.
        let is_asked = target.task.is_none();
        let running = self.start_call(caller.call_client(), server, is_asked, &mut options);
        let receiver =
            wants_notifications(request, server).then(|| open_notification_channel(&mut options));
        let filter = NotificationFilter::new(request, target.task);
        let stream = CurrentStream::new(request_stream(request));
        let call = pin!(call(options));
        match with_notifications(call, receiver, &stream, &filter, running.as_ref()).await {
            Err(CallError::Unavailable { server, .. }) if in_use.is_stopped_for_memory() => {
                Ok(Err(RpcError::stopped_for_memory(&server)))
            }
            Err(CallError::Unavailable { reason: UnavailableReason::NotSent(_), .. })
                if let Some(call) = caller.calls.as_ref().and_then(|calls| calls.repeated()) =>
            {
                Ok(Err(RpcError::outcome_unknown(&call)))
            }
            result => result.map(Ok),
        }
    }

    /// Forwards a request of a client of the modern era to a server of the legacy era.
    async fn forward_parkable<F>(
        self: &Arc<Self>,
        request: &ClientRequest<'_>,
        target: CallTarget<'_>,
        mut options: CallOptions,
        call: impl FnOnce(CallOptions) -> F + Send + 'static,
    ) -> Reply
    where
        F: Future<Output = Result<Box<RawValue>, CallError>> + Send + 'static,
    {
        let server = target.server.clone();
        let identity = CallIdentity {
            server: server.name.clone(),
            method: request.method.into(),
            item: target.item.into(),
            principal: request.caller.principal.clone(),
            endpoint: request.caller.endpoint,
            digest: argument_digest(target.digest_of),
        };
        if request.param("requestState").is_some() {
            let state = request.string_param("requestState")?;
            let responses = request.raw_param("inputResponses");
            let stream = request_stream(request);
            return self.forwarding.parked.resume(&state, responses, &identity, stream).await;
        }
        let stream = CurrentStream::new(request_stream(request));
        let wants = wants_notifications(request, &server);
        let calls_of_all = self.clone();
        let servers = self.offers.servers.clone();
        let filter = NotificationFilter::new(request, target.task);
        let item = identity.item.clone();
        let current = stream.clone();
        let calls = request.caller.calls.clone();
        // The callback refuses what the client does not declare, and records it.
        options.client.capabilities = Some(request.caller.identity.with_all_kinds().into());
        let call_client = request.caller.call_client();
        let client = request.caller.identity.clone();
        let server_use = target.server.server_use.clone();
        let parkable =
            ParkableCall::new(identity, server_use, client, stream, move |context| async move {
                let CallContext { callback, missing } = context;
                options.callback = Some(callback);
                let in_use = servers.use_offered(&server).await?;
                let running = calls_of_all.start_call(call_client, &server, true, &mut options);
                let receiver = wants.then(|| open_notification_channel(&mut options));
                let call = pin!(call(options));
                let running = running.as_ref();
                let result = with_notifications(call, receiver, &current, &filter, running).await;
                result.map_err(|error| match error {
                    CallError::Unavailable { server, .. } if in_use.is_stopped_for_memory() => {
                        RpcError::stopped_for_memory(&server)
                    }
                    error => match calls.as_ref().and_then(|calls| calls.repeated()) {
                        Some(call) => RpcError::outcome_unknown(&call),
                        None => {
                            let missing = missing.error();
                            missing.unwrap_or_else(|| RpcError::from_call_error(error, &item))
                        }
                    },
                })
            });
        self.forwarding.parked.start(parkable).await
    }

    /// Records a call that is about to run, if the protocol does not tie the server's messages to
    /// their calls. `is_asked` is whether a request of the server may reach the client through the call.
    fn start_call(
        &self,
        client: CallClient,
        server: &OfferedServer,
        is_asked: bool,
        options: &mut CallOptions,
    ) -> Option<RunningCall> {
        let is_recorded =
            !server.declared.ties_messages && self.offers.servers.sole_client().is_none();
        is_recorded.then(|| server.server_use.question_owners.start(client, is_asked, options))
    }

    /// Returns the `_meta` of a request for its server. With spans, the host adds the trace context.
    fn forwarded_meta(&self, request: &ClientRequest<'_>) -> Option<Box<RawValue>> {
        let has_traces = self.forwarding.has_traces;
        let meta = request.meta.forwarded_without(|key| {
            // The client knows no task id of the server.
            key == META_RELATED_TASK || has_traces && TraceContext::has_field(key)
        });
        RawValue::from_string(meta?).ok()
    }

    fn call_options(&self, request: &ClientRequest<'_>, server: &OfferedServer) -> CallOptions {
        let caller = request.caller;
        let has_other_clients = server.upstream.wider.is_empty();
        CallOptions {
            meta: self.forwarded_meta(request),
            client: RemoteClient {
                principal: Some(caller.principal.id().clone()),
                has_limited_share: has_other_clients && caller.principal.shares_limits(),
                capabilities: Some(caller.identity.capabilities.clone()),
                ..RemoteClient::default()
            },
            ..CallOptions::default()
        }
    }

    /// Forwards a request with a method that the gateway does not know to the only server that it
    /// can be for.
    pub(crate) async fn pass_through(self: &Arc<Self>, request: &ClientRequest<'_>) -> Reply {
        let offering = self.offers.offering(request.caller).await?;
        let [server] = &offering.servers[..] else {
            return Err(RpcError::method_not_found(request.method));
        };
        let params = request.params.raw().map(|params| {
            let text = skim::remove_member(params.get(), "_meta");
            RawValue::from_string(text).unwrap_or_default()
        });
        let host = server.upstream.host.clone();
        let name = server.name.clone();
        let method = request.method.to_owned();
        let target = CallTarget {
            server,
            item: request.method,
            digest_of: params.as_deref(),
            task: None,
            may_repeat: false,
        };
        let call = {
            let params = params.clone();
            move |options: CallOptions| async move {
                host.request(&name, &method, params.as_deref(), options).await
            }
        };
        let result = self.forward(request, target, call).await;
        let result = result.map_err(|error| RpcError::from_call_error(error, request.method))??;
        Ok(complete_result(result, request.caller.era()))
    }
}

fn request_stream(request: &ClientRequest<'_>) -> RequestStream {
    let progress_token = request.meta.progress_token.map(ToOwned::to_owned);
    RequestStream { sink: request.sink.clone(), progress_token }
}

/// Returns whether notifications of a call can reach the client.
fn wants_notifications(request: &ClientRequest<'_>, server: &OfferedServer) -> bool {
    let logs = match request.caller.era() {
        // Servers of the modern era declare no log messages.
        Era::Legacy => server.declared.era == Era::Modern || server.declared.has_logging,
        Era::Modern => request.meta.log_level.is_some(),
    };
    request.sink.is_some() && (request.meta.progress_token.is_some() || logs)
}

/// Opens the channel for the notifications of a call with these options; returns its receiver.
fn open_notification_channel(options: &mut CallOptions) -> mpsc::Receiver<CallNotification> {
    let (sender, receiver) = mpsc::channel(MAX_QUEUED_NOTIFICATIONS);
    options.notifications = Some(sender);
    receiver
}

/// Runs a call and forwards its notifications, if the client wants them, all before the result.
async fn with_notifications<T>(
    mut call: Pin<&mut impl Future<Output = T>>,
    notifications: Option<mpsc::Receiver<CallNotification>>,
    stream: &CurrentStream,
    filter: &NotificationFilter,
    running: Option<&RunningCall>,
) -> T {
    let Some(mut notifications) = notifications else { return call.await };
    let forward = |notification: &CallNotification| {
        if !notification.is_assumed || running.is_none_or(RunningCall::owns_log_messages) {
            filter.forward(&stream.get(), notification);
        }
    };
    let result = loop {
        tokio::select! {
            biased;
            Some(notification) = notifications.recv() => {
                forward(&notification);
            }
            result = &mut call => break result,
        }
    };
    while let Ok(notification) = notifications.try_recv() {
        forward(&notification);
    }
    result
}

/// Which notifications of a call the client requested.
#[derive(Debug)]
struct NotificationFilter {
    /// The minimum level of log messages; `None` for no log messages.
    log_level: Option<LogLevel>,
    /// The task that the notifications are about.
    task: Option<TaskIdPair>,
}

impl NotificationFilter {
    fn new(request: &ClientRequest<'_>, task: Option<&TaskIdPair>) -> Self {
        let log_level = match request.caller.era() {
            Era::Legacy => {
                let client = request.caller.client.as_ref();
                client.and_then(|client| client.settings.log_level()).or(Some(DEFAULT_LOG_LEVEL))
            }
            Era::Modern => {
                let level = request.meta.log_level.as_deref();
                LogLevel::ALL.into_iter().find(|known| Some(known.as_str()) == level)
            }
        };
        Self { log_level, task: task.cloned() }
    }

    /// Sends a notification to the client, with the progress token of the client's current request.
    fn forward(&self, stream: &RequestStream, notification: &CallNotification) {
        let CallNotification { method, params, .. } = notification;
        // The connection that created a task gets its status.
        if matches!(&**method, method::TASKS_STATUS | method::TASKS_CHANGED) {
            return;
        }
        let mut message = Vec::new();
        let written = if &**method == method::PROGRESS {
            let (Some(params), Some(token)) = (params, &stream.progress_token) else { return };
            let text = skim::replace_member(params.get(), "progressToken", token);
            let params = RawValue::from_string(text).unwrap_or_default();
            envelope::write_notification(&mut message, method, Some(&params))
        } else {
            if &**method == method::MESSAGE && !self.includes(params.as_deref()) {
                return;
            }
            let mapped = self.task.as_ref().zip(params.as_deref());
            let mapped = mapped.map(|(task, params)| task.for_client(params));
            let params = mapped.as_deref().or(params.as_deref());
            envelope::write_notification(&mut message, method, params)
        };
        if written.is_ok() {
            stream.sink.notify(message.into());
        }
    }

    /// Returns whether a log message has the minimum level. A message with an unknown level passes.
    fn includes(&self, params: Option<&RawValue>) -> bool {
        let Some(minimum) = self.log_level else { return false };
        let level = params.and_then(|params| skim::member(params.get(), "level"));
        let level = level.and_then(skim::decode_string);
        let level =
            LogLevel::ALL.into_iter().find(|known| Some(known.as_str()) == level.as_deref());
        level.is_none_or(|level| level >= minimum)
    }
}

/// Returns the SHA-256 of the arguments in hexadecimal.
fn argument_digest(arguments: Option<&RawValue>) -> Arc<str> {
    sha256_hex(arguments.map_or("{}", RawValue::get)).into()
}

/// Returns the SHA-256 of a text in hexadecimal.
pub(super) fn sha256_hex(text: &str) -> String {
    hex::encode(digest(&SHA256, text.as_bytes()))
}
