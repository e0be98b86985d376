//! The OpenAPI 3.1 description of tools.

use serde_json::{Map, Value, json};

use crate::offering::ListItem;

/// The statuses of problems, apart from those of [`Problem`](super::Problem) that no client causes.
const PROBLEM_STATUSES: [u16; 11] = [400, 401, 403, 404, 408, 413, 415, 429, 500, 502, 504];

/// The keywords whose members are schemas by name.
const SCHEMA_MAPS: [&str; 5] =
    ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];

/// The keywords whose value is no schema.
const VALUES: [&str; 5] = ["const", "default", "enum", "example", "examples"];

/// Describes each tool as one operation.
pub(super) fn description<'t>(
    base_path: &str,
    tools: impl Iterator<Item = &'t ListItem>,
    needs_credential: bool,
) -> Value {
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    schemas.insert("Problem".to_owned(), problem_schema());
    for (number, tool) in tools.enumerate() {
        // The host excludes definitions that are no JSON object.
        let Ok(definition) = serde_json::from_str::<Map<String, Value>>(&tool.text) else {
            continue;
        };
        let path = format!("/tools/{}", escape_path_segment(&tool.name));
        let operation = operation(&tool.name, number, &definition, &mut schemas);
        paths.insert(path, json!({ "post": operation }));
    }
    let mut document = json!({
        "openapi": "3.1.0",
        "info": { "title": "Innkeeper", "version": env!("CARGO_PKG_VERSION") },
        "paths": paths,
        "components": { "schemas": schemas },
    });
    if !base_path.is_empty() {
        document["servers"] = json!([{ "url": base_path }]);
    }
    if needs_credential {
        // Both kinds of credentials; a request with a second credential is rejected.
        let schemes = json!({ "bearer": { "type": "http", "scheme": "bearer" } });
        document["components"]["securitySchemes"] = schemes;
        document["security"] = json!([{ "bearer": [] }]);
    }
    document
}

fn operation(
    name: &str,
    number: usize,
    definition: &Map<String, Value>,
    schemas: &mut Map<String, Value>,
) -> Value {
    let mut add_schema = |kind: &str, schema: &Value| {
        let key = format!("{}.{kind}", component_key(name, number));
        let place = format!("#/components/schemas/{key}");
        schemas.insert(key, relocated(schema, &place));
        json!({ "$ref": place })
    };
    let arguments = definition.get("inputSchema").map(|schema| add_schema("arguments", schema));
    let output = definition.get("outputSchema").map(|schema| add_schema("output", schema));
    let json_body = |schema: Value| json!({ "application/json": { "schema": schema } });
    let result = json!({
        "description": "The result of the tool. With `isError`, `content` describes the error.",
        "content": json_body(result_schema(output)),
    });
    let problem = json!({
        "description": "The tool has no result.",
        "content": { "application/problem+json": {
            "schema": { "$ref": "#/components/schemas/Problem" },
        } },
    });
    let mut responses = Map::from_iter([("200".to_owned(), result)]);
    responses.extend(PROBLEM_STATUSES.iter().map(|status| (status.to_string(), problem.clone())));
    let mut operation = json!({
        "operationId": name,
        "requestBody": {
            "required": true,
            "content": json_body(arguments.unwrap_or_else(|| json!({ "type": "object" }))),
        },
        "responses": responses,
    });
    for (key, member) in [("summary", "title"), ("description", "description")] {
        if let Some(Value::String(text)) = definition.get(member) {
            operation[key] = json!(text);
        }
    }
    operation
}

/// Describes a result of `tools/call`.
fn result_schema(output: Option<Value>) -> Value {
    let mut properties = json!({
        "content": { "type": "array", "items": { "type": "object" } },
        "isError": { "type": "boolean" },
    });
    if let Some(output) = output {
        properties["structuredContent"] = output;
    }
    json!({ "type": "object", "properties": properties, "required": ["content"] })
}

fn problem_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "type": { "type": "string" },
            "title": { "type": "string" },
            "status": { "type": "integer" },
            "detail": { "type": "string", "description": "What failed, and why." },
            "hint": { "type": "string", "description": "What the client can do." },
            "tool": { "type": "string" },
            "code": { "type": "integer", "description": "The code of the same error in MCP." },
            "data": { "description": "Further members of the error in MCP." },
        },
        "required": ["type", "title", "status", "detail"],
    })
}

/// Returns the key of a tool among the components: its name, if a key may have its characters.
fn component_key(name: &str, number: usize) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if name.chars().all(is_allowed) { name.to_owned() } else { format!("tool-{number}") }
}

/// Escapes a name as one segment of a path.
fn escape_path_segment(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let escape = |byte: u8| {
        if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    name.bytes().map(escape).collect()
}

/// Returns a schema whose references to its own parts name their place in the description. A part
/// with an `$id` is the base of its references.
fn relocated(schema: &Value, place: &str) -> Value {
    match schema {
        Value::Object(members) if !members.contains_key("$id") => {
            let members = members.iter().map(|(key, value)| {
                let value = match value {
                    Value::String(target) if key == "$ref" || key == "$dynamicRef" => {
                        let own = target
                            .strip_prefix('#')
                            .filter(|part| part.is_empty() || part.starts_with('/'));
                        own.map_or_else(|| value.clone(), |part| json!(format!("{place}{part}")))
                    }
                    Value::Object(parts) if SCHEMA_MAPS.contains(&key.as_str()) => {
                        let parts =
                            parts.iter().map(|(name, part)| (name.clone(), relocated(part, place)));
                        Value::Object(parts.collect())
                    }
                    _ if VALUES.contains(&key.as_str()) => value.clone(),
                    _ => relocated(value, place),
                };
                (key.clone(), value)
            });
            Value::Object(members.collect())
        }
        Value::Array(parts) => parts.iter().map(|part| relocated(part, place)).collect(),
        _ => schema.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(definition: &Value) -> ListItem {
        let name = definition["name"].as_str().unwrap_or_default();
        ListItem { name: name.into(), text: definition.to_string() }
    }

    #[test]
    fn references_within_a_schema_name_their_place_in_the_description() {
        let tool = item(&json!({ "name": "a.tree", "inputSchema": {
            "type": "object",
            "properties": { "$ref": { "$ref": "#/$defs/node" }, "root": { "$ref": "#" } },
            "$defs": { "node": { "default": { "$ref": "#/kept" } } },
        } }));
        let document = description("", std::iter::once(&tool), false);
        let schema = &document["components"]["schemas"]["a.tree.arguments"];
        let place = "#/components/schemas/a.tree.arguments";
        assert_eq!(schema["properties"]["$ref"]["$ref"], format!("{place}/$defs/node"));
        assert_eq!(schema["properties"]["root"]["$ref"], place);
        assert_eq!(schema["$defs"]["node"]["default"]["$ref"], "#/kept");
        let body = &document["paths"]["/tools/a.tree"]["post"]["requestBody"];
        assert_eq!(body["content"]["application/json"]["schema"]["$ref"], place);
    }

    #[test]
    fn a_name_with_any_character_is_one_segment_and_has_a_valid_key() {
        let tool = item(&json!({ "name": "a.b/c {d}", "inputSchema": { "type": "object" } }));
        let document = description("/endpoints/e", std::iter::once(&tool), true);
        let operation = &document["paths"]["/tools/a.b%2Fc%20%7Bd%7D"]["post"];
        assert_eq!(operation["operationId"], "a.b/c {d}");
        assert!(document["components"]["schemas"]["tool-0.arguments"].is_object(), "{document}");
        assert_eq!(document["servers"][0]["url"], "/endpoints/e");
        assert_eq!(document["security"][0]["bearer"], json!([]));
    }
}
