//! Lenient typed views, read from raw JSON and never instead of it.
//!
//! What a view does not know is ignored, an optional part of the wrong type counts as absent, and
//! only a required part that is missing or of the wrong type is an error. `null` is absent.

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
pub use content::{BLOCK_LIMIT, Content, ToolResult};
pub use input_required::{INPUT_REQUEST_LIMIT, INPUT_STATE_LIMIT, InputRequest, InputRequired};
pub use notification::{CancelledNotification, LogMessage, ProgressNotification};
pub use page::{PAGE_ITEM_LIMIT, Page};
pub use prompt::{Prompt, PromptArgument};
pub use resource::{Resource, ResourceTemplate};
pub use server::{
    InitializeResult, ListChanged, ResourcesCapability, ServerCapabilities, ServerInfo,
    TasksCapability,
};
pub use task::{TASK_ID_LIMIT, Task, TaskStatus};
pub use template::{TEMPLATE_LIMIT, URI_LIMIT, uri_matches};
pub use tool::{TaskSupport, Tool, ToolAnnotations};

pub(crate) use object::Object;

/// A required part of a message is missing or of the wrong type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}{}, found {found}", place(pointer))]
pub struct ViewError {
    /// Where, as a JSON pointer into what was read; empty for the whole of it.
    pub pointer: String,
    /// What should be there.
    pub expected: &'static str,
    /// What is there.
    pub found: &'static str,
}

impl ViewError {
    /// For the value at `pointer`, or for its absence.
    pub(crate) fn new(pointer: String, expected: &'static str, found: Option<&str>) -> Self {
        Self { pointer, expected, found: kind(found.and_then(|raw| raw.bytes().next())) }
    }
}

fn place(pointer: &str) -> String {
    if pointer.is_empty() { String::new() } else { format!(" at `{pointer}`") }
}

/// What a value is, judged by its first byte.
fn kind(first: Option<u8>) -> &'static str {
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
