//! Requests to models and their responses in the form that Python programs use: the messages and tools
//! of Chat Completions, and one dict for a response, whichever provider sent it.

use std::sync::Arc;

use innkeeper::content::Content;
use innkeeper::conversation::{
    AssistantMessage, ContentPart, Message, PartContent, ToolCall, ToolResult,
};
use innkeeper::provider::{FinishReason, Request, Response, Usage};
use innkeeper_toolcall::{Aliases, NameRules};
use innkeeper_toolcall::{Tool, Tools};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Returns the messages of a request, the system prompt first. Names of tools are those of `aliases`.
pub(crate) fn to_messages(request: &Request, aliases: &Aliases) -> Value {
    let alias = |name: &str| aliases.alias(name).unwrap_or(name).to_owned();
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        messages.push(json!({ "role": "system", "content": request.system }));
    }
    for message in &request.messages {
        match message {
            Message::User(content) => {
                messages.push(json!({ "role": "user", "content": content.to_text() }));
            }
            Message::Assistant(assistant) => {
                let mut json = json!({ "role": "assistant", "content": assistant.visible_text() });
                let calls: Vec<Value> =
                    assistant.calls().map(|call| call_json(call, &alias(&call.name))).collect();
                if !calls.is_empty() {
                    json["tool_calls"] = calls.into();
                }
                messages.push(json);
            }
            Message::ToolResults(results) => messages.extend(results.iter().map(|result| {
                json!({
                    "role": "tool", "tool_call_id": result.id, "name": alias(&result.name),
                    "content": result.content.to_text(),
                })
            })),
        }
    }
    messages.into()
}

fn call_json(call: &ToolCall, name: &str) -> Value {
    let function = json!({ "name": name, "arguments": call.arguments });
    json!({ "id": call.id, "type": "function", "function": function })
}

/// Returns the tools of a request with the names of the aliases.
pub(crate) fn to_tools(request: &Request, aliases: &Aliases) -> Value {
    let tools = request.tools.iter().map(|tool| {
        let function = json!({
            "name": aliases.alias(&tool.name).unwrap_or(&tool.name),
            "description": tool.description,
            "parameters": tool.input_schema,
        });
        json!({ "type": "function", "function": function })
    });
    tools.collect()
}

/// Returns the names that a provider of Python sees: those that every provider takes.
pub(crate) fn aliases(request: &Request) -> Aliases {
    Aliases::new(request.tools.iter().map(|tool| tool.name.as_str()), NameRules::OPENAI)
}

/// Returns the response of a provider in Python, with public names of tools: the dict of this module, a
/// message of Chat Completions, or the whole response of that API. The error says what is wrong.
pub(crate) fn to_response(completion: &Value, aliases: &Aliases) -> Result<Response, String> {
    let choice = match completion.get("choices") {
        Some(choices) => choices.get(0).ok_or("`choices` is empty")?,
        None => completion,
    };
    let message = choice.get("message").unwrap_or(choice);
    if !message.is_object() {
        return Err(format!("it is {}, not a dict", kind_of(message)));
    }
    let has_answer =
        ["response", "content", "tool_calls"].iter().any(|name| message.get(*name).is_some());
    if !has_answer {
        return Err("it has neither `response`, `content` nor `tool_calls`".to_owned());
    }
    let content = message.get("response").or_else(|| message.get("content"));
    let mut parts = AssistantMessage::from_text(text_of(content)?).parts;
    for call in list_of(message, "tool_calls")? {
        let call: CompletedCall = CompletedCall::deserialize(call)
            .map_err(|error| format!("a tool call is invalid: {error}"))?;
        parts.push(ContentPart::new(PartContent::ToolCall(call.into_call(aliases)?)));
    }
    let has_calls = parts.iter().any(|part| matches!(part.content, PartContent::ToolCall(_)));
    let reason = choice.get("finish_reason").and_then(Value::as_str);
    let usage = completion.get("usage").filter(|usage| usage.is_object()).map(|usage| {
        let tokens = |name| usage.get(name).and_then(Value::as_u64).unwrap_or_default();
        Usage {
            prompt_tokens: tokens("prompt_tokens"),
            completion_tokens: tokens("completion_tokens"),
            ..Usage::default()
        }
    });
    Ok(Response {
        message: AssistantMessage { parts },
        finish_reason: finish_reason_from(reason, has_calls),
        usage,
        ..Response::default()
    })
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "`None`",
        Value::Bool(_) => "a bool",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a dict",
    }
}

/// Returns the items of a member that is a list, `None` or not there.
fn list_of<'v>(message: &'v Value, name: &str) -> Result<&'v [Value], String> {
    match message.get(name) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(other) => Err(format!("`{name}` is {}, not a list", kind_of(other))),
    }
}

#[derive(Deserialize)]
pub(crate) struct CompletedCall {
    id: Option<String>,
    function: Option<NamedCall>,
    name: Option<String>,
    arguments: Option<Value>,
}

#[derive(Deserialize)]
pub(crate) struct NamedCall {
    name: String,
    #[serde(default)]
    arguments: Value,
}

impl CompletedCall {
    fn into_call(self, aliases: &Aliases) -> Result<ToolCall, String> {
        let (name, arguments) = match self.function {
            Some(function) => (function.name, function.arguments),
            None => {
                (self.name.ok_or("a tool call has no name")?, self.arguments.unwrap_or_default())
            }
        };
        let arguments = match arguments {
            // The text of a JSON object, as providers send it.
            Value::String(text) => text,
            Value::Null => "{}".to_owned(),
            arguments => arguments.to_string(),
        };
        let name = aliases.canonical(&name).map_or(name.clone(), str::to_owned);
        Ok(ToolCall { id: self.id.unwrap_or_default(), name, arguments, is_cut: false })
    }
}

fn finish_reason_from(reason: Option<&str>, has_calls: bool) -> FinishReason {
    match reason {
        None if has_calls => FinishReason::ToolCalls,
        None | Some("stop" | "end_turn") => FinishReason::Stop,
        Some("tool_calls" | "tool_use") => FinishReason::ToolCalls,
        Some("length" | "max_tokens") => FinishReason::Length,
        Some("content_filter" | "refusal") => FinishReason::Refusal,
        Some(other) => FinishReason::Other(other.to_owned()),
    }
}

/// Returns a response as the dict that every provider's client returns: `response`, `tool_calls`,
/// `usage` and `finish_reason`.
pub(crate) fn completion_json(response: &Response, aliases: &Aliases) -> Value {
    let calls = response
        .message
        .calls()
        .map(|call| call_json(call, aliases.alias(&call.name).unwrap_or(&call.name)));
    let finish_reason = match &response.finish_reason {
        FinishReason::Stop | FinishReason::Paused => "stop",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::Length | FinishReason::ContextFull => "length",
        FinishReason::Refusal => "refusal",
        FinishReason::MalformedToolCall => "malformed_tool_call",
        FinishReason::Other(reason) => reason,
    };
    json!({
        "response": response.message.visible_text(),
        "tool_calls": calls.collect::<Vec<_>>(),
        "usage": response.usage.map(|usage| json!({
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "total_tokens": usage.total_tokens(),
        })),
        "finish_reason": finish_reason,
    })
}

/// A message of an application.
#[derive(Deserialize)]
pub(crate) struct ChatMessage {
    role: String,
    content: Option<Value>,
    tool_calls: Option<Vec<CompletedCall>>,
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
struct FunctionTool {
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(alias = "inputSchema")]
    parameters: Option<Value>,
}

/// Returns an application's tools, each as in Chat Completions or as MCP defines it. A tool without a
/// schema takes an object.
pub(crate) fn to_application_tools(tools: &RawValue) -> Result<Vec<Tool>, String> {
    let tools: Vec<Value> =
        serde_json::from_str(tools.get()).map_err(|_| "`tools` is no list".to_owned())?;
    tools
        .into_iter()
        .enumerate()
        .map(|(index, tool)| {
            let tool = tool.get("function").cloned().unwrap_or(tool);
            let tool: FunctionTool = serde_json::from_value(tool)
                .map_err(|error| format!("tool {}: {error}", index + 1))?;
            let schema =
                tool.parameters.unwrap_or_else(|| json!({ "type": "object", "properties": {} }));
            Ok(Tool::new(tool.name, tool.description.unwrap_or_default(), schema))
        })
        .collect()
}

/// Returns the request of an application's messages and tools, or what is wrong with them.
pub(crate) fn to_request(messages: Vec<ChatMessage>, tools: Vec<Tool>) -> Result<Request, String> {
    let mut request =
        Request { tools: Arc::new(tools.into_iter().collect::<Tools>()), ..Request::default() };
    let no_aliases = Aliases::new(std::iter::empty::<String>(), NameRules::OPENAI);
    for (index, message) in messages.into_iter().enumerate() {
        add_message(&mut request, message, &no_aliases)
            .map_err(|problem| format!("message {}: {problem}", index + 1))?;
    }
    Ok(request)
}

fn add_message(
    request: &mut Request,
    message: ChatMessage,
    aliases: &Aliases,
) -> Result<(), String> {
    let text = text_of(message.content.as_ref())?;
    match &*message.role {
        "system" | "developer" => {
            if !request.system.is_empty() {
                request.system.push('\n');
            }
            request.system.push_str(&text);
        }
        "user" => request.messages.push(Message::User(Content::from(text.as_str()))),
        "assistant" => {
            let mut parts = AssistantMessage::from_text(text).parts;
            for call in message.tool_calls.unwrap_or_default() {
                parts.push(ContentPart::new(PartContent::ToolCall(call.into_call(aliases)?)));
            }
            request.messages.push(Message::Assistant(Arc::new(AssistantMessage { parts })));
        }
        "tool" => {
            let id = message.tool_call_id.ok_or("a tool's message needs `tool_call_id`")?;
            let name =
                called_tool(request, &id).ok_or_else(|| format!("no call has the id `{id}`"))?;
            let content = Content::from(text.as_str());
            let result = ToolResult { id, name, content, is_error: false };
            if let Some(Message::ToolResults(results)) = request.messages.last_mut() {
                *results = results.iter().cloned().chain([result]).collect();
            } else {
                request.messages.push(Message::ToolResults([result].into()));
            }
        }
        other => return Err(format!("unknown role `{other}`")),
    }
    Ok(())
}

/// Returns the tool of a call in the messages so far.
fn called_tool(request: &Request, id: &str) -> Option<String> {
    request.messages.iter().rev().find_map(|message| {
        let Message::Assistant(assistant) = message else { return None };
        assistant.calls().find(|call| call.id == id).map(|call| call.name.clone())
    })
}

/// Returns the text of a content: a string, or a list of text parts.
fn text_of(content: Option<&Value>) -> Result<String, String> {
    match content {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(parts)) => parts
            .iter()
            .map(|part| part["text"].as_str().ok_or("a part of the content is no text"))
            .collect::<Result<String, _>>()
            .map_err(str::to_owned),
        Some(_) => Err("the content is neither a string nor a list".to_owned()),
    }
}
