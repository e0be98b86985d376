//! A checker for what each provider takes of JSON Schema, written from the providers' pages.
//!
//! It reads nothing of the fitter. Sources, by provider:
//!
//! - OpenAI, «Structured model outputs: supported schemas» and the description of function names:
//!   closed objects with every property required, no `oneOf` or `default`, `$ref` to `#` or `$defs`
//!   and alone, no look-around in a pattern, nine formats, typed items, a root that is no union, ten
//!   levels, 5,000 properties. Bounds of numbers and lists are taken there.
//! - Anthropic, «Structured outputs: JSON Schema limitations» and the schema transformation of its
//!   SDK: `type`, `enum`, `anyOf`, ten formats; bounds stand in the description; twenty strict tools,
//!   24 optional and 16 union parameters in a request; no recursion.
//! - Gemini, «Function calling: function declarations» with `parametersJsonSchema`: no `const`,
//!   `title`, `examples`, `discriminator`, exclusive bound or string format, no reference, no
//!   `oneOf`, no `additionalProperties`; names of parameters begin with a letter or `_` and have 64
//!   characters at most.
//! - Ollama, «Chat request: tools», which has OpenAI's shape and names no schema keywords: the
//!   smallest set that describes parameters.
//! - The others are JSON Schema 2020-12, judged by its own meta-schema.

use std::collections::BTreeSet;

use innkeeper_toolcall::Dialect;
use serde_json::{Map, Value};

const OPENAI_FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// What is wrong with a schema for a provider. A strict dialect is judged as strict.
pub(crate) fn problems(schema: &Value, dialect: Dialect) -> Vec<String> {
    let mut check =
        Check { root: schema, dialect, problems: Vec::new(), counts: Counts::default() };
    check.root();
    match dialect {
        Dialect::OpenAi | Dialect::Anthropic | Dialect::JsonSchema => check.full(),
        Dialect::OpenAiStrict | Dialect::AnthropicStrict | Dialect::Gemini | Dialect::Ollama => {
            check.node(schema, "", 1);
            for (name, part) in schema["$defs"].as_object().into_iter().flatten() {
                check.node(part, &format!("/$defs/{name}"), 1);
            }
            check.limits();
        }
    }
    check.problems
}

/// What a schema takes of the limits of a whole request.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) properties: usize,
    pub(crate) optional: usize,
    pub(crate) unions: usize,
}

/// Counts for Anthropic's limits per request.
pub(crate) fn counts(schema: &Value) -> Counts {
    let dialect = Dialect::AnthropicStrict;
    let mut check =
        Check { root: schema, dialect, problems: Vec::new(), counts: Counts::default() };
    check.node(schema, "", 1);
    check.counts
}

struct Check<'a> {
    root: &'a Value,
    dialect: Dialect,
    problems: Vec<String>,
    counts: Counts,
}

impl Check<'_> {
    fn say(&mut self, at: &str, what: impl std::fmt::Display) {
        self.problems.push(format!("#{at}: {what}"));
    }

    fn root(&mut self) {
        if self.root["type"] != "object" || !self.root["properties"].is_object() {
            self.say("", "the root is no object with properties");
        }
        for key in ["anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "$ref"] {
            if self.root.get(key).is_some() {
                self.say("", format_args!("`{key}` at the root"));
            }
        }
    }

    fn full(&mut self) {
        if !jsonschema::meta::is_valid(self.root) {
            let root = self.root;
            self.say("", format_args!("no JSON Schema: {root}"));
        }
        let mut found = Vec::new();
        references(self.root, &mut found);
        for reference in found {
            if self.dialect == Dialect::JsonSchema || !self.leads_somewhere(&reference) {
                self.say("", format_args!("`$ref` to `{reference}`"));
            }
        }
    }

    fn leads_somewhere(&self, reference: &str) -> bool {
        let name = reference.strip_prefix("#/$defs/");
        reference == "#" || name.is_some_and(|name| self.root["$defs"].get(name).is_some())
    }

    fn strict(&self) -> bool {
        matches!(self.dialect, Dialect::OpenAiStrict | Dialect::AnthropicStrict)
    }

    fn allowed(&self, key: &str) -> bool {
        let common = ["type", "description", "enum", "properties", "required", "items", "anyOf"];
        let more: &[&str] = match self.dialect {
            Dialect::OpenAiStrict => &[
                "additionalProperties",
                "$ref",
                "$defs",
                "pattern",
                "format",
                "minimum",
                "maximum",
                "exclusiveMinimum",
                "exclusiveMaximum",
                "multipleOf",
                "minItems",
                "maxItems",
            ],
            Dialect::AnthropicStrict => &["additionalProperties", "format"],
            Dialect::Gemini => &["minimum", "maximum", "minItems", "maxItems"],
            Dialect::Ollama | Dialect::OpenAi | Dialect::Anthropic | Dialect::JsonSchema => &[],
        };
        common.contains(&key) || more.contains(&key)
    }

    fn node(&mut self, node: &Value, at: &str, level: usize) {
        let Some(map) = node.as_object() else { return self.say(at, "no object") };
        for key in map.keys() {
            if !self.allowed(key) {
                self.say(at, format_args!("`{key}` is not taken"));
            }
        }
        if self.dialect == Dialect::OpenAiStrict && level > 10 {
            self.say(at, "deeper than ten levels");
        }
        if let Some(reference) = map.get("$ref") {
            let leads = reference.as_str().is_some_and(|it| self.leads_somewhere(it));
            if map.len() > 1 || !leads {
                self.say(at, "a reference that is not alone or leads nowhere");
            }
            return;
        }
        if map.get("description").is_some_and(|it| !it.is_string()) {
            self.say(at, "a description that is no text");
        }
        let union = map.get("anyOf");
        if let Some(union) = union {
            let branches = union.as_array().map(Vec::as_slice).unwrap_or_default();
            if branches.is_empty() {
                self.say(at, "an empty union");
            }
            if self.strict() && map.keys().any(|key| key != "anyOf" && key != "description") {
                self.say(at, "something beside a union");
            }
            for (nth, branch) in branches.iter().enumerate() {
                self.node(branch, &format!("{at}/anyOf/{nth}"), level);
            }
        }
        let types = self.types(map, at);
        if self.strict() && union.is_none() && types.is_empty() {
            self.say(at, "no type");
        }
        self.values(map, at);
        self.members(map, &types, at, level);
        if let Some(items) = map.get("items") {
            self.node(items, &format!("{at}/items"), level + 1);
        } else if self.strict() && types.contains("array") {
            self.say(at, "a list whose items have no type");
        }
    }

    fn types(&mut self, map: &Map<String, Value>, at: &str) -> BTreeSet<String> {
        let Some(said) = map.get("type") else { return BTreeSet::new() };
        let list = said.as_array().cloned().unwrap_or_else(|| vec![said.clone()]);
        let names: BTreeSet<String> =
            list.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let known = ["string", "number", "integer", "boolean", "object", "array", "null"];
        if names.len() != list.len()
            || names.is_empty()
            || names.iter().any(|name| !known.contains(&name.as_str()))
        {
            self.say(at, format_args!("type {said}"));
        }
        names
    }

    /// `enum`, `format`, `pattern` and the bounds.
    fn values(&mut self, map: &Map<String, Value>, at: &str) {
        if let Some(choices) = map.get("enum") {
            let choices = choices.as_array().map(Vec::as_slice).unwrap_or_default();
            let simple = choices.iter().all(|it| it.is_string() || it.is_number());
            if choices.is_empty() || self.dialect == Dialect::Gemini && !simple {
                self.say(at, format_args!("enum {choices:?}"));
            }
        }
        if let Some(format) = map.get("format") {
            let name = format.as_str().unwrap_or_default();
            let uri = self.dialect == Dialect::AnthropicStrict && name == "uri";
            if !OPENAI_FORMATS.contains(&name) && !uri {
                self.say(at, format_args!("format {format}"));
            }
        }
        if let Some(pattern) = map.get("pattern") {
            let text = pattern.as_str().unwrap_or("(?=");
            if ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|look| text.contains(look)) {
                self.say(at, format_args!("pattern {pattern}"));
            }
        }
        for key in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"] {
            if map.get(key).is_some_and(|it| !it.is_number()) {
                self.say(at, format_args!("`{key}` is no number"));
            }
        }
        for key in ["minItems", "maxItems"] {
            if map.get(key).is_some_and(|it| !it.is_u64()) {
                self.say(at, format_args!("`{key}` is no count"));
            }
        }
    }

    fn members(
        &mut self,
        map: &Map<String, Value>,
        types: &BTreeSet<String>,
        at: &str,
        level: usize,
    ) {
        let empty = Map::new();
        let properties = match map.get("properties") {
            None => &empty,
            Some(all) => match all.as_object() {
                Some(all) => all,
                None => return self.say(at, "properties that are no object"),
            },
        };
        let required = map.get("required").and_then(Value::as_array);
        let required: BTreeSet<&str> =
            required.into_iter().flatten().filter_map(Value::as_str).collect();
        let names: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
        if !required.is_subset(&names) {
            self.say(at, "required members that are no properties");
        }
        if self.dialect == Dialect::OpenAiStrict && required != names {
            self.say(at, "properties that are not required");
        }
        if self.strict()
            && types.contains("object")
            && map.get("additionalProperties") != Some(&Value::Bool(false))
        {
            self.say(at, "an object that is not closed");
        }
        self.counts.properties += names.len();
        self.counts.optional += names.len() - required.len().min(names.len());
        for (name, inside) in properties {
            let several = inside["type"].as_array().is_some_and(|types| types.len() > 1);
            self.counts.unions += usize::from(several || inside.get("anyOf").is_some());
            if self.dialect == Dialect::Gemini && !is_parameter(name) {
                self.say(at, format_args!("a parameter named `{name}`"));
            }
            self.node(inside, &format!("{at}/properties/{name}"), level + 1);
        }
    }

    fn limits(&mut self) {
        let Counts { properties, optional, unions } = self.counts;
        match self.dialect {
            Dialect::OpenAiStrict if properties > 5000 => self.say("", "too many properties"),
            Dialect::AnthropicStrict if optional > 24 || unions > 16 => {
                self.say("", format_args!("{optional} optional, {unions} unions"));
            }
            Dialect::OpenAiStrict
            | Dialect::AnthropicStrict
            | Dialect::OpenAi
            | Dialect::Anthropic
            | Dialect::Gemini
            | Dialect::Ollama
            | Dialect::JsonSchema => {}
        }
    }
}

fn is_parameter(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|it| it.is_ascii_alphabetic() || it == b'_')
        && bytes.all(|it| it.is_ascii_alphanumeric() || it == b'_')
        && name.len() <= 64
}

/// Every `$ref` that stands where a schema can be.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, inside) in map {
                match (key.as_str(), inside.as_str()) {
                    ("$ref", Some(text)) => found.push(text.to_owned()),
                    ("enum" | "const" | "default" | "examples", _) => {}
                    _ => references(inside, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn the_checker_refuses_what_each_provider_refuses() {
    let property = |inside: Value| serde_json::json!({"type": "object", "properties": {"a": inside}, "required": ["a"], "additionalProperties": false});
    let cases = [
        (serde_json::json!({"type": "string", "minLength": 1}), "OAGL"),
        (serde_json::json!({"type": "string", "format": "uri"}), "OGL"),
        (serde_json::json!({"type": "object", "properties": {}}), "OA"),
        (serde_json::json!({"type": "array"}), "OA"),
        (serde_json::json!({}), "OA"),
        (serde_json::json!({"type": "string", "pattern": "(?=x)"}), "OAGL"),
        (serde_json::json!({"type": "integer", "minimum": 1}), "AL"),
        (serde_json::json!({"type": "boolean", "enum": [true]}), "G"),
        (serde_json::json!({"type": "dict"}), "OAGL"),
        (serde_json::json!({"anyOf": []}), "OAGL"),
        (serde_json::json!({"$ref": "#/$defs/none"}), "OAGL"),
    ];
    for (inside, refusing) in cases {
        for (dialect, letter) in [
            (Dialect::OpenAiStrict, 'O'),
            (Dialect::AnthropicStrict, 'A'),
            (Dialect::Gemini, 'G'),
            (Dialect::Ollama, 'L'),
        ] {
            let mut schema = property(inside.clone());
            if letter == 'G' || letter == 'L' {
                schema.as_object_mut().unwrap().remove("additionalProperties");
            }
            let found = problems(&schema, dialect);
            assert_eq!(
                !found.is_empty(),
                refusing.contains(letter),
                "{dialect:?} {inside} {found:?}"
            );
        }
    }
}
