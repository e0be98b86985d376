//! What the model is asked next, in one of the two ways to call tools.

use std::sync::Arc;

use innkeeper_toolcall::Tools;
use innkeeper_toolcall::prompt::{self, Attempt, TemplateError};
use serde_json::json;

use super::Setup;
use crate::conversation::{Answer, Conversation, Message, Said, ToolResult, tokens};
use crate::provider::Request;

/// How a model calls tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// In the provider's own form.
    Native,
    /// In its text, as its prompt says.
    Prompt,
}

/// The request for the next answer; what was wrong with earlier attempts goes at its end.
pub(super) fn request(
    setup: &Setup,
    conversation: &Conversation,
    way: Way,
    attempts: &[Attempt],
) -> Result<Request, TemplateError> {
    let (system, tools, said) = match way {
        Way::Native => {
            (setup.system.clone(), setup.tools.clone(), conversation.messages().to_vec())
        }
        Way::Prompt => {
            let system = setup.template.enhance(&setup.system, &setup.tools)?;
            let said = conversation.messages().iter().map(|it| in_text(setup, it)).collect();
            (system, Arc::default(), said)
        }
    };
    let mut messages = setup.budget.fit(&said, tokens(&system) + weight(&tools));
    if !attempts.is_empty() {
        let again = prompt::retry(setup.template.family(), attempts);
        match messages.last_mut() {
            Some(Message::User(text)) => *text = format!("{text}\n\n{again}"),
            Some(Message::Answer(_) | Message::Results(_)) | None => {
                messages.push(Message::User(again));
            }
        }
    }
    let stop_sequences = match way {
        // What a model makes up on behalf of others is not wanted.
        Way::Prompt if !setup.tools.is_empty() => vec!["\nUser:".to_owned(), "\nTool:".to_owned()],
        Way::Prompt | Way::Native => Vec::new(),
    };
    let max_tokens = Some(setup.max_tokens);
    Ok(Request { system, messages, tools, max_tokens, stop_sequences, ..Request::default() })
}

/// A question and its call, as if they had been said before: a weak model that is held to a form
/// takes the arguments from the question then, and else from whatever example it was shown. The call
/// is of no tool that is offered, which the form does not let through.
pub(super) fn worked(setup: &Setup) -> [Message; 2] {
    let (called, arguments) = setup.template.family().keys();
    let call = format!(r#"{{"{called}": "temperature", "{arguments}": {{"city": "Oslo"}}}}"#);
    let question = "What is the temperature in Oslo?".to_owned();
    [Message::User(question), Message::Answer(Answer::text(call))]
}

/// About how many tokens a list of tools is.
pub(super) fn weight(tools: &Tools) -> usize {
    let each = tools.iter().map(|tool| {
        tokens(&tool.name) + tokens(&tool.description) + tokens(&tool.input_schema.to_string())
    });
    each.sum()
}

/// A message for a model that knows no calls and no results: all of it is text.
fn in_text(setup: &Setup, message: &Message) -> Message {
    match message {
        Message::User(text) => Message::User(text.clone()),
        Message::Answer(answer) => Message::Answer(Answer::text(written(setup, answer))),
        Message::Results(results) => {
            let mut text = "Results of the tools, one a line:".to_owned();
            for result in results {
                text.push('\n');
                text.push_str(&line(result));
            }
            Message::User(text)
        }
    }
}

/// An answer as the model wrote it, or should have.
fn written(setup: &Setup, answer: &Answer) -> String {
    let family = setup.template.family();
    let mut text = String::new();
    for part in &answer.parts {
        match &part.said {
            Said::Text(words) => text.push_str(words),
            Said::Call(call) => {
                if !text.is_empty() && !text.ends_with('\n') {
                    text.push('\n');
                }
                text.push_str(&family.begin(&call.name));
                text.push_str(&call.arguments);
                text.push_str(family.end());
                text.push('\n');
            }
            Said::Reasoning(_) | Said::Other => {}
        }
    }
    text.trim_end().to_owned()
}

/// A result on one line, in a form in which no model calls a tool: what a tool says can end neither
/// its line nor the list.
fn line(result: &ToolResult) -> String {
    let key = if result.is_error { "error" } else { "result" };
    json!({"result_of": result.name, key: result.text}).to_string()
}
