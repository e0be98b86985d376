//! JSON-RPC messages of the fixture server.

use serde_json::{Value, json};

/// The `_meta` keys of protocol version 2026-07-28.
pub(super) mod meta_key {
    pub(in crate::fixture_server) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    pub(in crate::fixture_server) const CAPABILITIES: &str =
        "io.modelcontextprotocol/clientCapabilities";
    pub(in crate::fixture_server) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    pub(in crate::fixture_server) const SUBSCRIPTION: &str =
        "io.modelcontextprotocol/subscriptionId";
}

/// The error codes of this server.
pub(super) mod error_code {
    pub(in crate::fixture_server) const INVALID_REQUEST: i64 = -32600;
    pub(in crate::fixture_server) const METHOD_NOT_FOUND: i64 = -32601;
    pub(in crate::fixture_server) const INVALID_PARAMS: i64 = -32602;
    pub(in crate::fixture_server) const INTERNAL_ERROR: i64 = -32603;
    pub(in crate::fixture_server) const RESOURCE_NOT_FOUND: i64 = -32002;
    pub(in crate::fixture_server) const MISSING_CAPABILITY: i64 = -32021;
    pub(in crate::fixture_server) const UNSUPPORTED_VERSION: i64 = -32022;
}

#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Value,
}

impl Request {
    /// Returns a member of the request's `_meta`.
    pub(super) fn meta(&self, key: &str) -> Option<&Value> {
        self.params.get("_meta")?.get(key)
    }

    /// Whether the request belongs to the protocol era without a handshake.
    pub(super) fn is_modern(&self) -> bool {
        self.meta(meta_key::VERSION).is_some()
    }

    /// Returns a string parameter; empty if absent.
    pub(super) fn param(&self, key: &str) -> &str {
        self.params.get(key).and_then(Value::as_str).unwrap_or_default()
    }
}

#[derive(Debug)]
pub(super) enum Response {
    /// A result object.
    Result(Value),
    /// Result text that a JSON tree cannot represent without loss.
    Text(String),
    /// A JSON-RPC error.
    Error { code: i64, message: String, data: Option<Value> },
    /// No response now: a timer sends the response later, or never.
    Deferred,
}

impl Response {
    pub(super) fn error(code: i64, message: impl Into<String>) -> Self {
        Self::Error { code, message: message.into(), data: None }
    }

    /// Returns the text of the response line; `None` if there is nothing to send now.
    pub(super) fn to_message(&self, id: &Value) -> Option<String> {
        match self {
            Self::Result(result) => {
                Some(json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string())
            }
            Self::Text(result) => {
                Some(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}"))
            }
            Self::Error { code, message, data } => {
                let mut error = json!({"code": code, "message": message});
                if let Some(data) = data {
                    error["data"] = data.clone();
                }
                Some(json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string())
            }
            Self::Deferred => None,
        }
    }
}

pub(super) fn notification(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}

pub(super) fn request(id: &Value, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}
