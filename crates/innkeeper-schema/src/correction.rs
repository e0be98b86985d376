//! Rewrites keywords that violate the dialect but have only one possible meaning.
//!
//! Generators of schemas write `null` for an absent keyword, PHP writes `[]` for an empty object, and
//! habits of draft 3 live on, such as `"required": true` inside a property. A keyword that could
//! mean two things stays as it is, so that the schema still fails to compile.

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use jsonschema::Draft;
use serde_json::{Map, Number, Value};

use crate::draft;
use crate::type_name::{ANY_TYPE, standard_type_name};

const SCHEMA_KEYWORDS: [&str; 12] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords with a list of subschemas. `items` is a list in drafts before 2020-12.
const SCHEMA_LIST_KEYWORDS: [&str; 5] = ["allOf", "anyOf", "items", "oneOf", "prefixItems"];

/// Keywords with named subschemas.
const SCHEMA_MAP_KEYWORDS: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

type TypeCheck = fn(&Value) -> bool;

/// Keywords that never decide whether a value is valid, with the type of their value.
const ANNOTATIONS: [(&str, TypeCheck); 11] = [
    ("$comment", Value::is_string),
    ("contentEncoding", Value::is_string),
    ("contentMediaType", Value::is_string),
    ("deprecated", Value::is_boolean),
    ("description", Value::is_string),
    ("examples", Value::is_array),
    ("format", Value::is_string),
    ("readOnly", Value::is_boolean),
    ("title", Value::is_string),
    ("$vocabulary", Value::is_object),
    ("writeOnly", Value::is_boolean),
];

const COUNT_KEYWORDS: [&str; 8] = [
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
];

const NUMBER_KEYWORDS: [&str; 5] =
    ["exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"];

/// Returns the schema with the meaning of its author in the words of its dialect.
///
/// The depth of the schema must be within its limit.
pub(crate) fn correct(schema: &Value, draft: Draft) -> Value {
    let mut corrected = schema.clone();
    let is_draft3 = draft::is_draft3(schema);
    Corrector { is_draft3, is_draft4: draft == Draft::Draft4 }.correct_schema(&mut corrected);
    if is_draft3 {
        corrected["$schema"] = draft::DRAFT_4.into();
    }
    corrected
}

#[derive(Clone, Copy)]
struct Corrector {
    is_draft3: bool,
    /// Whether exclusive limits are booleans.
    is_draft4: bool,
}

impl Corrector {
    fn correct_schema(self, schema: &mut Value) {
        match schema {
            Value::Null => *schema = Value::Bool(true),
            Value::Array(items) if items.is_empty() => *schema = Value::Bool(true),
            Value::String(text) => {
                if let Some(is_allowed) = boolean(text) {
                    *schema = Value::Bool(is_allowed);
                } else if let Some(name) = standard_type_name(text) {
                    *schema = if name == ANY_TYPE {
                        Value::Bool(true)
                    } else {
                        Value::Object(Map::from_iter([("type".to_owned(), name.into())]))
                    };
                }
            }
            Value::Object(keywords) => self.correct_keywords(keywords),
            Value::Array(_) | Value::Bool(_) | Value::Number(_) => {}
        }
        // Draft 4 has no boolean schemas where other drafts have them.
        if self.is_draft4 && *schema == Value::Bool(true) {
            *schema = Value::Object(Map::new());
        }
    }

    fn correct_keywords(self, keywords: &mut Map<String, Value>) {
        keywords.retain(|keyword, value| {
            !value.is_null() || matches!(keyword.as_str(), "const" | "default")
        });
        for (annotation, has_its_type) in ANNOTATIONS {
            if keywords.get(annotation).is_some_and(|value| !has_its_type(value)) {
                keywords.remove(annotation);
            }
        }
        correct_type(keywords);
        correct_required(keywords, self.is_draft3);
        for keyword in COUNT_KEYWORDS.iter().chain(&NUMBER_KEYWORDS) {
            if let Some(value) = keywords.get_mut(*keyword) {
                correct_number(value);
            }
        }
        // A negative minimum of a count allows every count.
        keywords.retain(|keyword, value| {
            let is_minimum =
                keyword.starts_with("min") && COUNT_KEYWORDS.contains(&keyword.as_str());
            !(is_minimum && value.as_f64().is_some_and(|count| count < 0.0))
        });
        self.correct_exclusive_limit(keywords, "minimum", "exclusiveMinimum");
        self.correct_exclusive_limit(keywords, "maximum", "exclusiveMaximum");
        if let Some(value) = keywords.get_mut("uniqueItems")
            && let Some(is_unique) = value.as_str().and_then(boolean)
        {
            *value = Value::Bool(is_unique);
        }
        if let Some(Value::Array(values)) = keywords.get_mut("enum") {
            remove_repeated(values);
        }
        self.correct_subschemas(keywords);
    }

    fn correct_subschemas(self, keywords: &mut Map<String, Value>) {
        for (keyword, value) in &mut *keywords {
            let keyword = keyword.as_str();
            let is_map = SCHEMA_MAP_KEYWORDS.contains(&keyword) || keyword == "dependentRequired";
            if is_map && value.as_array().is_some_and(Vec::is_empty) {
                *value = Value::Object(Map::new());
            }
            match value {
                Value::Array(list)
                    if SCHEMA_LIST_KEYWORDS.contains(&keyword) && !list.is_empty() =>
                {
                    list.iter_mut().for_each(|schema| self.correct_schema(schema));
                }
                Value::Object(members) if keyword == "dependencies" => {
                    let schemas = members.values_mut().filter(|value| value.is_object());
                    schemas.for_each(|schema| self.correct_schema(schema));
                }
                Value::Object(members) if SCHEMA_MAP_KEYWORDS.contains(&keyword) => {
                    members.values_mut().for_each(|schema| self.correct_schema(schema));
                }
                // Everything would match an empty `not`, so no value would be valid.
                Value::Array(list) if keyword == "not" && list.is_empty() => {}
                _ if SCHEMA_KEYWORDS.contains(&keyword) => self.correct_schema(value),
                _ => {}
            }
        }
    }

    /// Converts between the forms of an exclusive limit: a boolean beside the limit in draft 4, a
    /// number in later drafts.
    fn correct_exclusive_limit(
        self,
        keywords: &mut Map<String, Value>,
        limit: &'static str,
        exclusive: &'static str,
    ) {
        match (keywords.get(exclusive), keywords.get(limit)) {
            (Some(Value::Bool(true)), Some(value)) if !self.is_draft4 => {
                let value = value.clone();
                keywords.insert(exclusive.to_owned(), value);
                keywords.remove(limit);
            }
            (Some(Value::Bool(_)), _) if !self.is_draft4 => drop(keywords.remove(exclusive)),
            (Some(Value::Number(value)), None) if self.is_draft4 => {
                let value = Value::Number(value.clone());
                keywords.insert(limit.to_owned(), value);
                keywords.insert(exclusive.to_owned(), Value::Bool(true));
            }
            (Some(Value::Bool(_)), None) => drop(keywords.remove(exclusive)),
            _ => {}
        }
    }
}

/// Replaces type names of other languages, and removes a type that restricts nothing.
fn correct_type(keywords: &mut Map<String, Value>) {
    let names: Vec<&mut Value> = match keywords.get_mut("type") {
        Some(name @ Value::String(_)) => vec![name],
        Some(Value::Array(names)) => {
            remove_repeated(names);
            names.iter_mut().collect()
        }
        _ => return,
    };
    let mut is_any = names.is_empty();
    for name in names {
        match name.as_str().and_then(standard_type_name) {
            Some(ANY_TYPE) => is_any = true,
            Some(standard) => *name = standard.into(),
            None => {}
        }
    }
    if is_any {
        keywords.remove("type");
    }
}

/// Corrects `required`. In draft 3, `"required": true` inside a property means what a name in the
/// list of its object means in later drafts. In a later draft the flag has no meaning: some
/// generators write it for every property, and the server knows what it needs.
fn correct_required(keywords: &mut Map<String, Value>, is_draft3: bool) {
    let names = match keywords.get_mut("required").map(Value::take) {
        Some(Value::Array(names)) => names,
        Some(name @ Value::String(_)) if required_flag(&name).is_none() => vec![name],
        Some(flag) if required_flag(&flag).is_some() => Vec::new(),
        Some(other) => return drop(keywords.insert("required".to_owned(), other)),
        None => Vec::new(),
    };
    let properties = keywords.get("properties").and_then(Value::as_object).into_iter().flatten();
    let flagged = properties.filter(|(_, property)| {
        is_draft3 && property.get("required").and_then(required_flag).unwrap_or_default()
    });
    let flagged = flagged.map(|(name, _)| Value::from(name.as_str()));
    let mut required: Vec<Value> = names.into_iter().chain(flagged).collect();
    remove_repeated(&mut required);
    if required.is_empty() {
        keywords.remove("required");
    } else {
        keywords.insert("required".to_owned(), required.into());
    }
}

/// Returns the value of draft 3's `required`, which belongs to one property.
fn required_flag(value: &Value) -> Option<bool> {
    value.as_bool().or_else(|| value.as_str().and_then(boolean))
}

/// Reads a number that is written as a text.
fn correct_number(value: &mut Value) {
    let number = value.as_str().and_then(|text| text.trim().parse::<Number>().ok());
    if let Some(number) = number {
        *value = Value::Number(number);
    }
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "True" => Some(true),
        "false" | "False" => Some(false),
        _ => None,
    }
}

/// Removes all but the first of equal values. The number of values in a schema is limited.
fn remove_repeated(values: &mut Vec<Value>) {
    let mut seen = HashSet::new();
    values.retain(|value| seen.insert(value.to_string()));
}
