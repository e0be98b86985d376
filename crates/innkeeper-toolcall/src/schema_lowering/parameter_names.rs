//! Renames the parameters whose names a provider rejects, and restores their names in arguments.
//!
//! A name has the same alias everywhere in a schema, and no alias is the name of another property.
//! The way back therefore needs no choice between the branches of a union: a member of an object is
//! renamed if any schema that may apply to the object declares the alias.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value};

use super::losses::{LossCollector, SchemaLossKind};
use super::node::{AdditionalProperties, RefTarget, SchemaNode, SchemaTree, Subschemas};
use crate::Json;
use crate::alias::{Aliases, NameRules};

/// Maximum number of visited schemas and properties while the names of one call are restored; usual
/// arguments need a few hundred. Beyond the limit, which only crafted schemas reach, the arguments
/// stay unchanged, and validation rejects them.
const MAX_VISITS: usize = 1 << 20;

/// Renames every property that the rules do not allow. Returns whether there was one.
pub(super) fn rename(tree: &mut SchemaTree, rules: NameRules, losses: &mut LossCollector) -> bool {
    let mut names = BTreeSet::new();
    collect_names(&tree.root, &mut names);
    tree.definitions.iter().for_each(|definition| collect_names(&definition.node, &mut names));
    if names.iter().all(|name| rules.allows(name)) {
        return false;
    }
    let aliases = Aliases::new(names, rules);
    rename_node(&mut tree.root, &aliases, losses);
    for definition in &mut tree.definitions {
        rename_node(&mut definition.node, &aliases, losses);
    }
    true
}

fn collect_names(node: &SchemaNode, names: &mut BTreeSet<String>) {
    names.extend(node.members.properties.iter().map(|property| property.name.clone()));
    node.children().into_iter().for_each(|child| collect_names(child, names));
}

fn rename_node(node: &mut SchemaNode, aliases: &Aliases, losses: &mut LossCollector) {
    for property in &mut node.members.properties {
        let Some(alias) = aliases.alias(&property.name) else { continue };
        if alias != property.name {
            let note = format!("name: {}", property.original_name);
            property.node.annotations.notes.insert(0, note);
            losses.add(&property.node.at, "", SchemaLossKind::Replaced);
            alias.clone_into(&mut property.name);
        }
    }
    // The names in these keywords belong to properties that another schema declares.
    for name in &mut node.members.undeclared_required {
        replace(name, aliases);
    }
    if let Some(Value::Object(dependencies)) = node.keywords.get_mut("dependentRequired") {
        rename_dependencies(dependencies, aliases);
    }
    for (key, subschemas) in &mut node.applicators {
        if let ("dependentSchemas", Subschemas::Named(named)) = (*key, subschemas) {
            named.iter_mut().for_each(|(name, _)| replace(name, aliases));
        }
    }
    node.children_mut().into_iter().for_each(|child| rename_node(child, aliases, losses));
}

fn rename_dependencies(dependencies: &mut Map<String, Value>, aliases: &Aliases) {
    for (mut name, mut required) in std::mem::take(dependencies) {
        replace(&mut name, aliases);
        for name in required.as_array_mut().into_iter().flatten() {
            if let Value::String(name) = name {
                replace(name, aliases);
            }
        }
        dependencies.insert(name, required);
    }
}

fn replace(name: &mut String, aliases: &Aliases) {
    if let Some(alias) = aliases.alias(name) {
        alias.clone_into(name);
    }
}

/// Restores the names of members in arguments for a schema whose properties were renamed.
pub(super) fn restore(tree: &SchemaTree, arguments: Json) -> Json {
    let mut restorer = Restorer { tree, remaining_visits: MAX_VISITS };
    match restorer.restore_value(vec![&tree.root], &arguments) {
        Some(restored) => restored,
        None => arguments,
    }
}

struct Restorer<'t> {
    tree: &'t SchemaTree,
    remaining_visits: usize,
}

/// What the schemas of an object say about one member.
#[derive(Default)]
struct Member<'t> {
    original_name: &'t str,
    schemas: Vec<&'t SchemaNode>,
}

impl<'t> Restorer<'t> {
    /// Counts visits; `None` beyond the limit.
    fn charge(&mut self, visits: usize) -> Option<()> {
        self.remaining_visits = self.remaining_visits.checked_sub(visits)?;
        Some(())
    }

    fn restore_value(&mut self, schemas: Vec<&'t SchemaNode>, value: &Json) -> Option<Json> {
        self.charge(1)?;
        Some(match value {
            Json::Object(members) => {
                let schemas = self.applicable(schemas)?;
                self.restore_object(&schemas, members)?
            }
            Json::Array(items) => {
                let schemas = self.applicable(schemas)?;
                let items = items.iter().enumerate();
                let restored = items.map(|(at, item)| {
                    let inside = item_schemas(&schemas, at);
                    self.charge(schemas.len())?;
                    self.restore_value(inside, item)
                });
                Json::Array(restored.collect::<Option<_>>()?)
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => value.clone(),
        })
    }

    /// Returns these schemas with those that may apply to the same value.
    fn applicable(&mut self, mut schemas: Vec<&'t SchemaNode>) -> Option<Vec<&'t SchemaNode>> {
        let mut seen = HashSet::new();
        let mut all = Vec::new();
        while let Some(node) = schemas.pop() {
            if !seen.insert(std::ptr::from_ref(node)) {
                continue;
            }
            self.charge(1)?;
            all.push(node);
            if let RefTarget::Definition(at) = node.ref_target {
                schemas.extend(self.tree.definitions.get(at).map(|target| &target.node));
            }
            schemas.extend(&node.any_of);
            for (key, subschemas) in &node.applicators {
                match (*key, subschemas) {
                    ("not" | "if" | "then" | "else", Subschemas::Single(inside)) => {
                        schemas.push(inside);
                    }
                    (_, Subschemas::List(list)) => schemas.extend(list),
                    ("dependentSchemas", Subschemas::Named(named)) => {
                        schemas.extend(named.iter().map(|(_, inside)| inside));
                    }
                    (_, Subschemas::Single(_) | Subschemas::Named(_)) => {}
                }
            }
        }
        Some(all)
    }

    fn restore_object(
        &mut self,
        schemas: &[&'t SchemaNode],
        members: &[(String, Json)],
    ) -> Option<Json> {
        let mut declared: HashMap<&str, Member<'t>> = HashMap::new();
        for property in schemas.iter().flat_map(|node| &node.members.properties) {
            self.charge(1)?;
            let member = declared.entry(&property.name).or_default();
            member.original_name = &property.original_name;
            member.schemas.push(&property.node);
        }
        let others: Vec<&SchemaNode> =
            schemas.iter().flat_map(|node| additional_schemas(node)).collect();
        let written_names: HashSet<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
        let restored = members.iter().map(|(name, value)| {
            let member = declared.get(name.as_str());
            let original_name = member.map(|member| member.original_name);
            let restored_name =
                original_name.filter(|original| !written_names.contains(original)).unwrap_or(name);
            let mut inside = member.map(|member| member.schemas.clone()).unwrap_or_default();
            inside.extend(&others);
            Some((restored_name.to_owned(), self.restore_value(inside, value)?))
        });
        Some(Json::Object(restored.collect::<Option<_>>()?))
    }
}

/// Returns the schemas of members without a property of their own.
fn additional_schemas(node: &SchemaNode) -> Vec<&SchemaNode> {
    let mut all = Vec::new();
    if let AdditionalProperties::Schema(inside) = &node.members.additional_properties {
        all.push(&**inside);
    }
    for (key, subschemas) in &node.applicators {
        match (*key, subschemas) {
            ("unevaluatedProperties", Subschemas::Single(inside)) => all.push(inside),
            ("patternProperties", Subschemas::Named(named)) => {
                all.extend(named.iter().map(|(_, inside)| inside));
            }
            (_, Subschemas::Single(_) | Subschemas::List(_) | Subschemas::Named(_)) => {}
        }
    }
    all
}

fn item_schemas<'t>(schemas: &[&'t SchemaNode], at: usize) -> Vec<&'t SchemaNode> {
    let mut all = Vec::new();
    for node in schemas {
        all.extend(node.array_items.prefix.get(at).or(node.array_items.items.as_deref()));
        for (key, subschemas) in &node.applicators {
            if let ("contains" | "unevaluatedItems", Subschemas::Single(inside)) =
                (*key, subschemas)
            {
                all.push(inside);
            }
        }
    }
    all
}
