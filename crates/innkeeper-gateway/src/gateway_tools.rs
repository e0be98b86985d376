//! The tools of the gateway itself: the search for tools, and the access to stored results.

use innkeeper_protocol::skim;
use innkeeper_toolcall::search_tools::{
    DESCRIBE_TOOLS, SEARCH_TOOLS, describe_schema, search_schema,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::item_names::ItemNames;
use crate::options::EndpointOptions;

/// Number of bytes of a page of a stored result without a limit.
pub(crate) const DEFAULT_PAGE_BYTES: u32 = 16 << 10;

/// Maximum number of bytes of a page of a stored result.
pub(crate) const MAX_PAGE_BYTES: u32 = 64 << 10;

/// Number of matches of a search in a stored result without a limit.
pub(crate) const DEFAULT_MATCHES: u32 = 20;

/// Maximum number of matches of a search in a stored result.
pub(crate) const MAX_MATCHES: u32 = 100;

/// A tool that the gateway runs. A tool of a server with the same name is not listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GatewayTool {
    SearchTools,
    DescribeTools,
    CallTool,
    ReadResult,
    SearchResult,
    SelectResult,
}

impl GatewayTool {
    const SEARCH: [Self; 3] = [Self::SearchTools, Self::DescribeTools, Self::CallTool];
    const STORED_RESULTS: [Self; 3] = [Self::ReadResult, Self::SearchResult, Self::SelectResult];

    pub(crate) fn offered(endpoint: &EndpointOptions) -> impl Iterator<Item = Self> {
        let search = endpoint.search.then_some(Self::SEARCH);
        let stored = endpoint.large_results.is_some().then_some(Self::STORED_RESULTS);
        [search, stored].into_iter().flatten().flatten()
    }

    pub(crate) fn find(endpoint: &EndpointOptions, name: &str) -> Option<Self> {
        Self::offered(endpoint).find(|tool| tool.name() == name)
    }

    pub(crate) fn names(self) -> ItemNames {
        ItemNames::single(self.name())
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::SearchTools => SEARCH_TOOLS,
            Self::DescribeTools => DESCRIBE_TOOLS,
            Self::CallTool => "call_tool",
            Self::ReadResult => "read_result",
            Self::SearchResult => "search_result",
            Self::SelectResult => "select_result",
        }
    }

    /// Returns the definition for a list of tools, as JSON text.
    pub(crate) fn definition(self) -> String {
        // A called tool may do anything: the hints of its own definition are in its description.
        let annotations = match self {
            Self::CallTool => json!({
                "readOnlyHint": false, "destructiveHint": true, "openWorldHint": true,
            }),
            _ => json!({ "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false }),
        };
        json!({
            "name": self.name(),
            "description": self.description(),
            "inputSchema": self.input_schema(),
            "annotations": annotations,
        })
        .to_string()
    }

    fn description(self) -> &'static str {
        match self {
            Self::SearchTools => {
                "Finds tools for a task. Most tools are not in the list of tools: search before you \
                 say that something is not possible. Returns names with short descriptions, the best \
                 match first. Then call `describe_tools` with the names of the tools that you need."
            }
            Self::DescribeTools => {
                "Returns the definitions of tools that `search_tools` found. Then call a tool with \
                 `call_tool`: its arguments must match its `inputSchema`."
            }
            Self::CallTool => {
                "Calls a tool that `search_tools` found, and returns its result. The tool may change \
                 or delete something: see its description with `describe_tools`."
            }
            Self::ReadResult => {
                "Returns a part of a stored result: the text from `offset` on, then a JSON object \
                 with `offset`, `nextOffset` (`null` at the end) and `size`. Offsets are in bytes of \
                 UTF-8."
            }
            Self::SearchResult => {
                "Searches a stored result for a regular expression. Returns for each match the \
                 `offset` of the match in bytes and the line of the match, or its surroundings if the \
                 line is long. If `nextOffset` is not `null`, the search has not reached the end: \
                 search again with this `offset`."
            }
            Self::SelectResult => {
                "Returns one value of a stored result that is JSON: the text of the value, then a \
                 JSON object with the `type` of the value, its `count` of elements or the `keys` of \
                 its members, and its place in the whole result. If `nextOffset` is not `null`, \
                 `read_result` returns the rest from there."
            }
        }
    }

    fn input_schema(self) -> Value {
        let uri = json!({
            "type": "string",
            "description": "The URI of the stored result, as the tool call returned it.",
        });
        let offset = json!({
            "type": "integer",
            "description": "Offset of the first byte. Default: 0, the start.",
            "minimum": 0,
        });
        let bytes = json!({
            "type": "integer",
            "description": format!("Maximum number of bytes. Default: {DEFAULT_PAGE_BYTES}."),
            "minimum": 1,
            "maximum": MAX_PAGE_BYTES,
        });
        let object = |properties: Value, required: &[&str]| {
            json!({
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            })
        };
        match self {
            Self::SearchTools => search_schema(),
            Self::DescribeTools => describe_schema(),
            Self::CallTool => {
                let name = json!({
                    "type": "string",
                    "description": "The name, exactly as the search returned the name.",
                });
                let arguments = json!({
                    "type": "object",
                    "description": "The arguments of the tool.",
                });
                object(json!({ "name": name, "arguments": arguments }), &["name"])
            }
            Self::ReadResult => {
                object(json!({ "uri": uri, "offset": offset, "limit": bytes }), &["uri"])
            }
            Self::SearchResult => {
                let pattern = json!({
                    "type": "string",
                    "description": "A regular expression, without look-around and back-references. \
                        `(?i)` at its start ignores case.",
                });
                let limit = json!({
                    "type": "integer",
                    "description": format!("Maximum number of matches. Default: {DEFAULT_MATCHES}."),
                    "minimum": 1,
                    "maximum": MAX_MATCHES,
                });
                let properties =
                    json!({ "uri": uri, "pattern": pattern, "offset": offset, "limit": limit });
                object(properties, &["uri", "pattern"])
            }
            Self::SelectResult => {
                let pointer = json!({
                    "type": "string",
                    "description": "A JSON pointer such as `/items/0/name`; the empty pointer \
                        selects the whole result.",
                });
                let properties = json!({ "uri": uri, "pointer": pointer, "limit": bytes });
                object(properties, &["uri", "pointer"])
            }
        }
    }
}

/// Adds the capabilities that an endpoint has because of the gateway's tools.
pub(crate) fn add_capabilities(capabilities: &mut Map<String, Value>, endpoint: &EndpointOptions) {
    if GatewayTool::offered(endpoint).next().is_some() {
        capabilities.entry("tools").or_insert(json!({ "listChanged": true }));
    }
    if endpoint.large_results.is_some() {
        let resources = json!({ "subscribe": false, "listChanged": true });
        capabilities.entry("resources").or_insert(resources);
    }
}

/// Returns a definition for the list of an endpoint. A result that is stored has no structured
/// content, which a client expects of a tool with an output schema.
pub(crate) fn listed_definition(definition: &str, endpoint: &EndpointOptions) -> String {
    match endpoint.large_results {
        None => definition.to_owned(),
        Some(_) => skim::remove_member(definition, "outputSchema"),
    }
}

/// The texts of the result of a gateway's tool, or the text of its error.
pub(crate) type ToolOutput = Result<Vec<String>, String>;

/// Reads the arguments of a gateway's tool.
pub(crate) fn parse<'a, T: Deserialize<'a>>(
    tool: GatewayTool,
    arguments: &'a str,
) -> Result<T, String> {
    serde_json::from_str(arguments).map_err(|error| invalid_arguments(tool, &error))
}

pub(crate) fn invalid_arguments(tool: GatewayTool, error: &serde_json::Error) -> String {
    format!("invalid arguments for `{}`: {error}", tool.name())
}

pub(crate) fn text_result(texts: &[String], is_error: bool) -> Box<RawValue> {
    let blocks = texts.iter().map(|text| json!({ "type": "text", "text": text }));
    let mut result = json!({ "content": blocks.collect::<Vec<_>>() });
    if is_error {
        result["isError"] = true.into();
    }
    // Serialization of strings cannot fail.
    serde_json::value::to_raw_value(&result).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(search: bool, large_results: bool) -> Vec<&'static str> {
        let large_results = large_results.then(Default::default);
        let endpoint = EndpointOptions { search, large_results, ..EndpointOptions::default() };
        GatewayTool::offered(&endpoint).map(GatewayTool::name).collect()
    }

    #[test]
    fn an_endpoint_has_the_tools_of_its_settings() {
        assert!(names(false, false).is_empty());
        assert_eq!(names(true, false), ["search_tools", "describe_tools", "call_tool"]);
        assert_eq!(names(false, true), ["read_result", "search_result", "select_result"]);
        assert_eq!(names(true, true).len(), 6);
    }

    #[test]
    fn each_definition_is_an_object_with_a_schema_of_its_required_arguments() {
        let endpoint = EndpointOptions {
            search: true,
            large_results: Some(Default::default()),
            ..EndpointOptions::default()
        };
        for tool in GatewayTool::offered(&endpoint) {
            let definition: Value = serde_json::from_str(&tool.definition()).unwrap();
            assert_eq!(definition["name"], tool.name());
            let schema = &definition["inputSchema"];
            for required in schema["required"].as_array().unwrap() {
                assert!(schema["properties"][required.as_str().unwrap()].is_object(), "{schema}");
            }
            let may_change = definition["annotations"]["readOnlyHint"] == false;
            assert_eq!(may_change, tool == GatewayTool::CallTool);
            assert_eq!(GatewayTool::find(&endpoint, tool.name()), Some(tool));
        }
        assert_eq!(GatewayTool::find(&EndpointOptions::default(), "search_tools"), None);
    }

    #[test]
    fn a_listed_definition_promises_no_structured_content_that_may_be_stored() {
        let definition = r#"{"name":"a","outputSchema":{"type":"object"}, "x":1}"#;
        let with = EndpointOptions {
            large_results: Some(Default::default()),
            ..EndpointOptions::default()
        };
        assert_eq!(listed_definition(definition, &with), r#"{"name":"a", "x":1}"#);
        assert_eq!(listed_definition(definition, &EndpointOptions::default()), definition);
    }
}
