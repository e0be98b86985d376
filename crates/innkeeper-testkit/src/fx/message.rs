//! JSON-RPC as the fixture server sees it: requests in, answers out.

use serde_json::{Value, json};

/// Members of `_meta` that the 2026-07-28 revision defines.
pub(super) mod meta {
    pub(in crate::fx) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    pub(in crate::fx) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    pub(in crate::fx) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    pub(in crate::fx) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
}

/// Error codes this server answers with.
pub(super) mod code {
    pub(in crate::fx) const INVALID_REQUEST: i64 = -32600;
    pub(in crate::fx) const METHOD_NOT_FOUND: i64 = -32601;
    pub(in crate::fx) const INVALID_PARAMS: i64 = -32602;
    pub(in crate::fx) const INTERNAL_ERROR: i64 = -32603;
    pub(in crate::fx) const RESOURCE_NOT_FOUND: i64 = -32002;
    pub(in crate::fx) const MISSING_CAPABILITY: i64 = -32021;
    pub(in crate::fx) const UNSUPPORTED_VERSION: i64 = -32022;
}

/// A request as received.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Value,
}

impl Request {
    /// A member of the request's `_meta`.
    pub(super) fn meta(&self, key: &str) -> Option<&Value> {
        self.params.get("_meta")?.get(key)
    }

    /// Whether the request is of the era that has no handshake.
    pub(super) fn is_modern(&self) -> bool {
        self.meta(meta::VERSION).is_some()
    }

    /// A string member of the parameters, empty when absent.
    pub(super) fn param(&self, key: &str) -> &str {
        self.params.get(key).and_then(Value::as_str).unwrap_or_default()
    }
}

/// How a request is answered.
#[derive(Debug)]
pub(super) enum Answer {
    /// A result object.
    Result(Value),
    /// Result text that a JSON tree could not hold without loss.
    Text(String),
    /// A JSON-RPC error.
    Error { code: i64, message: String, data: Option<Value> },
    /// Not now: later by a timer, or never.
    Later,
}

impl Answer {
    pub(super) fn error(code: i64, message: impl Into<String>) -> Self {
        Self::Error { code, message: message.into(), data: None }
    }

    /// The response line's text, `None` when there is nothing to send now.
    pub(super) fn response(&self, id: &Value) -> Option<String> {
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
            Self::Later => None,
        }
    }
}

/// A notification's text.
pub(super) fn notification(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}

/// A request's text.
pub(super) fn request(id: &Value, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}
