//! The JSON Schema of a tool's arguments, compiled at its first use.

use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::ArgumentProblem;

/// The JSON Schema of one tool's arguments.
#[derive(Debug)]
pub(crate) struct ArgumentSchema {
    raw: Box<RawValue>,
    compiled: OnceLock<Result<Validator, String>>,
}

impl ArgumentSchema {
    pub(crate) fn new(raw: &RawValue) -> Result<Self, String> {
        Ok(Self { raw: raw.to_owned(), compiled: OnceLock::new() })
    }

    /// Every part of `arguments` that does not fit.
    pub(crate) fn check(&self, arguments: &Value) -> Vec<ArgumentProblem> {
        let compiled = self.compiled.get_or_init(|| {
            let schema = serde_json::from_str(self.raw.get()).map_err(|error| error.to_string())?;
            jsonschema::validator_for(&schema).map_err(|error| error.to_string())
        });
        let validator = match compiled {
            Ok(validator) => validator,
            Err(message) => {
                let message = format!("its schema cannot be used: {message}");
                return vec![ArgumentProblem { pointer: String::new(), message }];
            }
        };
        if validator.is_valid(arguments) {
            return Vec::new();
        }
        let problems = validator.iter_errors(arguments).map(|error| ArgumentProblem {
            pointer: error.instance_path().to_string(),
            message: error.to_string(),
        });
        problems.collect()
    }
}
