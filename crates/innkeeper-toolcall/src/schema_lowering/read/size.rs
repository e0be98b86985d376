//! Limits the size of a schema.

use serde_json::Value;

use super::{NAMED_SCHEMA_KEYWORDS, NODE_BASE_BYTES, SINGLE_SCHEMA_KEYWORDS, SchemaReader};

impl SchemaReader<'_, '_> {
    /// Charges the size of this schema without its subschemas.
    pub(super) fn charge(&mut self, value: &Value, at: &str) -> bool {
        let node_count = value.as_object().map_or(0, |map| {
            map.iter()
                .map(|(key, value)| {
                    key.len() + if has_subschemas(key, value) { 0 } else { estimate_bytes(value) }
                })
                .sum()
        });
        let paid = self.remaining_bytes.checked_sub(node_count + at.len() + NODE_BASE_BYTES);
        self.remaining_bytes = paid.unwrap_or(0);
        paid.is_some()
    }
}

/// Whether the value of a keyword consists of subschemas, whose sizes are charged when they are
/// read.
fn has_subschemas(key: &str, value: &Value) -> bool {
    let single = ["additionalProperties", "additionalItems", "properties"];
    let nesting = ["items", "anyOf", "oneOf", "allOf", "prefixItems", "$defs", "definitions"];
    value.is_object() && (single.contains(&key) || SINGLE_SCHEMA_KEYWORDS.contains(&key))
        || NAMED_SCHEMA_KEYWORDS.contains(&key)
        || nesting.contains(&key)
}

pub(super) fn estimate_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(estimate_bytes).sum::<usize>(),
        Value::Object(members) => {
            2 + members.iter().map(|(key, value)| key.len() + estimate_bytes(value)).sum::<usize>()
        }
    }
}
