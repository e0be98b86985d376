//! A result that asks for input before the request can be completed (2026-07-28, Multi Round-Trip
//! Requests).

use serde_json::value::RawValue;

use super::object::{boxed, pointer_below};
use super::{Object, ViewError};
use crate::skim;

/// The most requests for input in one result: a user is asked one thing at a time.
pub const INPUT_REQUEST_LIMIT: usize = 64;

/// The longest state that is carried for a server, in bytes of raw JSON: it comes back with every
/// retry, and is what a server wants to remember of one request.
pub const INPUT_STATE_LIMIT: usize = 64 * 1024;

/// The result with `resultType` `input_required`. A client answers the requests and sends the same
/// request again, under a new id, with the answers and the state.
#[derive(Clone, Debug)]
pub struct InputRequired {
    /// What the server wants to know, in its order. None means that it only wants to be asked again.
    pub requests: Vec<InputRequest>,
    /// What has to come back with the retry byte by byte; nothing in it is the client's business.
    pub state: Option<Box<RawValue>>,
}

/// One request for input.
#[derive(Clone, Debug)]
pub struct InputRequest {
    /// What its answer is filed under.
    pub key: String,
    /// The method's name, known or not.
    pub method: String,
    /// The parameters as they were sent.
    pub params: Option<Box<RawValue>>,
}

impl InputRequired {
    /// Reads a result that says it asks for input.
    ///
    /// # Errors
    ///
    /// If there are neither requests nor a state, if a request is not an object with a string
    /// `method`, if two requests have one key, or beyond [`INPUT_REQUEST_LIMIT`] and
    /// [`INPUT_STATE_LIMIT`].
    pub fn read(raw: &RawValue) -> Result<Self, ViewError> {
        let result = Object::read(raw, ["inputRequests", "requestState"])?;
        let state = result.get("requestState");
        if state.is_some_and(|state| state.len() > INPUT_STATE_LIMIT) {
            let pointer = result.pointer_to("requestState");
            return Err(ViewError { pointer, expected: "at most 64 KiB", found: "more" });
        }
        let requests = InputRequest::read_all(&result)?;
        if requests.is_none() && state.is_none() {
            let pointer = result.pointer_to("inputRequests");
            return Err(ViewError::new(pointer, "an object, or a state", None));
        }
        Ok(Self { requests: requests.unwrap_or_default(), state: state.and_then(boxed) })
    }
}

impl InputRequest {
    /// Reads the member `inputRequests`; `None` if there is none.
    pub(super) fn read_all<const N: usize>(
        holder: &Object<'_, N>,
    ) -> Result<Option<Vec<Self>>, ViewError> {
        let Some(map) = holder.get("inputRequests") else { return Ok(None) };
        let pointer = holder.pointer_to("inputRequests");
        if !map.starts_with('{') {
            return Err(ViewError::new(pointer, "an object", Some(map)));
        }
        let mut requests: Vec<Self> = Vec::new();
        for (raw_key, raw) in skim::members(map) {
            if requests.len() == INPUT_REQUEST_LIMIT {
                return Err(ViewError { pointer, expected: "at most 64 requests", found: "more" });
            }
            // A key that is not Unicode could not be sent back as it came.
            let Ok(key) = serde_json::from_str::<String>(&format!("\"{raw_key}\"")) else {
                return Err(ViewError {
                    pointer,
                    expected: "keys of text",
                    found: "half a character",
                });
            };
            let at = pointer_below(&pointer, &key);
            if requests.iter().any(|other| other.key == key) {
                return Err(ViewError { pointer: at, expected: "one request", found: "two" });
            }
            let request = Object::at(at, Some(raw), ["method", "params"])?;
            let method = request.required_string("method")?;
            requests.push(Self { key, method, params: request.raw("params") });
        }
        Ok(Some(requests))
    }
}
