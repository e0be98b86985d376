//! Removal of each `null` that represents an absent member, from arguments for a strict schema.

use super::node::{AdditionalProperties, RefTarget, SchemaNode, SchemaTree};
use super::type_set::TypeSet;
use crate::Json;

/// Maximum depth of a value that is compared to select the branch of a union.
const MAX_BRANCH_DEPTH: usize = 3;

/// Removes every `null` that represents an absent member.
pub(super) fn remove_absent(tree: &SchemaTree, arguments: Json) -> Json {
    Restorer { tree }.restore_value(&tree.root, arguments)
}

struct Restorer<'a> {
    tree: &'a SchemaTree,
}

impl<'a> Restorer<'a> {
    /// Resolves a reference. No target is itself a reference.
    fn resolve_ref(&self, node: &'a SchemaNode) -> &'a SchemaNode {
        match node.ref_target {
            RefTarget::Definition(at) => &self.tree.definitions[at].node,
            RefTarget::None | RefTarget::Truncated => node,
        }
    }

    fn restore_value(&self, node: &'a SchemaNode, value: Json) -> Json {
        let mut node = self.resolve_ref(node);
        while !node.any_of.is_empty() {
            let mut branches = node.any_of.iter();
            let branch = branches.find(|branch| self.accepts(branch, &value, MAX_BRANCH_DEPTH));
            let Some(branch) = branch else { return value };
            node = self.resolve_ref(branch);
        }
        match value {
            Json::Object(members) => self.restore_object(node, members),
            Json::Array(items) => {
                let Some(inside) = node.array_items.items.as_deref() else {
                    return Json::Array(items);
                };
                Json::Array(
                    items.into_iter().map(|item| self.restore_value(inside, item)).collect(),
                )
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => value,
        }
    }

    fn restore_object(&self, node: &'a SchemaNode, members: Vec<(String, Json)>) -> Json {
        let properties = &node.members.properties;
        let mut restored = Vec::with_capacity(members.len());
        for (name, value) in members {
            let Some(property) = properties.iter().find(|property| property.name == name) else {
                restored.push((name, value));
                continue;
            };
            if value == Json::Null && property.absent_as_null {
                continue;
            }
            restored.push((name, self.restore_value(&property.node, value)));
        }
        Json::Object(restored)
    }

    /// Whether a value may match this schema, judged down to `levels`.
    fn accepts(&self, node: &'a SchemaNode, value: &Json, levels: usize) -> bool {
        let node = self.resolve_ref(node);
        let Some(levels) = levels.checked_sub(1) else { return true };
        if !node.any_of.is_empty() {
            return node.any_of.iter().any(|branch| self.accepts(branch, value, levels));
        }
        let is_chosen = node
            .enum_values
            .as_ref()
            .is_none_or(|choices| choices.iter().any(|choice| Json::from(choice) == *value));
        if !node.types.intersects(type_of(value)) || !is_chosen {
            return false;
        }
        match value {
            Json::Object(members) => {
                let properties = &node.members.properties;
                let closed =
                    matches!(node.members.additional_properties, AdditionalProperties::Closed);
                properties.iter().all(|property| match value.get(&property.name) {
                    Some(Json::Null) if property.absent_as_null => true,
                    Some(inside) => self.accepts(&property.node, inside, levels),
                    None => !property.required,
                }) && (!closed
                    || members
                        .iter()
                        .all(|(name, _)| properties.iter().any(|declared| declared.name == *name)))
            }
            Json::Array(items) => {
                let inside = node.array_items.items.as_deref();
                inside.is_none_or(|node| items.iter().all(|item| self.accepts(node, item, levels)))
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => true,
        }
    }
}

fn type_of(value: &Json) -> TypeSet {
    match value {
        Json::Null => TypeSet::NULL,
        Json::Bool(_) => TypeSet::BOOLEAN,
        Json::Number(text) if text.contains(['.', 'e', 'E']) => TypeSet::NUMBER,
        Json::Number(_) => TypeSet::INTEGER,
        Json::String(_) => TypeSet::STRING,
        Json::Array(_) => TypeSet::ARRAY,
        Json::Object(_) => TypeSet::OBJECT,
    }
}
