//! A prompt as a server describes it.

use serde_json::value::RawValue;

use super::{Object, ViewError};
use crate::skim;

/// A prompt in a server's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// What it is got by.
    pub name: String,
    /// What people may be shown instead.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What may be filled in; arguments without a name are left out.
    pub arguments: Vec<PromptArgument>,
}

/// Something a prompt lets its caller fill in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptArgument {
    /// The argument's key.
    pub name: String,
    /// What it means.
    pub description: Option<String>,
    /// Whether the prompt cannot do without; false unless the server says so.
    pub required: bool,
}

impl Prompt {
    /// Reads one item of `prompts/list`.
    ///
    /// # Errors
    ///
    /// If `name` is not a string.
    pub fn read(raw: &RawValue) -> Result<Self, ViewError> {
        let prompt = Object::read(raw, ["name", "title", "description", "arguments"])?;
        let arguments = skim::elements(prompt.get("arguments").unwrap_or_default());
        Ok(Self {
            name: prompt.required_string("name")?,
            title: prompt.string("title"),
            description: prompt.string("description"),
            arguments: arguments.filter_map(PromptArgument::read).collect(),
        })
    }
}

impl PromptArgument {
    fn read(raw: &str) -> Option<Self> {
        let wanted = ["name", "description", "required"];
        let argument = Object::at(String::new(), Some(raw), wanted).ok()?;
        Some(Self {
            name: argument.string("name")?,
            description: argument.string("description"),
            required: argument.bool("required").unwrap_or_default(),
        })
    }
}
