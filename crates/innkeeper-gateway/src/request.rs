//! A request of a client, and its result.

use http::HeaderMap;
use innkeeper_protocol::request_meta::IncomingMeta;
use innkeeper_protocol::{RequestId, RequestParams, skim};
use serde_json::value::RawValue;

use crate::caller::Caller;
use crate::error::RpcError;
use crate::sink::MessageSink;

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
    pub(crate) fn param(&self, key: &str) -> Option<&str> {
        self.raw_param(key).map(RawValue::get)
    }

    /// Returns a parameter that must be a string.
    pub(crate) fn string_param(&self, key: &str) -> Result<String, RpcError> {
        let value = self.param(key).and_then(skim::decode_string);
        value
            .map(std::borrow::Cow::into_owned)
            .ok_or_else(|| RpcError::invalid_params(format!("`params/{key}` must be a string")))
    }

    /// Returns a parameter as raw JSON.
    pub(crate) fn raw_param(&self, key: &str) -> Option<&RawValue> {
        self.params.get(key)
    }
}

/// The result of a request: JSON text.
pub(crate) type Reply = Result<Box<RawValue>, RpcError>;
