//! Arguments brought to the types of their schema, where what was meant is beyond doubt.
//!
//! What fits its schema is never touched, and no argument is renamed, added or dropped; defaults
//! are not filled in. Where a value could become two different things, it stays as it is, and
//! validation tells the model. What is changed, each as a [`Repair`]:
//!
//! | from | to | when |
//! | --- | --- | --- |
//! | string | number, integer | it spells a JSON number, for an integer without a fraction |
//! | string | boolean | it is `true`, `True`, `false` or `False` |
//! | string | null | it is `null` or `None`, and a string is not allowed |
//! | string | array, object | it holds one, as JSON or nearly (see [`crate::parse`]) |
//! | number, boolean | string | of these only a string is allowed; digits stay as written |
//! | string, number, boolean | array | the value alone fits the items; not a text that is blank, opens with a bracket, or has a comma or line break, which may be a list |
//!
//! A schema is read by `type` (one or a list), `enum`, `const`, `properties`, `required`,
//! `additionalProperties`, `items`, `prefixItems`, `anyOf`, `oneOf`, `allOf`, and `$ref` to a place
//! in the same schema. Other keywords are left to validation. `nullable` is none of JSON Schema.

mod convert;
mod fits;
mod schema;
#[cfg(test)]
mod tests;
mod typed;

use serde_json::Value;

use self::schema::{Kinds, Root};
use crate::json::Json;
use crate::repair::{Repair, note};

pub use self::typed::typed;

/// Visits of a value with a schema, for the arguments of one call; takes about a tenth of a second,
/// and arguments in use have a few hundred. Past it, arguments stay as they are: schemas that refer to themselves in several alternatives
/// would else take time without an end.
const VISITS: usize = 1 << 18;

/// The most schemas that are applied inside one another, each a few hundred bytes of stack in a
/// debug build. Past it, a part stays as it is.
const NESTED: usize = 256;

/// Bytes of text that count as one visit where a string is read as JSON.
const BYTES_PER_VISIT: usize = 64;

/// Brings `arguments` to the types of `schema`, which is the tool's whole input schema; each change
/// is added to `repairs`.
pub fn coerce(arguments: Json, schema: &Value, repairs: &mut Vec<Repair>) -> Json {
    let mut coercion = Coercion { root: Root(schema), visits: VISITS };
    let mut made = Vec::new();
    let place = Place { pointer: String::new(), levels: 0, nested: 0 };
    let changed = coercion.value(&arguments, schema, &place, &mut made);
    match changed {
        Some(changed) if coercion.visits > 0 => {
            made.into_iter().for_each(|repair| note(repairs, repair));
            changed
        }
        _ => arguments,
    }
}

/// One run over the arguments of a call.
struct Coercion<'s> {
    root: Root<'s>,
    /// How many visits are left; at zero, everything counts as fitting.
    visits: usize,
}

/// Where in the arguments and in the schema it is.
#[derive(Clone)]
struct Place {
    pointer: String,
    /// Arrays and objects around the value.
    levels: usize,
    /// Schemas around this one.
    nested: usize,
}

impl Place {
    /// The same value under another schema.
    fn here(&self) -> Self {
        Self { nested: self.nested + 1, ..self.clone() }
    }

    /// A value inside this one.
    fn below(&self, part: &str) -> Self {
        let part = part.replace('~', "~0").replace('/', "~1");
        let pointer = format!("{}/{part}", self.pointer);
        Self { pointer, levels: self.levels + 1, nested: self.nested + 1 }
    }
}

impl<'s> Coercion<'s> {
    /// The value as it should be, if that is another.
    fn value(
        &mut self,
        json: &Json,
        schema: &'s Value,
        place: &Place,
        made: &mut Vec<Repair>,
    ) -> Option<Json> {
        if place.nested >= NESTED || self.fits(json, schema, place.nested) {
            return None;
        }
        if let Some(target) = self.root.target(schema) {
            return self.value(json, target?, &place.here(), made);
        }
        let mut changed = None;
        if Kinds::own(schema).is_some_and(|kinds| !kinds.admit(json)) {
            changed = Some(self.convert(json, schema, place, made)?);
        }
        let inside = self.inside(changed.as_ref().unwrap_or(json), schema, place, made);
        changed = inside.or(changed);
        for keyword in ["anyOf", "oneOf"] {
            let branches = schema::list(schema, keyword);
            let current = changed.as_ref().unwrap_or(json);
            changed = self.branches(current, branches, place, made).or(changed);
        }
        for part in schema::list(schema, "allOf") {
            let current = changed.as_ref().unwrap_or(json);
            changed = self.value(current, part, &place.here(), made).or(changed);
        }
        changed
    }

    /// The members or items.
    fn inside(
        &mut self,
        json: &Json,
        schema: &'s Value,
        place: &Place,
        made: &mut Vec<Repair>,
    ) -> Option<Json> {
        match json {
            Json::Object(members) => {
                let parts = members.iter().map(|(key, value)| (key.as_str(), value));
                let parts = parts.map(|(key, value)| (key, value, schema::member(schema, key)));
                let values = self.parts(parts, place, made)?;
                let keys = members.iter().map(|(key, _)| key.clone());
                Some(Json::Object(keys.zip(values).collect()))
            }
            Json::Array(items) => {
                let indexes: Vec<String> = (0..items.len()).map(|at| at.to_string()).collect();
                let parts = items.iter().enumerate();
                let parts =
                    parts.map(|(at, item)| (indexes[at].as_str(), item, schema::item(schema, at)));
                Some(Json::Array(self.parts(parts, place, made)?))
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => None,
        }
    }

    /// All parts of a value, if one of them changes.
    fn parts<'v>(
        &mut self,
        parts: impl Iterator<Item = (&'v str, &'v Json, Option<&'s Value>)> + Clone,
        place: &Place,
        made: &mut Vec<Repair>,
    ) -> Option<Vec<Json>> {
        let mut changes = Vec::new();
        for (at, (name, value, schema)) in parts.clone().enumerate() {
            let Some(schema) = schema else { continue };
            if self.fits(value, schema, place.nested + 1) {
                continue;
            }
            if let Some(changed) = self.value(value, schema, &place.below(name), made) {
                changes.push((at, changed));
            }
        }
        if changes.is_empty() {
            return None;
        }
        let mut values: Vec<Json> = parts.map(|(_, value, _)| value.clone()).collect();
        for (at, changed) in changes {
            values[at] = changed;
        }
        Some(values)
    }

    /// What all alternatives that can be met agree on; if none can, what the only one does that is
    /// meant at all.
    fn branches(
        &mut self,
        json: &Json,
        branches: &'s [Value],
        place: &Place,
        made: &mut Vec<Repair>,
    ) -> Option<Json> {
        let place = place.here();
        let mut met: Option<(Json, Vec<Repair>)> = None;
        for branch in branches {
            let mut repairs = Vec::new();
            if self.fits(json, branch, place.nested) {
                return None;
            }
            let Some(changed) = self.value(json, branch, &place, &mut repairs) else { continue };
            if !self.fits(&changed, branch, place.nested) {
                continue;
            }
            if met.as_ref().is_some_and(|(other, _)| *other != changed) {
                return None;
            }
            met.get_or_insert((changed, repairs));
        }
        if let Some((changed, repairs)) = met {
            made.extend(repairs);
            return Some(changed);
        }
        let mut meant = branches.iter().filter(|branch| self.root.may_mean(branch, json));
        match (meant.next(), meant.next()) {
            (Some(only), None) => self.value(json, only, &place, made),
            _ => None,
        }
    }
}
