//! Builds the next request, in native or prompt mode.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

use innkeeper_toolcall::Tools;
use innkeeper_toolcall::prompt::{self, FailedAttempt, TemplateError};

use super::RunConfig;
use super::last_request::LAST_REQUEST_INSTRUCTIONS;
use crate::content::{Content, ContentBlock};
use crate::conversation::{
    AssistantMessage, Conversation, Message, PartContent, ToolResult, estimate_tokens,
    latest_iteration, visible_messages,
};
use crate::provider::Request;
use crate::tool_output;

/// The way in which a model calls tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolCallMode {
    /// With the native calls of the provider's API.
    Native,
    /// In its text, with instructions in the prompt.
    Prompt,
}

/// A request that was built, not yet within the budget.
pub(super) struct BuiltRequest {
    pub(super) request: Request,
    /// The estimated tokens of the system prompt and the tools.
    pub(super) fixed_tokens: usize,
    /// The ids of the calls of this run whose results the request contains, oldest first.
    pub(super) visible_results: Arc<[String]>,
}

/// Builds the next request; the errors of failed attempts come last.
pub(super) fn build_request(
    config: &RunConfig,
    conversation: &Conversation,
    mode: ToolCallMode,
    attempts: &[FailedAttempt],
) -> Result<BuiltRequest, TemplateError> {
    let (system, tools) = match mode {
        ToolCallMode::Native => (config.settings.system.clone(), config.tools.available.clone()),
        ToolCallMode::Prompt => (
            config.template.system_prompt(&config.settings.system, &config.tools.available)?,
            Arc::default(),
        ),
    };
    let mut messages = messages_of_request(config, conversation);
    let visible_results = results_of_run(&messages);
    let fixed_tokens = estimate_tokens(&system) + estimate_tool_tokens(&tools);
    // Without tools, some providers reject messages with calls and results.
    let as_text =
        mode == ToolCallMode::Prompt || tools.is_empty() && messages.iter().any(is_tool_results);
    if as_text {
        messages.iter_mut().for_each(|message| *message = to_text_message(config, message));
    }
    if !attempts.is_empty() {
        messages.push(Message::User(correction_message(config, mode, attempts).into()));
    }
    let request = Request {
        system,
        messages: merge_user_messages(messages),
        tools,
        plain_tools: config.plain_tools,
        max_tokens: Some(config.max_tokens),
        context_tokens: config.context_tokens,
        prompt_caching: config.settings.requests.prompt_caching,
        ..Request::default()
    };
    Ok(BuiltRequest { request, fixed_tokens, visible_results })
}

/// Returns the messages that a request may contain.
fn messages_of_request(config: &RunConfig, conversation: &Conversation) -> Vec<Message> {
    match config.settings.requests.conversation_memory {
        true => visible_messages(conversation.messages(), conversation.omitted_history()),
        false => latest_iteration(conversation.messages()),
    }
}

/// Builds a request without tools: the messages as text, followed by instructions.
pub(super) fn build_text_request(
    config: &RunConfig,
    conversation: &Conversation,
    instructions: String,
) -> Request {
    let mut messages = messages_of_request(config, conversation);
    messages.iter_mut().for_each(|message| *message = to_text_message(config, message));
    messages.push(Message::User(instructions.into()));
    Request {
        system: config.settings.system.clone(),
        messages: merge_user_messages(messages),
        max_tokens: Some(config.max_tokens),
        context_tokens: config.context_tokens,
        ..Request::default()
    }
}

/// Builds the request for the last answer of a run, in which no tool can be called.
pub(super) fn build_last_request(config: &RunConfig, conversation: &Conversation) -> BuiltRequest {
    let visible_results = results_of_run(&messages_of_request(config, conversation));
    let instructions = LAST_REQUEST_INSTRUCTIONS.to_owned();
    let request = build_text_request(config, conversation, instructions);
    let fixed_tokens = estimate_tokens(&request.system);
    BuiltRequest { request, fixed_tokens, visible_results }
}

/// Returns the ids of the results after the last user message.
fn results_of_run(messages: &[Message]) -> Arc<[String]> {
    let results = messages.iter().rev().map_while(|message| match message {
        Message::User(_) => None,
        Message::Assistant(_) => Some([].as_slice()),
        Message::ToolResults(results) => Some(&**results),
    });
    let mut ids: Vec<_> =
        results.flat_map(|results| results.iter().rev()).map(|result| result.id.clone()).collect();
    ids.reverse();
    ids.into()
}

fn is_tool_results(message: &Message) -> bool {
    matches!(message, Message::ToolResults(_))
}

/// Returns the message to the model after failed attempts.
fn correction_message(
    config: &RunConfig,
    mode: ToolCallMode,
    attempts: &[FailedAttempt],
) -> String {
    match mode {
        ToolCallMode::Prompt => prompt::retry_prompt(config.template.family(), attempts),
        ToolCallMode::Native => {
            let mut text = "IMPORTANT: Previous attempts failed with these errors:".to_owned();
            for (at, attempt) in attempts.iter().enumerate() {
                text.push_str(&format!("\nAttempt {}: {}", at + 1, attempt.problem));
            }
            text + "\n\nAnswer again. If you need a tool, call it through the tool interface."
        }
    }
}

/// Merges adjacent user messages: some models reject two in a row.
fn merge_user_messages(messages: Vec<Message>) -> Vec<Message> {
    let mut joined = Vec::with_capacity(messages.len());
    for message in messages {
        match (joined.last_mut(), message) {
            (Some(Message::User(last)), Message::User(content)) => {
                *last = join_contents(last, &content);
            }
            (Some(_) | None, message) => joined.push(message),
        }
    }
    joined
}

/// Joins the contents of two messages; an empty line separates adjacent texts.
fn join_contents(first: &Content, second: &Content) -> Content {
    let mut blocks = first.blocks().to_vec();
    let mut rest = second.blocks();
    if let (Some(ContentBlock::Text(last)), [ContentBlock::Text(next), others @ ..]) =
        (blocks.last_mut(), rest)
    {
        *last = format!("{last}\n\n{next}").into();
        rest = others;
    }
    blocks.extend_from_slice(rest);
    blocks.into()
}

/// The question of the example of a call.
pub(crate) const EXAMPLE_QUESTION: &str = "What is the temperature in Oslo?";

/// Returns an example question with its call, in the form of earlier messages. With the example, a
/// weak model under constrained output takes the arguments from the user's question instead of
/// copying them from another example. The tool of the example is not available, so the constraint
/// rejects a copy of the call.
pub(super) fn few_shot_example(config: &RunConfig) -> [Message; 2] {
    let (name_key, arguments) = config.template.family().call_keys();
    let call = format!(r#"{{"{name_key}": "temperature", "{arguments}": {{"city": "Oslo"}}}}"#);
    [
        Message::User(EXAMPLE_QUESTION.into()),
        Message::Assistant(AssistantMessage::from_text(call).into()),
    ]
}

pub(super) fn estimate_tool_tokens(tools: &Tools) -> usize {
    let each = tools.iter().map(|tool| {
        estimate_tokens(&tool.name)
            + estimate_tokens(&tool.description)
            + estimate_tokens(&tool.input_schema.to_string())
    });
    each.sum()
}

/// Converts calls and results to text, for a model without native tools.
fn to_text_message(config: &RunConfig, message: &Message) -> Message {
    match message {
        Message::User(_) => message.clone(),
        Message::Assistant(assistant) => Message::Assistant(
            AssistantMessage::from_text(assistant_text(config, assistant)).into(),
        ),
        Message::ToolResults(results) => Message::User(results_content(config, results)),
    }
}

/// Returns the results as lines of text, followed by the media that the model takes.
fn results_content(config: &RunConfig, results: &[ToolResult]) -> Content {
    let lines = results.iter().map(|result| {
        tool_output::result_line(&result.name, None, &result.content.to_text(), result.is_error)
    });
    let mut blocks = vec![ContentBlock::from(tool_output::results_message(lines))];
    let support = config.capabilities.content;
    blocks.extend(results.iter().flat_map(|result| {
        result.media_blocks(|block| block.media().is_some_and(|media| support.accepts(media.kind)))
    }));
    blocks.into()
}

/// Returns a response as the text that the model wrote, or the text of its native calls.
fn assistant_text(config: &RunConfig, message: &AssistantMessage) -> String {
    let family = config.template.family();
    let mut text = String::new();
    for part in &message.parts {
        match &part.content {
            PartContent::Text(content) => text.push_str(content),
            PartContent::ToolCall(call) => {
                if !text.is_empty() && !text.ends_with('\n') {
                    text.push('\n');
                }
                text.push_str(&family.call_start(&call.name));
                text.push_str(&call.arguments);
                text.push_str(family.call_end());
                text.push('\n');
            }
            PartContent::Reasoning(_) | PartContent::Other => {}
        }
    }
    text.trim_end().to_owned()
}
