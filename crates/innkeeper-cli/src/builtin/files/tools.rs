//! Tool definitions of the files server, with their dispatch.

use serde::Deserialize;
use serde_json::{Value, json};

use super::operations::{self, OperationResult};
use super::root::RootDirectory;
use crate::builtin::service::{
    FailureMessage, JsonObject, ToolDefinition, ToolEffect, ToolOutput, object_schema,
    parse_arguments, property_schema,
};

pub(super) fn definitions() -> Vec<Value> {
    [list_tool(), read_tool(), write_tool(), search_tool(), info_tool()].map(Value::from).to_vec()
}

/// Calls a tool; `None` if there is no tool of this name.
pub(super) fn call_tool(
    root: &RootDirectory,
    tool: &str,
    arguments: JsonObject,
) -> Option<Result<ToolOutput, FailureMessage>> {
    let outcome =
        match tool {
            "list_directory" => parse_arguments::<PathArguments>(arguments)
                .map(|at| operations::list(root, &at.path)),
            "read_text_file" => parse_arguments::<PathArguments>(arguments)
                .map(|at| operations::read(root, &at.path)),
            "write_file" => parse_arguments::<WriteArguments>(arguments)
                .map(|write| operations::write(root, &write.path, &write.content)),
            "search_text" => {
                parse_arguments::<SearchArguments>(arguments).and_then(|search| search.run(root))
            }
            "file_info" => parse_arguments::<PathArguments>(arguments)
                .map(|at| operations::info(root, &at.path)),
            _ => return None,
        };
    Some(outcome.and_then(into_tool_output))
}

fn into_tool_output(outcome: OperationResult) -> Result<ToolOutput, FailureMessage> {
    let (text, structured) = outcome.map_err(|error| error.describe())?;
    Ok(ToolOutput { text, structured })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PathArguments {
    path: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteArguments {
    path: String,
    content: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    query: String,
    path: Option<String>,
}

impl SearchArguments {
    fn run(&self, root: &RootDirectory) -> Result<OperationResult, FailureMessage> {
        if self.query.is_empty() {
            return Err("`query` must not be empty".to_owned());
        }
        Ok(operations::search(root, &self.query, self.path.as_deref().unwrap_or(".")))
    }
}

fn string_schema(description: &str) -> Value {
    property_schema("string", description)
}

fn list_tool() -> ToolDefinition {
    let entry = json!({
        "name": { "type": "string" },
        "type": { "enum": ["file", "directory", "symlink", "other"] },
        "size": property_schema("integer", "In bytes, for files"),
    });
    ToolDefinition {
        name: "list_directory",
        title: "List a folder",
        description: "Lists the entries of a folder by name, with their kind and size.",
        effect: ToolEffect::ReadOnly,
        input_schema: object_schema(
            json!({ "path": string_schema("The folder; `.` is the served folder") }),
            &["path"],
        ),
        output_schema: object_schema(
            json!({
                "path": { "type": "string" },
                "entries": { "type": "array", "items": object_schema(entry, &["name", "type"]) },
                "truncated": property_schema("boolean", "Whether entries were left out"),
            }),
            &["path", "entries", "truncated"],
        ),
    }
}

fn read_tool() -> ToolDefinition {
    ToolDefinition {
        name: "read_text_file",
        title: "Read a text file",
        description: "Gives the whole text of a UTF-8 file of at most 1 MiB.",
        effect: ToolEffect::ReadOnly,
        input_schema: object_schema(json!({ "path": string_schema("The file") }), &["path"]),
        output_schema: object_schema(
            json!({
                "path": { "type": "string" },
                "text": { "type": "string" },
                "size": property_schema("integer", "In bytes"),
            }),
            &["path", "text", "size"],
        ),
    }
}

fn write_tool() -> ToolDefinition {
    ToolDefinition {
        name: "write_file",
        title: "Write a text file",
        description: "Creates a file or replaces its whole content. The folder must be there.",
        effect: ToolEffect::Replace,
        input_schema: object_schema(
            json!({ "path": string_schema("The file"), "content": string_schema("Its whole new text, at most 1 MiB") }),
            &["path", "content"],
        ),
        output_schema: object_schema(
            json!({
                "path": { "type": "string" },
                "size": property_schema("integer", "In bytes"),
                "created": property_schema("boolean", "Whether the file is new"),
            }),
            &["path", "size", "created"],
        ),
    }
}

fn search_tool() -> ToolDefinition {
    let match_schema = json!({
        "path": { "type": "string" },
        "line": property_schema("integer", "Counted from 1"),
        "text": { "type": "string" },
    });
    ToolDefinition {
        name: "search_text",
        title: "Search text files",
        description: "Finds the lines that contain a text, exactly as written, in all text files \
                      below a folder.",
        effect: ToolEffect::ReadOnly,
        input_schema: object_schema(
            json!({
                "query": string_schema("The text to look for, not a pattern"),
                "path": string_schema("A folder or file to look in; everything if absent"),
            }),
            &["query"],
        ),
        output_schema: object_schema(
            json!({
                "matches": { "type": "array", "items": object_schema(match_schema, &["path", "line", "text"]) },
                "filesSearched": { "type": "integer" },
                "truncated": property_schema("boolean", "Whether a limit cut the search short"),
            }),
            &["matches", "filesSearched", "truncated"],
        ),
    }
}

fn info_tool() -> ToolDefinition {
    ToolDefinition {
        name: "file_info",
        title: "Describe a file",
        description: "Tells the kind, size and time of change of a file or folder.",
        effect: ToolEffect::ReadOnly,
        input_schema: object_schema(
            json!({ "path": string_schema("The file or folder") }),
            &["path"],
        ),
        output_schema: object_schema(
            json!({
                "path": { "type": "string" },
                "type": { "enum": ["file", "directory", "other"] },
                "size": property_schema("integer", "In bytes"),
                "readOnly": { "type": "boolean" },
                "modified": property_schema("string", "RFC 3339, UTC"),
            }),
            &["path", "type", "size", "readOnly"],
        ),
    }
}
