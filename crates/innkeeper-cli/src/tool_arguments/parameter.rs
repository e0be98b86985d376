//! The parameters of a tool, read from its input schema for people.

use indexmap::IndexMap;
use serde_json::Value;

use super::expected_type::{ObjectSchema, required_keys, resolve_reference};
use super::type_text::type_text;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) type_text: String,
    pub(crate) is_required: bool,
    /// The default value as JSON.
    pub(crate) default: Option<String>,
    pub(crate) description: Option<String>,
}

impl Parameter {
    /// Returns the parameters of an input schema in the order of the schema.
    pub(crate) fn all(schema: &Value) -> Vec<Self> {
        let required = required_keys(schema);
        let mut properties: IndexMap<&str, Vec<&Value>> = IndexMap::new();
        for (name, property) in ObjectSchema::from_part(schema, schema).properties {
            properties.entry(name).or_default().push(property);
        }
        properties
            .into_iter()
            .map(|(name, definitions)| {
                let mut types: Vec<String> =
                    definitions.iter().map(|definition| type_text(schema, definition)).collect();
                types.dedup();
                let member = |key| definitions.iter().find_map(|found| member(schema, found, key));
                Self {
                    name: name.to_owned(),
                    type_text: types.join(" | "),
                    is_required: required.contains(name),
                    default: member("default").map(ToString::to_string),
                    description: member("description").and_then(Value::as_str).map(str::to_owned),
                }
            })
            .collect()
    }
}

/// Returns a member of a schema or of the schema that the schema refers to.
fn member<'a>(root: &'a Value, schema: &'a Value, key: &str) -> Option<&'a Value> {
    schema.get(key).or_else(|| resolve_reference(root, schema)?.get(key))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_have_types_defaults_and_descriptions() {
        let schema = json!({
            "properties": {
                "path": {"type": "string", "description": "The directory."},
                "depth": {"$ref": "#/$defs/depth"},
                "mode": {"enum": ["a", "b"], "default": "a"}
            },
            "required": ["path"],
            "$defs": {"depth": {"type": "integer", "default": 3, "description": "Levels."}}
        });
        let parameter = |name: &str, type_text: &str, is_required, default: Option<&str>| {
            let name = name.to_owned();
            let type_text = type_text.to_owned();
            Parameter {
                name,
                type_text,
                is_required,
                default: default.map(str::to_owned),
                description: None,
            }
        };
        let described = |parameter: Parameter, text: &str| Parameter {
            description: Some(text.to_owned()),
            ..parameter
        };
        assert_eq!(
            Parameter::all(&schema),
            [
                described(parameter("path", "string", true, None), "The directory."),
                described(parameter("depth", "integer", false, Some("3")), "Levels."),
                parameter("mode", "\"a\" | \"b\"", false, Some("\"a\"")),
            ]
        );
    }

    #[test]
    fn a_parameter_of_several_branches_is_listed_once_with_all_types() {
        let schema = json!({"oneOf": [
            {"properties": {"id": {"type": "integer"}}},
            {"properties": {"id": {"type": "string"}, "x": {}}}
        ]});
        let texts: Vec<_> = Parameter::all(&schema)
            .into_iter()
            .map(|parameter| format!("{}: {}", parameter.name, parameter.type_text))
            .collect();
        assert_eq!(texts, ["id: integer | string", "x: any"]);
        assert_eq!(Parameter::all(&json!(true)), []);
    }
}
