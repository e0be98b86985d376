//! What generateContent refuses: turns that do not fit, calls without their signature.

use serde_json::Value;

use super::super::memory::Memory;
use super::super::wire::{Refusal, items};
use super::is_signed;

/// Stands for the signature of a call that another model made.
const UNSIGNED: &str = "skip_thought_signature_validator";

pub(super) fn check(body: &Value, _: &Memory) -> Result<(), Refusal> {
    let contents = items(&body["contents"]);
    for (at, content) in contents.iter().enumerate() {
        let calls = count(content, "functionCall");
        let results = contents.get(at + 1).map_or(0, |next| count(next, "functionResponse"));
        if calls != 0 && calls != results {
            return Err(Refusal::new(
                "Please ensure that the number of function response parts is equal to the number \
                 of function call parts of the function call turn.",
            ));
        }
        let before = at.checked_sub(1).map_or(0, |at| count(&contents[at], "functionCall"));
        if count(content, "functionResponse") != 0 && before == 0 {
            return Err(Refusal::new(
                "Please ensure that function response turn comes immediately after a function \
                 call turn.",
            ));
        }
    }
    let model = |content: &Value| content["role"] == "model";
    for part in contents.iter().filter(|content| model(content)).flat_map(|it| items(&it["parts"]))
    {
        let said = part["thoughtSignature"].as_str();
        if said.is_some_and(|said| said != UNSIGNED && !is_signed(part, said)) {
            return Err(Refusal::new("Corrupted thought signature."));
        }
    }
    // The turn that goes on: before it, nothing needs to be signed.
    let turn = contents
        .iter()
        .rposition(|content| !model(content) && count(content, "functionResponse") == 0);
    let begin = turn.map_or(0, |turn| turn + 1);
    for (at, content) in contents.iter().enumerate().skip(begin).filter(|(_, it)| model(it)) {
        let parts = items(&content["parts"]);
        let first = parts.iter().find(|part| part["functionCall"].is_object());
        let Some(call) = first.filter(|part| !part["thoughtSignature"].is_string()) else {
            continue;
        };
        let name = call["functionCall"]["name"].as_str().unwrap_or_default();
        return Err(Refusal::new(format!(
            "Function call is missing a thought_signature in functionCall parts. This is required \
             for tools to work correctly, and missing thought_signature may lead to degraded model \
             performance. Additional data, function call `{name}`, position {}.",
            at + 1
        )));
    }
    Ok(())
}

fn count(content: &Value, key: &str) -> usize {
    items(&content["parts"]).iter().filter(|part| part[key].is_object()).count()
}
