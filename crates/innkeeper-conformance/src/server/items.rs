//! The definitions of the tools, prompts and resources.

use serde_json::{Map, Value, json};

/// A tool that appears and disappears, as an example of a change of the list.
pub(crate) const CHANGING_TOOL: &str = "test_changing_tool";

/// A prompt that appears and disappears.
pub(crate) const CHANGING_PROMPT: &str = "test_changing_prompt";

/// The names and descriptions of the tools without arguments.
const PLAIN_TOOLS: &[(&str, &str)] = &[
    ("test_simple_text", "Returns a text"),
    ("test_image_content", "Returns an image"),
    ("test_audio_content", "Returns a sound"),
    ("test_embedded_resource", "Returns an embedded resource"),
    ("test_multiple_content_types", "Returns a text, an image and a resource"),
    ("test_tool_with_logging", "Sends three log messages"),
    ("test_logging_tool", "Sends one log message, if the client requests log messages"),
    ("test_tool_with_progress", "Reports progress"),
    ("test_error_handling", "Fails"),
    ("test_reconnection", "Takes some time"),
    ("test_elicitation_sep1034_defaults", "Shows a form with defaults"),
    ("test_elicitation_sep1330_enums", "Shows a form with choices"),
    ("test_streaming_elicitation", "Reports progress and then shows a form"),
    ("test_missing_capability", "Requires sampling"),
    ("test_trigger_tool_change", "Changes the list of tools"),
    ("test_trigger_prompt_change", "Changes the list of prompts"),
    ("test_input_required_result_elicitation", "Shows a form"),
    ("test_input_required_result_sampling", "Requests a text of the model"),
    ("test_input_required_result_list_roots", "Requests the roots"),
    ("test_input_required_result_request_state", "Shows a form and has a state"),
    ("test_input_required_result_multiple_inputs", "Requests three inputs at once"),
    ("test_input_required_result_multi_round", "Shows two forms, one after the other"),
    ("test_input_required_result_tampered_state", "Shows a form and checks its state"),
    ("test_input_required_result_capabilities", "Requests what the client can give"),
];

pub(crate) fn tools(has_changing_tool: bool) -> Vec<Value> {
    let changing = has_changing_tool.then_some((CHANGING_TOOL, "Returns a text"));
    let plain = PLAIN_TOOLS.iter().copied().chain(changing);
    let mut tools: Vec<Value> =
        plain.map(|(name, description)| tool(name, description, &text_schema(&[]))).collect();
    tools.push(tool("test_elicitation", "Shows a form with a message", &text_schema(&["message"])));
    tools.push(tool("test_sampling", "Sends a prompt to the model", &text_schema(&["prompt"])));
    tools.push(tool(
        "test_header_parameter",
        "Has a parameter that a client also sends as a header",
        &json!({
            "type": "object",
            "properties": { "region": { "type": "string", "x-mcp-header": "Region" } },
            "required": ["region"],
        }),
    ));
    tools.push(tool(
        "json_schema_2020_12_tool",
        "Tool with JSON Schema 2020-12 features",
        &schema_with_many_keywords(),
    ));
    tools
}

fn tool(name: &str, description: &str, schema: &Value) -> Value {
    json!({ "name": name, "description": description, "inputSchema": schema })
}

/// Returns the schema of an object with required strings.
fn text_schema(names: &[&str]) -> Value {
    let properties: Map<_, _> =
        names.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
    json!({ "type": "object", "properties": properties, "required": names })
}

/// Returns the schema whose keywords the suite expects in the list.
fn schema_with_many_keywords() -> Value {
    let string = json!({ "type": "string" });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": string, "city": string },
            },
        },
        "properties": {
            "name": string,
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": string,
            "email": string,
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": {
            "properties": { "contactMethod": { "const": "phone" } },
            "required": ["contactMethod"],
        },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

pub(crate) fn prompts(has_changing_prompt: bool) -> Vec<Value> {
    let prompt = |name: &str, description: &str, arguments: &[&str]| {
        let arguments: Vec<Value> = arguments
            .iter()
            .map(|name| json!({ "name": name, "description": format!("The value of {name}"), "required": true }))
            .collect();
        json!({ "name": name, "description": description, "arguments": arguments })
    };
    let mut prompts = vec![
        prompt("test_simple_prompt", "A text", &[]),
        prompt("test_prompt_with_arguments", "A text with two arguments", &["arg1", "arg2"]),
        prompt("test_prompt_with_embedded_resource", "An embedded resource", &["resourceUri"]),
        prompt("test_prompt_with_image", "An image", &[]),
        prompt("test_input_required_result_prompt", "Shows a form", &[]),
    ];
    if has_changing_prompt {
        prompts.push(prompt(CHANGING_PROMPT, "A text", &[]));
    }
    prompts
}

pub(crate) fn resources() -> Vec<Value> {
    let resources = [
        ("test://static-text", "A text", "text/plain"),
        ("test://static-binary", "An image", "image/png"),
        ("test://watched-resource", "A text to subscribe to", "text/plain"),
        ("test://embedded-resource", "A text that a tool embeds", "text/plain"),
        ("test://mixed-content-resource", "JSON that a tool embeds", "application/json"),
        ("test://example-resource", "A text that a prompt embeds", "text/plain"),
    ];
    resources
        .into_iter()
        .map(|(uri, description, kind)| {
            let name = uri.trim_start_matches("test://");
            json!({ "uri": uri, "name": name, "description": description, "mimeType": kind })
        })
        .collect()
}

pub(crate) fn resource_templates() -> Vec<Value> {
    vec![json!({
        "uriTemplate": "test://template/{id}/data",
        "name": "template",
        "description": "JSON with an id of the URI",
        "mimeType": "application/json",
    })]
}
