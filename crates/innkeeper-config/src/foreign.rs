//! Server definitions of other hosts, in the keys, units and shapes of `mcp.json`.
//!
//! The reader of `mcp.json` and the import of other hosts' files share this code, so that a file
//! means the same either way.

use serde_json::{Map, Value};

use crate::diagnostic::Diagnostic;
use crate::form::document::ServerEntry;
use crate::form::{alias, dialect, schema, unknown_keys, validate};
use crate::text::source_text::{Diagnostics, SourceText};
use crate::text::tree::{self, JsonNode};

/// A definition of another host, in the keys of `mcp.json`.
#[derive(Debug, Default)]
pub struct ForeignDefinition {
    /// The keys that this host has.
    pub keys: Map<String, Value>,
    /// The other keys, in file order.
    pub unknown_keys: Vec<String>,
    /// What is unclear, and what was read in another unit. Unknown keys are not among the warnings.
    pub problems: Vec<Diagnostic>,
}

impl ForeignDefinition {
    /// Reads a definition. `milliseconds` tells whether the host writes times in milliseconds.
    pub fn read(definition: Map<String, Value>, milliseconds: bool) -> Self {
        let mut report = Diagnostics::new(SourceText::without_text(""));
        let mut entry = ServerEntry {
            name: String::new(),
            at: None,
            path: String::new(),
            foreign: true,
            milliseconds,
            node: JsonNode::from_value(&Value::Object(definition), &mut report),
            extra: Vec::new(),
            has_valid_name: true,
        };
        alias::normalise(&mut entry, &mut report);
        let mut problems: Vec<Diagnostic> =
            report.finish().into_iter().map(|located| located.problem).collect();
        let mut report = Diagnostics::new(SourceText::without_text(""));
        let schema = &schema::SERVER_SCHEMA;
        let extra = unknown_keys::remove_unknown_keys(&mut entry.node, schema, "", &mut report);
        let of_unknown = report.finish().into_iter().map(|located| located.problem);
        problems.extend(of_unknown.filter(Diagnostic::is_error));
        let unknown_keys = extra.into_iter().map(|member| member.key).collect();
        Self { keys: tree::to_map(entry.node.members()), unknown_keys, problems }
    }
}

/// Removes the parts of a definition that do not match the schema of `mcp.json`. Returns a problem
/// for each.
pub fn remove_invalid_parts(definition: &mut Map<String, Value>) -> Vec<Diagnostic> {
    let mut report = Diagnostics::new(SourceText::without_text(""));
    let node = JsonNode::from_value(&Value::Object(std::mem::take(definition)), &mut report);
    if let Value::Object(valid) = validate::server(&node, "", &mut report) {
        *definition = valid;
    }
    report.finish().into_iter().map(|located| located.problem).collect()
}

/// Returns whether other hosts have this key, and this host ignores it.
pub fn is_ignored(key: &str) -> bool {
    dialect::IGNORED_KEYS.contains(&key)
}
