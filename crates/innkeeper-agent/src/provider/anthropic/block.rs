//! One block of content: what it says, and whether its own words are kept.

use serde_json::value::RawValue;

use crate::conversation::{Native, Part, Said, ToolCall};
use crate::provider::Wire;
use crate::provider::codec::{Fields, arguments};

/// What a block is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Thinking,
    /// A thought that is not shown.
    Hidden,
    Call,
    /// What only the provider understands, as the calls and results of its own tools.
    Other,
}

impl Kind {
    pub(super) fn of(block: &Fields<'_>) -> Self {
        match block.text("type").as_deref() {
            Some("text") => Self::Text,
            Some("thinking") => Self::Thinking,
            Some("redacted_thinking") => Self::Hidden,
            Some("tool_use") => Self::Call,
            Some(_) | None => Self::Other,
        }
    }
}

/// Reads a block that is whole.
pub(super) fn read(raw: &RawValue, model: &str) -> Part {
    let Some(block) = Fields::of(raw) else { return Part::new(Said::Other) };
    let said = match Kind::of(&block) {
        Kind::Text => Said::Text(block.text("text").unwrap_or_default()),
        Kind::Thinking => Said::Reasoning(block.text("thinking").unwrap_or_default()),
        Kind::Hidden => Said::Reasoning(String::new()),
        Kind::Call => Said::Call(call(&block, arguments(block.get("input")))),
        Kind::Other => Said::Other,
    };
    part(said, Some(raw.to_owned()), model)
}

pub(super) fn call(block: &Fields<'_>, arguments: String) -> ToolCall {
    let id = block.text("id").unwrap_or_default();
    ToolCall { id, name: block.text("name").unwrap_or_default(), arguments }
}

/// A part with its own words, unless they could not go back or say no more than the part does.
pub(super) fn part(said: Said, raw: Option<Box<RawValue>>, model: &str) -> Part {
    let kept = raw.filter(|raw| {
        let Some(block) = Fields::of(raw) else { return false };
        match &said {
            Said::Text(_) => block
                .iter()
                .any(|(name, value)| !matches!(name, "type" | "text") && value.get() != "null"),
            // A result has to name the id, and only an object is taken back.
            Said::Call(call) => {
                let input = block.get("input").map(RawValue::get);
                !call.id.is_empty() && input.is_some_and(|input| input.starts_with('{'))
            }
            Said::Reasoning(_) | Said::Other => true,
        }
    });
    let native = kept.map(|block| Native { wire: Wire::Anthropic, model: model.to_owned(), block });
    Part { said, native }
}
