//! Encodes a request for the Chat Completions API.

mod message;
mod short_id;

use serde::Serialize;
use serde_json::{Value, json};

use crate::conversation;
use crate::provider::codec::{ApiError, EncodeRequest, HttpRequest};
use crate::provider::openai::{ToolParams, is_strict};
use crate::provider::tool_encoding::EncodedTool;
use crate::provider::{InferenceServer, OutputConstraint};
use message::ChatMessage;

#[derive(Serialize)]
struct RequestBody<'r> {
    model: &'r str,
    messages: Vec<ChatMessage<'r>>,
    #[serde(flatten)]
    tools: ToolParams<Tool<'r>>,
    #[serde(flatten)]
    generation: GenerationParams<'r>,
    #[serde(flatten)]
    constraint: ConstraintParams<'r>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

/// How the model generates its response.
#[derive(Serialize)]
struct GenerationParams<'r> {
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
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Tool<'r> {
    r#type: &'static str,
    function: FunctionDefinition<'r>,
}

#[derive(Serialize)]
struct FunctionDefinition<'r> {
    name: &'r str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'r str,
    parameters: &'r Value,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    strict: bool,
}

/// The parameters of an output constraint; at most one is set.
#[derive(Default, Serialize)]
struct ConstraintParams<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grammar: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ebnf: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_outputs: Option<Value>,
}

pub(in crate::provider) fn encode(
    encode_request: EncodeRequest<'_>,
) -> Result<HttpRequest, ApiError> {
    let EncodeRequest { request, model, capabilities, streaming, .. } = encode_request;
    let quirks = capabilities.quirks;
    let max_tokens = request.max_tokens.or(capabilities.tokens.default_output);
    let tools = ToolParams::new(encode_request, tool);
    let generation = GenerationParams {
        reasoning_effort: (!tools.is_empty() && quirks.reasoning_effort_none).then_some("none"),
        temperature: encode_request.temperature(),
        max_tokens: max_tokens.filter(|_| !quirks.max_completion_tokens),
        max_completion_tokens: max_tokens.filter(|_| quirks.max_completion_tokens),
        stop: if capabilities.stop_sequences { &request.stop_sequences } else { &[] },
    };
    let body = RequestBody {
        model,
        messages: messages(encode_request),
        tools,
        generation,
        constraint: constraint_params(encode_request),
        stream: streaming,
        stream_options: streaming.then_some(StreamOptions { include_usage: true }),
    };
    HttpRequest::new("/chat/completions", &body)
}

fn messages(encode_request: EncodeRequest<'_>) -> Vec<ChatMessage<'_>> {
    let mut messages = Vec::with_capacity(encode_request.request.messages.len() + 1);
    if !encode_request.request.system.is_empty() {
        messages.push(ChatMessage::system(&encode_request.request.system));
    }
    let mut after_results = false;
    for message in &encode_request.request.messages {
        match message {
            conversation::Message::User(content) => {
                if after_results && !encode_request.capabilities.quirks.max_completion_tokens {
                    messages.push(ChatMessage::separator());
                }
                messages.push(ChatMessage::user(content));
            }
            conversation::Message::Assistant(assistant_message) => {
                messages.push(ChatMessage::assistant(assistant_message, encode_request));
            }
            conversation::Message::ToolResults(results) => {
                messages
                    .extend(results.iter().map(|result| ChatMessage::tool(result, encode_request)));
            }
        }
        after_results = matches!(message, conversation::Message::ToolResults(_));
    }
    messages
}

fn tool(encoded_tool: &EncodedTool) -> Tool<'_> {
    Tool {
        r#type: "function",
        function: FunctionDefinition {
            name: &encoded_tool.alias,
            description: &encoded_tool.description,
            parameters: encoded_tool.schema(),
            strict: encoded_tool.lowered_schema.strict,
        },
    }
}

fn constraint_params(encode_request: EncodeRequest<'_>) -> ConstraintParams<'_> {
    let capabilities = encode_request.capabilities;
    let mut params = ConstraintParams::default();
    match &encode_request.request.output_constraint {
        Some(OutputConstraint::JsonSchema(schema)) if capabilities.constraints.json_schema => {
            let strict = is_strict(schema);
            let named_schema = json!({"name": "answer", "schema": schema, "strict": strict});
            params.response_format =
                Some(json!({"type": "json_schema", "json_schema": named_schema}));
        }
        Some(OutputConstraint::Gbnf(text)) if capabilities.constraints.gbnf => {
            match capabilities.server {
                InferenceServer::Vllm => params.structured_outputs = Some(json!({"grammar": text})),
                InferenceServer::Sglang => params.ebnf = Some(text),
                InferenceServer::Provider
                | InferenceServer::LlamaCpp
                | InferenceServer::LmStudio
                | InferenceServer::OpenRouter => {
                    params.grammar = Some(text);
                }
            }
        }
        Some(OutputConstraint::StructuralTag(tag)) if capabilities.constraints.structural_tag => {
            match capabilities.server {
                InferenceServer::Vllm => {
                    // As a string, because vLLM passes the value to the grammar engine unparsed.
                    params.structured_outputs = Some(json!({"structural_tag": tag.to_string()}));
                }
                InferenceServer::Provider
                | InferenceServer::LlamaCpp
                | InferenceServer::Sglang
                | InferenceServer::LmStudio
                | InferenceServer::OpenRouter => params.response_format = Some(tag.clone()),
            }
        }
        Some(
            OutputConstraint::JsonSchema(_)
            | OutputConstraint::Gbnf(_)
            | OutputConstraint::StructuralTag(_),
        )
        | None => {}
    }
    params
}
