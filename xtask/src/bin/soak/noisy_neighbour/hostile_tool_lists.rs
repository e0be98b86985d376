//! Tool lists that harm a client that reads them, as files.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

/// Number of properties of a schema that is too wide.
const WIDE_PROPERTY_COUNT: usize = 50_000;
/// Length of a long description in bytes.
const LONG_DESCRIPTION_BYTES: usize = 1 << 20;
/// Number of levels at which a schema doubles.
const DOUBLING_LEVELS: usize = 30;

/// Writes all tool lists into a directory.
pub(super) fn write_tool_lists(dir: &Path) -> Result<(), String> {
    for (name, tools) in all_tool_lists() {
        let path = tool_list_path(dir, name);
        fs::write(&path, tools.to_string())
            .map_err(|error| format!("`{}`: {error}", path.display()))?;
    }
    Ok(())
}

/// The path of the tool list with this name.
pub(super) fn tool_list_path(dir: &Path, name: &str) -> PathBuf {
    dir.join(name).with_extension("json")
}

fn all_tool_lists() -> [(&'static str, Value); 7] {
    let object = json!({"type": "object"});
    let hidden_text = "Says it\u{200b}\u{202e} again.\u{e0041}\u{e0042}";
    let tree = json!({"type": "object", "properties": {"next": {"$ref": "#"}}});
    let fetches = json!({"properties": {"a": {"$ref": "http://127.0.0.1:9/a.json"}}});
    let pattern = json!({"properties": {"message": {"pattern": "^(a+)+$"}}});
    let repeated = json!({"properties": {"message": {"pattern": "(a{1,9999}){1,9999}"}}});
    let many_properties: Map<String, Value> =
        (0..WIDE_PROPERTY_COUNT).map(|n| (format!("p{n}"), json!({}))).collect();
    let mut wordy = tool_definition("wordy", &object);
    wordy["description"] = json!("x".repeat(LONG_DESCRIPTION_BYTES));
    [
        (
            "alike",
            json!([
                tool_definition("echo", &object),
                tool_definition("ech0", &object),
                tool_definition("Echo", &object)
            ]),
        ),
        ("hidden", json!([{"name": "echo", "description": hidden_text, "inputSchema": object}])),
        ("recursive", json!([tool_definition("echo", &tree)])),
        (
            "fetches",
            json!([tool_definition("echo", &object), tool_definition("fetches", &fetches)]),
        ),
        (
            "doubles",
            json!([
                tool_definition("echo", &object),
                tool_definition("doubles", &doubling_schema())
            ]),
        ),
        (
            "patterns",
            json!([tool_definition("echo", &pattern), tool_definition("repeats", &repeated)]),
        ),
        (
            "wide",
            json!([
                tool_definition("echo", &object),
                tool_definition("wide", &json!({"properties": many_properties})),
                wordy
            ]),
        ),
    ]
}

fn tool_definition(name: &str, schema: &Value) -> Value {
    json!({"name": name, "inputSchema": schema})
}

fn doubling_schema() -> Value {
    let mut bomb = json!({"$ref": "#/$defs/a0"});
    for index in 0..DOUBLING_LEVELS {
        let next = json!({"$ref": format!("#/$defs/a{}", index + 1)});
        bomb["$defs"][format!("a{index}")] = json!({"allOf": [next, next]});
    }
    bomb["$defs"][format!("a{DOUBLING_LEVELS}")] = json!(true);
    bomb
}
