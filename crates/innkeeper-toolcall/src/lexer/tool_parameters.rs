//! The arguments that a called tool declares, as far as a lexer needs them.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::resolve::resolve;
use crate::tool::{Tool, Tools};

/// Keywords with which a schema can allow arguments that `properties` doesn't list.
const OPEN_KEYWORDS: &[&str] =
    &["additionalProperties", "patternProperties", "$ref", "allOf", "anyOf", "oneOf"];

/// The declared arguments of one tool, and those that a call has given.
///
/// Raw values have no escapes, so the text of a value can look like the start of the next argument.
/// Whether the tool has such an argument is often the only thing that decides.
#[derive(Debug, Default)]
pub(super) struct ToolParameters {
    /// The normalized names, with whether the tool requires the argument.
    required: HashMap<String, bool>,
    /// Whether the schema allows other names, or the tool is unknown.
    is_open: bool,
    /// The names of the arguments that the call has so far, as the model wrote them.
    given: HashSet<String>,
}

impl ToolParameters {
    /// Returns the arguments of the tool that a model calls `name`.
    pub(super) fn for_tool(tools: &Tools, name: &str) -> Self {
        match resolve(tools, name) {
            Some(matched) => Self::from_tool(matched.tool),
            None => Self { is_open: true, ..Self::default() },
        }
    }

    fn from_tool(tool: &Tool) -> Self {
        let schema = &tool.input_schema;
        let all = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let all: HashSet<&str> = all.filter_map(Value::as_str).collect();
        let names = tool.property_names();
        let required: HashMap<_, _> =
            names.map(|name| (normalize(name), all.contains(name))).collect();
        let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        let has_open_keyword = OPEN_KEYWORDS.iter().any(|keyword| schema.get(keyword).is_some());
        let is_open = !is_closed && (required.is_empty() || has_open_keyword);
        Self { required, is_open, given: HashSet::new() }
    }

    pub(super) fn accepts(&self, name: &str) -> bool {
        self.is_open || self.lists(name)
    }

    /// Notes that the call has an argument with this name.
    pub(super) fn give(&mut self, name: String) {
        self.given.insert(name);
    }

    /// Whether the call has all of these arguments.
    pub(super) fn has_given(&self, names: &HashSet<String>) -> bool {
        names.is_subset(&self.given)
    }

    /// Whether the tool has an argument with this name that hasn't come yet.
    pub(super) fn wants(&self, name: &str) -> bool {
        self.accepts(name) && !self.given.contains(name)
    }

    pub(super) fn lists(&self, name: &str) -> bool {
        self.required.contains_key(&normalize(name))
    }

    pub(super) fn requires(&self, name: &str) -> bool {
        self.required.get(&normalize(name)) == Some(&true)
    }

    /// Whether the tool has no arguments.
    pub(super) fn is_empty(&self) -> bool {
        self.required.is_empty()
    }
}

/// Models vary the case and the separators of a name. Such a name still means the argument, and
/// validation then suggests the right spelling.
fn normalize(name: &str) -> String {
    name.chars().filter(|c| !"_-. ".contains(*c)).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parameters(schema: Value) -> ToolParameters {
        ToolParameters::for_tool(&[Tool::new("f", "", schema)].into_iter().collect(), "f")
    }

    #[test]
    fn a_schema_with_properties_accepts_only_those_unless_it_allows_others() {
        let properties = json!({"Max-Size": {}, "b": {}});
        let closed = parameters(json!({"properties": properties, "required": ["b"]}));
        assert!(closed.accepts("max_size") && closed.requires("b") && !closed.requires("max_size"));
        assert!(!closed.accepts("c"));
        for open in [
            json!({"properties": properties, "additionalProperties": true}),
            json!({"properties": properties, "anyOf": [{"properties": {"c": {}}}]}),
            json!({}),
        ] {
            assert!(parameters(open.clone()).accepts("c"), "{open}");
        }
        assert!(!parameters(json!({"additionalProperties": false})).accepts("c"));
    }

    #[test]
    fn an_unknown_tool_accepts_every_name() {
        assert!(ToolParameters::for_tool(&Tools::default(), "g").accepts("c"));
    }
}
