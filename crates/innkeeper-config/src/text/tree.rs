//! Parses JSON with comments into a tree with positions; detects duplicate keys.

use std::collections::HashMap;

use jsonc_parser::common::Ranged;
use jsonc_parser::errors::{ParseError, ParseErrorKind};
use jsonc_parser::{CollectOptions, ParseOptions, ParseStringErrorKind, ast};
use serde_json::{Map, Number, Value};

use crate::text::key_path::KeyPath;
use crate::text::source_text::{Diagnostics, SourceOffset};

/// Maximum nesting depth of objects and lists; the deepest known key is at depth 6.
pub const MAX_DEPTH: usize = 64;

/// One value with its start position.
#[derive(Clone, Debug)]
pub(crate) struct JsonNode {
    pub(crate) at: SourceOffset,
    pub(crate) kind: NodeKind,
}

#[derive(Clone, Debug)]
pub(crate) enum NodeKind {
    Null,
    Bool(bool),
    /// A number as written, so that `1.10` in an environment value stays `1.10`.
    Number(String),
    String(String),
    Array(Vec<JsonNode>),
    Object(Vec<JsonMember>),
}

/// One key of an object with its value.
#[derive(Clone, Debug)]
pub(crate) struct JsonMember {
    pub(crate) key: String,
    pub(crate) source_key: SourceKey,
    pub(crate) at: SourceOffset,
    pub(crate) value: JsonNode,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SourceKey {
    /// The key itself.
    Same,
    /// Another spelling of the key.
    Alias(String),
    /// An element of a list.
    Element(usize),
    /// No text: the file does not have this level.
    Absent,
}

impl JsonMember {
    /// Returns the path of this member, in the file's spelling.
    pub(crate) fn key_path<'a>(&'a self, up: &'a KeyPath<'a>) -> KeyPath<'a> {
        match &self.source_key {
            SourceKey::Same => up.key(&self.key),
            SourceKey::Alias(spelling) => up.key(spelling),
            SourceKey::Element(index) => up.index(*index),
            SourceKey::Absent => *up,
        }
    }
}

impl JsonNode {
    pub(crate) fn members(&self) -> &[JsonMember] {
        match &self.kind {
            NodeKind::Object(members) => members,
            NodeKind::Null
            | NodeKind::Bool(_)
            | NodeKind::Number(_)
            | NodeKind::String(_)
            | NodeKind::Array(_) => &[],
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&JsonMember> {
        self.members().iter().find(|member| member.key == key)
    }

    pub(crate) fn items(&self) -> &[Self] {
        match &self.kind {
            NodeKind::Array(items) => items,
            NodeKind::Null
            | NodeKind::Bool(_)
            | NodeKind::Number(_)
            | NodeKind::String(_)
            | NodeKind::Object(_) => &[],
        }
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match &self.kind {
            NodeKind::String(text) => Some(text),
            NodeKind::Null
            | NodeKind::Bool(_)
            | NodeKind::Number(_)
            | NodeKind::Array(_)
            | NodeKind::Object(_) => None,
        }
    }

    pub(crate) fn as_f64(&self) -> Option<f64> {
        match &self.kind {
            NodeKind::Number(literal) => literal.parse().ok(),
            NodeKind::Null
            | NodeKind::Bool(_)
            | NodeKind::String(_)
            | NodeKind::Array(_)
            | NodeKind::Object(_) => None,
        }
    }

    pub(crate) fn is_object(&self) -> bool {
        matches!(self.kind, NodeKind::Object(_))
    }

    pub(crate) fn to_value(&self) -> Value {
        match &self.kind {
            NodeKind::Null => Value::Null,
            NodeKind::Bool(value) => Value::Bool(*value),
            NodeKind::Number(literal) => parse_number(literal).map_or(Value::Null, Value::Number),
            NodeKind::String(text) => Value::String(text.clone()),
            NodeKind::Array(items) => items.iter().map(Self::to_value).collect(),
            NodeKind::Object(members) => Value::Object(to_map(members)),
        }
    }

    /// Builds the tree of a JSON value without source text.
    pub(crate) fn from_value(value: &Value, report: &mut Diagnostics) -> Self {
        Self::build(value, &KeyPath::root(), 0, report)
    }

    fn build(
        value: &Value,
        key_path: &KeyPath<'_>,
        depth: usize,
        report: &mut Diagnostics,
    ) -> Self {
        if depth > MAX_DEPTH {
            report.error(None, key_path, format!("nested deeper than {MAX_DEPTH} levels"));
            return Self { at: None, kind: NodeKind::Null };
        }
        let kind = match value {
            Value::Null => NodeKind::Null,
            Value::Bool(value) => NodeKind::Bool(*value),
            Value::Number(number) => NodeKind::Number(number.to_string()),
            Value::String(text) => NodeKind::String(text.clone()),
            Value::Array(items) => {
                let items = items.iter().enumerate();
                NodeKind::Array(
                    items
                        .map(|(i, item)| Self::build(item, &key_path.index(i), depth + 1, report))
                        .collect(),
                )
            }
            Value::Object(map) => NodeKind::Object(
                map.iter()
                    .map(|(key, value)| JsonMember {
                        key: key.clone(),
                        source_key: SourceKey::Same,
                        at: None,
                        value: Self::build(value, &key_path.key(key), depth + 1, report),
                    })
                    .collect(),
            ),
        };
        Self { at: None, kind }
    }
}

pub(crate) fn to_map(members: &[JsonMember]) -> Map<String, Value> {
    members.iter().map(|member| (member.key.clone(), member.value.to_value())).collect()
}

/// Parses a number; `2.0` is an integer, as in JSON Schema.
fn parse_number(literal: &str) -> Option<Number> {
    const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;
    let number: Number = serde_json::from_str(literal).ok()?;
    let float = number.as_f64()?;
    if number.is_f64() && float.fract() == 0.0 && float.abs() < MAX_EXACT_INTEGER {
        // Adding zero removes the sign of a negative zero.
        return serde_json::from_str(&format!("{:.0}", float + 0.0)).ok();
    }
    Some(number)
}

/// Parses a text. Reports an error and returns `None` if the text is not valid.
pub(crate) fn parse(text: &str, report: &mut Diagnostics) -> Option<JsonNode> {
    match find_lexical_error(text) {
        Some(LexicalError::UnterminatedString(at)) => {
            report.error(Some(at), "", "this string is not closed on its line");
            hint_curly_quotes(text, report);
            return None;
        }
        Some(LexicalError::CurlyQuote(at)) => {
            report.error(Some(at), "", "a curly quotation mark; JSON needs the straight mark `\"`");
            report.hint("replace every curly quotation mark of the file by `\"`");
            return None;
        }
        None => {}
    }
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let value = match jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &options) {
        Ok(parsed) => parsed.value,
        Err(error) => {
            report.error(Some(error.range().start), "", describe_parse_error(&error));
            hint_curly_quotes(text, report);
            return None;
        }
    };
    let Some(value) = value else {
        report.error(Some(0), "", "the file is empty");
        report.hint("write `{\"servers\": {}}`");
        return None;
    };
    Some(TreeBuilder { text, report }.build_node(&value, &KeyPath::root(), 0))
}

/// An error that the parser reports at a misleading place.
enum LexicalError {
    /// A string without a closing quote on its line; the parser would continue to the next quote.
    UnterminatedString(usize),
    /// A curly quotation mark outside of strings and comments.
    CurlyQuote(usize),
}

/// The quotation marks U+2018 to U+201F, which word processors insert.
fn is_curly_quote(character: char) -> bool {
    ('\u{2018}'..='\u{201f}').contains(&character)
}

/// Adds a hint to a syntax error if the text has curly quotation marks.
fn hint_curly_quotes(text: &str, report: &mut Diagnostics) {
    if text.contains(is_curly_quote) {
        report.hint("the file has curly quotation marks; JSON needs the straight mark `\"`");
    }
}

/// Returns the first lexical error.
fn find_lexical_error(text: &str) -> Option<LexicalError> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        if rest.starts_with(b"//") {
            at += memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        } else if rest.starts_with(b"/*") {
            // Starts after the opening: `/*/` is not closed. The loop increment below skips the
            // last byte.
            at += memchr::memmem::find(&rest[2..], b"*/").map_or(rest.len(), |end| end + 3);
        } else if bytes[at] == b'"' {
            let quote = at;
            at += 1;
            while at < bytes.len() && bytes[at] != b'"' {
                if matches!(bytes[at], b'\n' | b'\r') {
                    return Some(LexicalError::UnterminatedString(quote));
                }
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
        } else if bytes[at] == 0xE2 && text[at..].starts_with(is_curly_quote) {
            return Some(LexicalError::CurlyQuote(at));
        }
        at += 1;
    }
    None
}

struct TreeBuilder<'a> {
    text: &'a str,
    report: &'a mut Diagnostics,
}

impl TreeBuilder<'_> {
    fn build_node(
        &mut self,
        value: &ast::Value<'_>,
        key_path: &KeyPath<'_>,
        depth: usize,
    ) -> JsonNode {
        let at = Some(value.range().start);
        if depth > MAX_DEPTH {
            self.report.error(at, key_path, format!("nested deeper than {MAX_DEPTH} levels"));
            return JsonNode { at, kind: NodeKind::Null };
        }
        let kind = match value {
            ast::Value::NullKeyword(_) => NodeKind::Null,
            ast::Value::BooleanLit(literal) => NodeKind::Bool(literal.value),
            ast::Value::NumberLit(literal) => self.read_number(literal, key_path),
            ast::Value::StringLit(literal) => NodeKind::String(self.read_string(literal, key_path)),
            ast::Value::Array(array) => {
                let items = array.elements.iter().enumerate();
                NodeKind::Array(
                    items
                        .map(|(i, item)| self.build_node(item, &key_path.index(i), depth + 1))
                        .collect(),
                )
            }
            ast::Value::Object(object) => {
                NodeKind::Object(self.build_members(object, key_path, depth))
            }
        };
        JsonNode { at, kind }
    }

    fn build_members(
        &mut self,
        object: &ast::Object<'_>,
        key_path: &KeyPath<'_>,
        depth: usize,
    ) -> Vec<JsonMember> {
        let mut first_seen: HashMap<&str, usize> = HashMap::new();
        let mut members = Vec::with_capacity(object.properties.len());
        for property in &object.properties {
            let key = property.name.as_str();
            let at = property.range.start;
            let key_path = key_path.key(key);
            if let Some(first) = first_seen.get(key) {
                let first = self.report.source().position(Some(*first));
                let noun = if key_path.is_server() { "server name" } else { "key" };
                self.report.error(
                    Some(at),
                    key_path,
                    format!("duplicate {noun}, first at {first}"),
                );
                continue;
            }
            first_seen.insert(key, at);
            if let ast::ObjectPropName::String(literal) = &property.name {
                self.read_string(literal, &key_path);
            }
            let value = self.build_node(&property.value, &key_path, depth + 1);
            members.push(JsonMember {
                key: key.to_owned(),
                source_key: SourceKey::Same,
                at: Some(at),
                value,
            });
        }
        members
    }

    /// Rejects raw control characters, which the parser accepts and JSON forbids.
    fn read_string(&mut self, literal: &ast::StringLit<'_>, key_path: &KeyPath<'_>) -> String {
        let raw = &self.text[literal.range.start..literal.range.end];
        if let Some(at) = raw.bytes().position(|byte| byte < 0x20) {
            let message = "a control character in a string must be escaped";
            self.report.error(Some(literal.range.start + at), key_path, message);
        }
        literal.value.to_string()
    }

    fn read_number(&mut self, literal: &ast::NumberLit<'_>, key_path: &KeyPath<'_>) -> NodeKind {
        if parse_number(literal.value).is_none() {
            self.report.error(Some(literal.range.start), key_path, "the number is out of range");
        }
        NodeKind::Number(literal.value.to_owned())
    }
}

fn describe_parse_error(error: &ParseError) -> &'static str {
    match error.kind() {
        ParseErrorKind::ExpectedComma => "expected a comma",
        ParseErrorKind::ExpectedColonAfterObjectKey => "expected a colon after the key",
        ParseErrorKind::ExpectedObjectValue => "expected a value after the colon",
        ParseErrorKind::ExpectedStringObjectProperty => "a key must be in double quotes",
        ParseErrorKind::UnexpectedTokenInObject => "expected a key in double quotes",
        ParseErrorKind::SingleQuotedStringsNotAllowed => "a string must be in double quotes",
        ParseErrorKind::MultipleRootJsonValues => "text after the end of the configuration",
        ParseErrorKind::UnexpectedCloseBrace => "unexpected `}`",
        ParseErrorKind::UnexpectedCloseBracket => "unexpected `]`",
        ParseErrorKind::UnexpectedColon => "unexpected `:`",
        ParseErrorKind::UnexpectedComma => "unexpected `,`",
        ParseErrorKind::UnexpectedWord => "expected a value; text must be in double quotes",
        ParseErrorKind::UnexpectedToken => "expected a value",
        ParseErrorKind::UnterminatedArray => "missing `]` of this list",
        ParseErrorKind::UnterminatedObject => "missing `}` of this object",
        ParseErrorKind::UnterminatedCommentBlock => "missing `*/` of this comment",
        ParseErrorKind::NestingDepthExceeded => "nested too deeply",
        ParseErrorKind::BareDecimalPointNumbersNotAllowed
        | ParseErrorKind::ExpectedDigit
        | ParseErrorKind::ExpectedDigitFollowingNegativeSign
        | ParseErrorKind::ExpectedPlusMinusOrDigitInNumberLiteral
        | ParseErrorKind::HexadecimalNumbersNotAllowed
        | ParseErrorKind::NonFiniteNumbersNotAllowed
        | ParseErrorKind::UnaryPlusNumbersNotAllowed => "not a JSON number",
        ParseErrorKind::String(ParseStringErrorKind::UnterminatedStringLiteral) => {
            "missing closing double quote"
        }
        ParseErrorKind::String(_) => "invalid JSON escape; write a backslash as `\\\\`",
        // The options above exclude the other kinds; one kind exists only with a feature.
        _ => "not valid JSON",
    }
}
