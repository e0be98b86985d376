//! A single value turned into another type.

use serde_json::Value;

use super::schema::{self, Kinds};
use super::{BYTES_PER_VISIT, Coercion, Place};
use crate::json::Json;
use crate::parse::{DEPTH, encoded, is_number};
use crate::repair::{Change, Repair};

/// A value that another may become, and what was done.
type Candidate = (Json, Vec<Repair>);

impl<'s> Coercion<'s> {
    /// What `json` becomes under the types of `schema`, if that is only one thing.
    pub(super) fn convert(
        &mut self,
        json: &Json,
        schema: &'s Value,
        place: &Place,
        made: &mut Vec<Repair>,
    ) -> Option<Json> {
        let kinds = Kinds::own(schema)?;
        let turned = self.turned(json, kinds, place);
        let wrapped = self.wrapped(json, kinds, schema, place);
        let ((Some((changed, repairs)), None) | (None, Some((changed, repairs)))) =
            (turned, wrapped)
        else {
            return None;
        };
        made.extend(repairs);
        Some(changed)
    }

    fn turned(&mut self, json: &Json, kinds: Kinds, place: &Place) -> Option<Candidate> {
        let (changed, change) = match json {
            Json::String(text) => return self.read(text.trim(), kinds, place),
            Json::Number(digits) if kinds.has(Kinds::STRING) => {
                (Json::String(digits.clone()), Change::NumberToString)
            }
            Json::Bool(it) if kinds.has(Kinds::STRING) => {
                (Json::String(it.to_string()), Change::BooleanToString)
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_) => {
                return None;
            }
        };
        Some((changed, vec![told(place, change)]))
    }

    /// What a string spells.
    fn read(&mut self, text: &str, kinds: Kinds, place: &Place) -> Option<Candidate> {
        let (changed, change) = match text {
            "true" | "True" if kinds.has(Kinds::BOOLEAN) => {
                (Json::Bool(true), Change::StringToBoolean)
            }
            "false" | "False" if kinds.has(Kinds::BOOLEAN) => {
                (Json::Bool(false), Change::StringToBoolean)
            }
            "null" | "None" if kinds.has(Kinds::NULL) => (Json::Null, Change::StringToNull),
            _ if is_number(text) && spells(text, kinds) => {
                (Json::Number(text.to_owned()), Change::StringToNumber)
            }
            _ if opens(text, kinds) => {
                self.charge(text.len() / BYTES_PER_VISIT);
                let mut repairs = vec![told(place, Change::StringToJson)];
                let left = DEPTH.saturating_sub(place.levels);
                let json = encoded(text, left, &place.pointer, &mut repairs)?;
                return kinds.admit(&json).then_some((json, repairs));
            }
            _ => return None,
        };
        Some((changed, vec![told(place, change)]))
    }

    /// The value as the only item of an array.
    fn wrapped(
        &mut self,
        json: &Json,
        kinds: Kinds,
        schema: &'s Value,
        place: &Place,
    ) -> Option<Candidate> {
        let alone = match json {
            Json::String(text) => {
                let text = text.trim();
                !text.is_empty() && !text.starts_with(['[', '{']) && !text.contains([',', '\n'])
            }
            Json::Number(_) | Json::Bool(_) => true,
            Json::Null | Json::Array(_) | Json::Object(_) => false,
        };
        if !alone || !kinds.has(Kinds::ARRAY) || place.levels >= DEPTH {
            return None;
        }
        let mut repairs = vec![told(place, Change::ScalarToArray)];
        let mut item = json.clone();
        if let Some(items) = schema::item(schema, 0) {
            let place = place.below("0");
            item = self.value(json, items, &place, &mut repairs).unwrap_or(item);
            if !self.fits(&item, items, place.nested) {
                return None;
            }
        }
        Some((Json::Array(vec![item]), repairs))
    }
}

/// Whether a number of these types is meant by its text; what has an exponent is no integer here.
fn spells(text: &str, kinds: Kinds) -> bool {
    kinds.has(Kinds::NUMBER) || kinds.admit_number(text) && !text.contains(['e', 'E'])
}

/// Whether the text opens like an array or object of these types.
fn opens(text: &str, kinds: Kinds) -> bool {
    let fenced = text.starts_with("```");
    let array = kinds.has(Kinds::ARRAY) && (fenced || text.starts_with('['));
    array || kinds.has(Kinds::OBJECT) && (fenced || text.starts_with('{'))
}

fn told(place: &Place, change: Change) -> Repair {
    Repair::Value { pointer: place.pointer.clone(), change }
}
