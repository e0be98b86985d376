//! The conversation in a result.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::conversation::{AssistantMessage, Conversation, Message, ToolCall, ToolResult};

/// A message of the conversation.
#[derive(Debug, Serialize)]
pub struct MessageJson<'r> {
    /// `system`, `user`, `assistant` or `tool`.
    pub role: &'static str,
    /// The text; one line stands for each image or other binary content.
    pub content: Cow<'r, str>,
    /// The calls of a response, or `null`.
    pub tool_calls: Option<Vec<MessageToolCallJson<'r>>>,
    /// The id of the call that a result belongs to, or `null`.
    pub tool_call_id: Option<&'r str>,
}

/// A call in a response.
#[derive(Debug, Serialize)]
pub struct MessageToolCallJson<'r> {
    /// The id of the call.
    pub id: &'r str,
    /// The name of the tool in the conversation.
    pub name: &'r str,
    /// The arguments: the object that the model wrote, or its text if the text is no JSON.
    pub arguments: Box<RawValue>,
}

/// Returns the system prompt, if there is one, and all messages.
pub(super) fn history_json<'r>(
    system: &'r str,
    conversation: &'r Conversation,
) -> Vec<MessageJson<'r>> {
    let mut history = Vec::new();
    if !system.is_empty() {
        history.push(text_json("system", Cow::Borrowed(system)));
    }
    for message in conversation.messages() {
        match message {
            Message::User(content) => history.push(text_json("user", content.to_text())),
            Message::Assistant(response) => history.push(response_json(response)),
            Message::ToolResults(results) => history.extend(results.iter().map(result_json)),
        }
    }
    history
}

fn text_json<'r>(role: &'static str, content: Cow<'r, str>) -> MessageJson<'r> {
    MessageJson { role, content, tool_calls: None, tool_call_id: None }
}

fn response_json(response: &AssistantMessage) -> MessageJson<'_> {
    let calls: Vec<_> = response.calls().map(call_json).collect();
    MessageJson {
        tool_calls: (!calls.is_empty()).then_some(calls),
        ..text_json("assistant", Cow::Owned(response.visible_text()))
    }
}

fn call_json(call: &ToolCall) -> MessageToolCallJson<'_> {
    let parsed = RawValue::from_string(call.arguments.clone());
    let arguments = parsed.or_else(|_| serde_json::value::to_raw_value(&call.arguments));
    let arguments = arguments.unwrap_or_else(|_| RawValue::NULL.to_owned());
    MessageToolCallJson { id: &call.id, name: &call.name, arguments }
}

fn result_json(result: &ToolResult) -> MessageJson<'_> {
    MessageJson { tool_call_id: Some(&result.id), ..text_json("tool", result.content.to_text()) }
}
