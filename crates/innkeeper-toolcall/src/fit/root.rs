//! The root of every fitted schema: one object, because arguments are one.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::losses::{Change, Losses};
use super::node::{Additional, Link, Node, Property, Sub};
use super::types::Types;
use super::{lower, write};

/// Keywords that no provider takes at the root.
const NOT_AT_ROOT: &[&str] = &["not", "if", "then", "else"];

/// Makes the root an object without unions, negations and choices.
pub(super) fn object(root: &mut Node, losses: &mut Losses) {
    if !root.types.meets(Types::OBJECT) {
        losses.add(&root.at, "type", Change::Replaced);
        let words = std::mem::take(&mut root.words);
        *root = Node { words, ..Node::any("") };
    }
    if let Some(choices) = root.choices.take() {
        lower::describe(root, "enum", &Value::Array(choices), losses);
    }
    if let Some(value) = root.keywords.shift_remove("const") {
        lower::describe(root, "const", &value, losses);
    }
    flatten(root, losses);
    root.types = Types::OBJECT;
    for (key, sub) in std::mem::take(&mut root.rest) {
        if NOT_AT_ROOT.contains(&key) {
            lower::describe(root, key, &write::sub(&sub), losses);
        } else {
            root.rest.push((key, sub));
        }
    }
}

/// Makes one object of the objects a union allows: each property of any, required if all require it.
fn flatten(node: &mut Node, losses: &mut Losses) {
    let mut unions = Vec::new();
    let any_of = std::mem::take(&mut node.any_of);
    if !any_of.is_empty() {
        unions.push(("anyOf", any_of));
    }
    for (key, sub) in std::mem::take(&mut node.rest) {
        match sub {
            Sub::List(list) if key == "oneOf" => unions.push((key, list)),
            Sub::One(_) | Sub::List(_) | Sub::Named(_) => node.rest.push((key, sub)),
        }
    }
    for (key, mut branches) in unions {
        losses.add(&node.at, key, Change::Widened);
        branches.retain(|branch| branch.types.meets(Types::OBJECT));
        for branch in &mut branches {
            flatten(branch, losses);
        }
        if let Some(groups) = groups(&branches) {
            lower::describe(node, key, &Value::String(groups), losses);
        }
        unite(node, branches);
    }
}

/// The arguments each branch asks for, when the branches differ in that.
pub(super) fn groups(branches: &[Node]) -> Option<String> {
    let groups: Vec<String> = branches
        .iter()
        .map(|branch| {
            let members = &branch.members;
            let required =
                members.properties.iter().filter(|it| it.required).map(|it| &it.original);
            let names: Vec<&str> = required.chain(&members.missing).map(String::as_str).collect();
            names.join(" + ")
        })
        .collect();
    let differ = groups.iter().any(|group| Some(group) != groups.first());
    let told = groups.iter().all(|group| !group.is_empty());
    (differ && told).then(|| groups.join(", or "))
}

/// A property that only the branches have.
struct Fresh {
    property: Property,
    /// How many branches require it.
    required: usize,
    /// The schemas it has, written.
    seen: HashSet<String>,
}

fn unite(node: &mut Node, branches: Vec<Node>) {
    let count = branches.len();
    let own = node.members.properties.iter().enumerate().map(|(at, it)| (it.name.clone(), at));
    let own: HashMap<String, usize> = own.collect();
    let mut fresh: Vec<Fresh> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut closed = count > 0;
    for branch in branches {
        closed &= matches!(branch.members.additional, Additional::Closed);
        for property in branch.members.properties {
            if let Some(at) = own.get(&property.name) {
                node.members.properties[*at].required |= property.required && count == 1;
                continue;
            }
            let required = usize::from(property.required);
            let text = write::node(&property.node).to_string();
            if let Some(at) = places.get(&property.name) {
                let known = &mut fresh[*at];
                known.required += required;
                if property.node.link != Link::None || known.seen.insert(text) {
                    alternative(&mut known.property.node, property.node);
                }
            } else {
                places.insert(property.name.clone(), fresh.len());
                fresh.push(Fresh { property, required, seen: HashSet::from([text]) });
            }
        }
    }
    let mut asked = HashSet::new();
    for name in std::mem::take(&mut node.members.missing) {
        if places.contains_key(&name) {
            asked.insert(name);
        } else {
            node.members.missing.push(name);
        }
    }
    for Fresh { mut property, required, .. } in fresh {
        property.required = required == count || asked.contains(&property.name);
        node.members.properties.push(property);
    }
    if closed && matches!(node.members.additional, Additional::Unstated) {
        node.members.additional = Additional::Closed;
    }
}

/// Makes a node accept what the other one accepts, too.
fn alternative(node: &mut Node, other: Node) {
    if node.asserts() || node.any_of.is_empty() {
        let at = node.at.clone();
        let first = std::mem::replace(node, Node::any(&at));
        node.any_of.push(first);
    }
    node.any_of.push(other);
}
