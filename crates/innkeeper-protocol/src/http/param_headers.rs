//! Arguments that a modern HTTP call repeats in headers (`x-mcp-header`).

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{PARAM_PREFIX, encode_value, schema};
use crate::skim;

/// Maximum number of repeated arguments of one tool: servers commonly accept a hundred headers in
/// total.
pub const MAX_PARAM_HEADERS: usize = 64;

/// Maximum length of an annotated header name in bytes: names in use have one or two words.
pub const MAX_PARAM_NAME_BYTES: usize = 128;

/// Largest integer that every JSON implementation represents exactly.
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// The arguments of a tool that are repeated in headers, from the `x-mcp-header` annotations
/// (2026-07-28, Streamable HTTP, Custom Headers from Tool Parameters).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParamHeaders {
    pub(super) params: Vec<ParamHeader>,
}

/// An argument and its header name without the prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ParamHeader {
    pub(super) name: String,
    pub(super) path: Vec<String>,
}

/// An invalid `x-mcp-header` annotation. A client must exclude the tool from the list over HTTP.
///
/// The quoted parts of the schema are safe to display.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParamHeaderError {
    /// The annotated name is not a string.
    #[error("`x-mcp-header` of argument `{property}` is not a string")]
    NotString {
        /// The argument.
        property: String,
    },
    /// The name is not a valid part of a header name, or is longer than [`MAX_PARAM_NAME_BYTES`].
    #[error("`x-mcp-header` of argument `{property}` is not a valid header name: `{name}`")]
    InvalidName {
        /// The argument.
        property: String,
        /// The annotated name.
        name: String,
    },
    /// Two arguments have the same name, ignoring case.
    #[error("`x-mcp-header` of argument `{property}` is used by another argument: `{name}`")]
    Duplicate {
        /// The second argument.
        property: String,
        /// The annotated name.
        name: String,
    },
    /// The declared type of the argument is not string, integer or boolean.
    #[error(
        "`x-mcp-header` requires a string, an integer or a boolean; the type of argument \
         `{property}` is {found}"
    )]
    NotPrimitive {
        /// The argument.
        property: String,
        /// The raw `type` of the argument's schema.
        found: String,
    },
    /// The annotated property is not reachable through `properties` alone.
    #[error(
        "the property with `x-mcp-header` {annotation} is not reachable through `properties` alone"
    )]
    NotStaticPath {
        /// The raw annotation.
        annotation: String,
    },
    /// The schema has more than [`MAX_PARAM_HEADERS`] annotations.
    #[error("more than {MAX_PARAM_HEADERS} arguments have an `x-mcp-header`")]
    TooMany,
    /// The nesting of the schema exceeds the limit for messages.
    #[error("the schema is nested too deeply to search for `x-mcp-header`")]
    TooDeep,
}

impl ParamHeaders {
    /// Reads the annotations of a tool's `inputSchema`.
    ///
    /// # Errors
    ///
    /// Returns an error if an annotation violates the specification or a limit of this module.
    pub fn from_schema(input_schema: &RawValue) -> Result<Self, ParamHeaderError> {
        Ok(Self { params: schema::find_annotated_params(input_schema.get())? })
    }

    /// Whether no argument is repeated in a header.
    pub fn is_empty(&self) -> bool {
        self.params.is_empty()
    }

    /// Returns the headers of a call with these arguments, a JSON object: full names and encoded
    /// values. An integer keeps all its digits.
    ///
    /// An argument has no header if it is missing or `null`, or if it is an object or an array
    /// despite its declared type.
    pub fn for_arguments(&self, arguments: &RawValue) -> Vec<(String, String)> {
        self.params
            .iter()
            .filter_map(|param| {
                let value = param
                    .path
                    .iter()
                    .try_fold(arguments.get(), |object, key| skim::member(object, key))?;
                let value = encode_value(&header_value(value)?).into_owned();
                Some((format!("{PARAM_PREFIX}{}", param.name), value))
            })
            .collect()
    }
}

/// Formats a JSON value for a header.
pub(super) fn header_value(value: &str) -> Option<Cow<'_, str>> {
    match value.as_bytes().first()? {
        b'"' => serde_json::from_str::<String>(value).ok().map(Cow::Owned),
        b't' | b'f' => Some(Cow::Borrowed(value)),
        b'-' | b'0'..=b'9' => Some(number_text(value)),
        _ => None,
    }
}

/// JSON Schema treats `42.0` as an integer, and the decimal form of that integer is `42`.
pub(super) fn number_text(number: &str) -> Cow<'_, str> {
    let is_integer = number.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit());
    match number.parse::<f64>() {
        Ok(float) if !is_integer && float.fract() == 0.0 && float.abs() <= MAX_SAFE_INTEGER => {
            Cow::Owned((float as i64).to_string())
        }
        _ => Cow::Borrowed(number),
    }
}
