//! Lowering of a schema tree to the keywords that a provider supports.

use std::mem;

use serde_json::{Value, json};

use super::losses::{LossCollector, SchemaLossKind};
use super::merge::merge;
use super::node::{
    AdditionalProperties, ArrayItems, RefTarget, SchemaNode, SchemaTree, Subschemas,
};
use super::rules::DialectRules;
use super::type_set::TypeSet;
use super::{Dialect, keyword, root, write};

/// Maximum bytes of a keyword's value in a description; longer values do not help a model.
pub(super) const MAX_NOTE_BYTES: usize = 300;
/// Maximum number of copied schemas when sibling keywords move into the branches of a union.
pub(super) const MAX_COPIED_SCHEMAS: usize = 5000;

/// Moves a keyword from the schema to the description.
pub(super) fn move_to_description(
    node: &mut SchemaNode,
    keyword: &str,
    value: &Value,
    losses: &mut LossCollector,
) {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    };
    let helps = *value != Value::Bool(false) && text.len() <= MAX_NOTE_BYTES;
    if helps {
        let note = format!("{keyword}: {text}");
        if !node.annotations.notes.contains(&note) {
            node.annotations.notes.push(note);
        }
    }
    let change = if helps { SchemaLossKind::Described } else { SchemaLossKind::Dropped };
    losses.add(&node.at, keyword, change);
}

/// Lowers every schema of the tree.
pub(super) fn lower_tree(tree: &mut SchemaTree, dialect: Dialect, losses: &mut LossCollector) {
    let rules = dialect.rules();
    let allows_empty_choices = dialect.limits().allows_empty_choices;
    let mut lowering =
        Lowering { rules, allows_empty_choices, losses, remaining_copies: MAX_COPIED_SCHEMAS };
    lowering.lower_node(&mut tree.root);
    for definition in &mut tree.definitions {
        lowering.lower_node(&mut definition.node);
    }
}

struct Lowering<'a> {
    rules: &'a DialectRules,
    /// Whether `enum` may contain an empty string.
    allows_empty_choices: bool,
    losses: &'a mut LossCollector,
    /// Remaining part of [`MAX_COPIED_SCHEMAS`].
    remaining_copies: usize,
}

impl Lowering<'_> {
    fn lower_node(&mut self, node: &mut SchemaNode) {
        self.lower_union(node);
        self.describe_applicators(node);
        self.lower_types(node);
        self.lower_array_items(node);
        self.lower_keywords(node);
        self.lower_enum(node);
        self.lower_members(node);
        if self.rules.is_strict {
            split_types(node);
        }
        for child in node.children_mut() {
            self.lower_node(child);
        }
    }

    /// Keeps either the union with its annotations or no union.
    fn lower_union(&mut self, node: &mut SchemaNode) {
        if let Some(at) = node.applicators.iter().position(|(key, _)| *key == "oneOf") {
            match node.applicators.remove(at) {
                (key, Subschemas::List(list)) if node.any_of.is_empty() => {
                    self.losses.add(&node.at, key, SchemaLossKind::Replaced);
                    node.any_of = list;
                }
                (key, sub) => {
                    move_to_description(node, key, &write::write_subschemas(&sub), self.losses);
                }
            }
        }
        while let [_] = node.any_of.as_slice() {
            let at = node.at.clone();
            for branch in mem::take(&mut node.any_of) {
                let elsewhere = branch.ref_target != RefTarget::None && node.has_assertions();
                if elsewhere || !merge(node, branch, self.losses) {
                    self.losses.add(&at, "anyOf", SchemaLossKind::Widened);
                }
            }
        }
        if node.any_of.is_empty() || !node.has_assertions() {
            return;
        }
        if node.any_of.iter().any(|branch| branch.ref_target != RefTarget::None) {
            let types = mem::replace(&mut node.types, TypeSet::ANY);
            if node.has_assertions() {
                node.types = types;
                self.describe_union(node);
            } else {
                self.losses.add(&node.at, "type", SchemaLossKind::Widened);
            }
        } else if node.any_of.iter().all(only_requires) {
            self.describe_union(node);
        } else {
            self.distribute(node);
        }
    }

    fn describe_union(&mut self, node: &mut SchemaNode) {
        let union = mem::take(&mut node.any_of);
        let text = match root::required_groups(&union) {
            Some(groups) if union.iter().all(only_requires) => Value::String(groups),
            Some(_) | None => write::write_nodes(&union),
        };
        move_to_description(node, "anyOf", &text, self.losses);
    }

    /// Moves the siblings of a union into its branches.
    fn distribute(&mut self, node: &mut SchemaNode) {
        let union = mem::take(&mut node.any_of);
        let copies = node.size().saturating_mul(union.len());
        if copies > self.remaining_copies {
            node.any_of = union;
            return self.describe_union(node);
        }
        self.remaining_copies -= copies;
        let base = SchemaNode { annotations: Default::default(), ..node.clone() };
        let mut branches = Vec::new();
        for branch in union {
            let mut both = base.clone();
            both.at.clone_from(&branch.at);
            if merge(&mut both, branch, self.losses) {
                branches.push(both);
            }
        }
        if branches.is_empty() {
            return self.losses.add(&node.at, "anyOf", SchemaLossKind::Widened);
        }
        let titles = ["title", "default", "examples", "deprecated"];
        let annotations = mem::take(&mut node.annotations);
        let mut keywords = mem::take(&mut node.keywords);
        keywords.retain(|key, _| titles.contains(&key.as_str()));
        for branch in &mut branches {
            branch.keywords.retain(|key, value| keywords.get(key) != Some(value));
        }
        *node = SchemaNode { annotations, keywords, any_of: branches, ..SchemaNode::any(&node.at) };
        self.lower_union(node);
    }

    /// Describes keywords that only full JSON Schema supports.
    fn describe_applicators(&mut self, node: &mut SchemaNode) {
        for (key, sub) in mem::take(&mut node.applicators) {
            if key == "patternProperties" {
                node.members.additional_properties = AdditionalProperties::Open;
            }
            move_to_description(node, key, &write::write_subschemas(&sub), self.losses);
        }
    }

    /// Adds a type that only the subschemas imply, and removes impossible types.
    fn lower_types(&mut self, node: &mut SchemaNode) {
        let list = node.array_items.items.is_some() || !node.array_items.prefix.is_empty();
        let untyped = node.types == TypeSet::ANY && node.enum_values.is_none();
        if untyped && node.any_of.is_empty() && node.ref_target == RefTarget::None {
            let object = !node.members.properties.is_empty();
            if object != list {
                node.types = if object { TypeSet::OBJECT } else { TypeSet::ARRAY };
                self.losses.add(&node.at, "type", SchemaLossKind::Narrowed);
            }
        }
        if let Some(choices) = node.enum_values.as_ref().filter(|_| node.types == TypeSet::ANY) {
            node.types =
                choices.iter().map(TypeSet::from_value).fold(TypeSet::NONE, TypeSet::union);
        }
        node.drop_inapplicable();
    }

    /// Converts a tuple to a list whose items match any of the tuple's schemas.
    fn lower_array_items(&mut self, node: &mut SchemaNode) {
        let ArrayItems { prefix, items } = mem::take(&mut node.array_items);
        let closed = items.as_deref().is_some_and(is_never);
        if closed {
            node.keywords.entry("maxItems").or_insert(json!(prefix.len()));
            self.losses.add(&node.at, "items", SchemaLossKind::Replaced);
        }
        let items = items.filter(|_| !closed);
        if prefix.is_empty() {
            node.array_items.items = items;
            return;
        }
        move_to_description(node, "prefixItems", &write::write_nodes(&prefix), self.losses);
        self.losses.add(&node.at, "prefixItems", SchemaLossKind::Widened);
        let mut unique = std::collections::HashSet::new();
        let mut all: Vec<SchemaNode> =
            prefix.into_iter().chain(items.map(|schema| *schema)).collect();
        all.retain(|schema| {
            schema.ref_target != RefTarget::None
                || unique.insert(write::write_node(schema).to_string())
        });
        let union = SchemaNode { any_of: all, ..SchemaNode::any(&node.at) };
        node.array_items.items = Some(Box::new(union));
    }

    fn lower_keywords(&mut self, node: &mut SchemaNode) {
        for (key, value) in mem::take(&mut node.keywords) {
            if key == "title" && node.annotations.description.is_none() {
                node.annotations.description = value.as_str().map(str::to_owned);
                self.losses.add(&node.at, &key, SchemaLossKind::Described);
            } else if key == "title" || !keyword::applies_to(&key, node.types) {
                self.losses.add(&node.at, &key, SchemaLossKind::Dropped);
            } else if self.is_supported(&key, &value) {
                node.keywords.insert(key, value);
            } else {
                move_to_description(node, &key, &value, self.losses);
            }
        }
    }

    fn is_supported(&self, key: &str, value: &Value) -> bool {
        let text = value.as_str().unwrap_or_default();
        self.rules.allowed_keywords.contains(&key)
            && match key {
                "format" => self.rules.allowed_formats.contains(&text),
                "pattern" => {
                    !["(?=", "(?!", "(?<"].iter().any(|lookaround| text.contains(lookaround))
                }
                _ => true,
            }
    }

    /// Removes `enum` values other than strings and numbers, and empty strings, if the provider does
    /// not support them.
    fn lower_enum(&mut self, node: &mut SchemaNode) {
        let Some(mut choices) = node.enum_values.take_if(|_| self.rules.scalar_enums_only) else {
            return;
        };
        if !self.allows_empty_choices && choices.iter().any(is_empty_text) {
            let all = Value::Array(choices.clone());
            choices.retain(|value| !is_empty_text(value));
            move_to_description(node, "enum", &all, self.losses);
            if choices.is_empty() {
                return;
            }
            self.losses.add(&node.at, "enum", SchemaLossKind::Narrowed);
        }
        let simple = |value: &Value| value.is_string() || value.is_number();
        if choices.iter().all(simple) {
            node.enum_values = Some(choices);
        } else if choices.iter().any(simple)
            && choices.iter().all(|value| simple(value) || value.is_null())
        {
            self.split_nullable_enum(node, choices);
        } else {
            move_to_description(node, "enum", &Value::Array(choices), self.losses);
        }
    }

    /// Converts an `enum` with `null` to a union.
    fn split_nullable_enum(&mut self, node: &mut SchemaNode, choices: Vec<Value>) {
        let types = node.types.difference(TypeSet::NULL);
        let choices = choices.into_iter().filter(|value| !value.is_null()).collect();
        let some =
            SchemaNode { enum_values: Some(choices), ..SchemaNode::with_types(&node.at, types) };
        let some = SchemaNode { keywords: mem::take(&mut node.keywords), ..some };
        let annotations = mem::take(&mut node.annotations);
        let any_of = vec![some, SchemaNode::with_types(&node.at, TypeSet::NULL)];
        *node = SchemaNode { annotations, any_of, ..SchemaNode::any(&node.at) };
        self.losses.add(&node.at, "enum", SchemaLossKind::Replaced);
    }

    fn lower_members(&mut self, node: &mut SchemaNode) {
        let at = node.at.clone();
        let members = &mut node.members;
        if !mem::take(&mut members.undeclared_required).is_empty() {
            self.losses.add(&at, "required", SchemaLossKind::Dropped);
        }
        members.properties.retain(|property| {
            let never = is_never(&property.node);
            if never {
                self.losses.add(&property.node.at, "", SchemaLossKind::Dropped);
            }
            !never
        });
        if self.rules.allows_additional_properties {
            return;
        }
        match mem::take(&mut members.additional_properties) {
            AdditionalProperties::Unspecified | AdditionalProperties::Open => {}
            AdditionalProperties::Closed => {
                self.losses.add(&at, "additionalProperties", SchemaLossKind::Widened);
            }
            AdditionalProperties::Schema(inside) => {
                move_to_description(
                    node,
                    "additionalProperties",
                    &write::write_node(&inside),
                    self.losses,
                );
            }
        }
    }
}

/// Converts a schema with several types, one of which has subschemas, to a union.
fn split_types(node: &mut SchemaNode) {
    let types = node.types.named_types();
    let inside = TypeSet::ARRAY.union(TypeSet::OBJECT);
    if node.types == TypeSet::ANY || types.len() < 2 || !node.types.intersects(inside) {
        return;
    }
    let mut any_of = Vec::new();
    for (single_type, _) in types {
        let enum_values = node.enum_values.as_ref().map(|choices| {
            choices
                .iter()
                .filter(|choice| single_type.intersects(TypeSet::from_value(choice)))
                .cloned()
                .collect::<Vec<_>>()
        });
        if enum_values.as_ref().is_some_and(Vec::is_empty) {
            continue;
        }
        let mut branch =
            SchemaNode { enum_values, ..SchemaNode::with_types(&node.at, single_type) };
        let applicable =
            node.keywords.iter().filter(|(key, _)| keyword::applies_to(key, single_type));
        branch.keywords = applicable.map(|(key, value)| (key.clone(), value.clone())).collect();
        if single_type == TypeSet::OBJECT {
            branch.members = mem::take(&mut node.members);
        } else if single_type == TypeSet::ARRAY {
            branch.array_items = mem::take(&mut node.array_items);
        }
        any_of.push(branch);
    }
    let annotations = mem::take(&mut node.annotations);
    *node = SchemaNode {
        annotations,
        any_of,
        ref_target: node.ref_target,
        ..SchemaNode::any(&node.at)
    };
}

fn is_empty_text(value: &Value) -> bool {
    value.as_str() == Some("")
}

/// Whether a branch contains only `required`.
fn only_requires(node: &SchemaNode) -> bool {
    let others = SchemaNode { members: Default::default(), types: TypeSet::ANY, ..node.clone() };
    !others.has_assertions()
        && node.any_of.is_empty()
        && node.ref_target == RefTarget::None
        && node.members.properties.is_empty()
        && !node.members.undeclared_required.is_empty()
}

/// Whether the schema accepts no value.
fn is_never(node: &SchemaNode) -> bool {
    node.applicators.iter().any(|(key, sub)| match sub {
        Subschemas::Single(inside) => {
            *key == "not" && !inside.has_assertions() && inside.any_of.is_empty()
        }
        Subschemas::List(_) | Subschemas::Named(_) => false,
    })
}
