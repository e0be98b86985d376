//! Results that ask for input and tasks: reading them ends, within the limits, with parts of what
//! was read; a result made of these parts reads the same.

use innkeeper_protocol::view::{
    INPUT_REQUEST_LIMIT, INPUT_STATE_LIMIT, InputRequest, InputRequired, Task,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Reads the input as a result.
pub fn input_required(input: &[u8]) {
    let Ok(raw) = serde_json::from_slice::<&RawValue>(input) else { return };
    if let Ok(asked) = InputRequired::read(raw) {
        let state = asked.state.as_deref().map(RawValue::get);
        assert!(state.is_none_or(|state| state.len() <= INPUT_STATE_LIMIT));
        assert!(state.is_none_or(|state| raw.get().contains(state)), "the state is another");
        check(raw, &asked.requests);
        again(&asked);
    }
    if let Ok(task) = Task::read(raw) {
        check(raw, &task.requests);
        for part in [&task.result, &task.error].into_iter().flatten() {
            assert!(raw.get().contains(part.get()), "the outcome is another");
        }
    }
}

fn check(raw: &RawValue, requests: &[InputRequest]) {
    assert!(requests.len() <= INPUT_REQUEST_LIMIT);
    for (place, request) in requests.iter().enumerate() {
        assert!(!requests[..place].iter().any(|other| other.key == request.key));
        let params = request.params.as_deref().map(RawValue::get);
        assert!(params.is_none_or(|params| raw.get().contains(params)), "other parameters");
    }
}

/// Writes what was read and reads it once more. What no tree holds is left out.
fn again(asked: &InputRequired) {
    let tree = |raw: &Option<Box<RawValue>>| match raw {
        Some(raw) => serde_json::from_str::<Value>(raw.get()).ok(),
        None => Some(Value::Null),
    };
    let mut requests = Map::new();
    for request in &asked.requests {
        let Some(params) = tree(&request.params) else { return };
        requests.insert(request.key.clone(), json!({"method": request.method, "params": params}));
    }
    let Some(state) = tree(&asked.state) else { return };
    let text = json!({"inputRequests": requests, "requestState": state}).to_string();
    let raw = RawValue::from_string(text).expect("a tree is JSON");
    let Ok(read) = InputRequired::read(&raw) else {
        // A number may be longer as a tree writes it, and so cross the limit.
        return assert!(state.to_string().len() > INPUT_STATE_LIMIT, "not read again: {raw}");
    };
    assert_eq!(read.requests.len(), asked.requests.len());
    for (read, asked) in read.requests.iter().zip(&asked.requests) {
        assert_eq!((&read.key, &read.method), (&asked.key, &asked.method));
        assert_eq!(tree(&read.params), tree(&asked.params));
    }
    assert_eq!(tree(&read.state), tree(&asked.state));
}
