//! Validation of generateContent requests: turns and signatures.

use serde_json::Value;

use super::super::api_spec::{BadRequest, array_items};
use super::super::issued_calls::IssuedCalls;
use super::is_signed;

/// The placeholder signature for a call from another model.
const UNSIGNED_PLACEHOLDER: &str = "skip_thought_signature_validator";

pub(super) fn validate(body: &Value, _: &IssuedCalls) -> Result<(), BadRequest> {
    let contents = array_items(&body["contents"]);
    for (at, content) in contents.iter().enumerate() {
        let calls = count_parts_with(content, "functionCall");
        let results =
            contents.get(at + 1).map_or(0, |next| count_parts_with(next, "functionResponse"));
        if calls != 0 && calls != results {
            return Err(BadRequest::new(
                "Please ensure that the number of function response parts is equal to the number \
                 of function call parts of the function call turn.",
            ));
        }
        let before =
            at.checked_sub(1).map_or(0, |at| count_parts_with(&contents[at], "functionCall"));
        if count_parts_with(content, "functionResponse") != 0 && before == 0 {
            return Err(BadRequest::new(
                "Please ensure that function response turn comes immediately after a function \
                 call turn.",
            ));
        }
    }
    let model = |content: &Value| content["role"] == "model";
    for part in contents
        .iter()
        .filter(|content| model(content))
        .flat_map(|message| array_items(&message["parts"]))
    {
        let said = part["thoughtSignature"].as_str();
        if said.is_some_and(|said| said != UNSIGNED_PLACEHOLDER && !is_signed(part, said)) {
            return Err(BadRequest::new("Corrupted thought signature."));
        }
    }
    // The current run; calls before it need no signature.
    let last_user = contents
        .iter()
        .rposition(|content| !model(content) && count_parts_with(content, "functionResponse") == 0);
    let run_start = last_user.map_or(0, |index| index + 1);
    for (at, content) in
        contents.iter().enumerate().skip(run_start).filter(|(_, message)| model(message))
    {
        let parts = array_items(&content["parts"]);
        let first = parts.iter().find(|part| part["functionCall"].is_object());
        let Some(call) = first.filter(|part| !part["thoughtSignature"].is_string()) else {
            continue;
        };
        let name = call["functionCall"]["name"].as_str().unwrap_or_default();
        return Err(BadRequest::new(format!(
            "Function call is missing a thought_signature in functionCall parts. This is required \
             for tools to work correctly, and missing thought_signature may lead to degraded model \
             performance. Additional data, function call `{name}`, position {}.",
            at + 1
        )));
    }
    Ok(())
}

fn count_parts_with(content: &Value, key: &str) -> usize {
    array_items(&content["parts"]).iter().filter(|part| part[key].is_object()).count()
}
