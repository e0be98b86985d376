//! Intersection of two schemas.

use std::collections::{HashMap, HashSet};
use std::mem;

use serde_json::Value;

use super::losses::{LossCollector, SchemaLossKind};
use super::node::{
    AdditionalProperties, ArrayItems, ObjectMembers, RefTarget, SchemaNode, Subschemas,
};
use super::type_set::TypeSet;
use super::{lower, write};

/// Makes `node` accept only values that both schemas accept. Keywords that one schema cannot
/// express twice are lost from `other`.
///
/// Returns `false` if no value has a type of both schemas, or if no value of `enum` has such a type;
/// `node` then accepts more than both schemas.
pub(super) fn merge(node: &mut SchemaNode, other: SchemaNode, losses: &mut LossCollector) -> bool {
    let types = node.types.intersection(other.types);
    let has_types = types != TypeSet::NONE;
    if has_types {
        node.types = types;
    }
    merge_annotations(node, &other);
    merge_enum_values(node, other.enum_values, losses);
    let possible = node.reconcile_types() && has_types;
    for (key, value) in other.keywords {
        merge_keyword(node, &key, value, losses);
    }
    merge_members(node, other.members, losses);
    merge_array_items(node, other.array_items, losses);
    if node.any_of.is_empty() {
        node.any_of = other.any_of;
    } else if !other.any_of.is_empty() {
        let text = write::write_nodes(&other.any_of);
        lower::move_to_description(node, "anyOf", &text, losses);
    }
    for (key, sub) in other.applicators {
        if node.applicators.iter().any(|(existing, _)| *existing == key) {
            let text = write::write_subschemas(&sub);
            lower::move_to_description(node, key, &text, losses);
        } else {
            node.applicators.push((key, sub));
        }
    }
    if node.ref_target == RefTarget::None {
        node.ref_target = other.ref_target;
    }
    possible
}

fn merge_annotations(node: &mut SchemaNode, other: &SchemaNode) {
    let annotations = &mut node.annotations;
    annotations.notes.extend(other.annotations.notes.iter().cloned());
    match (&mut annotations.description, &other.annotations.description) {
        (Some(current), Some(more)) if current != more => {
            current.push('\n');
            current.push_str(more);
        }
        (None, Some(_)) => annotations.description.clone_from(&other.annotations.description),
        (Some(_) | None, Some(_) | None) => {}
    }
}

fn merge_enum_values(node: &mut SchemaNode, other: Option<Vec<Value>>, losses: &mut LossCollector) {
    match (&mut node.enum_values, other) {
        (Some(values), Some(other)) => {
            let other: HashSet<String> = other.iter().map(Value::to_string).collect();
            if values.iter().any(|value| other.contains(&value.to_string())) {
                values.retain(|value| other.contains(&value.to_string()));
            } else {
                losses.add(&node.at, "enum", SchemaLossKind::Widened);
            }
        }
        (current @ None, other) => *current = other,
        (Some(_), None) => {}
    }
}

fn merge_keyword(node: &mut SchemaNode, key: &str, value: Value, losses: &mut LossCollector) {
    let Some(current) = node.keywords.get(key) else {
        node.keywords.insert(key.to_owned(), value);
        return;
    };
    if *current == value {
        return;
    }
    let more =
        current.as_f64().zip(value.as_f64()).map(|(current_number, other)| other > current_number);
    match (key, more) {
        (
            "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties"
            | "minContains",
            Some(more),
        ) => {
            if more {
                node.keywords.insert(key.to_owned(), value);
            }
        }
        (
            "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties"
            | "maxContains",
            Some(more),
        ) => {
            if !more {
                node.keywords.insert(key.to_owned(), value);
            }
        }
        ("uniqueItems", _) => {
            node.keywords.insert(key.to_owned(), Value::Bool(true));
        }
        _ => lower::move_to_description(node, key, &value, losses),
    }
}

fn merge_members(node: &mut SchemaNode, other: ObjectMembers, losses: &mut LossCollector) {
    let members = &mut node.members;
    let names = members
        .properties
        .iter()
        .enumerate()
        .map(|(at, own_property)| (own_property.name.clone(), at));
    let mut indices: HashMap<String, usize> = names.collect();
    // A schema for additional properties also applies to properties that only the other schema
    // declares.
    let shared =
        other.properties.iter().filter(|property| indices.contains_key(&property.name)).count();
    if members.restricts_additional() && shared < other.properties.len()
        || other.restricts_additional() && shared < members.properties.len()
    {
        losses.add(&node.at, "additionalProperties", SchemaLossKind::Widened);
    }
    for property in other.properties {
        if let Some(at) = indices.get(&property.name) {
            let existing = &mut members.properties[*at];
            existing.required |= property.required;
            let at = existing.node.at.clone();
            if !merge(&mut existing.node, property.node, losses) {
                losses.add(&at, "type", SchemaLossKind::Widened);
            }
        } else {
            indices.insert(property.name.clone(), members.properties.len());
            members.properties.push(property);
        }
    }
    let mut unique = HashSet::new();
    for name in
        mem::take(&mut members.undeclared_required).into_iter().chain(other.undeclared_required)
    {
        match indices.get(&name) {
            Some(at) => members.properties[*at].required = true,
            None if !unique.insert(name.clone()) => {}
            None => members.undeclared_required.push(name),
        }
    }
    let own_additional = mem::take(&mut members.additional_properties);
    members.additional_properties = match (own_additional, other.additional_properties) {
        (AdditionalProperties::Closed, _) | (_, AdditionalProperties::Closed) => {
            AdditionalProperties::Closed
        }
        (AdditionalProperties::Schema(mut first), AdditionalProperties::Schema(two)) => {
            let at = first.at.clone();
            if !merge(&mut first, *two, losses) {
                losses.add(&at, "type", SchemaLossKind::Widened);
            }
            AdditionalProperties::Schema(first)
        }
        (
            AdditionalProperties::Schema(first),
            AdditionalProperties::Unspecified | AdditionalProperties::Open,
        )
        | (
            AdditionalProperties::Unspecified | AdditionalProperties::Open,
            AdditionalProperties::Schema(first),
        ) => AdditionalProperties::Schema(first),
        (
            AdditionalProperties::Open,
            AdditionalProperties::Unspecified | AdditionalProperties::Open,
        )
        | (AdditionalProperties::Unspecified, AdditionalProperties::Open) => {
            AdditionalProperties::Open
        }
        (AdditionalProperties::Unspecified, AdditionalProperties::Unspecified) => {
            AdditionalProperties::Unspecified
        }
    };
}

fn merge_array_items(node: &mut SchemaNode, other: ArrayItems, losses: &mut LossCollector) {
    let at = node.at.clone();
    let array_items = &mut node.array_items;
    let own_len = array_items.prefix.len();
    let other_len = other.prefix.len();
    // The `items` of a shorter tuple also apply to the rest of a longer tuple.
    let shorter = if own_len < other_len { &array_items.items } else { &other.items };
    if own_len != other_len && shorter.is_some() {
        losses.add(&at, "items", SchemaLossKind::Widened);
    }
    let mut prefix = other.prefix.into_iter();
    for (first, two) in array_items.prefix.iter_mut().zip(prefix.by_ref()) {
        if !merge(first, two, losses) {
            losses.add(&first.at, "type", SchemaLossKind::Widened);
        }
    }
    array_items.prefix.extend(prefix);
    match (&mut array_items.items, other.items) {
        (Some(first), Some(two)) => {
            if !merge(first, *two, losses) {
                losses.add(&at, "items", SchemaLossKind::Widened);
            }
        }
        (items @ None, two) => *items = two,
        (Some(_), None) => {}
    }
}

/// Makes a node accept `null` in addition.
pub(super) fn allow_null(node: &mut SchemaNode) {
    if node.ref_target != RefTarget::None {
        let inner = mem::replace(node, SchemaNode::any(&node.at.clone()));
        node.annotations = inner.annotations.clone();
        node.any_of = vec![SchemaNode { annotations: Default::default(), ..inner }];
    }
    let one_of = node.applicators.iter_mut().find_map(|(key, sub)| match sub {
        Subschemas::List(list) if *key == "oneOf" => Some(list),
        Subschemas::Single(_) | Subschemas::List(_) | Subschemas::Named(_) => None,
    });
    let at = node.at.clone();
    for union in [Some(&mut node.any_of), one_of].into_iter().flatten() {
        if !union.is_empty() && !union.iter().any(|branch| branch.types == TypeSet::NULL) {
            union.push(SchemaNode::with_types(&at, TypeSet::NULL));
        }
    }
    node.types = node.types.union(TypeSet::NULL);
    if let Some(choices) =
        node.enum_values.as_mut().filter(|choices| !choices.contains(&Value::Null))
    {
        choices.push(Value::Null);
    }
}
