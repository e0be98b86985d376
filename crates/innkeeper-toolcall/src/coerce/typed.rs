//! A value of a format that writes raw text, such as `<parameter=K>` of XML-like calls.

use serde_json::Value;

use super::schema::{Kinds, Root};
use crate::json::Json;
use crate::parse;

/// Reads `text` as a value of `schema`, whose references lead into `root`, the tool's whole input
/// schema.
///
/// - Where the schema says nothing of types, or allows strings alone, it is the text, unchanged.
/// - Where strings are not allowed, it is the JSON in the text, or `True`, `False` or `None` where
///   that type is allowed; else the text, and validation will say what is wrong with it.
/// - Where strings and other types are allowed, it is the JSON in the text if that is of one of the
///   other types; else the text.
///
/// Whether the schema has `properties` or `items` counts as a type too: nobody means text by it.
pub fn typed(text: &str, schema: Option<&Value>, root: &Value) -> Json {
    let kinds = schema.and_then(|schema| {
        Root(root).kinds(schema, 0).or_else(|| {
            let object = schema.get("properties").map(|_| Kinds::OBJECT);
            object.or_else(|| schema.get("items").map(|_| Kinds::ARRAY))
        })
    });
    kinds
        .and_then(|kinds| read(text.trim(), kinds))
        .unwrap_or_else(|| Json::String(text.to_owned()))
}

/// What the text means other than itself.
fn read(text: &str, kinds: Kinds) -> Option<Json> {
    if kinds == Kinds::STRING {
        return None;
    }
    let stringless = !kinds.has(Kinds::STRING);
    match parse::strict(text) {
        Ok(Json::String(_)) => None,
        Ok(json) => (stringless || kinds.admit(&json)).then_some(json),
        Err(_) => match text {
            "True" if stringless && kinds.has(Kinds::BOOLEAN) => Some(Json::Bool(true)),
            "False" if stringless && kinds.has(Kinds::BOOLEAN) => Some(Json::Bool(false)),
            "None" if stringless && kinds.has(Kinds::NULL) => Some(Json::Null),
            _ => None,
        },
    }
}
