//! A tool call with streamed arguments.
//!
//! Vertex AI streams arguments value by value on request. This crate does not request streamed
//! arguments, but a proxy may.

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::provider::codec::{ApiError, MAX_CONTENT_PARTS, ObjectView};

/// Maximum nesting depth of an argument, the limit of this crate's JSON parser.
const MAX_ARGUMENT_DEPTH: usize = 100;

/// A tool call received so far.
pub(super) struct PartialToolCall {
    pub(super) id: String,
    pub(super) name: String,
    arguments: Value,
    signature: Option<String>,
}

enum PathSegment {
    Name(String),
    Index(usize),
}

impl PartialToolCall {
    pub(super) fn new(part: &ObjectView<'_>, call: &ObjectView<'_>) -> Self {
        Self {
            id: call.text("id").unwrap_or_default(),
            name: call.text("name").unwrap_or_default(),
            arguments: Value::Object(Map::new()),
            signature: part.text("thoughtSignature"),
        }
    }

    /// Adds the argument values of one chunk.
    pub(super) fn feed_arguments(&mut self, call: &ObjectView<'_>) -> Result<(), ApiError> {
        for argument in call.bounded_list("partialArgs")? {
            let argument = ObjectView::from_raw(argument).unwrap_or_default();
            let path = argument.text("jsonPath").unwrap_or_default();
            let slot = value_at_path_mut(&mut self.arguments, &path).ok_or_else(|| {
                ApiError::invalid_response(format!("invalid argument path `{path}` in a tool call"))
            })?;
            match (&mut *slot, argument.text("stringValue")) {
                (Value::String(before), Some(more)) => before.push_str(&more),
                (_, Some(text)) => *slot = Value::String(text),
                (_, None) => {
                    let value = argument.get("numberValue").or_else(|| argument.get("boolValue"));
                    let value = value.and_then(|value| serde_json::from_str(value.get()).ok());
                    *slot = value.unwrap_or_default();
                }
            }
        }
        Ok(())
    }

    pub(super) fn arguments(&self) -> String {
        self.arguments.to_string()
    }

    /// Returns the part of an unstreamed call.
    pub(super) fn to_raw_part(&self) -> Option<Box<RawValue>> {
        let mut call = json!({"name": self.name, "args": self.arguments});
        if !self.id.is_empty() {
            call["id"] = Value::from(self.id.as_str());
        }
        let mut part = json!({"functionCall": call});
        if let Some(signature) = &self.signature {
            part["thoughtSignature"] = Value::from(signature.as_str());
        }
        to_raw_value(&part).ok()
    }
}

/// Returns the value at a path in the arguments and creates missing values.
fn value_at_path_mut<'v>(arguments: &'v mut Value, path: &str) -> Option<&'v mut Value> {
    let mut at = arguments;
    let segments = parse_json_path(path).filter(|path_segments| {
        !path_segments.is_empty() && path_segments.len() <= MAX_ARGUMENT_DEPTH
    })?;
    for segment in segments {
        at = match segment {
            PathSegment::Name(name) => {
                if !at.is_object() {
                    *at = Value::Object(Map::new());
                }
                at.as_object_mut()?.entry(name).or_insert(Value::Null)
            }
            PathSegment::Index(index) => {
                if !at.is_array() {
                    *at = Value::Array(Vec::new());
                }
                let items = at.as_array_mut()?;
                if index == items.len() && index < MAX_CONTENT_PARTS {
                    items.push(Value::Null);
                }
                items.get_mut(index)?
            }
        };
    }
    Some(at)
}

/// Parses a JSON Path that names one value.
fn parse_json_path(path: &str) -> Option<Vec<PathSegment>> {
    let mut rest = path.strip_prefix('$')?;
    let mut segments = Vec::new();
    while !rest.is_empty() {
        let segment = if let Some(name) = rest.strip_prefix('.') {
            let end = name.find(['.', '[']).unwrap_or(name.len());
            rest = &name[end..];
            PathSegment::Name(name.get(..end).filter(|name| !name.is_empty())?.to_owned())
        } else {
            let inner = rest.strip_prefix('[')?;
            let quote = inner.chars().next().filter(|character| matches!(character, '\'' | '"'));
            let (inner, after_bracket) = match quote {
                Some(quote) => inner[1..].split_once(&format!("{quote}]"))?,
                None => inner.split_once(']')?,
            };
            rest = after_bracket;
            match quote {
                Some(_) => PathSegment::Name(inner.to_owned()),
                None => PathSegment::Index(inner.parse().ok()?),
            }
        };
        segments.push(segment);
    }
    Some(segments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments_after(arguments: &[&str]) -> Result<String, ApiError> {
        let mut call = PartialToolCall::new(&ObjectView::default(), &ObjectView::default());
        for argument in arguments {
            let text = format!(r#"{{"partialArgs":[{argument}]}}"#);
            call.feed_arguments(&ObjectView::parse(&text).unwrap())?;
        }
        Ok(call.arguments())
    }

    #[test]
    fn values_come_to_the_place_that_their_path_names() {
        let result = arguments_after(&[
            r#"{"jsonPath":"$.city","stringValue":"Par","willContinue":true}"#,
            r#"{"jsonPath":"$.city","stringValue":"is"}"#,
            r#"{"jsonPath":"$.days[0].n","numberValue":1.5}"#,
            r#"{"jsonPath":"$.days[0]['a.b']","boolValue":true}"#,
            r#"{"jsonPath":"$.days[1]","nullValue":"NULL_VALUE"}"#,
            r#"{"jsonPath":"$[\"x\"]","numberValue":3}"#,
        ]);
        let expected = r#"{"city":"Paris","days":[{"n":1.5,"a.b":true},null],"x":3}"#;
        assert_eq!(result.unwrap(), expected);
    }

    #[test]
    fn an_invalid_path_is_an_error() {
        let nested_path = |depth: usize| {
            let path = ".a".repeat(depth);
            arguments_after(&[&format!(r#"{{"jsonPath":"${path}","stringValue":"x"}}"#)])
        };
        assert!(
            nested_path(MAX_ARGUMENT_DEPTH).is_ok() && nested_path(MAX_ARGUMENT_DEPTH + 1).is_err()
        );
        for path in
            ["", "$", "a", "$a", "$.", "$..a", "$[", "$[x]", "$[1]", "$['a", "$['a'", "$[']"]
        {
            let argument = format!(r#"{{"jsonPath":"{path}","stringValue":"x"}}"#);
            assert!(arguments_after(&[&argument]).is_err(), "{path}");
        }
    }
}
