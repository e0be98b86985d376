//! A configuration text whose servers change while comments, order and formatting stay.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstObjectProp, CstRootNode};
use jsonc_parser::errors::ParseError;
use serde_json::{Map, Value};

/// Keys of a file that contain the servers.
const SERVER_MAP_KEYS: [&str; 2] = ["servers", "mcpServers"];

/// The text of a new configuration file.
pub(super) const EMPTY_CONFIG: &str = "{\n  \"servers\": {}\n}\n";

/// A configuration text with its syntax tree.
pub(super) struct ConfigDocument {
    root: CstRootNode,
    servers: CstObject,
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
    ServersNotAnObject { key: &'static str },
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
        for key in SERVER_MAP_KEYS {
            if object.get(key).is_some_and(|property| property.object_value().is_none()) {
                return Err(DocumentError::ServersNotAnObject { key });
            }
        }
        let present = SERVER_MAP_KEYS.iter().find_map(|key| object.object_value(key));
        let servers = present.unwrap_or_else(|| object.object_value_or_set(SERVER_MAP_KEYS[0]));
        Ok(Self { root, servers, has_bom })
    }

    /// Returns the text.
    pub(super) fn to_text(&self) -> String {
        let bom = if self.has_bom { "\u{feff}" } else { "" };
        format!("{bom}{}", self.root)
    }

    /// Whether there is a server of this name.
    pub(super) fn has_server(&self, name: &str) -> bool {
        self.server(name).is_some()
    }

    /// Adds a server at the end, or replaces the definition of an existing server.
    pub(super) fn set_server(&self, name: &str, definition: &Map<String, Value>) {
        let value = to_input(&Value::from(definition.clone()));
        match self.server(name) {
            Some(server) => server.set_value(value),
            None => drop(self.servers.append(name, value)),
        }
    }

    /// Removes a server; returns false if there is no such server.
    pub(super) fn remove_server(&self, name: &str) -> bool {
        self.server(name).map(CstObjectProp::remove).is_some()
    }

    /// Sets whether a server is disabled. Returns whether the text changed, or `None` if there is no
    /// server of this name whose definition is an object.
    pub(super) fn set_disabled(&self, name: &str, disabled: bool) -> Option<bool> {
        let server = self.server(name)?.object_value()?;
        let (disabled_key, enabled_key) = (server.get("disabled"), server.get("enabled"));
        let is_disabled =
            is_bool(disabled_key.as_ref(), true) || is_bool(enabled_key.as_ref(), false);
        if is_disabled == disabled {
            return Some(false);
        }
        match (enabled_key, disabled_key) {
            // The spelling of another host stays.
            (Some(enabled), _) => enabled.set_value(CstInputValue::Bool(!disabled)),
            // A comment beside the key stays.
            (None, Some(property)) => property.set_value(CstInputValue::Bool(disabled)),
            (None, None) => drop(server.append("disabled", CstInputValue::Bool(disabled))),
        }
        Some(true)
    }

    fn server(&self, name: &str) -> Option<CstObjectProp> {
        let object = self.root.object_value()?;
        let maps = SERVER_MAP_KEYS.iter().filter_map(|key| object.object_value(key));
        maps.flat_map(|servers| servers.properties())
            .find(|property| property.decoded_name().is_some_and(|decoded| decoded == name))
    }
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
