//! Violation messages that tell a model the correct value.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value;

use super::Violation;
use crate::repair::quote_backticks;

/// Maximum bytes of a reported pointer, because names in a value have no limit.
pub(super) const MAX_POINTER_BYTES: usize = 1 << 10;

/// Maximum number of listed values in a message.
const MAX_LISTED_VALUES: usize = 12;

/// Converts an error of the validator.
pub(super) fn violation(error: &ValidationError<'_>) -> Violation {
    if let Kind::AnyOf { context } | Kind::OneOfNotValid { context } = error.kind()
        && let Some(deeper) = intended_branch_error(error, context)
    {
        return violation(deeper);
    }
    let pointer = truncate_pointer(error.instance_path().as_str().to_owned());
    Violation { pointer, message: describe_error(error) }
}

/// Truncates a pointer at the limit.
pub(super) fn truncate_pointer(mut pointer: String) -> String {
    if pointer.len() > MAX_POINTER_BYTES {
        pointer.truncate(pointer.floor_char_boundary(MAX_POINTER_BYTES));
        pointer.push('…');
    }
    pointer
}

/// Returns the first error of the only alternative that has the value's type.
fn intended_branch_error<'e>(
    error: &ValidationError<'_>,
    context: &'e [Vec<ValidationError<'static>>],
) -> Option<&'e ValidationError<'static>> {
    let here = |inner: &ValidationError<'_>| {
        inner.instance_path() == error.instance_path() && expected_types(inner).is_some()
    };
    let mut deeper = context.iter().filter(|errors| !errors.iter().any(here));
    match (deeper.next(), deeper.next()) {
        (Some(only), None) => only.first(),
        _ => None,
    }
}

fn describe_error(error: &ValidationError<'_>) -> String {
    let actual = type_name(error.instance());
    match error.kind() {
        Kind::Type { .. } => {
            let types = expected_types(error).unwrap_or_default().join(" or ");
            format!("expected {types}, found {actual}")
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            let types: Option<Vec<Vec<String>>> =
                context.iter().map(|errors| errors.iter().find_map(expected_types)).collect();
            match types {
                Some(types) if !types.is_empty() => {
                    format!("expected {}, found {actual}", types.concat().join(" or "))
                }
                _ => format!("matches none of the {} alternatives", context.len()),
            }
        }
        Kind::Required { property } => {
            format!("missing required property {}", describe_value(property))
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let names = unexpected.iter().map(|name| quote_backticks(name));
            format!("unknown property {}", join_limited(names))
        }
        Kind::Enum { options } => {
            let options = options.as_array().into_iter().flatten().map(describe_value);
            format!("expected one of {}", join_limited(options))
        }
        Kind::Constant { expected_value } => format!("expected {}", describe_value(expected_value)),
        Kind::Minimum { limit } => format!("must be at least {}", describe_value(limit)),
        Kind::Maximum { limit } => format!("must be at most {}", describe_value(limit)),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {}", describe_value(limit)),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {}", describe_value(limit)),
        Kind::MinLength { limit } => format!("must have {limit} characters or more"),
        Kind::MaxLength { limit } => format!("must have {limit} characters or fewer"),
        Kind::MinItems { limit } => format!("must have {limit} items or more"),
        Kind::MaxItems { limit } => format!("must have {limit} items or fewer"),
        Kind::Pattern { pattern } => format!("must match the pattern {}", quote_backticks(pattern)),
        Kind::FalseSchema => "is not allowed".to_owned(),
        Kind::OneOfMultipleValid { .. } => "matches more than one of the alternatives".to_owned(),
        Kind::Not { .. } => "must not match the excluded schema".to_owned(),
        // Other errors are rare, and the library's message without the value is sufficient.
        _ => error.masked().to_string(),
    }
}

/// Returns the expected types, if the type is invalid.
fn expected_types(error: &ValidationError<'_>) -> Option<Vec<String>> {
    match error.kind() {
        Kind::Type { kind: TypeKind::Single(kind) } => Some(vec![kind.to_string()]),
        Kind::Type { kind: TypeKind::Multiple(kinds) } => {
            Some(kinds.iter().map(|kind| kind.to_string()).collect())
        }
        _ => None,
    }
}

fn join_limited(items: impl Iterator<Item = String>) -> String {
    let mut items: Vec<String> = items.take(MAX_LISTED_VALUES + 1).collect();
    let more = items.len() > MAX_LISTED_VALUES;
    items.truncate(MAX_LISTED_VALUES);
    format!("{}{}", items.join(", "), if more { " and others" } else { "" })
}

/// Describes a location in a schema.
pub(super) fn describe_pointer(pointer: &str) -> String {
    if pointer.is_empty() { "the root".to_owned() } else { quote_backticks(pointer) }
}

fn describe_value(value: &Value) -> String {
    match value {
        Value::String(text) => quote_backticks(text),
        Value::Array(_) => "a specific array".to_owned(),
        Value::Object(_) => "a specific object".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
