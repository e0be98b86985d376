//! Whether a value fits a schema, as far as types and structure go.

use serde_json::Value;

use super::schema::{self, Kinds};
use super::{Coercion, NESTED};
use crate::json::Json;

impl<'s> Coercion<'s> {
    /// Whether `json` may fit `schema`. It is never false for a value that fits, so that such a one
    /// is never touched.
    pub(super) fn fits(&mut self, json: &Json, schema: &'s Value, nested: usize) -> bool {
        self.visits = self.visits.saturating_sub(1);
        if self.visits == 0 || nested >= NESTED {
            return true;
        }
        if !schema.is_object() {
            return schema != &Value::Bool(false);
        }
        if let Some(target) = self.root.target(schema) {
            return target.is_none_or(|target| self.fits(json, target, nested + 1));
        }
        Kinds::own(schema).is_none_or(|kinds| kinds.admit(json))
            && self.is_listed(json, schema)
            && self.fits_inside(json, schema, nested + 1)
            && ["anyOf", "oneOf"].into_iter().all(|keyword| {
                let branches = schema::list(schema, keyword);
                branches.is_empty()
                    || branches.iter().any(|branch| self.fits(json, branch, nested + 1))
            })
            && schema::list(schema, "allOf").iter().all(|part| self.fits(json, part, nested + 1))
    }

    fn fits_inside(&mut self, json: &Json, schema: &'s Value, nested: usize) -> bool {
        match json {
            Json::Object(members) => {
                let required = schema::list(schema, "required");
                self.charge(required.len().saturating_mul(members.len()));
                required.iter().filter_map(Value::as_str).all(|key| json.get(key).is_some())
                    && members.iter().all(|(key, value)| {
                        schema::member(schema, key)
                            .is_none_or(|schema| self.fits(value, schema, nested))
                    })
            }
            Json::Array(items) => items.iter().enumerate().all(|(at, item)| {
                schema::item(schema, at).is_none_or(|schema| self.fits(item, schema, nested))
            }),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => true,
        }
    }

    /// Whether `json` is among the values that `enum` and `const` list, if they do.
    fn is_listed(&mut self, json: &Json, schema: &Value) -> bool {
        let listed = schema.get("enum").and_then(Value::as_array);
        self.charge(listed.map_or(0, Vec::len));
        listed.is_none_or(|values| values.iter().any(|value| same(json, value)))
            && schema.get("const").is_none_or(|value| same(json, value))
    }

    /// Counts work that is no visit of its own.
    pub(super) fn charge(&mut self, visits: usize) {
        self.visits = self.visits.saturating_sub(visits);
    }
}

/// Whether both may be the same value; arrays and objects are taken at their word.
fn same(json: &Json, value: &Value) -> bool {
    match (json, value) {
        (Json::Null, Value::Null) => true,
        (Json::Bool(one), Value::Bool(other)) => one == other,
        (Json::Number(text), Value::Number(number)) => {
            text.parse::<f64>().ok().zip(number.as_f64()).is_none_or(|(one, other)| one == other)
        }
        (Json::String(one), Value::String(other)) => one == other,
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
