//! What Messages refuses: calls and results that do not fit, thoughts that do not come back as they were.

use serde_json::Value;

use super::super::answer::thought_signature;
use super::super::memory::Memory;
use super::super::wire::{Refusal, items};

pub(super) fn check(body: &Value, memory: &Memory) -> Result<(), Refusal> {
    if !body["max_tokens"].is_u64() {
        return Err(Refusal::new("max_tokens: Field required"));
    }
    let messages = items(&body["messages"]);
    for (at, message) in messages.iter().enumerate() {
        let blocks = items(&message["content"]);
        if blocks.iter().any(|block| block["type"] == "text" && block["text"] == "") {
            return Err(Refusal::new("messages: text content blocks must be non-empty"));
        }
        if message["role"] == "assistant" {
            answered(at, blocks, messages.get(at + 1))?;
            signed(at, blocks)?;
        } else {
            let before = at.checked_sub(1).map_or(&[][..], |at| items(&messages[at]["content"]));
            called(at, blocks, before)?;
        }
    }
    if body["thinking"]["type"] == "disabled" {
        return Ok(());
    }
    let turn =
        messages.iter().rposition(|message| message["role"] == "user" && !is_result(message));
    let begin = turn.map_or(0, |turn| turn + 1);
    let answers = messages.iter().enumerate().skip(begin);
    for (at, message) in answers.filter(|(_, message)| message["role"] == "assistant") {
        thought(at, items(&message["content"]), memory)?;
    }
    Ok(())
}

fn is_result(message: &Value) -> bool {
    items(&message["content"]).iter().any(|block| block["type"] == "tool_result")
}

fn ids<'a>(
    blocks: &'a [Value],
    kind: &'static str,
    key: &'static str,
) -> impl Iterator<Item = &'a str> {
    let of_kind = blocks.iter().filter(move |block| block["type"] == kind);
    of_kind.filter_map(move |block| block[key].as_str())
}

/// The message behind calls begins with their results.
fn answered(at: usize, blocks: &[Value], next: Option<&Value>) -> Result<(), Refusal> {
    let next = next.filter(|next| next["role"] == "user");
    let next = next.map_or(&[][..], |next| items(&next["content"]));
    let end = next.iter().position(|block| block["type"] != "tool_result").unwrap_or(next.len());
    let results: Vec<&str> = ids(&next[..end], "tool_result", "tool_use_id").collect();
    let open: Vec<&str> =
        ids(blocks, "tool_use", "id").filter(|id| !results.contains(id)).collect();
    if open.is_empty() {
        return Ok(());
    }
    Err(Refusal::new(format!(
        "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: \
         {}. Each `tool_use` block must have a corresponding `tool_result` block in the next \
         message.",
        open.join(", ")
    )))
}

/// A result is of a call in the message before, and the only one.
fn called(at: usize, blocks: &[Value], before: &[Value]) -> Result<(), Refusal> {
    let calls: Vec<&str> = ids(before, "tool_use", "id").collect();
    let results: Vec<&str> = ids(blocks, "tool_result", "tool_use_id").collect();
    for (place, id) in results.iter().enumerate() {
        if !calls.contains(id) {
            return Err(Refusal::new(format!(
                "messages.{at}.content.{place}: unexpected `tool_use_id` found in `tool_result` \
                 blocks: {id}. Each `tool_result` block must have a corresponding `tool_use` \
                 block in the previous message."
            )));
        }
        if results[..place].contains(id) {
            return Err(Refusal::new(format!(
                "messages.{at}.content.{place}: each tool_use must have a single result. Found \
                 multiple `tool_result` blocks with id: {id}"
            )));
        }
    }
    Ok(())
}

/// Each thought is the one that was signed.
fn signed(at: usize, blocks: &[Value]) -> Result<(), Refusal> {
    let thoughts = blocks.iter().enumerate().filter(|(_, block)| block["type"] == "thinking");
    for (place, block) in thoughts {
        let text = block["thinking"].as_str().unwrap_or_default();
        if block["signature"] != thought_signature(text) {
            return Err(Refusal::new(format!(
                "messages.{at}.content.{place}: Invalid `signature` in `thinking` block"
            )));
        }
    }
    Ok(())
}

/// Before a call of the turn that goes on stands what was thought before it.
fn thought(at: usize, blocks: &[Value], memory: &Memory) -> Result<(), Refusal> {
    let mut last = None;
    for (place, block) in blocks.iter().enumerate() {
        if block["type"] == "thinking" {
            last = block["thinking"].as_str();
        }
        let call = block["id"].as_str().filter(|_| block["type"] == "tool_use");
        let needed = call.and_then(|id| memory.call(id)).and_then(|call| call.thought);
        if needed.is_some_and(|needed| last != Some(needed.as_str())) {
            return Err(Refusal::new(format!(
                "messages.{at}.content.{place}.type: Expected `thinking` or `redacted_thinking`, \
                 but found `tool_use`. When `thinking` is enabled, a final `assistant` message \
                 must start with a thinking block (preceding the lastmost set of `tool_use` and \
                 `tool_result` blocks)."
            )));
        }
    }
    Ok(())
}
