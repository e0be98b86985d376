//! Reading of `$ref` and `allOf`.

use std::iter;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::{ReadMode, SchemaReader};
use crate::schema_lowering::losses::SchemaLossKind;
use crate::schema_lowering::merge::merge;
use crate::schema_lowering::node::{RefTarget, SchemaNode, Subschemas};

/// Maximum length of a chain of references.
const MAX_REFERENCE_CHAIN: usize = 32;

impl<'a> SchemaReader<'a, '_> {
    /// Adds the constraints of `$ref` and `allOf` to a node.
    pub(super) fn read_references(
        &mut self,
        node: &mut SchemaNode,
        map: &'a Map<String, Value>,
        depth: usize,
        how: ReadMode,
    ) {
        let at = node.at.clone();
        let all = map.get("allOf").and_then(Value::as_array).map(Vec::as_slice);
        if map.contains_key("allOf") && all.is_none_or(<[Value]>::is_empty) {
            self.losses.add(&at, "allOf", SchemaLossKind::Dropped);
        }
        let mut members = all.unwrap_or_default();
        let mut reference = map.get("$ref");
        if let (None, [only]) = (reference, members)
            && let Some(inner) = bare_reference(only)
        {
            (reference, members) = (Some(inner), &[]);
        }
        let mut schemas = Vec::new();
        if let Some(reference) = reference {
            match reference.as_str().and_then(|text| self.resolve(text)) {
                None => self.losses.add(&at, "$ref", SchemaLossKind::Widened),
                Some((pointer, value)) => {
                    let is_bare =
                        !node.has_assertions() && node.any_of.is_empty() && members.is_empty();
                    if !how.inline_references && (!how.merge_schemas || is_bare) {
                        node.ref_target = RefTarget::Definition(self.definition_index(&pointer));
                    } else {
                        if is_bare {
                            node.at.clone_from(&pointer);
                        }
                        schemas.push(self.inline_reference(value, &pointer, depth, how));
                    }
                }
            }
        }
        if how.merge_schemas {
            for (nth, member) in members.iter().enumerate() {
                let inside = ReadMode { merge_schemas: true, inline_references: true };
                schemas.push(self.read_node(
                    member,
                    &format!("{at}/allOf/{nth}"),
                    depth + 1,
                    inside,
                ));
            }
        } else if !members.is_empty() {
            let list = self.read_list(
                &at,
                "allOf",
                map.get("allOf").unwrap_or(&Value::Null),
                depth,
                self.default_mode,
            );
            node.applicators.push(("allOf", Subschemas::List(list)));
        }
        if how.merge_schemas || (!node.has_assertions() && node.any_of.is_empty()) {
            for schema in schemas {
                if !merge(node, schema, self.losses) {
                    self.losses.add(&at, "type", SchemaLossKind::Widened);
                }
            }
        } else if !schemas.is_empty() {
            match node.applicators.iter_mut().find(|(key, _)| *key == "allOf") {
                Some((_, Subschemas::List(list))) => list.extend(schemas),
                Some(_) | None => node.applicators.push(("allOf", Subschemas::List(schemas))),
            }
        }
    }

    /// Inlines the target of a reference, unless the reference is recursive.
    fn inline_reference(
        &mut self,
        value: &'a Value,
        pointer: &str,
        depth: usize,
        how: ReadMode,
    ) -> SchemaNode {
        if self.open_references.iter().any(|open| open == pointer) {
            self.losses.add(pointer, "$ref", SchemaLossKind::Widened);
            return SchemaNode { ref_target: RefTarget::Truncated, ..SchemaNode::any(pointer) };
        }
        self.open_references.push(pointer.to_owned());
        let node = self.read_node(value, pointer, depth + 1, how);
        self.open_references.pop();
        node
    }

    fn definition_index(&mut self, pointer: &str) -> usize {
        if let Some(at) = self.definition_indexes.get(pointer) {
            return *at;
        }
        let last = pointer.rsplit('/').next().unwrap_or_default();
        let stem: String = last
            .chars()
            .filter(|character| character.is_ascii_alphanumeric() || matches!(character, '_' | '-'))
            .collect();
        let mut name = if stem.is_empty() { "schema".to_owned() } else { stem.clone() };
        let at = self.kept_references.len();
        let mut number = at;
        while !self.definition_names.insert(name.clone()) {
            number += 1;
            name = format!("{stem}_{number}");
        }
        self.definition_indexes.insert(pointer.to_owned(), at);
        self.kept_references.push((pointer.to_owned(), name));
        at
    }

    /// Resolves a reference in this schema, following chains of references.
    fn resolve(&self, reference: &str) -> Option<(String, &'a Value)> {
        let mut reference = reference;
        for _ in 0..MAX_REFERENCE_CHAIN {
            let (base, fragment) = reference.split_once('#')?;
            let base_uri = ["$id", "id"].iter().find_map(|key| self.root.get(*key)?.as_str());
            if !base.is_empty() && base_uri.map(|id| id.trim_end_matches('#')) != Some(base) {
                return None;
            }
            let decoded = percent_decode_str(fragment).decode_utf8().ok();
            let (pointer, value) = iter::once(fragment)
                .chain(decoded.as_deref())
                .find_map(|pointer| Some((pointer, self.root.pointer(pointer)?)))?;
            match bare_reference(value).and_then(Value::as_str) {
                Some(next) => reference = next,
                None => return Some((pointer.to_owned(), value)),
            }
        }
        None
    }
}

/// Returns the reference of a schema without other keywords.
fn bare_reference(schema: &Value) -> Option<&Value> {
    let map = schema.as_object().filter(|map| map.len() == 1)?;
    map.get("$ref")
}
