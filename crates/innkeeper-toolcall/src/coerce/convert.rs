//! Conversion of one value to another type.

use serde_json::Value;

use super::schema::{self, TypeSet};
use super::{BYTES_PER_VISIT, Coercion, Location};
use crate::json::Json;
use crate::parse::{MAX_DEPTH, is_number, parse_embedded};
use crate::repair::{CoercionKind, Repair};

/// A possible conversion: the new value and its repairs.
type Candidate = (Json, Vec<Repair>);

impl<'s> Coercion<'s> {
    /// Converts `json` to the types of `schema`, if there is exactly one possible conversion.
    pub(super) fn convert(
        &mut self,
        json: &Json,
        schema: &'s Value,
        location: &Location,
        applied: &mut Vec<Repair>,
    ) -> Option<Json> {
        let kinds = TypeSet::from_schema(schema)?;
        let turned = self.convert_scalar(json, kinds, location);
        let wrapped = self.wrap_in_array(json, kinds, schema, location);
        let ((Some((changed, repairs)), None) | (None, Some((changed, repairs)))) =
            (turned, wrapped)
        else {
            return None;
        };
        applied.extend(repairs);
        Some(changed)
    }

    fn convert_scalar(
        &mut self,
        json: &Json,
        kinds: TypeSet,
        location: &Location,
    ) -> Option<Candidate> {
        let (changed, change) = match json {
            Json::String(text) => return self.convert_string(text.trim(), kinds, location),
            Json::Number(digits) if kinds.contains(TypeSet::STRING) => {
                (Json::String(digits.clone()), CoercionKind::NumberToString)
            }
            Json::Bool(boolean) if kinds.contains(TypeSet::STRING) => {
                (Json::String(boolean.to_string()), CoercionKind::BooleanToString)
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_) => {
                return None;
            }
        };
        Some((changed, vec![coercion_repair(location, change)]))
    }

    fn convert_string(
        &mut self,
        text: &str,
        kinds: TypeSet,
        location: &Location,
    ) -> Option<Candidate> {
        let (changed, change) = match text {
            "true" | "True" if kinds.contains(TypeSet::BOOLEAN) => {
                (Json::Bool(true), CoercionKind::StringToBoolean)
            }
            "false" | "False" if kinds.contains(TypeSet::BOOLEAN) => {
                (Json::Bool(false), CoercionKind::StringToBoolean)
            }
            "null" | "None" if kinds.contains(TypeSet::NULL) => {
                (Json::Null, CoercionKind::StringToNull)
            }
            _ if is_number(text) && allows_number(text, kinds) => {
                (Json::Number(text.to_owned()), CoercionKind::StringToNumber)
            }
            _ if opens_container(text, kinds) => {
                self.charge(text.len() / BYTES_PER_VISIT);
                let mut repairs = vec![coercion_repair(location, CoercionKind::StringToJson)];
                let remaining_depth = MAX_DEPTH.saturating_sub(location.value_depth);
                let json = parse_embedded(text, remaining_depth, &location.pointer, &mut repairs)?;
                return kinds.accepts(&json).then_some((json, repairs));
            }
            _ => return None,
        };
        Some((changed, vec![coercion_repair(location, change)]))
    }

    fn wrap_in_array(
        &mut self,
        json: &Json,
        kinds: TypeSet,
        schema: &'s Value,
        location: &Location,
    ) -> Option<Candidate> {
        let wrapped = match json {
            Json::String(text) => {
                let text = text.trim();
                !text.is_empty() && !text.starts_with(['[', '{']) && !text.contains([',', '\n'])
            }
            Json::Number(_) | Json::Bool(_) => true,
            Json::Null | Json::Array(_) | Json::Object(_) => false,
        };
        if !wrapped || !kinds.contains(TypeSet::ARRAY) || location.value_depth >= MAX_DEPTH {
            return None;
        }
        let mut repairs = vec![coercion_repair(location, CoercionKind::ScalarToArray)];
        let mut item = json.clone();
        if let Some(items) = schema::item_schema(schema, 0) {
            let location = location.child("0");
            item = self.coerce_value(json, items, &location, &mut repairs).unwrap_or(item);
            if !self.fits(&item, items, location.schema_depth) {
                return None;
            }
        }
        Some((Json::Array(vec![item]), repairs))
    }
}

/// Whether `text` is a number of these types. A number with an exponent is not an integer here.
fn allows_number(text: &str, kinds: TypeSet) -> bool {
    kinds.contains(TypeSet::NUMBER) || kinds.accepts_number(text) && !text.contains(['e', 'E'])
}

/// Whether the text starts like an array or object of these types.
fn opens_container(text: &str, kinds: TypeSet) -> bool {
    let fenced = text.starts_with("```");
    let array = kinds.contains(TypeSet::ARRAY) && (fenced || text.starts_with('['));
    array || kinds.contains(TypeSet::OBJECT) && (fenced || text.starts_with('{'))
}

fn coercion_repair(location: &Location, kind: CoercionKind) -> Repair {
    Repair::Coercion { pointer: location.pointer.clone(), kind }
}
