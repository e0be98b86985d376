//! A tool call with streamed arguments.
//!
//! Vertex AI streams arguments value by value on request. This crate does not request streamed
//! arguments, but a proxy may.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use innkeeper_toolcall::Json;
use serde::Serialize;
use serde_json::Number;
use serde_json::value::{RawValue, to_raw_value};

use crate::provider::codec::{ApiError, MAX_CONTENT_PARTS, ObjectView};

/// Maximum nesting depth of an argument, the limit of this crate's JSON parser.
const MAX_ARGUMENT_DEPTH: usize = 100;

/// A tool call received so far.
pub(super) struct PartialToolCall {
    pub(super) id: String,
    pub(super) name: String,
    arguments: PartialValue,
    signature: Option<String>,
}

/// An argument received so far.
#[derive(Default)]
enum PartialValue {
    #[default]
    Missing,
    /// A string that the next chunk may continue.
    OpenString(String),
    /// A complete string, number, boolean or `null`.
    Complete(Json),
    Array(Vec<Self>),
    Object(PartialMembers),
}

/// The members of an object in the order of their arrival.
#[derive(Default)]
struct PartialMembers {
    values: Vec<(String, PartialValue)>,
    /// The indexes of `values` by name.
    indexes: HashMap<String, usize>,
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
            arguments: PartialValue::Object(PartialMembers::default()),
            signature: part.text("thoughtSignature"),
        }
    }

    /// Adds the argument values of one chunk.
    ///
    /// # Errors
    ///
    /// A path is invalid or already has a complete value, or a value is unreadable.
    pub(super) fn feed_arguments(&mut self, call: &ObjectView<'_>) -> Result<(), ApiError> {
        for argument in call.bounded_list("partialArgs")? {
            let argument = ObjectView::from_raw(argument).unwrap_or_default();
            let path = argument.text("jsonPath").unwrap_or_default();
            let error = |problem| {
                let message = format!("{problem} `{path}` in a tool call");
                ApiError::invalid_response(message)
            };
            let slot = value_at_path_mut(&mut self.arguments, &path)
                .ok_or_else(|| error("invalid argument path"))?;
            if !slot.feed(&argument) {
                return Err(error("unreadable or repeated value of the argument"));
            }
        }
        Ok(())
    }

    pub(super) fn arguments(&self) -> String {
        self.arguments.to_json().to_string()
    }

    /// Returns the part of an unstreamed call.
    pub(super) fn to_raw_part(&self) -> Option<Box<RawValue>> {
        let function_call = FunctionCall {
            name: &self.name,
            args: self.arguments.to_json(),
            id: Some(self.id.as_str()).filter(|id| !id.is_empty()),
        };
        to_raw_value(&FunctionCallPart {
            function_call,
            thought_signature: self.signature.as_deref(),
        })
        .ok()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FunctionCallPart<'a> {
    function_call: FunctionCall<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    name: &'a str,
    args: Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
}

impl PartialValue {
    /// Adds the value of one chunk. Returns whether the value is readable and continues this value.
    fn feed(&mut self, argument: &ObjectView<'_>) -> bool {
        let will_continue = argument.is_true("willContinue");
        let has_value =
            argument.iter().any(|(name, _)| !matches!(name, "jsonPath" | "willContinue"));
        let before = std::mem::take(self);
        *self = match (before, argument.text("stringValue"), parse_scalar(argument)) {
            (Self::Missing, None, Some(scalar)) => Self::Complete(scalar),
            (Self::Missing, None, None) if will_continue && !has_value => Self::Missing,
            (Self::Missing, Some(text), None) => Self::from_text(text, will_continue),
            (Self::OpenString(text), None, None) if !has_value => {
                Self::from_text(text, will_continue)
            }
            (Self::OpenString(text), Some(more), None) => {
                Self::from_text(text + &more, will_continue)
            }
            _ => return false,
        };
        true
    }

    fn from_text(text: String, will_continue: bool) -> Self {
        if will_continue { Self::OpenString(text) } else { Self::Complete(Json::String(text)) }
    }

    /// Returns the member `name`, which is created if it is missing; `None` if the value is not an
    /// object.
    fn member_mut(&mut self, name: String) -> Option<&mut Self> {
        if matches!(self, Self::Missing) {
            *self = Self::Object(PartialMembers::default());
        }
        let Self::Object(PartialMembers { values, indexes }) = self else { return None };
        let index = *indexes.entry(name).or_insert_with_key(|name| {
            values.push((name.clone(), Self::Missing));
            values.len() - 1
        });
        values.get_mut(index).map(|(_, value)| value)
    }

    /// Returns the item at `index`, which is created if it is the next one; `None` if the value is
    /// not an array.
    fn item_mut(&mut self, index: usize) -> Option<&mut Self> {
        if matches!(self, Self::Missing) {
            *self = Self::Array(Vec::new());
        }
        let Self::Array(items) = self else { return None };
        if index == items.len() && index < MAX_CONTENT_PARTS {
            items.push(Self::Missing);
        }
        items.get_mut(index)
    }

    fn to_json(&self) -> Json {
        match self {
            Self::Missing => Json::Null,
            Self::OpenString(text) => Json::String(text.clone()),
            Self::Complete(value) => value.clone(),
            Self::Array(items) => Json::Array(items.iter().map(Self::to_json).collect()),
            Self::Object(members) => {
                let members = members.values.iter();
                Json::Object(members.map(|(name, value)| (name.clone(), value.to_json())).collect())
            }
        }
    }
}

/// Returns a number with the digits of the response, a boolean or `null`; `None` if there is none,
/// or a number outside the range of a 64-bit float.
fn parse_scalar(argument: &ObjectView<'_>) -> Option<Json> {
    if let Some(number) = argument.get("numberValue") {
        let number = number.get();
        return serde_json::from_str::<Number>(number)
            .ok()
            .map(|_| Json::Number(number.to_owned()));
    }
    if let Some(boolean) = argument.get("boolValue") {
        return serde_json::from_str(boolean.get()).ok().map(Json::Bool);
    }
    // The view does not return a field that is `null`.
    argument.iter().any(|(name, _)| name == "nullValue").then_some(Json::Null)
}

/// Returns the value at a path in the arguments and creates missing values.
fn value_at_path_mut<'v>(
    arguments: &'v mut PartialValue,
    path: &str,
) -> Option<&'v mut PartialValue> {
    let segments = parse_json_path(path).filter(|path_segments| {
        !path_segments.is_empty() && path_segments.len() <= MAX_ARGUMENT_DEPTH
    })?;
    segments.into_iter().try_fold(arguments, |value, segment| match segment {
        PathSegment::Name(name) => value.member_mut(name),
        PathSegment::Index(index) => value.item_mut(index),
    })
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
