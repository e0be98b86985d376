//! The OpenAPI 3.1 description of tools.

use std::collections::HashSet;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use crate::offering::ListItem;

/// The statuses of problems, apart from those of [`Problem`](super::Problem) that no client causes.
const PROBLEM_STATUSES: [u16; 11] = [400, 401, 403, 404, 408, 413, 415, 429, 500, 502, 504];

/// The keywords whose members are schemas by name.
const SCHEMA_MAPS: [&str; 5] =
    ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];

/// The keywords with the definitions of a schema.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// Maximum length of the id of an operation: what models and several clients take for a function.
const MAX_OPERATION_ID_BYTES: usize = 64;

/// The keywords whose value is no schema.
const VALUES: [&str; 5] = ["const", "default", "enum", "example", "examples"];

/// All characters but the unreserved ones of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Describes each tool as one operation.
pub(super) fn description<'t>(
    base_path: &str,
    tools: impl Iterator<Item = &'t ListItem>,
    needs_credential: bool,
) -> Value {
    let mut paths = Map::new();
    let mut components = Components::default();
    components.schemas.insert("Problem".to_owned(), problem_schema());
    for tool in tools {
        // The host excludes definitions that are no JSON object.
        let Ok(definition) = serde_json::from_str::<Map<String, Value>>(&tool.text) else {
            continue;
        };
        let path = format!("/tools/{}", utf8_percent_encode(&tool.name, RESERVED));
        let operation = operation(&tool.name, &definition, &mut components);
        paths.insert(path, json!({ "post": operation }));
    }
    let mut document = json!({
        "openapi": "3.1.0",
        "info": { "title": "Innkeeper", "version": env!("CARGO_PKG_VERSION") },
        "paths": paths,
        "components": { "schemas": components.schemas },
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

/// The schemas of all tools, and the ids of their operations.
#[derive(Debug, Default)]
struct Components {
    schemas: Map<String, Value>,
    operation_ids: HashSet<String>,
}

impl Components {
    /// Returns an id for the operation of a tool that applications can use as the name of a function.
    fn operation_id(&mut self, name: &str) -> String {
        let plain = plain_name(name);
        let numbered = (2..).map(|number: usize| {
            let suffix = format!("_{number}");
            let end = plain.len().min(MAX_OPERATION_ID_BYTES - suffix.len());
            format!("{}{suffix}", &plain[..end])
        });
        let mut ids = std::iter::once(plain.clone()).chain(numbered);
        let id = ids.find(|id| !self.operation_ids.contains(id)).unwrap_or_default();
        self.operation_ids.insert(id.clone());
        id
    }

    /// Adds a schema of a tool, and its definitions as components of their own: generators find them
    /// nowhere else. Returns the reference to the schema.
    fn add(&mut self, key: &str, schema: &Value) -> Value {
        let mut definitions = Vec::new();
        for keyword in DEFINITIONS {
            let Some(Value::Object(parts)) = schema.get(keyword) else { continue };
            for (name, part) in parts {
                let own = self.free_key(&format!("{key}.{}", plain_name(name)));
                self.schemas.insert(own.clone(), Value::Null);
                definitions.push((format!("/{keyword}/{}", escape_pointer(name)), own, part));
            }
        }
        let places = Places {
            schema: place(key),
            definitions: definitions
                .iter()
                .map(|(pointer, own, _)| (pointer.clone(), place(own)))
                .collect(),
        };
        for (_, own, part) in definitions {
            self.schemas.insert(own, places.relocated(part));
        }
        let mut relocated = places.relocated(schema);
        if let Value::Object(members) = &mut relocated {
            DEFINITIONS.iter().for_each(|keyword| drop(members.remove(*keyword)));
            // The description has one dialect.
            members.remove("$schema");
        }
        self.schemas.insert(key.to_owned(), relocated);
        json!({ "$ref": places.schema })
    }

    fn free_key(&self, key: &str) -> String {
        let numbered = (2..).map(|number: usize| format!("{key}_{number}"));
        let mut keys = std::iter::once(key.to_owned()).chain(numbered);
        keys.find(|key| !self.schemas.contains_key(key)).unwrap_or_default()
    }
}

/// Returns the reference to a component.
fn place(key: &str) -> String {
    format!("#/components/schemas/{key}")
}

fn operation(name: &str, definition: &Map<String, Value>, components: &mut Components) -> Value {
    let id = components.operation_id(name);
    let mut add_schema =
        |kind: &str, schema: &Value| components.add(&format!("{id}.{kind}"), schema);
    let arguments = definition.get("inputSchema").map(|schema| add_schema("arguments", schema));
    let output = definition.get("outputSchema").map(|schema| add_schema("output", schema));
    let result = json!({
        "description": "The result of the tool. With `isError`, `content` describes the error.",
        "content": { "application/json": { "schema": result_schema(output) } },
    });
    let problem = json!({
        "description": "The tool has no result.",
        "content": { "application/problem+json": {
            "schema": { "$ref": "#/components/schemas/Problem" },
        } },
    });
    let mut responses = Map::from_iter([("200".to_owned(), result)]);
    responses.extend(PROBLEM_STATUSES.iter().map(|status| (status.to_string(), problem.clone())));
    let arguments = arguments.unwrap_or_else(|| json!({ "type": "object" }));
    let mut operation = json!({
        "operationId": id,
        "requestBody": {
            "required": true,
            "content": { "application/json": { "schema": arguments } },
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

/// Returns a name with the characters of functions and keys, of bounded length.
fn plain_name(name: &str) -> String {
    let plain = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' });
    plain.take(MAX_OPERATION_ID_BYTES).collect()
}

/// Escapes a name as one part of a JSON pointer.
fn escape_pointer(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Where the parts of a schema are in the description.
struct Places {
    schema: String,
    /// The definitions by their pointers within the schema.
    definitions: Vec<(String, String)>,
}

impl Places {
    /// Returns the place of a reference within the schema; `None` for another reference.
    fn of(&self, target: &str) -> Option<String> {
        let part =
            target.strip_prefix('#').filter(|part| part.is_empty() || part.starts_with('/'))?;

        let definition = self.definitions.iter().find_map(|(pointer, place)| {
            let rest = part.strip_prefix(pointer.as_str())?;
            (rest.is_empty() || rest.starts_with('/')).then(|| format!("{place}{rest}"))
        });
        Some(definition.unwrap_or_else(|| format!("{}{part}", self.schema)))
    }

    /// Returns a schema whose references to its own parts name their place in the description, in the
    /// dialect of the description. A part with an `$id` is the base of its references.
    fn relocated(&self, schema: &Value) -> Value {
        match schema {
            Value::Object(members) if !members.contains_key("$id") => {
                let members = members.iter().map(|(key, value)| {
                    let value = match value {
                        Value::String(target) if key == "$ref" || key == "$dynamicRef" => {
                            self.of(target).map_or_else(|| value.clone(), Value::String)
                        }
                        Value::Object(parts) if SCHEMA_MAPS.contains(&key.as_str()) => {
                            let parts = parts
                                .iter()
                                .map(|(name, part)| (name.clone(), self.relocated(part)));
                            Value::Object(parts.collect())
                        }
                        _ if VALUES.contains(&key.as_str()) => value.clone(),
                        _ => self.relocated(value),
                    };
                    (key.clone(), value)
                });
                Value::Object(modernized(members.collect()))
            }
            Value::Array(parts) => parts.iter().map(|part| self.relocated(part)).collect(),
            _ => schema.clone(),
        }
    }
}

/// Returns a schema with the keywords of 2020-12 in place of those of earlier drafts.
fn modernized(mut schema: Map<String, Value>) -> Map<String, Value> {
    if schema.get("items").is_some_and(Value::is_array) {
        if let Some(items) = schema.remove("items") {
            schema.insert("prefixItems".to_owned(), items);
        }
        if let Some(further) = schema.remove("additionalItems") {
            schema.insert("items".to_owned(), further);
        }
    }
    for (exclusive, limit) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        match schema.get(exclusive) {
            Some(Value::Bool(true)) => {
                schema.remove(exclusive);
                if let Some(limit) = schema.remove(limit) {
                    schema.insert(exclusive.to_owned(), limit);
                }
            }
            Some(Value::Bool(false)) => drop(schema.remove(exclusive)),
            _ => {}
        }
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(definition: &Value) -> ListItem {
        let name = definition["name"].as_str().unwrap_or_default();
        ListItem { name: name.into(), text: definition.to_string() }
    }

    #[test]
    fn definitions_are_components_and_references_name_them() {
        let tool = item(&json!({ "name": "a.tree", "inputSchema": {
            "type": "object",
            "properties": { "$ref": { "$ref": "#/$defs/node" }, "root": { "$ref": "#" } },
            "$defs": { "node": { "default": { "$ref": "#/kept" }, "not": { "$ref": "#/$defs/a~1b" } },
                "a/b": { "properties": { "x": { "$ref": "#/$defs/node/not" } } } },
        } }));
        let document = description("", std::iter::once(&tool), false);
        let schemas = &document["components"]["schemas"];
        let schema = &schemas["a_tree.arguments"];
        let place = "#/components/schemas/a_tree.arguments";
        assert_eq!(schema["properties"]["$ref"]["$ref"], format!("{place}.node"));
        assert_eq!(schema["properties"]["root"]["$ref"], place);
        assert_eq!(schema.get("$defs"), None);
        let node = &schemas["a_tree.arguments.node"];
        assert_eq!(node["default"]["$ref"], "#/kept");
        assert_eq!(node["not"]["$ref"], format!("{place}.a_b"));
        let other = &schemas["a_tree.arguments.a_b"];
        assert_eq!(other["properties"]["x"]["$ref"], format!("{place}.node/not"));
        let body = &document["paths"]["/tools/a.tree"]["post"]["requestBody"];
        assert_eq!(body["content"]["application/json"]["schema"]["$ref"], place);
    }

    #[test]
    fn keywords_of_earlier_drafts_become_those_of_the_description() {
        let tool = item(&json!({ "name": "t", "inputSchema": {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "properties": {
                "pair": { "items": [{ "type": "string" }], "additionalItems": false },
                "above": { "minimum": 3, "exclusiveMinimum": true },
            },
        } }));
        let document = description("", std::iter::once(&tool), false);
        let schema = &document["components"]["schemas"]["t.arguments"];
        assert_eq!(
            *schema,
            json!({ "properties": {
                "pair": { "prefixItems": [{ "type": "string" }], "items": false },
                "above": { "exclusiveMinimum": 3 },
            } }),
        );
    }

    #[test]
    fn a_name_with_any_character_is_one_segment_and_has_an_id_of_its_own() {
        let long = format!("a.{}", "x".repeat(90));
        let names = ["a.b/c {d}", "a.b/c_{d}", &long, &format!("{long}y")];
        let items = names.map(|name| item(&json!({ "name": name, "inputSchema": {} })));
        let document = description("/endpoints/e", items.iter(), true);
        let paths = document["paths"].as_object().unwrap();
        let mut ids: Vec<_> =
            paths.values().map(|path| path["post"]["operationId"].as_str().unwrap()).collect();
        assert_eq!(
            document["paths"]["/tools/a.b%2Fc%20%7Bd%7D"]["post"]["operationId"],
            "a_b_c__d_"
        );
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), names.len(), "{ids:?}");
        assert!(ids.iter().all(|id| id.len() <= MAX_OPERATION_ID_BYTES), "{ids:?}");
        assert_eq!(document["servers"][0]["url"], "/endpoints/e");
        assert_eq!(document["security"][0]["bearer"], json!([]));
    }
}
