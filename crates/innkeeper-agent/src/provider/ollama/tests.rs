//! What is sent to Ollama and how its answers are read.

mod answers;
mod bodies;
mod faults;

use crate::conversation::{Said, ToolCall};

fn call(id: &str, name: &str, arguments: &str) -> Said {
    let (id, name) = (id.to_owned(), name.to_owned());
    Said::Call(ToolCall { id, name, arguments: arguments.to_owned() })
}
