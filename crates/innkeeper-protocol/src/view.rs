//! Lenient typed views of raw JSON.
//!
//! Unknown members are ignored. An optional member of the wrong type counts as absent, and so does
//! `null`. Only a required member that is missing or has the wrong type is an error.

mod check;
mod content;
mod input_required;
mod notification;
mod object;
mod page;
mod prompt;
mod resource;
mod server;
mod task;
mod template;
mod tool;

#[cfg(test)]
mod tests;

pub use check::{check_prompt_result, check_read_result, check_tool_result};
pub use content::{ContentBlock, MAX_CONTENT_BLOCKS, ToolResult, result_text};
pub use input_required::{
    InputRequest, InputRequiredResult, MAX_INPUT_REQUESTS, MAX_REQUEST_STATE_BYTES,
};
pub use notification::{CancelledNotification, LoggingMessageNotification, ProgressNotification};
pub use page::{MAX_PAGE_ITEMS, Page};
pub use prompt::{Prompt, PromptArgument};
pub use resource::{Resource, ResourceTemplate};
pub use server::{
    InitializeResult, ListCapability, ResourcesCapability, ServerCapabilities, ServerInfo,
    TasksCapability,
};
pub use task::{MAX_TASK_ID_BYTES, Task, TaskStatus};
pub use template::{MAX_TEMPLATE_BYTES, MAX_URI_BYTES, uri_matches};
pub use tool::{TaskSupport, Tool, ToolAnnotations};

pub(crate) use object::{ObjectView, child_pointer};

/// The error for a required part of a message that is missing or has the wrong type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}{}, found {found}", display_location(pointer))]
pub struct ViewError {
    /// JSON pointer to the part, relative to the input; empty for the entire input.
    pub pointer: String,
    /// The expected value.
    pub expected: &'static str,
    /// The actual value.
    pub found: &'static str,
}

impl ViewError {
    /// Creates the error for the value at `pointer`, or for its absence.
    pub(crate) fn new(pointer: String, expected: &'static str, found: Option<&str>) -> Self {
        Self { pointer, expected, found: json_type_name(found.and_then(|raw| raw.bytes().next())) }
    }
}

fn display_location(pointer: &str) -> String {
    if pointer.is_empty() { String::new() } else { format!(" at `{pointer}`") }
}

/// Returns the JSON type of a value, from its first byte.
pub(crate) fn json_type_name(first: Option<u8>) -> &'static str {
    match first {
        None => "nothing",
        Some(b'"') => "a string",
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        Some(_) => "a number",
    }
}
