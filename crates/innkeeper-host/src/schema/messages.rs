//! Messages for validation errors.

mod alternatives;
#[cfg(test)]
mod tests;

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value;

use crate::error::ArgumentProblem;
use crate::name;

/// Maximum number of reported problems.
const MAX_PROBLEMS: usize = 32;

/// Maximum length of a reported pointer in bytes; a longer pointer is truncated. Names in a value
/// can be as long as the value.
const MAX_POINTER_BYTES: usize = 1 << 10;

/// Maximum number of collected problems before sorting.
const MAX_COLLECTED: usize = 4096;

/// Maximum number of characters of a name or value in a message.
const MAX_QUOTED_CHARS: usize = 60;

/// Maximum number of values listed in a message.
const MAX_LISTED_VALUES: usize = 12;

/// Maximum length of a compared name in bytes; the comparison takes quadratic time.
const MAX_COMPARED_BYTES: usize = 64;

/// Maximum number of names that a name is compared with; with the limit above, about a millisecond.
const MAX_COMPARED_NAMES: usize = 256;

/// Returns the first 32 problems by pointer.
pub(super) fn problems<'i>(
    schema: &Value,
    errors: impl Iterator<Item = ValidationError<'i>>,
) -> Vec<ArgumentProblem> {
    let mut collector =
        ProblemCollector { schema, problems: Vec::new(), suggestions_left: MAX_PROBLEMS };
    for error in errors {
        collector.add_error(&error);
    }
    if collector.problems.is_empty() {
        collector.add(String::new(), "does not match the schema".to_owned());
    }
    collector.keep_first();
    collector
        .problems
        .into_iter()
        .map(|(pointer, message)| ArgumentProblem { pointer, message })
        .collect()
}

struct ProblemCollector<'s> {
    schema: &'s Value,
    problems: Vec<(String, String)>,
    /// Remaining number of comparisons for suggestions.
    suggestions_left: usize,
}

impl ProblemCollector<'_> {
    fn add(&mut self, mut pointer: String, message: String) {
        if pointer.len() > MAX_POINTER_BYTES {
            pointer.truncate(pointer.floor_char_boundary(MAX_POINTER_BYTES));
            pointer.push('…');
            pointer.shrink_to_fit();
        }
        if self.problems.len() == MAX_COLLECTED {
            self.keep_first();
        }
        self.problems.push((pointer, message));
    }

    fn keep_first(&mut self) {
        self.problems.sort_unstable();
        self.problems.dedup();
        self.problems.truncate(MAX_PROBLEMS);
    }

    fn add_error(&mut self, error: &ValidationError<'_>) {
        let pointer = error.instance_path().as_str();
        match error.kind() {
            Kind::AdditionalProperties { unexpected }
            | Kind::UnevaluatedProperties { unexpected } => {
                for name in unexpected {
                    let message = self.describe_unknown_property(error, name);
                    self.add(child_pointer(pointer, name), message);
                }
            }
            Kind::PropertyNames { error: inner } => {
                let name = inner.instance().as_str().unwrap_or_default();
                let message = format!("the property name {}", describe_error(inner));
                self.add(child_pointer(pointer, name), message);
            }
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                self.add_alternatives(error, context);
            }
            Kind::Enum { options } => {
                let suggestion = self.suggest_option(error.instance(), options);
                self.add(pointer.to_owned(), describe_error(error) + &suggestion);
            }
            _ => self.add(pointer.to_owned(), describe_error(error)),
        }
    }

    fn describe_unknown_property(&mut self, error: &ValidationError<'_>, name: &str) -> String {
        if self.suggestions_left == 0 {
            return format!("unknown property {}", quote(name));
        }
        // The keyword's parent object also has the declared names.
        let keyword = error.schema_path().as_str();
        let parent =
            keyword.rsplit_once('/').and_then(|(parent_path, _)| self.schema.pointer(parent_path));
        let declared =
            parent.and_then(|parent| parent.get("properties")).and_then(Value::as_object);
        let object = error.instance();
        let candidates: Vec<&str> = declared
            .into_iter()
            .flat_map(|members| members.keys().map(String::as_str))
            .filter(|candidate| object.get(candidate).is_none())
            .collect();
        let suggestion = self.suggest_name(name, candidates.into_iter());
        format!("unknown property {}{suggestion}", quote(name))
    }

    fn suggest_option(&mut self, value: &Value, options: &Value) -> String {
        let options = options.as_array().into_iter().flatten().filter_map(Value::as_str);
        value.as_str().map(|text| self.suggest_name(text, options)).unwrap_or_default()
    }

    fn suggest_name<'k>(&mut self, name: &str, names: impl Iterator<Item = &'k str>) -> String {
        if name.len() > MAX_COMPARED_BYTES || self.suggestions_left == 0 {
            return String::new();
        }
        self.suggestions_left -= 1;
        let candidates = names
            .filter(|candidate| candidate.len() <= MAX_COMPARED_BYTES)
            .take(MAX_COMPARED_NAMES);
        let suggestion = name::closest(name, candidates);
        suggestion
            .map(|suggestion| format!("; did you mean {}?", quote(suggestion)))
            .unwrap_or_default()
    }
}

/// Describes a problem of the value itself.
fn describe_error(error: &ValidationError<'_>) -> String {
    let actual = json_type(error.instance());
    match error.kind() {
        Kind::Type { .. } => {
            format!("expected {}, found {actual}", join_list(&expected(error), " or "))
        }
        Kind::Constant { .. } => format!("expected {}", join_list(&expected(error), " or ")),
        Kind::Enum { .. } => format!("expected one of {}", join_list(&expected(error), ", ")),
        Kind::Required { property } => {
            format!("missing required property {}", describe_value(property))
        }
        Kind::Minimum { limit } => format!("must be at least {}", describe_value(limit)),
        Kind::Maximum { limit } => format!("must be at most {}", describe_value(limit)),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {}", describe_value(limit)),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {}", describe_value(limit)),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::MinLength { limit } => {
            format!("must have at least {}", pluralize(*limit, "character"))
        }
        Kind::MaxLength { limit } => {
            format!("must have at most {}", pluralize(*limit, "character"))
        }
        Kind::MinItems { limit } => format!("must have at least {}", pluralize(*limit, "item")),
        Kind::MaxItems { limit } => format!("must have at most {}", pluralize(*limit, "item")),
        Kind::AdditionalItems { limit } => {
            format!("must have at most {}", pluralize(*limit as u64, "item"))
        }
        Kind::MinProperties { limit } => {
            format!("must have at least {limit} properties")
        }
        Kind::MaxProperties { limit } => {
            format!("must have at most {limit} properties")
        }
        Kind::UniqueItems => "must not have duplicate items".to_owned(),
        Kind::UnevaluatedItems { .. } => "has unexpected items".to_owned(),
        Kind::Contains => "has too few or too many items that match `contains`".to_owned(),
        Kind::Pattern { pattern } => format!("must match the pattern {}", quote(pattern)),
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
            "takes too long to match against its pattern".to_owned()
        }
        Kind::Not { .. } => "must not match the excluded schema".to_owned(),
        Kind::OneOfMultipleValid { .. } => "matches more than one of the alternatives".to_owned(),
        Kind::FalseSchema => "is not allowed".to_owned(),
        _ => "does not match the schema".to_owned(),
    }
}

/// Describes the expected values, if the value itself is wrong.
fn expected(error: &ValidationError<'_>) -> Vec<String> {
    match error.kind() {
        Kind::Type { kind: TypeKind::Single(kind) } => vec![kind.to_string()],
        Kind::Type { kind: TypeKind::Multiple(kinds) } => {
            kinds.iter().map(|kind| kind.to_string()).collect()
        }
        Kind::Constant { expected_value } => vec![describe_value(expected_value)],
        Kind::Enum { options } => {
            options.as_array().into_iter().flatten().map(describe_value).collect()
        }
        _ => Vec::new(),
    }
}

fn child_pointer(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

fn pluralize(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn join_list(all: &[String], last: &str) -> String {
    let (shown, rest) = all.split_at(all.len().min(MAX_LISTED_VALUES));
    match (shown, rest.len()) {
        ([leading @ .., tail], 0) if !leading.is_empty() => {
            format!("{}{last}{tail}", leading.join(", "))
        }
        (shown, 0) => shown.concat(),
        (shown, more) => format!("{} and {more} more", shown.join(", ")),
    }
}

fn describe_value(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Array(_) => "a specific array".to_owned(),
        Value::Object(_) => "a specific object".to_owned(),
        _ => value.to_string(),
    }
}

/// Returns `text` in double quotes, escaped and truncated.
pub(super) fn quote(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED_CHARS) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// Returns the JSON type of a value.
pub(super) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
