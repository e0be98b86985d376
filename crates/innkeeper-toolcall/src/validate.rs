//! Validation of a call's arguments against the schema of its tool, with messages for the model.
//!
//! A schema may be untrusted. The validator compiles a schema once, at its first use. The schema
//! must be small, its references must stay inside the schema, and their expanded size is bounded
//! (`compile.rs`). Before validation, an estimate bounds the cost for the arguments (`cost.rs`).
//! The validator fetches nothing. `format` is an annotation, as in the JSON Schema specification.

mod compile;
mod cost;
mod messages;
#[cfg(test)]
mod tests;
mod unknown_properties;

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use serde_json::{Number, Value};

use self::compile::CompiledSchema;
use crate::call::ResolvedCall;
use crate::json::Json;
use crate::parse::MAX_DEPTH;
use crate::repair::quote_backticks;
use crate::tool::Tools;

/// A part of the arguments that violates the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// JSON pointer of the part; empty for the arguments as a whole. A pointer is truncated at 1
    /// KiB.
    pub pointer: String,
    /// Description of the violation for the model.
    pub message: String,
}

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
    tools: Tools,
    compiled_schemas: HashMap<String, OnceLock<Result<CompiledSchema, String>>>,
}

impl ToolValidator {
    /// Creates a validator. Schemas are compiled at their first use.
    pub fn new(tools: Tools) -> Self {
        let compiled_schemas =
            tools.iter().map(|tool| (tool.name.clone(), OnceLock::new())).collect();
        Self { tools, compiled_schemas }
    }

    /// Returns the tools.
    pub fn tools(&self) -> &Tools {
        &self.tools
    }

    /// Returns every violation, at most 32; empty if the arguments are valid.
    ///
    /// An unknown argument is also a violation if the schema has a missing property of the same
    /// name in a different case or with different separators, unless the schema explicitly allows
    /// additional properties.
    ///
    /// # Errors
    ///
    /// Returns an error if the arguments cannot be validated. The call may still be valid: the
    /// executor of the call validates again.
    pub fn violations(&self, call: &ResolvedCall) -> Result<Vec<Violation>, NotValidated> {
        let unknown = || NotValidated::UnknownTool(call.name.clone());
        let tool = self.tools.get(&call.name).ok_or_else(unknown)?;
        let check = self.compiled_schemas.get(&call.name).ok_or_else(unknown)?;
        let compiled = check.get_or_init(|| {
            catch_panic(|| CompiledSchema::new(&tool.input_schema))
                .unwrap_or_else(|| Err("compilation failed".to_owned()))
        });
        let compiled = compiled.as_ref().map_err(|reason| NotValidated::UnusableSchema {
            tool: tool.name.clone(),
            reason: reason.clone(),
        })?;
        let costly = || NotValidated::TooCostly { tool: tool.name.clone() };
        if call.arguments.exceeds_depth(MAX_DEPTH) {
            return Err(costly());
        }
        let arguments = to_value(&call.arguments);
        let result = catch_panic(|| compiled.violations(&tool.input_schema, &arguments));
        let mut all = result.flatten().ok_or_else(costly)?;
        let remaining = compile::MAX_VIOLATIONS.saturating_sub(all.len());
        all.extend(
            unknown_properties::violations(&tool.input_schema, &arguments)
                .into_iter()
                .take(remaining),
        );
        Ok(all)
    }
}

/// Returns the result of `run`, or `None` if `run` panics. The validator has assertions that
/// crafted schemas can violate; the validator has no state that a panic could corrupt.
fn catch_panic<T>(run: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(run)).ok()
}

/// Converts a value for the validator; numbers are rounded to 64 bits.
fn to_value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(boolean) => Value::Bool(*boolean),
        Json::Number(text) => Value::Number(to_number(text)),
        Json::String(text) => Value::String(text.clone()),
        Json::Array(items) => Value::Array(items.iter().map(to_value).collect()),
        Json::Object(members) => Value::Object(
            members.iter().map(|(key, member)| (key.clone(), to_value(member))).collect(),
        ),
    }
}

fn to_number(text: &str) -> Number {
    text.parse().unwrap_or_else(|_| {
        // Outside the range of a float, the largest float violates and satisfies the same limits.
        let largest = if text.starts_with('-') { f64::MIN } else { f64::MAX };
        Number::from_f64(largest).unwrap_or_else(|| Number::from(0))
    })
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            write!(f, "arguments: {}", self.message)
        } else {
            write!(f, "{}: {}", quote_backticks(&self.pointer), self.message)
        }
    }
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
