//! What does not fit, in words that tell a model what to send instead.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value;

use super::Violation;
use crate::repair::quoted;

/// The longest pointer told, in bytes. Names in a value can be as long as the value.
pub(super) const POINTER: usize = 1 << 10;

/// The most values listed in a message.
const LISTED: usize = 12;

/// What is wrong, and where.
pub(super) fn violation(error: &ValidationError<'_>) -> Violation {
    if let Kind::AnyOf { context } | Kind::OneOfNotValid { context } = error.kind()
        && let Some(deeper) = meant(error, context)
    {
        return violation(deeper);
    }
    let pointer = shortened(error.instance_path().as_str().to_owned());
    Violation { pointer, message: sentence(error) }
}

/// A pointer without the end that is past the limit.
pub(super) fn shortened(mut pointer: String) -> String {
    if pointer.len() > POINTER {
        pointer.truncate(pointer.floor_char_boundary(POINTER));
        pointer.push('…');
    }
    pointer
}

/// The first error of the only alternative that is of the value's type.
fn meant<'e>(
    error: &ValidationError<'_>,
    context: &'e [Vec<ValidationError<'static>>],
) -> Option<&'e ValidationError<'static>> {
    let here = |one: &ValidationError<'_>| {
        one.instance_path() == error.instance_path() && expected(one).is_some()
    };
    let mut deeper = context.iter().filter(|errors| !errors.iter().any(here));
    match (deeper.next(), deeper.next()) {
        (Some(only), None) => only.first(),
        _ => None,
    }
}

fn sentence(error: &ValidationError<'_>) -> String {
    let found = kind(error.instance());
    match error.kind() {
        Kind::Type { .. } => {
            let types = expected(error).unwrap_or_default().join(" or ");
            format!("expected {types}, found {found}")
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            let types: Option<Vec<Vec<String>>> =
                context.iter().map(|errors| errors.iter().find_map(expected)).collect();
            match types {
                Some(types) if !types.is_empty() => {
                    format!("expected {}, found {found}", types.concat().join(" or "))
                }
                _ => format!("fits none of the {} alternatives", context.len()),
            }
        }
        Kind::Required { property } => format!("missing required property {}", shown(property)),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let names = unexpected.iter().map(|name| quoted(name));
            format!("unknown property {}", listed(names))
        }
        Kind::Enum { options } => {
            let options = options.as_array().into_iter().flatten().map(shown);
            format!("expected one of {}", listed(options))
        }
        Kind::Constant { expected_value } => format!("expected {}", shown(expected_value)),
        Kind::Minimum { limit } => format!("must be at least {}", shown(limit)),
        Kind::Maximum { limit } => format!("must be at most {}", shown(limit)),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {}", shown(limit)),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {}", shown(limit)),
        Kind::MinLength { limit } => format!("must have {limit} characters or more"),
        Kind::MaxLength { limit } => format!("must have {limit} characters or fewer"),
        Kind::MinItems { limit } => format!("must have {limit} items or more"),
        Kind::MaxItems { limit } => format!("must have {limit} items or fewer"),
        Kind::Pattern { pattern } => format!("must match the pattern {}", quoted(pattern)),
        Kind::FalseSchema => "must not be given".to_owned(),
        Kind::OneOfMultipleValid { .. } => "fits more than one of the alternatives".to_owned(),
        Kind::Not { .. } => "must not be what is excluded here".to_owned(),
        // The rest is rare, and the library's words are good enough without the value in them.
        _ => error.masked().to_string(),
    }
}

/// The types that were expected, if the type is what is wrong.
fn expected(error: &ValidationError<'_>) -> Option<Vec<String>> {
    match error.kind() {
        Kind::Type { kind: TypeKind::Single(kind) } => Some(vec![kind.to_string()]),
        Kind::Type { kind: TypeKind::Multiple(kinds) } => {
            Some(kinds.iter().map(|kind| kind.to_string()).collect())
        }
        _ => None,
    }
}

fn listed(words: impl Iterator<Item = String>) -> String {
    let mut words: Vec<String> = words.take(LISTED + 1).collect();
    let more = words.len() > LISTED;
    words.truncate(LISTED);
    format!("{}{}", words.join(", "), if more { " and others" } else { "" })
}

/// A place in a schema or value.
pub(super) fn at(pointer: &str) -> String {
    if pointer.is_empty() { "its top".to_owned() } else { quoted(pointer) }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Array(_) => "a certain array".to_owned(),
        Value::Object(_) => "a certain object".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
