//! The result of a tool call.

use std::borrow::Cow;
use std::sync::Arc;

use innkeeper_protocol::{ViewError, skim, view};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::connection::result_type::ResultType;
use crate::error::Violation;
use crate::schema::ResultSchema;

/// The result of a tool call, exactly as the server sent it.
#[derive(Clone, Debug)]
pub struct ToolResult {
    pub(super) raw: Box<RawValue>,
    pub(super) is_error: bool,
    pub(super) result_type: ResultType,
    /// The `outputSchema` of the tool, if the tool has one.
    pub(super) output_schema: Option<Arc<ResultSchema>>,
}

impl ToolResult {
    /// Returns the result object, byte for byte.
    pub fn raw(&self) -> &RawValue {
        &self.raw
    }

    /// Returns the result object as an owned value.
    pub fn into_raw(self) -> Box<RawValue> {
        self.raw
    }

    /// Returns whether the tool itself reports a failure (`isError`). Such a failure is input for
    /// the model, not an error of the host.
    pub fn is_error(&self) -> bool {
        self.is_error
    }

    /// Returns the type of the result. A result that is not complete exists only with
    /// [`RoundTripMode::PassThrough`](super::RoundTripMode::PassThrough) or
    /// [`TaskMode::PassThrough`](super::TaskMode::PassThrough).
    pub fn result_type(&self) -> ResultType {
        self.result_type
    }

    /// Returns the first violation of the tool's `outputSchema` in the structured content. The
    /// pointer is relative to that content.
    ///
    /// Returns `None` without a check for a tool without `outputSchema`, for a failed tool, for
    /// a result that is not complete, for content of more than 256 KiB, and for a schema that the host cannot use.
    ///
    /// The check runs here and not during the call because the check parses the content as values,
    /// and a hostile schema can make the check take about a second.
    pub fn output_schema_violation(&self) -> Option<Violation> {
        self.output_schema.as_ref()?.check(&self.raw)
    }

    /// Returns the text of all text blocks, joined by line breaks; empty if there is none. The text
    /// is borrowed if there is one text block, and its JSON has no escapes.
    pub fn text(&self) -> Cow<'_, str> {
        view::result_text(&self.raw)
    }

    /// Returns the structured content of the result as JSON text.
    pub fn structured(&self) -> Option<&RawValue> {
        skim::raw_member(&self.raw, "structuredContent")
    }

    /// Returns the structured content of the result as a value of the application.
    ///
    /// # Errors
    ///
    /// Returns an error if the result has no `structuredContent`, or if its JSON does not have the
    /// shape of `T`.
    pub fn structured_content<T: DeserializeOwned>(&self) -> Result<T, StructuredContentError> {
        let content = self.structured().ok_or(StructuredContentError::Missing)?;
        Ok(serde_json::from_str(content.get())?)
    }

    /// Returns the typed view of the result, which borrows from the result.
    ///
    /// # Errors
    ///
    /// Returns an error if the result does not have the shape of a tool result in a part that the
    /// call did not check.
    pub fn view(&self) -> Result<view::ToolResult<'_>, ViewError> {
        view::ToolResult::from_raw(&self.raw)
    }
}

/// The reason why a result has no structured content of the requested type.
#[derive(Debug, thiserror::Error)]
pub enum StructuredContentError {
    /// The result has only content for a model or a person.
    #[error("the result has no `structuredContent`")]
    Missing,
    /// The JSON does not have the shape of the type.
    #[error("`structuredContent` does not have the expected shape")]
    Shape(#[from] serde_json::Error),
}

impl Serialize for ToolResult {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(serializer)
    }
}
