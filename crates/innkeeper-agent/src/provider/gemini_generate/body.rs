//! What is asked, as generateContent takes it.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::conversation::{Answer, Message, Said, ToolResult};
use crate::provider::codec::{Asking, Fields, object};
use crate::provider::gemini::NO_SIGNATURE;
use crate::provider::{Choice, Constraint, Wire};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Body<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Content<'r>>,
    contents: Vec<Content<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Declarations<'r>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig>,
    generation_config: Generation<'r>,
}

#[derive(Serialize)]
struct Content<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    parts: Vec<Part<'r>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Part<'r> {
    /// As the model sent it.
    Native(&'r RawValue),
    Text {
        text: &'r str,
    },
    #[serde(rename_all = "camelCase")]
    Call {
        function_call: Call,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'static str>,
    },
    #[serde(rename_all = "camelCase")]
    Result {
        function_response: Outcome<'r>,
    },
}

#[derive(Serialize)]
struct Call {
    name: String,
    args: Box<RawValue>,
}

#[derive(Serialize)]
struct Outcome<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    name: String,
    response: Told<'r>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Told<'r> {
    Result(&'r str),
    Error(&'r str),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declarations<'r> {
    function_declarations: Vec<Declaration<'r>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'r> {
    name: &'r str,
    description: &'r str,
    parameters_json_schema: &'r Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig {
    function_calling_config: Calling,
}

#[derive(Serialize)]
struct Calling {
    mode: &'static str,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Generation<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop_sequences: &'r [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<&'r Value>,
}

pub(super) fn of(asking: Asking<'_>) -> Body<'_> {
    let Asking { request, offer, can, .. } = asking;
    let system = &request.system;
    let system_instruction = (!system.is_empty())
        .then(|| Content { role: None, parts: vec![Part::Text { text: system }] });
    let called = can.native_tools && !offer.is_empty();
    let declared = offer.list().iter().map(|tool| Declaration {
        name: &tool.alias,
        description: &tool.description,
        parameters_json_schema: tool.schema(),
    });
    let mode = match request.choice {
        Choice::None => "NONE",
        Choice::Required if can.forced_choice => "ANY",
        Choice::Auto | Choice::Required if can.sends.validated_mode => "VALIDATED",
        Choice::Auto | Choice::Required => "AUTO",
    };
    Body {
        system_instruction,
        contents: contents(asking),
        tools: called.then(|| [Declarations { function_declarations: declared.collect() }]),
        tool_config: called.then_some(ToolConfig { function_calling_config: Calling { mode } }),
        generation_config: generation(asking),
    }
}

fn generation(asking: Asking<'_>) -> Generation<'_> {
    let Asking { request, can, .. } = asking;
    let schema = match &request.constraint {
        Some(Constraint::JsonSchema(schema)) if can.constraints.json_schema => Some(schema),
        Some(Constraint::JsonSchema(_) | Constraint::Gbnf(_) | Constraint::StructuralTag(_))
        | None => None,
    };
    Generation {
        temperature: request.temperature.filter(|_| can.temperature),
        max_output_tokens: request.max_tokens.or(can.default_max_tokens),
        stop_sequences: if can.stop_sequences { &request.stop_sequences } else { &[] },
        response_mime_type: schema.map(|_| "application/json"),
        response_json_schema: schema,
    }
}

/// A call of the answer before, as its result has to name it.
struct Named<'r> {
    /// Its id in the conversation.
    ours: &'r str,
    name: String,
    /// The id that the model itself gave it.
    id: Option<String>,
}

/// Two answers in a row, as of a model that was asked to go on, are one: a call is taken only behind
/// what is the user's.
fn contents(asking: Asking<'_>) -> Vec<Content<'_>> {
    let mut contents: Vec<Content<'_>> = Vec::with_capacity(asking.request.messages.len());
    let mut calls = Vec::new();
    for message in &asking.request.messages {
        let (role, parts) = match message {
            Message::User(text) => ("user", vec![Part::Text { text }]),
            Message::Answer(answer) => ("model", said(asking, answer, &mut calls)),
            Message::Results(results) => {
                let parts = results.iter().map(|result| outcome(asking, result, &calls));
                ("user", parts.collect())
            }
        };
        match contents.last_mut() {
            Some(last) if role == "model" && last.role == Some(role) => last.parts.extend(parts),
            Some(_) | None if parts.is_empty() => {}
            Some(_) | None => contents.push(Content { role: Some(role), parts }),
        }
    }
    contents
}

/// The parts of an answer; `calls` gets what its results have to name.
fn said<'r>(asking: Asking<'r>, answer: &'r Answer, calls: &mut Vec<Named<'r>>) -> Vec<Part<'r>> {
    calls.clear();
    let mut parts = Vec::with_capacity(answer.parts.len());
    for part in &answer.parts {
        let native = part.native.as_ref();
        let native = native.and_then(|it| it.for_model(Wire::GeminiGenerate, asking.model));
        if let Said::Call(call) = &part.said {
            let own =
                native.and_then(Fields::of).map(|it| it.object("functionCall").unwrap_or_default());
            let name = own.as_ref().and_then(|own| own.text("name"));
            let name = name.unwrap_or_else(|| asking.offer.alias(&call.name));
            let id = own.and_then(|own| own.text("id"));
            let first = calls.is_empty();
            calls.push(Named { ours: &call.id, name: name.clone(), id });
            parts.push(match native {
                Some(native) => Part::Native(native),
                None => Part::Call {
                    function_call: Call { name, args: object(&call.arguments) },
                    // Only the first call of a step is signed.
                    thought_signature: (first && asking.can.sends.signatures)
                        .then_some(NO_SIGNATURE),
                },
            });
        } else if let Some(native) = native {
            parts.push(Part::Native(native));
        } else if let Said::Text(text) = &part.said
            && !text.is_empty()
        {
            parts.push(Part::Text { text });
        }
    }
    parts
}

fn outcome<'r>(asking: Asking<'r>, result: &'r ToolResult, calls: &[Named<'r>]) -> Part<'r> {
    let call = calls.iter().find(|call| call.ours == result.id);
    let name = call.map_or_else(|| asking.offer.alias(&result.name), |call| call.name.clone());
    let id = call.and_then(|call| call.id.clone());
    let text = result.text.as_str();
    let response = if result.is_error { Told::Error(text) } else { Told::Result(text) };
    Part::Result { function_response: Outcome { id, name, response } }
}
