//! Fuzz target: reads results of type `input_required` and tasks. A result built from the parsed
//! parts parses the same.

use innkeeper_protocol::view::{
    InputRequest, InputRequiredResult, MAX_INPUT_REQUESTS, MAX_REQUEST_STATE_BYTES, Task,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Reads the input as a result.
pub fn input_required(input: &[u8]) {
    let Ok(raw) = serde_json::from_slice::<&RawValue>(input) else { return };
    if let Ok(result) = InputRequiredResult::from_raw(raw) {
        let state = result.request_state.as_deref().map(RawValue::get);
        assert!(state.is_none_or(|state| state.len() <= MAX_REQUEST_STATE_BYTES));
        assert!(state.is_none_or(|state| raw.get().contains(state)), "different state");
        check_requests(raw, &result.input_requests);
        reparse(&result);
    }
    if let Ok(task) = Task::from_raw(raw) {
        check_requests(raw, &task.input_requests);
        for value in [&task.result, &task.error].into_iter().flatten() {
            assert!(raw.get().contains(value.get()), "different outcome");
        }
    }
}

fn check_requests(raw: &RawValue, requests: &[InputRequest]) {
    assert!(requests.len() <= MAX_INPUT_REQUESTS);
    for (index, request) in requests.iter().enumerate() {
        assert!(!requests[..index].iter().any(|other| other.key == request.key));
        let params = request.params.as_deref().map(RawValue::get);
        assert!(params.is_none_or(|params| raw.get().contains(params)), "different parameters");
    }
}

/// Serializes the parsed result and parses it again. Values that a JSON tree cannot hold are
/// skipped.
fn reparse(result: &InputRequiredResult) {
    let tree = |raw: &Option<Box<RawValue>>| match raw {
        Some(raw) => serde_json::from_str::<Value>(raw.get()).ok(),
        None => Some(Value::Null),
    };
    let mut requests = Map::new();
    for request in &result.input_requests {
        let Some(params) = tree(&request.params) else { return };
        requests.insert(request.key.clone(), json!({"method": request.method, "params": params}));
    }
    let Some(state) = tree(&result.request_state) else { return };
    let text = json!({"inputRequests": requests, "requestState": state}).to_string();
    let raw = RawValue::from_string(text).expect("a tree is valid JSON");
    let Ok(read) = InputRequiredResult::from_raw(&raw) else {
        // A tree may serialize a number with more bytes, which can exceed the limit.
        return assert!(
            state.to_string().len() > MAX_REQUEST_STATE_BYTES,
            "not parsed again: {raw}"
        );
    };
    assert_eq!(read.input_requests.len(), result.input_requests.len());
    for (read, original) in read.input_requests.iter().zip(&result.input_requests) {
        assert_eq!((&read.key, &read.method), (&original.key, &original.method));
        assert_eq!(tree(&read.params), tree(&original.params));
    }
    assert_eq!(tree(&read.request_state), tree(&result.request_state));
}
