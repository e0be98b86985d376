//! Argument types from a JSON Schema, and the conversion of typed text.

use indexmap::IndexSet;
use serde_json::Value;
use serde_json::value::RawValue;

/// Maximum depth of references and combined schemas; deeper schemas restrict nothing.
const MAX_DEPTH: usize = 16;

/// Maximum number of schema nodes visited for required keys, because references can be cyclic.
const MAX_SCHEMA_NODES: usize = 64;

/// Maximum number of combined schemas that are visited for one property, because references can
/// repeat a schema without end.
const MAX_COMBINED_SCHEMAS: usize = 4_096;

/// Whether an object schema has a property.
pub(super) enum PropertyLookup {
    Known(ExpectedType),
    Unknown { known_keys: Vec<String> },
}

/// Looks up a property of an object schema.
pub(super) fn find_property(schema: &Value, key: &str) -> PropertyLookup {
    find_property_of(schema, schema, key)
}

/// Looks up a member of nested objects, such as `filter.name`: the keys that lead to it, and its type.
pub(super) fn find_nested<'k>(root: &Value, key: &'k str) -> Option<(Vec<&'k str>, ExpectedType)> {
    let mut part = root;
    let mut path: Vec<&str> = key.split('.').collect();
    let last = path.pop()?;
    for segment in &path {
        let object = ObjectSchema::from_part(root, part);
        part = object.properties.iter().find(|(name, _)| name == segment)?.1;
        let mut expected = ExpectedType::default();
        expected.collect(root, part, MAX_DEPTH, &mut { MAX_COMBINED_SCHEMAS });
        if !expected.types.is_empty() && !expected.types.contains(&JsonType::Object) {
            return None;
        }
    }
    let PropertyLookup::Known(expected) = find_property_of(root, part, last) else { return None };
    path.push(last);
    Some((path, expected))
}

/// Looks up a property of `part`, an object schema in `schema`.
fn find_property_of(schema: &Value, part: &Value, key: &str) -> PropertyLookup {
    let mut expected = ExpectedType::default();
    let nodes = &mut { MAX_COMBINED_SCHEMAS };
    let object = ObjectSchema::from_part(schema, part);
    for property in object.properties.iter().filter(|(name, _)| *name == key) {
        expected.collect(schema, property.1, MAX_DEPTH, nodes);
    }
    if object.properties.iter().any(|(name, _)| *name == key) {
        return PropertyLookup::Known(expected);
    }
    for extra in &object.additional_schemas {
        expected.collect(schema, extra, MAX_DEPTH, nodes);
    }
    let open = !object.additional_schemas.is_empty()
        || (object.properties.is_empty() && !object.is_closed);
    if open {
        return PropertyLookup::Known(expected);
    }
    let mut keys: Vec<_> = object.properties.iter().map(|(name, _)| (*name).to_owned()).collect();
    keys.dedup();
    PropertyLookup::Unknown { known_keys: keys }
}

pub(super) fn required_keys(schema: &Value) -> IndexSet<&str> {
    let mut names = IndexSet::new();
    let mut open = vec![schema];
    for _ in 0..MAX_SCHEMA_NODES {
        let Some(subschema) = open.pop() else { break };
        let keys = subschema.get("required").and_then(Value::as_array).into_iter().flatten();
        names.extend(keys.filter_map(Value::as_str));
        let all = subschema.get("allOf").and_then(Value::as_array).into_iter().flatten();
        open.extend(all.chain(resolve_reference(schema, subschema)));
    }
    names
}

/// The properties of an object schema and of all schemas combined with it.
#[derive(Default)]
pub(super) struct ObjectSchema<'a> {
    pub(super) properties: Vec<(&'a str, &'a Value)>,
    additional_schemas: Vec<&'a Value>,
    is_closed: bool,
}

impl<'a> ObjectSchema<'a> {
    /// Returns the object that `schema`, a part of `root`, describes.
    pub(super) fn from_part(root: &'a Value, schema: &'a Value) -> Self {
        let mut object = Self::default();
        object.collect(root, schema, MAX_DEPTH, &mut { MAX_COMBINED_SCHEMAS });
        object
    }

    fn collect(&mut self, root: &'a Value, schema: &'a Value, depth: usize, nodes: &mut usize) {
        if depth == 0 || *nodes == 0 {
            return;
        }
        *nodes -= 1;
        if let Some(target) = resolve_reference(root, schema) {
            self.collect(root, target, depth - 1, nodes);
        }
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            self.properties.extend(properties.iter().map(|(name, value)| (name.as_str(), value)));
        }
        match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => self.is_closed = true,
            Some(open) => self.additional_schemas.push(open),
            None => {}
        }
        if let Some(patterns) = schema.get("patternProperties").and_then(Value::as_object) {
            self.additional_schemas.extend(patterns.values());
        }
        for branches in ["allOf", "anyOf", "oneOf"].iter().filter_map(|keyword| schema.get(keyword))
        {
            for branch in branches.as_array().into_iter().flatten() {
                self.collect(root, branch, depth - 1, nodes);
            }
        }
        for branch in ["if", "then", "else"].iter().filter_map(|keyword| schema.get(keyword)) {
            self.collect(root, branch, depth - 1, nodes);
        }
        let dependent = ["dependentSchemas", "dependencies"];
        for branches in dependent.iter().filter_map(|keyword| schema.get(keyword)?.as_object()) {
            for branch in branches.values() {
                self.collect(root, branch, depth - 1, nodes);
            }
        }
    }
}

/// Resolves a local `$ref`.
pub(super) fn resolve_reference<'a>(root: &'a Value, schema: &Value) -> Option<&'a Value> {
    root.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
}

/// The types and fixed values of an argument; an empty value allows anything.
#[derive(Debug, Default)]
pub(super) struct ExpectedType {
    types: Vec<JsonType>,
    literals: Vec<Value>,
    items: Option<Box<Self>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum JsonType {
    // In the order in which a text is parsed: the narrowest type first.
    Null,
    Boolean,
    Integer,
    Number,
    Array,
    Object,
    String,
}

impl JsonType {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::Null,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "array" => Self::Array,
            "object" => Self::Object,
            "string" => Self::String,
            _ => return None,
        })
    }

    fn describe(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "a boolean (true or false)",
            Self::Integer => "an integer",
            Self::Number => "a number",
            Self::Array => "a list",
            Self::Object => "an object",
            Self::String => "a string",
        }
    }

    /// Whether a JSON text has this type.
    fn matches_json(self, json: &str) -> bool {
        let first = json.as_bytes().first();
        match self {
            Self::Null => json == "null",
            Self::Boolean => json == "true" || json == "false",
            Self::Integer => is_number(json) && is_integer(json),
            Self::Number => is_number(json),
            Self::Array => first == Some(&b'['),
            Self::Object => first == Some(&b'{'),
            Self::String => first == Some(&b'"'),
        }
    }
}

fn is_number(json: &str) -> bool {
    json.starts_with(|c: char| c == '-' || c.is_ascii_digit())
}

/// Whether a JSON number has no fraction: `3`, `-0`, `3.00`, but not `3.5` or `3e-1`.
fn is_integer(json: &str) -> bool {
    let (_, fraction) = json.split_once('.').unwrap_or((json, "0"));
    !json.contains(['e', 'E']) && fraction.bytes().all(|digit| digit == b'0')
}

/// Whether a JSON number is written as a program prints the number: `7` and `1.5`, but not `1.10`,
/// `1e5` or `-0`, which can be versions and hashes.
fn is_canonical(json: &str) -> bool {
    let (_, fraction) = json.split_once('.').unwrap_or((json, "1"));
    !json.contains(['e', 'E']) && !fraction.ends_with('0') && json != "-0"
}

impl ExpectedType {
    fn collect(&mut self, root: &Value, schema: &Value, depth: usize, nodes: &mut usize) {
        if depth == 0 || *nodes == 0 {
            return;
        }
        *nodes -= 1;
        if let Some(target) = resolve_reference(root, schema) {
            self.collect(root, target, depth - 1, nodes);
        }
        let fixed = schema.get("const").map(std::slice::from_ref);
        let enum_values = schema.get("enum").and_then(Value::as_array).map(Vec::as_slice);
        if let Some(values) = fixed.or(enum_values) {
            self.literals.extend_from_slice(values);
        } else {
            self.collect_types(schema);
        }
        if let Some(items) = schema.get("items") {
            let mut item = self.items.take().unwrap_or_default();
            item.collect(root, items, depth - 1, nodes);
            self.items = Some(item);
        }
        for branches in ["allOf", "anyOf", "oneOf"].iter().filter_map(|keyword| schema.get(keyword))
        {
            for branch in branches.as_array().into_iter().flatten() {
                self.collect(root, branch, depth - 1, nodes);
            }
        }
    }

    fn collect_types(&mut self, schema: &Value) {
        let names: Vec<&str> = match schema.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            Some(_) => Vec::new(),
            None if schema.get("properties").is_some() => vec!["object"],
            None if schema.get("items").is_some() => vec!["array"],
            None => Vec::new(),
        };
        self.types.extend(names.into_iter().filter_map(JsonType::from_name));
        self.types.sort_unstable();
        self.types.dedup();
    }

    /// Returns the type of array items, if an array is allowed.
    pub(super) fn items(&self) -> Option<&Self> {
        const ANY_TYPE: &ExpectedType =
            &ExpectedType { types: Vec::new(), literals: Vec::new(), items: None };
        let array = self.types.contains(&JsonType::Array);
        array.then(|| self.items.as_deref().unwrap_or(ANY_TYPE))
    }

    /// Parses text as the narrowest allowed type.
    ///
    /// If only a string is allowed, the text is that string. If everything is allowed, a number is
    /// parsed only if the number prints as the text. If a string is one of several types, a
    /// quoted JSON string selects the string type.
    pub(super) fn parse(&self, text: &str) -> Option<Box<RawValue>> {
        let json: Option<&RawValue> = serde_json::from_str(text).ok();
        let string = || serde_json::value::to_raw_value(text).ok();
        if let Some(literal) = self.literals.iter().find(|literal| matches_literal(literal, text)) {
            return serde_json::value::to_raw_value(literal).ok();
        }
        if self.types == [JsonType::String] {
            return string();
        }
        let anything = self.types.is_empty() && self.literals.is_empty();
        let fitting = json.filter(|json| match anything {
            true => !is_number(json.get()) || is_canonical(json.get()),
            false => self.types.iter().any(|kind| kind.matches_json(json.get())),
        });
        match fitting {
            Some(json) => Some(json.to_owned()),
            None if anything || self.types.contains(&JsonType::String) => string(),
            None => None,
        }
    }

    /// Parses text as the only item of a list, if a list is allowed. Text that begins as a JSON
    /// array is not an item but an array with an error.
    pub(super) fn parse_single_item(&self, text: &str) -> Option<Box<RawValue>> {
        let item = self.items().filter(|_| !text.trim_start().starts_with('['))?.parse(text)?;
        serde_json::value::to_raw_value(&[item]).ok()
    }

    /// Returns what a value must be, with an example of a list or an object.
    pub(super) fn describe(&self, key: &str) -> String {
        let literals = self.literals.iter().map(|literal| match literal {
            Value::String(string) => format!("`{string}`"),
            other => format!("`{other}`"),
        });
        let example = |json: &str| {
            let quoted = shlex::try_quote(json).unwrap_or(json.into());
            format!(": `{key}={quoted}`")
        };
        let kinds = self.types.iter().map(|kind| match kind {
            JsonType::Array => {
                let item = self.items().map_or("\"text\"".to_owned(), Self::example);
                format!("{}{}", kind.describe(), example(&format!("[{item}]")))
            }
            JsonType::Object => {
                format!("{}{}", kind.describe(), example(r#"{"key": "value"}"#))
            }
            JsonType::Null
            | JsonType::Boolean
            | JsonType::Integer
            | JsonType::Number
            | JsonType::String => kind.describe().to_owned(),
        });
        let all: Vec<String> = literals.chain(kinds).collect();
        all.join(" or ")
    }

    /// Returns an example of a value as JSON.
    fn example(&self) -> String {
        let literal = self.literals.first().map(Value::to_string);
        literal.unwrap_or_else(|| {
            let text = match self.types.last() {
                Some(JsonType::Null) => "null",
                Some(JsonType::Boolean) => "true",
                Some(JsonType::Integer) => "1",
                Some(JsonType::Number) => "0.5",
                Some(JsonType::Array) => "[]",
                Some(JsonType::Object) => "{}",
                Some(JsonType::String) | None => "\"text\"",
            };
            text.to_owned()
        })
    }
}

/// Whether a text equals a fixed value: a string as text, any other value as JSON.
fn matches_literal(literal: &Value, text: &str) -> bool {
    match literal {
        Value::String(string) => string == text,
        other => serde_json::from_str::<Value>(text).is_ok_and(|value| value == *other),
    }
}
