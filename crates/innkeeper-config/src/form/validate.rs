//! Validates an entry against its JSON Schema; reports failures at the user's position.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{JsonType, ValidationError, Validator};
use serde_json::{Map, Value};

use crate::diagnostic::Severity;
use crate::form::dialect;
use crate::form::schema;
use crate::form::schema_match::matches_schema;
use crate::form::unknown_keys;
use crate::text::key_location::{KeyLocation, PathSegment, key_segment, locate};
use crate::text::key_path::KeyPath;
use crate::text::source_text::Diagnostics;
use crate::text::tree::JsonNode;

static SERVER_VALIDATOR: LazyLock<Validator> = LazyLock::new(|| compile(&schema::SERVER_SCHEMA));
static HOST_VALIDATOR: LazyLock<Validator> = LazyLock::new(|| compile(&schema::HOST_SCHEMA));
static SERVE_VALIDATOR: LazyLock<Validator> = LazyLock::new(|| compile(&schema::SERVE_SCHEMA));

fn compile(schema: &Value) -> Validator {
    jsonschema::draft202012::new(schema).expect("a test compiles the generated schemas")
}

/// Returns the value of a server entry without its invalid parts.
pub(crate) fn server(node: &JsonNode, path: &str, report: &mut Diagnostics) -> Value {
    apply(&schema::SERVER_SCHEMA, &SERVER_VALIDATOR, node, path, report)
}

/// Returns the value of the `host` object without its invalid parts.
pub(crate) fn host(node: &JsonNode, path: &str, report: &mut Diagnostics) -> Value {
    apply(&schema::HOST_SCHEMA, &HOST_VALIDATOR, node, path, report)
}

/// Returns the value of the `serve` object without its invalid parts.
pub(crate) fn serve(node: &JsonNode, path: &str, report: &mut Diagnostics) -> Value {
    apply(&schema::SERVE_SCHEMA, &SERVE_VALIDATOR, node, path, report)
}

fn apply(
    schema: &Value,
    validator: &LazyLock<Validator>,
    node: &JsonNode,
    path: &str,
    report: &mut Diagnostics,
) -> Value {
    let mut value = node.to_value();
    if matches_schema(schema, &value) {
        return value;
    }
    let mut rejected: Vec<Vec<PathSegment<'static>>> = Vec::new();
    for error in validator.iter_errors(&value) {
        report_failure(&error, schema, node, path, report, &mut rejected);
    }
    remove(&mut value, &rejected);
    value
}

fn path_segments(location: &Location) -> Vec<PathSegment<'static>> {
    location
        .into_iter()
        .map(|segment| match segment {
            LocationSegment::Property(key) => PathSegment::Key(Cow::Owned(key.into_owned())),
            LocationSegment::Index(index) => PathSegment::Index(index),
        })
        .collect()
}

fn report_failure(
    error: &ValidationError<'_>,
    schema: &Value,
    root: &JsonNode,
    path: &str,
    report: &mut Diagnostics,
    rejected: &mut Vec<Vec<PathSegment<'static>>>,
) {
    if let Some(inner) = nearest_branch(error) {
        for error in inner {
            report_failure(error, schema, root, path, report, rejected);
        }
        return;
    }
    let segments = path_segments(error.instance_path());
    rejected.push(segments.clone());
    if report.is_full() {
        return report.count_omitted(Severity::Error);
    }
    let KeyLocation { at, key } = locate(root, path, &segments);
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let key =
                KeyPath::from_prefix(&key).key(property.as_str().unwrap_or_default()).to_string();
            report.error(at, key, "missing");
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let known_keys = known_keys(error, schema);
            for name in unexpected {
                let inner = [&segments[..], &[key_segment(name)]].concat();
                let at = locate(root, path, &inner).at;
                report.error(at, KeyPath::from_prefix(&key).key(name), "unknown key");
                if let Some(similar) = unknown_keys::similar(name, known_keys.iter().copied()) {
                    report.hint(format!("did you mean `{similar}`?"));
                }
            }
        }
        kind => report.error(at, key, describe_failure(kind)),
    }
    let hint = milliseconds_hint(error).or_else(|| duration_hint(error));
    if let Some(hint) = hint.or_else(|| value_hint(error, &segments)) {
        report.hint(hint);
    }
}

/// Returns the keys that the schema has for an object with an unknown key.
fn known_keys<'s>(error: &ValidationError<'_>, schema: &'s Value) -> Vec<&'s str> {
    let object = error.schema_path().as_str().strip_suffix("/additionalProperties");
    let object = object.and_then(|path| schema.pointer(path));
    let properties = object.and_then(|object| object["properties"].as_object());
    properties.into_iter().flatten().map(|(key, _)| key.as_str()).collect()
}

/// Returns the value that was probably meant: another transport, or a list instead of a text.
fn value_hint(error: &ValidationError<'_>, segments: &[PathSegment<'_>]) -> Option<String> {
    let text = error.instance().as_str()?;
    let [segment] = segments else { return None };
    let is_list = matches!(
        error.kind(),
        ValidationErrorKind::Type { kind: TypeKind::Single(JsonType::Array) }
    );
    match segment.key_name() {
        "type" => {
            let transport = dialect::similar_transport(text)?;
            Some(format!("did you mean `{transport}`?"))
        }
        "args" if is_list => {
            Some("write a list with one element per argument: `[\"-y\", \"package\"]`".to_owned())
        }
        key if is_list => Some(format!("write a list: `\"{key}\": [\"…\"]`")),
        _ => None,
    }
}

/// Returns the errors of the only alternative whose type matches, because that alternative was
/// meant.
fn nearest_branch<'e>(error: &'e ValidationError<'_>) -> Option<&'e [ValidationError<'static>]> {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) =
        error.kind()
    else {
        return None;
    };
    let here = error.instance_path();
    context
        .iter()
        .find(|branch| {
            !branch.iter().any(|inner| {
                inner.instance_path() == here
                    && matches!(
                        inner.kind(),
                        ValidationErrorKind::Type { .. }
                            | ValidationErrorKind::Constant { .. }
                            | ValidationErrorKind::Enum { .. }
                    )
            })
        })
        .map(Vec::as_slice)
}

fn describe_failure(kind: &ValidationErrorKind) -> String {
    match kind {
        ValidationErrorKind::Type { .. }
        | ValidationErrorKind::Constant { .. }
        | ValidationErrorKind::Enum { .. } => {
            format!("expected {}", join_alternatives(&expected(kind)))
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            let mut all: Vec<String> = Vec::new();
            for name in context.iter().flatten().flat_map(|inner| expected(inner.kind())) {
                if !all.contains(&name) {
                    all.push(name);
                }
            }
            format!("expected {}", join_alternatives(&all))
        }
        ValidationErrorKind::Minimum { limit } => {
            format!("expected {} or more", format_number(limit))
        }
        ValidationErrorKind::Maximum { limit } => {
            format!("expected {} or less", format_number(limit))
        }
        ValidationErrorKind::Pattern { .. } => "expected a size such as `512 MiB`".to_owned(),
        other => format!("does not match the schema (`{}`)", other.keyword()),
    }
}

/// Describes the values that a failed keyword accepts.
fn expected(kind: &ValidationErrorKind) -> Vec<String> {
    match kind {
        ValidationErrorKind::Type { kind: TypeKind::Single(kind) } => vec![kind.to_string()],
        ValidationErrorKind::Type { kind: TypeKind::Multiple(kinds) } => {
            // The most common type comes first, `null` last.
            let all_types = [
                JsonType::String,
                JsonType::Integer,
                JsonType::Number,
                JsonType::Boolean,
                JsonType::Array,
                JsonType::Object,
                JsonType::Null,
            ];
            let accepted = all_types.into_iter().filter(|kind| kinds.contains(*kind));
            accepted.map(|kind| kind.to_string()).collect()
        }
        ValidationErrorKind::Constant { expected_value } => vec![quote(expected_value)],
        ValidationErrorKind::Enum { options } => {
            options.as_array().into_iter().flatten().map(quote).collect()
        }
        _ => Vec::new(),
    }
}

/// Formats a number without a zero fraction: `86400` instead of `86400.0`.
fn format_number(number: &Value) -> String {
    number.as_f64().map_or_else(|| number.to_string(), |number| number.to_string())
}

fn quote(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    }
}

fn join_alternatives(names: &[String]) -> String {
    match names {
        [] => "another value".to_owned(),
        [only] => only.clone(),
        [before @ .., last] => format!("{} or {last}", before.join(", ")),
    }
}

/// Returns a hint if a number of seconds above the limit is plausible as milliseconds.
fn milliseconds_hint(error: &ValidationError<'_>) -> Option<String> {
    let ValidationErrorKind::Maximum { limit } = error.kind() else {
        return None;
    };
    let number = error.instance().as_f64()?;
    let limit = limit.as_f64()?;
    let seconds = number / 1000.0;
    let is_time_out = error.instance_path().as_str().to_ascii_lowercase().ends_with("timeout");
    (is_time_out && seconds <= limit)
        .then(|| format!("the unit is seconds; write `{seconds}` for {number} milliseconds"))
}

/// Returns a hint if a text is a number, or a time with its unit, where a number of seconds is
/// expected.
fn duration_hint(error: &ValidationError<'_>) -> Option<String> {
    let ValidationErrorKind::Type { kind: TypeKind::Single(JsonType::Number) } = error.kind()
    else {
        return None;
    };
    let text = error.instance().as_str()?.trim();
    let unit_start = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_start);
    let in_seconds = match unit.trim() {
        "ms" | "msec" | "millis" | "milliseconds" => 0.001,
        "" | "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hour" | "hours" => 3600.0,
        _ => return None,
    };
    let seconds = number.parse::<f64>().ok()? * in_seconds;
    Some(format!("write the number of seconds: `{seconds}`"))
}

/// Removes the invalid parts, so that the rest can be deserialized.
///
/// Invalid list elements stay, because the indexes of the others count. Invalid entries of a map
/// with arbitrary names are removed one by one; any other invalid value is removed as a whole.
fn remove(value: &mut Value, rejected: &[Vec<PathSegment<'_>>]) {
    let Value::Object(map) = value else {
        *value = Value::Object(Map::new());
        return;
    };
    let mut names: HashMap<&str, HashSet<&str>> = HashMap::new();
    for segments in rejected {
        match (
            segments.as_slice(),
            segments.first().and_then(|segment| map.get(segment.key_name())),
        ) {
            ([_, PathSegment::Index(_), ..], Some(Value::Array(_))) => {}
            ([PathSegment::Key(free), PathSegment::Key(name), ..], Some(Value::Object(_)))
                if matches!(free.as_ref(), "env" | "headers") =>
            {
                names.entry(free).or_default().insert(name);
            }
            ([first, ..], _) => {
                map.shift_remove(first.key_name());
            }
            ([], _) => map.clear(),
        }
    }
    for (free, names) in names {
        if let Some(Value::Object(free)) = map.get_mut(free) {
            free.retain(|name, _| !names.contains(name.as_str()));
        }
    }
}
