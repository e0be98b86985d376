//! A request in the words of Chat Completions.

mod message;

use serde::Serialize;
use serde_json::{Value, json};

use crate::conversation;
use crate::provider::codec::{Asking, Fault, Outgoing};
use crate::provider::offer::Offered;
use crate::provider::openai::is_strict;
use crate::provider::{Choice, Constraint, Server};
use message::Message;

#[derive(Serialize)]
struct Body<'r> {
    model: &'r str,
    messages: Vec<Message<'r>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop: &'r [String],
    #[serde(flatten)]
    held: Held<'r>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Tool<'r> {
    r#type: &'static str,
    function: Function<'r>,
}

#[derive(Serialize)]
struct Function<'r> {
    name: &'r str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'r str,
    parameters: &'r Value,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    strict: bool,
}

/// What holds the answer to a form, one of them at most.
#[derive(Default, Serialize)]
struct Held<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grammar: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ebnf: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_outputs: Option<Value>,
}

pub(in crate::provider) fn encode(asking: Asking<'_>) -> Result<Outgoing, Fault> {
    let Asking { request, offer, model, can, streaming } = asking;
    let with_tools = can.native_tools && !offer.is_empty();
    let most = request.max_tokens.or(can.default_max_tokens);
    let body = Body {
        model,
        messages: messages(asking),
        tools: if with_tools { offer.list().iter().map(tool).collect() } else { Vec::new() },
        tool_choice: match &request.choice {
            Choice::None if with_tools => Some("none"),
            Choice::Required if with_tools && can.forced_choice => Some("required"),
            Choice::Auto | Choice::None | Choice::Required => None,
        },
        reasoning_effort: (with_tools && can.sends.effort_none).then_some("none"),
        temperature: request.temperature.filter(|it| can.temperature && it.is_finite()),
        max_tokens: most.filter(|_| !can.sends.max_completion_tokens),
        max_completion_tokens: most.filter(|_| can.sends.max_completion_tokens),
        stop: if can.stop_sequences { &request.stop_sequences } else { &[] },
        held: held(asking),
        stream: streaming,
        stream_options: streaming.then_some(StreamOptions { include_usage: true }),
    };
    let body = serde_json::to_vec(&body);
    let body =
        body.map_err(|error| Fault::new(crate::provider::Class::Request, error.to_string()))?;
    Ok(Outgoing { path: "/chat/completions".to_owned(), headers: Vec::new(), body })
}

fn messages(asking: Asking<'_>) -> Vec<Message<'_>> {
    let mut messages = Vec::with_capacity(asking.request.messages.len() + 1);
    if !asking.request.system.is_empty() {
        messages.push(Message::system(&asking.request.system));
    }
    let mut after_results = false;
    for said in &asking.request.messages {
        match said {
            conversation::Message::User(text) => {
                if after_results && !asking.can.sends.max_completion_tokens {
                    messages.push(Message::stopped());
                }
                messages.push(Message::user(text));
            }
            conversation::Message::Answer(answer) => {
                messages.push(Message::assistant(answer, asking));
            }
            conversation::Message::Results(results) => {
                messages.extend(results.iter().map(Message::tool));
            }
        }
        after_results = matches!(said, conversation::Message::Results(_));
    }
    messages
}

fn tool(offered: &Offered) -> Tool<'_> {
    Tool {
        r#type: "function",
        function: Function {
            name: &offered.alias,
            description: &offered.description,
            parameters: offered.schema(),
            strict: offered.fitted.strict,
        },
    }
}

fn held(asking: Asking<'_>) -> Held<'_> {
    let can = asking.can;
    let mut held = Held::default();
    match &asking.request.constraint {
        Some(Constraint::JsonSchema(schema)) if can.constraints.json_schema => {
            let strict = is_strict(schema);
            let named = json!({"name": "answer", "schema": schema, "strict": strict});
            held.response_format = Some(json!({"type": "json_schema", "json_schema": named}));
        }
        Some(Constraint::Gbnf(text)) if can.constraints.gbnf => match can.server {
            Server::Vllm => held.structured_outputs = Some(json!({"grammar": text})),
            Server::Sglang => held.ebnf = Some(text),
            Server::Provider | Server::LlamaCpp | Server::LmStudio | Server::OpenRouter => {
                held.grammar = Some(text);
            }
        },
        Some(Constraint::StructuralTag(tag)) if can.constraints.structural_tag => {
            match can.server {
                Server::Vllm => {
                    // As text: vLLM hands it on to the engine of grammars unread.
                    held.structured_outputs = Some(json!({"structural_tag": tag.to_string()}));
                }
                Server::Provider
                | Server::LlamaCpp
                | Server::Sglang
                | Server::LmStudio
                | Server::OpenRouter => held.response_format = Some(tag.clone()),
            }
        }
        Some(Constraint::JsonSchema(_) | Constraint::Gbnf(_) | Constraint::StructuralTag(_))
        | None => {}
    }
    held
}
