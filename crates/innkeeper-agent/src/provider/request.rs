//! What a model is asked.

use std::sync::Arc;

use innkeeper_toolcall::Tools;
use serde_json::Value;

use crate::conversation::Message;

/// One request to a model.
///
/// What the model does not take is left out before it is sent, as its
/// [`Capabilities`](super::Capabilities) say.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// What the model is told before all else; may be empty.
    pub system: String,
    /// What was said so far. Every call in it has its result behind it, and the last message is the
    /// person's or one of results.
    pub messages: Vec<Message>,
    /// The tools that may be called in the provider's own form, by their public names. Empty where
    /// the model is told of them in `system`.
    pub tools: Arc<Tools>,
    /// Whether one has to be called.
    pub choice: Choice,
    /// From 0, the same words every time as far as that goes, up to 2. `None`: the provider's.
    pub temperature: Option<f64>,
    /// The most tokens of the answer. `None`: the provider's, or the least of what it needs to know.
    pub max_tokens: Option<u32>,
    /// How many tokens of request and answer the server is to have room for, where it has to be told.
    pub context_tokens: Option<u32>,
    /// Texts at which the answer ends.
    pub stop_sequences: Vec<String>,
    /// A form that the server holds the answer to.
    pub constraint: Option<Constraint>,
    /// Whether the provider is to keep the tools and the system text, which then cost less in the next
    /// request that has the same. For providers that do it only where they are told; it may cost more
    /// where no such request comes soon.
    pub keep_prompt: bool,
}

/// Whether a tool has to be called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The model decides.
    #[default]
    Auto,
    /// None may be.
    None,
    /// Some tool has to be. Not every server keeps to it: look at the answer.
    Required,
}

/// A form that a server holds an answer to.
#[derive(Clone, Debug, PartialEq)]
pub enum Constraint {
    /// JSON that fits this JSON Schema.
    JsonSchema(Value),
    /// Text of a grammar in llama.cpp's GBNF.
    Gbnf(String),
    /// What a structural tag of vLLM and SGLang says.
    StructuralTag(Value),
}

impl Request {
    /// The whole as one text, for models that complete a text: the system text, then each message
    /// behind the name of who says it, last that of the model.
    pub fn prompt(&self) -> String {
        let mut text = self.system.clone();
        for message in &self.messages {
            let (who, said) = match message {
                Message::User(text) => ("User", text.to_string()),
                Message::Answer(answer) => ("Assistant", answer.shown()),
                Message::Results(results) => {
                    let lines: Vec<_> = results.iter().map(|it| it.text.as_str()).collect();
                    ("Tool", lines.join("\n"))
                }
            };
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            text.push_str(who);
            text.push_str(": ");
            text.push_str(&said);
        }
        text.push_str("\n\nAssistant:");
        text
    }
}
