//! JSON with comments as a tree that knows its places and sees every duplicate key.

use std::collections::HashMap;

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::errors::{ParseError, ParseErrorKind};
use jsonc_parser::{CollectOptions, ParseOptions, ParseStringErrorKind};
use serde_json::{Map, Number, Value};

use super::source::{Offset, Report};
use super::trail::Trail;

/// How deep objects and lists may be nested; the deepest key that means anything is at 6.
pub const MAX_DEPTH: usize = 64;

/// One value with the place where it begins.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) at: Offset,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Null,
    Bool(bool),
    /// As written, so that `1.10` in an environment value stays `1.10`.
    Number(String),
    Text(String),
    List(Vec<Node>),
    Object(Vec<Member>),
}

/// One key of an object with its value.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) key: String,
    pub(super) written: Written,
    pub(super) at: Offset,
    pub(super) value: Node,
}

/// What stands in the file for a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// The key itself.
    Same,
    /// Another spelling of it.
    As(String),
    /// An element of a list.
    Element(usize),
    /// Nothing: the file does not have this level.
    Absent,
}

impl Member {
    /// The way to this member, in the file's own spelling.
    pub(super) fn trail<'a>(&'a self, up: &'a Trail<'a>) -> Trail<'a> {
        match &self.written {
            Written::Same => up.key(&self.key),
            Written::As(spelling) => up.key(spelling),
            Written::Element(index) => up.index(*index),
            Written::Absent => *up,
        }
    }
}

impl Node {
    pub(super) fn members(&self) -> &[Member] {
        match &self.kind {
            Kind::Object(members) => members,
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::List(_) => &[],
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Member> {
        self.members().iter().find(|member| member.key == key)
    }

    pub(super) fn items(&self) -> &[Self] {
        match &self.kind {
            Kind::List(items) => items,
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::Object(_) => &[],
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::List(_) | Kind::Object(_) => None,
        }
    }

    pub(super) fn number(&self) -> Option<f64> {
        match &self.kind {
            Kind::Number(literal) => literal.parse().ok(),
            Kind::Null | Kind::Bool(_) | Kind::Text(_) | Kind::List(_) | Kind::Object(_) => None,
        }
    }

    pub(super) fn is_object(&self) -> bool {
        matches!(self.kind, Kind::Object(_))
    }

    pub(super) fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(value) => Value::Bool(*value),
            Kind::Number(literal) => number(literal).map_or(Value::Null, Value::Number),
            Kind::Text(text) => Value::String(text.clone()),
            Kind::List(items) => items.iter().map(Self::to_value).collect(),
            Kind::Object(members) => Value::Object(to_map(members)),
        }
    }

    /// The tree of a value that was never a text.
    pub(super) fn of_value(value: &Value, report: &mut Report) -> Self {
        Self::grow(value, &Trail::root(), 0, report)
    }

    fn grow(value: &Value, trail: &Trail<'_>, depth: usize, report: &mut Report) -> Self {
        if depth > MAX_DEPTH {
            report.error(None, trail, format!("nested deeper than {MAX_DEPTH} levels"));
            return Self { at: None, kind: Kind::Null };
        }
        let kind = match value {
            Value::Null => Kind::Null,
            Value::Bool(value) => Kind::Bool(*value),
            Value::Number(number) => Kind::Number(number.to_string()),
            Value::String(text) => Kind::Text(text.clone()),
            Value::Array(items) => {
                let items = items.iter().enumerate();
                Kind::List(
                    items
                        .map(|(i, item)| Self::grow(item, &trail.index(i), depth + 1, report))
                        .collect(),
                )
            }
            Value::Object(map) => {
                let member = |(key, value): (&String, &Value)| Member {
                    key: key.clone(),
                    written: Written::Same,
                    at: None,
                    value: Self::grow(value, &trail.key(key), depth + 1, report),
                };
                Kind::Object(map.iter().map(member).collect())
            }
        };
        Self { at: None, kind }
    }
}

pub(super) fn to_map(members: &[Member]) -> Map<String, Value> {
    members.iter().map(|member| (member.key.clone(), member.value.to_value())).collect()
}

/// A whole number written with a fraction (`2.0`) is a whole number, as JSON Schema has it.
fn number(literal: &str) -> Option<Number> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let number: Number = serde_json::from_str(literal).ok()?;
    let float = number.as_f64()?;
    if number.is_f64() && float.fract() == 0.0 && float.abs() < EXACT {
        // Adding nothing takes the sign off a zero.
        return serde_json::from_str(&format!("{:.0}", float + 0.0)).ok();
    }
    Some(number)
}

/// Reads a text. What cannot be read at all leaves an error and no tree.
pub(super) fn parse(text: &str, report: &mut Report) -> Option<Node> {
    if let Some(quote) = open_string(text) {
        report.error(Some(quote), "", "the string that begins here is not closed in its line");
        return None;
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
            report.error(Some(error.range().start), "", wording(&error));
            return None;
        }
    };
    let Some(value) = value else {
        report.error(Some(0), "", "the file is empty");
        report.hint("write `{\"servers\": {}}`");
        return None;
    };
    Some(Builder { text, report }.node(&value, &Trail::root(), 0))
}

/// The first string that runs into the end of its line: a quote was forgotten. The parser would
/// go on to the next quote and complain about what it finds there.
fn open_string(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        if rest.starts_with(b"//") {
            at += memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        } else if rest.starts_with(b"/*") {
            // Behind the opening: `/*/` is not closed. The last byte is stepped over below.
            at += memchr::memmem::find(&rest[2..], b"*/").map_or(rest.len(), |end| end + 3);
        } else if bytes[at] == b'"' {
            let quote = at;
            at += 1;
            while at < bytes.len() && bytes[at] != b'"' {
                if matches!(bytes[at], b'\n' | b'\r') {
                    return Some(quote);
                }
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
        }
        at += 1;
    }
    None
}

struct Builder<'a> {
    text: &'a str,
    report: &'a mut Report,
}

impl Builder<'_> {
    fn node(&mut self, value: &ast::Value<'_>, trail: &Trail<'_>, depth: usize) -> Node {
        let at = Some(value.range().start);
        if depth > MAX_DEPTH {
            self.report.error(at, trail, format!("nested deeper than {MAX_DEPTH} levels"));
            return Node { at, kind: Kind::Null };
        }
        let kind = match value {
            ast::Value::NullKeyword(_) => Kind::Null,
            ast::Value::BooleanLit(literal) => Kind::Bool(literal.value),
            ast::Value::NumberLit(literal) => self.number(literal, trail),
            ast::Value::StringLit(literal) => Kind::Text(self.text(literal, trail)),
            ast::Value::Array(array) => {
                let items = array.elements.iter().enumerate();
                Kind::List(
                    items.map(|(i, item)| self.node(item, &trail.index(i), depth + 1)).collect(),
                )
            }
            ast::Value::Object(object) => Kind::Object(self.members(object, trail, depth)),
        };
        Node { at, kind }
    }

    fn members(
        &mut self,
        object: &ast::Object<'_>,
        trail: &Trail<'_>,
        depth: usize,
    ) -> Vec<Member> {
        let mut seen: HashMap<&str, usize> = HashMap::new();
        let mut members = Vec::with_capacity(object.properties.len());
        for property in &object.properties {
            let key = property.name.as_str();
            let at = property.range.start;
            let trail = trail.key(key);
            if let Some(first) = seen.get(key) {
                let first = self.report.source().position(Some(*first));
                let what = if trail.is_server() { "server name" } else { "key" };
                self.report.error(Some(at), trail, format!("duplicate {what}, first at {first}"));
                continue;
            }
            seen.insert(key, at);
            if let ast::ObjectPropName::String(literal) = &property.name {
                self.text(literal, &trail);
            }
            let value = self.node(&property.value, &trail, depth + 1);
            members.push(Member {
                key: key.to_owned(),
                written: Written::Same,
                at: Some(at),
                value,
            });
        }
        members
    }

    /// The parser lets raw control characters pass, which JSON does not.
    fn text(&mut self, literal: &ast::StringLit<'_>, trail: &Trail<'_>) -> String {
        let raw = &self.text[literal.range.start..literal.range.end];
        if let Some(at) = raw.bytes().position(|byte| byte < 0x20) {
            let message = "a control character in a string must be written as an escape";
            self.report.error(Some(literal.range.start + at), trail, message);
        }
        literal.value.to_string()
    }

    fn number(&mut self, literal: &ast::NumberLit<'_>, trail: &Trail<'_>) -> Kind {
        if number(literal.value).is_none() {
            self.report.error(Some(literal.range.start), trail, "the number is out of range");
        }
        Kind::Number(literal.value.to_owned())
    }
}

fn wording(error: &ParseError) -> &'static str {
    match error.kind() {
        ParseErrorKind::ExpectedComma => "expected a comma",
        ParseErrorKind::ExpectedColonAfterObjectKey => "expected a colon after the key",
        ParseErrorKind::ExpectedObjectValue => "expected a value after the colon",
        ParseErrorKind::ExpectedStringObjectProperty => "a key must stand in double quotes",
        ParseErrorKind::UnexpectedTokenInObject => "expected a key in double quotes",
        ParseErrorKind::SingleQuotedStringsNotAllowed => "a string must stand in double quotes",
        ParseErrorKind::MultipleRootJsonValues => "text after the end of the configuration",
        ParseErrorKind::UnexpectedCloseBrace => "unexpected `}`",
        ParseErrorKind::UnexpectedCloseBracket => "unexpected `]`",
        ParseErrorKind::UnexpectedColon => "unexpected `:`",
        ParseErrorKind::UnexpectedComma => "unexpected `,`",
        ParseErrorKind::UnexpectedWord => "expected a value; text must stand in double quotes",
        ParseErrorKind::UnexpectedToken => "expected a value",
        ParseErrorKind::UnterminatedArray => "the list that begins here is not closed with `]`",
        ParseErrorKind::UnterminatedObject => "the object that begins here is not closed with `}`",
        ParseErrorKind::UnterminatedCommentBlock => "the comment is not closed with `*/`",
        ParseErrorKind::NestingDepthExceeded => "nested too deep",
        ParseErrorKind::BareDecimalPointNumbersNotAllowed
        | ParseErrorKind::ExpectedDigit
        | ParseErrorKind::ExpectedDigitFollowingNegativeSign
        | ParseErrorKind::ExpectedPlusMinusOrDigitInNumberLiteral
        | ParseErrorKind::HexadecimalNumbersNotAllowed
        | ParseErrorKind::NonFiniteNumbersNotAllowed
        | ParseErrorKind::UnaryPlusNumbersNotAllowed => "not a JSON number",
        ParseErrorKind::String(ParseStringErrorKind::UnterminatedStringLiteral) => {
            "the string is not closed with a double quote"
        }
        ParseErrorKind::String(_) => "not a JSON escape; a backslash is written `\\\\`",
        // The rest cannot be met with the options above; one kind exists with a feature only.
        _ => "not valid JSON",
    }
}
