//! What does not fit, in words.

mod alternatives;
#[cfg(test)]
mod tests;

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value;

use crate::error::ArgumentProblem;
use crate::name;

/// The most problems told at once.
const PROBLEMS: usize = 32;

/// The longest pointer told, in bytes; the end of a longer one is left out. Names in a value can be
/// as long as the value.
const POINTER: usize = 1 << 10;

/// How many are collected before the first are picked out.
const COLLECTED: usize = 4096;

/// The most characters of a name or value in a message.
const QUOTED: usize = 60;

/// The most values listed in a message.
const LISTED: usize = 12;

/// The longest name compared with others, in bytes; comparing takes the square of it.
const COMPARED: usize = 64;

/// How many others it is compared with at most; together with the above, about a millisecond.
const OTHERS: usize = 256;

/// The first 32 problems by pointer.
pub(super) fn problems<'i>(
    schema: &Value,
    errors: impl Iterator<Item = ValidationError<'i>>,
) -> Vec<ArgumentProblem> {
    let mut words = Words { schema, problems: Vec::new(), suggestions: PROBLEMS };
    for error in errors {
        words.tell(&error);
    }
    if words.problems.is_empty() {
        words.add(String::new(), "does not fit".to_owned());
    }
    words.pick();
    words
        .problems
        .into_iter()
        .map(|(pointer, message)| ArgumentProblem { pointer, message })
        .collect()
}

struct Words<'s> {
    schema: &'s Value,
    problems: Vec<(String, String)>,
    /// How many more names may be compared with others.
    suggestions: usize,
}

impl Words<'_> {
    fn add(&mut self, mut pointer: String, message: String) {
        if pointer.len() > POINTER {
            pointer.truncate(pointer.floor_char_boundary(POINTER));
            pointer.push('…');
            pointer.shrink_to_fit();
        }
        if self.problems.len() == COLLECTED {
            self.pick();
        }
        self.problems.push((pointer, message));
    }

    fn pick(&mut self) {
        self.problems.sort_unstable();
        self.problems.dedup();
        self.problems.truncate(PROBLEMS);
    }

    fn tell(&mut self, error: &ValidationError<'_>) {
        let pointer = error.instance_path().as_str();
        match error.kind() {
            Kind::AdditionalProperties { unexpected }
            | Kind::UnevaluatedProperties { unexpected } => {
                for name in unexpected {
                    let message = self.unknown(error, name);
                    self.add(below(pointer, name), message);
                }
            }
            Kind::PropertyNames { error: inner } => {
                let name = inner.instance().as_str().unwrap_or_default();
                let message = format!("the property name {}", sentence(inner));
                self.add(below(pointer, name), message);
            }
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                self.tell_alternatives(error, context);
            }
            Kind::Enum { options } => {
                let meant = self.meant(error.instance(), options);
                self.add(pointer.to_owned(), sentence(error) + &meant);
            }
            _ => self.add(pointer.to_owned(), sentence(error)),
        }
    }

    fn unknown(&mut self, error: &ValidationError<'_>, name: &str) -> String {
        if self.suggestions == 0 {
            return format!("unknown property {}", quoted(name));
        }
        // The keyword stands beside the names that are known.
        let keyword = error.schema_path().as_str();
        let beside = keyword.rsplit_once('/').and_then(|(beside, _)| self.schema.pointer(beside));
        let known = beside.and_then(|beside| beside.get("properties")).and_then(Value::as_object);
        let given = error.instance();
        let known: Vec<&str> = known
            .into_iter()
            .flat_map(|known| known.keys().map(String::as_str))
            .filter(|known| given.get(known).is_none())
            .collect();
        let meant = self.suggest(name, known.into_iter());
        format!("unknown property {}{meant}", quoted(name))
    }

    fn meant(&mut self, given: &Value, options: &Value) -> String {
        let options = options.as_array().into_iter().flatten().filter_map(Value::as_str);
        given.as_str().map(|given| self.suggest(given, options)).unwrap_or_default()
    }

    fn suggest<'k>(&mut self, name: &str, known: impl Iterator<Item = &'k str>) -> String {
        if name.len() > COMPARED || self.suggestions == 0 {
            return String::new();
        }
        self.suggestions -= 1;
        let known = known.filter(|known| known.len() <= COMPARED).take(OTHERS);
        let meant = name::closest(name, known);
        meant.map(|meant| format!("; did you mean {}?", quoted(meant))).unwrap_or_default()
    }
}

/// What is wrong with the value itself.
fn sentence(error: &ValidationError<'_>) -> String {
    let found = kind(error.instance());
    match error.kind() {
        Kind::Type { .. } => {
            format!("expected {}, found {found}", listed(&expected(error), " or "))
        }
        Kind::Constant { .. } => format!("expected {}", listed(&expected(error), " or ")),
        Kind::Enum { .. } => format!("expected one of {}", listed(&expected(error), ", ")),
        Kind::Required { property } => format!("missing required property {}", brief(property)),
        Kind::Minimum { limit } => format!("must be at least {}", brief(limit)),
        Kind::Maximum { limit } => format!("must be at most {}", brief(limit)),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {}", brief(limit)),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {}", brief(limit)),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("must have at least {}", counted(*limit, "character")),
        Kind::MaxLength { limit } => format!("must have at most {}", counted(*limit, "character")),
        Kind::MinItems { limit } => format!("must have at least {}", counted(*limit, "item")),
        Kind::MaxItems { limit } => format!("must have at most {}", counted(*limit, "item")),
        Kind::AdditionalItems { limit } => {
            format!("must have at most {}", counted(*limit as u64, "item"))
        }
        Kind::MinProperties { limit } => {
            format!("must have at least {limit} properties")
        }
        Kind::MaxProperties { limit } => {
            format!("must have at most {limit} properties")
        }
        Kind::UniqueItems => "must not have the same item twice".to_owned(),
        Kind::UnevaluatedItems { .. } => "has items that are not expected".to_owned(),
        Kind::Contains => "has too few or too many items of the kind asked for".to_owned(),
        Kind::Pattern { pattern } => format!("must match the pattern {}", quoted(pattern)),
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
            "takes too long to match against its pattern".to_owned()
        }
        Kind::Not { .. } => "must not be what is excluded here".to_owned(),
        Kind::OneOfMultipleValid { .. } => "matches more than one of the alternatives".to_owned(),
        Kind::FalseSchema => "must not be given".to_owned(),
        _ => "does not fit".to_owned(),
    }
}

/// What the value itself was expected to be, if that is what is wrong with it.
fn expected(error: &ValidationError<'_>) -> Vec<String> {
    match error.kind() {
        Kind::Type { kind: TypeKind::Single(kind) } => vec![kind.to_string()],
        Kind::Type { kind: TypeKind::Multiple(kinds) } => {
            kinds.iter().map(|kind| kind.to_string()).collect()
        }
        Kind::Constant { expected_value } => vec![brief(expected_value)],
        Kind::Enum { options } => options.as_array().into_iter().flatten().map(brief).collect(),
        _ => Vec::new(),
    }
}

fn below(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn listed(all: &[String], last: &str) -> String {
    let (shown, rest) = all.split_at(all.len().min(LISTED));
    match (shown, rest.len()) {
        ([most @ .., end], 0) if !most.is_empty() => format!("{}{last}{end}", most.join(", ")),
        (shown, 0) => shown.concat(),
        (shown, more) => format!("{} and {more} more", shown.join(", ")),
    }
}

fn brief(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Array(_) => "a certain array".to_owned(),
        Value::Object(_) => "a certain object".to_owned(),
        _ => value.to_string(),
    }
}

/// `text` between double quotes, escaped and shortened.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// The JSON type of a value.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
