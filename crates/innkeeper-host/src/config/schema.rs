//! The JSON Schema of `mcp.json`, generated from the types that read it.
//!
//! Those of one server and of the `host` object lie beside this file, as generated: to generate them
//! at each start would take 2 ms and a megabyte. A test holds them against the types.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use super::dialect::{self, Meaning};
use super::raw;

/// The JSON Schema (draft 2020-12) of `mcp.json`, for editors and other validators.
///
/// It describes our own spelling and, marked as deprecated, the spellings of other hosts that are
/// read as well.
pub fn json_schema() -> Value {
    let mut schema = generate::<raw::File>();
    if let Some(server) =
        schema.pointer_mut("/$defs/Server/properties").and_then(Value::as_object_mut)
    {
        add_spellings(server);
    }
    schema
}

/// The schema of one server's entry in our own spelling.
pub(super) static SERVER: LazyLock<Value> =
    LazyLock::new(|| parse(include_str!("schema/server.json")));

/// The schema of the `host` object.
pub(super) static HOST: LazyLock<Value> = LazyLock::new(|| parse(include_str!("schema/host.json")));

fn parse(generated: &str) -> Value {
    serde_json::from_str(generated).expect("a test compares the files with the types")
}

pub(super) fn generate<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12()
        .with_transform(RecursiveTransform(without_null))
        .with_transform(RecursiveTransform(without_format));
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// A key that may be left out is not a key that may be `null`.
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

/// Formats such as `uint32` are the generator's own; validators do not know them.
fn without_format(schema: &mut Schema) {
    schema.remove("format");
}

/// Adds what other hosts write, so that their files are valid in an editor too.
fn add_spellings(properties: &mut Map<String, Value>) {
    if let Some(Value::Object(kind)) = properties.get_mut("type") {
        let spellings = dialect::TRANSPORTS.iter().copied().flatten();
        kind.insert("enum".to_owned(), spellings.copied().collect());
    }
    or_list(properties, "headers");
    or_list(properties, "tools");
    for (key, meaning) in dialect::KEYS {
        let mut schema = match meaning {
            Meaning::Key(ours) | Meaning::KeyOf(ours, _) | Meaning::Opposite(ours) => {
                properties.get(*ours).cloned().unwrap_or(Value::Bool(true))
            }
            Meaning::Inside(..) => json!({"type": "array", "items": {"type": "string"}}),
        };
        if let Value::Object(schema) = &mut schema {
            schema.insert("deprecated".to_owned(), Value::Bool(true));
            schema.insert("description".to_owned(), describe(*meaning).into());
            schema.remove("default");
        }
        properties.insert((*key).to_owned(), schema);
    }
}

fn describe(meaning: Meaning) -> String {
    match meaning {
        Meaning::Key(ours) | Meaning::KeyOf(ours, _) => {
            format!("Another host's name for `{ours}`.")
        }
        Meaning::Opposite(ours) => format!("Another host's opposite of `{ours}`."),
        Meaning::Inside(outer, ours) => format!("Another host's name for `{outer}.{ours}`."),
    }
}

/// Lets a key that is an object here be a list of texts as well.
fn or_list(properties: &mut Map<String, Value>, key: &str) {
    if let Some(own) = properties.get_mut(key) {
        let list = json!({"type": "array", "items": {"type": "string"}});
        *own = json!({"anyOf": [own.take(), list]});
    }
}
