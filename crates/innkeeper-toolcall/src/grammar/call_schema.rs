//! JSON Schema of a call of any tool.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::reference::{join_pointer, local_pointer};
use super::value_count::count_values;
use super::{
    ANNOTATIONS, GrammarLoss, GrammarLossKind, MAX_REPEATS, MAX_SCHEMA_DEPTH, MAX_SCHEMA_VALUES,
};
use crate::{Tool, Tools};

/// Formats that servers enforce.
const SUPPORTED_FORMATS: &[&str] = &["date", "time", "date-time", "uuid"];

/// Keywords with counts, which grammars can enforce only up to a limit.
const COUNT_KEYWORDS: &[&str] = &["minLength", "maxLength", "minItems", "maxItems"];

/// Keywords with one schema per name.
const NAMED_SCHEMA_KEYWORDS: &[&str] = &["properties"];

const SCHEMA_LIST_KEYWORDS: &[&str] = &["anyOf", "oneOf", "allOf", "prefixItems"];

const SINGLE_SCHEMA_KEYWORDS: &[&str] = &["items", "additionalProperties"];

/// Keywords that are copied unchanged.
const COPIED_KEYWORDS: &[&str] = &["type", "required", "enum", "const"];

/// Keywords that servers enforce only for integers.
const BOUND_KEYWORDS: &[&str] = &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];

/// Options of [`call_schema()`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallSchemaOptions {
    /// Maximum number of characters of a string without `maxLength`, so that a weak model cannot
    /// write an endless string; at most [`MAX_REPEATS`]. `None`: no limit. Default: 1,000.
    pub string_limit: Option<u64>,
    /// Whether the schema also allows `{"answer": text}` instead of a call. Default: `false`,
    /// because weak models then mostly avoid the call; decide first whether a call is needed.
    pub allow_answer: bool,
    /// Keys of the name and of the arguments. Use the same keys in a prompt with an example.
    /// Default: `name` and `arguments`.
    pub keys: (&'static str, &'static str),
}

impl Default for CallSchemaOptions {
    fn default() -> Self {
        Self { string_limit: Some(MAX_REPEATS), allow_answer: false, keys: ("name", "arguments") }
    }
}

/// A schema of calls, and the keywords that the schema does not enforce.
#[derive(Debug, Clone, PartialEq)]
pub struct CallSchema {
    /// The schema, for Ollama's `format` or `response_format.json_schema.schema`.
    pub schema: Value,
    /// Keywords that the schema does not enforce.
    pub losses: Vec<GrammarLoss>,
}

/// Returns the schema of `{"name": …, "arguments": …}` for these tools, for servers that convert a
/// schema to a grammar. `None` without tools, because no call is possible.
///
/// The schema contains only keywords that the converters of llama.cpp and Ollama support. Removed
/// and reported: `pattern`, `not`, conditions, dependencies, `contains`, `uniqueItems`,
/// `multipleOf`, `patternProperties`, `propertyNames`, counts of properties, formats except `date`,
/// `time`, `date-time` and `uuid`, counts above [`MAX_REPEATS`], bounds of numbers that are not
/// `integer`, references to other schemas, `additionalProperties` next to names with characters
/// other than letters, digits and underscores, and all unknown keywords. Removed without a report:
/// descriptions and other annotations, which belong in the prompt. Referenced schemas move to the
/// `$defs` of the root.
///
/// # Examples
///
/// ```
/// use innkeeper_toolcall::grammar::{CallSchemaOptions, call_schema};
/// use innkeeper_toolcall::{Tool, Tools};
/// use serde_json::json;
///
/// let schema = json!({"properties": {"path": {"type": "string", "pattern": "^[a-z]+$"}}});
/// let tools = Tools::from_iter([Tool::new("read", "Reads a file.", schema)]);
/// let calls = call_schema(&tools, CallSchemaOptions::default()).expect("a tool is available");
/// assert_eq!(calls.schema["anyOf"][0]["properties"]["name"], json!({"const": "read"}));
/// assert_eq!(calls.losses[0].keyword, "pattern");
/// ```
pub fn call_schema(tools: &Tools, options: CallSchemaOptions) -> Option<CallSchema> {
    if tools.is_empty() {
        return None;
    }
    let mut losses = Vec::new();
    let mut definitions = Map::new();
    let mut calls = Vec::new();
    let (name, members) = options.keys;
    for (tool_index, tool) in tools.iter().enumerate() {
        let mut cleaner = SchemaSanitizer {
            tool,
            tool_index,
            options,
            losses: &mut losses,
            definitions: &mut definitions,
            definition_names: HashMap::new(),
        };
        let arguments = cleaner.sanitize_arguments();
        calls.push(json!({
            "type": "object",
            "properties": {name: {"const": tool.name}, members: arguments},
            "required": [name, members],
            "additionalProperties": false,
        }));
    }
    if options.allow_answer {
        let mut text = json!({"type": "string"});
        if let Some(limit) = options.string_limit {
            text["maxLength"] = limit.min(MAX_REPEATS).into();
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
    Some(CallSchema { schema, losses })
}

struct SchemaSanitizer<'a> {
    tool: &'a Tool,
    tool_index: usize,
    options: CallSchemaOptions,
    losses: &'a mut Vec<GrammarLoss>,
    definitions: &'a mut Map<String, Value>,
    /// New definition names by the original pointers.
    definition_names: HashMap<String, String>,
}

impl SchemaSanitizer<'_> {
    fn sanitize_arguments(&mut self) -> Value {
        let schema = &self.tool.input_schema;
        if count_values(schema) > MAX_SCHEMA_VALUES {
            self.report_loss("", super::LIMIT_EXCEEDED, GrammarLossKind::Dropped);
            return json!({"type": "object", "additionalProperties": true});
        }
        let mut cleaned = self.sanitize_schema(schema, "", MAX_SCHEMA_DEPTH);
        let composing = ["$ref", "anyOf", "oneOf", "allOf", "enum", "const"];
        match cleaned.as_object_mut() {
            Some(keywords) if composing.iter().any(|keyword| keywords.contains_key(*keyword)) => {
                cleaned
            }
            Some(keywords) => {
                if keywords
                    .insert("type".to_owned(), "object".into())
                    .is_some_and(|type_name| type_name != "object")
                {
                    self.report_loss("", "type", GrammarLossKind::Narrowed);
                }
                // Without this type, some converters allow any JSON.
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

    fn sanitize_schema(&mut self, schema: &Value, at: &str, depth: usize) -> Value {
        let keywords = match schema {
            Value::Object(keywords) => keywords,
            Value::Bool(true) => return json!({}),
            other => {
                self.report_loss(at, &other.to_string(), GrammarLossKind::Dropped);
                return json!({});
            }
        };
        if depth == 0 {
            self.report_loss(at, super::LIMIT_EXCEEDED, GrammarLossKind::Dropped);
            return json!({});
        }
        let mut allowed = Map::new();
        let is_whole = keywords.get("type").is_some_and(|type_name| type_name == "integer");
        for (keyword, value) in keywords {
            if is_whole && BOUND_KEYWORDS.contains(&keyword.as_str()) && value.is_i64() {
                allowed.insert(keyword.clone(), value.clone());
            } else if let Some(value) = self.sanitize_keyword(keyword, value, at, depth - 1) {
                allowed.insert(keyword.clone(), value);
            }
        }
        self.close_object(&mut allowed, at);
        self.cap_string_length(&mut allowed);
        Value::Object(allowed)
    }

    /// Returns the sanitized keyword, or `None` if the keyword is removed.
    fn sanitize_keyword(
        &mut self,
        keyword: &str,
        value: &Value,
        at: &str,
        depth: usize,
    ) -> Option<Value> {
        let below = join_pointer(at, keyword);
        match value {
            _ if ANNOTATIONS.contains(&keyword) => None,
            _ if COPIED_KEYWORDS.contains(&keyword) => Some(value.clone()),
            Value::Object(schemas) if NAMED_SCHEMA_KEYWORDS.contains(&keyword) => {
                let each = schemas.iter().map(|(name, schema)| {
                    (name.clone(), self.sanitize_schema(schema, &join_pointer(&below, name), depth))
                });
                Some(Value::Object(each.collect()))
            }
            Value::Array(listed) if SCHEMA_LIST_KEYWORDS.contains(&keyword) => {
                let each = listed.iter().enumerate().map(|(index, schema)| {
                    self.sanitize_schema(schema, &join_pointer(&below, &index.to_string()), depth)
                });
                Some(each.collect())
            }
            Value::Bool(_) if SINGLE_SCHEMA_KEYWORDS.contains(&keyword) => Some(value.clone()),
            Value::Object(_) if SINGLE_SCHEMA_KEYWORDS.contains(&keyword) => {
                Some(self.sanitize_schema(value, &below, depth))
            }
            Value::String(reference) if keyword == "$ref" => {
                self.sanitize_reference(reference, at, depth)
            }
            Value::String(format)
                if keyword == "format" && SUPPORTED_FORMATS.contains(&format.as_str()) =>
            {
                Some(value.clone())
            }
            Value::Number(count)
                if COUNT_KEYWORDS.contains(&keyword) && count.as_u64() <= Some(MAX_REPEATS) =>
            {
                count.as_u64().map(Value::from)
            }
            _ => {
                self.report_loss(at, keyword, GrammarLossKind::Dropped);
                None
            }
        }
    }

    /// Returns a reference to the new location of the schema. Moves the schema on its first
    /// reference.
    fn sanitize_reference(&mut self, reference: &str, at: &str, depth: usize) -> Option<Value> {
        let tool = self.tool;
        let resolved = local_pointer(reference)
            .and_then(|candidate| Some((candidate, tool.input_schema.pointer(candidate)?)));
        let Some((pointer, target)) = resolved else {
            self.report_loss(at, "$ref", GrammarLossKind::Dropped);
            return None;
        };
        if !self.definition_names.contains_key(pointer) {
            let name = format!("tool{}-{}", self.tool_index, self.definition_names.len());
            self.definition_names.insert(pointer.to_owned(), name.clone());
            // The placeholder keeps the definitions in the order of their first references.
            self.definitions.insert(name.clone(), json!({}));
            let cleaned = self.sanitize_schema(target, pointer, depth);
            self.definitions.insert(name, cleaned);
        }
        Some(format!("#/$defs/{}", self.definition_names[pointer]).into())
    }

    /// Forbids additional properties if a property name has unusual characters: llama.cpp's
    /// converter does not escape such names in its grammar, and its server then rejects the
    /// grammar.
    fn close_object(&mut self, schema: &mut Map<String, Value>, at: &str) {
        let names = schema.get("properties").and_then(Value::as_object);
        let open = schema
            .get("additionalProperties")
            .is_some_and(|additional| *additional != Value::Bool(false));
        if open
            && names.is_some_and(|properties| {
                !properties.keys().all(|name| {
                    name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
                })
            })
        {
            schema.insert("additionalProperties".to_owned(), false.into());
            self.report_loss(at, "additionalProperties", GrammarLossKind::Narrowed);
        }
    }

    /// Adds a length limit to a string without `maxLength`.
    fn cap_string_length(&self, schema: &mut Map<String, Value>) {
        let Some(limit) = self.options.string_limit else { return };
        let is_string = match schema.get("type") {
            Some(Value::Array(types)) => types.iter().any(|type_name| type_name == "string"),
            Some(type_name) => type_name == "string",
            None => false,
        };
        let bound = ["maxLength", "enum", "const", "format"];
        if is_string && !bound.iter().any(|keyword| schema.contains_key(*keyword)) {
            let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0);
            schema.insert("maxLength".to_owned(), limit.min(MAX_REPEATS).max(least).into());
        }
    }

    fn report_loss(&mut self, pointer: &str, keyword: &str, kind: GrammarLossKind) {
        let loss = GrammarLoss {
            tool: self.tool.name.clone(),
            pointer: pointer.to_owned(),
            keyword: keyword.to_owned(),
            kind,
        };
        if !self.losses.contains(&loss) {
            self.losses.push(loss);
        }
    }
}

#[cfg(test)]
mod tests;
