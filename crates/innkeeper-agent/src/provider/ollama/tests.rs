//! Tests of the Ollama codec.

mod errors;
mod requests;
mod responses;

use crate::conversation::{PartContent, ToolCall};

fn call(id: &str, name: &str, arguments: &str) -> PartContent {
    let (id, name) = (id.to_owned(), name.to_owned());
    PartContent::ToolCall(ToolCall { id, name, arguments: arguments.to_owned(), is_cut: false })
}
