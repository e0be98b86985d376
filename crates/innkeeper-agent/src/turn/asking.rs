//! What the model is asked next, in one of the two ways to call tools.

use std::sync::Arc;

use innkeeper_toolcall::Tools;
use innkeeper_toolcall::prompt::{self, Attempt, TemplateError};

use super::Setup;
use crate::conversation::{Answer, Conversation, Message, Said, tokens};
use crate::provider::Request;
use crate::words;

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
    let (system, tools) = match way {
        Way::Native => (setup.system.clone(), setup.tools.clone()),
        Way::Prompt => (setup.template.enhance(&setup.system, &setup.tools)?, Arc::default()),
    };
    let mut said = setup.budget.fit(conversation.messages(), tokens(&system) + weight(&tools));
    // Where no tool is left, not every provider takes calls and results of those that were.
    let as_text = way == Way::Prompt || tools.is_empty() && said.iter().any(is_result);
    if as_text {
        said.iter_mut().for_each(|message| *message = in_text(setup, message));
    }
    if !attempts.is_empty() {
        said.push(Message::User(again(setup, way, attempts).into()));
    }
    let messages = joined(said);
    Ok(Request {
        system,
        messages,
        tools,
        max_tokens: Some(setup.max_tokens),
        context_tokens: setup.context_tokens,
        keep_prompt: setup.keep_prompt,
        ..Request::default()
    })
}

fn is_result(message: &Message) -> bool {
    matches!(message, Message::Results(_))
}

/// What the model is told after attempts that were none.
fn again(setup: &Setup, way: Way, attempts: &[Attempt]) -> String {
    match way {
        Way::Prompt => prompt::retry(setup.template.family(), attempts),
        Way::Native => {
            let mut text = "IMPORTANT: Previous attempts failed with these errors:".to_owned();
            for (at, attempt) in attempts.iter().enumerate() {
                text.push_str(&format!("\nAttempt {}: {}", at + 1, attempt.problem));
            }
            text + "\n\nCall tools as you were told to, not in the text of your answer."
        }
    }
}

/// The same with neighbouring words of the person in one message: not every model takes two.
fn joined(messages: Vec<Message>) -> Vec<Message> {
    let mut joined = Vec::with_capacity(messages.len());
    let mut person = Vec::new();
    for message in messages {
        match message {
            Message::User(text) => person.push(text),
            Message::Answer(_) | Message::Results(_) => {
                joined.extend(one(&mut person));
                joined.push(message);
            }
        }
    }
    joined.extend(one(&mut person));
    joined
}

fn one(person: &mut Vec<Arc<str>>) -> Option<Message> {
    let text = match person.as_slice() {
        [] => return None,
        [text] => text.clone(),
        texts => texts.join("\n\n").into(),
    };
    person.clear();
    Some(Message::User(text))
}

/// A question and its call, as if they had been said before: a weak model that is held to a form
/// takes the arguments from the question then, and else from whatever example it was shown. The call
/// is of no tool that is offered, which the form does not let through.
pub(super) fn worked(setup: &Setup) -> [Message; 2] {
    let (called, arguments) = setup.template.family().keys();
    let call = format!(r#"{{"{called}": "temperature", "{arguments}": {{"city": "Oslo"}}}}"#);
    let question = "What is the temperature in Oslo?".into();
    [Message::User(question), Message::Answer(Answer::text(call).into())]
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
        Message::User(_) => message.clone(),
        Message::Answer(answer) => Message::Answer(Answer::text(written(setup, answer)).into()),
        Message::Results(results) => {
            let lines = results.iter().map(|it| words::line(&it.name, None, &it.text, it.is_error));
            Message::User(words::lines(lines).into())
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
