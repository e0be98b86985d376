//! The members of JSON-RPC messages that the server reads and writes.

use serde_json::{Value, json};

/// The era of the server's only protocol revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

impl Era {
    pub(crate) fn revision(self) -> &'static str {
        match self {
            Self::Legacy => "2025-11-25",
            Self::Modern => "2026-07-28",
        }
    }
}

pub(crate) const INVALID_PARAMS: i64 = -32602;
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const RESOURCE_NOT_FOUND: i64 = -32002;
pub(crate) const MISSING_CAPABILITY: i64 = -32021;
pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;

/// The keys of the metadata of a request in the modern era.
pub(crate) const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
pub(crate) const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

#[derive(Clone, Debug)]
pub(crate) struct RpcError(pub(crate) Value);

impl RpcError {
    pub(crate) fn new(code: i64, message: &str) -> Self {
        Self(json!({ "code": code, "message": message }))
    }

    /// Adds the member `data`.
    pub(crate) fn with_data(mut self, data: Value) -> Self {
        self.0["data"] = data;
        self
    }

    pub(crate) fn invalid_params(message: &str) -> Self {
        Self::new(INVALID_PARAMS, message)
    }
}

pub(crate) type Outcome = Result<Value, RpcError>;

#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: Value,
    pub(crate) method: String,
    pub(crate) params: Value,
}

impl Request {
    /// Returns a member of the metadata, or `null`.
    pub(crate) fn meta(&self, key: &str) -> &Value {
        &self.params["_meta"][key]
    }

    /// Returns a parameter that is a string, or an empty string.
    pub(crate) fn text(&self, key: &str) -> &str {
        self.params[key].as_str().unwrap_or_default()
    }

    /// Returns an argument of a tool or prompt that is a string, or an empty string.
    pub(crate) fn argument(&self, key: &str) -> &str {
        self.params["arguments"][key].as_str().unwrap_or_default()
    }
}
