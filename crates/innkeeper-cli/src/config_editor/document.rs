//! A configuration text whose servers change while comments, order and formatting stay.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use jsonc_parser::errors::ParseError;
use serde_json::{Map, Value};

const SERVERS_KEY: &str = "servers";

/// Paths of the objects that contain servers.
const SERVER_MAP_PATHS: [&[&str]; 4] =
    [&[SERVERS_KEY], &["mcpServers"], &["mcp", "servers"], &["mcp.servers"]];

/// Keys that exist only beside servers, and never as the name of a server.
const TOP_LEVEL_KEYS: [&str; 5] = ["$schema", SERVERS_KEY, "mcpServers", "host", "serve"];

/// Keys by which an object is a server in a file that is a map of servers.
const SERVER_KEYS: [&str; 4] = ["command", "url", "httpUrl", "serverUrl"];

/// The text of a new configuration file.
pub(super) const EMPTY_CONFIG: &str = "{\n  \"servers\": {}\n}\n";

/// A configuration text with its syntax tree.
pub(super) struct ConfigDocument {
    root: CstRootNode,
    /// The objects that contain servers; a new server is added to the first.
    server_maps: Vec<CstObject>,
    has_bom: bool,
}

/// Why a text cannot be edited.
#[derive(Debug, thiserror::Error)]
pub(super) enum DocumentError {
    #[error("the text is not valid JSON")]
    Syntax(#[from] ParseError),
    #[error("the top level is not an object")]
    NotAnObject,
    #[error("`{key}` is not an object")]
    ServersNotAnObject { key: String },
}

impl ConfigDocument {
    /// Parses a text; adds `servers` if the text has no servers.
    pub(super) fn parse(text: &str) -> Result<Self, DocumentError> {
        let (text, has_bom) = match text.strip_prefix('\u{feff}') {
            Some(text) => (text, true),
            None => (text, false),
        };
        let root = CstRootNode::parse(text, &strict_options())?;
        let object = root.object_value().ok_or(DocumentError::NotAnObject)?;
        let mut server_maps = find_server_maps(&object)?;
        if server_maps.is_empty() {
            server_maps.push(object.object_value_or_set(SERVERS_KEY));
        }
        Ok(Self { root, server_maps, has_bom })
    }

    pub(super) fn to_text(&self) -> String {
        let bom = if self.has_bom { "\u{feff}" } else { "" };
        format!("{bom}{}", self.root)
    }

    pub(super) fn has_server(&self, name: &str) -> bool {
        self.server(name).is_some()
    }

    /// Adds a server at the end, or replaces the definition of an existing server. A definition on
    /// one line stays on one line.
    pub(super) fn set_server(&self, name: &str, definition: &Map<String, Value>) {
        let value = to_input(&Value::from(definition.clone()));
        match self.server(name) {
            Some(server) => {
                let before = server.value().map(|old| old.to_string()).unwrap_or_default();
                server.set_value(value);
                if let Some(new) = server.object_value().filter(|_| !has_newline(&before)) {
                    join_lines(&new.into(), edge_space(&before));
                }
            }
            None => drop(self.server_maps.first().map(|servers| servers.append(name, value))),
        }
    }

    /// Removes a server; returns false if there is no such server. A file that is a map of servers
    /// gets an empty `servers` in place of its last server.
    pub(super) fn remove_server(&self, name: &str) -> bool {
        let Some(server) = self.server(name) else { return false };
        server.remove();
        if let Some(root) = self.root.object_value().filter(|root| root.properties().is_empty()) {
            root.append(SERVERS_KEY, CstInputValue::Object(Vec::new()));
        }
        true
    }

    /// Sets whether a server is disabled. Returns whether the text changed, or `None` if there is no
    /// server of this name whose definition is an object.
    pub(super) fn set_disabled(&self, name: &str, disabled: bool) -> Option<bool> {
        let server = self.server(name)?.object_value()?;
        let disabled_key = server.get("disabled");
        let enabled_key = server.get("enabled");
        let is_disabled =
            is_bool(disabled_key.as_ref(), true) || is_bool(enabled_key.as_ref(), false);
        match (enabled_key, disabled_key) {
            // The loader rejects a server with both keys.
            (Some(enabled), Some(property)) => {
                enabled.remove();
                property.set_value(CstInputValue::Bool(disabled));
            }
            _ if is_disabled == disabled => return Some(false),
            // The spelling of another host stays.
            (Some(enabled), None) => enabled.set_value(CstInputValue::Bool(!disabled)),
            // A comment beside the key stays.
            (None, Some(property)) if disabled || has_comment(&property) => {
                property.set_value(CstInputValue::Bool(disabled));
            }
            (None, Some(property)) => property.remove(),
            (None, None) => append_in_line(&server, "disabled", CstInputValue::Bool(disabled)),
        }
        Some(true)
    }

    fn server(&self, name: &str) -> Option<CstObjectProp> {
        let mut servers = self.server_maps.iter().flat_map(CstObject::properties);
        servers.find(|property| property.decoded_name().is_some_and(|decoded| decoded == name))
    }
}

/// Finds the objects that contain servers, as the loader does.
fn find_server_maps(object: &CstObject) -> Result<Vec<CstObject>, DocumentError> {
    let properties = object.properties();
    if !properties.is_empty() && properties.iter().all(is_server) {
        return Ok(vec![object.clone()]);
    }
    let mut maps = Vec::new();
    for path in SERVER_MAP_PATHS {
        let Some((key, outer)) = path.split_last() else { continue };
        let object = outer.iter().try_fold(object.clone(), |object, key| object.object_value(key));
        let Some(property) = object.and_then(|object| object.get(key)) else { continue };
        let servers = property.object_value();
        maps.push(
            servers.ok_or_else(|| DocumentError::ServersNotAnObject { key: path.join(".") })?,
        );
    }
    Ok(maps)
}

/// Whether a member of the top level is a server.
fn is_server(property: &CstObjectProp) -> bool {
    let is_top_level =
        property.decoded_name().is_none_or(|name| TOP_LEVEL_KEYS.contains(&name.as_str()));
    !is_top_level
        && property
            .object_value()
            .is_some_and(|server| SERVER_KEYS.iter().any(|key| server.get(key).is_some()))
}

/// Appends a property; an object on one line stays on one line.
fn append_in_line(object: &CstObject, key: &str, value: CstInputValue) {
    let before = object.to_string();
    object.append(key, value);
    if !has_newline(&before) {
        join_lines(&object.clone().into(), edge_space(&before));
    }
}

fn has_newline(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

/// Returns the space inside the braces of an object on one line.
fn edge_space(object: &str) -> &'static str {
    if object.starts_with("{ ") { " " } else { "" }
}

/// Puts an object or an array on one line, with its own objects and arrays. `edge` is the space
/// inside braces.
fn join_lines(node: &CstNode, edge: &str) {
    for newline in node.children().iter().filter_map(CstNode::as_newline) {
        newline.remove();
    }
    let is_object = node.as_object().is_some();
    let is_list = is_object || node.as_array().is_some();
    let children = node.children();
    for (index, child) in children.iter().enumerate() {
        let is_edge = index == 1 || index + 2 == children.len();
        match child.as_whitespace() {
            Some(space) if is_list && is_edge => {
                space.set_value(if is_object { edge } else { "" }.to_owned());
            }
            Some(space) if is_list => space.set_value(" ".to_owned()),
            Some(_) => {}
            None => join_lines(child, edge),
        }
    }
}

/// Whether there is a comment before a property, or after the property on its line.
fn has_comment(property: &CstObjectProp) -> bool {
    let mut before = property.previous_siblings();
    let before = before.find(|node| !node.is_whitespace() && !node.is_newline());
    let mut after = property.next_siblings().take_while(|node| !node.is_newline());
    before.is_some_and(|node| node.is_comment()) || after.any(|node| node.is_comment())
}

fn is_bool(property: Option<&CstObjectProp>, expected: bool) -> bool {
    let value = property.and_then(CstObjectProp::value);
    let literal = value.and_then(|value| value.as_boolean_lit());
    literal.is_some_and(|literal| literal.value() == expected)
}

/// Accepts the syntax that the loader accepts.
fn strict_options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

fn to_input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(truth) => CstInputValue::Bool(*truth),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(to_input).collect()),
        Value::Object(members) => CstInputValue::Object(
            members.iter().map(|(key, member)| (key.clone(), to_input(member))).collect(),
        ),
    }
}

#[cfg(test)]
mod tests;
