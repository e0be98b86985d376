//! JSON-RPC messages of a client: the lifecycle, the methods of the gateway's servers and those of
//! the application.

use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use axum::response::IntoResponse;
use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use http::{Response, StatusCode};
use innkeeper_protocol::envelope::{self, ErrorId};
use innkeeper_protocol::request_meta::IncomingMeta;
use innkeeper_protocol::{
    Incoming, MalformedKind, MalformedMessage, Message, RequestId, RequestParams, Revision, method,
};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::upstream_error::{convert, failed_tool};
use super::{ServiceClient, add_retry_time, json_response, no_content, remove_cookie};
use crate::caller::Caller;
use crate::client::ClientIdentity;
use crate::connections::{
    ConnectionError, ConnectionState, ErrorCode, LifecycleMessage, connection_id,
    rejection_response,
};
use crate::error::shown_name;
use crate::json_text::empty_object;
use crate::json_text::legacy_result;
use crate::metrics::ClientTransport;
use crate::request::ClientRequest;
use crate::response_memory::{BatchRoom, MAX_CONCURRENT_OF_BATCH, ResponsesFull};
use crate::sink::MessageSink;
use crate::transport::http::add_to_batch;
use crate::transport::malformed_error;

/// The requests have the form of this revision: arguments that do not match the schema of the tool
/// are an error, not a result.
const REVISION: Revision = Revision::V2025_06_18;

/// The methods of the gateway with the feature that a client must declare.
const GATEWAY_METHODS: [(&str, &str); 7] = [
    (method::TOOLS_LIST, "tools"),
    (method::TOOLS_CALL, "tools"),
    (method::PROMPTS_LIST, "prompts"),
    (method::PROMPTS_GET, "prompts"),
    (method::RESOURCES_LIST, "resources"),
    (method::RESOURCES_TEMPLATES_LIST, "resources"),
    (method::RESOURCES_READ, "resources"),
];

type MethodReply = Result<Box<RawValue>, ConnectionError>;

impl ServiceClient {
    /// Handles the messages of one POST. Sets `always_has_text` for messages whose response is JSON
    /// with the status 200 and without headers of its own, apart from errors.
    pub(super) async fn jsonrpc(
        &self,
        is_https: bool,
        body: &[u8],
        always_has_text: &AtomicBool,
    ) -> Response<Body> {
        let message = match envelope::parse(body) {
            Ok(message) => message,
            Err(malformed) => {
                let error = malformed_request(&malformed);
                let body = error_text(malformed.id.as_ref(), &error);
                return with_status(StatusCode::BAD_REQUEST, body, error.code);
            }
        };
        let ids = request_ids(&message);
        let room = match self.transport.gateway.traffic.responses.reserve(&self.principal, &ids) {
            Ok(room) => room,
            Err(full) => return rejection_response(&full.rejection()),
        };
        let has_text = match &message {
            Message::Single(Incoming::Request { method, .. }) => !is_lifecycle(method),
            Message::Single(_) => false,
            Message::Batch(messages) => {
                messages.iter().any(|message| !matches!(message, Ok(Incoming::Notification { .. })))
            }
        };
        always_has_text.store(has_text, Ordering::Relaxed);
        match message {
            Message::Single(message) => {
                let response = self.single(message, is_https).await;
                room.hold_response(response).unwrap_or_else(|full| match ids.first() {
                    Some(id) => single_response(id, Err(responses_full(full))),
                    None => rejection_response(&full.rejection()),
                })
            }
            Message::Batch(messages) => self.batch(messages, BatchRoom::new(room)).await,
        }
    }

    async fn single(&self, message: Incoming<'_>, is_https: bool) -> Response<Body> {
        match message {
            Incoming::Request { id, method, params } if method == method::INITIALIZE => {
                let opened = self.open(params.map_or("{}", RawValue::get).as_bytes()).await;
                match opened {
                    Ok((connection, initialized)) => {
                        let result = to_raw_value(&initialized).unwrap_or_default();
                        let mut response = json_response(reply_text(&id, &Ok(result)));
                        self.add_id(&mut response, connection.id, is_https);
                        response
                    }
                    Err(error) => single_response(&id, Err(error)),
                }
            }
            Incoming::Request { id, method, params } => {
                let message = lifecycle_message(&method);
                let reply = match message {
                    Some(message) => self.advance_by(message).await,
                    None => match self.active_connection().await {
                        Ok(connection) => self.call(&connection, &id, &method, params).await,
                        Err(error) => Err(error),
                    },
                };
                let has_ended = reply.is_ok() && message == Some(LifecycleMessage::Exit);
                let mut response = single_response(&id, reply);
                if has_ended {
                    remove_cookie(&mut response);
                }
                response
            }
            Incoming::Notification { method, params } => {
                let message = lifecycle_message(&method);
                let handled = match message {
                    Some(message) => self.advance_by(message).await.map(drop),
                    None => match self.active_connection().await {
                        Ok(connection) => {
                            self.notify(&connection, &method, params).await;
                            Ok(())
                        }
                        Err(error) => Err(error),
                    },
                };
                let has_ended = handled.is_ok() && message == Some(LifecycleMessage::Exit);
                let mut response = handled.map_or_else(super::error_response, |()| no_content());
                if has_ended {
                    remove_cookie(&mut response);
                }
                response
            }
            Incoming::Response { id, .. } => single_response(&id, Err(unexpected_response())),
        }
    }

    /// Handles the messages of a batch, at most [`MAX_CONCURRENT_OF_BATCH`] at the same time. Each has
    /// its own checks, rate and trace.
    async fn batch(
        &self,
        messages: Vec<Result<Incoming<'_>, MalformedMessage>>,
        room: BatchRoom,
    ) -> Response<Body> {
        let connection = match self.active_connection().await {
            Ok(connection) => connection,
            Err(error) => {
                let status = error.code.status();
                return with_status(status, error_text(None, &error), error.code);
            }
        };
        let mut waiting = messages.into_iter().enumerate();
        let mut running = FuturesOrdered::new();
        let mut message = Vec::new();
        loop {
            let free = MAX_CONCURRENT_OF_BATCH - running.len();
            for (index, member) in waiting.by_ref().take(free) {
                running.push_back(self.respond_in_batch(&connection, index, member, &room));
            }
            match running.next().await {
                None => break,
                Some(None) => {}
                Some(Some(reply)) => add_to_batch(&mut message, reply.as_bytes()),
            }
        }
        drop(running);
        if message.is_empty() {
            return no_content();
        }
        message.extend_from_slice(b"]\n");
        json_response(room.hold(message))
    }

    /// Handles one message of a batch. Returns `None` for a message without a response.
    async fn respond_in_batch(
        &self,
        connection: &ConnectionState,
        index: usize,
        message: Result<Incoming<'_>, MalformedMessage>,
        room: &BatchRoom,
    ) -> Option<String> {
        let counted = self.count(index);
        match (message, counted) {
            (Err(malformed), _) => {
                let error = malformed_request(&malformed);
                Some(error_text(malformed.id.as_ref(), &error))
            }
            (Ok(Incoming::Response { id, .. }), _) => {
                Some(error_text(Some(&id), &unexpected_response()))
            }
            (Ok(Incoming::Request { id, .. }), Err(error)) => Some(error_text(Some(&id), &error)),
            (Ok(Incoming::Notification { .. }), Err(_)) => None,
            (Ok(Incoming::Request { id, method, params }), Ok(())) => {
                Some(self.call_in_batch(connection, &id, &method, params, room).await)
            }
            (Ok(Incoming::Notification { method, params }), Ok(())) => {
                if !is_lifecycle(&method) {
                    self.notify(connection, &method, params).await;
                }
                None
            }
        }
    }

    /// Calls the method of one request of a batch if there is room for its response.
    async fn call_in_batch(
        &self,
        connection: &ConnectionState,
        id: &RequestId,
        method: &str,
        params: Option<&RawValue>,
        room: &BatchRoom,
    ) -> String {
        if let Err(full) = room.check() {
            return error_text(Some(id), &responses_full(full));
        }
        let reply = match is_lifecycle(method) {
            true => Err(alone_only(method)),
            false => self.call(connection, id, method, params).await,
        };
        let text = reply_text(id, &reply);
        drop(reply);
        match room.add(text.len()) {
            Ok(()) => text,
            Err(full) => error_text(Some(id), &responses_full(full)),
        }
    }

    /// Counts a message of a batch as a request of the client.
    fn count(&self, index: usize) -> Result<(), ConnectionError> {
        let counted = self.transport.gateway.traffic.count_batched(&self.principal, index);
        counted.map_err(|exceeded| {
            let retry_after = exceeded.retry_after().as_secs_f64();
            ConnectionError::new(ErrorCode::TransportError, exceeded.to_string())
                .with_data(json!({ "retryAfterSeconds": retry_after }))
        })
    }

    async fn active_connection(&self) -> Result<ConnectionState, ConnectionError> {
        let id = connection_id(&self.headers)?;
        self.service.active_connection(id, &self.principal).await
    }

    async fn advance_by(&self, message: LifecycleMessage) -> MethodReply {
        let id = connection_id(&self.headers)?;
        let connection = self.service.advance(id, &self.principal, message).await?;
        Ok(to_raw_value(&json!({ "state": connection.state })).unwrap_or_default())
    }

    async fn call(
        &self,
        connection: &ConnectionState,
        id: &RequestId,
        method: &str,
        params: Option<&RawValue>,
    ) -> MethodReply {
        let of_gateway = GATEWAY_METHODS.iter().find(|(name, _)| *name == method);
        if let Some((_, feature)) = of_gateway {
            if !self.service.is_feature_enabled(feature, connection) {
                return Err(ConnectionError::feature_not_enabled(feature));
            }
            return self.forward(id, method, params).await;
        }
        match self.service.call_method(method, connection, parse_params(params)?) {
            Some(called) => Ok(to_raw_value(&called.await?).unwrap_or_default()),
            None => {
                let message = format!("unknown method `{}`", shown_name(method));
                Err(ConnectionError::new(ErrorCode::MethodNotFound, message))
            }
        }
    }

    /// Passes a request to the servers of the gateway.
    async fn forward(
        &self,
        id: &RequestId,
        method: &str,
        params: Option<&RawValue>,
    ) -> MethodReply {
        let gateway = &self.transport.gateway;
        let counted =
            gateway.traffic.metrics.start_request(ClientTransport::ConnectionService, method);
        let responding = async {
            let params = &RequestParams::from_raw(params)?;
            let meta = IncomingMeta::from_params(params)?;
            let caller = &self.caller();
            let sink = &MessageSink::None;
            let request =
                ClientRequest { id, method, params, meta, caller, sink, param_headers: None };
            gateway.methods.handle(request).await.map(legacy_result)
        };
        let reply = counted.finish(responding.await);
        let result = reply.map_err(|error| convert(method, error))?;
        failed_tool(method, &result).map_or(Ok(result), Err)
    }

    fn caller(&self) -> Caller {
        let capabilities = empty_object().into();
        Caller {
            principal: self.principal.clone(),
            endpoint: self.endpoint,
            client: None,
            subscription: None,
            identity: ClientIdentity { revision: REVISION, capabilities },
            transport: ClientTransport::ConnectionService,
            header_trace: self.transport.gateway.methods.header_trace(&self.headers),
            calls: None,
        }
    }

    /// Calls the method of the application for a notification.
    async fn notify(&self, connection: &ConnectionState, method: &str, params: Option<&RawValue>) {
        let called =
            parse_params(params).map(|params| self.service.call_method(method, connection, params));
        let outcome = match called {
            Ok(Some(called)) => called.await.map(drop),
            Ok(None) => {
                tracing::debug!(method, "notification of a client not handled");
                return;
            }
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            tracing::info!(method, error = %error, "notification of a client failed");
        }
    }
}

fn parse_params(params: Option<&RawValue>) -> Result<Option<Value>, ConnectionError> {
    let parsed = params.map(|params| serde_json::from_str(params.get())).transpose();
    parsed.map_err(|error| {
        ConnectionError::new(ErrorCode::InvalidParams, format!("`params`: {error}"))
    })
}

fn lifecycle_message(method: &str) -> Option<LifecycleMessage> {
    LifecycleMessage::ALL
        .into_iter()
        .filter(|message| *message != LifecycleMessage::Initialize)
        .find(|message| message.as_str() == method)
}

fn is_lifecycle(method: &str) -> bool {
    LifecycleMessage::ALL.into_iter().any(|message| message.as_str() == method)
}

fn request_ids(message: &Message<'_>) -> Vec<RequestId> {
    match message {
        Message::Single(message) => id_of(message).into_iter().collect(),
        Message::Batch(messages) => messages
            .iter()
            .filter_map(|message| match message {
                Ok(message) => id_of(message),
                Err(malformed) => Some(malformed.id.clone().unwrap_or(RequestId::Integer(0))),
            })
            .collect(),
    }
}

fn id_of(message: &Incoming<'_>) -> Option<RequestId> {
    match message {
        Incoming::Request { id, .. } | Incoming::Response { id, .. } => Some(id.clone()),
        Incoming::Notification { .. } => None,
    }
}

fn responses_full(full: ResponsesFull) -> ConnectionError {
    let data = json!({ "mayHaveRun": full.has_run() });
    ConnectionError::new(ErrorCode::TransportError, full.to_string()).with_data(data)
}

fn alone_only(method: &str) -> ConnectionError {
    let message = format!("send `{method}` alone, not in a batch");
    ConnectionError::new(ErrorCode::InvalidRequest, message)
}

fn unexpected_response() -> ConnectionError {
    let message = "invalid message: the server sent no request that this response belongs to";
    ConnectionError::new(ErrorCode::ValidationError, message)
}

fn malformed_request(malformed: &MalformedMessage) -> ConnectionError {
    let error = malformed_error(malformed);
    let code = match error.code {
        envelope::code::PARSE_ERROR => ErrorCode::ParseError,
        _ => ErrorCode::InvalidRequest,
    };
    // In an HTTP body a message may have several lines, so the end of the text is the reason.
    let message = match malformed.kind {
        MalformedKind::MultiLineJson => "the text is not JSON: it ends within a value".to_owned(),
        _ => error.message,
    };
    ConnectionError::new(code, message)
}

/// Returns the response to a request. Errors of the connection also have their status.
fn single_response(id: &RequestId, reply: MethodReply) -> Response<Body> {
    let text = reply_text(id, &reply);
    let Err(error) = reply else { return json_response(text) };
    let status = match error.code {
        ErrorCode::ProtocolVersionMismatch
        | ErrorCode::IncompatibleCapabilities
        | ErrorCode::ConnectionExpired
        | ErrorCode::ConnectionNotFound
        | ErrorCode::ConnectionAlreadyExists
        | ErrorCode::InvalidConnectionState
        | ErrorCode::TransportError
        | ErrorCode::ValidationError => error.code.status(),
        _ => StatusCode::OK,
    };
    with_status(status, text, error.code)
}

fn with_status(status: StatusCode, text: String, code: ErrorCode) -> Response<Body> {
    let mut response = (status, json_response(text)).into_response();
    add_retry_time(&mut response, code);
    response
}

fn reply_text(id: &RequestId, reply: &MethodReply) -> String {
    match reply {
        Ok(result) => {
            let mut line = Vec::with_capacity(result.get().len() + 64);
            // Raw JSON and strings always serialize.
            envelope::write_response(&mut line, id, result).unwrap_or_default();
            String::from_utf8(line).unwrap_or_default()
        }
        Err(error) => error_text(Some(id), error),
    }
}

fn error_text(id: Option<&RequestId>, error: &ConnectionError) -> String {
    let id = id.map_or(ErrorId::Null, ErrorId::Request);
    let data = error.data.as_ref().and_then(|data| to_raw_value(data).ok());
    let code = error.code.number();
    let mut line = Vec::new();
    let written =
        envelope::write_error_with_data(&mut line, id, code, &error.message, data.as_deref());
    written.unwrap_or_default();
    String::from_utf8(line).unwrap_or_default()
}
