//! Reader that converts any JSON to a validated schema.
//!
//! The reader converts old drafts, OpenAPI's dialect and type names of programming languages to
//! JSON Schema 2020-12. Malformed keywords are dropped and reported.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::losses::{LossCollector, SchemaLossKind};
use super::node::{
    AdditionalProperties, Definition, RefTarget, SchemaNode, SchemaTree, Subschemas,
};
use super::rules::DialectRules;
use super::type_set::TypeSet;
use super::{keyword, merge};

mod members;
mod reference;
mod size;

/// Maximum depth of a schema, including references. Usual schemas have at most ten levels; the
/// limit protects the stack.
pub(super) const MAX_DEPTH: usize = 64;
/// Maximum bytes of a schema, including inlined references, as an estimate. A model reads all of
/// them.
pub(super) const MAX_SCHEMA_BYTES: usize = 1 << 20;
/// Bytes counted for an empty schema.
const NODE_BASE_BYTES: usize = 32;

/// Keywords with one subschema that only full JSON Schema supports.
const SINGLE_SCHEMA_KEYWORDS: &[&str] = &[
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedProperties",
    "unevaluatedItems",
];
/// Keywords with named subschemas that only full JSON Schema supports.
const NAMED_SCHEMA_KEYWORDS: &[&str] = &["patternProperties", "dependentSchemas"];

#[derive(Debug, Clone, Copy)]
struct ReadMode {
    /// Whether `allOf` and reference targets are merged into the schema.
    merge_schemas: bool,
    inline_references: bool,
}

#[derive(Debug)]
struct SchemaReader<'a, 'b> {
    root: &'a Value,
    /// Mode of a schema without a reason for another mode.
    default_mode: ReadMode,
    losses: &'b mut LossCollector,
    /// Remaining part of [`MAX_SCHEMA_BYTES`].
    remaining_bytes: usize,
    /// Pointers and names of references that are not inlined.
    kept_references: Vec<(String, String)>,
    /// Indexes in `kept_references` by pointer.
    definition_indexes: HashMap<String, usize>,
    /// Names in `kept_references`.
    definition_names: HashSet<String>,
    /// References that are being inlined.
    open_references: Vec<String>,
}

/// Reads the schema of a tool's arguments.
pub(super) fn read(root: &Value, rules: &DialectRules, losses: &mut LossCollector) -> SchemaTree {
    let default_mode =
        ReadMode { merge_schemas: !rules.full_json_schema, inline_references: !rules.allows_refs };
    let open_references = vec![String::new()];
    let mut reader = SchemaReader {
        root,
        default_mode,
        losses,
        remaining_bytes: MAX_SCHEMA_BYTES,
        kept_references: Vec::new(),
        definition_indexes: HashMap::new(),
        definition_names: HashSet::new(),
        open_references,
    };
    let node =
        reader.read_node(root, "", 0, ReadMode { merge_schemas: true, inline_references: true });
    let mut definitions = Vec::new();
    while let Some((pointer, name)) = reader.kept_references.get(definitions.len()).cloned() {
        reader.open_references = vec![pointer.clone()];
        let value = root.pointer(&pointer).unwrap_or(&Value::Bool(true));
        let node = reader.read_node(value, &pointer, 0, default_mode);
        definitions.push(Definition { name, node });
    }
    SchemaTree { root: node, definitions }
}

impl<'a> SchemaReader<'a, '_> {
    fn read_node(&mut self, value: &'a Value, at: &str, depth: usize, how: ReadMode) -> SchemaNode {
        if depth > MAX_DEPTH || !self.charge(value, at) {
            self.losses.add(at, "", SchemaLossKind::Widened);
            return SchemaNode { ref_target: RefTarget::Truncated, ..SchemaNode::any(at) };
        }
        match value {
            Value::Bool(true) => SchemaNode::any(at),
            Value::Bool(false) => SchemaNode::never(at),
            Value::Object(map) => self.read_object(map, at, depth, how),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                self.losses.add(at, "", SchemaLossKind::Dropped);
                SchemaNode::any(at)
            }
        }
    }

    fn read_object(
        &mut self,
        map: &'a Map<String, Value>,
        at: &str,
        depth: usize,
        how: ReadMode,
    ) -> SchemaNode {
        let mut node = SchemaNode::any(at);
        for (key, value) in map {
            match key.as_str() {
                "type" => self.read_types(&mut node, value),
                "description" => match value.as_str() {
                    Some(text) => node.annotations.description = Some(text.to_owned()),
                    None => self.losses.add(at, key, SchemaLossKind::Dropped),
                },
                "enum" => self.read_enum(&mut node, value),
                "const" if how.merge_schemas => {
                    node.enum_values = Some(vec![value.clone()]);
                    self.losses.add(at, key, SchemaLossKind::Replaced);
                }
                "properties" => self.read_properties(&mut node, value, map.get("required"), depth),
                "required" => self.read_required(&mut node, value, map.get("properties")),
                "additionalProperties" => self.read_additional_properties(&mut node, value, depth),
                "unevaluatedProperties" if how.merge_schemas && *value == Value::Bool(false) => {
                    self.losses.add(at, key, SchemaLossKind::Replaced);
                    if matches!(
                        node.members.additional_properties,
                        AdditionalProperties::Unspecified
                    ) {
                        node.members.additional_properties = AdditionalProperties::Closed;
                    }
                }
                "items" | "prefixItems" | "additionalItems" => {
                    self.read_array_items(&mut node, map, key, value, depth);
                }
                "anyOf" => node.any_of = self.read_list(at, key, value, depth, how),
                "oneOf" => {
                    let list = self.read_list(at, key, value, depth, how);
                    if !list.is_empty() {
                        node.applicators.push(("oneOf", Subschemas::List(list)));
                    }
                }
                "dependencies" => self.read_dependencies(&mut node, value, depth),
                "$ref" | "allOf" | "$defs" | "definitions" | "nullable" => {}
                _ => self.read_other_keyword(&mut node, map, key, value, depth),
            }
        }
        self.read_references(&mut node, map, depth, how);
        self.read_nullable(&mut node, map);
        if !node.reconcile_types() {
            self.losses.add(at, "type", SchemaLossKind::Replaced);
        }
        node
    }

    /// Reads keywords without subschemas, and keywords that only full JSON Schema supports.
    fn read_other_keyword(
        &mut self,
        node: &mut SchemaNode,
        map: &'a Map<String, Value>,
        key: &str,
        value: &'a Value,
        depth: usize,
    ) {
        let at = node.at.clone();
        if let Some(name) = SINGLE_SCHEMA_KEYWORDS.iter().find(|name| **name == key) {
            let inside =
                self.read_node(value, &format!("{at}/{key}"), depth + 1, self.default_mode);
            node.applicators.push((name, Subschemas::Single(Box::new(inside))));
        } else if let Some(name) = NAMED_SCHEMA_KEYWORDS.iter().find(|name| **name == key) {
            let Some(all) = value.as_object() else {
                return self.losses.add(&at, key, SchemaLossKind::Dropped);
            };
            let all = all.iter().map(|(name, value)| {
                let at = format!("{at}/{key}/{}", escape_pointer_token(name));
                (name.clone(), self.read_node(value, &at, depth + 1, self.default_mode))
            });
            node.applicators.push((name, Subschemas::Named(all.collect())));
        } else if let ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(exclusive)) =
            (key, value)
        {
            let bound = map.get(if key == "exclusiveMinimum" { "minimum" } else { "maximum" });
            if let Some(bound) = bound.filter(|bound| *exclusive && bound.is_number()) {
                node.keywords.insert(key.to_owned(), bound.clone());
            }
            self.losses.add(&at, key, SchemaLossKind::Replaced);
        } else if key == "example" {
            node.keywords.entry("examples").or_insert(Value::Array(vec![value.clone()]));
            self.losses.add(&at, key, SchemaLossKind::Replaced);
        } else if keyword::is_well_formed(key, value) {
            let twin = match key {
                "minimum" => map.get("exclusiveMinimum"),
                "maximum" => map.get("exclusiveMaximum"),
                _ => None,
            };
            if twin != Some(&Value::Bool(true)) {
                node.keywords.insert(key.to_owned(), value.clone());
            }
        } else {
            self.losses.add(&at, key, SchemaLossKind::Dropped);
        }
    }

    fn read_types(&mut self, node: &mut SchemaNode, value: &Value) {
        let names: Vec<&Value> = match value {
            Value::Array(names) => names.iter().collect(),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_) => {
                vec![value]
            }
        };
        let mut types = TypeSet::NONE;
        for name in names {
            match name.as_str().and_then(TypeSet::from_name) {
                Some((type_set, is_standard)) => {
                    types = types.union(type_set);
                    if !is_standard {
                        self.losses.add(&node.at, "type", SchemaLossKind::Replaced);
                    }
                }
                None => {
                    types = TypeSet::ANY;
                    self.losses.add(&node.at, "type", SchemaLossKind::Widened);
                }
            }
        }
        if types == TypeSet::NONE {
            self.losses.add(&node.at, "type", SchemaLossKind::Widened);
            types = TypeSet::ANY;
        }
        node.types = types;
    }

    fn read_enum(&mut self, node: &mut SchemaNode, value: &Value) {
        let mut unique = HashSet::new();
        let values = value.as_array().map(Vec::as_slice).unwrap_or_default();
        let different: Vec<Value> = values
            .iter()
            .filter(|candidate| unique.insert(candidate.to_string()))
            .cloned()
            .collect();
        if different.is_empty() {
            self.losses.add(&node.at, "enum", SchemaLossKind::Widened);
        } else if node.enum_values.is_none() {
            node.enum_values = Some(different);
        }
    }

    fn read_list(
        &mut self,
        at: &str,
        key: &str,
        value: &'a Value,
        depth: usize,
        how: ReadMode,
    ) -> Vec<SchemaNode> {
        let all = value.as_array().map(Vec::as_slice).unwrap_or_default();
        if all.is_empty() {
            self.losses.add(at, key, SchemaLossKind::Dropped);
        }
        let each = all.iter().enumerate();
        each.map(|(nth, schema)| {
            self.read_node(schema, &format!("{at}/{key}/{nth}"), depth + 1, how)
        })
        .collect()
    }

    /// Reads OpenAPI's `nullable`.
    fn read_nullable(&mut self, node: &mut SchemaNode, map: &Map<String, Value>) {
        match map.get("nullable") {
            Some(Value::Bool(nullable)) => {
                self.losses.add(&node.at, "nullable", SchemaLossKind::Replaced);
                if *nullable {
                    merge::allow_null(node);
                }
            }
            Some(_) => self.losses.add(&node.at, "nullable", SchemaLossKind::Dropped),
            None => {}
        }
    }
}

/// Escapes a name as a token of a JSON pointer.
fn escape_pointer_token(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests;
