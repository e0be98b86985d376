//! From a schema that is understood back to JSON.

use serde_json::{Map, Value, json};

use super::node::{Additional, Definition, Link, Node, Sub, Tree};
use super::types::Types;

/// The whole schema, with the definitions it refers to.
pub(super) fn tree(tree: &Tree, full: bool) -> Value {
    let writer = Writer { definitions: &tree.definitions, full };
    let mut root = writer.map(&tree.root);
    root.entry("properties").or_insert_with(|| json!({}));
    let reached = tree.reached();
    let mut definitions = Map::new();
    for (definition, _) in tree.definitions.iter().zip(reached).filter(|(_, reached)| *reached) {
        definitions.insert(definition.name.clone(), Value::Object(writer.map(&definition.node)));
    }
    if !definitions.is_empty() {
        root.insert("$defs".to_owned(), Value::Object(definitions));
    }
    Value::Object(root)
}

/// One schema for someone to read.
pub(super) fn node(node: &Node) -> Value {
    Value::Object(Writer { definitions: &[], full: true }.map(node))
}

/// Some schemas for someone to read.
pub(super) fn list(nodes: &[Node]) -> Value {
    nodes.iter().map(node).collect()
}

/// The value of a keyword for someone to read.
pub(super) fn sub(sub: &Sub) -> Value {
    Writer { definitions: &[], full: true }.sub(sub)
}

struct Writer<'a> {
    definitions: &'a [Definition],
    /// Whether something may stand beside a reference.
    full: bool,
}

impl Writer<'_> {
    fn map(&self, node: &Node) -> Map<String, Value> {
        let mut map = Map::new();
        let mut put = |key: &str, value: Value| map.insert(key.to_owned(), value);
        if node.types != Types::ANY {
            match node.types.each().as_slice() {
                [(_, name)] => put("type", json!(name)),
                several => put("type", several.iter().map(|(_, name)| *name).collect()),
            };
        }
        if let Some(text) = description(node) {
            put("description", json!(text));
        }
        if let Some(choices) = &node.choices {
            put("enum", Value::Array(choices.clone()));
        }
        for (key, value) in &node.keywords {
            put(key, value.clone());
        }
        self.members(node, &mut put);
        if let Some(items) = &node.elements.items {
            put("items", self.value(items));
        }
        if !node.elements.prefix.is_empty() {
            put("prefixItems", self.values(&node.elements.prefix));
        }
        if !node.any_of.is_empty() {
            put("anyOf", self.values(&node.any_of));
        }
        for (key, sub) in &node.rest {
            put(key, self.sub(sub));
        }
        if let Link::Definition(at) = node.link
            && let Some(definition) = self.definitions.get(at)
        {
            let reference = json!(format!("#/$defs/{}", definition.name));
            if self.full || map.is_empty() {
                map.insert("$ref".to_owned(), reference);
            } else {
                map.insert("anyOf".to_owned(), json!([{ "$ref": reference }]));
            }
        }
        map
    }

    fn members(&self, node: &Node, put: &mut impl FnMut(&str, Value) -> Option<Value>) {
        let members = &node.members;
        let closed = matches!(members.additional, Additional::Closed);
        if !members.properties.is_empty() || closed {
            let all = members.properties.iter();
            let all = all.map(|it| (it.name.clone(), self.value(&it.node)));
            put("properties", Value::Object(all.collect()));
        }
        let required = members.properties.iter().filter(|it| it.required).map(|it| &it.name);
        let required: Vec<&String> = required.chain(&members.missing).collect();
        if !required.is_empty() {
            put("required", json!(required));
        }
        match &members.additional {
            Additional::Unstated => None,
            Additional::Open => put("additionalProperties", json!(true)),
            Additional::Closed => put("additionalProperties", json!(false)),
            Additional::Schema(node) => put("additionalProperties", self.value(node)),
        };
    }

    fn sub(&self, sub: &Sub) -> Value {
        match sub {
            Sub::One(node) => self.value(node),
            Sub::List(nodes) => self.values(nodes),
            Sub::Named(nodes) => {
                let all = nodes.iter().map(|(name, node)| (name.clone(), self.value(node)));
                Value::Object(all.collect())
            }
        }
    }

    fn values(&self, nodes: &[Node]) -> Value {
        nodes.iter().map(|node| self.value(node)).collect()
    }

    fn value(&self, node: &Node) -> Value {
        Value::Object(self.map(node))
    }
}

/// The description with what the schema lost behind it.
fn description(node: &Node) -> Option<String> {
    let notes = node.words.notes.join("; ");
    match (&node.words.description, notes.is_empty()) {
        (Some(text), true) => Some(text.clone()),
        (Some(text), false) => Some(format!("{text} ({notes})")),
        (None, true) => None,
        (None, false) => Some(format!("({notes})")),
    }
}
