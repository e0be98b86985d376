//! All tools as one JSON Schema: a call is any of them, its name first.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::reference::{deeper, pointer};
use super::weight::weight;
use super::{ANNOTATIONS, DEPTH, Effect, Loss, REPEATS, VALUES};
use crate::{Tool, Tools};

/// Formats that the grammars behind such schemas hold.
const FORMATS: &[&str] = &["date", "time", "date-time", "uuid"];

/// Keywords that count, and cannot count far in a grammar.
const COUNTS: &[&str] = &["minLength", "maxLength", "minItems", "maxItems"];

/// Keywords with a schema for each name.
const NAMED: &[&str] = &["properties"];

/// Keywords with a list of schemas.
const LISTED: &[&str] = &["anyOf", "oneOf", "allOf", "prefixItems"];

/// Keywords with one schema.
const SINGLE: &[&str] = &["items", "additionalProperties"];

/// Keywords that are taken as they are.
const PLAIN: &[&str] = &["type", "required", "enum", "const"];

/// Keywords that the grammars behind such schemas hold for whole numbers alone.
const BOUNDS: &[&str] = &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];

/// How a union is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The most characters of a string whose schema sets no limit, so that a weak model cannot run
    /// away inside one; at most [`REPEATS`]. `None`: no limit. Default: 1,000.
    pub string_limit: Option<u64>,
    /// Whether `{"answer": text}` is allowed instead of a call. Default: no, since weak models then
    /// mostly duck the call; decide first whether one is wanted.
    pub answer: bool,
    /// What the name and the arguments are called; a prompt with an example should call them the same.
    /// Default: `name` and `arguments`.
    pub keys: (&'static str, &'static str),
}

impl Default for Options {
    fn default() -> Self {
        Self { string_limit: Some(REPEATS), answer: false, keys: ("name", "arguments") }
    }
}

/// A schema of calls, and what it does not hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Union {
    /// For Ollama's `format` or `response_format.json_schema.schema`.
    pub schema: Value,
    /// What the arguments still have to be checked for.
    pub losses: Vec<Loss>,
}

/// The schema of `{"name": …, "arguments": …}` for these tools, for servers that turn a schema into
/// a grammar; none without tools, as there is nothing to allow.
///
/// Only what llama.cpp's and Ollama's converters take goes in. Left out and reported: `pattern`,
/// `not`, conditions, dependencies, `contains`, `uniqueItems`, `multipleOf`, `patternProperties`,
/// `propertyNames`, counts of properties, formats but `date`, `time`, `date-time` and `uuid`, counts
/// above [`REPEATS`], bounds of numbers that are not `integer`, references out of the schema,
/// `additionalProperties` beside names with other than letters, digits and underscores, and all keywords not known here. Left out
/// without a word: descriptions and other annotations, which belong into the prompt. Schemas that
/// are referred to move under the `$defs` of the whole.
pub fn union(tools: &Tools, options: Options) -> Option<Union> {
    if tools.is_empty() {
        return None;
    }
    let mut losses = Vec::new();
    let mut definitions = Map::new();
    let mut calls = Vec::new();
    let (name, members) = options.keys;
    for (at, tool) in tools.iter().enumerate() {
        let mut cleaner = Cleaner {
            tool,
            at,
            options,
            losses: &mut losses,
            definitions: &mut definitions,
            moved: HashMap::new(),
        };
        let arguments = cleaner.arguments();
        calls.push(json!({
            "type": "object",
            "properties": {name: {"const": tool.name}, members: arguments},
            "required": [name, members],
            "additionalProperties": false,
        }));
    }
    if options.answer {
        let mut text = json!({"type": "string"});
        if let Some(limit) = options.string_limit {
            text["maxLength"] = limit.min(REPEATS).into();
        }
        calls.push(json!({
            "type": "object",
            "properties": {"answer": text},
            "required": ["answer"],
            "additionalProperties": false,
        }));
    }
    let mut schema = json!({"anyOf": calls});
    if !definitions.is_empty() {
        schema["$defs"] = Value::Object(definitions);
    }
    Some(Union { schema, losses })
}

/// Cleans the schema of one tool.
struct Cleaner<'a> {
    tool: &'a Tool,
    at: usize,
    options: Options,
    losses: &'a mut Vec<Loss>,
    definitions: &'a mut Map<String, Value>,
    /// Where schemas that are referred to went, by their pointers.
    moved: HashMap<String, String>,
}

impl Cleaner<'_> {
    fn arguments(&mut self) -> Value {
        let schema = &self.tool.input_schema;
        if weight(schema) > VALUES {
            self.lose("", super::TOO_MUCH, Effect::Dropped);
            return json!({"type": "object", "additionalProperties": true});
        }
        let mut cleaned = self.schema(schema, "", DEPTH);
        let made = ["$ref", "anyOf", "oneOf", "allOf", "enum", "const"];
        match cleaned.as_object_mut() {
            Some(keywords) if made.iter().any(|it| keywords.contains_key(*it)) => cleaned,
            Some(keywords) => {
                if keywords
                    .insert("type".to_owned(), "object".into())
                    .is_some_and(|it| it != "object")
                {
                    self.lose("", "type", Effect::Narrowed);
                }
                // Without it, some converters let any JSON through.
                if !keywords.contains_key("properties")
                    && !keywords.contains_key("additionalProperties")
                {
                    keywords.insert("properties".to_owned(), json!({}));
                }
                cleaned
            }
            None => json!({"type": "object", "properties": {}}),
        }
    }

    fn schema(&mut self, schema: &Value, at: &str, depth: usize) -> Value {
        let keywords = match schema {
            Value::Object(keywords) => keywords,
            Value::Bool(true) => return json!({}),
            other => {
                self.lose(at, &other.to_string(), Effect::Dropped);
                return json!({});
            }
        };
        if depth == 0 {
            self.lose(at, super::TOO_MUCH, Effect::Dropped);
            return json!({});
        }
        let mut kept = Map::new();
        let is_whole = keywords.get("type").is_some_and(|of| of == "integer");
        for (keyword, value) in keywords {
            if is_whole && BOUNDS.contains(&keyword.as_str()) && value.is_i64() {
                kept.insert(keyword.clone(), value.clone());
            } else if let Some(value) = self.keyword(keyword, value, at, depth - 1) {
                kept.insert(keyword.clone(), value);
            }
        }
        self.close(&mut kept, at);
        self.cap(&mut kept);
        Value::Object(kept)
    }

    /// What a keyword becomes; none if it goes.
    fn keyword(&mut self, keyword: &str, value: &Value, at: &str, depth: usize) -> Option<Value> {
        let below = deeper(at, keyword);
        match value {
            _ if ANNOTATIONS.contains(&keyword) => None,
            _ if PLAIN.contains(&keyword) => Some(value.clone()),
            Value::Object(named) if NAMED.contains(&keyword) => {
                let each = named.iter().map(|(name, schema)| {
                    (name.clone(), self.schema(schema, &deeper(&below, name), depth))
                });
                Some(Value::Object(each.collect()))
            }
            Value::Array(listed) if LISTED.contains(&keyword) => {
                let each = listed.iter().enumerate().map(|(place, schema)| {
                    self.schema(schema, &deeper(&below, &place.to_string()), depth)
                });
                Some(each.collect())
            }
            Value::Bool(_) if SINGLE.contains(&keyword) => Some(value.clone()),
            Value::Object(_) if SINGLE.contains(&keyword) => {
                Some(self.schema(value, &below, depth))
            }
            Value::String(reference) if keyword == "$ref" => self.reference(reference, at, depth),
            Value::String(format) if keyword == "format" && FORMATS.contains(&format.as_str()) => {
                Some(value.clone())
            }
            Value::Number(count)
                if COUNTS.contains(&keyword) && count.as_u64() <= Some(REPEATS) =>
            {
                count.as_u64().map(Value::from)
            }
            _ => {
                self.lose(at, keyword, Effect::Dropped);
                None
            }
        }
    }

    /// A reference to where the schema moved, moving it at the first one.
    fn reference(&mut self, reference: &str, at: &str, depth: usize) -> Option<Value> {
        let tool = self.tool;
        let found = pointer(reference).and_then(|it| Some((it, tool.input_schema.pointer(it)?)));
        let Some((pointer, target)) = found else {
            self.lose(at, "$ref", Effect::Dropped);
            return None;
        };
        if !self.moved.contains_key(pointer) {
            let name = format!("tool{}-{}", self.at, self.moved.len());
            self.moved.insert(pointer.to_owned(), name.clone());
            // Its place is kept, so that the order is that of the first references.
            self.definitions.insert(name.clone(), json!({}));
            let cleaned = self.schema(target, pointer, depth);
            self.definitions.insert(name, cleaned);
        }
        Some(format!("#/$defs/{}", self.moved[pointer]).into())
    }

    /// Allows no others beside names that llama.cpp's converter cannot tell others from: it does not
    /// escape them in the grammar it makes, which its own server then refuses.
    fn close(&mut self, schema: &mut Map<String, Value>, at: &str) {
        let usual = |name: &String| name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_');
        let names = schema.get("properties").and_then(Value::as_object);
        let open = schema.get("additionalProperties").is_some_and(|it| *it != Value::Bool(false));
        if open && names.is_some_and(|it| !it.keys().all(usual)) {
            schema.insert("additionalProperties".to_owned(), false.into());
            self.lose(at, "additionalProperties", Effect::Narrowed);
        }
    }

    /// Gives a string the limit that its schema does not set.
    fn cap(&self, schema: &mut Map<String, Value>) {
        let Some(limit) = self.options.string_limit else { return };
        let is_string = match schema.get("type") {
            Some(Value::Array(types)) => types.iter().any(|of| of == "string"),
            Some(of) => of == "string",
            None => false,
        };
        let bound = ["maxLength", "enum", "const", "format"];
        if is_string && !bound.iter().any(|keyword| schema.contains_key(*keyword)) {
            let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0);
            schema.insert("maxLength".to_owned(), limit.min(REPEATS).max(least).into());
        }
    }

    fn lose(&mut self, pointer: &str, keyword: &str, effect: Effect) {
        let loss = Loss {
            tool: self.tool.name.clone(),
            pointer: pointer.to_owned(),
            keyword: keyword.to_owned(),
            effect,
        };
        if !self.losses.contains(&loss) {
            self.losses.push(loss);
        }
    }
}

#[cfg(test)]
mod tests;
