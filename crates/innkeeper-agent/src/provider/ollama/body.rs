//! A request in Ollama's words.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::conversation::{Answer, Message, Native, Part, Said, ToolCall};
use crate::provider::codec::{Asking, Fault, Fields, Outgoing, object};
use crate::provider::{Choice, Class, Constraint, Wire};

/// The context window that is asked for where nobody says how long it is. Without a word Ollama takes
/// a shorter one on most machines and silently drops what does not fit, tools first; this much takes
/// some two gigabytes for a model of eight billion weights.
pub(in crate::provider) const CONTEXT: u32 = 16_384;

#[derive(Serialize)]
struct Body<'r> {
    model: &'r str,
    messages: Vec<Line<'r>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'r Value>,
    options: Options<'r>,
    /// Left out it would mean yes.
    stream: bool,
}

#[derive(Serialize)]
struct Options<'r> {
    num_ctx: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_predict: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stop: Vec<&'r str>,
}

/// One message.
#[derive(Serialize)]
struct Line<'r> {
    role: &'static str,
    content: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    thinking: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'r str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Call<'r> {
    /// As it came from the model.
    Native(&'r RawValue),
    Ours {
        id: &'r str,
        function: Function,
    },
}

#[derive(Serialize)]
struct Function {
    name: String,
    arguments: Box<RawValue>,
}

#[derive(Serialize)]
struct Tool<'r> {
    r#type: &'static str,
    function: Offered<'r>,
}

#[derive(Serialize)]
struct Offered<'r> {
    name: &'r str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'r str,
    parameters: &'r Value,
}

impl Line<'_> {
    fn new(role: &'static str, content: String) -> Self {
        Self {
            role,
            content,
            thinking: String::new(),
            tool_calls: Vec::new(),
            tool_name: None,
            tool_call_id: None,
        }
    }
}

pub(super) fn encode(asking: Asking<'_>) -> Result<Outgoing, Fault> {
    let Asking { request, model, can, streaming, .. } = asking;
    let tools = tools(asking);
    let stop = request.stop_sequences.iter().map(String::as_str);
    let body = Body {
        model,
        messages: messages(asking),
        // With both, the model calls nothing.
        format: format(asking).filter(|_| tools.is_empty()),
        tools,
        options: Options {
            num_ctx: request.context_tokens.or(can.context_tokens).unwrap_or(CONTEXT),
            temperature: request.temperature.filter(|it| can.temperature && it.is_finite()),
            num_predict: request.max_tokens.or(can.default_max_tokens),
            stop: stop.filter(|it| can.stop_sequences && !it.is_empty()).collect(),
        },
        stream: streaming,
    };
    let body = serde_json::to_vec(&body)
        .map_err(|error| Fault::new(Class::Request, format!("no JSON can be made: {error}")))?;
    Ok(Outgoing { path: "/api/chat".to_owned(), headers: Vec::new(), body })
}

/// There is no way to say that none may be called but to offer none, and none to say that one has
/// to be.
fn tools(asking: Asking<'_>) -> Vec<Tool<'_>> {
    let offers = match asking.request.choice {
        Choice::None => false,
        Choice::Auto | Choice::Required => asking.can.native_tools,
    };
    let offered = asking.offer.list().iter().filter(|_| offers).map(|tool| Tool {
        r#type: "function",
        function: Offered {
            name: &tool.alias,
            description: &tool.description,
            parameters: tool.schema(),
        },
    });
    offered.collect()
}

fn format(asking: Asking<'_>) -> Option<&Value> {
    match asking.request.constraint.as_ref()? {
        Constraint::JsonSchema(schema) => asking.can.constraints.json_schema.then_some(schema),
        Constraint::Gbnf(_) | Constraint::StructuralTag(_) => None,
    }
}

fn messages(asking: Asking<'_>) -> Vec<Line<'_>> {
    let mut messages = Vec::new();
    if !asking.request.system.is_empty() {
        messages.push(Line::new("system", asking.request.system.clone()));
    }
    let mut names = HashMap::new();
    for message in &asking.request.messages {
        match message {
            Message::User(text) => messages.push(Line::new("user", text.to_string())),
            Message::Answer(answer) => {
                names = named(asking, answer);
                messages.extend(assistant(asking, answer));
            }
            Message::Results(results) => {
                messages.extend(results.iter().map(|result| Line {
                    tool_name: Some(match names.get(result.id.as_str()) {
                        Some(name) => name.clone(),
                        None => asking.offer.alias(&result.name),
                    }),
                    tool_call_id: Some(&result.id),
                    ..Line::new("tool", result.text.clone())
                }));
            }
        }
    }
    messages
}

/// What the calls of an answer are called that go back as they came, by their ids: names change when
/// other tools are offered, and a result has to name its call.
fn named<'r>(asking: Asking<'r>, answer: &'r Answer) -> HashMap<&'r str, String> {
    let own = answer.parts.iter().filter_map(|part| {
        let Said::Call(call) = &part.said else { return None };
        let function = Fields::of(native(asking, part)?)?.object("function")?;
        Some((call.id.as_str(), function.text("name")?))
    });
    own.collect()
}

/// `None` for an answer of nothing.
fn assistant<'r>(asking: Asking<'r>, answer: &'r Answer) -> Option<Line<'r>> {
    let mut message = Line::new("assistant", answer.shown());
    for part in &answer.parts {
        let native = native(asking, part);
        match (&part.said, native) {
            (Said::Call(_), Some(raw)) => message.tool_calls.push(Call::Native(raw)),
            (Said::Call(call), None) => message.tool_calls.push(ours(asking, call)),
            // What another model thought is not this one's thought.
            (Said::Reasoning(text), Some(_)) => message.thinking.push_str(text),
            (Said::Reasoning(_), None) | (Said::Text(_) | Said::Other, _) => {}
        }
    }
    let empty = message.content.is_empty() && message.tool_calls.is_empty();
    (!empty).then_some(message)
}

fn native<'r>(asking: Asking<'r>, part: &'r Part) -> Option<&'r RawValue> {
    part.native.as_ref().and_then(|it: &Native| it.for_model(Wire::Ollama, asking.model))
}

fn ours<'r>(asking: Asking<'r>, call: &'r ToolCall) -> Call<'r> {
    let (name, arguments) = (asking.offer.alias(&call.name), object(&call.arguments));
    Call::Ours { id: &call.id, function: Function { name, arguments } }
}
