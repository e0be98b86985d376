//! A schema that is compiled at its first use.

use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::compiled::{CompiledSchema, SchemaOutline};
use crate::error::{CheckError, SchemaError};
use crate::schema_size;
use crate::source::SchemaSource;
use crate::violation::Violation;

/// A JSON Schema from an untrusted source, compiled once at the first use.
pub struct Schema {
    source: SchemaSource,
    compiled: OnceLock<Result<CompiledSchema, SchemaError>>,
}

impl Schema {
    /// Creates a schema from its text, which takes less memory than a value.
    pub fn from_text(text: Box<RawValue>) -> Self {
        Self { source: SchemaSource::Text(text), compiled: OnceLock::new() }
    }

    /// Creates a schema from a value.
    pub fn from_value(schema: Value) -> Self {
        Self { source: SchemaSource::Value(schema), compiled: OnceLock::new() }
    }

    /// Returns the schema as a value.
    ///
    /// # Errors
    ///
    /// Returns an error if the schema was created from a text that is too long or invalid.
    pub fn to_value(&self) -> Result<Cow<'_, Value>, SchemaError> {
        self.source.to_value()
    }

    /// Checks the limits of the schema without compiling the schema.
    ///
    /// # Errors
    ///
    /// Returns an error if the schema is too large or too costly, has references that lead out of
    /// the schema, or has an unknown dialect. A schema within the limits may still fail to compile.
    pub fn check_limits(&self) -> Result<(), SchemaError> {
        match &self.source {
            SchemaSource::Text(text) if schema_size::is_certainly_small(text.get()) => Ok(()),
            source => SchemaOutline::new(&*source.to_value()?).map(drop),
        }
    }

    /// Returns why no value can be checked, if the schema does not compile.
    pub fn unusable_reason(&self) -> Option<&SchemaError> {
        self.compiled().as_ref().err()
    }

    /// Returns the parts of `value` that violate the schema, sorted by pointer, at most 32; empty if
    /// the value is valid.
    ///
    /// # Errors
    ///
    /// Returns an error if the schema is unusable, or if the value is too large or too deep for the
    /// schema.
    pub fn violations(&self, value: &Value) -> Result<Vec<Violation>, CheckError> {
        self.with_compiled(|compiled| compiled.violations(&self.source, value))
    }

    /// Returns one violation of `value`, or `None` if the value is valid. Takes less memory than
    /// [`violations`](Self::violations) for a large value.
    ///
    /// # Errors
    ///
    /// Returns an error if the schema is unusable, or if the value is too large or too deep for the
    /// schema.
    pub fn first_violation(&self, value: &Value) -> Result<Option<Violation>, CheckError> {
        self.with_compiled(|compiled| compiled.first_violation(&self.source, value))
    }

    fn with_compiled<T>(
        &self,
        check: impl FnOnce(&CompiledSchema) -> Result<T, CheckError>,
    ) -> Result<T, CheckError> {
        let compiled = self
            .compiled()
            .as_ref()
            .map_err(|reason| CheckError::UnusableSchema(reason.clone()))?;
        catch_panic(|| check(compiled)).unwrap_or(Err(CheckError::Failed))
    }

    fn compiled(&self) -> &Result<CompiledSchema, SchemaError> {
        self.compiled.get_or_init(|| {
            catch_panic(|| CompiledSchema::new(&*self.source.to_value()?))
                .unwrap_or(Err(SchemaError::CompilationFailed))
        })
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").field("source", &self.source).finish_non_exhaustive()
    }
}

/// Returns the result of `run`, or `None` if it panics.
///
/// Hostile schemas can trigger assertions of the validator. The validator stores no state between
/// runs, so a panic leaves nothing inconsistent.
fn catch_panic<T>(run: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(run)).ok()
}
