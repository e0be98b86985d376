//! A request to a language model.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

use innkeeper_toolcall::Tools;
use serde_json::Value;

use crate::conversation::Message;

/// A request to a language model.
///
/// Parameters that the model does not support, by its [`Capabilities`](super::Capabilities), are
/// not sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Request {
    /// The system prompt; may be empty.
    pub system: String,
    /// The conversation. Every call has its result, and the last message is a user message or a
    /// list of results.
    pub messages: Vec<Message>,
    /// The tools for native tool calling, by public name. Empty if the system prompt describes the
    /// tools.
    pub tools: Arc<Tools>,
    /// Whether to send the tools without the provider's strict mode, which takes fewer schemas.
    pub plain_tools: bool,
    /// Whether the model has to call a tool.
    pub tool_choice: ToolChoice,
    /// The sampling temperature from 0, nearly deterministic, to 2. `None`: the provider's default.
    pub temperature: Option<f64>,
    /// Maximum number of output tokens. `None`: the default of the provider or, if the API requires
    /// a value, of [`Capabilities`](super::Capabilities).
    pub max_tokens: Option<u32>,
    /// The context window in tokens, for servers that need it in the request.
    pub context_tokens: Option<u32>,
    /// Strings at which the model stops.
    pub stop_sequences: Vec<String>,
    /// A constraint on the output that the server enforces.
    pub output_constraint: Option<OutputConstraint>,
    /// Whether to request prompt caching, for providers that cache only on request: of the tools and
    /// the system prompt, and of the messages. A following request with the same start costs less.
    /// Without such a request soon, the cost may be higher.
    pub prompt_caching: bool,
    /// The iteration of the run, counted from 1; 0 outside of a run. Recordings contain it; it is not
    /// sent and not stored.
    #[serde(skip)]
    pub iteration: u32,
}

/// Whether the model may, must or must not call a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model must not call a tool.
    None,
    /// The model must call a tool. Not every server enforces this: check the response.
    Required,
}

/// A constraint on the output that a server enforces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputConstraint {
    /// JSON that matches this JSON Schema.
    JsonSchema(Value),
    /// Text that matches this grammar in llama.cpp's GBNF.
    Gbnf(String),
    /// Text that matches this structural tag of vLLM or SGLang.
    StructuralTag(Value),
}

impl Request {
    /// Returns the request as one text, for completion models: the system prompt, then each message
    /// after the name of its role, and the model's role last.
    pub fn to_prompt_text(&self) -> String {
        let mut text = self.system.clone();
        for message in &self.messages {
            let (role, content) = match message {
                Message::User(content) => ("User", content.to_text()),
                Message::Assistant(assistant) => ("Assistant", assistant.visible_text().into()),
                Message::ToolResults(results) => {
                    let lines: Vec<_> =
                        results.iter().map(|result| result.content.to_text()).collect();
                    ("Tool", lines.join("\n").into())
                }
            };
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            text.push_str(role);
            text.push_str(": ");
            text.push_str(&content);
        }
        text.push_str("\n\nAssistant:");
        text
    }
}
