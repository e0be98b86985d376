//! Reads the keywords about members of objects and items of arrays.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{SchemaReader, escape_pointer_token};
use crate::schema_lowering::keyword;
use crate::schema_lowering::losses::SchemaLossKind;
use crate::schema_lowering::node::{AdditionalProperties, Property, SchemaNode, Subschemas};

impl<'a> SchemaReader<'a, '_> {
    pub(super) fn read_properties(
        &mut self,
        node: &mut SchemaNode,
        value: &'a Value,
        required: Option<&Value>,
        depth: usize,
    ) {
        let at = node.at.clone();
        let Some(all) = value.as_object() else {
            return self.losses.add(&at, "properties", SchemaLossKind::Dropped);
        };
        let required: HashSet<&str> = required
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        for (name, value) in all {
            let is_required = value.get("required") == Some(&Value::Bool(true));
            let node_inside = self.read_node(
                value,
                &format!("{at}/properties/{}", escape_pointer_token(name)),
                depth + 1,
                self.default_mode,
            );
            node.members.properties.push(Property {
                name: name.clone(),
                original_name: name.clone(),
                node: node_inside,
                required: is_required || required.contains(name.as_str()),
                absent_as_null: false,
            });
        }
    }

    /// Records required names without a property; the properties record the others.
    pub(super) fn read_required(
        &mut self,
        node: &mut SchemaNode,
        value: &Value,
        properties: Option<&Value>,
    ) {
        let Some(names) = value.as_array() else {
            if !value.is_boolean() {
                self.losses.add(&node.at, "required", SchemaLossKind::Dropped);
            }
            return;
        };
        let mut unique = HashSet::new();
        for name in names {
            match name.as_str() {
                None => self.losses.add(&node.at, "required", SchemaLossKind::Dropped),
                Some(name) => {
                    let is_declared = properties.is_some_and(|all| all.get(name).is_some());
                    if !is_declared && unique.insert(name) {
                        node.members.undeclared_required.push(name.to_owned());
                    }
                }
            }
        }
    }

    pub(super) fn read_additional_properties(
        &mut self,
        node: &mut SchemaNode,
        value: &'a Value,
        depth: usize,
    ) {
        node.members.additional_properties = match value {
            Value::Bool(true) => AdditionalProperties::Open,
            Value::Bool(false) => AdditionalProperties::Closed,
            Value::Object(_) => {
                let at = format!("{}/additionalProperties", node.at);
                AdditionalProperties::Schema(Box::new(self.read_node(
                    value,
                    &at,
                    depth + 1,
                    self.default_mode,
                )))
            }
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return self.losses.add(&node.at, "additionalProperties", SchemaLossKind::Dropped);
            }
        };
    }

    pub(super) fn read_array_items(
        &mut self,
        node: &mut SchemaNode,
        map: &Map<String, Value>,
        key: &str,
        value: &'a Value,
        depth: usize,
    ) {
        let at = node.at.clone();
        let old = map.get("items").is_some_and(Value::is_array);
        match (key, value) {
            ("prefixItems", _) | ("items", Value::Array(_)) => {
                if key == "items" {
                    self.losses.add(&at, key, SchemaLossKind::Replaced);
                }
                if node.array_items.prefix.is_empty() {
                    node.array_items.prefix =
                        self.read_list(&at, key, value, depth, self.default_mode);
                }
            }
            ("additionalItems", _) if !old => self.losses.add(&at, key, SchemaLossKind::Dropped),
            _ => {
                let inside =
                    self.read_node(value, &format!("{at}/{key}"), depth + 1, self.default_mode);
                node.array_items.items = Some(Box::new(inside));
            }
        }
    }

    /// Reads `dependencies` of old drafts, which newer drafts split into two keywords.
    pub(super) fn read_dependencies(
        &mut self,
        node: &mut SchemaNode,
        value: &'a Value,
        depth: usize,
    ) {
        let at = node.at.clone();
        self.losses.add(&at, "dependencies", SchemaLossKind::Replaced);
        let mut schemas = Vec::new();
        let mut names = Map::new();
        for (name, value) in value.as_object().into_iter().flatten() {
            let inside = format!("{at}/dependencies/{}", escape_pointer_token(name));
            if value.is_array() {
                names.insert(name.clone(), value.clone());
            } else {
                schemas.push((
                    name.clone(),
                    self.read_node(value, &inside, depth + 1, self.default_mode),
                ));
            }
        }
        if !schemas.is_empty()
            && !node.applicators.iter().any(|(key, _)| *key == "dependentSchemas")
        {
            node.applicators.push(("dependentSchemas", Subschemas::Named(schemas)));
        }
        let names = Value::Object(names);
        if !keyword::is_well_formed("dependentRequired", &names) {
            self.losses.add(&at, "dependencies", SchemaLossKind::Dropped);
        } else if names.as_object().is_some_and(|names| !names.is_empty()) {
            node.keywords.entry("dependentRequired").or_insert(names);
        }
    }
}
