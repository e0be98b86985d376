//! Whether the arguments of a call fit the schema of its tool, in words for the model.
//!
//! A schema may come from a stranger. It is compiled at its first use and once, if it is small, its
//! references stay inside it, and what they lead to is bounded (`compile.rs`); it is applied only
//! where a dry run over the arguments shows what that can cost at most (`cost.rs`). Nothing is ever
//! fetched. `format` is an annotation, as in the specification.

mod compile;
mod cost;
mod misspelt;
#[cfg(test)]
mod tests;
mod words;

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use serde_json::{Number, Value};

use self::compile::Compiled;
use crate::call::Call;
use crate::json::Json;
use crate::parse::DEPTH;
use crate::repair::quoted;
use crate::tool::Tools;

/// One part of the arguments that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The JSON pointer of the part; empty for the arguments as a whole. The end of one longer than
    /// a kibibyte is left out.
    pub pointer: String,
    /// What is wrong with it, for the model.
    pub message: String,
}

/// Why it cannot be told whether arguments fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unchecked {
    /// No tool of that name is offered.
    UnknownTool(String),
    /// The schema of the tool cannot be used.
    Schema {
        /// The name of the tool.
        tool: String,
        /// Why, as one sentence.
        reason: String,
    },
    /// The arguments are too large or too deep for the schema of the tool.
    TooCostly {
        /// The name of the tool.
        tool: String,
    },
}

/// The offered tools with what checks their arguments. One is shared by all who need it.
#[derive(Debug, Default)]
pub struct Toolbox {
    tools: Tools,
    checks: HashMap<String, OnceLock<Result<Compiled, String>>>,
}

impl Toolbox {
    /// Takes the tools as they are; no schema is looked at yet.
    pub fn new(tools: Tools) -> Self {
        let checks = tools.iter().map(|tool| (tool.name.clone(), OnceLock::new())).collect();
        Self { tools, checks }
    }

    /// The tools.
    pub fn tools(&self) -> &Tools {
        &self.tools
    }

    /// Every part of the arguments that does not fit, 32 at most; empty if all fits.
    ///
    /// An argument that no property of the schema names, while one that is left out has the same
    /// letters in another case or with other separators, does not fit either, unless the schema says
    /// itself that there may be others.
    ///
    /// # Errors
    ///
    /// Why that cannot be told. It says nothing against the call: who executes it checks as well.
    pub fn violations(&self, call: &Call) -> Result<Vec<Violation>, Unchecked> {
        let unknown = || Unchecked::UnknownTool(call.name.clone());
        let tool = self.tools.get(&call.name).ok_or_else(unknown)?;
        let check = self.checks.get(&call.name).ok_or_else(unknown)?;
        let compiled = check.get_or_init(|| {
            guarded(|| Compiled::new(&tool.input_schema))
                .unwrap_or_else(|| Err("it cannot be compiled".to_owned()))
        });
        let compiled = compiled.as_ref().map_err(|reason| Unchecked::Schema {
            tool: tool.name.clone(),
            reason: reason.clone(),
        })?;
        let costly = || Unchecked::TooCostly { tool: tool.name.clone() };
        if call.arguments.is_deeper(DEPTH) {
            return Err(costly());
        }
        let arguments = value(&call.arguments);
        let found = guarded(|| compiled.violations(&tool.input_schema, &arguments));
        let mut found = found.flatten().ok_or_else(costly)?;
        let left = compile::VIOLATIONS.saturating_sub(found.len());
        found.extend(misspelt::violations(&tool.input_schema, &arguments).into_iter().take(left));
        Ok(found)
    }
}

/// The result of `run`; `None` if it panics. The validator has assertions that some schemas of a
/// stranger's making can fail, and it keeps nothing between runs that could be left half done.
fn guarded<T>(run: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(run)).ok()
}

/// The value as the validator takes it: numbers are rounded to what 64 bits hold.
fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(it) => Value::Bool(*it),
        Json::Number(text) => Value::Number(number(text)),
        Json::String(text) => Value::String(text.clone()),
        Json::Array(items) => Value::Array(items.iter().map(value).collect()),
        Json::Object(members) => {
            Value::Object(members.iter().map(|(key, one)| (key.clone(), value(one))).collect())
        }
    }
}

fn number(text: &str) -> Number {
    text.parse().unwrap_or_else(|_| {
        // Beyond what a float holds; the largest there is fails and fits the same limits.
        let largest = if text.starts_with('-') { f64::MIN } else { f64::MAX };
        Number::from_f64(largest).unwrap_or_else(|| Number::from(0))
    })
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            write!(f, "arguments: {}", self.message)
        } else {
            write!(f, "{}: {}", quoted(&self.pointer), self.message)
        }
    }
}

impl std::error::Error for Unchecked {}

impl fmt::Display for Unchecked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownTool(tool) => write!(f, "there is no tool {}", quoted(tool)),
            Self::Schema { tool, reason } => {
                write!(f, "the input schema of {} cannot be used: {reason}", quoted(tool))
            }
            Self::TooCostly { tool } => write!(
                f,
                "the arguments of {} are too large or too deep to be checked against its schema",
                quoted(tool)
            ),
        }
    }
}
