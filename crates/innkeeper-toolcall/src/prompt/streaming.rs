//! The system text of chats in which calls are looked for while the model writes.
//!
//! Its example is a call of no offered tool, so that a model that repeats the text calls nothing.

use super::shown::Shown;
use crate::{Tools, resolve, safe};

/// How such a model is told to write a call.
pub const RULES: &str = "A call is one complete JSON object on a line of its own, with \
nothing before it or in it. Explain before or after it, never in the middle. Wait for the results \
before you use them.";

/// Names for the tool of the example, the usual one first.
const EXAMPLES: [&str; 4] = ["name", "tool_name", "name_of_the_tool", "the_tool_you_call"];

/// The system text with the tools and [`RULES`]; without tools, the system text as it is.
pub fn streaming(system: &str, tools: &Tools) -> String {
    let mut text = String::from(system);
    if tools.is_empty() {
        return text;
    }
    if !system.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str("## Available Tools\n\n");
    for tool in tools.iter() {
        let Shown { description, parameters, .. } = Shown::of(tool);
        let name = safe::quoted(&tool.name);
        let description = if description.is_empty() { "\"\"" } else { &description };
        text.push_str(&format!(
            "- {{\"tool\": {name}, \"description\": {description}, \"params\": {parameters}}}\n"
        ));
    }
    text.push_str("\n## Calling Tools\n\n");
    text.push_str(RULES);
    match EXAMPLES.iter().find(|name| resolve(tools, name).is_none()) {
        Some(name) => text.push_str(&format!(
            " For example:\n\n{{\"tool\": \"{name}\", \"params\": {{\"key\": \"value\"}}}}\n"
        )),
        None => text.push('\n'),
    }
    text
}
