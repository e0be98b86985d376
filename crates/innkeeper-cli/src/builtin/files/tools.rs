//! The tools of the files server: their schemas, and which of them does what.

use serde::Deserialize;
use serde_json::{Value, json};

use super::operations::{self, Outcome};
use super::root::Root;
use crate::builtin::service::{
    Acts, Complaint, Object, Produced, Tool, arguments, described, object,
};

/// All tools as they are listed.
pub(super) fn all() -> Vec<Value> {
    [list(), read(), write(), search(), info()].map(Value::from).to_vec()
}

/// Calls a tool; `None` where there is none of this name.
pub(super) fn call(root: &Root, tool: &str, given: Object) -> Option<Result<Produced, Complaint>> {
    let outcome = match tool {
        "list_directory" => arguments::<At>(given).map(|at| operations::list(root, &at.path)),
        "read_text_file" => arguments::<At>(given).map(|at| operations::read(root, &at.path)),
        "write_file" => arguments::<Write>(given)
            .map(|write| operations::write(root, &write.path, &write.content)),
        "search_text" => arguments::<Search>(given).and_then(|search| search.run(root)),
        "file_info" => arguments::<At>(given).map(|at| operations::info(root, &at.path)),
        _ => return None,
    };
    Some(outcome.and_then(produced))
}

fn produced(outcome: Outcome) -> Result<Produced, Complaint> {
    let (text, structured) = outcome.map_err(|error| error.in_words())?;
    Ok(Produced { text, structured })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct At {
    path: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Write {
    path: String,
    content: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    query: String,
    path: Option<String>,
}

impl Search {
    fn run(&self, root: &Root) -> Result<Outcome, Complaint> {
        if self.query.is_empty() {
            return Err("`query` must not be empty".to_owned());
        }
        Ok(operations::search(root, &self.query, self.path.as_deref().unwrap_or(".")))
    }
}

fn path(what: &str) -> Value {
    described("string", what)
}

fn list() -> Tool {
    let entry = json!({
        "name": { "type": "string" },
        "type": { "enum": ["file", "directory", "symlink", "other"] },
        "size": described("integer", "In bytes, for files"),
    });
    Tool {
        name: "list_directory",
        title: "List a folder",
        description: "Lists the entries of a folder by name, with their kind and size.",
        acts: Acts::Reads,
        takes: object(json!({ "path": path("The folder; `.` is the served folder") }), &["path"]),
        gives: object(
            json!({
                "path": { "type": "string" },
                "entries": { "type": "array", "items": object(entry, &["name", "type"]) },
                "truncated": described("boolean", "Whether entries were left out"),
            }),
            &["path", "entries", "truncated"],
        ),
    }
}

fn read() -> Tool {
    Tool {
        name: "read_text_file",
        title: "Read a text file",
        description: "Gives the whole text of a UTF-8 file of at most 1 MiB.",
        acts: Acts::Reads,
        takes: object(json!({ "path": path("The file") }), &["path"]),
        gives: object(
            json!({
                "path": { "type": "string" },
                "text": { "type": "string" },
                "size": described("integer", "In bytes"),
            }),
            &["path", "text", "size"],
        ),
    }
}

fn write() -> Tool {
    Tool {
        name: "write_file",
        title: "Write a text file",
        description: "Creates a file or replaces its whole content. The folder must be there.",
        acts: Acts::Replaces,
        takes: object(
            json!({ "path": path("The file"), "content": path("Its whole new text, at most 1 MiB") }),
            &["path", "content"],
        ),
        gives: object(
            json!({
                "path": { "type": "string" },
                "size": described("integer", "In bytes"),
                "created": described("boolean", "Whether the file is new"),
            }),
            &["path", "size", "created"],
        ),
    }
}

fn search() -> Tool {
    let found = json!({
        "path": { "type": "string" },
        "line": described("integer", "Counted from 1"),
        "text": { "type": "string" },
    });
    Tool {
        name: "search_text",
        title: "Search text files",
        description: "Finds the lines that contain a text, exactly as written, in all text files \
                      below a folder.",
        acts: Acts::Reads,
        takes: object(
            json!({
                "query": path("The text to look for, not a pattern"),
                "path": path("A folder or file to look in; everything if absent"),
            }),
            &["query"],
        ),
        gives: object(
            json!({
                "matches": { "type": "array", "items": object(found, &["path", "line", "text"]) },
                "filesSearched": { "type": "integer" },
                "truncated": described("boolean", "Whether a limit cut the search short"),
            }),
            &["matches", "filesSearched", "truncated"],
        ),
    }
}

fn info() -> Tool {
    Tool {
        name: "file_info",
        title: "Describe a file",
        description: "Tells the kind, size and time of change of a file or folder.",
        acts: Acts::Reads,
        takes: object(json!({ "path": path("The file or folder") }), &["path"]),
        gives: object(
            json!({
                "path": { "type": "string" },
                "type": { "enum": ["file", "directory", "other"] },
                "size": described("integer", "In bytes"),
                "readOnly": { "type": "boolean" },
                "modified": described("string", "RFC 3339, UTC"),
            }),
            &["path", "type", "size", "readOnly"],
        ),
    }
}
