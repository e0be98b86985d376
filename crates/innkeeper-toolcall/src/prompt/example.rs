//! A worked example: a call of one of the offered tools, made up from its schema.

use serde_json::{Map, Number, Value, json};

use crate::{Family, Tool, Tools, safe};

/// How deep a schema is followed; what is deeper is `null`.
const DEPTH: usize = 8;

/// The most items an example list has, whatever the schema asks for.
const ITEMS: u64 = 3;

/// The most characters an example string has, whatever the schema asks for.
const CHARS: u64 = 64;

/// A call in the family's form: of the first tool that requires an argument, else of the first. The
/// same tools always give the same example.
pub(super) fn call(family: Family, tools: &Tools) -> Option<String> {
    let asks = |tool: &&Tool| {
        tool.input_schema.get("required").and_then(Value::as_array).is_some_and(|it| !it.is_empty())
    };
    let tool = tools.iter().find(asks).or_else(|| tools.iter().next())?;
    let arguments = Example { root: &tool.input_schema }.of(&tool.input_schema, "", DEPTH);
    let arguments = if arguments.is_object() { arguments } else { json!({}) };
    Some(format!("{}{}{}", family.begin(&tool.name), safe::spaced(&arguments), family.end()))
}

/// Makes up values for the schemas inside one.
struct Example<'a> {
    root: &'a Value,
}

impl Example<'_> {
    /// A value for a schema, under a name that may say what it is about.
    fn of(&self, schema: &Value, name: &str, depth: usize) -> Value {
        if depth == 0 {
            return Value::Null;
        }
        if let Some(given) = given(schema) {
            return given.clone();
        }
        let reference = schema.get("$ref").and_then(Value::as_str);
        if let Some(pointer) = reference.and_then(|it| it.strip_prefix('#')) {
            return self
                .root
                .pointer(pointer)
                .map_or(Value::Null, |it| self.of(it, name, depth - 1));
        }
        let parts = ["anyOf", "oneOf", "allOf"].iter().find_map(|it| schema.get(it)?.as_array());
        if let (Some(first), None) = (parts.and_then(|it| it.first()), schema.get("properties")) {
            return self.of(first, name, depth - 1);
        }
        let of = match schema.get("type") {
            Some(Value::Array(types)) => types.iter().find_map(Value::as_str),
            Some(one) => one.as_str(),
            None if schema.get("properties").is_some() => Some("object"),
            None => None,
        };
        match of {
            Some("object" | "dict") => self.object(schema, depth),
            Some("array" | "tuple") => self.array(schema, name, depth),
            Some("integer") => number(schema, 1),
            Some("number" | "float") => number(schema, 1),
            Some("boolean") => Value::Bool(true),
            Some("null") => Value::Null,
            _ => Value::String(string(schema, name)),
        }
    }

    /// The required properties; of an object without any, none.
    fn object(&self, schema: &Value, depth: usize) -> Value {
        let mut members = Map::new();
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            let Some(name) = name.as_str() else { continue };
            let property =
                schema.get("properties").and_then(|it| it.get(name)).unwrap_or(&Value::Null);
            members.insert(name.to_owned(), self.of(property, name, depth - 1));
        }
        Value::Object(members)
    }

    fn array(&self, schema: &Value, name: &str, depth: usize) -> Value {
        if let Some(front) = schema.get("prefixItems").and_then(Value::as_array) {
            return front.iter().map(|item| self.of(item, name, depth - 1)).collect();
        }
        let limit = |keyword: &str| schema.get(keyword).and_then(Value::as_u64);
        let count = limit("minItems").unwrap_or(1).clamp(1, ITEMS);
        let count = count.min(limit("maxItems").unwrap_or(count));
        let item = self.of(schema.get("items").unwrap_or(&Value::Null), name, depth - 1);
        (0..count).map(|_| item.clone()).collect()
    }
}

/// The value the schema itself gives.
fn given(schema: &Value) -> Option<&Value> {
    let first = |keyword: &str| schema.get(keyword)?.as_array()?.first();
    schema
        .get("const")
        .or_else(|| first("enum"))
        .or_else(|| first("examples"))
        .or(schema.get("default"))
}

/// A whole number within the bounds, as far as whole numbers are there.
fn number(schema: &Value, wanted: i64) -> Value {
    let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
    let low = bound("minimum").map(f64::ceil);
    let low = low.or_else(|| bound("exclusiveMinimum").map(|it| it.floor() + 1.0));
    let high = bound("maximum").map(f64::floor);
    let high = high.or_else(|| bound("exclusiveMaximum").map(|it| it.ceil() - 1.0));
    let mut number = wanted as f64;
    number = low.map_or(number, |low| number.max(low));
    number = high.map_or(number, |high| number.min(high));
    if number.abs() < 1e15 { (number as i64).into() } else { Number::from_f64(number).into() }
}

/// A string of the format; else one that is plainly an example.
fn string(schema: &Value, name: &str) -> String {
    let known = match schema.get("format").and_then(Value::as_str) {
        Some("date") => Some("2026-01-31"),
        Some("time") => Some("12:00:00Z"),
        Some("date-time") => Some("2026-01-31T12:00:00Z"),
        Some("email") => Some("name@example.com"),
        Some("uri" | "url") => Some("https://example.com"),
        Some("uuid") => Some("00000000-0000-4000-8000-000000000000"),
        Some("ipv4") => Some("192.0.2.1"),
        _ => None,
    };
    if let Some(known) = known {
        return known.to_owned();
    }
    let lower = name.to_lowercase();
    let text = if lower.contains("path") || lower.contains("file") {
        "notes.txt"
    } else if lower.contains("url") {
        "https://example.com"
    } else {
        "example"
    };
    let limit = |keyword: &str| schema.get(keyword).and_then(Value::as_u64);
    let least = limit("minLength").unwrap_or(0).min(CHARS) as usize;
    let most = limit("maxLength").unwrap_or(CHARS).min(CHARS) as usize;
    text.chars().chain(std::iter::repeat('x')).take(text.len().max(least).min(most)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(schema: Value) -> Tools {
        [Tool::new("a", "", json!({"type": "object"})), Tool::new("b", "", schema)]
            .into_iter()
            .collect()
    }

    #[test]
    fn the_example_calls_the_first_tool_that_requires_an_argument() {
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}, "x": {}}, "required": ["path"]});
        let call = call(Family::Generic, &tool(schema));
        assert_eq!(call.unwrap(), r#"{"tool": "b", "params": {"path": "notes.txt"}}"#);
        assert_eq!(super::call(Family::Generic, &Tools::default()), None);
    }

    #[test]
    fn what_is_made_up_fits_the_schema() {
        for schema in [
            json!({"type": "object"}),
            json!({"required": ["n", "s", "l", "e", "o", "u", "t"], "properties": {
                "n": {"type": "integer", "minimum": 5, "maximum": 9},
                "s": {"type": "string", "minLength": 12, "maxLength": 13},
                "l": {"type": "array", "minItems": 2, "items": {"type": "number", "exclusiveMaximum": 0}},
                "e": {"enum": ["red", 2]},
                "o": {"$ref": "#/$defs/o"},
                "u": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
                "t": {"type": ["string", "null"], "format": "date"},
            }, "$defs": {"o": {"type": "object", "required": ["in"], "properties": {"in": {"const": {"a": [1]}}}}}}),
        ] {
            let value = Example { root: &schema }.of(&schema, "", DEPTH);
            assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&value), "{value}");
        }
    }

    #[test]
    fn a_schema_that_goes_in_circles_ends_and_a_large_one_stays_small() {
        let circle = json!({"required": ["x"], "properties": {"x": {"$ref": "#"}}});
        assert!(call(Family::Generic, &tool(circle)).unwrap().contains("null"));
        let endless = json!({"$ref": "#", "required": ["x"]});
        assert_eq!(
            call(Family::Generic, &tool(endless)).unwrap(),
            r#"{"tool": "b", "params": {}}"#
        );
        let large = json!({"required": ["x"], "properties": {"x": {
            "type": "array", "minItems": 1e9 as u64, "items": {"type": "string", "minLength": 1e9 as u64},
        }}});
        assert!(call(Family::Generic, &tool(large)).unwrap().len() < 300);
    }
}
