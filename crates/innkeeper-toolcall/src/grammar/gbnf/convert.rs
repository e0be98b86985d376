//! One tool's schema turned into rules, with what could not be.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::Options;
use super::rules::{Rules, Shared, literal};
use crate::Tool;
use crate::grammar::reference::{deeper, pointer, says_more};
use crate::grammar::weight::weight;
use crate::grammar::{DEPTH, Effect, Loss, TOO_MUCH, UNHELD, VALUES};

/// The types of JSON Schema.
const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

/// Which type a keyword speaks of.
const SPEAKS_OF: &[(&str, &str)] = &[
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

/// Turns the schemas of one tool into rules.
pub(super) struct Converter<'a> {
    tool: &'a Tool,
    pub(super) options: Options,
    pub(super) rules: &'a mut Rules,
    losses: &'a mut Vec<Loss>,
    /// The rule of each schema that is referred to.
    referred: HashMap<String, String>,
    /// Rules that may begin with one another: none may begin with itself.
    begins: HashMap<String, HashSet<String>>,
    /// The rules being written that nothing has been written for yet.
    open: Vec<String>,
    depth: usize,
    /// How many schemas may still be turned into rules.
    left: usize,
}

impl<'a> Converter<'a> {
    pub(super) fn new(
        tool: &'a Tool,
        options: Options,
        rules: &'a mut Rules,
        losses: &'a mut Vec<Loss>,
    ) -> Self {
        Self {
            tool,
            options,
            rules,
            losses,
            referred: HashMap::new(),
            begins: HashMap::new(),
            open: Vec::new(),
            depth: 0,
            left: VALUES,
        }
    }

    /// The rule of the tool's arguments, which are an object whatever the schema says.
    pub(super) fn arguments(mut self) -> String {
        let mut schema = match &self.tool.input_schema {
            Value::Object(schema) => schema.clone(),
            Value::Null | Value::Bool(true) => Map::new(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                self.lose("", &self.tool.input_schema.to_string(), Effect::Dropped);
                Map::new()
            }
        };
        let wish = format!("{}-arguments", self.tool.name);
        let body = if weight(&self.tool.input_schema) > VALUES {
            self.lose("", TOO_MUCH, Effect::Dropped);
            let any = Map::from_iter([("additionalProperties".to_owned(), Value::Bool(true))]);
            self.object(&any, "")
        } else if ["$ref", "anyOf", "oneOf", "allOf", "enum", "const"]
            .iter()
            .any(|keyword| schema.contains_key(*keyword))
        {
            self.schema(&Value::Object(schema), "")
        } else {
            match schema.get("type") {
                Some(Value::Array(types)) if types.iter().any(|of| of == "object") => {
                    self.lose("", "type", Effect::Narrowed);
                }
                Some(of) if of != "object" => self.lose("", "type", Effect::Dropped),
                _ => {}
            }
            schema.insert("type".to_owned(), "object".into());
            self.schema(&Value::Object(schema), "")
        };
        self.rules.rule(&wish, body)
    }

    /// What can stand for a schema in a rule.
    pub(super) fn schema(&mut self, schema: &Value, at: &str) -> String {
        if self.depth >= DEPTH || !self.spend(1) {
            self.lose(at, TOO_MUCH, Effect::Dropped);
            return self.rules.shared(Shared::Value);
        }
        self.depth += 1;
        let written = match schema {
            Value::Object(keywords) => self.keywords(keywords, at),
            Value::Bool(true) => self.rules.shared(Shared::Value),
            other => {
                self.lose(at, &other.to_string(), Effect::Dropped);
                self.rules.shared(Shared::Value)
            }
        };
        self.depth -= 1;
        written
    }

    /// A schema behind something that is written in any case, so that it may refer to what it is in.
    pub(super) fn inside(&mut self, schema: &Value, at: &str) -> String {
        let open = std::mem::take(&mut self.open);
        let written = self.schema(schema, at);
        self.open = open;
        written
    }

    fn keywords(&mut self, schema: &Map<String, Value>, at: &str) -> String {
        if let Some(reference) = schema.get("$ref") {
            return match (reference.as_str().and_then(pointer), says_more(schema, "$ref")) {
                (Some(target), false) => self.reference(target, at),
                (target, _) => self.reference_with_more(target, schema, at),
            };
        }
        for keyword in UNHELD.iter().filter(|keyword| schema.contains_key(**keyword)) {
            self.lose(at, keyword, Effect::Dropped);
        }
        if let Some(only) = schema.get("const") {
            return self.values(std::slice::from_ref(only), schema, "const", at);
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            return self.values(values, schema, "enum", at);
        }
        if let Some(written) = self.combined(schema, at) {
            return written;
        }
        let types = self.types(schema, at);
        let ways: Vec<String> = types.iter().map(|of| self.of_type(of, schema, at)).collect();
        match ways.as_slice() {
            [] => self.rules.shared(Shared::Value),
            [one] => one.clone(),
            several => format!("({})", several.join(" | ")),
        }
    }

    /// The types a schema allows; none means all.
    fn types(&mut self, schema: &Map<String, Value>, at: &str) -> Vec<String> {
        let listed: Vec<&Value> = match schema.get("type") {
            None => {
                let spoken = SPEAKS_OF.iter().find(|(keyword, _)| schema.contains_key(*keyword));
                return spoken.map(|(_, of)| (*of).to_owned()).into_iter().collect();
            }
            Some(Value::Array(types)) => types.iter().collect(),
            Some(one) => vec![one],
        };
        let mut types: Vec<String> = Vec::new();
        for of in listed {
            match of.as_str().filter(|of| TYPES.contains(of)) {
                Some(of) if !types.iter().any(|known| known == of) => types.push(of.to_owned()),
                Some(_) => {}
                None => {
                    self.lose(at, "type", Effect::Dropped);
                    return Vec::new();
                }
            }
        }
        // A whole number is a number: both would be two ways to read the same digits.
        if types.iter().any(|of| of == "number") {
            types.retain(|of| of != "integer");
        }
        types
    }

    fn of_type(&mut self, of: &str, schema: &Map<String, Value>, at: &str) -> String {
        match of {
            "null" => literal("null"),
            "boolean" => self.rules.shared(Shared::Boolean),
            "integer" => self.integer(schema, at),
            "number" => self.number(schema, at),
            "string" => self.string(schema, at),
            "array" => self.array(schema, at),
            _ => self.object(schema, at),
        }
    }

    /// The values listed, those of another type left out.
    fn values(
        &mut self,
        values: &[Value],
        schema: &Map<String, Value>,
        keyword: &str,
        at: &str,
    ) -> String {
        let types = self.types(schema, at);
        let fits = |value: &&Value| types.is_empty() || types.iter().any(|of| is(value, of));
        let ways: Vec<String> =
            values.iter().filter(fits).map(|it| literal(&it.to_string())).collect();
        for key in schema.keys().filter(|key| !["type", keyword].contains(&key.as_str())) {
            let alone = Map::from_iter([(key.clone(), Value::Null)]);
            if says_more(&alone, "") && !UNHELD.contains(&key.as_str()) {
                self.lose(at, key, Effect::Dropped);
            }
        }
        if ways.is_empty() || !self.spend(ways.len()) {
            self.lose(at, keyword, Effect::Dropped);
            return self.rules.shared(Shared::Value);
        }
        format!("({})", ways.join(" | "))
    }

    /// The rule of the schema at a pointer.
    fn reference(&mut self, target: &str, at: &str) -> String {
        if let Some(name) = self.referred.get(target).cloned() {
            return if self.may_begin_with(&name) { name } else { self.circle(at) };
        }
        let tool = self.tool;
        let Some(schema) = tool.input_schema.pointer(target) else { return self.circle(at) };
        let wish = target.rsplit('/').next().unwrap_or_default();
        let name = self.rules.name(&format!("{}-{wish}", tool.name));
        self.referred.insert(target.to_owned(), name.clone());
        self.may_begin_with(&name);
        self.open.push(name.clone());
        let body = self.schema(schema, target);
        self.open.pop();
        self.rules.define(name.clone(), body);
        name
    }

    /// Notes that the rules being written may begin with this one, unless that would be a circle.
    fn may_begin_with(&mut self, name: &str) -> bool {
        let mut reached = vec![name.to_owned()];
        let mut seen = HashSet::new();
        while let Some(rule) = reached.pop() {
            if self.open.contains(&rule) {
                return false;
            }
            if seen.insert(rule.clone()) {
                reached.extend(self.begins.get(&rule).into_iter().flatten().cloned());
            }
        }
        if let Some(last) = self.open.last() {
            self.begins.entry(last.clone()).or_default().insert(name.to_owned());
        }
        true
    }

    fn circle(&mut self, at: &str) -> String {
        self.lose(at, "$ref", Effect::Dropped);
        self.rules.shared(Shared::Value)
    }

    /// A count that a keyword gives; what is none is reported.
    pub(super) fn count(
        &mut self,
        schema: &Map<String, Value>,
        at: &str,
        keyword: &str,
    ) -> Option<u64> {
        let value = schema.get(keyword)?;
        let whole = |float: &f64| float.fract() == 0.0 && (0.0..1e15).contains(float);
        let count = value.as_u64().or_else(|| value.as_f64().filter(whole).map(|it| it as u64));
        if count.is_none() {
            self.lose(at, keyword, Effect::Dropped);
        }
        count
    }

    /// Whether so many more schemas may be looked at.
    pub(super) fn spend(&mut self, schemas: usize) -> bool {
        let enough = self.left >= schemas;
        self.left = self.left.saturating_sub(schemas);
        enough
    }

    /// Reports what the grammar does not hold.
    pub(super) fn lose(&mut self, pointer: &str, keyword: &str, effect: Effect) {
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

    /// The schema a pointer of this tool leads to.
    pub(super) fn target(&self, pointer: &str) -> Option<&'a Value> {
        self.tool.input_schema.pointer(pointer)
    }

    /// A list of the schema.
    fn array(&mut self, schema: &Map<String, Value>, at: &str) -> String {
        let (front, items) = match (schema.get("prefixItems"), schema.get("items")) {
            (Some(Value::Array(front)), items) => (front.as_slice(), items),
            (_, Some(Value::Array(front))) => (front.as_slice(), schema.get("additionalItems")),
            (_, items) => (&[][..], items),
        };
        let least = self.count(schema, at, "minItems").unwrap_or(0);
        let most = self.count(schema, at, "maxItems");
        let space = self.rules.shared(Shared::Space);
        let mut first: Vec<String> = Vec::new();
        for (place, item) in front.iter().enumerate() {
            let at = deeper(&deeper(at, "prefixItems"), &place.to_string());
            first.push(self.inside(item, &at));
        }
        let known = first.len() as u64;
        let tuple = first.join(&format!(r#" "," {space} "#));
        if most.is_some_and(|most| most < known) {
            self.lose(at, "maxItems", Effect::Dropped);
        }
        let least = least.saturating_sub(known);
        let most = most.map(|most| most.saturating_sub(known));
        if most == Some(0) || items == Some(&Value::Bool(false)) {
            // No list is as long.
            if least > 0 {
                self.lose(at, "minItems", Effect::Dropped);
            }
            return format!(r#""[" {tuple} "]""#);
        }
        let any = Value::Bool(true);
        let item = self.inside(items.unwrap_or(&any), &deeper(at, "items"));
        let item = self.rules.rule(&format!("{}-item", self.tool.name), item);
        let more =
            self.rules.rule(&format!("{}-more", self.tool.name), format!(r#""," {space} {item}"#));
        let (behind, optional) = match (known, least) {
            (0, 0) => (0, true),
            (0, least) => (least - 1, false),
            (_, least) => (least, false),
        };
        let (times, inexact) =
            super::rules::repeat(behind, most.map(|most| if known == 0 { most - 1 } else { most }));
        if inexact {
            let keyword = if most.is_some() { "maxItems" } else { "minItems" };
            self.lose(at, keyword, Effect::Dropped);
        }
        let list = if known == 0 {
            format!("{item} {more}{times}")
        } else {
            format!("{tuple} {more}{times}")
        };
        if optional { format!(r#""[" ({list})? "]""#) } else { format!(r#""[" {list} "]""#) }
    }
}

/// Whether a value has a type of JSON Schema.
fn is(value: &Value, of: &str) -> bool {
    match value {
        Value::Null => of == "null",
        Value::Bool(_) => of == "boolean",
        Value::Number(number) => {
            of == "number" || of == "integer" && number.as_f64().is_some_and(|it| it.fract() == 0.0)
        }
        Value::String(_) => of == "string",
        Value::Array(_) => of == "array",
        Value::Object(_) => of == "object",
    }
}
