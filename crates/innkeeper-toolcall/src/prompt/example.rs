//! Example call of an available tool, generated from its schema.

use serde_json::{Map, Number, Value, json};

use crate::{ModelFamily, Tools, sanitize};

/// Maximum depth of the schema; deeper values are `null`.
const MAX_DEPTH: usize = 8;

/// Maximum number of values in an example; further values are `null`. A schema of N required
/// properties that refers to itself has a tree of N⁴ values within [`MAX_DEPTH`].
const MAX_VALUES: usize = 256;

/// Maximum number of items in an example array, regardless of `minItems`.
const MAX_ITEMS: u64 = 3;

/// Maximum number of characters in an example string, regardless of `minLength`.
const MAX_STRING_CHARS: u64 = 64;

/// Returns a call in the family's form: of the first tool with required arguments, else of the
/// first tool. Deterministic.
pub(super) fn example_call(family: ModelFamily, tools: &Tools) -> Option<String> {
    let tool = tools
        .iter()
        .find(|tool| {
            tool.input_schema
                .get("required")
                .and_then(Value::as_array)
                .is_some_and(|required| !required.is_empty())
        })
        .or_else(|| tools.iter().next())?;
    let arguments =
        ExampleBuilder::new(&tool.input_schema).value_for(&tool.input_schema, "", MAX_DEPTH);
    let arguments = if arguments.is_object() { arguments } else { json!({}) };
    Some(format!(
        "{}{}{}",
        family.call_start(&tool.name),
        sanitize::to_json_line(&arguments),
        family.call_end()
    ))
}

/// Generates values for the subschemas of a schema.
struct ExampleBuilder<'a> {
    root: &'a Value,
    remaining_values: usize,
}

impl<'a> ExampleBuilder<'a> {
    fn new(root: &'a Value) -> Self {
        Self { root, remaining_values: MAX_VALUES }
    }

    /// Returns a value for a schema. The property name may determine the content.
    fn value_for(&mut self, schema: &Value, name: &str, depth: usize) -> Value {
        if depth == 0 || self.remaining_values == 0 {
            return Value::Null;
        }
        self.remaining_values -= 1;
        if let Some(preset) = preset_value(schema) {
            return preset.clone();
        }
        let reference = schema.get("$ref").and_then(Value::as_str);
        if let Some(pointer) = reference.and_then(|text| text.strip_prefix('#')) {
            let root = self.root;
            return root
                .pointer(pointer)
                .map_or(Value::Null, |target| self.value_for(target, name, depth - 1));
        }
        let branches =
            ["anyOf", "oneOf", "allOf"].iter().find_map(|keyword| schema.get(keyword)?.as_array());
        if let (Some(first), None) =
            (branches.and_then(|list| list.first()), schema.get("properties"))
        {
            return self.value_for(first, name, depth - 1);
        }
        let type_name = match schema.get("type") {
            Some(Value::Array(types)) => types.iter().find_map(Value::as_str),
            Some(single) => single.as_str(),
            None if schema.get("properties").is_some() => Some("object"),
            None => None,
        };
        match type_name {
            Some("object" | "dict") => self.object_for(schema, depth),
            Some("array" | "tuple") => self.array_for(schema, name, depth),
            Some("integer") => example_number(schema, 1),
            Some("number" | "float") => example_number(schema, 1),
            Some("boolean") => Value::Bool(true),
            Some("null") => Value::Null,
            _ => Value::String(example_string(schema, name)),
        }
    }

    /// Returns an object with only the required properties.
    fn object_for(&mut self, schema: &Value, depth: usize) -> Value {
        let mut members = Map::new();
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            let Some(name) = name.as_str() else { continue };
            let property = schema
                .get("properties")
                .and_then(|properties| properties.get(name))
                .unwrap_or(&Value::Null);
            members.insert(name.to_owned(), self.value_for(property, name, depth - 1));
        }
        Value::Object(members)
    }

    fn array_for(&mut self, schema: &Value, name: &str, depth: usize) -> Value {
        if let Some(prefix) = schema.get("prefixItems").and_then(Value::as_array) {
            return prefix.iter().map(|item| self.value_for(item, name, depth - 1)).collect();
        }
        let count = limit(schema, "minItems").unwrap_or(1).clamp(1, MAX_ITEMS);
        let count = count.min(limit(schema, "maxItems").unwrap_or(count));
        let item = schema.get("items").unwrap_or(&Value::Null);
        (0..count).map(|_| self.value_for(item, name, depth - 1)).collect()
    }
}

/// Returns a value that the schema itself contains.
fn preset_value(schema: &Value) -> Option<&Value> {
    schema
        .get("const")
        .or_else(|| first(schema, "enum"))
        .or_else(|| first(schema, "examples"))
        .or(schema.get("default"))
}

/// Returns an integer within the bounds, if there is one.
fn example_number(schema: &Value, preferred: i64) -> Value {
    let low = bound(schema, "minimum").map(f64::ceil);
    let low = low.or_else(|| bound(schema, "exclusiveMinimum").map(|limit| limit.floor() + 1.0));
    let high = bound(schema, "maximum").map(f64::floor);
    let high = high.or_else(|| bound(schema, "exclusiveMaximum").map(|limit| limit.ceil() - 1.0));
    let mut number = preferred as f64;
    number = low.map_or(number, |low| number.max(low));
    number = high.map_or(number, |high| number.min(high));
    if number.abs() < 1e15 { (number as i64).into() } else { Number::from_f64(number).into() }
}

/// Returns a string of the schema's format, else a recognizable example.
fn example_string(schema: &Value, name: &str) -> String {
    let by_format = match schema.get("format").and_then(Value::as_str) {
        Some("date") => Some("2026-01-31"),
        Some("time") => Some("12:00:00Z"),
        Some("date-time") => Some("2026-01-31T12:00:00Z"),
        Some("email") => Some("name@example.com"),
        Some("uri" | "url") => Some("https://example.com"),
        Some("uuid") => Some("00000000-0000-4000-8000-000000000000"),
        Some("ipv4") => Some("192.0.2.1"),
        _ => None,
    };
    if let Some(by_format) = by_format {
        return by_format.to_owned();
    }
    let lower = name.to_lowercase();
    let text = if lower.contains("path") || lower.contains("file") {
        "notes.txt"
    } else if lower.contains("url") {
        "https://example.com"
    } else {
        "example"
    };
    let least = limit(schema, "minLength").unwrap_or(0).min(MAX_STRING_CHARS) as usize;
    let max_chars =
        limit(schema, "maxLength").unwrap_or(MAX_STRING_CHARS).min(MAX_STRING_CHARS) as usize;
    text.chars().chain(std::iter::repeat('x')).take(text.len().max(least).min(max_chars)).collect()
}

fn limit(schema: &Value, keyword: &str) -> Option<u64> {
    schema.get(keyword).and_then(Value::as_u64)
}

fn bound(schema: &Value, keyword: &str) -> Option<f64> {
    schema.get(keyword).and_then(Value::as_f64)
}

fn first<'s>(schema: &'s Value, keyword: &str) -> Option<&'s Value> {
    schema.get(keyword)?.as_array()?.first()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tool;

    fn tools_with_schema(schema: Value) -> Tools {
        [Tool::new("a", "", json!({"type": "object"})), Tool::new("b", "", schema)]
            .into_iter()
            .collect()
    }

    #[test]
    fn the_example_calls_the_first_tool_that_requires_an_argument() {
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}, "x": {}}, "required": ["path"]});
        let call = example_call(ModelFamily::Generic, &tools_with_schema(schema));
        assert_eq!(call.unwrap(), r#"{"tool": "b", "params": {"path": "notes.txt"}}"#);
        assert_eq!(super::example_call(ModelFamily::Generic, &Tools::default()), None);
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
            let value = ExampleBuilder::new(&schema).value_for(&schema, "", MAX_DEPTH);
            assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&value), "{value}");
        }
    }

    /// Attack: model | a schema refers to itself, or requires 1,000,000,000 elements | the example
    /// in the prompt stays small | No unbounded memory
    #[test]
    fn a_schema_that_goes_in_circles_ends_and_a_large_one_stays_small() {
        let circle = json!({"required": ["x"], "properties": {"x": {"$ref": "#"}}});
        assert!(
            example_call(ModelFamily::Generic, &tools_with_schema(circle))
                .unwrap()
                .contains("null")
        );
        let recursive = json!({"$ref": "#", "required": ["x"]});
        assert_eq!(
            example_call(ModelFamily::Generic, &tools_with_schema(recursive)).unwrap(),
            r#"{"tool": "b", "params": {}}"#
        );
        let names: Vec<String> = (0..200).map(|name| name.to_string()).collect();
        let properties: Map<String, Value> =
            names.iter().map(|name| (name.clone(), json!({"$ref": "#"}))).collect();
        let wide = json!({"required": names, "properties": properties});
        let example = example_call(ModelFamily::Generic, &tools_with_schema(wide)).unwrap();
        assert!(example.len() < 20_000, "{}", example.len());
        let tuples = json!({"required": ["x"], "properties": {"x": {"$ref": "#/$defs/x"}}, "$defs": {"x": {
                "type": "array", "prefixItems": vec![json!({"$ref": "#/$defs/x"}); 200]}}});
        let example = example_call(ModelFamily::Generic, &tools_with_schema(tuples)).unwrap();
        assert!(example.len() < 20_000, "{}", example.len());
        let large = json!({"required": ["x"], "properties": {"x": {
            "type": "array", "minItems": 1e9 as u64, "items": {"type": "string", "minLength": 1e9 as u64},
        }}});
        assert!(example_call(ModelFamily::Generic, &tools_with_schema(large)).unwrap().len() < 300);
    }

    #[test]
    fn the_example_of_each_known_format_has_the_format() {
        for format in ["date", "time", "date-time", "email", "uri", "uuid", "ipv4"] {
            let schema = json!({"type": "string", "format": format});
            let validator =
                jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
            let example = json!(example_string(&schema, "x"));
            assert!(validator.is_valid(&example), "{format}: {example}");
            assert!(!validator.is_valid(&json!("example")), "{format}");
        }
        assert_eq!(example_string(&json!({"format": "url"}), "x"), "https://example.com");
    }
}
