//! Two schemas that must both hold, as one.

use std::collections::{HashMap, HashSet};
use std::mem;

use serde_json::Value;

use super::losses::{Change, Losses};
use super::node::{Additional, Elements, Link, Members, Node, Sub};
use super::types::Types;
use super::{lower, write};

/// Makes `node` accept what both accept. What one schema cannot say of two, `other` loses.
///
/// Returns whether anything can satisfy both types; where nothing can, `node` keeps its own.
pub(super) fn merge(node: &mut Node, other: Node, losses: &mut Losses) -> bool {
    let types = node.types.and(other.types);
    let possible = types != Types::NONE;
    if possible {
        node.types = types;
    }
    words(node, &other);
    choices(node, other.choices, losses);
    for (key, value) in other.keywords {
        keyword(node, &key, value, losses);
    }
    members(node, other.members, losses);
    elements(node, other.elements, losses);
    if node.any_of.is_empty() {
        node.any_of = other.any_of;
    } else if !other.any_of.is_empty() {
        let text = write::list(&other.any_of);
        lower::describe(node, "anyOf", &text, losses);
    }
    for (key, sub) in other.rest {
        if node.rest.iter().any(|(known, _)| *known == key) {
            let text = write::sub(&sub);
            lower::describe(node, key, &text, losses);
        } else {
            node.rest.push((key, sub));
        }
    }
    if node.link == Link::None {
        node.link = other.link;
    }
    possible
}

fn words(node: &mut Node, other: &Node) {
    let words = &mut node.words;
    words.notes.extend(other.words.notes.iter().cloned());
    match (&mut words.description, &other.words.description) {
        (Some(own), Some(more)) if own != more => {
            own.push('\n');
            own.push_str(more);
        }
        (None, Some(_)) => words.description.clone_from(&other.words.description),
        (Some(_) | None, Some(_) | None) => {}
    }
}

fn choices(node: &mut Node, other: Option<Vec<Value>>, losses: &mut Losses) {
    match (&mut node.choices, other) {
        (Some(own), Some(other)) => {
            let other: HashSet<String> = other.iter().map(Value::to_string).collect();
            if own.iter().any(|it| other.contains(&it.to_string())) {
                own.retain(|it| other.contains(&it.to_string()));
            } else {
                losses.add(&node.at, "enum", Change::Widened);
            }
        }
        (own @ None, other) => *own = other,
        (Some(_), None) => {}
    }
}

fn keyword(node: &mut Node, key: &str, value: Value, losses: &mut Losses) {
    let Some(own) = node.keywords.get(key) else {
        node.keywords.insert(key.to_owned(), value);
        return;
    };
    if *own == value {
        return;
    }
    let more = own.as_f64().zip(value.as_f64()).map(|(own, other)| other > own);
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
        _ => lower::describe(node, key, &value, losses),
    }
}

fn members(node: &mut Node, other: Members, losses: &mut Losses) {
    let own = &mut node.members;
    let names = own.properties.iter().enumerate().map(|(at, it)| (it.name.clone(), at));
    let mut known: HashMap<String, usize> = names.collect();
    for property in other.properties {
        if let Some(at) = known.get(&property.name) {
            let known = &mut own.properties[*at];
            known.required |= property.required;
            let at = known.node.at.clone();
            if !merge(&mut known.node, property.node, losses) {
                losses.add(&at, "type", Change::Widened);
            }
        } else {
            known.insert(property.name.clone(), own.properties.len());
            own.properties.push(property);
        }
    }
    let mut seen = HashSet::new();
    for name in mem::take(&mut own.missing).into_iter().chain(other.missing) {
        match known.get(&name) {
            Some(at) => own.properties[*at].required = true,
            None if !seen.insert(name.clone()) => {}
            None => own.missing.push(name),
        }
    }
    let own_additional = mem::take(&mut own.additional);
    own.additional = match (own_additional, other.additional) {
        (Additional::Closed, _) | (_, Additional::Closed) => Additional::Closed,
        (Additional::Schema(mut one), Additional::Schema(two)) => {
            let at = one.at.clone();
            if !merge(&mut one, *two, losses) {
                losses.add(&at, "type", Change::Widened);
            }
            Additional::Schema(one)
        }
        (Additional::Schema(one), Additional::Unstated | Additional::Open)
        | (Additional::Unstated | Additional::Open, Additional::Schema(one)) => {
            Additional::Schema(one)
        }
        (Additional::Open, Additional::Unstated | Additional::Open)
        | (Additional::Unstated, Additional::Open) => Additional::Open,
        (Additional::Unstated, Additional::Unstated) => Additional::Unstated,
    };
}

fn elements(node: &mut Node, other: Elements, losses: &mut Losses) {
    let at = node.at.clone();
    let own = &mut node.elements;
    if own.prefix.is_empty() {
        own.prefix = other.prefix;
    } else if !other.prefix.is_empty() {
        losses.add(&at, "prefixItems", Change::Widened);
    }
    match (&mut own.items, other.items) {
        (Some(one), Some(two)) => {
            if !merge(one, *two, losses) {
                losses.add(&at, "items", Change::Widened);
            }
        }
        (own @ None, two) => *own = two,
        (Some(_), None) => {}
    }
}

/// Makes a node accept `null` as well.
pub(super) fn allow_null(node: &mut Node) {
    if node.link != Link::None {
        let inner = mem::replace(node, Node::any(&node.at.clone()));
        node.words = inner.words.clone();
        node.any_of = vec![Node { words: Default::default(), ..inner }];
    }
    let listed = node.rest.iter_mut().find_map(|(key, sub)| match sub {
        Sub::List(list) if *key == "oneOf" => Some(list),
        Sub::One(_) | Sub::List(_) | Sub::Named(_) => None,
    });
    let at = node.at.clone();
    for union in [Some(&mut node.any_of), listed].into_iter().flatten() {
        if !union.is_empty() && !union.iter().any(|it| it.types == Types::NULL) {
            union.push(Node::of(&at, Types::NULL));
        }
    }
    node.types = node.types.or(Types::NULL);
    if let Some(choices) = node.choices.as_mut().filter(|choices| !choices.contains(&Value::Null)) {
        choices.push(Value::Null);
    }
}
