//! Messages for validation errors.

mod alternatives;
#[cfg(test)]
mod tests;

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value;

use crate::quote::{quote, quote_string};
use crate::violation::Violation;

/// Maximum number of reported violations.
pub const MAX_VIOLATIONS: usize = 32;

/// Maximum number of collected violations before sorting.
const MAX_COLLECTED: usize = 4096;

/// Maximum number of values listed in a message.
const MAX_LISTED_VALUES: usize = 12;

/// Maximum length of a compared name in bytes; the comparison takes quadratic time.
const MAX_COMPARED_BYTES: usize = 64;

/// Maximum number of names that a name is compared with; with the limit above, about a millisecond.
const MAX_COMPARED_NAMES: usize = 256;

/// Minimum similarity of a suggestion, from 0 to 1.
const MIN_SIMILARITY: f64 = 0.6;

/// Returns the first 32 violations by pointer.
pub(crate) fn violations<'i>(
    schema: &Value,
    errors: impl Iterator<Item = ValidationError<'i>>,
) -> Vec<Violation> {
    let mut collector =
        ViolationCollector { schema, violations: Vec::new(), suggestions_left: MAX_VIOLATIONS };
    for error in errors {
        collector.add_error(&error);
    }
    if collector.violations.is_empty() {
        collector.add(String::new(), "does not match the schema".to_owned());
    }
    collector.keep_first();
    collector.violations
}

struct ViolationCollector<'s> {
    schema: &'s Value,
    violations: Vec<Violation>,
    /// Remaining number of comparisons for suggestions.
    suggestions_left: usize,
}

impl ViolationCollector<'_> {
    fn add(&mut self, pointer: String, message: String) {
        if self.violations.len() == MAX_COLLECTED {
            self.keep_first();
        }
        self.violations.push(Violation::new(pointer, message));
    }

    fn keep_first(&mut self) {
        self.violations.sort_unstable();
        self.violations.dedup();
        self.violations.truncate(MAX_VIOLATIONS);
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
        let scored =
            candidates.map(|other| (strsim::normalized_damerau_levenshtein(name, other), other));
        let similar = scored.filter(|(score, _)| *score >= MIN_SIMILARITY);
        similar
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
            .map(|(_, suggestion)| format!("; did you mean {}?", quote(suggestion)))
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
            format!("missing required property {}", describe_name(property))
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

fn describe_name(property: &Value) -> String {
    quote(property.as_str().unwrap_or_default())
}

fn describe_value(value: &Value) -> String {
    match value {
        Value::String(text) => quote_string(text),
        Value::Array(_) => "a specific array".to_owned(),
        Value::Object(_) => "a specific object".to_owned(),
        _ => value.to_string(),
    }
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
