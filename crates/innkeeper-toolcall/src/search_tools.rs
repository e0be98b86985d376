//! The tools `search_tools` and `describe_tools`: their schemas, arguments and results.
//!
//! The caller offers the tools, and finds the searched tools in a [`ToolIndex`](crate::ToolIndex).

use serde::Deserialize;
use serde_json::{Value, json};

use crate::sanitize::first_sentence;

/// The name of the tool that searches.
pub const SEARCH_TOOLS: &str = "search_tools";

/// The name of the tool that returns definitions.
pub const DESCRIBE_TOOLS: &str = "describe_tools";

/// Number of results of a search without a limit.
pub const DEFAULT_SEARCH_LIMIT: u32 = 10;

/// Maximum number of results of a search.
pub const MAX_SEARCH_LIMIT: u32 = 50;

/// Maximum number of tools of one description: a definition may take thousands of tokens.
pub const MAX_DESCRIBED_TOOLS: usize = 10;

/// Maximum number of characters of a short description.
const MAX_SUMMARY_CHARS: usize = 200;

/// Maximum number of characters of an unknown name in a result.
const MAX_UNKNOWN_NAME_CHARS: usize = 100;

/// Returns the JSON Schema of the arguments of a search.
pub fn search_schema() -> Value {
    let query =
        "What the tool does, in a few words, such as \"send an email\". One task per query.";
    json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": query},
            "limit": {
                "type": "integer",
                "description": format!("Maximum number of tools. Default: {DEFAULT_SEARCH_LIMIT}."),
                "minimum": 1,
                "maximum": MAX_SEARCH_LIMIT,
            },
        },
        "required": ["query"],
        "additionalProperties": false,
    })
}

/// Returns the JSON Schema of the arguments of a description.
pub fn describe_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "names": {
                "type": "array",
                "description": "The names, exactly as the search returned the names.",
                "items": {"type": "string"},
                "minItems": 1,
                "maxItems": MAX_DESCRIBED_TOOLS,
            },
        },
        "required": ["names"],
        "additionalProperties": false,
    })
}

/// The arguments of a search.
#[derive(Clone, Debug, Deserialize)]
pub struct SearchArguments {
    /// The words of the query.
    pub query: String,
    limit: Option<f64>,
}

impl SearchArguments {
    /// Reads the arguments from JSON text.
    ///
    /// # Errors
    ///
    /// Returns an error if the query is absent, or if a member has the wrong type.
    pub fn parse(arguments: &str) -> serde_json::Result<Self> {
        serde_json::from_str(arguments)
    }

    /// Returns the number of results, from 1 to [`MAX_SEARCH_LIMIT`].
    pub fn limit(&self) -> usize {
        let limit = self.limit.unwrap_or(DEFAULT_SEARCH_LIMIT.into());
        limit.clamp(1.0, MAX_SEARCH_LIMIT.into()) as usize
    }
}

/// The arguments of a description.
#[derive(Clone, Debug, Deserialize)]
pub struct DescribeArguments {
    names: Vec<String>,
}

impl DescribeArguments {
    /// Reads the arguments from JSON text.
    ///
    /// # Errors
    ///
    /// Returns an error if the names are absent, or if a member has the wrong type.
    pub fn parse(arguments: &str) -> serde_json::Result<Self> {
        serde_json::from_str(arguments)
    }

    /// Returns the first [`MAX_DESCRIBED_TOOLS`] names, without repetitions.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for name in &self.names {
            if names.len() < MAX_DESCRIBED_TOOLS && !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }
}

/// Returns the result of a search: the found tools as name and description, the best match first, and
/// the number of searched tools. Of a description, the result has the first sentence.
pub fn found_tools<'t>(
    found: impl IntoIterator<Item = (&'t str, &'t str)>,
    searched_tools: usize,
) -> Value {
    let found: Vec<Value> = found.into_iter().map(|(name, description)| json!({"name": name, "description": first_sentence(description, MAX_SUMMARY_CHARS)})).collect();
    let is_empty = found.is_empty();
    let mut result = json!({"tools": found, "searchedTools": searched_tools});
    if is_empty {
        result["hint"] = "no tool contains a word of the query: try other words".into();
    }
    result
}

/// Returns the entry of a description for a name that no tool has, with similar names of tools.
pub fn unknown_name(name: &str, similar_names: &[String]) -> Value {
    json!({
        "name": first_sentence(name, MAX_UNKNOWN_NAME_CHARS),
        "similarNames": similar_names,
    })
}
