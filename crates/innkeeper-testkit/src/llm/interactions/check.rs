//! What Interactions refuses: a call without its result or its thought, a result without its call.

use serde_json::Value;

use super::super::answer::thought_signature;
use super::super::memory::Memory;
use super::super::wire::{Refusal, each, items};

pub(super) fn check(body: &Value, memory: &Memory) -> Result<(), Refusal> {
    let steps = items(&body["input"]);
    let goes_on = body["previous_interaction_id"].is_string();
    let has = |steps: &[Value], kind: &str, key: &str, id: &str| {
        steps.iter().any(|step| step["type"] == kind && step[key] == id)
    };
    let mut thought = None;
    for (at, step) in steps.iter().enumerate() {
        match step["type"].as_str().unwrap_or_default() {
            "thought" => thought = Some(signed(step)?),
            "function_call" => {
                let id = step["id"].as_str().unwrap_or_default();
                if !has(&steps[at..], "function_result", "call_id", id) {
                    let text = format!("Function call `{id}` has no function result.");
                    return Err(Refusal::new(text));
                }
                let needed = memory.call(id).and_then(|call| call.thought);
                if needed.is_some() && needed != thought {
                    let text = format!("Function call `{id}` is missing the thought before it.");
                    return Err(Refusal::new(text));
                }
            }
            "function_result" => {
                let id = step["call_id"].as_str().unwrap_or_default();
                let is_called = has(&steps[..at], "function_call", "id", id);
                if !(is_called || goes_on && memory.call(id).is_some()) {
                    let text = format!("Function result for unknown call `{id}`.");
                    return Err(Refusal::new(text));
                }
            }
            "user_input" => thought = None,
            _ => {}
        }
    }
    Ok(())
}

/// The text of a thought that is the one that was signed.
fn signed(step: &Value) -> Result<String, Refusal> {
    let text: String = each(&step["summary"], "text").collect();
    match step["signature"] == thought_signature(&text) {
        true => Ok(text),
        false => Err(Refusal::new("Corrupted thought signature.")),
    }
}
