//! Tools that are made to hurt whoever reads their list, in files that a server reads them from.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

/// Members of a schema that is too wide.
const WIDE: usize = 50_000;
/// Bytes of a long description.
const LONG: usize = 1 << 20;
/// How often a schema doubles.
const DOUBLINGS: usize = 30;

/// Writes all of them into this folder.
pub(super) fn write(folder: &Path) -> Result<(), String> {
    for (name, tools) in all() {
        let path = path(folder, name);
        let problem = |error| format!("`{}`: {error}", path.display());
        fs::write(&path, tools.to_string()).map_err(problem)?;
    }
    Ok(())
}

/// Where the tools with this name are.
pub(super) fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(name).with_extension("json")
}

fn all() -> [(&'static str, Value); 7] {
    let object = json!({"type": "object"});
    let hidden = "Says it\u{200b}\u{202e} again.\u{e0041}\u{e0042}";
    let tree = json!({"type": "object", "properties": {"next": {"$ref": "#"}}});
    let fetches = json!({"properties": {"a": {"$ref": "http://127.0.0.1:9/a.json"}}});
    let pattern = json!({"properties": {"message": {"pattern": "^(a+)+$"}}});
    let repeated = json!({"properties": {"message": {"pattern": "(a{1,9999}){1,9999}"}}});
    let many: Map<String, Value> = (0..WIDE).map(|n| (format!("p{n}"), json!({}))).collect();
    let mut wordy = tool("wordy", &object);
    wordy["description"] = json!("x".repeat(LONG));
    [
        ("alike", json!([tool("echo", &object), tool("ech0", &object), tool("Echo", &object)])),
        ("hidden", json!([{"name": "echo", "description": hidden, "inputSchema": object}])),
        ("recursive", json!([tool("echo", &tree)])),
        ("fetches", json!([tool("echo", &object), tool("fetches", &fetches)])),
        ("doubles", json!([tool("echo", &object), tool("doubles", &doubling())])),
        ("patterns", json!([tool("echo", &pattern), tool("repeats", &repeated)])),
        ("wide", json!([tool("echo", &object), tool("wide", &json!({"properties": many})), wordy])),
    ]
}

fn tool(name: &str, schema: &Value) -> Value {
    json!({"name": name, "inputSchema": schema})
}

fn doubling() -> Value {
    let mut bomb = json!({"$ref": "#/$defs/a0"});
    for index in 0..DOUBLINGS {
        let next = json!({"$ref": format!("#/$defs/a{}", index + 1)});
        bomb["$defs"][format!("a{index}")] = json!({"allOf": [next, next]});
    }
    bomb["$defs"][format!("a{DOUBLINGS}")] = json!(true);
    bomb
}
