//! The forms in which a scripted model is spoken to.

use serde_json::Value;

use super::answer::{Answer, Call};
use super::memory::Memory;
use super::{anthropic, gemini, interactions, ollama, openai_chat, openai_responses};

/// How one provider's requests are read and its answers written.
pub(super) struct Wire {
    /// What ids of calls begin with.
    pub(super) id_prefix: &'static str,
    /// Whether an answer streams when the request does not say.
    pub(super) streams: bool,
    /// The type of a streamed body.
    pub(super) content_type: &'static str,
    /// The names of the tools that a request offers.
    pub(super) offered: fn(&Value) -> Vec<String>,
    /// What the provider refuses in a conversation, and where it is.
    pub(super) check: fn(&Value, &Memory) -> Result<(), Refusal>,
    /// The body of an answer that does not stream.
    pub(super) whole: fn(&Answer) -> Value,
    /// The events or lines of one that does, each as it is sent.
    pub(super) stream: fn(&Answer) -> Vec<String>,
    /// What the server fails with where it cannot read a call that its model wrote.
    pub(super) unreadable: Option<fn(&Call) -> String>,
    /// The body of a failure: its status, the provider's word for it, a message.
    pub(super) failure: fn(u16, Option<&str>, &Refusal) -> Value,
}

/// Why a request is refused.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) message: String,
    /// The provider's word for it, where it is not that of every bad request.
    pub(super) code: Option<&'static str>,
    /// The part of the request.
    pub(super) param: Option<String>,
}

impl Refusal {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    pub(super) fn at(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }
}

/// What a request is: its form, the model if the path names it, whether the path asks for a stream.
pub(super) struct Target {
    pub(super) wire: &'static Wire,
    pub(super) model: Option<String>,
    pub(super) streams: Option<bool>,
}

impl Target {
    /// What is asked for at a path; none where no model answers.
    pub(super) fn of(path: &str) -> Option<Self> {
        let whole = |wire| Some(Self { wire, model: None, streams: None });
        if path.ends_with("/chat/completions") {
            return whole(&openai_chat::WIRE);
        }
        if path.ends_with("/responses") {
            return whole(&openai_responses::WIRE);
        }
        if path.ends_with("/v1/messages") {
            return whole(&anthropic::WIRE);
        }
        if path.ends_with("/api/chat") {
            return whole(&ollama::WIRE);
        }
        if path.ends_with("/interactions") {
            return whole(&interactions::WIRE);
        }
        let (model, verb) = path.rsplit_once("/models/")?.1.rsplit_once(':')?;
        let streams = match verb {
            "generateContent" => false,
            "streamGenerateContent" => true,
            _ => return None,
        };
        let model = Some(model.to_owned());
        Some(Self { wire: &gemini::WIRE, model, streams: Some(streams) })
    }
}

/// The strings at `key` of each object in a list, in their order.
pub(super) fn each<'a>(list: &'a Value, key: &'a str) -> impl Iterator<Item = &'a str> {
    list.as_array().into_iter().flatten().filter_map(move |one| one[key].as_str())
}

/// The items of a list; none of what is no list.
pub(super) fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}
