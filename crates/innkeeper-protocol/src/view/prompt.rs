//! Prompt definitions.

use serde_json::value::RawValue;

use super::{ObjectView, ViewError};
use crate::skim;

/// A prompt in a server's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// The identifier of the prompt.
    pub name: String,
    /// The display name.
    pub title: Option<String>,
    /// The description of the prompt.
    pub description: Option<String>,
    /// The arguments of the prompt. Arguments without a name are omitted.
    pub arguments: Vec<PromptArgument>,
}

/// An argument of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptArgument {
    /// The argument's key.
    pub name: String,
    /// The description of the argument.
    pub description: Option<String>,
    /// Whether the argument is required; `false` by default.
    pub required: bool,
}

impl Prompt {
    /// Reads one item of `prompts/list`.
    ///
    /// # Errors
    ///
    /// Returns an error if `name` is not a string.
    pub fn from_raw(raw: &RawValue) -> Result<Self, ViewError> {
        let prompt = ObjectView::from_raw(raw, ["name", "title", "description", "arguments"])?;
        let arguments = skim::elements(prompt.get("arguments").unwrap_or_default());
        Ok(Self {
            name: prompt.required_string("name")?,
            title: prompt.string("title"),
            description: prompt.string("description"),
            arguments: arguments.filter_map(PromptArgument::from_raw).collect(),
        })
    }
}

impl PromptArgument {
    fn from_raw(raw: &str) -> Option<Self> {
        let members = ["name", "description", "required"];
        let argument = ObjectView::from_raw_at(String::new(), Some(raw), members).ok()?;
        Some(Self {
            name: argument.string("name")?,
            description: argument.string("description"),
            required: argument.bool("required").unwrap_or_default(),
        })
    }
}
