//! Validation of a call's arguments against the schema of its tool, with messages for the model.
//!
//! `innkeeper-schema` compiles an untrusted schema once, at its first use, and bounds the cost of
//! the schema and of each validation.

#[cfg(test)]
mod tests;
mod unchecked_numbers;
mod unknown_properties;

use std::collections::HashMap;
use std::fmt;

pub use innkeeper_schema::Violation;
use innkeeper_schema::{CheckError, MAX_VIOLATIONS, Schema, SchemaError, parse_number};
use serde_json::Value;

use crate::call::ResolvedCall;
use crate::json::Json;
use crate::parse::MAX_DEPTH;
use crate::repair::quote_backticks;
use crate::tool::Tools;

/// The reason why arguments cannot be validated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotValidated {
    /// No tool has this name.
    UnknownTool(String),
    /// The schema of the tool is unusable.
    UnusableSchema {
        /// Name of the tool.
        tool: String,
        /// Reason, as part of a sentence.
        reason: String,
    },
    /// The arguments are too large or too deep for the tool's schema.
    TooCostly {
        /// Name of the tool.
        tool: String,
    },
}

/// Validator of tool arguments. Share one validator, because compiled schemas are cached.
///
/// # Examples
///
/// ```
/// use innkeeper_toolcall::{Json, ResolvedCall, Tool, ToolValidator, Tools};
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "required": ["path"]});
/// let validator = ToolValidator::new(Tools::from_iter([Tool::new("read", "", schema)]));
/// let arguments = Json::from(&json!({}));
/// let call = ResolvedCall { name: "read".to_owned(), arguments, repairs: Vec::new() };
/// let violations = validator.violations(&call)?;
/// assert_eq!(violations.len(), 1);
/// println!("{}", violations[0]);
/// # Ok::<(), innkeeper_toolcall::NotValidated>(())
/// ```
#[derive(Debug, Default)]
pub struct ToolValidator {
    /// The schemas by the names of their tools.
    schemas: HashMap<String, Schema>,
}

impl ToolValidator {
    /// Creates a validator. Schemas are compiled at their first use.
    pub fn new(tools: Tools) -> Self {
        let schemas =
            tools.into_iter().map(|tool| (tool.name, Schema::from_value(tool.input_schema)));
        Self { schemas: schemas.collect() }
    }

    /// Returns every violation, at most 32; empty if the arguments are valid.
    ///
    /// An unknown argument is also a violation if the schema has a missing property of the same
    /// name in a different case or with different separators, unless the schema explicitly allows
    /// additional properties. Numbers outside the range of a 64-bit float are violations under every
    /// schema; if there are any, the schema is not checked.
    ///
    /// # Errors
    ///
    /// Returns an error if the arguments cannot be validated. The call may still be valid: the
    /// executor of the call validates again.
    pub fn violations(&self, call: &ResolvedCall) -> Result<Vec<Violation>, NotValidated> {
        let tool = &call.name;
        let schema =
            self.schemas.get(tool).ok_or_else(|| NotValidated::UnknownTool(tool.clone()))?;
        if call.arguments.exceeds_depth(MAX_DEPTH) {
            return Err(NotValidated::TooCostly { tool: tool.clone() });
        }
        let Some(arguments) = to_value(&call.arguments) else {
            return Ok(unchecked_numbers::violations(&call.arguments));
        };
        let mut violations = schema
            .violations(&arguments)
            .map_err(|error| NotValidated::from_check_error(tool, error))?;
        let schema =
            schema.to_value().map_err(|reason| NotValidated::unusable_schema(tool, &reason))?;
        let remaining = MAX_VIOLATIONS.saturating_sub(violations.len());
        let unknown = unknown_properties::violations(&schema, &arguments);
        violations.extend(unknown.into_iter().take(remaining));
        Ok(violations)
    }
}

impl NotValidated {
    fn from_check_error(tool: &str, error: CheckError) -> Self {
        match error {
            CheckError::UnusableSchema(reason) => Self::unusable_schema(tool, &reason),
            CheckError::TooDeep | CheckError::TooLarge | CheckError::Failed => {
                Self::TooCostly { tool: tool.to_owned() }
            }
        }
    }

    fn unusable_schema(tool: &str, reason: &SchemaError) -> Self {
        Self::UnusableSchema { tool: tool.to_owned(), reason: reason.to_string() }
    }
}

/// Converts a value for the validator; returns `None` if the validator cannot check a
/// number.
fn to_value(json: &Json) -> Option<Value> {
    Some(match json {
        Json::Null => Value::Null,
        Json::Bool(boolean) => Value::Bool(*boolean),
        Json::Number(text) => Value::Number(parse_number(text)?),
        Json::String(text) => Value::String(text.clone()),
        Json::Array(items) => Value::Array(items.iter().map(to_value).collect::<Option<_>>()?),
        Json::Object(members) => {
            let members =
                members.iter().map(|(key, member)| Some((key.clone(), to_value(member)?)));
            Value::Object(members.collect::<Option<_>>()?)
        }
    })
}

impl std::error::Error for NotValidated {}

impl fmt::Display for NotValidated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownTool(tool) => write!(f, "there is no tool {}", quote_backticks(tool)),
            Self::UnusableSchema { tool, reason } => {
                write!(f, "unusable input schema of {}: {reason}", quote_backticks(tool))
            }
            Self::TooCostly { tool } => write!(
                f,
                "the arguments of {} are too large or too deep to validate",
                quote_backticks(tool)
            ),
        }
    }
}
