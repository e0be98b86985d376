//! One message, and the parts of an answer.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::provider::Wire;

/// One message of a conversation. What it says is shared by its clones: each request has all of
/// them.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// What the person says.
    User(Arc<str>),
    /// What the model answered.
    Answer(Arc<Answer>),
    /// The results of all calls of the answer before it, in the order of the calls.
    Results(Arc<[ToolResult]>),
}

/// What a model answered, part by part in its order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The parts.
    pub parts: Vec<Part>,
}

/// A part of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// What it says, in our words.
    pub said: Said,
    /// The same as its provider sent it. To that provider and model it goes back word for word;
    /// signatures stay valid only so.
    pub native: Option<Native>,
}

/// What a part of an answer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// Text for the reader.
    Text(String),
    /// What the model thought, as far as it is shown; empty where it is not.
    Reasoning(String),
    /// A call of a tool.
    Call(ToolCall),
    /// Something that only its provider understands.
    Other,
}

/// A call as the model made it: not yet read, nor checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// Its id in the conversation. Empty in what a provider sent without one.
    pub id: String,
    /// The tool, by its public name; as the model said it, where no offered tool has that name.
    pub name: String,
    /// The arguments: the text of a JSON object, if the model kept to the form.
    pub arguments: String,
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// The id of the call.
    pub id: String,
    /// The tool, by its public name.
    pub name: String,
    /// What the model is told.
    pub text: String,
    /// Whether it is about a failure.
    pub is_error: bool,
}

/// A part in a provider's own words.
#[derive(Clone, Debug)]
pub struct Native {
    /// Whose words.
    pub wire: Wire,
    /// The model that said it, as it was asked for.
    pub model: String,
    /// The block, item or part: a JSON object.
    pub block: Box<RawValue>,
}

impl Native {
    /// The words, if they are for this model over this wire.
    pub fn for_model(&self, wire: Wire, model: &str) -> Option<&RawValue> {
        (self.wire == wire && self.model == model).then_some(&*self.block)
    }
}

impl PartialEq for Native {
    fn eq(&self, other: &Self) -> bool {
        (self.wire, &self.model, self.block.get()) == (other.wire, &other.model, other.block.get())
    }
}

/// Whether a step begins at a message: an answer does, unless it goes on with the one before it.
pub(super) fn opens_step(before: Option<&Message>, message: &Message) -> bool {
    let is_answer = |message: &Message| matches!(message, Message::Answer(_));
    is_answer(message) && !before.is_some_and(is_answer)
}

impl Message {
    /// How many bytes it takes, about: what it says, in our words and in a provider's, and its parts.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::User(text) => text.len(),
            Self::Answer(answer) => answer.parts.iter().map(Part::bytes).sum(),
            Self::Results(results) => {
                results.iter().map(|it| it.id.len() + it.name.len() + it.text.len()).sum()
            }
        }
    }
}

impl Part {
    /// Its own size is counted too: an answer may have many parts that say nothing.
    fn bytes(&self) -> usize {
        let said = match &self.said {
            Said::Text(text) | Said::Reasoning(text) => text.len(),
            Said::Call(call) => call.id.len() + call.name.len() + call.arguments.len(),
            Said::Other => 0,
        };
        let words = |native: &Native| native.model.len() + native.block.get().len();
        size_of::<Self>() + said + self.native.as_ref().map_or(0, words)
    }

    /// A part without words of a provider.
    pub fn new(said: Said) -> Self {
        Self { said, native: None }
    }
}

impl Answer {
    /// An answer of one text; of no part where that is empty.
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        let parts = if text.is_empty() { Vec::new() } else { vec![Part::new(Said::Text(text))] };
        Self { parts }
    }

    /// All text for the reader, put together.
    pub fn shown(&self) -> String {
        let texts = self.parts.iter().map(|part| match &part.said {
            Said::Text(text) => text.as_str(),
            Said::Reasoning(_) | Said::Call(_) | Said::Other => "",
        });
        texts.collect()
    }

    /// All that is shown of what the model thought, put together.
    pub fn reasoning(&self) -> String {
        let texts = self.parts.iter().map(|part| match &part.said {
            Said::Reasoning(text) => text.as_str(),
            Said::Text(_) | Said::Call(_) | Said::Other => "",
        });
        texts.collect()
    }

    /// The calls, in their order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match &part.said {
            Said::Call(call) => Some(call),
            Said::Text(_) | Said::Reasoning(_) | Said::Other => None,
        })
    }
}
