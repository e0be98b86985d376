//! The system prompt with the tools in it.

use innkeeper_toolcall::Tools;
use serde_json::json;

/// How a model is told to write a call.
pub const RULES: &str = "A call is one complete JSON object on a line of its own, with \
nothing before it or in it. Explain before or after it, never in the middle. Wait for the results \
before you use them.";

/// The system prompt, the rules and the tools. What a server says of a tool stands on one line as
/// JSON, so that it can end neither the line nor the list.
pub(super) fn enhance(system: &str, tools: &Tools) -> String {
    let mut text = String::from(system);
    if !system.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str("## Available Tools\n\n");
    for tool in tools.iter() {
        let line = json!({
            "tool": tool.name, "description": tool.description, "params": tool.input_schema,
        });
        text.push_str(&format!("- {line}\n"));
    }
    text.push_str("\n## Calling Tools\n\n");
    text.push_str(RULES);
    text.push_str(" For example:\n\n{\"tool\": \"name\", \"params\": {\"key\": \"value\"}}\n");
    text
}
