//! Validation of Responses requests: calls, results and reasoning.

use std::collections::HashSet;

use serde_json::Value;

use super::super::api_spec::{BadRequest, array_items, strings_at};
use super::super::issued_calls::IssuedCalls;
use super::encrypted_content;

pub(super) fn validate(body: &Value, issued_calls: &IssuedCalls) -> Result<(), BadRequest> {
    let input = array_items(&body["input"]);
    let goes_on = body["previous_response_id"].is_string();
    let items_of_type =
        |kind: &'static str| input.iter().enumerate().filter(move |(_, item)| item["type"] == kind);
    for (_, item) in items_of_type("reasoning") {
        check_reasoning_unchanged(item, body["store"] == false)?;
    }
    let mut results = HashSet::new();
    for (at, item) in items_of_type("function_call_output") {
        let id = item["call_id"].as_str().unwrap_or_default();
        let is_called = items_of_type("function_call")
            .any(|(index, other)| index < at && other["call_id"] == id);
        if !(is_called || goes_on && issued_calls.find(id).is_some()) {
            let text = format!("No tool call found for function call output with call_id {id}.");
            return Err(BadRequest::new(text).with_param("input"));
        }
        if !results.insert(id) {
            let text = format!("Duplicate function call output for call_id {id}.");
            return Err(BadRequest::new(text).with_param("input"));
        }
    }
    for (at, item) in items_of_type("function_call") {
        let id = item["call_id"].as_str().unwrap_or_default();
        if !results.contains(id) {
            let text = format!("No tool output found for function call {id}.");
            return Err(BadRequest::new(text).with_param("input"));
        }
        let reasoning = issued_calls.find(id).and_then(|call| call.reasoning);
        if let Some(reasoning) = reasoning.filter(|_| !goes_on) {
            check_reasoning_precedes_call(&input[..at], item, &reasoning)?;
        }
    }
    for (at, item) in items_of_type("reasoning") {
        check_reasoning_is_followed(item, input.get(at + 1))?;
    }
    Ok(())
}

/// Checks that the reasoning of a call precedes the call, with only items of the same response in
/// between.
fn check_reasoning_precedes_call(
    before: &[Value],
    call: &Value,
    reasoning: &str,
) -> Result<(), BadRequest> {
    let preceding = before
        .iter()
        .rev()
        .find(|item| item["type"] != "function_call" && item["role"] != "assistant");
    let summary: String =
        preceding.map(|item| strings_at(&item["summary"], "text").collect()).unwrap_or_default();
    if preceding.is_some_and(|item| item["type"] == "reasoning") && summary == reasoning {
        return Ok(());
    }
    let id = call["id"].as_str().or_else(|| call["call_id"].as_str()).unwrap_or_default();
    let text = format!(
        "Item '{id}' of type 'function_call' was provided without its required 'reasoning' item."
    );
    Err(BadRequest::new(text).with_param("input"))
}

/// Checks that reasoning comes back unchanged.
fn check_reasoning_unchanged(item: &Value, stateless: bool) -> Result<(), BadRequest> {
    let id = item["id"].as_str().unwrap_or_default();
    let text: String = strings_at(&item["summary"], "text").collect();
    match item["encrypted_content"].as_str() {
        Some(content) if content == encrypted_content(id, &text) => Ok(()),
        Some(content) => {
            let head: String = content.chars().take(4).collect();
            let tail_start = content.chars().count().saturating_sub(4);
            let tail: String = content.chars().skip(tail_start).collect();
            let text = format!(
                "The encrypted content {head}...{tail} could not be verified. Reason: Encrypted \
                 content could not be decrypted or parsed."
            );
            Err(BadRequest { code: Some("invalid_encrypted_content"), ..BadRequest::new(text) })
        }
        None if stateless => {
            let text = format!(
                "Item with id '{id}' not found. Items are not persisted when `store` is set to \
                 false. Try again with `store` set to true, or remove this item from your input."
            );
            Err(BadRequest::new(text).with_param("input"))
        }
        None => Ok(()),
    }
}

/// Checks that reasoning is followed by its output.
fn check_reasoning_is_followed(item: &Value, next: Option<&Value>) -> Result<(), BadRequest> {
    let is_of_answer = next.is_some_and(|next| {
        let kind = next["type"].as_str().unwrap_or_default();
        matches!(kind, "function_call" | "reasoning") || next["role"] == "assistant"
    });
    if is_of_answer {
        return Ok(());
    }
    let id = item["id"].as_str().unwrap_or_default();
    let text = format!(
        "Item '{id}' of type 'reasoning' was provided without its required following item."
    );
    Err(BadRequest::new(text).with_param("input"))
}
