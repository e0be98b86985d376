//! The servers of a configuration as the user wrote them.

use std::fmt;

use serde_json::Value;

use crate::text::tree::{JsonNode, NodeKind};

/// The entries of all servers as JSON, without expanded variables and without comments.
///
/// `Debug` shows the number only, because an entry may contain a secret.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct WrittenServers(Vec<(String, String)>);

impl fmt::Debug for WrittenServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WrittenServers").field(&self.0.len()).finish()
    }
}

impl WrittenServers {
    pub(crate) fn add(&mut self, entries: Vec<(String, String)>) {
        self.0.extend(entries);
    }

    /// Returns the name and the JSON of one entry, before its keys are normalised.
    pub(crate) fn entry(name: &str, node: &JsonNode) -> (String, String) {
        let mut text = String::new();
        write_node(node, &mut text);
        (name.to_owned(), text)
    }

    /// Returns an object with the member `mcpServers`.
    pub(crate) fn to_json(&self) -> String {
        let mut text = "{\"mcpServers\":{".to_owned();
        for (at, (name, entry)) in self.0.iter().enumerate() {
            text.push_str(if at == 0 { "" } else { "," });
            push_string(name, &mut text);
            text.push(':');
            text.push_str(entry);
        }
        text.push_str("}}");
        text
    }
}

fn write_node(node: &JsonNode, text: &mut String) {
    match &node.kind {
        NodeKind::Null => text.push_str("null"),
        NodeKind::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        // JSON with comments has spellings of numbers that JSON does not have.
        NodeKind::Number(literal) => match serde_json::from_str::<serde_json::Number>(literal) {
            Ok(_) => text.push_str(literal),
            Err(_) => push_string(literal, text),
        },
        NodeKind::String(string) => push_string(string, text),
        NodeKind::Array(items) => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                text.push_str(if at == 0 { "" } else { "," });
                write_node(item, text);
            }
            text.push(']');
        }
        NodeKind::Object(members) => {
            text.push('{');
            for (at, member) in members.iter().enumerate() {
                text.push_str(if at == 0 { "" } else { "," });
                push_string(&member.key, text);
                text.push(':');
                write_node(&member.value, text);
            }
            text.push('}');
        }
    }
}

fn push_string(string: &str, text: &mut String) {
    text.push_str(&Value::from(string).to_string());
}
