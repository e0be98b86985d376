//! The tools that are offered to a model.

use std::collections::HashMap;

use serde_json::Value;

/// One offered tool, as a server describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// The name a call has to say: a public name or a provider's alias.
    pub name: String,
    /// What the tool is for, in the server's words.
    pub description: String,
    /// The JSON Schema of the arguments object.
    pub input_schema: Value,
}

impl Tool {
    /// A tool from its three parts.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        input_schema: Value,
    ) -> Self {
        Self { name: name.into(), description: description.into(), input_schema }
    }

    /// The schema of one argument, if the tool's schema lists it under `properties`.
    pub fn property(&self, name: &str) -> Option<&Value> {
        self.input_schema.get("properties")?.get(name)
    }
}

/// All tools offered in one turn, found by name. Of tools with one name the first counts.
#[derive(Debug, Clone, Default)]
pub struct Tools {
    list: Vec<Tool>,
    by_name: HashMap<String, usize>,
}

impl Tools {
    /// The tool of exactly this name.
    pub fn get(&self, name: &str) -> Option<&Tool> {
        self.by_name.get(name).map(|at| &self.list[*at])
    }

    /// The tools in the order they were offered.
    pub fn iter(&self) -> impl Iterator<Item = &Tool> {
        self.list.iter()
    }

    /// How many tools are offered.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether nothing is offered, so that no text is a call.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
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
    fn a_property_is_found_in_the_schema() {
        let tool = Tool::new("a", "", json!({"properties": {"x": {"type": "integer"}}}));
        assert_eq!(tool.property("x"), Some(&json!({"type": "integer"})));
        assert_eq!(tool.property("y"), None);
    }
}
