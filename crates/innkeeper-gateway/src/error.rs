//! The JSON-RPC errors that clients receive.

use innkeeper_host::CallError;
use innkeeper_host::display_safe;
use innkeeper_protocol::envelope::code;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::rate_limits::RateExceeded;

/// The code of a request that the gateway rejects by its own rules, outside of the codes of the
/// specification.
const REJECTED: i64 = -32_000;

/// The error of one request of a client.
#[derive(Clone, Debug)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Box<RawValue>>,
}

impl RpcError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The parameters of the request are not usable.
    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }

    /// The gateway has no such method for this client.
    pub(crate) fn method_not_found(method: &str) -> Self {
        Self::new(code::METHOD_NOT_FOUND, format!("unknown method `{}`", display_safe(method)))
    }

    /// No offered item has this name. A denied item has the same error.
    pub(crate) fn unknown_item(kind: &str, name: &str) -> Self {
        Self::invalid_params(format!("unknown {kind} `{}`", display_safe(name)))
    }

    /// The client calls a tool too often. The tool did not run.
    pub(crate) fn from_rate(exceeded: RateExceeded) -> Self {
        let seconds = exceeded.retry_after().as_secs_f64();
        let data = json!({ "kind": "rate", "retryAfterSeconds": seconds, "mayHaveRun": false });
        let message = exceeded.to_string();
        Self { code: REJECTED, message, data: to_raw_value(&data).ok() }
    }

    /// The request needs capabilities that the client does not declare.
    pub(crate) fn missing_capabilities(missing: &[&str]) -> Self {
        let required: serde_json::Map<_, _> =
            missing.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
        let message = format!("the client does not declare: {}", missing.join(", "));
        let data = to_raw_value(&json!({ "requiredCapabilities": required })).ok();
        Self { code: code::MISSING_REQUIRED_CLIENT_CAPABILITY, message, data }
    }

    /// The gateway stopped the server during the call.
    pub(crate) fn stopped_for_memory(server: &str) -> Self {
        let message = format!(
            "server `{server}` was stopped during the call: the server processes exceeded \
             `serve.limits.memory`"
        );
        let data = json!({ "kind": "unavailable", "server": server, "mayHaveRun": true });
        Self { code: code::INTERNAL_ERROR, message, data: to_raw_value(&data).ok() }
    }

    /// Converts the error of a call to the item that the client knows as `name`.
    pub(crate) fn from_call_error(error: CallError, name: &str) -> Self {
        let message = error.to_string();
        let (code, data) = match error {
            // The error object of the server, as the server sent it.
            CallError::Server { error, .. } => {
                return Self { code: error.code, message: error.message, data: error.data };
            }
            CallError::Routing(_) | CallError::Validation { .. } => {
                let problem = message.replacen("invalid arguments for", "invalid parameters of", 1);
                return Self::invalid_params(problem);
            }
            CallError::Unavailable { server, may_have_run, .. } => (
                code::INTERNAL_ERROR,
                json!({ "kind": "unavailable", "server": &*server, "mayHaveRun": may_have_run }),
            ),
            CallError::Timeout { server, .. } => (
                code::INTERNAL_ERROR,
                json!({ "kind": "timeout", "server": &*server, "mayHaveRun": true }),
            ),
            CallError::Protocol { server, .. } => (
                code::INTERNAL_ERROR,
                json!({ "kind": "protocol", "server": &*server, "mayHaveRun": true }),
            ),
            CallError::Withheld { server, .. } => (
                code::INTERNAL_ERROR,
                json!({ "kind": "withheld", "server": &*server, "mayHaveRun": true }),
            ),
        };
        tracing::debug!(item = name, message, "request of a client failed");
        Self { code, message, data: to_raw_value(&data).ok() }
    }
}
