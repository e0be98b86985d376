//! A form for the arguments of a tool, from its JSON Schema.
//!
//! The fields of the form have numbers, not the names of the server. The values become JSON text, so
//! that a number keeps all its digits. What a form cannot express is a field with JSON.

mod field;

use innkeeper_host::is_deceptive_char;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::html::{Html, html};
use super::request::Fields;
pub(super) use field::{FormField, json};

/// Maximum number of fields; the arguments of a larger schema are one field with JSON.
const MAX_FORM_FIELDS: usize = 100;

/// Maximum number of options of a choice.
const MAX_OPTIONS: usize = 200;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum FieldKind {
    Text,
    Number,
    Integer,
    Boolean,
    /// One of these values, each with its label.
    Choice(Vec<(String, Value)>),
    /// Texts or numbers, one on each line.
    Lines(LineKind),
    /// Some of these values, each with its label.
    Choices(Vec<(String, Value)>),
    Json,
}

/// The kind of the items of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineKind {
    Text,
    Number,
    Integer,
    Boolean,
}

impl LineKind {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Number | Self::Integer => value.is_number(),
            Self::Boolean => value.is_boolean(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ToolForm {
    fields: Vec<FormField>,
}

/// A problem of a field, for the person who fills the form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldProblem {
    /// The position of the field.
    pub(super) index: usize,
    pub(super) message: String,
}

impl ToolForm {
    /// Returns the form for a schema; `None` if the schema has no fields that a form can show.
    pub(super) fn from_schema(schema: &Value) -> Option<Self> {
        let empty = Map::new();
        let properties = match schema.get("properties") {
            None => &empty,
            Some(properties) => properties.as_object()?,
        };
        if properties.len() > MAX_FORM_FIELDS {
            return None;
        }
        let required = schema.get("required").and_then(Value::as_array);
        let is_required =
            |name: &str| required.is_some_and(|names| names.iter().any(|known| known == name));
        let fields = properties.iter().map(|(name, schema)| {
            let text = |key: &str| schema.get(key).and_then(Value::as_str).map(ToOwned::to_owned);
            FormField {
                name: name.clone(),
                title: text("title"),
                description: text("description"),
                is_required: is_required(name),
                kind: field_kind(schema),
                default: schema.get("default").cloned(),
            }
        });
        Some(Self { fields: fields.collect() })
    }

    /// Returns the values of the schema's defaults, as a browser would send them.
    pub(super) fn defaults(&self) -> Fields {
        let defaults = self.fields.iter().enumerate();
        let values = defaults.filter_map(|(index, field)| Some((index, field.default.as_ref()?)));
        let texts = values.flat_map(|(index, value)| self.field_values(index, value));
        // A field shows its text as it is: nobody would see the hidden characters that they send.
        Fields::from_pairs(texts.filter(|(_, text)| !text.contains(is_deceptive_char)))
    }

    fn field_values(&self, index: usize, value: &Value) -> Vec<(String, String)> {
        let Some(field) = self.fields.get(index) else { return Vec::new() };
        let text = match (&field.kind, value) {
            (FieldKind::Choice(options), value) => {
                position(options, value).map(|at| at.to_string())
            }
            (FieldKind::Choices(options), Value::Array(values)) => {
                let positions = values.iter().filter_map(|value| position(options, value));
                return positions.map(|at| (key(index), at.to_string())).collect();
            }
            (FieldKind::Lines(kind), Value::Array(values)) => {
                let lines = values.iter().filter(|value| kind.fits(value)).map(plain_text);
                Some(lines.collect::<Vec<_>>().join("\n"))
            }
            (FieldKind::Text, Value::String(text)) => Some(text.clone()),
            (FieldKind::Json, value) => serde_json::to_string_pretty(value).ok(),
            // A text of a server in place of a number would stand in the field as it is.
            (FieldKind::Number, value @ Value::Number(_))
            | (FieldKind::Integer, value @ Value::Number(_))
            | (FieldKind::Boolean, value @ Value::Bool(_)) => Some(plain_text(value)),
            _ => None,
        };
        text.map(|text| (key(index), text)).into_iter().collect()
    }

    /// Returns the arguments of the fields as JSON text, or the problems of the fields.
    pub(super) fn read(&self, values: &Fields) -> Result<Box<RawValue>, Vec<FieldProblem>> {
        let mut members = Vec::new();
        let mut problems = Vec::new();
        for (index, field) in self.fields.iter().enumerate() {
            match field.read(index, values) {
                Ok(Some(value)) => members.push(format!("{}:{value}", json_string(&field.name))),
                Ok(None) => {}
                Err(message) => problems.push(FieldProblem { index, message }),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let text = format!("{{{}}}", members.join(","));
        RawValue::from_string(text)
            .map_err(|error| vec![FieldProblem { index: 0, message: error.to_string() }])
    }

    pub(super) fn write(&self, out: &mut Html, values: &Fields, problems: &[FieldProblem]) {
        if self.fields.is_empty() {
            html!(out, "<p class=\"empty\">The tool has no arguments.</p>");
        }
        for (index, field) in self.fields.iter().enumerate() {
            let problem = problems.iter().find(|problem| problem.index == index);
            field.write(out, index, values, problem.map(|problem| &*problem.message));
        }
    }
}

/// Returns the name of a field in the form.
fn key(index: usize) -> String {
    format!("f{index}")
}

fn position(options: &[(String, Value)], value: &Value) -> Option<usize> {
    options.iter().position(|(_, known)| known == value)
}

fn plain_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

fn json_string(text: &str) -> String {
    Value::from(text).to_string()
}

fn field_kind(schema: &Value) -> FieldKind {
    if let Some(options) = options(schema) {
        return FieldKind::Choice(options);
    }
    match type_name(schema) {
        Some("string") => FieldKind::Text,
        Some("number") => FieldKind::Number,
        Some("integer") => FieldKind::Integer,
        Some("boolean") => FieldKind::Boolean,
        Some("array") => schema.get("items").map_or(FieldKind::Json, |items| {
            if let Some(options) = options(items) {
                return FieldKind::Choices(options);
            }
            match type_name(items) {
                Some("string") => FieldKind::Lines(LineKind::Text),
                Some("number") => FieldKind::Lines(LineKind::Number),
                Some("integer") => FieldKind::Lines(LineKind::Integer),
                Some("boolean") => FieldKind::Lines(LineKind::Boolean),
                _ => FieldKind::Json,
            }
        }),
        _ => FieldKind::Json,
    }
}

/// Returns the only type of a schema apart from `null`; `None` for a schema with other constraints that
/// decide the type.
fn type_name(schema: &Value) -> Option<&str> {
    let composed = ["$ref", "anyOf", "oneOf", "allOf", "not", "if", "const", "enum"];
    if composed.iter().any(|key| schema.get(key).is_some()) {
        return None;
    }
    match schema.get("type")? {
        Value::String(name) => Some(name),
        Value::Array(names) => {
            let mut names = names.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            let only = names.next()?;
            names.next().is_none().then_some(only)
        }
        _ => None,
    }
}

/// Returns the options of `enum`, or of constants with titles.
fn options(schema: &Value) -> Option<Vec<(String, Value)>> {
    let options: Vec<_> = match (schema.get("enum"), schema.get("oneOf").or(schema.get("anyOf"))) {
        (Some(Value::Array(values)), None) => {
            values.iter().map(|value| (plain_text(value), value.clone())).collect()
        }
        (None, Some(Value::Array(values))) => values
            .iter()
            .map(|option| {
                let value = option.get("const")?.clone();
                let title = option.get("title").and_then(Value::as_str);
                Some((title.map_or_else(|| plain_text(&value), ToOwned::to_owned), value))
            })
            .collect::<Option<_>>()?,
        _ => return None,
    };
    (1..=MAX_OPTIONS).contains(&options.len()).then_some(options)
}

/// Returns a text with the line breaks of JSON: a browser sends the two characters of HTTP.
fn with_line_feeds(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// Returns the text of a JSON number.
fn number(text: &str, is_integer: bool) -> Result<String, String> {
    let text = text.trim();
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_integer && !is_whole {
        return Err("enter a whole number".to_owned());
    }
    let is_json = digits.starts_with(|first: char| first.is_ascii_digit())
        && serde_json::from_str::<&RawValue>(text).is_ok();
    if is_json { Ok(text.to_owned()) } else { Err("enter a number, such as 1.5".to_owned()) }
}

fn boolean(text: &str) -> Result<String, String> {
    match text.trim() {
        known @ ("true" | "false") => Ok(known.to_owned()),
        _ => Err("choose `true` or `false`".to_owned()),
    }
}

#[cfg(test)]
mod tests;
