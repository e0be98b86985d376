//! The search over the tools of an endpoint that lists only some of them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use innkeeper_protocol::skim;
use innkeeper_toolcall::search_tools::{self, SearchArguments, unknown_name};
use innkeeper_toolcall::{Tool, ToolIndex, Tools, suggest_names, to_json_line};
use serde_json::Value;

use super::ListItem;
use crate::gateway_tools::{GatewayTool, listed_definition};
use crate::options::EndpointOptions;

/// Maximum number of indexes of one search: clients with the same permitted tools share an index.
/// The oldest index is built again when a client needs it.
const MAX_INDEXES: usize = 16;

/// Maximum size in bytes of the definitions of one description, apart from the first definition.
const MAX_DESCRIPTION_BYTES: usize = 1 << 20;

/// All tools of an endpoint, with an index for each set of permitted tools.
#[derive(Debug)]
pub(crate) struct ToolSearch {
    tools: Vec<ListItem>,
    indexes: Mutex<VecDeque<Arc<PermittedTools>>>,
}

/// The tools that some clients may use.
#[derive(Debug)]
struct PermittedTools {
    permitted: Box<[bool]>,
    index: OnceLock<ToolIndex>,
}

/// Returns the tools that an endpoint lists, and the search if it has one. Only a search reaches a
/// tool that has the name of a gateway's tool.
pub(super) fn listed_tools(
    tools: Vec<ListItem>,
    endpoint: &EndpointOptions,
    is_pinned: impl Fn(&ListItem) -> bool,
    omitted: &mut Vec<String>,
) -> (Vec<ListItem>, Option<ToolSearch>) {
    let mut listed: Vec<ListItem> = GatewayTool::offered(endpoint)
        .map(|tool| ListItem { name: tool.name().into(), text: tool.definition() })
        .collect();
    for tool in tools.iter().filter(|tool| !endpoint.search || is_pinned(tool)) {
        if GatewayTool::find(endpoint, &tool.name).is_some() {
            let call = if endpoint.search { "; `call_tool` calls it" } else { "" };
            omitted.push(format!(
                "tool `{}` is left out: the gateway has a tool with this name{call}",
                tool.name
            ));
            continue;
        }
        let text = listed_definition(&tool.text, endpoint);
        listed.push(ListItem { name: tool.name.clone(), text });
    }
    (listed, endpoint.search.then(|| ToolSearch { tools, indexes: Mutex::default() }))
}

impl ToolSearch {
    /// Returns the text of a search result over the permitted tools. The first search of a set of
    /// permitted tools builds the index, in time linear in the size of the definitions.
    pub(crate) fn search(&self, arguments: &SearchArguments, permitted: Box<[bool]>) -> String {
        let tools = self.permitted_tools(permitted);
        let index = tools.index.get_or_init(|| ToolIndex::new(&self.definitions(&tools)));
        let found = index.search(&arguments.query, arguments.limit());
        let found: Vec<Tool> =
            found.iter().filter_map(|name| self.find(name)).map(definition).collect();
        let found = found.iter().map(|tool| (tool.name.as_str(), tool.description.as_str()));
        let count = tools.permitted.iter().filter(|permitted| **permitted).count();
        to_json_line(&search_tools::found_tools(found, count))
    }

    /// Returns the text of a description of the permitted tools, with the definitions as the servers
    /// sent them, and whether no tool has one of the names.
    pub(crate) fn describe(
        &self,
        names: &[&str],
        permits: impl Fn(&str) -> bool,
    ) -> (String, bool) {
        let mut found = Vec::new();
        let mut unknown = Vec::new();
        let mut left_out = Vec::new();
        let mut bytes = 0;
        for name in names {
            match self.find(name).filter(|tool| permits(&tool.name)) {
                Some(tool) => {
                    bytes += tool.text.len();
                    if found.is_empty() || bytes <= MAX_DESCRIPTION_BYTES {
                        found.push(tool.text.as_str());
                    } else {
                        left_out.push(&*tool.name);
                    }
                }
                None => unknown.push(unknown_name(name, &self.similar_names(name, &permits))),
            }
        }
        let mut text = format!("{{\"tools\":[{}]", found.join(","));
        if !unknown.is_empty() {
            text.push_str(&format!(",\"unknownNames\":{}", to_json_line(&unknown.into())));
        }
        if !left_out.is_empty() {
            let names = Value::from(left_out);
            text.push_str(&format!(
                ",\"leftOutNames\":{names},\"hint\":\"the definitions are large: describe the names that \
                 are left out in another call\""
            ));
        }
        text.push('}');
        (text, found.is_empty())
    }

    /// Returns the names of permitted tools that are similar to a name, most similar first.
    pub(crate) fn similar_names(&self, name: &str, permits: impl Fn(&str) -> bool) -> Vec<String> {
        let names = self.tools.iter().map(|tool| &*tool.name);
        suggest_names(names.filter(|name| permits(name)), name)
    }

    pub(crate) fn permitted(&self, permits: impl Fn(&str) -> bool) -> Box<[bool]> {
        self.tools.iter().map(|tool| permits(&tool.name)).collect()
    }

    fn find(&self, name: &str) -> Option<&ListItem> {
        self.tools.iter().find(|tool| *tool.name == *name)
    }

    fn permitted_tools(&self, permitted: Box<[bool]>) -> Arc<PermittedTools> {
        let mut indexes = self.indexes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = indexes.iter().find(|tools| tools.permitted == permitted) {
            return known.clone();
        }
        if indexes.len() >= MAX_INDEXES {
            indexes.pop_front();
        }
        let tools = Arc::new(PermittedTools { permitted, index: OnceLock::new() });
        indexes.push_back(tools.clone());
        tools
    }

    fn definitions(&self, tools: &PermittedTools) -> Tools {
        let permitted =
            self.tools.iter().zip(&tools.permitted).filter(|(_, permitted)| **permitted);
        permitted.map(|(tool, _)| definition(tool)).collect()
    }
}

/// Reads what a search compares of a definition.
fn definition(tool: &ListItem) -> Tool {
    let description = skim::member(&tool.text, "description").and_then(skim::decode_string);
    let schema = skim::member(&tool.text, "inputSchema");
    let schema: Option<Value> = schema.and_then(|schema| serde_json::from_str(schema).ok());
    Tool::new(&*tool.name, description.unwrap_or_default(), schema.unwrap_or_default())
}

#[cfg(test)]
mod tests;
