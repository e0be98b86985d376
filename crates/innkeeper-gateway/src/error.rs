//! The JSON-RPC errors that clients receive.

use std::time::Duration;

use innkeeper_host::CallError;
use innkeeper_host::display_safe;
use innkeeper_host::error::UnavailableReason;
use innkeeper_protocol::ParamsError;
use innkeeper_protocol::envelope::code;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::process_limits::ProcessLimitExceeded;
use crate::rate_limits::RateExceeded;

/// The code of a request that the gateway rejects by its own rules, outside of the codes of the
/// specification.
const REJECTED: i64 = -32_000;

/// Maximum number of characters of a name of a client in an error.
const MAX_SHOWN_CHARS: usize = 256;

/// Returns a name for an error: escaped for display, and shortened.
pub(crate) fn shown_name(name: &str) -> String {
    match name.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", display_safe(&name[..end])),
        None => display_safe(name).into_owned(),
    }
}

/// Why a request of a client failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// The request is not usable.
    Request,
    /// No offered item has the name.
    UnknownItem,
    /// The client calls too often.
    Rate { retry_after: Duration },
    /// The server responded with an error.
    Server,
    /// The server is not ready, or ended.
    Unavailable,
    /// No further server process can start.
    ProcessLimit,
    /// The server did not respond in time.
    Timeout,
    /// The response of the server is invalid.
    Protocol,
    /// The host does not forward the result.
    Withheld,
    /// The call needs an approval and does not have it.
    NotApproved,
    /// An operator cancelled the call.
    Cancelled,
    /// The gateway cannot respond.
    Internal,
}

/// The error of one request of a client.
#[derive(Clone, Debug)]
pub(crate) struct RpcError {
    pub(crate) kind: ErrorKind,
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Box<RawValue>>,
}

impl RpcError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        let is_internal = code == code::INTERNAL_ERROR;
        let kind = if is_internal { ErrorKind::Internal } else { ErrorKind::Request };
        Self { kind, code, message: message.into(), data: None }
    }

    /// The gateway starts nothing more.
    pub(crate) fn closing() -> Self {
        Self::new(code::INTERNAL_ERROR, "the gateway is closing")
    }

    /// An operator cancelled the call in the console.
    pub(crate) fn cancelled_by_operator() -> Self {
        let data = json!({ "kind": "cancelled", "mayHaveRun": true });
        let message = "an operator of the gateway cancelled the call".to_owned();
        Self { kind: ErrorKind::Cancelled, code: REJECTED, message, data: to_raw_value(&data).ok() }
    }

    /// The parameters of the request are not usable.
    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }

    /// The gateway has no such method for this client.
    pub(crate) fn method_not_found(method: &str) -> Self {
        Self::new(code::METHOD_NOT_FOUND, format!("unknown method `{}`", shown_name(method)))
    }

    /// No offered item has this name. A denied item has the same error.
    pub(crate) fn unknown_item(kind: &str, name: &str) -> Self {
        let error = Self::invalid_params(format!("unknown {kind} `{}`", shown_name(name)));
        Self { kind: ErrorKind::UnknownItem, ..error }
    }

    /// The client has no such task: the same error for a task of another client, for a task of a
    /// server that has ended, and for any other text.
    pub(crate) fn unknown_task() -> Self {
        let error = Self::invalid_params("unknown task: it has expired, or its server has ended");
        Self { kind: ErrorKind::UnknownItem, ..error }
    }

    /// The request needs an extension that the client does not declare.
    pub(crate) fn missing_extension(extension: &str) -> Self {
        let message = format!("the client does not declare the extension `{extension}`");
        let data = json!({ "requiredCapabilities": { "extensions": { extension: {} } } });
        let data = to_raw_value(&data).ok();
        Self { data, ..Self::new(code::MISSING_REQUIRED_CLIENT_CAPABILITY, message) }
    }

    /// The server cannot start, because the processes have a maximum. Other servers are not affected.
    pub(crate) fn process_limit(server: &str, exceeded: ProcessLimitExceeded) -> Self {
        let (limit, scope) = exceeded.limit();
        let data = json!({
            "kind": "limit",
            "server": server,
            "limit": limit,
            "scope": scope,
            "mayHaveRun": false,
        });
        let message = format!("server `{server}` did not start: {exceeded}");
        let kind = ErrorKind::ProcessLimit;
        Self { kind, code: REJECTED, message, data: to_raw_value(&data).ok() }
    }

    /// The server did not start for the request.
    pub(crate) fn not_started(server: &str, reason: &dyn std::fmt::Display) -> Self {
        let data = json!({ "kind": "unavailable", "server": server, "mayHaveRun": false });
        let message = format!("server `{server}` did not start: {reason}");
        let kind = ErrorKind::Unavailable;
        let data = to_raw_value(&data).ok();
        Self { kind, code: code::INTERNAL_ERROR, message, data }
    }

    /// The client calls a tool too often. The tool did not run.
    pub(crate) fn from_rate(exceeded: RateExceeded) -> Self {
        let retry_after = exceeded.retry_after();
        let seconds = retry_after.as_secs_f64();
        let data = json!({ "kind": "rate", "retryAfterSeconds": seconds, "mayHaveRun": false });
        let message = exceeded.to_string();
        let kind = ErrorKind::Rate { retry_after };
        Self { kind, code: REJECTED, message, data: to_raw_value(&data).ok() }
    }

    /// There is no room for the response, because clients do not read theirs.
    pub(crate) fn responses_full(message: String, may_have_run: bool) -> Self {
        let data = json!({ "kind": "unreadResponses", "mayHaveRun": may_have_run });
        let kind = ErrorKind::Unavailable;
        let data = to_raw_value(&data).ok();
        Self { kind, code: REJECTED, message, data }
    }

    /// The call has no approval. The tool did not run.
    pub(crate) fn not_approved(message: String, data: &serde_json::Value) -> Self {
        let kind = ErrorKind::NotApproved;
        let data = to_raw_value(data).ok();
        Self { kind, code: REJECTED, message, data }
    }

    /// The request needs capabilities that the client does not declare.
    pub(crate) fn missing_capabilities(missing: &[&str]) -> Self {
        let required: serde_json::Map<_, _> =
            missing.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
        let message = format!("the client does not declare: {}", missing.join(", "));
        let data = to_raw_value(&json!({ "requiredCapabilities": required })).ok();
        Self { data, ..Self::new(code::MISSING_REQUIRED_CLIENT_CAPABILITY, message) }
    }

    /// The replica that sent the call ended before its response.
    pub(crate) fn outcome_unknown(call: &str) -> Self {
        let message = format!(
            "the outcome of the call is unknown: the replica that sent the call to its server, or the \
             connection to it, ended before the response; check whether the call had its effect before you repeat it (call \
             `{}`)",
            display_safe(call)
        );
        let data = json!({ "kind": "unknown", "callId": call, "mayHaveRun": true });
        let kind = ErrorKind::Unavailable;
        let data = to_raw_value(&data).ok();
        Self { kind, code: code::INTERNAL_ERROR, message, data }
    }

    /// The replica with the request ended before the request could have an effect.
    pub(crate) fn not_run() -> Self {
        let message =
            "the replica with the request ended, and the request had no effect: send it again";
        let data = to_raw_value(&json!({ "kind": "unavailable", "mayHaveRun": false })).ok();
        let kind = ErrorKind::Unavailable;
        Self { kind, code: code::INTERNAL_ERROR, message: message.to_owned(), data }
    }

    /// The gateway stopped the server during the call.
    pub(crate) fn stopped_for_memory(server: &str) -> Self {
        let message = format!(
            "server `{server}` was stopped during the call: the server processes exceeded \
             `serve.limits.memory`"
        );
        let data = json!({ "kind": "unavailable", "server": server, "mayHaveRun": true });
        let kind = ErrorKind::Unavailable;
        let data = to_raw_value(&data).ok();
        Self { kind, code: code::INTERNAL_ERROR, message, data }
    }

    /// Converts the error of a call to the item that the client knows as `name`.
    pub(crate) fn from_call_error(mut error: CallError, name: &str) -> Self {
        if let CallError::Unavailable { reason, .. } = &mut error
            && !matches!(reason, UnavailableReason::Busy { .. })
        {
            // A process that clients share writes about the calls of all of them.
            *reason = reason.without_server_text();
        }
        let mut message = error.to_string();
        if let CallError::Protocol { source, .. } = &error {
            message = format!("{message}: {source}");
        }
        let (kind, data) = match error {
            // The error object of the server, as the server sent it.
            CallError::Server { error, .. } => {
                let kind = ErrorKind::Server;
                let code = error.code;
                return Self { kind, code, message: error.message, data: error.data };
            }
            CallError::Routing(_) | CallError::Validation { .. } => {
                let problem = message.replacen("invalid arguments for", "invalid parameters of", 1);
                return Self::invalid_params(problem);
            }
            CallError::Unavailable { server, may_have_run, .. } => (
                ErrorKind::Unavailable,
                json!({ "kind": "unavailable", "server": &*server, "mayHaveRun": may_have_run }),
            ),
            CallError::Timeout { server, .. } => (
                ErrorKind::Timeout,
                json!({ "kind": "timeout", "server": &*server, "mayHaveRun": true }),
            ),
            CallError::Protocol { server, .. } => (
                ErrorKind::Protocol,
                json!({ "kind": "protocol", "server": &*server, "mayHaveRun": true }),
            ),
            CallError::Withheld { server, .. } => (
                ErrorKind::Withheld,
                json!({ "kind": "withheld", "server": &*server, "mayHaveRun": true }),
            ),
        };
        tracing::debug!(item = name, message, "request of a client failed");
        Self { kind, code: code::INTERNAL_ERROR, message, data: to_raw_value(&data).ok() }
    }
}

impl From<ParamsError> for RpcError {
    fn from(error: ParamsError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use innkeeper_host::ExitStatus;
    use innkeeper_host::error::ProtocolError;

    use super::*;

    fn unavailable(reason: UnavailableReason) -> CallError {
        CallError::Unavailable { server: "a".into(), reason, may_have_run: true, attempts: 1 }
    }

    fn message(error: CallError) -> String {
        RpcError::from_call_error(error, "a.b").message
    }

    #[test]
    fn a_client_learns_why_a_response_violates_the_protocol() {
        let source = ProtocolError::MissingResponse;
        let cause = source.to_string();
        let error = CallError::Protocol { server: "a".into(), item: "a.b".into(), source };
        assert!(message(error).ends_with(&format!(": {cause}")));
    }

    #[test]
    fn the_last_words_of_a_process_that_clients_share_reach_none_of_them() {
        let status = ExitStatus::Code(1);
        let exited = UnavailableReason::Exited { status, stderr_line: "no such row: 4711".into() };
        let after = UnavailableReason::Starting { after: Some(Box::new(exited.clone())) };
        for reason in [exited, after] {
            let message = message(unavailable(reason));
            assert!(message.ends_with("process ended with exit code 1"), "{message}");
        }
        let body = "come back at noon".into();
        let busy = UnavailableReason::Busy { status: 503, retry_after: None, body };
        assert!(message(unavailable(busy)).ends_with("come back at noon"));
    }
}
