//! What is asked, as Interactions take it.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::conversation::{Answer, Message, Said, ToolResult};
use crate::provider::codec::{Asking, Fields, object};
use crate::provider::gemini::{NO_SIGNATURE, model_name};
use crate::provider::{Choice, Constraint, Wire};

#[derive(Serialize)]
pub(super) struct Body<'r> {
    model: &'r str,
    #[serde(skip_serializing_if = "str::is_empty")]
    system_instruction: &'r str,
    input: Vec<Step<'r>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Function<'r>>,
    generation_config: Generation<'r>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Format<'r>>,
    store: bool,
    stream: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Step<'r> {
    /// As the model sent it.
    Native(&'r RawValue),
    Ours(Ours<'r>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Ours<'r> {
    UserInput { content: [Text<'r>; 1] },
    ModelOutput { content: [Text<'r>; 1] },
    Thought { signature: &'static str },
    FunctionCall(Call<'r>),
    FunctionResult(Outcome<'r>),
}

#[derive(Serialize)]
struct Text<'r> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'r str,
}

#[derive(Serialize)]
struct Call<'r> {
    id: &'r str,
    name: String,
    arguments: Box<RawValue>,
}

#[derive(Serialize)]
struct Outcome<'r> {
    call_id: &'r str,
    name: String,
    /// One text: lists are taken for pictures by some models, and refused.
    result: &'r str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
}

#[derive(Serialize)]
struct Function<'r> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'r str,
    description: &'r str,
    parameters: &'r Value,
}

#[derive(Serialize)]
struct Generation<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop_sequences: &'r [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
}

#[derive(Serialize)]
struct Format<'r> {
    #[serde(rename = "type")]
    kind: &'static str,
    mime_type: &'static str,
    schema: &'r Value,
}

pub(super) fn of(asking: Asking<'_>) -> Body<'_> {
    let Asking { request, offer, can, .. } = asking;
    let offered = if can.native_tools { offer.list() } else { &[] };
    let tools = offered.iter().map(|tool| Function {
        kind: "function",
        name: &tool.alias,
        description: &tool.description,
        parameters: tool.schema(),
    });
    let choice = match request.choice {
        Choice::None => "none",
        Choice::Required if can.forced_choice => "any",
        Choice::Auto | Choice::Required if can.sends.validated_mode => "validated",
        Choice::Auto | Choice::Required => "auto",
    };
    let schema = match &request.constraint {
        Some(Constraint::JsonSchema(schema)) if can.constraints.json_schema => Some(schema),
        Some(Constraint::JsonSchema(_) | Constraint::Gbnf(_) | Constraint::StructuralTag(_))
        | None => None,
    };
    Body {
        model: model_name(asking.model),
        system_instruction: &request.system,
        input: steps(asking),
        tools: tools.collect(),
        generation_config: Generation {
            temperature: request.temperature.filter(|_| can.temperature),
            max_output_tokens: request.max_tokens.or(can.default_max_tokens),
            stop_sequences: if can.stop_sequences { &request.stop_sequences } else { &[] },
            tool_choice: (!offered.is_empty()).then_some(choice),
        },
        response_format: schema.map(|schema| Format {
            kind: "text",
            mime_type: "application/json",
            schema,
        }),
        store: false,
        stream: asking.streaming,
    }
}

/// A call of the answer before: its id, and its name over the wire.
type Named<'r> = (&'r str, String);

fn steps(asking: Asking<'_>) -> Vec<Step<'_>> {
    let mut steps = Vec::with_capacity(asking.request.messages.len());
    let mut calls = Vec::new();
    for message in &asking.request.messages {
        match message {
            Message::User(text) => {
                steps.push(Step::Ours(Ours::UserInput { content: [text_of(text)] }));
            }
            Message::Answer(answer) => said(asking, answer, &mut steps, &mut calls),
            Message::Results(results) => {
                steps.extend(results.iter().map(|result| outcome(asking, result, &calls)));
            }
        }
    }
    steps
}

/// The steps of an answer; `calls` gets what its results have to name.
fn said<'r>(
    asking: Asking<'r>,
    answer: &'r Answer,
    steps: &mut Vec<Step<'r>>,
    calls: &mut Vec<Named<'r>>,
) {
    calls.clear();
    for part in &answer.parts {
        let native = part.native.as_ref();
        let native = native.and_then(|it| it.for_model(Wire::GeminiInteractions, asking.model));
        match (&part.said, native) {
            (Said::Call(call), Some(native)) => {
                let own = Fields::of(native).unwrap_or_default();
                let name = own.text("name").unwrap_or_else(|| asking.offer.alias(&call.name));
                calls.push((&call.id, name));
                steps.push(Step::Native(native));
            }
            (Said::Call(call), None) => {
                // Calls are signed by the thought in front of the first of them.
                if calls.is_empty() && asking.can.sends.signatures {
                    steps.push(Step::Ours(Ours::Thought { signature: NO_SIGNATURE }));
                }
                let name = asking.offer.alias(&call.name);
                let (id, arguments) = (call.id.as_str(), object(&call.arguments));
                calls.push((id, name.clone()));
                steps.push(Step::Ours(Ours::FunctionCall(Call { id, name, arguments })));
            }
            (_, Some(native)) => steps.push(Step::Native(native)),
            (Said::Text(text), None) if !text.is_empty() => {
                steps.push(Step::Ours(Ours::ModelOutput { content: [text_of(text)] }));
            }
            (Said::Text(_) | Said::Reasoning(_) | Said::Other, None) => {}
        }
    }
}

fn outcome<'r>(asking: Asking<'r>, result: &'r ToolResult, calls: &[Named<'r>]) -> Step<'r> {
    let call_id = result.id.as_str();
    let name = calls.iter().find(|(id, _)| *id == call_id).map(|(_, name)| name.clone());
    let name = name.unwrap_or_else(|| asking.offer.alias(&result.name));
    let (result, is_error) = (result.text.as_str(), result.is_error);
    Step::Ours(Ours::FunctionResult(Outcome { call_id, name, result, is_error }))
}

fn text_of(text: &str) -> Text<'_> {
    Text { kind: "text", text }
}
