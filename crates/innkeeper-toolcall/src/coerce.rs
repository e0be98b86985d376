//! Coercion of arguments to the types of their schema, where the conversion is unambiguous.
//!
//! A value that matches its schema is never changed, except for the spelling of integers. Coercion does not rename, add or drop
//! arguments and does not fill in defaults. A value with two possible conversions stays unchanged,
//! and validation reports the error to the model. Each change is a [`Repair`]:
//!
//! | from | to | condition |
//! | --- | --- | --- |
//! | string | number, integer | the string is a JSON number; for an integer, without a fraction |
//! | string | boolean | the string is `true`, `True`, `false` or `False` |
//! | string | null | the string is `null` or `None`, and the schema does not allow strings |
//! | string | array, object | the string contains one, as JSON or almost JSON (see [`crate::parse`]) |
//! | number with a zero fraction or an exponent | integer | numbers that are not whole are not allowed |
//! | number, boolean | string | of these types only strings are allowed; digits stay as written |
//! | string, number, boolean | array | the single value matches the items; a string that is blank, starts with a bracket, or contains a comma or a line break may be a list and is not converted |
//!
//! The coercion reads the keywords `type` (a name or a list), `enum`, `const`, `properties`,
//! `required`, `additionalProperties`, `items`, `prefixItems`, `anyOf`, `oneOf`, `allOf`, and
//! `$ref` inside the same schema. Validation handles the other keywords. `nullable` is not part of
//! JSON Schema and is ignored.

mod convert;
mod fits;
mod integers;
mod schema;
#[cfg(test)]
mod tests;
mod text;

use serde_json::Value;

use self::schema::{RootSchema, TypeSet};
use crate::json::Json;
use crate::repair::{Repair, push_repair};

pub use self::text::coerce_text;

/// Maximum number of visits (a value with a schema) for the arguments of one call: about 0.1 s;
/// usual arguments need a few hundred. Above the limit, the arguments stay unchanged. Without the
/// limit, schemas that refer to themselves in several alternatives take unbounded time.
const MAX_VISITS: usize = 1 << 18;

/// Maximum number of nested schemas; each takes a few hundred bytes of stack in a debug build.
/// Deeper values stay unchanged.
const MAX_SCHEMA_NESTING: usize = 256;

/// Number of text bytes that count as one visit when a string is parsed as JSON.
const BYTES_PER_VISIT: usize = 64;

/// Converts `arguments` to the types of `schema`, the tool's complete input schema. Adds each
/// change to `repairs`.
pub fn coerce(arguments: Json, schema: &Value, repairs: &mut Vec<Repair>) -> Json {
    let mut coercion = Coercion { root: RootSchema(schema), remaining_visits: MAX_VISITS };
    let mut applied = Vec::new();
    let location = Location { pointer: String::new(), value_depth: 0, schema_depth: 0 };
    let changed = coercion.coerce_value(&arguments, schema, &location, &mut applied);
    let current = changed.as_ref().unwrap_or(&arguments);
    let written = coercion.write_integers(current, &[schema], &location, &mut applied);
    match written.or(changed) {
        Some(changed) if coercion.remaining_visits > 0 => {
            applied.into_iter().for_each(|repair| push_repair(repairs, repair));
            changed
        }
        _ => arguments,
    }
}

/// Coercion of the arguments of one call.
struct Coercion<'s> {
    root: RootSchema<'s>,
    /// Remaining visits; at zero, every value counts as valid.
    remaining_visits: usize,
}

/// Position in the arguments and in the schema.
#[derive(Clone)]
struct Location {
    pointer: String,
    /// Number of arrays and objects around the value.
    value_depth: usize,
    /// Number of schemas around the current schema.
    schema_depth: usize,
}

impl Location {
    /// Location of the same value under a subschema.
    fn in_subschema(&self) -> Self {
        Self { schema_depth: self.schema_depth + 1, ..self.clone() }
    }

    /// Location of a member or item.
    fn child(&self, segment: &str) -> Self {
        let segment = segment.replace('~', "~0").replace('/', "~1");
        let pointer = format!("{}/{segment}", self.pointer);
        Self { pointer, value_depth: self.value_depth + 1, schema_depth: self.schema_depth + 1 }
    }
}

impl<'s> Coercion<'s> {
    /// Returns the converted value, or `None` if the value stays unchanged.
    fn coerce_value(
        &mut self,
        json: &Json,
        schema: &'s Value,
        location: &Location,
        applied: &mut Vec<Repair>,
    ) -> Option<Json> {
        if location.schema_depth >= MAX_SCHEMA_NESTING
            || self.fits(json, schema, location.schema_depth)
        {
            return None;
        }
        if let Some(target) = self.root.resolve_reference(schema) {
            return self.coerce_value(json, target?, &location.in_subschema(), applied);
        }
        let first_repair = applied.len();
        let mut changed = None;
        if TypeSet::from_schema(schema).is_some_and(|kinds| !kinds.accepts(json)) {
            changed = Some(self.convert(json, schema, location, applied)?);
        }
        let inside =
            self.coerce_children(changed.as_ref().unwrap_or(json), schema, location, applied);
        changed = inside.or(changed);
        for keyword in ["anyOf", "oneOf"] {
            let branches = schema::subschemas(schema, keyword);
            let current = changed.as_ref().unwrap_or(json);
            changed = self.coerce_branches(current, branches, location, applied).or(changed);
        }
        for subschema in schema::subschemas(schema, "allOf") {
            let current = changed.as_ref().unwrap_or(json);
            changed = self
                .coerce_value(current, subschema, &location.in_subschema(), applied)
                .or(changed);
        }
        // Two parts of an `allOf` can convert a value there and back.
        if changed.as_ref() == Some(json) {
            applied.truncate(first_repair);
            return None;
        }
        changed
    }

    /// Converts the members or items of a value.
    fn coerce_children(
        &mut self,
        json: &Json,
        schema: &'s Value,
        location: &Location,
        applied: &mut Vec<Repair>,
    ) -> Option<Json> {
        match json {
            Json::Object(members) => {
                let children = members.iter().map(|(key, value)| (key.as_str(), value));
                let children =
                    children.map(|(key, value)| (key, value, schema::member_schema(schema, key)));
                let values = self.coerce_parts(children, location, applied)?;
                let keys = members.iter().map(|(key, _)| key.clone());
                Some(Json::Object(keys.zip(values).collect()))
            }
            Json::Array(items) => {
                let indexes: Vec<String> = (0..items.len()).map(|at| at.to_string()).collect();
                let children = items.iter().enumerate();
                let children = children.map(|(at, item)| {
                    (indexes[at].as_str(), item, schema::item_schema(schema, at))
                });
                Some(Json::Array(self.coerce_parts(children, location, applied)?))
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => None,
        }
    }

    /// Converts the children of a value. Returns all children if one of them changes.
    fn coerce_parts<'v>(
        &mut self,
        children: impl Iterator<Item = (&'v str, &'v Json, Option<&'s Value>)> + Clone,
        location: &Location,
        applied: &mut Vec<Repair>,
    ) -> Option<Vec<Json>> {
        let mut changes = Vec::new();
        for (at, (name, value, schema)) in children.clone().enumerate() {
            let Some(schema) = schema else { continue };
            if self.fits(value, schema, location.schema_depth + 1) {
                continue;
            }
            if let Some(changed) = self.coerce_value(value, schema, &location.child(name), applied)
            {
                changes.push((at, changed));
            }
        }
        if changes.is_empty() {
            return None;
        }
        let mut values: Vec<Json> = children.map(|(_, value, _)| value.clone()).collect();
        for (at, changed) in changes {
            values[at] = changed;
        }
        Some(values)
    }

    /// Returns the result that all matching branches agree on. If no branch can match, uses the
    /// only branch that may be intended.
    fn coerce_branches(
        &mut self,
        json: &Json,
        branches: &'s [Value],
        location: &Location,
        applied: &mut Vec<Repair>,
    ) -> Option<Json> {
        let location = location.in_subschema();
        let mut met: Option<(Json, Vec<Repair>)> = None;
        for branch in branches {
            let mut repairs = Vec::new();
            if self.fits(json, branch, location.schema_depth) {
                return None;
            }
            let Some(changed) = self.coerce_value(json, branch, &location, &mut repairs) else {
                continue;
            };
            if !self.fits(&changed, branch, location.schema_depth) {
                continue;
            }
            if met.as_ref().is_some_and(|(other, _)| *other != changed) {
                return None;
            }
            met.get_or_insert((changed, repairs));
        }
        if let Some((changed, repairs)) = met {
            applied.extend(repairs);
            return Some(changed);
        }
        let root = self.root;
        let remaining_visits = &mut self.remaining_visits;
        let mut intended =
            branches.iter().filter(|branch| root.may_be_intended(branch, json, remaining_visits));
        match (intended.next(), intended.next()) {
            (Some(only), None) => self.coerce_value(json, only, &location, applied),
            _ => None,
        }
    }
}
