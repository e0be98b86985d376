//! From full JSON Schema to the part that a provider takes.

use std::mem;

use serde_json::{Value, json};

use super::losses::{Change, Losses};
use super::merge::merge;
use super::node::{Additional, Elements, Link, Node, Sub, Tree};
use super::rules::Rules;
use super::types::Types;
use super::{keyword, root, write};
use crate::alias::Aliases;

/// Bytes of a lost keyword's value that a description takes: longer ones help no model.
pub(super) const LONGEST_NOTE: usize = 300;
/// Schemas that may be written again because a union has them in each branch.
pub(super) const MOST_COPIES: usize = 5000;

/// Takes a keyword's value out of the schema and puts it into the description.
pub(super) fn describe(node: &mut Node, keyword: &str, value: &Value, losses: &mut Losses) {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    };
    let helps = *value != Value::Bool(false) && text.len() <= LONGEST_NOTE;
    if helps {
        let note = format!("{keyword}: {text}");
        if !node.words.notes.contains(&note) {
            node.words.notes.push(note);
        }
    }
    let change = if helps { Change::Described } else { Change::Dropped };
    losses.add(&node.at, keyword, change);
}

/// Brings every schema of the tree into the form.
pub(super) fn lower(tree: &mut Tree, rules: &Rules, losses: &mut Losses) {
    let mut lowering = Lowering { rules, losses, copies: MOST_COPIES };
    lowering.node(&mut tree.root);
    for definition in &mut tree.definitions {
        lowering.node(&mut definition.node);
    }
}

struct Lowering<'a> {
    rules: &'a Rules,
    losses: &'a mut Losses,
    /// What is left of [`MOST_COPIES`].
    copies: usize,
}

impl Lowering<'_> {
    fn node(&mut self, node: &mut Node) {
        self.union(node);
        self.rest(node);
        self.types(node);
        self.elements(node);
        self.keywords(node);
        self.choices(node);
        self.members(node);
        if self.rules.strict.is_some() {
            split(node);
        }
        for child in node.children_mut() {
            self.node(child);
        }
    }

    /// Leaves a union alone with its words, or no union.
    fn union(&mut self, node: &mut Node) {
        if let Some(at) = node.rest.iter().position(|(key, _)| *key == "oneOf") {
            match node.rest.remove(at) {
                (key, Sub::List(list)) if node.any_of.is_empty() => {
                    self.losses.add(&node.at, key, Change::Replaced);
                    node.any_of = list;
                }
                (key, sub) => describe(node, key, &write::sub(&sub), self.losses),
            }
        }
        while let [_] = node.any_of.as_slice() {
            let at = node.at.clone();
            for branch in mem::take(&mut node.any_of) {
                let elsewhere = branch.link != Link::None && node.asserts();
                if elsewhere || !merge(node, branch, self.losses) {
                    self.losses.add(&at, "anyOf", Change::Widened);
                }
            }
        }
        if node.any_of.is_empty() || !node.asserts() {
            return;
        }
        if node.any_of.iter().any(|branch| branch.link != Link::None) {
            let types = mem::replace(&mut node.types, Types::ANY);
            if node.asserts() {
                node.types = types;
                self.forget(node);
            } else {
                self.losses.add(&node.at, "type", Change::Widened);
            }
        } else if node.any_of.iter().all(only_requires) {
            self.forget(node);
        } else {
            self.distribute(node);
        }
    }

    /// Takes the union out of the schema.
    fn forget(&mut self, node: &mut Node) {
        let union = mem::take(&mut node.any_of);
        let text = match root::groups(&union) {
            Some(groups) if union.iter().all(only_requires) => Value::String(groups),
            Some(_) | None => write::list(&union),
        };
        describe(node, "anyOf", &text, self.losses);
    }

    /// Moves what stands beside a union into each of its branches.
    fn distribute(&mut self, node: &mut Node) {
        let union = mem::take(&mut node.any_of);
        let copies = node.size().saturating_mul(union.len());
        if copies > self.copies {
            node.any_of = union;
            return self.forget(node);
        }
        self.copies -= copies;
        let base = Node { words: Default::default(), ..node.clone() };
        let mut branches = Vec::new();
        for branch in union {
            let mut both = base.clone();
            both.at.clone_from(&branch.at);
            if merge(&mut both, branch, self.losses) {
                branches.push(both);
            }
        }
        if branches.is_empty() {
            return self.losses.add(&node.at, "anyOf", Change::Widened);
        }
        let titles = ["title", "default", "examples", "deprecated"];
        let words = mem::take(&mut node.words);
        let mut keywords = mem::take(&mut node.keywords);
        keywords.retain(|key, _| titles.contains(&key.as_str()));
        for branch in &mut branches {
            branch.keywords.retain(|key, value| keywords.get(key) != Some(value));
        }
        *node = Node { words, keywords, any_of: branches, ..Node::any(&node.at) };
        self.union(node);
    }

    /// Describes what only full JSON Schema can say.
    fn rest(&mut self, node: &mut Node) {
        for (key, sub) in mem::take(&mut node.rest) {
            if key == "patternProperties" {
                node.members.additional = Additional::Open;
            }
            describe(node, key, &write::sub(&sub), self.losses);
        }
    }

    /// Says the type where only what is inside says it, and nothing of types that cannot be.
    fn types(&mut self, node: &mut Node) {
        let list = node.elements.items.is_some() || !node.elements.prefix.is_empty();
        let untyped = node.types == Types::ANY && node.choices.is_none();
        if untyped && node.any_of.is_empty() && node.link == Link::None {
            let object = !node.members.properties.is_empty();
            if object != list {
                node.types = if object { Types::OBJECT } else { Types::ARRAY };
                self.losses.add(&node.at, "type", Change::Narrowed);
            }
        }
        if let Some(choices) = node.choices.as_ref().filter(|_| node.types == Types::ANY) {
            node.types = choices.iter().map(Types::of).fold(Types::NONE, Types::or);
        }
        node.only_own();
    }

    /// Makes a tuple a list of whatever the tuple has.
    fn elements(&mut self, node: &mut Node) {
        let Elements { prefix, items } = mem::take(&mut node.elements);
        let closed = items.as_deref().is_some_and(is_never);
        if closed {
            node.keywords.entry("maxItems").or_insert(json!(prefix.len()));
            self.losses.add(&node.at, "items", Change::Replaced);
        }
        let items = items.filter(|_| !closed);
        if prefix.is_empty() {
            node.elements.items = items;
            return;
        }
        describe(node, "prefixItems", &write::list(&prefix), self.losses);
        self.losses.add(&node.at, "prefixItems", Change::Widened);
        let mut seen = std::collections::HashSet::new();
        let mut all: Vec<Node> = prefix.into_iter().chain(items.map(|it| *it)).collect();
        all.retain(|it| it.link != Link::None || seen.insert(write::node(it).to_string()));
        let union = Node { any_of: all, ..Node::any(&node.at) };
        node.elements.items = Some(Box::new(union));
    }

    fn keywords(&mut self, node: &mut Node) {
        for (key, value) in mem::take(&mut node.keywords) {
            if key == "title" && node.words.description.is_none() {
                node.words.description = value.as_str().map(str::to_owned);
                self.losses.add(&node.at, &key, Change::Described);
            } else if key == "title" || !keyword::is_about(&key, node.types) {
                self.losses.add(&node.at, &key, Change::Dropped);
            } else if self.stays(&key, &value) {
                node.keywords.insert(key, value);
            } else {
                describe(node, &key, &value, self.losses);
            }
        }
    }

    fn stays(&self, key: &str, value: &Value) -> bool {
        let text = value.as_str().unwrap_or_default();
        self.rules.keywords.contains(&key)
            && match key {
                "format" => self.rules.formats.contains(&text),
                "pattern" => !["(?=", "(?!", "(?<"].iter().any(|look| text.contains(look)),
                _ => true,
            }
    }

    /// Leaves strings and numbers where a provider takes no others.
    fn choices(&mut self, node: &mut Node) {
        let Some(choices) = node.choices.take_if(|_| self.rules.simple_choices) else { return };
        let simple = |it: &Value| it.is_string() || it.is_number();
        if choices.iter().all(simple) {
            node.choices = Some(choices);
        } else if choices.iter().any(simple) && choices.iter().all(|it| simple(it) || it.is_null())
        {
            let types = node.types.without(Types::NULL);
            let choices = choices.into_iter().filter(simple).collect();
            let some = Node { choices: Some(choices), ..Node::of(&node.at, types) };
            let some = Node { keywords: mem::take(&mut node.keywords), ..some };
            let words = mem::take(&mut node.words);
            let any_of = vec![some, Node::of(&node.at, Types::NULL)];
            *node = Node { words, any_of, ..Node::any(&node.at) };
            self.losses.add(&node.at, "enum", Change::Replaced);
        } else {
            describe(node, "enum", &Value::Array(choices), self.losses);
        }
    }

    fn members(&mut self, node: &mut Node) {
        let at = node.at.clone();
        let members = &mut node.members;
        if !mem::take(&mut members.missing).is_empty() {
            self.losses.add(&at, "required", Change::Dropped);
        }
        members.properties.retain(|property| {
            let never = is_never(&property.node);
            if never {
                self.losses.add(&property.node.at, "", Change::Dropped);
            }
            !never
        });
        if let Some(rules) = self.rules.parameters
            && members.properties.iter().any(|property| !rules.allow(&property.name))
        {
            let names = Aliases::new(members.properties.iter().map(|it| it.name.clone()), rules);
            for property in &mut members.properties {
                let Some(name) = names.alias(&property.original) else { continue };
                if name != property.original {
                    let note = format!("name: {}", property.original);
                    property.node.words.notes.push(note);
                    self.losses.add(&property.node.at, "", Change::Replaced);
                    name.clone_into(&mut property.name);
                }
            }
        }
        if self.rules.additional {
            return;
        }
        match mem::take(&mut members.additional) {
            Additional::Unstated | Additional::Open => {}
            Additional::Closed => self.losses.add(&at, "additionalProperties", Change::Widened),
            Additional::Schema(inside) => {
                describe(node, "additionalProperties", &write::node(&inside), self.losses);
            }
        }
    }
}

/// Makes a union of a schema for several types of which one has something inside.
fn split(node: &mut Node) {
    let types = node.types.each();
    let inside = Types::ARRAY.or(Types::OBJECT);
    if node.types == Types::ANY || types.len() < 2 || !node.types.meets(inside) {
        return;
    }
    let mut any_of = Vec::new();
    for (one, _) in types {
        let choices = node.choices.as_ref().map(|choices| {
            choices.iter().filter(|it| one.meets(Types::of(it))).cloned().collect::<Vec<_>>()
        });
        if choices.as_ref().is_some_and(Vec::is_empty) {
            continue;
        }
        let mut branch = Node { choices, ..Node::of(&node.at, one) };
        let about = node.keywords.iter().filter(|(key, _)| keyword::is_about(key, one));
        branch.keywords = about.map(|(key, value)| (key.clone(), value.clone())).collect();
        if one == Types::OBJECT {
            branch.members = mem::take(&mut node.members);
        } else if one == Types::ARRAY {
            branch.elements = mem::take(&mut node.elements);
        }
        any_of.push(branch);
    }
    let words = mem::take(&mut node.words);
    *node = Node { words, any_of, link: node.link, ..Node::any(&node.at) };
}

/// Whether a branch says nothing but which members must be there.
fn only_requires(node: &Node) -> bool {
    let others = Node { members: Default::default(), types: Types::ANY, ..node.clone() };
    !others.asserts()
        && node.any_of.is_empty()
        && node.link == Link::None
        && node.members.properties.is_empty()
        && !node.members.missing.is_empty()
}

/// Whether nothing is accepted.
fn is_never(node: &Node) -> bool {
    node.rest.iter().any(|(key, sub)| match sub {
        Sub::One(inside) => *key == "not" && !inside.asserts() && inside.any_of.is_empty(),
        Sub::List(_) | Sub::Named(_) => false,
    })
}
