//! Integers that a model writes with a fraction or an exponent, such as `140.0`.
//!
//! JSON Schema takes `140.0` for an integer, but many servers do not: their types read integers from
//! digits only. The value stays the same, so that the conversion cannot change what a call means.

use serde_json::Value;

use super::schema::{self, TypeSet};
use super::{Coercion, Location, MAX_SCHEMA_NESTING};
use crate::json::Json;
use crate::repair::{CoercionKind, Repair};

/// Maximum number of digits of a converted integer, those of the largest integers of servers.
const MAX_DIGITS: usize = 20;

/// Maximum number of schemas that apply to one value; those behind are not read.
const MAX_APPLICABLE: usize = 64;

/// Whether the value has a number with a fraction or an exponent.
pub(super) fn has_fractions(json: &Json) -> bool {
    match json {
        Json::Number(text) => text.contains(['.', 'e', 'E']),
        Json::Array(items) => items.iter().any(has_fractions),
        Json::Object(members) => members.iter().any(|(_, value)| has_fractions(value)),
        Json::Null | Json::Bool(_) | Json::String(_) => false,
    }
}

impl<'s> Coercion<'s> {
    /// Returns the value with digits only for each whole number for which the schemas require an
    /// integer; `None` without such a number.
    pub(super) fn write_integers(
        &mut self,
        json: &Json,
        schemas: &[&'s Value],
        location: &Location,
        applied: &mut Vec<Repair>,
    ) -> Option<Json> {
        if location.schema_depth >= MAX_SCHEMA_NESTING || !has_fractions(json) {
            return None;
        }
        match json {
            Json::Number(text) => {
                let integer = schemas
                    .iter()
                    .any(|schema| {
                        let types = self.root.allowed_types(schema, 0, &mut self.remaining_visits);
                        types.is_some_and(|types| {
                            types.contains(TypeSet::INTEGER) && !types.contains(TypeSet::NUMBER)
                        })
                    })
                    .then(|| to_integer(text))
                    .flatten()?;
                let kind = CoercionKind::FractionToInteger;
                applied.push(Repair::Coercion { pointer: location.pointer.clone(), kind });
                Some(Json::Number(integer))
            }
            Json::Object(members) => {
                let schemas = self.applicable(schemas);
                let mut members = members.clone();
                let mut has_changed = false;
                for (key, value) in &mut members {
                    let inside: Vec<&Value> = schemas
                        .iter()
                        .filter_map(|schema| schema::member_schema(schema, key))
                        .collect();
                    let location = location.child(key);
                    if let Some(changed) = self.write_integers(value, &inside, &location, applied) {
                        *value = changed;
                        has_changed = true;
                    }
                }
                has_changed.then_some(Json::Object(members))
            }
            Json::Array(items) => {
                let schemas = self.applicable(schemas);
                let mut items = items.clone();
                let mut has_changed = false;
                for (at, item) in items.iter_mut().enumerate() {
                    let inside: Vec<&Value> = schemas
                        .iter()
                        .filter_map(|schema| schema::item_schema(schema, at))
                        .collect();
                    let location = location.child(&at.to_string());
                    if let Some(changed) = self.write_integers(item, &inside, &location, applied) {
                        *item = changed;
                        has_changed = true;
                    }
                }
                has_changed.then_some(Json::Array(items))
            }
            Json::Null | Json::Bool(_) | Json::String(_) => None,
        }
    }

    /// Returns these schemas with those that may apply to the same value.
    fn applicable(&mut self, schemas: &[&'s Value]) -> Vec<&'s Value> {
        let mut ahead: Vec<&Value> = schemas.to_vec();
        let mut all: Vec<&Value> = Vec::new();
        while let Some(schema) = ahead.pop() {
            if all.len() == MAX_APPLICABLE || all.iter().any(|seen| std::ptr::eq(*seen, schema)) {
                continue;
            }
            self.charge(1);
            all.push(schema);
            ahead.extend(self.root.resolve_reference(schema).flatten());
            for keyword in ["anyOf", "oneOf", "allOf"] {
                ahead.extend(schema::subschemas(schema, keyword));
            }
        }
        all
    }
}

/// Writes a whole number with digits only; `None` if the number is not whole or too large.
fn to_integer(text: &str) -> Option<String> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (sign, digits) = match mantissa.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", mantissa),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let point = i32::try_from(whole.len()).ok()?.checked_add(exponent)?;
    let mut digits = format!("{whole}{fraction}");
    let point = usize::try_from(point).ok().filter(|point| *point <= MAX_DIGITS)?;
    if digits.len() < point {
        digits.extend(std::iter::repeat_n('0', point - digits.len()));
    }
    if digits.len() > point && digits[point..].bytes().any(|digit| digit != b'0') {
        return None;
    }
    let integer = digits[..point].trim_start_matches('0');
    Some(match integer {
        "" => "0".to_owned(),
        integer => format!("{sign}{integer}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_is_written_with_digits_only() {
        for (text, integer) in [
            ("140.0", Some("140")),
            ("-3.000", Some("-3")),
            ("0.0", Some("0")),
            ("-0.0", Some("0")),
            ("1e2", Some("100")),
            ("1.5E+1", Some("15")),
            ("1200e-2", Some("12")),
            ("0.05e2", Some("5")),
            ("12345678901234567890.0", Some("12345678901234567890")),
            ("1.5", None),
            ("15e-1", None),
            ("1e20", None),
            ("1e999999999999", None),
            ("1e-2147483648", None),
        ] {
            assert_eq!(to_integer(text).as_deref(), integer, "{text}");
        }
    }
}
