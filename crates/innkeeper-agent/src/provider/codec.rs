//! Requests in a provider's words and back, without I/O.
//!
//! One file for each [`Wire`](super::Wire), beside this one, has three functions: `encode` puts what
//! is asked into a request over HTTP, `reader` takes the bytes of the answer in any cuts, and `fault`
//! reads an answer that is a failure. Here is what they share.

#[cfg(any(test, fuzzing))]
pub(crate) mod cuts;
mod events;
mod fields;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod joined;
mod whole;

use serde_json::value::RawValue;

use super::offer::Offer;
use super::{
    Capabilities, Class, Piece, Request, Response, Wire, anthropic, gemini_generate,
    gemini_interactions, ollama, openai_chat, openai_responses,
};

pub(crate) use events::{Events, Lines};
pub(crate) use fields::{FIELDS, Fields, arguments, is_json, items, string, texts};
pub(crate) use joined::Joined;
pub(crate) use whole::Whole;

/// The longest answer in bytes, whole or as a stream: a hundred times what a model writes at most.
pub(crate) const ANSWER: usize = 64 << 20;

/// The longest single event of a stream. Gemini sends whole calls in one.
pub(crate) const EVENT: usize = 16 << 20;

/// The most parts of an answer that are kept; one with more is no answer of a model.
pub(crate) const PARTS: usize = 4096;

/// The most items of a list that are read. Of texts many are one part, and a server may list one for
/// each token: no model writes more in one answer, and as many cost a mebibyte to look at.
pub(crate) const LIST: usize = 65_536;

/// The longest message of a failure that is kept, in characters.
const MESSAGE: usize = 2000;

/// What is asked of whom.
#[derive(Clone, Copy)]
pub(crate) struct Asking<'r> {
    pub(crate) request: &'r Request,
    /// The request's tools, under the names and with the schemas of the wire.
    pub(crate) offer: &'r Offer,
    pub(crate) model: &'r str,
    pub(crate) can: &'r Capabilities,
    /// Whether the answer is to come in pieces.
    pub(crate) streaming: bool,
}

/// A POST request, but for who asks: what proves that is added behind.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// What comes behind the base URL; begins with `/`.
    pub(crate) path: String,
    /// Beside `content-type: application/json`.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// JSON.
    pub(crate) body: Vec<u8>,
}

/// Takes the bytes of one answer that has status 200.
///
/// Names of tools in it are those of the wire; who asked puts them back.
pub(crate) trait Reader: Send {
    /// Takes what came; `pieces` gets what can be told of it, all but [`Piece::Done`].
    fn push(&mut self, bytes: &[u8], pieces: &mut Vec<Piece>) -> Result<(), Fault>;

    /// Whether the answer has said that it is at its end. What comes behind that is taken, and hardly
    /// waited for.
    fn is_over(&self) -> bool {
        false
    }

    /// Nothing more comes. An answer that was not over is a [`Fault`] with what was written so far.
    fn end(self: Box<Self>) -> Result<Response, Fault>;
}

/// A failure as the provider tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) class: Class,
    pub(crate) message: String,
    /// What the model had written, if it is told.
    pub(crate) written: Option<String>,
}

impl Fault {
    pub(crate) fn new(class: Class, message: impl AsRef<str>) -> Self {
        let message = message.as_ref().chars().take(MESSAGE).collect();
        Self { class, message, written: None }
    }

    /// What came is not what this wire has.
    pub(crate) fn unreadable(message: impl AsRef<str>) -> Self {
        Self::new(Class::Unreadable, message)
    }

    /// The answer has more of something than [`PARTS`].
    pub(crate) fn too_many(what: &str) -> Self {
        Self::unreadable(format!("the answer has more than {PARTS} {what}"))
    }

    /// The stream ended before the answer did.
    pub(crate) fn broken_off(written: String) -> Self {
        let message = "the answer breaks off before its end";
        Self { written: Some(written), ..Self::new(Class::Connection, message) }
    }
}

/// The class of a status that no word of the provider tells more about.
pub(crate) fn class_of(status: u16) -> Class {
    match status {
        401 | 403 => Class::Key,
        402 => Class::Billing,
        404 => Class::NotFound,
        408 | 504 => Class::TimedOut,
        413 => Class::TooLong,
        409 | 429 | 500..=599 => Class::Later { after: None },
        _ => Class::Request,
    }
}

/// A provider's words for a failure, where they may be missing.
pub(crate) fn plain(words: &str) -> &str {
    let words = words.trim();
    if words.is_empty() { "without a word of why" } else { words }
}

/// The arguments of a call as a JSON object, for wires that take no text: as the model wrote them, if
/// that is one, else an object that says what it was.
pub(crate) fn object(arguments: &str) -> Box<RawValue> {
    let text = arguments.trim();
    let raw = RawValue::from_string(text.to_owned()).ok().filter(|raw| raw.get().starts_with('{'));
    raw.unwrap_or_else(|| {
        let said = if text.is_empty() {
            serde_json::json!({})
        } else {
            serde_json::json!({"unreadable": text})
        };
        serde_json::value::to_raw_value(&said).unwrap_or_default()
    })
}

pub(crate) fn encode(wire: Wire, asking: Asking<'_>) -> Result<Outgoing, Fault> {
    match wire {
        Wire::OpenAiChat => openai_chat::encode(asking),
        Wire::OpenAiResponses => openai_responses::encode(asking),
        Wire::Anthropic => anthropic::encode(asking),
        Wire::GeminiGenerate => gemini_generate::encode(asking),
        Wire::GeminiInteractions => gemini_interactions::encode(asking),
        Wire::Ollama => ollama::encode(asking),
    }
}

/// A reader of an answer to what was asked of `model`.
pub(crate) fn reader(wire: Wire, model: &str, streaming: bool) -> Box<dyn Reader> {
    match wire {
        Wire::OpenAiChat => openai_chat::reader(model, streaming),
        Wire::OpenAiResponses => openai_responses::reader(model, streaming),
        Wire::Anthropic => anthropic::reader(model, streaming),
        Wire::GeminiGenerate => gemini_generate::reader(model, streaming),
        Wire::GeminiInteractions => gemini_interactions::reader(model, streaming),
        Wire::Ollama => ollama::reader(model, streaming),
    }
}

/// Reads an answer with another status than 200. How long to wait is told by headers, which are read
/// elsewhere.
pub(crate) fn fault(wire: Wire, status: u16, body: &[u8]) -> Fault {
    match wire {
        Wire::OpenAiChat => openai_chat::fault(status, body),
        Wire::OpenAiResponses => openai_responses::fault(status, body),
        Wire::Anthropic => anthropic::fault(status, body),
        Wire::GeminiGenerate => gemini_generate::fault(status, body),
        Wire::GeminiInteractions => gemini_interactions::fault(status, body),
        Wire::Ollama => ollama::fault(status, body),
    }
}
