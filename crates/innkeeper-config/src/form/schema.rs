//! The JSON Schema of `mcp.json`, generated from the types that read it.
//!
//! The generated schemas of a server, of `host` and of `serve` are stored beside this file:
//! generating them at each start would take 2 ms and a megabyte. A test compares them with the
//! types.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use crate::form::dialect::{self, KeyMapping};
use crate::form::raw;

/// Returns the JSON Schema (draft 2020-12) of `mcp.json`, for editors and other validators.
///
/// The schema describes our spelling and, marked as deprecated, the supported spellings of other
/// hosts.
pub fn json_schema() -> Value {
    let mut schema = generate::<raw::File>();
    if let Some(server) =
        schema.pointer_mut("/$defs/Server/properties").and_then(Value::as_object_mut)
    {
        add_foreign_keys(server);
    }
    schema
}

/// Schema of a server entry in our spelling.
pub(crate) static SERVER_SCHEMA: LazyLock<Value> =
    LazyLock::new(|| parse(include_str!("schema/server.json")));

/// Schema of the `host` object.
pub(crate) static HOST_SCHEMA: LazyLock<Value> =
    LazyLock::new(|| parse(include_str!("schema/host.json")));

/// Schema of the `serve` object.
pub(crate) static SERVE_SCHEMA: LazyLock<Value> =
    LazyLock::new(|| parse(include_str!("schema/serve.json")));

fn parse(generated: &str) -> Value {
    serde_json::from_str(generated).expect("a test compares the files with the types")
}

pub(crate) fn generate<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12()
        .with_transform(RecursiveTransform(without_null))
        .with_transform(RecursiveTransform(without_format));
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// Removes `null`: an optional key may be absent but not `null`.
fn without_null(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    if let Some(Value::Array(types)) = object.get_mut("type") {
        if types.last().is_some_and(|last| last == "null") {
            types.pop();
        }
        if let [kind] = types.as_slice() {
            let kind = kind.clone();
            object.insert("type".to_owned(), kind);
        }
    }
    if let Some(Value::Array(branches)) = object.get("anyOf")
        && let [branch, null] = branches.as_slice()
        && *null == json!({"type": "null"})
    {
        let branch = branch.as_object().cloned().unwrap_or_default();
        object.remove("anyOf");
        object.extend(branch);
    }
    if let Some(Value::Array(options)) = object.get_mut("enum") {
        options.retain(|option| !option.is_null());
    }
}

/// Removes formats such as `uint32`, which only the generator knows.
fn without_format(schema: &mut Schema) {
    schema.remove("format");
}

/// Adds the keys of other hosts, so that their files are valid in an editor too.
fn add_foreign_keys(properties: &mut Map<String, Value>) {
    if let Some(Value::Object(kind)) = properties.get_mut("type") {
        let spellings = dialect::TRANSPORTS.iter().copied().flatten();
        kind.insert("enum".to_owned(), spellings.copied().collect());
    }
    allow_list_form(properties, "headers");
    allow_list_form(properties, "tools");
    for (key, meaning) in dialect::KEY_MAPPINGS {
        let mut schema = match meaning {
            KeyMapping::Alias(canonical)
            | KeyMapping::AliasWithTransport(canonical, _)
            | KeyMapping::Negated(canonical) => {
                properties.get(*canonical).cloned().unwrap_or(Value::Bool(true))
            }
            KeyMapping::Nested("tools", _) => {
                json!({"type": "array", "items": {"type": "string"}})
            }
            KeyMapping::Nested(..) | KeyMapping::BearerVariable => json!({"type": "string"}),
            KeyMapping::Milliseconds(_) => json!({"type": "number"}),
            KeyMapping::HeaderVariables => {
                json!({"type": "object", "additionalProperties": {"type": "string"}})
            }
            KeyMapping::InheritedVariables => {
                json!({"type": "array", "items": {"type": ["string", "object"]}})
            }
        };
        if let Value::Object(schema) = &mut schema {
            schema.insert("deprecated".to_owned(), Value::Bool(true));
            schema.insert("description".to_owned(), describe(*meaning).into());
            schema.remove("default");
        }
        properties.insert((*key).to_owned(), schema);
    }
}

fn describe(meaning: KeyMapping) -> String {
    match meaning {
        KeyMapping::Alias(canonical) | KeyMapping::AliasWithTransport(canonical, _) => {
            format!("Another host's name for `{canonical}`.")
        }
        KeyMapping::Negated(canonical) => format!("Another host's negation of `{canonical}`."),
        KeyMapping::Nested(outer, canonical) => {
            format!("Another host's name for `{outer}.{canonical}`.")
        }
        KeyMapping::Milliseconds(canonical) => {
            format!("Another host's name for `{canonical}`, in milliseconds.")
        }
        KeyMapping::BearerVariable => {
            "Another host's name for the variable with the bearer token.".to_owned()
        }
        KeyMapping::HeaderVariables => {
            "Another host's names of variables with the values of headers.".to_owned()
        }
        KeyMapping::InheritedVariables => "Another host's names of variables for `env`.".to_owned(),
    }
}

/// Also allows a list of strings for a key whose value is an object in our format.
fn allow_list_form(properties: &mut Map<String, Value>, key: &str) {
    if let Some(property) = properties.get_mut(key) {
        let list = json!({"type": "array", "items": {"type": "string"}});
        *property = json!({"anyOf": [property.take(), list]});
    }
}
