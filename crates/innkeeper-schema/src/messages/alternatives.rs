//! Messages for a value that matches none of several alternatives.
//!
//! The message explains the alternative that was probably meant, if it can be determined.

use std::collections::HashSet;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;

use super::{ViolationCollector, describe_name, expected, join_list, json_type};

type AlternativeErrors = [ValidationError<'static>];

impl ViolationCollector<'_> {
    pub(super) fn add_alternatives(
        &mut self,
        error: &ValidationError<'_>,
        alternatives: &[Vec<ValidationError<'static>>],
    ) {
        let here = error.instance_path().as_str();
        let of_kind: Vec<&AlternativeErrors> = alternatives
            .iter()
            .map(Vec::as_slice)
            .filter(|errors| {
                !errors.iter().any(|error| is_at(error, here) && is_type_mismatch(error))
            })
            .collect();
        if of_kind.is_empty() {
            let all = alternatives.iter().flatten().filter(|error| is_at(error, here));
            let expected = distinct(all.flat_map(expected));
            let message = format!(
                "expected {}, found {}",
                join_list(&expected, " or "),
                json_type(error.instance())
            );
            return self.add(here.to_owned(), message);
        }
        let candidates: Vec<&AlternativeErrors> =
            of_kind.iter().copied().filter(|errors| tag_error(errors, here).is_none()).collect();
        match (of_kind.as_slice(), candidates.as_slice()) {
            ([only], _) | (_, [only]) => only.iter().for_each(|error| self.add_error(error)),
            (_, []) => self.add_tag_values(here, &of_kind),
            (_, candidates) => self.add(here.to_owned(), describe_alternatives(candidates, here)),
        }
    }

    /// Reports the allowed values of the property that selects the alternative.
    fn add_tag_values(&mut self, here: &str, alternatives: &[&AlternativeErrors]) {
        let tags: Vec<_> =
            alternatives.iter().filter_map(|errors| tag_error(errors, here)).collect();
        let at = tags.first().map(|tag| tag.instance_path().as_str()).unwrap_or_default();
        if tags.iter().all(|tag| is_at(tag, at)) {
            let expected = distinct(tags.iter().flat_map(|tag| expected(tag)));
            self.add(at.to_owned(), format!("expected one of {}", join_list(&expected, ", ")));
        } else {
            self.add(here.to_owned(), "matches none of the alternatives".to_owned());
        }
    }
}

fn is_at(error: &ValidationError<'_>, pointer: &str) -> bool {
    error.instance_path().as_str() == pointer
}

/// Returns whether the error is a type mismatch of the value itself.
fn is_type_mismatch(error: &ValidationError<'_>) -> bool {
    matches!(error.kind(), Kind::Type { .. } | Kind::Constant { .. } | Kind::Enum { .. })
}

/// Returns the error of a property with a required constant value.
fn tag_error<'e>(
    errors: &'e AlternativeErrors,
    here: &str,
) -> Option<&'e ValidationError<'static>> {
    errors.iter().find(|error| {
        let parent = error.instance_path().as_str().rsplit_once('/').map(|(parent, _)| parent);
        parent == Some(here) && matches!(error.kind(), Kind::Constant { .. } | Kind::Enum { .. })
    })
}

/// Describes alternatives that are equally likely.
fn describe_alternatives(alternatives: &[&AlternativeErrors], here: &str) -> String {
    let missing: Option<Vec<String>> = alternatives
        .iter()
        .map(|errors| {
            let names: Option<Vec<String>> =
                errors.iter().map(|error| missing_property(error, here)).collect();
            names.map(|names| join_list(&names, " and "))
        })
        .collect();
    match missing {
        Some(names) => format!("missing required property {}", join_list(&names, " or ")),
        None => "matches none of the alternatives".to_owned(),
    }
}

fn missing_property(error: &ValidationError<'_>, here: &str) -> Option<String> {
    match error.kind() {
        Kind::Required { property } if is_at(error, here) => Some(describe_name(property)),
        _ => None,
    }
}

fn distinct(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = HashSet::new();
    all.filter(|problem| seen.insert(problem.clone())).collect()
}
