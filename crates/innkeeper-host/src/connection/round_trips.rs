//! Multi-round-trip requests of the modern era.
//!
//! The server requests input, the application responds, and the host sends the same request again
//! with the responses.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use indexmap::IndexMap;
use innkeeper_protocol::view::{InputRequest, InputRequiredResult};
use innkeeper_protocol::{ViewError, method, skim};
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::{Instant, timeout_at};

use crate::audit::AuditEvent;
use crate::callback::{CallbackError, CallbackRegistry, RequestKind, ServerRequest};
use crate::connection::Connection;
use crate::error::ProtocolError;
use crate::session::{CallCallback, CallContext, RequestError};
use crate::telemetry::TraceContext;
use crate::text::display_prefix;

/// Maximum number of round trips per call; ends a call whose server requests input endlessly.
pub(super) const MAX_ROUND_TRIPS: u32 = 8;

/// Maximum number of characters shown of a method.
const MAX_SHOWN_CHARS: usize = 64;

/// The additional parameters of further round trips.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoundTripParams {
    /// Responses by the keys of the input requests.
    pub(crate) responses: Option<Arc<RawValue>>,
    /// State that the server expects back unchanged.
    pub(crate) state: Option<Arc<RawValue>>,
    /// Trace context of every attempt, sent in `_meta`.
    pub(crate) trace_context: Option<Arc<TraceContext>>,
}

impl RoundTripParams {
    /// Returns whether the request has no response to an earlier request for input.
    pub(crate) fn is_first(&self) -> bool {
        self.responses.is_none() && self.state.is_none()
    }
}

/// The round trips of one call.
#[derive(Debug)]
pub(super) struct RoundTrips {
    count: u32,
    params: RoundTripParams,
}

impl RoundTrips {
    /// Creates the round trips of a call whose first request has these parameters.
    pub(super) fn new(params: RoundTripParams) -> Self {
        Self { count: 0, params }
    }

    /// Returns whether the request responds to no request for input.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0 && self.params.is_first()
    }

    /// Returns the additional parameters of the next request.
    pub(super) fn params(&self) -> RoundTripParams {
        self.params.clone()
    }

    /// Collects the input that a result requests.
    pub(super) async fn gather_input(
        &mut self,
        connection: &Connection,
        call: CallContext<'_>,
        result: &RawValue,
        deadline: Instant,
    ) -> Result<(), RequestError> {
        self.count += 1;
        if self.count > MAX_ROUND_TRIPS {
            return Err(RequestError::Protocol(ProtocolError::TooManyRoundTrips {
                limit: MAX_ROUND_TRIPS,
            }));
        }
        let input_required = InputRequiredResult::from_raw(result);
        let input_required = input_required
            .map_err(|error| RequestError::Protocol(ProtocolError::InvalidResult(error)))?;
        let responses =
            gather_responses(connection, call, &input_required.input_requests, deadline).await?;
        self.params = RoundTripParams {
            responses,
            state: input_required.request_state.map(Arc::from),
            trace_context: None,
        };
        Ok(())
    }
}

/// Checks a request for input that the application receives in place of the callbacks.
pub(super) fn check_forwarded_input(
    connection: &Connection,
    call: CallContext<'_>,
    result: &RawValue,
) -> Result<(), RequestError> {
    // The check reads one member of each name, and the application may read another.
    if skim::has_duplicate_key(result.get()) {
        let expected = "unique member names";
        let found = "duplicate member names";
        return Err(invalid_result(ViewError { pointer: String::new(), expected, found }));
    }
    let input_required = InputRequiredResult::from_raw(result).map_err(invalid_result)?;
    check_forwarded_requests(connection, call, &input_required.input_requests)
}

fn invalid_result(error: ViewError) -> RequestError {
    RequestError::Protocol(ProtocolError::InvalidResult(error))
}

/// Checks the requests for input in a result of any method that the application reads itself.
pub(super) fn check_raw_result(
    connection: &Connection,
    call: CallContext<'_>,
    result: &RawValue,
) -> Result<(), RequestError> {
    if requests_input(call.method, result.get()) {
        check_forwarded_input(connection, call, result)
    } else {
        Ok(())
    }
}

fn requests_input(method: &str, result: &str) -> bool {
    let mut members = skim::members(result);
    match method {
        method::TASKS_GET => members.any(|(key, _)| skim::decode_key(key) == "inputRequests"),
        _ => members.any(|(key, value)| {
            skim::decode_key(key) == "resultType" && value == r#""input_required""#
        }),
    }
}

fn check_forwarded_requests(
    connection: &Connection,
    call: CallContext<'_>,
    requests: &[InputRequest],
) -> Result<(), RequestError> {
    let Connection { server, host, .. } = connection;
    for request in requests {
        let server_request = server_request(server, call, request);
        check_declared(call, &server_request)?;
        if let Some(callback_error) = host.callbacks.forwarding_rejection(&server_request) {
            return Err(denied(&request.method, callback_error.message));
        }
    }
    Ok(())
}

/// Checks that the client of the call can respond to a request.
fn check_declared(call: CallContext<'_>, request: &ServerRequest) -> Result<(), RequestError> {
    match call.caller.and_then(|caller| caller.rejection(request)) {
        Some(rejection) => Err(report_refusal(request, &rejection.message)),
        None => Ok(()),
    }
}

/// Reports a request that nobody can respond to.
fn report_refusal(request: &ServerRequest, reason: &str) -> RequestError {
    let subject = &*display_prefix(&request.method, MAX_SHOWN_CHARS);
    AuditEvent::RequestRefused { subject, reason, count: 1 }.emit(&request.server);
    denied(subject, reason.to_owned())
}

fn server_request(
    server: &Arc<str>,
    call: CallContext<'_>,
    request: &InputRequest,
) -> ServerRequest {
    let InputRequest { key, method, params } = request;
    ServerRequest {
        server: server.clone(),
        key: Some(key.as_str().into()),
        method: method.as_str().into(),
        params: params.clone(),
        call: call.reference(),
    }
}

fn denied(method: &str, reason: String) -> RequestError {
    let method = display_prefix(method, MAX_SHOWN_CHARS).into();
    RequestError::Protocol(ProtocolError::InputDenied { method, reason: reason.into() })
}

/// Collects the responses of the application until the deadline, or until the connection closes.
pub(super) async fn gather_responses(
    connection: &Connection,
    call: CallContext<'_>,
    requests: &[InputRequest],
    deadline: Instant,
) -> Result<Option<Arc<RawValue>>, RequestError> {
    tokio::select! {
        biased;
        reason = connection.session.closed() => Err(RequestError::Unavailable { reason, sent: true }),
        answers = timeout_at(deadline, collect_responses(&connection.server, &connection.host.callbacks, call, requests)) => {
            answers.map_err(|_| RequestError::Timeout)?
        }
    }
}

/// Collects the responses sequentially, because a user reads one request at a time.
async fn collect_responses(
    server: &Arc<str>,
    callbacks: &CallbackRegistry,
    call: CallContext<'_>,
    requests: &[InputRequest],
) -> Result<Option<Arc<RawValue>>, RequestError> {
    if requests.is_empty() {
        return Ok(None);
    }
    // Check all requests first, so that the user is not asked in vain.
    for request in requests {
        let server_request = server_request(server, call, request);
        if !callbacks.has_callback(server, RequestKind::from_method(&request.method)) {
            return Err(report_refusal(
                &server_request,
                "the application has no callback for this method",
            ));
        }
        check_declared(call, &server_request)?;
        if let Some(callback_error) = callbacks.rejection(&server_request) {
            return Err(denied(&request.method, callback_error.message));
        }
    }
    let mut responses: IndexMap<&str, Box<RawValue>> = IndexMap::new();
    for request in requests {
        let answering = async {
            let own = call.callback.map(CallCallback::use_callback);
            match callbacks.respond(server_request(server, call, request), own) {
                Some(answering) => answering.await,
                None => Err(CallbackError::method_not_found()),
            }
        };
        // The callback runs in the caller's task; a panic must not end that task.
        let response = AssertUnwindSafe(answering).catch_unwind().await;
        let response = response.unwrap_or_else(|_| Err(CallbackError::internal_error("panicked")));
        let response = response.map_err(|callback_error| {
            denied(&request.method, format!("the callback failed: {}", callback_error.message))
        })?;
        responses.insert(&request.key, response);
    }
    let serialized = to_raw_value(&responses);
    let serialized = serialized.map_err(|error| denied("", error.to_string()))?;
    Ok(Some(serialized.into()))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::{Value, json};

    use super::*;
    use crate::callback::{Callback, CallbackCapabilities};

    /// Attack: data | a request for input contains a form for a password after a harmless request |
    /// no callback is called | Secrets stay with their owner
    #[test]
    fn a_task_requests_input_with_its_requests_and_any_other_result_with_its_type() {
        let (requests, typed) = (r#"{"inputRequests":{}}"#, r#"{"resultType":"input_required"}"#);
        let escaped = r#"{"a":1,"input\u0052equests":{}}"#;
        for (method, result, expected) in [
            (method::TASKS_GET, requests, true),
            (method::TASKS_GET, escaped, true),
            (method::TASKS_GET, typed, false),
            (method::TOOLS_CALL, requests, false),
            (method::TOOLS_CALL, typed, true),
            (method::TOOLS_CALL, r#"{"resultType":"complete"}"#, false),
            (method::TOOLS_CALL, r#"{"type":"input_required"}"#, false),
            (method::TOOLS_CALL, "{}", false),
        ] {
            assert_eq!(requests_input(method, result), expected, "{method} {result}");
        }
    }

    #[tokio::test]
    async fn a_form_that_asks_for_a_secret_is_rejected_before_any_input_is_requested() {
        let input_request = |key: &str, method: &str, params: Value| InputRequest {
            key: key.to_owned(),
            method: method.to_owned(),
            params: Some(to_raw_value(&params).unwrap()),
        };
        let form = json!({ "requestedSchema": { "properties": { "password": {} } } });
        let requests = [
            input_request("first", method::SAMPLING_CREATE_MESSAGE, json!({})),
            input_request("second", method::ELICITATION_CREATE, form),
        ];
        let received = Arc::new(Mutex::new(Vec::new()));
        let recorded = received.clone();
        let callback: Arc<dyn Callback> = Arc::new(move |request: ServerRequest| {
            recorded.lock().unwrap().push(request.method);
            async { Ok(json!({})) }
        });
        let (server, callbacks) = ("a".into(), CallbackRegistry::default());
        callbacks.set(&CallbackCapabilities::all(), Some(&callback));
        let (method, item, callback_of_call) = (method::TOOLS_CALL.into(), "t", None);
        let call =
            CallContext { id: 1, method: &method, item, callback: callback_of_call, caller: None };
        let error = collect_responses(&server, &callbacks, call, &requests).await.unwrap_err();
        let RequestError::Protocol(ProtocolError::InputDenied { method, reason }) = error else {
            panic!("{error:?}")
        };
        assert_eq!(&*method, method::ELICITATION_CREATE);
        assert!(reason.contains("must not ask for secrets"), "{reason}");
        assert!(received.lock().unwrap().is_empty(), "{received:?}");
        callbacks.set(&CallbackCapabilities::elicitation().allow_secret_forms(), Some(&callback));
        collect_responses(&server, &callbacks, call, &requests).await.unwrap().unwrap();
        assert_eq!(received.lock().unwrap().len(), 2, "wanted, they are both asked");
    }
}
