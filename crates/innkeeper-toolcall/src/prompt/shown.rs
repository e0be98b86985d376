//! A tool in words that are safe in a prompt.

use crate::{Tool, safe};

/// What a server says of one tool, each on one line and without anyone's markup.
pub(super) struct Shown {
    /// As it is where it is of the usual characters, else in quotes.
    pub(super) name: String,
    /// In quotes; empty where there is none.
    pub(super) description: String,
    /// JSON.
    pub(super) parameters: String,
}

impl Shown {
    pub(super) fn of(tool: &Tool) -> Self {
        let description = tool.description.trim();
        Self {
            name: safe::label(&tool.name),
            description: if description.is_empty() {
                String::new()
            } else {
                safe::quoted(description)
            },
            parameters: safe::spaced(&tool.input_schema),
        }
    }
}
