//! Checker of the providers' JSON Schema dialects, written from the providers' documentation.
//!
//! The checker shares no code with the schema lowering. Sources, by provider:
//!
//! - OpenAI, «Structured model outputs: supported schemas» and the description of function names:
//!   closed objects with every property required, no `oneOf` or `default`, `$ref` only to `#` or
//!   `$defs` and without siblings, no look-around in a pattern, nine formats, typed items, a root
//!   that is not a union, ten levels, 5,000 properties, 1,000 values of `enum`, 15,000 characters in
//!   a list of more than 250, 120,000 characters of names and values. Bounds of numbers and lists are
//!   supported. Without `strict`, an array needs `items` (its error for `array schema missing items`).
//! - Anthropic, «Structured outputs: JSON Schema limitations» and the schema transformation of its
//!   SDK: `type`, `enum`, `anyOf`, ten formats; bounds are in the description; twenty strict tools,
//!   24 optional and 16 union parameters in a request; no recursion. Its error for property keys has
//!   the pattern `^[a-zA-Z0-9_.-]{1,64}$`.
//! - Gemini, «Function calling: function declarations» with `parametersJsonSchema`: no `const`,
//!   `title`, `examples`, `discriminator`, exclusive bound or string format, no reference, no
//!   `oneOf`, no `additionalProperties`; names of parameters start with a letter or `_` and have at
//!   most 64 characters. Its errors reject an array without `items` and an empty value of `enum`.
//! - Ollama, «Chat request: tools», which has OpenAI's form and documents no schema keywords: the
//!   smallest set that describes parameters.
//! - The others are JSON Schema 2020-12, checked with its own meta-schema.

use std::collections::BTreeSet;

use innkeeper_toolcall::Dialect;
use serde_json::{Map, Value};

const OPENAI_FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// Problems of a schema for a provider. A strict dialect is checked as strict.
pub(crate) fn problems(schema: &Value, dialect: Dialect) -> Vec<String> {
    let mut check = SchemaChecker {
        root: schema,
        dialect,
        problems: Vec::new(),
        counts: SchemaCounts::default(),
    };
    check.check_root();
    match dialect {
        Dialect::OpenAi | Dialect::Anthropic | Dialect::JsonSchema => check.check_full(),
        Dialect::OpenAiStrict | Dialect::AnthropicStrict | Dialect::Gemini | Dialect::Ollama => {
            check.check_node(schema, "", 1);
            for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
                check.check_node(definition, &format!("/$defs/{name}"), 1);
            }
            check.check_limits();
        }
    }
    check.problems
}

/// The share of a request's limits that a schema uses.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct SchemaCounts {
    pub(crate) properties: usize,
    pub(crate) optional: usize,
    pub(crate) unions: usize,
    /// Number of values in all `enum` lists.
    pub(crate) choices: usize,
    /// Number of characters of all names and values.
    pub(crate) chars: usize,
}

/// Counts for Anthropic's limits per request.
pub(crate) fn count_schema(schema: &Value) -> SchemaCounts {
    let dialect = Dialect::AnthropicStrict;
    let mut check = SchemaChecker {
        root: schema,
        dialect,
        problems: Vec::new(),
        counts: SchemaCounts::default(),
    };
    check.check_node(schema, "", 1);
    check.counts
}

struct SchemaChecker<'a> {
    root: &'a Value,
    dialect: Dialect,
    problems: Vec<String>,
    counts: SchemaCounts,
}

impl SchemaChecker<'_> {
    fn report(&mut self, at: &str, problem: impl std::fmt::Display) {
        self.problems.push(format!("#{at}: {problem}"));
    }

    fn check_root(&mut self) {
        if self.root["type"] != "object" || !self.root["properties"].is_object() {
            self.report("", "the root is no object with properties");
        }
        for key in ["anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "$ref"] {
            if self.root.get(key).is_some() {
                self.report("", format_args!("`{key}` at the root"));
            }
        }
    }

    fn check_full(&mut self) {
        if !jsonschema::meta::is_valid(self.root) {
            let root = self.root;
            self.report("", format_args!("no JSON Schema: {root}"));
        }
        let mut references = Vec::new();
        collect_references(self.root, &mut references);
        for reference in references {
            if self.dialect == Dialect::JsonSchema || !self.is_resolvable(&reference) {
                self.report("", format_args!("`$ref` to `{reference}`"));
            }
        }
        self.check_positions(self.root, "");
    }

    /// Checks what a provider of full JSON Schema rejects at any position of a schema.
    fn check_positions(&mut self, node: &Value, at: &str) {
        let Some(map) = node.as_object() else { return };
        let is_array = map.get("type").is_some_and(|kind| {
            kind == "array" || kind.as_array().is_some_and(|kinds| kinds.contains(&"array".into()))
        });
        if self.dialect == Dialect::OpenAi && is_array && !map.contains_key("items") {
            self.report(at, "an array without items");
        }
        for (key, inside) in map {
            let at = format!("{at}/{key}");
            match key.as_str() {
                "properties" | "patternProperties" | "dependentSchemas" | "$defs" => {
                    for (name, inside) in inside.as_object().into_iter().flatten() {
                        if key == "properties" {
                            self.check_key(name, &at);
                        }
                        self.check_positions(inside, &format!("{at}/{name}"));
                    }
                }
                "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                    for (nth, inside) in inside.as_array().into_iter().flatten().enumerate() {
                        self.check_positions(inside, &format!("{at}/{nth}"));
                    }
                }
                "items"
                | "additionalProperties"
                | "not"
                | "if"
                | "then"
                | "else"
                | "contains"
                | "propertyNames"
                | "unevaluatedProperties"
                | "unevaluatedItems" => {
                    self.check_positions(inside, &at);
                }
                _ => {}
            }
        }
    }

    /// Checks a key of `properties`.
    fn check_key(&mut self, name: &str, at: &str) {
        let is_taken = match self.dialect {
            Dialect::Anthropic | Dialect::AnthropicStrict => {
                let is_allowed = |letter: u8| {
                    letter.is_ascii_alphanumeric() || matches!(letter, b'_' | b'.' | b'-')
                };
                (1..=64).contains(&name.len()) && name.bytes().all(is_allowed)
            }
            Dialect::Gemini => is_parameter_name(name),
            Dialect::OpenAi | Dialect::OpenAiStrict | Dialect::Ollama | Dialect::JsonSchema => true,
        };
        if !is_taken {
            self.report(at, format_args!("a parameter named `{name}`"));
        }
    }

    fn is_resolvable(&self, reference: &str) -> bool {
        let name = reference.strip_prefix("#/$defs/");
        reference == "#" || name.is_some_and(|name| self.root["$defs"].get(name).is_some())
    }

    fn is_strict(&self) -> bool {
        matches!(self.dialect, Dialect::OpenAiStrict | Dialect::AnthropicStrict)
    }

    fn allows_keyword(&self, key: &str) -> bool {
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

    fn check_node(&mut self, node: &Value, at: &str, level: usize) {
        let Some(map) = node.as_object() else { return self.report(at, "no object") };
        for key in map.keys() {
            if !self.allows_keyword(key) {
                self.report(at, format_args!("`{key}` is not taken"));
            }
        }
        if self.dialect == Dialect::OpenAiStrict && level > 10 {
            self.report(at, "deeper than ten levels");
        }
        if let Some(reference) = map.get("$ref") {
            let leads = reference.as_str().is_some_and(|target| self.is_resolvable(target));
            if map.len() > 1 || !leads {
                self.report(at, "a reference that is not alone or leads nowhere");
            }
            return;
        }
        if map.get("description").is_some_and(|description| !description.is_string()) {
            self.report(at, "a description that is no text");
        }
        let union = map.get("anyOf");
        if let Some(union) = union {
            let branches = union.as_array().map(Vec::as_slice).unwrap_or_default();
            if branches.is_empty() {
                self.report(at, "an empty union");
            }
            if self.is_strict() && map.keys().any(|key| key != "anyOf" && key != "description") {
                self.report(at, "something beside a union");
            }
            for (nth, branch) in branches.iter().enumerate() {
                self.check_node(branch, &format!("{at}/anyOf/{nth}"), level);
            }
        }
        let types = self.check_types(map, at);
        if self.is_strict() && union.is_none() && types.is_empty() {
            self.report(at, "no type");
        }
        self.check_values(map, at);
        self.check_members(map, &types, at, level);
        if let Some(items) = map.get("items") {
            self.check_node(items, &format!("{at}/items"), level + 1);
        } else if types.contains("array") && self.dialect != Dialect::Ollama {
            self.report(at, "a list whose items have no type");
        }
    }

    fn check_types(&mut self, map: &Map<String, Value>, at: &str) -> BTreeSet<String> {
        let Some(declared) = map.get("type") else { return BTreeSet::new() };
        let list = declared.as_array().cloned().unwrap_or_else(|| vec![declared.clone()]);
        let names: BTreeSet<String> =
            list.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let type_names = ["string", "number", "integer", "boolean", "object", "array", "null"];
        if names.len() != list.len()
            || names.is_empty()
            || names.iter().any(|name| !type_names.contains(&name.as_str()))
        {
            self.report(at, format_args!("type {declared}"));
        }
        names
    }

    /// Checks `enum`, `format`, `pattern` and the bounds.
    fn check_values(&mut self, map: &Map<String, Value>, at: &str) {
        if let Some(choices) = map.get("enum") {
            let choices = choices.as_array().map(Vec::as_slice).unwrap_or_default();
            let simple = choices.iter().all(|choice| choice.is_string() || choice.is_number());
            let is_empty = choices.is_empty() || choices.contains(&"".into());
            if choices.is_empty() || self.dialect == Dialect::Gemini && (is_empty || !simple) {
                self.report(at, format_args!("enum {choices:?}"));
            }
            let texts = choices.iter().filter_map(Value::as_str);
            let chars: usize = texts.map(|text| text.chars().count()).sum();
            self.counts.choices += choices.len();
            self.counts.chars += chars;
            if self.dialect == Dialect::OpenAiStrict && choices.len() > 250 && chars > 15_000 {
                self.report(at, "a large enum with long values");
            }
        }
        if let Some(format) = map.get("format") {
            let name = format.as_str().unwrap_or_default();
            let uri = self.dialect == Dialect::AnthropicStrict && name == "uri";
            if !OPENAI_FORMATS.contains(&name) && !uri {
                self.report(at, format_args!("format {format}"));
            }
        }
        if let Some(pattern) = map.get("pattern") {
            let text = pattern.as_str().unwrap_or("(?=");
            if ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|lookaround| text.contains(lookaround)) {
                self.report(at, format_args!("pattern {pattern}"));
            }
        }
        for key in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"] {
            if map.get(key).is_some_and(|value| !value.is_number()) {
                self.report(at, format_args!("`{key}` is no number"));
            }
        }
        for key in ["minItems", "maxItems"] {
            if map.get(key).is_some_and(|value| !value.is_u64()) {
                self.report(at, format_args!("`{key}` is no count"));
            }
        }
    }

    fn check_members(
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
                None => return self.report(at, "properties that are no object"),
            },
        };
        let required = map.get("required").and_then(Value::as_array);
        let required: BTreeSet<&str> =
            required.into_iter().flatten().filter_map(Value::as_str).collect();
        let names: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
        if !required.is_subset(&names) {
            self.report(at, "required members that are no properties");
        }
        if self.dialect == Dialect::OpenAiStrict && required != names {
            self.report(at, "properties that are not required");
        }
        if self.is_strict()
            && types.contains("object")
            && map.get("additionalProperties") != Some(&Value::Bool(false))
        {
            self.report(at, "an object that is not closed");
        }
        self.counts.properties += names.len();
        self.counts.optional += names.len() - required.len().min(names.len());
        for (name, inside) in properties {
            let several = inside["type"].as_array().is_some_and(|types| types.len() > 1);
            self.counts.unions += usize::from(several || inside.get("anyOf").is_some());
            self.check_key(name, at);
            self.counts.chars += name.chars().count();
            self.check_node(inside, &format!("{at}/properties/{name}"), level + 1);
        }
    }

    fn check_limits(&mut self) {
        let SchemaCounts { properties, optional, unions, choices, chars } = self.counts;
        let names = self.root["$defs"].as_object().into_iter().flatten();
        let chars = chars + names.map(|(name, _)| name.chars().count()).sum::<usize>();
        match self.dialect {
            Dialect::OpenAiStrict if properties > 5000 => self.report("", "too many properties"),
            Dialect::OpenAiStrict if choices > 1000 || chars > 120_000 => {
                self.report("", format_args!("{choices} enum values, {chars} characters"));
            }
            Dialect::AnthropicStrict if optional > 24 || unions > 16 => {
                self.report("", format_args!("{optional} optional, {unions} unions"));
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

fn is_parameter_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.len() <= 64
}

/// Collects every `$ref` at a position of a schema.
fn collect_references(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, inside) in map {
                match (key.as_str(), inside.as_str()) {
                    ("$ref", Some(text)) => references.push(text.to_owned()),
                    ("enum" | "const" | "default" | "examples", _) => {}
                    _ => collect_references(inside, references),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, references)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn the_checker_refuses_what_providers_of_full_json_schema_refuse() {
    let property = |key: &str, inside: Value| serde_json::json!({"type": "object", "properties": {key: inside}});
    let array = serde_json::json!({"anyOf": [{"type": ["array", "null"]}]});
    for (schema, dialect) in [
        (property("a", array), Dialect::OpenAi),
        (property("$top", Value::Bool(true)), Dialect::Anthropic),
        (property(&"k".repeat(65), Value::Bool(true)), Dialect::Anthropic),
        (property("a", property("x[y]", Value::Bool(true))), Dialect::Anthropic),
    ] {
        assert_eq!(problems(&schema, dialect).len(), 1, "{dialect:?} {schema}");
        assert!(problems(&schema, Dialect::JsonSchema).is_empty(), "{schema}");
    }
}

#[test]
fn the_checker_refuses_what_each_provider_refuses() {
    let property = |inside: Value| serde_json::json!({"type": "object", "properties": {"a": inside}, "required": ["a"], "additionalProperties": false});
    let cases = [
        (serde_json::json!({"type": "string", "minLength": 1}), "OAGL"),
        (serde_json::json!({"type": "string", "format": "uri"}), "OGL"),
        (serde_json::json!({"type": "object", "properties": {}}), "OA"),
        (serde_json::json!({"type": "array"}), "OAG"),
        (serde_json::json!({"type": "string", "enum": ["a", ""]}), "G"),
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
            let reported = problems(&schema, dialect);
            assert_eq!(
                !reported.is_empty(),
                refusing.contains(letter),
                "{dialect:?} {inside} {reported:?}"
            );
        }
    }
}
