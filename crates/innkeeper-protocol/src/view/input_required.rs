//! Results that require input before the request can complete (2026-07-28, Multi Round-Trip
//! Requests).

use serde_json::value::RawValue;

use super::object::{boxed_raw, child_pointer};
use super::{ObjectView, ViewError};
use crate::skim;

/// Maximum number of input requests in one result: a user answers one question at a time.
pub const MAX_INPUT_REQUESTS: usize = 64;

/// Maximum length of a request state in bytes of raw JSON. Every retry sends the state back, and
/// the state holds what the server stores for one request.
pub const MAX_REQUEST_STATE_BYTES: usize = 64 * 1024;

/// A result with `resultType` `input_required`. The client responds to the input requests and sends
/// the original request again, with a new id, the input responses and the state.
#[derive(Clone, Debug)]
pub struct InputRequiredResult {
    /// The input requests in the server's order. If empty, the server only requests a retry.
    pub input_requests: Vec<InputRequest>,
    /// The state that the retry must return byte for byte. The client does not interpret the state.
    pub request_state: Option<Box<RawValue>>,
}

/// One request for input.
#[derive(Clone, Debug)]
pub struct InputRequest {
    /// The key of the input response.
    pub key: String,
    /// The method name, which may be unknown.
    pub method: String,
    /// The parameters as raw JSON.
    pub params: Option<Box<RawValue>>,
}

impl InputRequiredResult {
    /// Reads a result that requires input.
    ///
    /// # Errors
    ///
    /// Returns an error if the result has neither input requests nor a state, if a request is not
    /// an object with a string `method`, if two requests have the same key, or if the result
    /// exceeds [`MAX_INPUT_REQUESTS`] or [`MAX_REQUEST_STATE_BYTES`].
    pub fn from_raw(raw: &RawValue) -> Result<Self, ViewError> {
        let result = ObjectView::from_raw(raw, ["inputRequests", "requestState"])?;
        let state = result.get("requestState");
        if state.is_some_and(|state| state.len() > MAX_REQUEST_STATE_BYTES) {
            let pointer = result.pointer_to("requestState");
            return Err(ViewError { pointer, expected: "at most 64 KiB", found: "more" });
        }
        let requests = InputRequest::parse_all(&result)?;
        if requests.is_none() && state.is_none() {
            let pointer = result.pointer_to("inputRequests");
            return Err(ViewError::new(pointer, "`inputRequests` or `requestState`", None));
        }
        Ok(Self {
            input_requests: requests.unwrap_or_default(),
            request_state: state.and_then(boxed_raw),
        })
    }
}

impl InputRequest {
    /// Reads the member `inputRequests`. Returns `None` if the member is missing.
    pub(super) fn parse_all<const N: usize>(
        holder: &ObjectView<'_, N>,
    ) -> Result<Option<Vec<Self>>, ViewError> {
        let Some(map) = holder.get("inputRequests") else { return Ok(None) };
        let pointer = holder.pointer_to("inputRequests");
        if !map.starts_with('{') {
            return Err(ViewError::new(pointer, "an object", Some(map)));
        }
        let mut requests: Vec<Self> = Vec::new();
        for (raw_key, raw) in skim::members(map) {
            if requests.len() == MAX_INPUT_REQUESTS {
                return Err(ViewError { pointer, expected: "at most 64 requests", found: "more" });
            }
            // A key that is not valid Unicode cannot be sent back unchanged.
            let Ok(key) = serde_json::from_str::<String>(&format!("\"{raw_key}\"")) else {
                return Err(ViewError {
                    pointer,
                    expected: "keys of valid Unicode",
                    found: "a lone surrogate",
                });
            };
            let at = child_pointer(&pointer, &key);
            if requests.iter().any(|other| other.key == key) {
                return Err(ViewError { pointer: at, expected: "one request", found: "two" });
            }
            let request = ObjectView::from_raw_at(at, Some(raw), ["method", "params"])?;
            let method = request.required_string("method")?;
            requests.push(Self { key, method, params: request.raw("params") });
        }
        Ok(Some(requests))
    }
}
