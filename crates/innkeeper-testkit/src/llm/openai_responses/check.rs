//! What Responses refuses: a call without its result or its thought, a result without its call.

use std::collections::HashSet;

use serde_json::Value;

use super::super::memory::Memory;
use super::super::wire::{Refusal, each, items};
use super::encrypted;

pub(super) fn check(body: &Value, memory: &Memory) -> Result<(), Refusal> {
    let input = items(&body["input"]);
    let goes_on = body["previous_response_id"].is_string();
    let of =
        |kind: &'static str| input.iter().enumerate().filter(move |(_, item)| item["type"] == kind);
    for (_, item) in of("reasoning") {
        unchanged(item, body["store"] == false)?;
    }
    let mut results = HashSet::new();
    for (at, item) in of("function_call_output") {
        let id = item["call_id"].as_str().unwrap_or_default();
        let called = of("function_call").any(|(place, it)| place < at && it["call_id"] == id);
        if !(called || goes_on && memory.call(id).is_some()) {
            let text = format!("No tool call found for function call output with call_id {id}.");
            return Err(Refusal::new(text).at("input"));
        }
        if !results.insert(id) {
            let text = format!("Duplicate function call output for call_id {id}.");
            return Err(Refusal::new(text).at("input"));
        }
    }
    for (at, item) in of("function_call") {
        let id = item["call_id"].as_str().unwrap_or_default();
        if !results.contains(id) {
            let text = format!("No tool output found for function call {id}.");
            return Err(Refusal::new(text).at("input"));
        }
        let thought = memory.call(id).and_then(|call| call.thought);
        if let Some(thought) = thought.filter(|_| !goes_on) {
            stands_before(&input[..at], item, &thought)?;
        }
    }
    for (at, item) in of("reasoning") {
        leads_on(item, input.get(at + 1))?;
    }
    Ok(())
}

/// The thought of a call stands before it, with nothing between them that is not of their answer.
fn stands_before(before: &[Value], call: &Value, thought: &str) -> Result<(), Refusal> {
    let of_answer = |item: &&Value| item["type"] == "function_call" || item["role"] == "assistant";
    let found = before.iter().rev().find(|item| !of_answer(item));
    let said: String =
        found.map(|item| each(&item["summary"], "text").collect()).unwrap_or_default();
    if found.is_some_and(|item| item["type"] == "reasoning") && said == thought {
        return Ok(());
    }
    let id = call["id"].as_str().or_else(|| call["call_id"].as_str()).unwrap_or_default();
    let text = format!(
        "Item '{id}' of type 'function_call' was provided without its required 'reasoning' item."
    );
    Err(Refusal::new(text).at("input"))
}

/// A thought comes back as it was.
fn unchanged(item: &Value, stateless: bool) -> Result<(), Refusal> {
    let id = item["id"].as_str().unwrap_or_default();
    let text: String = each(&item["summary"], "text").collect();
    match item["encrypted_content"].as_str() {
        Some(content) if content == encrypted(id, &text) => Ok(()),
        Some(content) => {
            let begin: String = content.chars().take(4).collect();
            let end = content.chars().count().saturating_sub(4);
            let end: String = content.chars().skip(end).collect();
            let text = format!(
                "The encrypted content {begin}...{end} could not be verified. Reason: Encrypted \
                 content could not be decrypted or parsed."
            );
            Err(Refusal { code: Some("invalid_encrypted_content"), ..Refusal::new(text) })
        }
        None if stateless => {
            let text = format!(
                "Item with id '{id}' not found. Items are not persisted when `store` is set to \
                 false. Try again with `store` set to true, or remove this item from your input."
            );
            Err(Refusal::new(text).at("input"))
        }
        None => Ok(()),
    }
}

/// What a thought led to comes with it.
fn leads_on(item: &Value, next: Option<&Value>) -> Result<(), Refusal> {
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
    Err(Refusal::new(text).at("input"))
}
