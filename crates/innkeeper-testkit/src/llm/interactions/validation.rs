//! Validation of Interactions requests: calls, results and reasoning.

use serde_json::Value;

use super::super::api_spec::{BadRequest, array_items, strings_at};
use super::super::issued_calls::IssuedCalls;
use super::super::response::reasoning_signature;

pub(super) fn validate(body: &Value, issued_calls: &IssuedCalls) -> Result<(), BadRequest> {
    let steps = array_items(&body["input"]);
    let goes_on = body["previous_interaction_id"].is_string();
    let has_step = |steps: &[Value], kind: &str, key: &str, id: &str| {
        steps.iter().any(|step| step["type"] == kind && step[key] == id)
    };
    let mut preceding_thought = None;
    for (at, step) in steps.iter().enumerate() {
        match step["type"].as_str().unwrap_or_default() {
            "thought" => preceding_thought = Some(check_signature(step)?),
            "function_call" => {
                let id = step["id"].as_str().unwrap_or_default();
                if !has_step(&steps[at..], "function_result", "call_id", id) {
                    let text = format!("Function call `{id}` has no function result.");
                    return Err(BadRequest::new(text));
                }
                let needed = issued_calls.find(id).and_then(|call| call.reasoning);
                if needed.is_some() && needed != preceding_thought {
                    let text = format!("Function call `{id}` is missing the thought before it.");
                    return Err(BadRequest::new(text));
                }
            }
            "function_result" => {
                let id = step["call_id"].as_str().unwrap_or_default();
                let is_called = has_step(&steps[..at], "function_call", "id", id);
                if !(is_called || goes_on && issued_calls.find(id).is_some()) {
                    let text = format!("Function result for unknown call `{id}`.");
                    return Err(BadRequest::new(text));
                }
            }
            "user_input" => preceding_thought = None,
            _ => {}
        }
    }
    Ok(())
}

/// Returns the text of a thought with a valid signature.
fn check_signature(step: &Value) -> Result<String, BadRequest> {
    let text: String = strings_at(&step["summary"], "text").collect();
    match step["signature"] == reasoning_signature(&text) {
        true => Ok(text),
        false => Err(BadRequest::new("Corrupted thought signature.")),
    }
}
