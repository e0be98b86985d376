//! Conversion of `anyOf`, `oneOf`, `allOf`, and of references with sibling keywords.

use serde_json::{Map, Value};

use super::convert::SchemaConverter;
use super::rules::SharedRule;
use crate::grammar::reference::{has_other_constraints, join_pointer, local_pointer, merge};
use crate::grammar::value_count::count_values;
use crate::grammar::{GrammarLossKind, LIMIT_EXCEEDED};

impl SchemaConverter<'_> {
    /// Converts the alternatives of a schema, each merged with the sibling keywords. `None` if the
    /// schema is not composed.
    pub(super) fn convert_composition(
        &mut self,
        schema: &Map<String, Value>,
        at: &str,
    ) -> Option<String> {
        let mut keywords = ["allOf", "anyOf", "oneOf"].into_iter();
        let keyword =
            keywords.find(|keyword| matches!(schema.get(*keyword), Some(Value::Array(_))))?;
        let mut siblings = schema.clone();
        let Some(Value::Array(branches)) = siblings.shift_remove(keyword) else { return None };
        let has_no_siblings = !has_other_constraints(&siblings, "");
        if keyword == "allOf" {
            return Some(self.convert_all_of(siblings, &branches, at));
        }
        let mut alternatives: Vec<String> = Vec::new();
        for (index, branch) in branches.iter().enumerate() {
            let at = join_pointer(&join_pointer(at, keyword), &index.to_string());
            let alternative = match branch {
                Value::Object(branch) if !has_no_siblings => {
                    let branch = self.inline_reference(branch, &at);
                    self.convert_merged(&branch, &siblings, &at)
                }
                Value::Bool(true) => self.convert_schema(&Value::Object(siblings.clone()), &at),
                branch => self.convert_schema(branch, &at),
            };
            if !alternatives.contains(&alternative) {
                alternatives.push(alternative);
            }
        }
        if keyword == "oneOf" && branches.len() > 1 && !self.are_disjoint(&branches) {
            self.report_loss(at, keyword, GrammarLossKind::Dropped);
        }
        if alternatives.is_empty() {
            self.report_loss(at, keyword, GrammarLossKind::Dropped);
            return Some(self.rules.use_shared(SharedRule::Value));
        }
        Some(format!("({})", alternatives.join(" | ")))
    }

    /// Merges all branches as far as they do not conflict.
    fn convert_all_of(
        &mut self,
        siblings: Map<String, Value>,
        branches: &[Value],
        at: &str,
    ) -> String {
        if let ([branch], false) = (branches, has_other_constraints(&siblings, "")) {
            return self.convert_schema(branch, &join_pointer(&join_pointer(at, "allOf"), "0"));
        }
        let mut all = siblings;
        for (index, branch) in branches.iter().enumerate() {
            let at = join_pointer(&join_pointer(at, "allOf"), &index.to_string());
            match branch {
                Value::Object(branch) => {
                    let branch = self.inline_reference(branch, &at);
                    all = self.merge_schemas(&all, &branch, &at);
                }
                Value::Bool(true) => {}
                other => self.report_loss(&at, &other.to_string(), GrammarLossKind::Dropped),
            }
        }
        self.convert_schema(&Value::Object(all), at)
    }

    /// Converts a reference with sibling keywords: the target merged with the siblings.
    pub(super) fn convert_reference_with_siblings(
        &mut self,
        target: Option<&str>,
        schema: &Map<String, Value>,
        at: &str,
    ) -> String {
        let mut siblings = schema.clone();
        siblings.shift_remove("$ref");
        match target.and_then(|target| self.resolve_pointer(target)) {
            Some(Value::Object(target)) => self.convert_merged(target, &siblings, at),
            Some(Value::Bool(true)) => self.convert_schema(&Value::Object(siblings), at),
            _ => {
                self.report_loss(at, "$ref", GrammarLossKind::Dropped);
                self.convert_schema(&Value::Object(siblings), at)
            }
        }
    }

    fn convert_merged(
        &mut self,
        first: &Map<String, Value>,
        other: &Map<String, Value>,
        at: &str,
    ) -> String {
        let both = self.merge_schemas(first, other, at);
        self.convert_schema(&Value::Object(both), at)
    }

    /// Merges two schemas and reports conflicts. The cost of a merge grows with its size, because a
    /// schema may merge itself repeatedly.
    fn merge_schemas(
        &mut self,
        first: &Map<String, Value>,
        other: &Map<String, Value>,
        at: &str,
    ) -> Map<String, Value> {
        if !self.spend(first.values().chain(other.values()).map(count_values).sum()) {
            self.report_loss(at, LIMIT_EXCEEDED, GrammarLossKind::Dropped);
            return Map::new();
        }
        let (both, conflicts) = merge(first, other);
        for conflict in conflicts {
            self.report_loss(at, &conflict, GrammarLossKind::Dropped);
        }
        // `items` applies to the items after `prefixItems`, or to all items without `prefixItems`.
        let lists = |schema: &Map<String, Value>| schema.contains_key("prefixItems");
        let all = |schema: &Map<String, Value>| !lists(schema) && schema.contains_key("items");
        if lists(first) && all(other) || all(first) && lists(other) {
            self.report_loss(at, "items", GrammarLossKind::Dropped);
        }
        both
    }

    /// Resolves the schema's own reference once.
    fn inline_reference(&mut self, schema: &Map<String, Value>, at: &str) -> Map<String, Value> {
        let Some(reference) = schema.get("$ref") else { return schema.clone() };
        let target = reference
            .as_str()
            .and_then(local_pointer)
            .and_then(|pointer| self.resolve_pointer(pointer));
        let mut siblings = schema.clone();
        match target {
            Some(Value::Object(target)) => {
                siblings.shift_remove("$ref");
                self.merge_schemas(target, &siblings, at)
            }
            _ => siblings,
        }
    }

    /// Whether no value matches two of these schemas, judged by their types and constants.
    fn are_disjoint(&self, branches: &[Value]) -> bool {
        let mut discriminators: Vec<Discriminator> = Vec::new();
        for branch in branches {
            let target = branch.get("$ref").and_then(Value::as_str).and_then(local_pointer);
            let branch = target.and_then(|pointer| self.resolve_pointer(pointer)).unwrap_or(branch);
            let Some(discriminator) = find_discriminator(branch) else { return false };
            if discriminators.iter().any(|other| !other.is_disjoint_from(&discriminator)) {
                return false;
            }
            discriminators.push(discriminator);
        }
        true
    }
}

/// Distinguishes the values of a schema from the values of other schemas: by the only type, and by
/// the constant of a required property.
struct Discriminator {
    type_name: String,
    constant: Option<(String, Value)>,
}

impl Discriminator {
    fn is_disjoint_from(&self, other: &Self) -> bool {
        if [self, other].iter().all(|one| matches!(&*one.type_name, "number" | "integer")) {
            return false;
        }
        match (&self.constant, &other.constant) {
            (Some((name, value)), Some((other_name, other))) => {
                name == other_name && value != other
            }
            _ => self.type_name != other.type_name,
        }
    }
}

fn find_discriminator(schema: &Value) -> Option<Discriminator> {
    let type_name = schema.get("type")?.as_str()?.to_owned();
    let required = schema.get("required").and_then(Value::as_array);
    let properties = schema.get("properties").and_then(Value::as_object);
    let constant = properties.filter(|_| type_name == "object").and_then(|properties| {
        properties.iter().find_map(|(name, schema)| {
            let is_required = required?.iter().any(|required_name| required_name == name.as_str());
            let only = schema.get("const").or_else(|| {
                match schema.get("enum")?.as_array()?.as_slice() {
                    [only] => Some(only),
                    _ => None,
                }
            })?;
            is_required.then(|| (name.clone(), only.clone()))
        })
    });
    Some(Discriminator { type_name, constant })
}
