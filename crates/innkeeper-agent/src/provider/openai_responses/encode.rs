//! A request in the words of Responses.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::conversation::{Answer, Message, Part, Said};
use crate::provider::codec::{Asking, Fault, Outgoing, object};
use crate::provider::offer::Offered;
use crate::provider::openai::is_strict;

use super::item::is_encrypted;
use crate::provider::{Choice, Class, Constraint, Wire};

#[derive(Serialize)]
struct Body<'r> {
    model: &'r str,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'r str,
    input: Vec<Item<'r>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    include: Vec<&'static str>,
    store: bool,
    stream: bool,
}

#[derive(Serialize)]
struct Tool<'r> {
    r#type: &'static str,
    name: &'r str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'r str,
    parameters: &'r Value,
    /// Always there: without it the provider tries to be strict.
    strict: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Item<'r> {
    Raw(&'r RawValue),
    Made(Value),
}

pub(in crate::provider) fn encode(asking: Asking<'_>) -> Result<Outgoing, Fault> {
    let Asking { request, offer, model, can, streaming } = asking;
    let with_tools = can.native_tools && !offer.is_empty();
    let body = Body {
        model,
        instructions: &request.system,
        input: input(asking),
        tools: if with_tools { offer.list().iter().map(tool).collect() } else { Vec::new() },
        tool_choice: match &request.choice {
            Choice::None if with_tools => Some("none"),
            Choice::Required if with_tools && can.forced_choice => Some("required"),
            Choice::Auto | Choice::None | Choice::Required => None,
        },
        temperature: request.temperature.filter(|it| can.temperature && it.is_finite()),
        max_output_tokens: request.max_tokens.or(can.default_max_tokens),
        text: form(asking),
        include: if can.sends.encrypted_reasoning {
            vec!["reasoning.encrypted_content"]
        } else {
            Vec::new()
        },
        store: false,
        stream: streaming,
    };
    let body = serde_json::to_vec(&body);
    let body = body.map_err(|error| Fault::new(Class::Request, error.to_string()))?;
    Ok(Outgoing { path: "/responses".to_owned(), headers: Vec::new(), body })
}

fn tool(offered: &Offered) -> Tool<'_> {
    Tool {
        r#type: "function",
        name: &offered.alias,
        description: &offered.description,
        parameters: offered.schema(),
        strict: offered.fitted.strict,
    }
}

fn form(asking: Asking<'_>) -> Option<Value> {
    match &asking.request.constraint {
        Some(Constraint::JsonSchema(schema)) if asking.can.constraints.json_schema => {
            let strict = is_strict(schema);
            let format = json!({
                "type": "json_schema",
                "name": "answer",
                "schema": schema,
                "strict": strict,
            });
            Some(json!({"format": format}))
        }
        Some(Constraint::JsonSchema(_) | Constraint::Gbnf(_) | Constraint::StructuralTag(_))
        | None => None,
    }
}

fn input(asking: Asking<'_>) -> Vec<Item<'_>> {
    let mut items = Vec::new();
    for message in &asking.request.messages {
        match message {
            Message::User(text) => items.push(said("user", text)),
            Message::Answer(answer) => answered(answer, asking, &mut items),
            Message::Results(results) => items.extend(results.iter().map(|result| {
                Item::Made(json!({
                    "type": "function_call_output",
                    "call_id": result.id,
                    "output": result.text,
                }))
            })),
        }
    }
    items
}

/// An item goes back as it came, its id with it. But where thoughts come encrypted, one without its
/// content stands for something that the provider was told not to store, and what was said after it
/// is bound to it by the ids.
fn answered<'r>(answer: &'r Answer, asking: Asking<'r>, items: &mut Vec<Item<'r>>) {
    let native =
        |part: &'r Part| part.native.as_ref()?.for_model(Wire::OpenAiResponses, asking.model);
    let is_lost = |part: &Part| matches!(part.said, Said::Reasoning(_)) && !is_encrypted(part);
    let lost = asking.can.sends.encrypted_reasoning && answer.parts.iter().any(is_lost);
    // A thought that nothing followed is refused.
    let last = answer.parts.iter().rposition(|part| !matches!(part.said, Said::Reasoning(_)));
    for part in answer.parts.iter().take(last.map_or(0, |last| last + 1)) {
        match (&part.said, native(part).filter(|_| !lost)) {
            (_, Some(block)) => items.push(Item::Raw(block)),
            (Said::Text(text), None) if text.is_empty() => {}
            (Said::Text(text), None) => items.push(said("assistant", text)),
            (Said::Call(call), None) => items.push(Item::Made(json!({
                "type": "function_call",
                "call_id": call.id,
                "name": asking.offer.alias(&call.name),
                "arguments": object(&call.arguments).get(),
            }))),
            (Said::Reasoning(_) | Said::Other, None) => {}
        }
    }
}

fn said<'r>(role: &str, text: &str) -> Item<'r> {
    Item::Made(json!({"type": "message", "role": role, "content": text}))
}
