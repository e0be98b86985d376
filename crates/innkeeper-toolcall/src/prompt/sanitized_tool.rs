//! Tool descriptions that are safe in a prompt.

use crate::{Tool, sanitize};

/// A tool's untrusted texts, each on one line and without markup.
pub(super) struct SanitizedTool {
    /// The name; in quotes if the name contains unusual characters.
    pub(super) name: String,
    /// The description in quotes; empty if the tool has none.
    pub(super) description: String,
    /// The parameters as JSON.
    pub(super) parameters: String,
}

impl SanitizedTool {
    pub(super) fn from_tool(tool: &Tool) -> Self {
        let description = tool.description.trim();
        Self {
            name: sanitize::quote_name(&tool.name),
            description: if description.is_empty() {
                String::new()
            } else {
                sanitize::quote_for_prompt(description)
            },
            parameters: sanitize::to_json_line(&tool.input_schema),
        }
    }
}
