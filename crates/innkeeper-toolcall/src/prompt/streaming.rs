//! System prompt for chats whose streamed text contains the calls.
//!
//! The example calls a tool that is not available, so that a model that repeats the prompt calls
//! nothing.

use super::sanitized_tool::SanitizedTool;
use crate::{Tools, resolve, sanitize};

/// Rules for writing calls in streamed text.
pub const TOOL_CALL_RULES: &str = "A call is one complete JSON object on a line of its own, with \
nothing before it or in it. Explain before or after it, never in the middle. Wait for the results \
before you use them.";

/// Names for the tool of the example, in order of preference.
const EXAMPLE_TOOL_NAMES: [&str; 4] =
    ["name", "tool_name", "name_of_the_tool", "the_tool_you_call"];

/// Returns the system prompt with the tools and [`TOOL_CALL_RULES`]. Without tools, returns
/// `system` unchanged.
pub fn streaming_system_prompt(system: &str, tools: &Tools) -> String {
    let mut text = String::from(system);
    if tools.is_empty() {
        return text;
    }
    if !system.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str("## Available Tools\n\n");
    for tool in tools.iter() {
        let SanitizedTool { description, parameters, .. } = SanitizedTool::from_tool(tool);
        let name = sanitize::quote_for_prompt(&tool.name);
        let description = if description.is_empty() { "\"\"" } else { &description };
        text.push_str(&format!(
            "- {{\"tool\": {name}, \"description\": {description}, \"params\": {parameters}}}\n"
        ));
    }
    text.push_str("\n## Calling Tools\n\n");
    text.push_str(TOOL_CALL_RULES);
    match EXAMPLE_TOOL_NAMES.iter().find(|name| resolve(tools, name).is_none()) {
        Some(name) => text.push_str(&format!(
            " For example:\n\n{{\"tool\": \"{name}\", \"params\": {{\"key\": \"value\"}}}}\n"
        )),
        None => text.push('\n'),
    }
    text
}
