//! Conversion of raw text, such as `<parameter=K>` of XML-like calls, to a JSON value.

use serde_json::Value;

use super::MAX_VISITS;
use super::schema::{RootSchema, TypeSet};
use crate::json::Json;
use crate::parse;

/// Reads `text` as a value of `schema`. References resolve in `root`, the tool's complete input
/// schema.
///
/// - If the schema does not restrict types, or allows only strings, the value is the text,
///   unchanged.
/// - If the schema does not allow strings, the value is the JSON in the text, or `True`, `False` or
///   `None` if that type is allowed. Otherwise the value is the text, and validation reports the
///   error.
/// - If the schema allows strings and other types, the value is the JSON in the text if it has one
///   of the other types. Otherwise the value is the text.
///
/// `properties` and `items` also count as types: such a schema does not mean text.
pub fn coerce_text(text: &str, schema: Option<&Value>, root: &Value) -> Json {
    let mut remaining_visits = MAX_VISITS;
    let kinds = schema.and_then(|schema| {
        RootSchema(root).allowed_types(schema, 0, &mut remaining_visits).or_else(|| {
            let object = schema.get("properties").map(|_| TypeSet::OBJECT);
            object.or_else(|| schema.get("items").map(|_| TypeSet::ARRAY))
        })
    });
    kinds
        .and_then(|kinds| parse_typed(text.trim(), kinds))
        .unwrap_or_else(|| Json::String(text.to_owned()))
}

/// Parses the text as a value of a type other than string.
fn parse_typed(text: &str, kinds: TypeSet) -> Option<Json> {
    if kinds == TypeSet::STRING {
        return None;
    }
    let stringless = !kinds.contains(TypeSet::STRING);
    match parse::parse_strict(text) {
        Ok(Json::String(_)) => None,
        Ok(json) => (stringless || kinds.accepts(&json)).then_some(json),
        Err(_) => match text {
            "True" if stringless && kinds.contains(TypeSet::BOOLEAN) => Some(Json::Bool(true)),
            "False" if stringless && kinds.contains(TypeSet::BOOLEAN) => Some(Json::Bool(false)),
            "None" if stringless && kinds.contains(TypeSet::NULL) => Some(Json::Null),
            _ => None,
        },
    }
}
