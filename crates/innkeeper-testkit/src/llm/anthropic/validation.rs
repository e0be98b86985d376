//! Validation of Messages requests: calls, results and signatures.

use serde_json::Value;

use super::super::api_spec::{BadRequest, array_items};
use super::super::issued_calls::IssuedCalls;
use super::super::response::reasoning_signature;

pub(super) fn validate(body: &Value, issued_calls: &IssuedCalls) -> Result<(), BadRequest> {
    if !body["max_tokens"].is_u64() {
        return Err(BadRequest::new("max_tokens: Field required"));
    }
    let messages = array_items(&body["messages"]);
    // The messages before are at the server (message threads).
    let continues_thread = body["thread"]["type"] == "continue";
    for (at, message) in messages.iter().enumerate() {
        let blocks = array_items(&message["content"]);
        if blocks.iter().any(|block| block["type"] == "text" && block["text"] == "") {
            return Err(BadRequest::new("messages: text content blocks must be non-empty"));
        }
        if message["role"] == "assistant" {
            check_calls_have_results(at, blocks, messages.get(at + 1))?;
            check_signatures(at, blocks)?;
        } else if at > 0 || !continues_thread {
            let before =
                at.checked_sub(1).map_or(&[][..], |at| array_items(&messages[at]["content"]));
            check_results_have_calls(at, blocks, before)?;
        }
    }
    if body["thinking"]["type"] == "disabled" {
        return Ok(());
    }
    let last_user =
        messages.iter().rposition(|message| message["role"] == "user" && !is_tool_result(message));
    let run_start = last_user.map_or(0, |index| index + 1);
    let messages_of_run = messages.iter().enumerate().skip(run_start);
    for (at, message) in messages_of_run.filter(|(_, message)| message["role"] == "assistant") {
        check_reasoning_precedes_calls(at, array_items(&message["content"]), issued_calls)?;
    }
    Ok(())
}

fn is_tool_result(message: &Value) -> bool {
    array_items(&message["content"]).iter().any(|block| block["type"] == "tool_result")
}

fn ids<'a>(
    blocks: &'a [Value],
    kind: &'static str,
    key: &'static str,
) -> impl Iterator<Item = &'a str> {
    let of_kind = blocks.iter().filter(move |block| block["type"] == kind);
    of_kind.filter_map(move |block| block[key].as_str())
}

/// Checks that the message after tool calls starts with their results.
fn check_calls_have_results(
    at: usize,
    blocks: &[Value],
    next: Option<&Value>,
) -> Result<(), BadRequest> {
    let next = next.filter(|next| next["role"] == "user");
    let next = next.map_or(&[][..], |next| array_items(&next["content"]));
    let end = next.iter().position(|block| block["type"] != "tool_result").unwrap_or(next.len());
    let results: Vec<&str> = ids(&next[..end], "tool_result", "tool_use_id").collect();
    let open: Vec<&str> =
        ids(blocks, "tool_use", "id").filter(|id| !results.contains(id)).collect();
    if open.is_empty() {
        return Ok(());
    }
    Err(BadRequest::new(format!(
        "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: \
         {}. Each `tool_use` block must have a corresponding `tool_result` block in the next \
         message.",
        open.join(", ")
    )))
}

/// Checks that each result belongs to a call in the previous message and is the only result.
fn check_results_have_calls(
    at: usize,
    blocks: &[Value],
    before: &[Value],
) -> Result<(), BadRequest> {
    let calls: Vec<&str> = ids(before, "tool_use", "id").collect();
    let results: Vec<&str> = ids(blocks, "tool_result", "tool_use_id").collect();
    for (index, id) in results.iter().enumerate() {
        if !calls.contains(id) {
            return Err(BadRequest::new(format!(
                "messages.{at}.content.{index}: unexpected `tool_use_id` found in `tool_result` \
                 blocks: {id}. Each `tool_result` block must have a corresponding `tool_use` \
                 block in the previous message."
            )));
        }
        if results[..index].contains(id) {
            return Err(BadRequest::new(format!(
                "messages.{at}.content.{index}: each tool_use must have a single result. Found \
                 multiple `tool_result` blocks with id: {id}"
            )));
        }
    }
    Ok(())
}

fn check_signatures(at: usize, blocks: &[Value]) -> Result<(), BadRequest> {
    let thinking = blocks.iter().enumerate().filter(|(_, block)| block["type"] == "thinking");
    for (index, block) in thinking {
        let text = block["thinking"].as_str().unwrap_or_default();
        if block["signature"] != reasoning_signature(text) {
            return Err(BadRequest::new(format!(
                "messages.{at}.content.{index}: Invalid `signature` in `thinking` block"
            )));
        }
    }
    Ok(())
}

/// Checks that each call of the current run follows its reasoning.
fn check_reasoning_precedes_calls(
    at: usize,
    blocks: &[Value],
    issued_calls: &IssuedCalls,
) -> Result<(), BadRequest> {
    let mut last = None;
    for (index, block) in blocks.iter().enumerate() {
        if block["type"] == "thinking" {
            last = block["thinking"].as_str();
        }
        let call = block["id"].as_str().filter(|_| block["type"] == "tool_use");
        let needed = call.and_then(|id| issued_calls.find(id)).and_then(|call| call.reasoning);
        if needed.is_some_and(|needed| last != Some(needed.as_str())) {
            return Err(BadRequest::new(format!(
                "messages.{at}.content.{index}.type: Expected `thinking` or `redacted_thinking`, \
                 but found `tool_use`. When `thinking` is enabled, a final `assistant` message \
                 must start with a thinking block (preceding the lastmost set of `tool_use` and \
                 `tool_result` blocks)."
            )));
        }
    }
    Ok(())
}
