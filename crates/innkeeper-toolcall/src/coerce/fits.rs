//! Approximate match of values and schemas: types and structure.

use serde_json::Value;

use super::schema::{self, TypeSet};
use super::{Coercion, MAX_SCHEMA_NESTING};
use crate::json::Json;

impl<'s> Coercion<'s> {
    /// Whether `json` may match `schema`. Never false for a valid value, so that coercion never
    /// changes a valid value.
    pub(super) fn fits(&mut self, json: &Json, schema: &'s Value, nested: usize) -> bool {
        self.remaining_visits = self.remaining_visits.saturating_sub(1);
        if self.remaining_visits == 0 || nested >= MAX_SCHEMA_NESTING {
            return true;
        }
        if !schema.is_object() {
            return schema != &Value::Bool(false);
        }
        if let Some(target) = self.root.resolve_reference(schema) {
            return target.is_none_or(|target| self.fits(json, target, nested + 1));
        }
        TypeSet::from_schema(schema).is_none_or(|kinds| kinds.accepts(json))
            && self.is_listed(json, schema)
            && self.children_fit(json, schema, nested + 1)
            && ["anyOf", "oneOf"].into_iter().all(|keyword| {
                let branches = schema::subschemas(schema, keyword);
                branches.is_empty()
                    || branches.iter().any(|branch| self.fits(json, branch, nested + 1))
            })
            && schema::subschemas(schema, "allOf")
                .iter()
                .all(|subschema| self.fits(json, subschema, nested + 1))
    }

    fn children_fit(&mut self, json: &Json, schema: &'s Value, nested: usize) -> bool {
        match json {
            Json::Object(members) => {
                let required = schema::subschemas(schema, "required");
                self.charge(required.len().saturating_mul(members.len()));
                required.iter().filter_map(Value::as_str).all(|key| json.get(key).is_some())
                    && members.iter().all(|(key, value)| {
                        schema::member_schema(schema, key)
                            .is_none_or(|schema| self.fits(value, schema, nested))
                    })
            }
            Json::Array(items) => items.iter().enumerate().all(|(at, item)| {
                schema::item_schema(schema, at).is_none_or(|schema| self.fits(item, schema, nested))
            }),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => true,
        }
    }

    /// Whether `enum` and `const` list `json`; true without these keywords.
    fn is_listed(&mut self, json: &Json, schema: &Value) -> bool {
        let choices = schema.get("enum").and_then(Value::as_array);
        self.charge(choices.map_or(0, Vec::len));
        choices.is_none_or(|values| values.iter().any(|value| may_equal(json, value)))
            && schema.get("const").is_none_or(|value| may_equal(json, value))
    }

    /// Counts work that is not a visit.
    pub(super) fn charge(&mut self, visits: usize) {
        self.remaining_visits = self.remaining_visits.saturating_sub(visits);
    }
}

/// Whether both values may be equal; arrays and objects are assumed to be equal.
fn may_equal(json: &Json, value: &Value) -> bool {
    match (json, value) {
        (Json::Null, Value::Null) => true,
        (Json::Bool(left), Value::Bool(other)) => left == other,
        (Json::Number(text), Value::Number(number)) => {
            text.parse::<f64>().ok().zip(number.as_f64()).is_none_or(|(left, other)| left == other)
        }
        (Json::String(left), Value::String(other)) => left == other,
        (Json::Array(_), Value::Array(_)) | (Json::Object(_), Value::Object(_)) => true,
        (
            Json::Null
            | Json::Bool(_)
            | Json::Number(_)
            | Json::String(_)
            | Json::Array(_)
            | Json::Object(_),
            _,
        ) => false,
    }
}
