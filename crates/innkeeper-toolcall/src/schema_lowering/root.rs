//! Conversion of a schema's root to an object, because arguments are an object.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::losses::{LossCollector, SchemaLossKind};
use super::node::{AdditionalProperties, Property, RefTarget, SchemaNode, Subschemas};
use super::type_set::TypeSet;
use super::{lower, write};

/// Keywords that no provider supports at the root.
const ROOT_FORBIDDEN_KEYWORDS: &[&str] = &["not", "if", "then", "else"];

/// Converts the root to an object without unions, negations and `enum`.
pub(super) fn make_object(root: &mut SchemaNode, losses: &mut LossCollector) {
    if !root.types.intersects(TypeSet::OBJECT) {
        losses.add(&root.at, "type", SchemaLossKind::Replaced);
        let annotations = std::mem::take(&mut root.annotations);
        *root = SchemaNode { annotations, ..SchemaNode::any("") };
    }
    if let Some(choices) = root.enum_values.take() {
        lower::move_to_description(root, "enum", &Value::Array(choices), losses);
    }
    if let Some(value) = root.keywords.shift_remove("const") {
        lower::move_to_description(root, "const", &value, losses);
    }
    flatten_unions(root, losses);
    root.types = TypeSet::OBJECT;
    for (key, sub) in std::mem::take(&mut root.applicators) {
        if ROOT_FORBIDDEN_KEYWORDS.contains(&key) {
            lower::move_to_description(root, key, &write::write_subschemas(&sub), losses);
        } else {
            root.applicators.push((key, sub));
        }
    }
}

/// Merges the object branches of a union: any property of a branch, required if all branches
/// require it.
fn flatten_unions(node: &mut SchemaNode, losses: &mut LossCollector) {
    let mut unions = Vec::new();
    let any_of = std::mem::take(&mut node.any_of);
    if !any_of.is_empty() {
        unions.push(("anyOf", any_of));
    }
    for (key, sub) in std::mem::take(&mut node.applicators) {
        match sub {
            // The list of `oneOf`: the reader merges the list of `allOf` into the root.
            Subschemas::List(list) => unions.push((key, list)),
            Subschemas::Single(_) | Subschemas::Named(_) => {
                node.applicators.push((key, sub));
            }
        }
    }
    for (key, mut branches) in unions {
        losses.add(&node.at, key, SchemaLossKind::Widened);
        branches.retain(|branch| branch.types.intersects(TypeSet::OBJECT));
        for branch in &mut branches {
            flatten_unions(branch, losses);
        }
        if let Some(groups) = required_groups(&branches) {
            lower::move_to_description(node, key, &Value::String(groups), losses);
        }
        merge_branches(node, branches);
    }
}

/// Describes the required arguments of each branch, if the branches differ.
pub(super) fn required_groups(branches: &[SchemaNode]) -> Option<String> {
    let groups: Vec<String> = branches
        .iter()
        .map(|branch| {
            let members = &branch.members;
            let required = members
                .properties
                .iter()
                .filter(|property| property.required)
                .map(|property| &property.original_name);
            let names: Vec<&str> =
                required.chain(&members.undeclared_required).map(String::as_str).collect();
            names.join(" + ")
        })
        .collect();
    let differ = groups.iter().any(|group| Some(group) != groups.first());
    let all_named = groups.iter().all(|group| !group.is_empty());
    (differ && all_named).then(|| groups.join(", or "))
}

/// A property that only the branches declare.
struct BranchProperty {
    property: Property,
    /// Number of branches that require the property.
    required_count: usize,
    /// Serialized schemas of the property.
    seen_schemas: HashSet<String>,
}

fn merge_branches(node: &mut SchemaNode, branches: Vec<SchemaNode>) {
    let count = branches.len();
    let own_indices = node
        .members
        .properties
        .iter()
        .enumerate()
        .map(|(at, own_property)| (own_property.name.clone(), at));
    let own_indices: HashMap<String, usize> = own_indices.collect();
    let mut fresh: Vec<BranchProperty> = Vec::new();
    let mut indices: HashMap<String, usize> = HashMap::new();
    let mut closed = count > 0;
    for branch in branches {
        closed &= matches!(branch.members.additional_properties, AdditionalProperties::Closed);
        for property in branch.members.properties {
            if let Some(at) = own_indices.get(&property.name) {
                node.members.properties[*at].required |= property.required && count == 1;
                continue;
            }
            let required_count = usize::from(property.required);
            let text = write::write_node(&property.node).to_string();
            if let Some(at) = indices.get(&property.name) {
                let existing = &mut fresh[*at];
                existing.required_count += required_count;
                if property.node.ref_target != RefTarget::None || existing.seen_schemas.insert(text)
                {
                    add_alternative(&mut existing.property.node, property.node);
                }
            } else {
                indices.insert(property.name.clone(), fresh.len());
                fresh.push(BranchProperty {
                    property,
                    required_count,
                    seen_schemas: HashSet::from([text]),
                });
            }
        }
    }
    let mut required_names = HashSet::new();
    for name in std::mem::take(&mut node.members.undeclared_required) {
        if indices.contains_key(&name) {
            required_names.insert(name);
        } else {
            node.members.undeclared_required.push(name);
        }
    }
    for BranchProperty { mut property, required_count, .. } in fresh {
        property.required = required_count == count || required_names.contains(&property.name);
        node.members.properties.push(property);
    }
    if closed && matches!(node.members.additional_properties, AdditionalProperties::Unspecified) {
        node.members.additional_properties = AdditionalProperties::Closed;
    }
}

/// Makes a node also accept the values of `other`.
fn add_alternative(node: &mut SchemaNode, other: SchemaNode) {
    if node.has_assertions() || node.any_of.is_empty() {
        let at = node.at.clone();
        let first = std::mem::replace(node, SchemaNode::any(&at));
        node.any_of.push(first);
    }
    node.any_of.push(other);
}
