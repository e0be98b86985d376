//! What a JSON Schema lets one argument be, and the reading of typed text as that.

use std::fmt;

use indexmap::IndexSet;
use serde_json::Value;
use serde_json::value::RawValue;

/// How deep references and combinations of schemas are followed; deeper ones restrict nothing.
const MAX_DEPTH: usize = 16;

/// How many parts of a schema are looked through for keys it asks for: references may go in circles.
const MAX_PARTS: usize = 64;

/// Whether a tool takes an argument of some name.
pub(super) enum Key {
    Known(Expected),
    Unknown { known: Vec<String> },
}

/// What is looked for under one key of an object schema.
pub(super) fn find(schema: &Value, key: &str) -> Key {
    let mut found = Expected::default();
    let mut object = Object::default();
    object.collect(schema, schema, MAX_DEPTH);
    for property in object.properties.iter().filter(|(name, _)| *name == key) {
        found.collect(schema, property.1, MAX_DEPTH);
    }
    if object.properties.iter().any(|(name, _)| *name == key) {
        return Key::Known(found);
    }
    for extra in &object.open_to {
        found.collect(schema, extra, MAX_DEPTH);
    }
    let open = !object.open_to.is_empty() || (object.properties.is_empty() && !object.closed);
    if open {
        return Key::Known(found);
    }
    let mut known: Vec<_> = object.properties.iter().map(|(name, _)| (*name).to_owned()).collect();
    known.dedup();
    Key::Unknown { known }
}

/// The keys that an object schema always asks for.
pub(super) fn required(schema: &Value) -> IndexSet<&str> {
    let mut found = IndexSet::new();
    let mut open = vec![schema];
    for _ in 0..MAX_PARTS {
        let Some(part) = open.pop() else { break };
        let keys = part.get("required").and_then(Value::as_array).into_iter().flatten();
        found.extend(keys.filter_map(Value::as_str));
        let all = part.get("allOf").and_then(Value::as_array).into_iter().flatten();
        open.extend(all.chain(reference(schema, part)));
    }
    found
}

/// The members that an object schema and everything it is combined of speak of.
#[derive(Default)]
struct Object<'a> {
    properties: Vec<(&'a str, &'a Value)>,
    /// Schemas for members that are not named.
    open_to: Vec<&'a Value>,
    closed: bool,
}

impl<'a> Object<'a> {
    fn collect(&mut self, root: &'a Value, schema: &'a Value, depth: usize) {
        if depth == 0 {
            return;
        }
        if let Some(target) = reference(root, schema) {
            self.collect(root, target, depth - 1);
        }
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            self.properties.extend(properties.iter().map(|(name, value)| (name.as_str(), value)));
        }
        match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => self.closed = true,
            Some(open) => self.open_to.push(open),
            None => {}
        }
        if let Some(patterns) = schema.get("patternProperties").and_then(Value::as_object) {
            self.open_to.extend(patterns.values());
        }
        for part in ["allOf", "anyOf", "oneOf"].iter().filter_map(|word| schema.get(word)) {
            for branch in part.as_array().into_iter().flatten() {
                self.collect(root, branch, depth - 1);
            }
        }
        for branch in ["then", "else"].iter().filter_map(|word| schema.get(word)) {
            self.collect(root, branch, depth - 1);
        }
    }
}

/// The schema a local `$ref` points to.
fn reference<'a>(root: &'a Value, schema: &Value) -> Option<&'a Value> {
    root.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
}

/// The kinds and fixed values an argument may have; nothing in it means anything goes.
#[derive(Debug, Default)]
pub(super) struct Expected {
    kinds: Vec<Kind>,
    literals: Vec<Value>,
    items: Option<Box<Self>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    // In the order in which a text is tried as each: the narrowest first.
    Null,
    Boolean,
    Integer,
    Number,
    Array,
    Object,
    String,
}

impl Kind {
    fn named(name: &str) -> Option<Self> {
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

    fn words(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "a boolean (true or false)",
            Self::Integer => "an integer",
            Self::Number => "a number",
            Self::Array => "an array (as JSON)",
            Self::Object => "an object (as JSON)",
            Self::String => "a string",
        }
    }

    /// Whether JSON text is of this kind.
    fn holds(self, json: &str) -> bool {
        let first = json.as_bytes().first();
        match self {
            Self::Null => json == "null",
            Self::Boolean => json == "true" || json == "false",
            Self::Integer => is_number(json) && whole(json),
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
fn whole(json: &str) -> bool {
    let (digits, fraction) = json.split_once('.').unwrap_or((json, "0"));
    let plain = |text: &str| !text.contains(['e', 'E']);
    plain(digits) && plain(fraction) && fraction.bytes().all(|digit| digit == b'0')
}

impl Expected {
    fn collect(&mut self, root: &Value, schema: &Value, depth: usize) {
        if depth == 0 {
            return;
        }
        if let Some(target) = reference(root, schema) {
            self.collect(root, target, depth - 1);
        }
        let fixed = schema.get("const").map(std::slice::from_ref);
        let listed = schema.get("enum").and_then(Value::as_array).map(Vec::as_slice);
        if let Some(values) = fixed.or(listed) {
            self.literals.extend_from_slice(values);
        } else {
            self.collect_kinds(schema);
        }
        if let Some(items) = schema.get("items") {
            let mut item = self.items.take().unwrap_or_default();
            item.collect(root, items, depth - 1);
            self.items = Some(item);
        }
        for part in ["allOf", "anyOf", "oneOf"].iter().filter_map(|word| schema.get(word)) {
            for branch in part.as_array().into_iter().flatten() {
                self.collect(root, branch, depth - 1);
            }
        }
    }

    fn collect_kinds(&mut self, schema: &Value) {
        let names: Vec<&str> = match schema.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            Some(_) => Vec::new(),
            None if schema.get("properties").is_some() => vec!["object"],
            None if schema.get("items").is_some() => vec!["array"],
            None => Vec::new(),
        };
        self.kinds.extend(names.into_iter().filter_map(Kind::named));
        self.kinds.sort_unstable();
        self.kinds.dedup();
    }

    /// What each item must be, where an array is taken.
    pub(super) fn items(&self) -> Option<&Self> {
        const ANYTHING: &Expected =
            &Expected { kinds: Vec::new(), literals: Vec::new(), items: None };
        let array = self.kinds.contains(&Kind::Array);
        array.then(|| self.items.as_deref().unwrap_or(ANYTHING))
    }

    /// Reads typed text as the narrowest thing it may be.
    ///
    /// Where only a string is taken, the text is that string whatever it looks like. Where a
    /// string is one of several, a quoted JSON string says that a string is meant.
    pub(super) fn read(&self, text: &str) -> Option<Box<RawValue>> {
        let json: Option<&RawValue> = serde_json::from_str(text).ok();
        let string = || serde_json::value::to_raw_value(text).ok();
        if let Some(literal) = self.literals.iter().find(|literal| names(literal, text)) {
            return serde_json::value::to_raw_value(literal).ok();
        }
        if self.kinds == [Kind::String] {
            return string();
        }
        let fits = |json: &&RawValue| self.kinds.iter().any(|kind| kind.holds(json.get()));
        let anything = self.kinds.is_empty() && self.literals.is_empty();
        match json.filter(|json| anything || fits(json)) {
            Some(json) => Some(json.to_owned()),
            None if anything || self.kinds.contains(&Kind::String) => string(),
            None => None,
        }
    }
}

/// Whether typed text names a fixed value: a string by its own text, anything else as JSON.
fn names(literal: &Value, text: &str) -> bool {
    match literal {
        Value::String(string) => string == text,
        other => serde_json::from_str::<Value>(text).is_ok_and(|value| value == *other),
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let literals = self.literals.iter().map(|literal| match literal {
            Value::String(string) => format!("`{string}`"),
            other => format!("`{other}`"),
        });
        let kinds = self.kinds.iter().map(|kind| kind.words().to_owned());
        let all: Vec<String> = literals.chain(kinds).collect();
        f.write_str(&all.join(" or "))
    }
}
