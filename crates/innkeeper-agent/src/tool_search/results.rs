//! The results of the two tools of a search.
//!
//! The descriptions are texts of servers. Each string is quoted, so that a text cannot end the JSON
//! and contains no call marker.

use innkeeper_toolcall::search_tools::{self, unknown_name};
use innkeeper_toolcall::{Tool, suggest, to_json_line};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::search::Search;
use crate::tools::ToolOutput;

pub(super) fn found_tools(search: &Search, names: &[&str]) -> serde_json::Result<ToolOutput> {
    let found = names.iter().filter_map(|name| search.searched.get(name));
    let found = found.map(|tool| (tool.name.as_str(), tool.description.as_str()));
    let result = search_tools::found_tools(found, search.searched.len());
    to_output(&result, false)
}

/// Returns the definitions of the tools with these names, and the names without a tool. The result
/// is an error if no name has a tool.
pub(super) fn described_tools(search: &Search, names: &[&str]) -> serde_json::Result<ToolOutput> {
    let mut tools = Vec::new();
    let mut unknown_names = Vec::new();
    for name in names {
        match search.searched.get(name) {
            Some(Tool { name, description, input_schema }) => tools.push(
                json!({"name": name, "description": description, "inputSchema": input_schema}),
            ),
            None => unknown_names.push(unknown_name(name, &suggest(&search.searched, name))),
        }
    }
    let is_error = tools.is_empty();
    let mut result = json!({"tools": tools});
    if !unknown_names.is_empty() {
        result["unknownNames"] = unknown_names.into();
    }
    to_output(&result, is_error)
}

fn to_output(result: &Value, is_error: bool) -> serde_json::Result<ToolOutput> {
    let content = json!({"content": [{"type": "text", "text": to_json_line(result)}]});
    Ok(ToolOutput::new(to_raw_value(&content)?, is_error))
}
