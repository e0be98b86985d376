//! From any JSON to a schema that is understood.
//!
//! Old drafts, OpenAPI's dialect and the type names of other languages are put into JSON Schema
//! 2020-12. What is malformed is left out and reported.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::losses::{Change, Losses};
use super::node::{Additional, Definition, Link, Node, Property, Sub, Tree};
use super::rules::Rules;
use super::types::Types;
use super::{keyword, merge};

mod link;

/// Levels of a schema, references included: real ones have ten at most, and a stack has an end.
pub(super) const DEEPEST: usize = 64;
/// Bytes of a schema with every reference that is written out, counted roughly: a model reads it all.
pub(super) const HEAVIEST: usize = 1 << 20;
/// What an empty schema counts.
const NODE_WEIGHT: usize = 32;

/// Keywords with one schema in them that only full JSON Schema has.
const ONE: &[&str] = &[
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedProperties",
    "unevaluatedItems",
];
/// Keywords with schemas by name that only full JSON Schema has.
const NAMED: &[&str] = &["patternProperties", "dependentSchemas"];

/// How a schema is read.
#[derive(Debug, Clone, Copy)]
struct How {
    /// Whether `allOf` and what a reference leads to are made one with the schema.
    merge: bool,
    /// Whether what a reference leads to is read in its place.
    inline: bool,
}

#[derive(Debug)]
struct Reader<'a, 'b> {
    root: &'a Value,
    /// For every schema without a reason to be read otherwise.
    usual: How,
    losses: &'b mut Losses,
    /// Bytes left of [`HEAVIEST`].
    left: usize,
    /// References that stay: pointers and names.
    kept: Vec<(String, String)>,
    /// The numbers of the pointers in `kept`.
    numbers: HashMap<String, usize>,
    /// The names in `kept`.
    names: HashSet<String>,
    /// References that are being read in their places.
    open: Vec<String>,
}

/// Reads the schema of a tool's arguments.
pub(super) fn read(root: &Value, rules: &Rules, losses: &mut Losses) -> Tree {
    let usual = How { merge: !rules.full, inline: !rules.refs };
    let open = vec![String::new()];
    let mut reader = Reader {
        root,
        usual,
        losses,
        left: HEAVIEST,
        kept: Vec::new(),
        numbers: HashMap::new(),
        names: HashSet::new(),
        open,
    };
    let node = reader.node(root, "", 0, How { merge: true, inline: true });
    let mut definitions = Vec::new();
    while let Some((pointer, name)) = reader.kept.get(definitions.len()).cloned() {
        reader.open = vec![pointer.clone()];
        let value = root.pointer(&pointer).unwrap_or(&Value::Bool(true));
        let node = reader.node(value, &pointer, 0, usual);
        definitions.push(Definition { name, node });
    }
    Tree { root: node, definitions }
}

impl<'a> Reader<'a, '_> {
    fn node(&mut self, value: &'a Value, at: &str, depth: usize, how: How) -> Node {
        if depth > DEEPEST || !self.pay(value, at) {
            self.losses.add(at, "", Change::Widened);
            return Node { link: Link::Cut, ..Node::any(at) };
        }
        match value {
            Value::Bool(true) => Node::any(at),
            Value::Bool(false) => Node::never(at),
            Value::Object(map) => self.object(map, at, depth, how),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                self.losses.add(at, "", Change::Dropped);
                Node::any(at)
            }
        }
    }

    /// Takes the weight of this schema without those inside it.
    fn pay(&mut self, value: &Value, at: &str) -> bool {
        let inside = |key: &str, value: &Value| {
            let nested = ["items", "additionalProperties", "additionalItems", "properties"];
            let listed = ["anyOf", "oneOf", "allOf", "prefixItems", "$defs", "definitions"];
            value.is_object() && (nested.contains(&key) || ONE.contains(&key))
                || NAMED.contains(&key)
                || listed.contains(&key)
                || key == "items"
        };
        let own = value.as_object().map_or(0, |map| {
            map.iter()
                .map(|(key, value)| key.len() + if inside(key, value) { 0 } else { weight(value) })
                .sum()
        });
        let paid = self.left.checked_sub(own + at.len() + NODE_WEIGHT);
        self.left = paid.unwrap_or(0);
        paid.is_some()
    }

    fn object(&mut self, map: &'a Map<String, Value>, at: &str, depth: usize, how: How) -> Node {
        let mut node = Node::any(at);
        for (key, value) in map {
            match key.as_str() {
                "type" => self.types(&mut node, value),
                "description" => match value.as_str() {
                    Some(text) => node.words.description = Some(text.to_owned()),
                    None => self.losses.add(at, key, Change::Dropped),
                },
                "enum" => self.choices(&mut node, value),
                "const" if how.merge => {
                    node.choices = Some(vec![value.clone()]);
                    self.losses.add(at, key, Change::Replaced);
                }
                "properties" => self.properties(&mut node, value, map.get("required"), depth),
                "required" => self.required(&mut node, value, map.get("properties")),
                "additionalProperties" => self.additional(&mut node, value, depth),
                "unevaluatedProperties" if how.merge && *value == Value::Bool(false) => {
                    self.losses.add(at, key, Change::Replaced);
                    if matches!(node.members.additional, Additional::Unstated) {
                        node.members.additional = Additional::Closed;
                    }
                }
                "items" | "prefixItems" | "additionalItems" => {
                    self.elements(&mut node, map, key, value, depth);
                }
                "anyOf" => node.any_of = self.list(at, key, value, depth, how),
                "oneOf" => {
                    let list = self.list(at, key, value, depth, how);
                    if !list.is_empty() {
                        node.rest.push(("oneOf", Sub::List(list)));
                    }
                }
                "dependencies" => self.dependencies(&mut node, value, depth),
                "$ref" | "allOf" | "$defs" | "definitions" | "nullable" => {}
                _ => self.other(&mut node, map, key, value, depth),
            }
        }
        self.link(&mut node, map, depth, how);
        self.nullable(&mut node, map);
        self.agree(&mut node);
        node
    }

    /// Keywords that hold no schema, and those of full JSON Schema.
    fn other(
        &mut self,
        node: &mut Node,
        map: &'a Map<String, Value>,
        key: &str,
        value: &'a Value,
        depth: usize,
    ) {
        let at = node.at.clone();
        if let Some(name) = ONE.iter().find(|name| **name == key) {
            let inside = self.node(value, &format!("{at}/{key}"), depth + 1, self.usual);
            node.rest.push((name, Sub::One(Box::new(inside))));
        } else if let Some(name) = NAMED.iter().find(|name| **name == key) {
            let Some(all) = value.as_object() else {
                return self.losses.add(&at, key, Change::Dropped);
            };
            let all = all.iter().map(|(name, value)| {
                let at = format!("{at}/{key}/{}", escaped(name));
                (name.clone(), self.node(value, &at, depth + 1, self.usual))
            });
            node.rest.push((name, Sub::Named(all.collect())));
        } else if let ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(exclusive)) =
            (key, value)
        {
            let bound = map.get(if key == "exclusiveMinimum" { "minimum" } else { "maximum" });
            if let Some(bound) = bound.filter(|bound| *exclusive && bound.is_number()) {
                node.keywords.insert(key.to_owned(), bound.clone());
            }
            self.losses.add(&at, key, Change::Replaced);
        } else if key == "example" {
            node.keywords.entry("examples").or_insert(Value::Array(vec![value.clone()]));
            self.losses.add(&at, key, Change::Replaced);
        } else if keyword::well_formed(key, value) {
            let twin = match key {
                "minimum" => map.get("exclusiveMinimum"),
                "maximum" => map.get("exclusiveMaximum"),
                _ => None,
            };
            if twin != Some(&Value::Bool(true)) {
                node.keywords.insert(key.to_owned(), value.clone());
            }
        } else {
            self.losses.add(&at, key, Change::Dropped);
        }
    }

    fn types(&mut self, node: &mut Node, value: &Value) {
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
        let mut types = Types::NONE;
        for name in names {
            match name.as_str().and_then(Types::named) {
                Some((one, own)) => {
                    types = types.or(one);
                    if !own {
                        self.losses.add(&node.at, "type", Change::Replaced);
                    }
                }
                None => {
                    types = Types::ANY;
                    self.losses.add(&node.at, "type", Change::Widened);
                }
            }
        }
        if types == Types::NONE {
            self.losses.add(&node.at, "type", Change::Widened);
            types = Types::ANY;
        }
        node.types = types;
    }

    fn choices(&mut self, node: &mut Node, value: &Value) {
        let mut seen = HashSet::new();
        let given = value.as_array().map(Vec::as_slice).unwrap_or_default();
        let different: Vec<Value> =
            given.iter().filter(|it| seen.insert(it.to_string())).cloned().collect();
        if different.is_empty() {
            self.losses.add(&node.at, "enum", Change::Widened);
        } else if node.choices.is_none() {
            node.choices = Some(different);
        }
    }

    fn properties(
        &mut self,
        node: &mut Node,
        value: &'a Value,
        required: Option<&Value>,
        depth: usize,
    ) {
        let at = node.at.clone();
        let Some(all) = value.as_object() else {
            return self.losses.add(&at, "properties", Change::Dropped);
        };
        let required: HashSet<&str> = required
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        for (name, value) in all {
            let own = value.get("required") == Some(&Value::Bool(true));
            let node_inside = self.node(
                value,
                &format!("{at}/properties/{}", escaped(name)),
                depth + 1,
                self.usual,
            );
            node.members.properties.push(Property {
                name: name.clone(),
                original: name.clone(),
                node: node_inside,
                required: own || required.contains(name.as_str()),
                absent_as_null: false,
            });
        }
    }

    /// Names without a property; the others are noted with their property.
    fn required(&mut self, node: &mut Node, value: &Value, properties: Option<&Value>) {
        let Some(names) = value.as_array() else {
            if !value.is_boolean() {
                self.losses.add(&node.at, "required", Change::Dropped);
            }
            return;
        };
        let mut seen = HashSet::new();
        for name in names {
            match name.as_str() {
                None => self.losses.add(&node.at, "required", Change::Dropped),
                Some(name) => {
                    let known = properties.is_some_and(|all| all.get(name).is_some());
                    if !known && seen.insert(name) {
                        node.members.missing.push(name.to_owned());
                    }
                }
            }
        }
    }

    fn additional(&mut self, node: &mut Node, value: &'a Value, depth: usize) {
        node.members.additional = match value {
            Value::Bool(true) => Additional::Open,
            Value::Bool(false) => Additional::Closed,
            Value::Object(_) => {
                let at = format!("{}/additionalProperties", node.at);
                Additional::Schema(Box::new(self.node(value, &at, depth + 1, self.usual)))
            }
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return self.losses.add(&node.at, "additionalProperties", Change::Dropped);
            }
        };
    }

    fn elements(
        &mut self,
        node: &mut Node,
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
                    self.losses.add(&at, key, Change::Replaced);
                }
                if node.elements.prefix.is_empty() {
                    node.elements.prefix = self.list(&at, key, value, depth, self.usual);
                }
            }
            ("additionalItems", _) if !old => self.losses.add(&at, key, Change::Dropped),
            _ => {
                let inside = self.node(value, &format!("{at}/{key}"), depth + 1, self.usual);
                node.elements.items = Some(Box::new(inside));
            }
        }
    }

    fn list(&mut self, at: &str, key: &str, value: &'a Value, depth: usize, how: How) -> Vec<Node> {
        let all = value.as_array().map(Vec::as_slice).unwrap_or_default();
        if all.is_empty() {
            self.losses.add(at, key, Change::Dropped);
        }
        let each = all.iter().enumerate();
        each.map(|(nth, it)| self.node(it, &format!("{at}/{key}/{nth}"), depth + 1, how)).collect()
    }

    /// The keyword of old drafts that has become two.
    fn dependencies(&mut self, node: &mut Node, value: &'a Value, depth: usize) {
        let at = node.at.clone();
        self.losses.add(&at, "dependencies", Change::Replaced);
        let (mut schemas, mut names) = (Vec::new(), Map::new());
        for (name, value) in value.as_object().into_iter().flatten() {
            let inside = format!("{at}/dependencies/{}", escaped(name));
            if value.is_array() {
                names.insert(name.clone(), value.clone());
            } else {
                schemas.push((name.clone(), self.node(value, &inside, depth + 1, self.usual)));
            }
        }
        if !schemas.is_empty() && !node.rest.iter().any(|(key, _)| *key == "dependentSchemas") {
            node.rest.push(("dependentSchemas", Sub::Named(schemas)));
        }
        let names = Value::Object(names);
        if !keyword::well_formed("dependentRequired", &names) {
            self.losses.add(&at, "dependencies", Change::Dropped);
        } else if names.as_object().is_some_and(|names| !names.is_empty()) {
            node.keywords.entry("dependentRequired").or_insert(names);
        }
    }

    /// OpenAPI's way to allow `null`.
    fn nullable(&mut self, node: &mut Node, map: &Map<String, Value>) {
        match map.get("nullable") {
            Some(Value::Bool(nullable)) => {
                self.losses.add(&node.at, "nullable", Change::Replaced);
                if *nullable {
                    merge::allow_null(node);
                }
            }
            Some(_) => self.losses.add(&node.at, "nullable", Change::Dropped),
            None => {}
        }
    }

    /// Makes types and choices agree. Where they contradict, the choices are what was meant.
    fn agree(&mut self, node: &mut Node) {
        let Some(choices) = &mut node.choices else { return };
        let agreeing = |it: &Value| node.types.meets(Types::of(it));
        if choices.iter().any(agreeing) {
            choices.retain(agreeing);
        } else {
            let types = choices.iter().map(Types::of);
            node.types = types.fold(Types::NONE, Types::or);
            self.losses.add(&node.at, "type", Change::Replaced);
        }
    }
}

/// A name as a step of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The bytes of a value, roughly.
fn weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(weight).sum::<usize>(),
        Value::Object(members) => {
            2 + members.iter().map(|(key, value)| key.len() + weight(value)).sum::<usize>()
        }
    }
}
