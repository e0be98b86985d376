//! Tools of published servers, recorded without descriptions.

use serde_json::{Map, Value};

const FILESYSTEM: &str = include_str!("../recordings/filesystem.json");

const BRAVE_SEARCH: &str = include_str!("../recordings/brave-search.json");

/// Returns the recorded tools of the server `filesystem` or `brave-search`: an array of objects with
/// `name` and `inputSchema`.
///
/// # Panics
///
/// If there is no recording of the server.
#[must_use]
pub fn recorded_tools(server: &str) -> Value {
    let text = match server {
        "filesystem" => FILESYSTEM,
        "brave-search" => BRAVE_SEARCH,
        other => panic!("no recording of `{other}`"),
    };
    let mut recording: Value = serde_json::from_str(text).expect("a recording is JSON");
    recording["tools"].take()
}

/// Returns the form in which a tool is recorded.
#[must_use]
pub fn recorded_form(tool: &Value) -> Value {
    let mut form = Map::new();
    for member in ["name", "inputSchema"] {
        form.insert(member.to_owned(), without_descriptions(&tool[member]));
    }
    Value::Object(form)
}

fn without_descriptions(schema: &Value) -> Value {
    match schema {
        Value::Array(items) => items.iter().map(without_descriptions).collect(),
        Value::Object(members) => Value::Object(
            members
                .iter()
                .filter(|(key, _)| *key != "description")
                .map(|(key, value)| match value {
                    // The members of `properties` are names of parameters.
                    Value::Object(parameters) if key == "properties" => {
                        let parameters = parameters
                            .iter()
                            .map(|(name, schema)| (name.clone(), without_descriptions(schema)));
                        (key.clone(), Value::Object(parameters.collect()))
                    }
                    _ => (key.clone(), without_descriptions(value)),
                })
                .collect(),
        ),
        other => other.clone(),
    }
}
