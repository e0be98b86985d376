//! Serialization of a schema tree to JSON.

use serde_json::{Map, Value, json};

use super::node::{
    AdditionalProperties, Definition, RefTarget, SchemaNode, SchemaTree, Subschemas,
};
use super::type_set::TypeSet;

/// Serializes the complete schema with its reachable definitions.
pub(super) fn write_tree(tree: &SchemaTree, full_json_schema: bool) -> Value {
    let writer = SchemaWriter { definitions: &tree.definitions, full_json_schema };
    let mut root = writer.node_to_map(&tree.root);
    root.entry("properties").or_insert_with(|| json!({}));
    let reachable = tree.reachable_definitions();
    let mut definitions = Map::new();
    for (definition, _) in
        tree.definitions.iter().zip(reachable).filter(|(_, is_reachable)| *is_reachable)
    {
        definitions
            .insert(definition.name.clone(), Value::Object(writer.node_to_map(&definition.node)));
    }
    if !definitions.is_empty() {
        root.insert("$defs".to_owned(), Value::Object(definitions));
    }
    Value::Object(root)
}

/// Serializes one schema for a description.
pub(super) fn write_node(node: &SchemaNode) -> Value {
    Value::Object(SchemaWriter { definitions: &[], full_json_schema: true }.node_to_map(node))
}

/// Serializes several schemas for a description.
pub(super) fn write_nodes(nodes: &[SchemaNode]) -> Value {
    nodes.iter().map(write_node).collect()
}

/// Serializes the value of a keyword for a description.
pub(super) fn write_subschemas(sub: &Subschemas) -> Value {
    SchemaWriter { definitions: &[], full_json_schema: true }.subschemas_to_value(sub)
}

struct SchemaWriter<'a> {
    definitions: &'a [Definition],
    /// Whether a reference may have siblings.
    full_json_schema: bool,
}

impl SchemaWriter<'_> {
    fn node_to_map(&self, node: &SchemaNode) -> Map<String, Value> {
        let mut map = Map::new();
        let mut insert = |key: &str, value: Value| map.insert(key.to_owned(), value);
        if node.types != TypeSet::ANY {
            match node.types.named_types().as_slice() {
                [(_, name)] => insert("type", json!(name)),
                several => insert("type", several.iter().map(|(_, name)| *name).collect()),
            };
        }
        if let Some(text) = description_with_notes(node) {
            insert("description", json!(text));
        }
        if let Some(choices) = &node.enum_values {
            insert("enum", Value::Array(choices.clone()));
        }
        for (key, value) in &node.keywords {
            insert(key, value.clone());
        }
        self.write_members(node, &mut insert);
        if let Some(items) = &node.array_items.items {
            insert("items", self.node_to_value(items));
        }
        if !node.array_items.prefix.is_empty() {
            insert("prefixItems", self.nodes_to_value(&node.array_items.prefix));
        }
        if !node.any_of.is_empty() {
            insert("anyOf", self.nodes_to_value(&node.any_of));
        }
        for (key, sub) in &node.applicators {
            insert(key, self.subschemas_to_value(sub));
        }
        if let RefTarget::Definition(at) = node.ref_target
            && let Some(definition) = self.definitions.get(at)
        {
            let reference = json!(format!("#/$defs/{}", definition.name));
            if self.full_json_schema || map.is_empty() {
                map.insert("$ref".to_owned(), reference);
            } else {
                map.insert("anyOf".to_owned(), json!([{ "$ref": reference }]));
            }
        }
        map
    }

    fn write_members(
        &self,
        node: &SchemaNode,
        insert: &mut impl FnMut(&str, Value) -> Option<Value>,
    ) {
        let members = &node.members;
        let closed = matches!(members.additional_properties, AdditionalProperties::Closed);
        if !members.properties.is_empty() || closed {
            let all = members.properties.iter();
            let all =
                all.map(|property| (property.name.clone(), self.node_to_value(&property.node)));
            insert("properties", Value::Object(all.collect()));
        }
        let required = members
            .properties
            .iter()
            .filter(|property| property.required)
            .map(|property| &property.name);
        let required: Vec<&String> = required.chain(&members.undeclared_required).collect();
        if !required.is_empty() {
            insert("required", json!(required));
        }
        match &members.additional_properties {
            AdditionalProperties::Unspecified => None,
            AdditionalProperties::Open => insert("additionalProperties", json!(true)),
            AdditionalProperties::Closed => insert("additionalProperties", json!(false)),
            AdditionalProperties::Schema(node) => {
                insert("additionalProperties", self.node_to_value(node))
            }
        };
    }

    fn subschemas_to_value(&self, sub: &Subschemas) -> Value {
        match sub {
            Subschemas::Single(node) => self.node_to_value(node),
            Subschemas::List(nodes) => self.nodes_to_value(nodes),
            Subschemas::Named(nodes) => {
                let all = nodes.iter().map(|(name, node)| (name.clone(), self.node_to_value(node)));
                Value::Object(all.collect())
            }
        }
    }

    fn nodes_to_value(&self, nodes: &[SchemaNode]) -> Value {
        nodes.iter().map(|node| self.node_to_value(node)).collect()
    }

    fn node_to_value(&self, node: &SchemaNode) -> Value {
        Value::Object(self.node_to_map(node))
    }
}

fn description_with_notes(node: &SchemaNode) -> Option<String> {
    let notes = node.annotations.notes.join("; ");
    match (&node.annotations.description, notes.is_empty()) {
        (Some(text), true) => Some(text.clone()),
        (Some(text), false) => Some(format!("{text} ({notes})")),
        (None, true) => None,
        (None, false) => Some(format!("({notes})")),
    }
}
