//! Tools that a model can call.

use std::collections::HashMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// A tool, as its server describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// The name in a call: a public name or a provider's alias.
    pub name: String,
    /// The server's description of the tool.
    pub description: String,
    /// The JSON Schema of the arguments.
    pub input_schema: Value,
}

impl Tool {
    /// Creates a tool.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        input_schema: Value,
    ) -> Self {
        Self { name: name.into(), description: description.into(), input_schema }
    }

    /// Returns the schema of one argument, if the tool's schema lists the argument under
    /// `properties`.
    pub fn property(&self, name: &str) -> Option<&Value> {
        self.input_schema.get("properties")?.get(name)
    }

    /// Iterates over the names of the arguments that the schema lists under `properties`.
    pub(crate) fn property_names(&self) -> impl Iterator<Item = &str> {
        let properties = self.input_schema.get("properties").and_then(Value::as_object);
        properties.into_iter().flat_map(|members| members.keys().map(String::as_str))
    }
}

/// The available tools of one request, with lookup by name. Of several tools with the same name,
/// the first one counts.
#[derive(Debug, Clone, Default)]
pub struct Tools {
    list: Vec<Tool>,
    by_name: HashMap<String, usize>,
}

impl Tools {
    /// Returns the tool with exactly this name.
    pub fn get(&self, name: &str) -> Option<&Tool> {
        self.by_name.get(name).map(|at| &self.list[*at])
    }

    /// Iterates over the tools in listed order.
    pub fn iter(&self) -> impl Iterator<Item = &Tool> {
        self.list.iter()
    }

    /// Returns the number of tools.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are no tools. Without tools, no text is a call.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// Equal lists of tools are equal.
impl PartialEq for Tools {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

/// Written as the list of tools.
impl Serialize for Tools {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.list.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Tools {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<Tool>::deserialize(deserializer)?.into_iter().collect())
    }
}

impl FromIterator<Tool> for Tools {
    fn from_iter<I: IntoIterator<Item = Tool>>(tools: I) -> Self {
        let mut all = Self::default();
        for tool in tools {
            if !all.by_name.contains_key(&tool.name) {
                all.by_name.insert(tool.name.clone(), all.list.len());
                all.list.push(tool);
            }
        }
        all
    }
}

/// The tools in listed order.
impl IntoIterator for Tools {
    type Item = Tool;
    type IntoIter = std::vec::IntoIter<Tool>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn of_two_tools_with_one_name_the_first_is_offered() {
        let tools: Tools = [Tool::new("a", "one", json!({})), Tool::new("a", "two", json!({}))]
            .into_iter()
            .collect();
        assert_eq!(tools.len(), 1);
        assert_eq!(tools.get("a").unwrap().description, "one");
    }

    #[test]
    fn tools_are_written_as_a_list_and_read_back() {
        let tools: Tools = ["b", "a"]
            .map(|name| Tool::new(name, "x", json!({"type": "object"})))
            .into_iter()
            .collect();
        let text = serde_json::to_string(&tools).unwrap();
        let back: Tools = serde_json::from_str(&text).unwrap();
        assert_eq!(back, tools);
        assert_eq!(back.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["b", "a"]);
        let others: Tools = tools.into_iter().rev().collect();
        assert_ne!(back, others);
    }

    #[test]
    fn a_property_is_found_in_the_schema() {
        let tool = Tool::new("a", "", json!({"properties": {"x": {"type": "integer"}}}));
        assert_eq!(tool.property("x"), Some(&json!({"type": "integer"})));
        assert_eq!(tool.property("y"), None);
    }
}
