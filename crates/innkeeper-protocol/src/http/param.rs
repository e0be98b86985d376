//! Arguments that a modern call over HTTP repeats in headers, because the tool's schema says so.

use serde_json::Value;
use serde_json::value::RawValue;

use super::{PARAM_PREFIX, encode_value, schema};

/// The most arguments of one tool that are repeated: servers commonly take a hundred headers in all.
pub const PARAM_LIMIT: usize = 64;

/// The longest name that an annotation may give, in bytes: names in use have a word or two.
pub const PARAM_NAME_LIMIT: usize = 128;

/// A whole number beyond this is not written as one by every program.
const SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// Which arguments of a tool are repeated in headers: its `x-mcp-header` annotations (2026-07-28,
/// Streamable HTTP, Custom Headers from Tool Parameters).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParamHeaders {
    params: Vec<Param>,
}

/// One argument and the name it has as a header, without the prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Param {
    pub(super) name: String,
    pub(super) path: Vec<String>,
}

/// An annotation that no client may follow: over HTTP, the tool has to be left out of the list.
///
/// What it quotes of the schema is safe to show.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParamHeaderError {
    /// The name is not text.
    #[error("`x-mcp-header` of argument `{property}` is not a string")]
    NotText {
        /// The argument.
        property: String,
    },
    /// The name cannot be part of a header's name, or is longer than [`PARAM_NAME_LIMIT`].
    #[error("`x-mcp-header` of argument `{property}` cannot name a header: `{name}`")]
    NotAName {
        /// The argument.
        property: String,
        /// The name.
        name: String,
    },
    /// Two arguments have names that differ in case at most.
    #[error("`x-mcp-header` of argument `{property}` is taken by another argument: `{name}`")]
    Twice {
        /// The second of the two.
        property: String,
        /// Its name.
        name: String,
    },
    /// The argument is declared to be something else than a string, an integer or a boolean.
    #[error(
        "`x-mcp-header` is for strings, integers and booleans, and the type of argument \
         `{property}` is {found}"
    )]
    NotPrimitive {
        /// The argument.
        property: String,
        /// The raw `type` of its schema.
        found: String,
    },
    /// The annotation is not on a property that is reached through properties alone.
    #[error("`x-mcp-header` with {annotation} is not on a property that always has the same path")]
    OutOfReach {
        /// The raw annotation.
        annotation: String,
    },
    /// There are more than [`PARAM_LIMIT`].
    #[error("more than {PARAM_LIMIT} arguments have an `x-mcp-header`")]
    TooMany,
    /// The schema nests deeper than a message may.
    #[error("the schema nests too deep to look for `x-mcp-header`")]
    TooDeep,
}

impl ParamHeaders {
    /// Reads the annotations of a tool's `inputSchema`.
    ///
    /// # Errors
    ///
    /// If one of them is against the rules of the specification or beyond the limits here.
    pub fn read(input_schema: &RawValue) -> Result<Self, ParamHeaderError> {
        Ok(Self { params: schema::annotated(input_schema.get())? })
    }

    /// Whether no argument is repeated.
    pub fn is_empty(&self) -> bool {
        self.params.is_empty()
    }

    /// The headers of a call with these arguments: full names and encoded values.
    ///
    /// An argument that is missing or `null` has none, and neither has one that is an object or an
    /// array against its declared type.
    pub fn of(&self, arguments: &Value) -> Vec<(String, String)> {
        let header = |param: &Param| {
            let value = param.path.iter().try_fold(arguments, |at, step| at.get(step))?;
            let value = encode_value(&written(value)?).into_owned();
            Some((format!("{PARAM_PREFIX}{}", param.name), value))
        };
        self.params.iter().filter_map(header).collect()
    }
}

/// A value as a header says it.
fn written(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => match number.as_f64() {
            // `42.0` is an integer in JSON Schema, and its decimal form is `42`.
            Some(float)
                if number.is_f64() && float.fract() == 0.0 && float.abs() <= SAFE_INTEGER =>
            {
                Some((float as i64).to_string())
            }
            _ => Some(number.to_string()),
        },
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
