//! Conversion of one tool's schema to grammar rules, with a loss report.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::GbnfOptions;
use super::rules::{RuleSet, SharedRule, literal};
use crate::Tool;
use crate::grammar::reference::{has_other_constraints, join_pointer, local_pointer};
use crate::grammar::value_count::count_values;
use crate::grammar::{
    GrammarLoss, GrammarLossKind, LIMIT_EXCEEDED, MAX_SCHEMA_DEPTH, MAX_SCHEMA_VALUES, UNSUPPORTED,
};

/// Type names of JSON Schema.
const JSON_TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

/// The type that a keyword implies.
const KEYWORD_TYPES: &[(&str, &str)] = &[
    ("properties", "object"),
    ("required", "object"),
    ("additionalProperties", "object"),
    ("items", "array"),
    ("prefixItems", "array"),
    ("minItems", "array"),
    ("maxItems", "array"),
    ("minLength", "string"),
    ("maxLength", "string"),
    ("pattern", "string"),
    ("format", "string"),
    ("minimum", "number"),
    ("maximum", "number"),
    ("exclusiveMinimum", "number"),
    ("exclusiveMaximum", "number"),
];

/// Converts the schemas of one tool to rules.
pub(super) struct SchemaConverter<'a> {
    tool: &'a Tool,
    pub(super) options: GbnfOptions,
    pub(super) rules: &'a mut RuleSet,
    losses: &'a mut Vec<GrammarLoss>,
    references: ReferenceRules,
    depth: usize,
    /// Remaining number of schemas that may be converted.
    remaining_schemas: usize,
}

#[derive(Default)]
struct ReferenceRules {
    /// Rule names by reference.
    names: HashMap<String, String>,
    /// Rules that a rule may start with; no rule may start with itself.
    leading: HashMap<String, HashSet<String>>,
    /// Rules under construction that have no output yet.
    open: Vec<String>,
}

impl ReferenceRules {
    /// Records that the open rules may start with this rule. Returns `false` if that creates a
    /// cycle.
    fn record_leading(&mut self, name: &str) -> bool {
        let mut pending = vec![name.to_owned()];
        let mut visited = HashSet::new();
        while let Some(rule) = pending.pop() {
            if self.open.contains(&rule) {
                return false;
            }
            if visited.insert(rule.clone()) {
                pending.extend(self.leading.get(&rule).into_iter().flatten().cloned());
            }
        }
        if let Some(last) = self.open.last() {
            self.leading.entry(last.clone()).or_default().insert(name.to_owned());
        }
        true
    }
}

impl<'a> SchemaConverter<'a> {
    pub(super) fn new(
        tool: &'a Tool,
        options: GbnfOptions,
        rules: &'a mut RuleSet,
        losses: &'a mut Vec<GrammarLoss>,
    ) -> Self {
        Self {
            tool,
            options,
            rules,
            losses,
            references: ReferenceRules::default(),
            depth: 0,
            remaining_schemas: MAX_SCHEMA_VALUES,
        }
    }

    /// Converts the tool's arguments, which are an object regardless of the schema.
    pub(super) fn convert_arguments(mut self) -> String {
        let mut schema = match &self.tool.input_schema {
            Value::Object(schema) => schema.clone(),
            Value::Null | Value::Bool(true) => Map::new(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                self.report_loss("", &self.tool.input_schema.to_string(), GrammarLossKind::Dropped);
                Map::new()
            }
        };
        let base_name = format!("{}-arguments", self.tool.name);
        let body = if count_values(&self.tool.input_schema) > MAX_SCHEMA_VALUES {
            self.report_loss("", LIMIT_EXCEEDED, GrammarLossKind::Dropped);
            let any = Map::from_iter([("additionalProperties".to_owned(), Value::Bool(true))]);
            self.convert_object(&any, "")
        } else if ["$ref", "anyOf", "oneOf", "allOf", "enum", "const"]
            .iter()
            .any(|keyword| schema.contains_key(*keyword))
        {
            self.convert_schema(&Value::Object(schema), "")
        } else {
            match schema.get("type") {
                Some(Value::Array(types))
                    if types.iter().any(|type_name| type_name == "object") =>
                {
                    self.report_loss("", "type", GrammarLossKind::Narrowed);
                }
                Some(type_name) if type_name != "object" => {
                    self.report_loss("", "type", GrammarLossKind::Dropped);
                }
                _ => {}
            }
            schema.insert("type".to_owned(), "object".into());
            self.convert_schema(&Value::Object(schema), "")
        };
        self.rules.add_rule(&base_name, body)
    }

    /// Returns the rule expression of a schema.
    pub(super) fn convert_schema(&mut self, schema: &Value, at: &str) -> String {
        if self.depth >= MAX_SCHEMA_DEPTH || !self.spend(1) {
            self.report_loss(at, LIMIT_EXCEEDED, GrammarLossKind::Dropped);
            return self.rules.use_shared(SharedRule::Value);
        }
        self.depth += 1;
        let rule = match schema {
            Value::Object(keywords) => self.convert_keywords(keywords, at),
            Value::Bool(true) => self.rules.use_shared(SharedRule::Value),
            other => {
                self.report_loss(at, &other.to_string(), GrammarLossKind::Dropped);
                self.rules.use_shared(SharedRule::Value)
            }
        };
        self.depth -= 1;
        rule
    }

    /// Converts a schema that follows other output, so that the schema may refer to its parents.
    pub(super) fn convert_nested(&mut self, schema: &Value, at: &str) -> String {
        let open = std::mem::take(&mut self.references.open);
        let rule = self.convert_schema(schema, at);
        self.references.open = open;
        rule
    }

    fn convert_keywords(&mut self, schema: &Map<String, Value>, at: &str) -> String {
        if let Some(reference) = schema.get("$ref") {
            return match (
                reference.as_str().and_then(local_pointer),
                has_other_constraints(schema, "$ref"),
            ) {
                (Some(target), false) => self.convert_reference(target, at),
                (target, _) => self.convert_reference_with_siblings(target, schema, at),
            };
        }
        for keyword in UNSUPPORTED.iter().filter(|keyword| schema.contains_key(**keyword)) {
            self.report_loss(at, keyword, GrammarLossKind::Dropped);
        }
        if let Some(only) = schema.get("const") {
            return self.convert_values(std::slice::from_ref(only), schema, "const", at);
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            return self.convert_values(values, schema, "enum", at);
        }
        if let Some(rule) = self.convert_composition(schema, at) {
            return rule;
        }
        let types = self.allowed_types(schema, at);
        let alternatives: Vec<String> =
            types.iter().map(|type_name| self.convert_type(type_name, schema, at)).collect();
        match alternatives.as_slice() {
            [] => self.rules.use_shared(SharedRule::Value),
            [single] => single.clone(),
            several => format!("({})", several.join(" | ")),
        }
    }

    /// Returns the types that a schema allows; an empty list means all types.
    fn allowed_types(&mut self, schema: &Map<String, Value>, at: &str) -> Vec<String> {
        let declared: Vec<&Value> = match schema.get("type") {
            None => {
                let implied =
                    KEYWORD_TYPES.iter().find(|(keyword, _)| schema.contains_key(*keyword));
                return implied.map(|(_, type_name)| (*type_name).to_owned()).into_iter().collect();
            }
            Some(Value::Array(types)) => types.iter().collect(),
            Some(single) => vec![single],
        };
        let mut types: Vec<String> = Vec::new();
        for type_name in declared {
            match type_name.as_str().filter(|type_name| JSON_TYPES.contains(type_name)) {
                Some(type_name) if !types.iter().any(|other| other == type_name) => {
                    types.push(type_name.to_owned());
                }
                Some(_) => {}
                None => {
                    self.report_loss(at, "type", GrammarLossKind::Dropped);
                    return Vec::new();
                }
            }
        }
        // Every integer is a number: both types would make the grammar ambiguous.
        if types.iter().any(|type_name| type_name == "number") {
            types.retain(|type_name| type_name != "integer");
        }
        types
    }

    fn convert_type(&mut self, type_name: &str, schema: &Map<String, Value>, at: &str) -> String {
        match type_name {
            "null" => literal("null"),
            "boolean" => self.rules.use_shared(SharedRule::Boolean),
            "integer" => self.convert_integer(schema, at),
            "number" => self.convert_number(schema, at),
            "string" => self.convert_string(schema, at),
            "array" => self.convert_array(schema, at),
            _ => self.convert_object(schema, at),
        }
    }

    /// Converts the listed values that have an allowed type.
    fn convert_values(
        &mut self,
        values: &[Value],
        schema: &Map<String, Value>,
        keyword: &str,
        at: &str,
    ) -> String {
        let types = self.allowed_types(schema, at);
        let alternatives: Vec<String> = values
            .iter()
            .filter(|value| {
                types.is_empty() || types.iter().any(|type_name| has_type(value, type_name))
            })
            .map(|choice| literal(&choice.to_string()))
            .collect();
        for key in schema.keys().filter(|key| !["type", keyword].contains(&key.as_str())) {
            let single_keyword = Map::from_iter([(key.clone(), Value::Null)]);
            if has_other_constraints(&single_keyword, "") && !UNSUPPORTED.contains(&key.as_str()) {
                self.report_loss(at, key, GrammarLossKind::Dropped);
            }
        }
        if alternatives.is_empty() || !self.spend(alternatives.len()) {
            self.report_loss(at, keyword, GrammarLossKind::Dropped);
            return self.rules.use_shared(SharedRule::Value);
        }
        format!("({})", alternatives.join(" | "))
    }

    /// Returns the rule of the schema at a pointer.
    fn convert_reference(&mut self, target: &str, at: &str) -> String {
        if let Some(name) = self.references.names.get(target).cloned() {
            return if self.references.record_leading(&name) {
                name
            } else {
                self.drop_reference(at)
            };
        }
        let tool = self.tool;
        let Some(schema) = tool.input_schema.pointer(target) else {
            return self.drop_reference(at);
        };
        let base_name = target.rsplit('/').next().unwrap_or_default();
        let name = self.rules.unique_name(&format!("{}-{base_name}", tool.name));
        self.references.names.insert(target.to_owned(), name.clone());
        self.references.record_leading(&name);
        self.references.open.push(name.clone());
        let body = self.convert_schema(schema, target);
        self.references.open.pop();
        self.rules.define(name.clone(), body);
        name
    }

    fn drop_reference(&mut self, at: &str) -> String {
        self.report_loss(at, "$ref", GrammarLossKind::Dropped);
        self.rules.use_shared(SharedRule::Value)
    }

    /// Reads the count of a keyword; reports an invalid count.
    pub(super) fn read_count(
        &mut self,
        schema: &Map<String, Value>,
        at: &str,
        keyword: &str,
    ) -> Option<u64> {
        let value = schema.get(keyword)?;
        let count = value.as_u64().or_else(|| {
            value
                .as_f64()
                .filter(|float| float.fract() == 0.0 && (0.0..1e15).contains(float))
                .map(|number| number as u64)
        });
        if count.is_none() {
            self.report_loss(at, keyword, GrammarLossKind::Dropped);
        }
        count
    }

    /// Whether this number of additional schemas may be converted.
    pub(super) fn spend(&mut self, schemas: usize) -> bool {
        let enough = self.remaining_schemas >= schemas;
        self.remaining_schemas = self.remaining_schemas.saturating_sub(schemas);
        enough
    }

    /// Reports a keyword that the grammar does not enforce.
    pub(super) fn report_loss(&mut self, pointer: &str, keyword: &str, kind: GrammarLossKind) {
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

    /// Returns the schema at a pointer of the tool's input schema.
    pub(super) fn resolve_pointer(&self, pointer: &str) -> Option<&'a Value> {
        self.tool.input_schema.pointer(pointer)
    }

    fn convert_array(&mut self, schema: &Map<String, Value>, at: &str) -> String {
        let (prefix, items) = match (schema.get("prefixItems"), schema.get("items")) {
            (Some(Value::Array(prefix)), items) => (prefix.as_slice(), items),
            (_, Some(Value::Array(prefix))) => (prefix.as_slice(), schema.get("additionalItems")),
            (_, items) => (&[][..], items),
        };
        let least = self.read_count(schema, at, "minItems").unwrap_or(0);
        let max_items = self.read_count(schema, at, "maxItems");
        let space = self.rules.use_shared(SharedRule::Space);
        let mut first: Vec<String> = Vec::new();
        for (index, item) in prefix.iter().enumerate() {
            let at = join_pointer(&join_pointer(at, "prefixItems"), &index.to_string());
            first.push(self.convert_nested(item, &at));
        }
        let prefix_len = first.len() as u64;
        let tuple = first.join(&format!(r#" "," {space} "#));
        if max_items.is_some_and(|max_items| max_items < prefix_len) {
            self.report_loss(at, "maxItems", GrammarLossKind::Dropped);
        }
        let least = least.saturating_sub(prefix_len);
        let max_items = max_items.map(|max_items| max_items.saturating_sub(prefix_len));
        if max_items == Some(0) || items == Some(&Value::Bool(false)) {
            // No array has enough items.
            if least > 0 {
                self.report_loss(at, "minItems", GrammarLossKind::Dropped);
            }
            return format!(r#""[" {tuple} "]""#);
        }
        let any = Value::Bool(true);
        let item = self.convert_nested(items.unwrap_or(&any), &join_pointer(at, "items"));
        let item = self.rules.add_rule(&format!("{}-item", self.tool.name), item);
        let more = self
            .rules
            .add_rule(&format!("{}-more", self.tool.name), format!(r#""," {space} {item}"#));
        let (min_repeats, optional) = match (prefix_len, least) {
            (0, 0) => (0, true),
            (0, least) => (least - 1, false),
            (_, least) => (least, false),
        };
        let (times, inexact) = super::rules::repetition(
            min_repeats,
            max_items.map(|max_items| if prefix_len == 0 { max_items - 1 } else { max_items }),
        );
        if inexact {
            let keyword = if max_items.is_some() { "maxItems" } else { "minItems" };
            self.report_loss(at, keyword, GrammarLossKind::Dropped);
        }
        let list = if prefix_len == 0 {
            format!("{item} {more}{times}")
        } else {
            format!("{tuple} {more}{times}")
        };
        if optional { format!(r#""[" ({list})? "]""#) } else { format!(r#""[" {list} "]""#) }
    }
}

/// Whether a value has this JSON Schema type.
fn has_type(value: &Value, type_name: &str) -> bool {
    match value {
        Value::Null => type_name == "null",
        Value::Bool(_) => type_name == "boolean",
        Value::Number(number) => {
            type_name == "number"
                || type_name == "integer"
                    && number.as_f64().is_some_and(|float| float.fract() == 0.0)
        }
        Value::String(_) => type_name == "string",
        Value::Array(_) => type_name == "array",
        Value::Object(_) => type_name == "object",
    }
}
