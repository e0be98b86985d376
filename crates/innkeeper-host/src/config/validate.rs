//! An entry against its JSON Schema, every failure put into our words at the user's place.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{JsonType, ValidationError, Validator};
use serde_json::{Map, Value};

use super::fit::fits;
use super::place::{Place, Step, locate};
use super::problem::Severity;
use super::schema;
use super::source::Report;
use super::trail::Trail;
use super::tree::Node;

static SERVER: LazyLock<Validator> = LazyLock::new(|| compile(&schema::SERVER));
static HOST: LazyLock<Validator> = LazyLock::new(|| compile(&schema::HOST));

fn compile(schema: &Value) -> Validator {
    jsonschema::draft202012::new(schema).expect("a test compiles the generated schemas")
}

/// The value of a server's entry without the parts that were refused.
pub(super) fn server(node: &Node, path: &str, report: &mut Report) -> Value {
    apply(&schema::SERVER, &SERVER, node, path, report)
}

/// The value of the `host` object without the parts that were refused.
pub(super) fn host(node: &Node, path: &str, report: &mut Report) -> Value {
    apply(&schema::HOST, &HOST, node, path, report)
}

fn apply(
    schema: &Value,
    validator: &LazyLock<Validator>,
    node: &Node,
    path: &str,
    report: &mut Report,
) -> Value {
    let mut value = node.to_value();
    if fits(schema, &value) {
        return value;
    }
    let mut refused: Vec<Vec<Step<'static>>> = Vec::new();
    for error in validator.iter_errors(&value) {
        tell(&error, node, path, report, &mut refused);
    }
    remove(&mut value, &refused);
    value
}

fn steps(location: &Location) -> Vec<Step<'static>> {
    location
        .into_iter()
        .map(|segment| match segment {
            LocationSegment::Property(key) => Step::Key(Cow::Owned(key.into_owned())),
            LocationSegment::Index(index) => Step::Index(index),
        })
        .collect()
}

fn tell(
    error: &ValidationError<'_>,
    root: &Node,
    path: &str,
    report: &mut Report,
    refused: &mut Vec<Vec<Step<'static>>>,
) {
    if let Some(inner) = nearest_branch(error) {
        for error in inner {
            tell(error, root, path, report, refused);
        }
        return;
    }
    let steps = steps(error.instance_path());
    refused.push(steps.clone());
    if report.is_full() {
        return report.count(Severity::Error);
    }
    let Place { at, key } = locate(root, path, &steps);
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let key = Trail::from(&key).key(property.as_str().unwrap_or_default()).to_string();
            report.error(at, key, "missing");
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            for name in unexpected {
                report.error(at, Trail::from(&key).key(name), "unknown key");
            }
        }
        kind => report.error(at, key, wording(kind)),
    }
    if let Some(hint) = milliseconds(error) {
        report.hint(hint);
    }
}

/// The errors of the one alternative whose type fits, since the others were not meant.
fn nearest_branch<'e>(error: &'e ValidationError<'_>) -> Option<&'e [ValidationError<'static>]> {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) =
        error.kind()
    else {
        return None;
    };
    let here = error.instance_path();
    let fits = |branch: &&Vec<ValidationError<'static>>| {
        !branch.iter().any(|inner| {
            inner.instance_path() == here
                && matches!(
                    inner.kind(),
                    ValidationErrorKind::Type { .. }
                        | ValidationErrorKind::Constant { .. }
                        | ValidationErrorKind::Enum { .. }
                )
        })
    };
    context.iter().find(fits).map(Vec::as_slice)
}

fn wording(kind: &ValidationErrorKind) -> String {
    match kind {
        ValidationErrorKind::Type { .. }
        | ValidationErrorKind::Constant { .. }
        | ValidationErrorKind::Enum { .. } => {
            format!("expected {}", any_of(&expected(kind)))
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            let mut all: Vec<String> = Vec::new();
            for name in context.iter().flatten().flat_map(|inner| expected(inner.kind())) {
                if !all.contains(&name) {
                    all.push(name);
                }
            }
            format!("expected {}", any_of(&all))
        }
        ValidationErrorKind::Minimum { limit } => format!("expected {} or more", plain(limit)),
        ValidationErrorKind::Maximum { limit } => format!("expected {} or less", plain(limit)),
        ValidationErrorKind::Pattern { .. } => "expected a size such as `512 MiB`".to_owned(),
        other => format!("does not fit the schema (`{}`)", other.keyword()),
    }
}

/// What a failed keyword would have accepted, in words.
fn expected(kind: &ValidationErrorKind) -> Vec<String> {
    match kind {
        ValidationErrorKind::Type { kind: TypeKind::Single(kind) } => vec![kind.to_string()],
        ValidationErrorKind::Type { kind: TypeKind::Multiple(kinds) } => {
            // The type that is meant most often first, the one that stands for nothing last.
            let order = [
                JsonType::String,
                JsonType::Integer,
                JsonType::Number,
                JsonType::Boolean,
                JsonType::Array,
                JsonType::Object,
                JsonType::Null,
            ];
            let accepted = order.into_iter().filter(|kind| kinds.contains(*kind));
            accepted.map(|kind| kind.to_string()).collect()
        }
        ValidationErrorKind::Constant { expected_value } => vec![quote(expected_value)],
        ValidationErrorKind::Enum { options } => {
            options.as_array().into_iter().flatten().map(quote).collect()
        }
        _ => Vec::new(),
    }
}

/// A number as people write it: `86400` and not `86400.0`.
fn plain(number: &Value) -> String {
    number.as_f64().map_or_else(|| number.to_string(), |number| number.to_string())
}

fn quote(value: &Value) -> String {
    format!("`{}`", value.as_str().unwrap_or_default())
}

fn any_of(names: &[String]) -> String {
    match names {
        [] => "something else".to_owned(),
        [one] => one.clone(),
        [before @ .., last] => format!("{} or {last}", before.join(", ")),
    }
}

/// A number of seconds above the limit that would be sensible as milliseconds.
fn milliseconds(error: &ValidationError<'_>) -> Option<String> {
    let ValidationErrorKind::Maximum { limit } = error.kind() else {
        return None;
    };
    let (number, limit) = (error.instance().as_f64()?, limit.as_f64()?);
    let seconds = number / 1000.0;
    let is_time_out = error.instance_path().as_str().to_ascii_lowercase().ends_with("timeout");
    (is_time_out && seconds <= limit)
        .then(|| format!("the unit is seconds; {number} milliseconds are `{seconds}`"))
}

/// Cuts out what was refused, so that the rest can be read.
///
/// Elements of lists stay, since the places of the others are counted; of a map of free names only
/// the refused ones are taken; everything else goes as a whole.
fn remove(value: &mut Value, refused: &[Vec<Step<'_>>]) {
    let Value::Object(map) = value else {
        *value = Value::Object(Map::new());
        return;
    };
    let mut names: HashMap<&str, HashSet<&str>> = HashMap::new();
    for steps in refused {
        match (steps.as_slice(), steps.first().and_then(|step| map.get(step.name()))) {
            ([_, Step::Index(_), ..], Some(Value::Array(_))) => {}
            ([Step::Key(free), Step::Key(name), ..], Some(Value::Object(_)))
                if matches!(free.as_ref(), "env" | "headers") =>
            {
                names.entry(free).or_default().insert(name);
            }
            ([first, ..], _) => {
                map.shift_remove(first.name());
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
