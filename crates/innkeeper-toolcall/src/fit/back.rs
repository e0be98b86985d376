//! From arguments for a fitted schema to arguments for the tool's own.

use serde_json::Value;

use super::node::{Additional, Link, Node, Property, Tree};
use super::types::Types;
use crate::Json;

/// Levels of a value that are looked at to tell the branches of a union apart.
const LOOKED_INTO: usize = 3;

/// Gives members their names back and takes out every `null` that stands for an absent one.
pub(super) fn unfit(tree: &Tree, arguments: Json) -> Json {
    Back { tree }.value(&tree.root, arguments)
}

struct Back<'a> {
    tree: &'a Tree,
}

impl<'a> Back<'a> {
    /// What a reference leads to. None leads to a bare reference.
    fn linked(&self, node: &'a Node) -> &'a Node {
        match node.link {
            Link::Definition(at) => &self.tree.definitions[at].node,
            Link::None | Link::Cut => node,
        }
    }

    fn value(&self, node: &'a Node, value: Json) -> Json {
        let mut node = self.linked(node);
        while !node.any_of.is_empty() {
            let fits = |branch: &&Node| self.accepts(branch, &value, LOOKED_INTO);
            let Some(branch) = node.any_of.iter().find(fits) else { return value };
            node = self.linked(branch);
        }
        match value {
            Json::Object(members) => self.object(node, members),
            Json::Array(items) => {
                let Some(inside) = node.elements.items.as_deref() else {
                    return Json::Array(items);
                };
                Json::Array(items.into_iter().map(|item| self.value(inside, item)).collect())
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => value,
        }
    }

    fn object(&self, node: &'a Node, members: Vec<(String, Json)>) -> Json {
        let properties = &node.members.properties;
        let find = |name: &str| properties.iter().find(|property| property.name == name);
        let said: Vec<String> = members.iter().map(|(name, _)| name.clone()).collect();
        let mut back = Vec::with_capacity(members.len());
        for (name, value) in members {
            let Some(property) = find(&name) else {
                back.push((name, value));
                continue;
            };
            if value == Json::Null && property.absent_as_null {
                continue;
            }
            let renamed = property.original != name && !said.contains(&property.original);
            let name = if renamed { property.original.clone() } else { name };
            back.push((name, self.value(&property.node, value)));
        }
        Json::Object(back)
    }

    /// Whether a value looks like one of this schema. Levels further inside are not looked at.
    fn accepts(&self, node: &'a Node, value: &Json, levels: usize) -> bool {
        let node = self.linked(node);
        let Some(levels) = levels.checked_sub(1) else { return true };
        if !node.any_of.is_empty() {
            return node.any_of.iter().any(|branch| self.accepts(branch, value, levels));
        }
        let chosen = |choices: &Vec<Value>| choices.iter().any(|it| Json::from(it) == *value);
        if !node.types.meets(type_of(value)) || !node.choices.as_ref().is_none_or(chosen) {
            return false;
        }
        match value {
            Json::Object(members) => {
                let properties = &node.members.properties;
                let fits = |property: &'a Property| match value.get(&property.name) {
                    Some(Json::Null) if property.absent_as_null => true,
                    Some(inside) => self.accepts(&property.node, inside, levels),
                    None => !property.required,
                };
                let known = |name: &String| properties.iter().any(|it| it.name == *name);
                let closed = matches!(node.members.additional, Additional::Closed);
                properties.iter().all(fits)
                    && (!closed || members.iter().all(|(name, _)| known(name)))
            }
            Json::Array(items) => {
                let inside = node.elements.items.as_deref();
                inside.is_none_or(|node| items.iter().all(|it| self.accepts(node, it, levels)))
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => true,
        }
    }
}

fn type_of(value: &Json) -> Types {
    match value {
        Json::Null => Types::NULL,
        Json::Bool(_) => Types::BOOLEAN,
        Json::Number(text) if text.contains(['.', 'e', 'E']) => Types::NUMBER,
        Json::Number(_) => Types::INTEGER,
        Json::String(_) => Types::STRING,
        Json::Array(_) => Types::ARRAY,
        Json::Object(_) => Types::OBJECT,
    }
}
