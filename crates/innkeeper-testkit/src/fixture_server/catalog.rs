//! The features of the fixture server: default tools, prompts and resources.

use serde_json::{Value, json};

use super::call_log;
use super::switches::Switches;

/// The listed items as JSON.
#[derive(Clone, Debug)]
pub(super) struct Catalog {
    pub(super) tools: Vec<Value>,
    pub(super) prompts: Vec<Value>,
    pub(super) resources: Vec<Value>,
    pub(super) templates: Vec<Value>,
}

impl Catalog {
    /// Creates the default catalog, with the lists that switches replace.
    pub(super) fn new(switches: &Switches) -> Result<Self, String> {
        let name = switches.server_name();
        let mut tools = items_from_switch(switches, "--tools", "tools", default_tools)?;
        if switches.is_set("--list-changed") {
            tools.extend(list_changing_tools());
        }
        if switches.is_set("--touch") {
            let schema = object_schema(&json!({"uri": {"type": "string"}}), &["uri"]);
            tools.push(tool("touch", "Says that a resource has changed.", &schema));
        }
        if switches.is_set("--notes") {
            let schema = object_schema(&json!({"text": {"type": "string"}}), &["text"]);
            tools.push(tool("note", "Keeps a text in memory.", &schema));
            tools.push(tool("notes", "Returns all kept texts.", &object_schema(&json!({}), &[])));
        }
        if switches.is_set("--tally") {
            tools.push(call_log::tool_definition());
        }
        Ok(Self {
            tools,
            prompts: items_from_switch(switches, "--prompts", "prompts", default_prompts)?,
            resources: items_from_switch(switches, "--resources", "resources", || {
                default_resources(name)
            })?,
            templates: items_from_switch(switches, "--templates", "resourceTemplates", || {
                default_templates(name)
            })?,
        })
    }

    pub(super) fn has_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool["name"] == name)
    }
}

/// The list of a switch, or the default list. The value of the switch is JSON text or the path of a
/// JSON file: an array, or an object with the array in `member`.
fn items_from_switch(
    switches: &Switches,
    switch: &str,
    member: &str,
    default: impl FnOnce() -> Vec<Value>,
) -> Result<Vec<Value>, String> {
    let Some(path) = switches.value(switch) else { return Ok(default()) };
    let text = if path.trim_start().starts_with(['[', '{']) {
        path.to_owned()
    } else {
        std::fs::read_to_string(path).map_err(|error| format!("`{switch} {path}`: {error}"))?
    };
    match serde_json::from_str(&text) {
        Ok(Value::Array(items)) => Ok(items),
        Ok(Value::Object(mut object)) => match object.remove(member) {
            Some(Value::Array(items)) => Ok(items),
            _ => Err(format!("`{switch}`: the object has no array `{member}`")),
        },
        Ok(_) => Err(format!("`{switch}`: neither an array nor an object")),
        Err(error) => Err(format!("`{switch}`: {error}")),
    }
}

fn default_tools() -> Vec<Value> {
    let string = json!({"type": "string"});
    let number = json!({"type": "number"});
    let integer = json!({"type": "integer", "minimum": 0});
    let mut add = tool(
        "add",
        "Adds two numbers.",
        &object_schema(&json!({"a": number, "b": number}), &["a", "b"]),
    );
    add["outputSchema"] = object_schema(&json!({"sum": number}), &["sum"]);
    let mut read =
        tool("read", "Reads a text file.", &object_schema(&json!({"path": string}), &["path"]));
    read["annotations"] = json!({"readOnlyHint": true});
    vec![
        tool(
            "echo",
            "Says the message back.",
            &object_schema(&json!({"message": string}), &["message"]),
        ),
        add,
        tool("a.b", "Has a dot in its name.", &object_schema(&json!({}), &[])),
        tool("fail", "Always reports an error.", &object_schema(&json!({}), &[])),
        tool("env", "Tells how it was started.", &object_schema(&json!({"name": string}), &[])),
        read,
        tool("sleep", "Answers after a while.", &object_schema(&json!({"ms": integer}), &["ms"])),
        tool(
            "big",
            "Answers with much text.",
            &object_schema(&json!({"bytes": integer}), &["bytes"]),
        ),
        tool("pid", "Tells its process id.", &object_schema(&json!({}), &[])),
    ]
}

/// The tools that `--list-changed` adds.
fn list_changing_tools() -> [Value; 2] {
    let schema = object_schema(&json!({"what": {"enum": ["tools", "prompts", "resources"]}}), &[]);
    [
        tool("grow", "Adds one entry to a list.", &schema),
        tool("shrink", "Takes the last entry from a list.", &schema),
    ]
}

fn default_prompts() -> Vec<Value> {
    vec![
        json!({
            "name": "greet", "description": "Greets somebody.",
            "arguments": [
                {"name": "name", "description": "Who to greet.", "required": true},
                {"name": "style", "description": "How to greet.", "required": false},
            ],
        }),
        json!({"name": "plain", "description": "Takes no arguments."}),
    ]
}

fn default_resources(name: &str) -> Vec<Value> {
    vec![
        json!({
            "uri": format!("fx://{name}/static"), "name": "static",
            "description": "Text that counts its readings.", "mimeType": "text/plain",
        }),
        json!({
            "uri": "fx://shared", "name": "shared",
            "description": "An address every fixture server owns.", "mimeType": "text/plain",
        }),
    ]
}

fn default_templates(name: &str) -> Vec<Value> {
    vec![json!({
        "uriTemplate": format!("fx://{name}/item/{{id}}"), "name": "item",
        "description": "One item by its id.", "mimeType": "text/plain",
    })]
}

pub(super) fn tool(name: &str, description: &str, schema: &Value) -> Value {
    json!({"name": name, "description": description, "inputSchema": schema})
}

fn object_schema(properties: &Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}
