//! What the fixture server offers: its default tools, prompts and resources.

use serde_json::{Value, json};

use super::switch::Switches;
use super::tally;

/// Everything listed, as the JSON that is listed.
#[derive(Clone, Debug)]
pub(super) struct Catalog {
    pub(super) tools: Vec<Value>,
    pub(super) prompts: Vec<Value>,
    pub(super) resources: Vec<Value>,
    pub(super) templates: Vec<Value>,
}

impl Catalog {
    /// The default catalog, with the lists that switches give in place of the default ones.
    pub(super) fn new(switches: &Switches) -> Result<Self, String> {
        let name = switches.server();
        let mut tools = given(switches, "--tools", "tools", default_tools)?;
        if switches.on("--list-changed") {
            tools.extend(changing_tools());
        }
        if switches.on("--touch") {
            let schema = object(&json!({"uri": {"type": "string"}}), &["uri"]);
            tools.push(tool("touch", "Says that a resource has changed.", &schema));
        }
        if switches.on("--tally") {
            tools.push(tally::tool());
        }
        Ok(Self {
            tools,
            prompts: given(switches, "--prompts", "prompts", prompts)?,
            resources: given(switches, "--resources", "resources", || resources(name))?,
            templates: given(switches, "--templates", "resourceTemplates", || templates(name))?,
        })
    }

    /// Whether a tool of this name is listed.
    pub(super) fn has_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool["name"] == name)
    }
}

/// The list of a switch, or the default one. Its value is JSON text, or a file of it: an array, or an
/// object with the member that has one.
fn given(
    switches: &Switches,
    switch: &str,
    member: &str,
    default: impl FnOnce() -> Vec<Value>,
) -> Result<Vec<Value>, String> {
    let Some(given) = switches.text(switch) else { return Ok(default()) };
    let text = if given.trim_start().starts_with(['[', '{']) {
        given.to_owned()
    } else {
        std::fs::read_to_string(given).map_err(|error| format!("`{switch} {given}`: {error}"))?
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
    let mut add =
        tool("add", "Adds two numbers.", &object(&json!({"a": number, "b": number}), &["a", "b"]));
    add["outputSchema"] = object(&json!({"sum": number}), &["sum"]);
    let mut read = tool("read", "Reads a text file.", &object(&json!({"path": string}), &["path"]));
    read["annotations"] = json!({"readOnlyHint": true});
    vec![
        tool("echo", "Says the message back.", &object(&json!({"message": string}), &["message"])),
        add,
        tool("a.b", "Has a dot in its name.", &object(&json!({}), &[])),
        tool("fail", "Always reports an error.", &object(&json!({}), &[])),
        tool("env", "Tells how it was started.", &object(&json!({"name": string}), &[])),
        read,
        tool("sleep", "Answers after a while.", &object(&json!({"ms": integer}), &["ms"])),
        tool("big", "Answers with much text.", &object(&json!({"bytes": integer}), &["bytes"])),
        tool("pid", "Tells its process id.", &object(&json!({}), &[])),
    ]
}

/// The tools `--list-changed` adds.
fn changing_tools() -> [Value; 2] {
    let schema = object(&json!({"what": {"enum": ["tools", "prompts", "resources"]}}), &[]);
    [
        tool("grow", "Adds one entry to a list.", &schema),
        tool("shrink", "Takes the last entry from a list.", &schema),
    ]
}

fn prompts() -> Vec<Value> {
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

fn resources(name: &str) -> Vec<Value> {
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

fn templates(name: &str) -> Vec<Value> {
    vec![json!({
        "uriTemplate": format!("fx://{name}/item/{{id}}"), "name": "item",
        "description": "One item by its id.", "mimeType": "text/plain",
    })]
}

/// A tool definition.
pub(super) fn tool(name: &str, description: &str, schema: &Value) -> Value {
    json!({"name": name, "description": description, "inputSchema": schema})
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}
