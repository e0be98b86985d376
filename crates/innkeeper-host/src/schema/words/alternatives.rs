//! What to say when none of several alternatives fits: what the one that was meant lacks, if it can
//! be told.

use std::collections::HashSet;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;

use super::{Words, brief, expected, kind, listed};

type Errors = [ValidationError<'static>];

impl Words<'_> {
    pub(super) fn tell_alternatives(
        &mut self,
        error: &ValidationError<'_>,
        alternatives: &[Vec<ValidationError<'static>>],
    ) {
        let here = error.instance_path().as_str();
        let of_kind: Vec<&Errors> = alternatives
            .iter()
            .map(Vec::as_slice)
            .filter(|errors| !errors.iter().any(|error| is_at(error, here) && is_identity(error)))
            .collect();
        if of_kind.is_empty() {
            let all = alternatives.iter().flatten().filter(|error| is_at(error, here));
            let expected = distinct(all.flat_map(expected));
            let message =
                format!("expected {}, found {}", listed(&expected, " or "), kind(error.instance()));
            return self.add(here.to_owned(), message);
        }
        let meant: Vec<&Errors> =
            of_kind.iter().copied().filter(|errors| tag(errors, here).is_none()).collect();
        match (of_kind.as_slice(), meant.as_slice()) {
            ([one], _) | (_, [one]) => one.iter().for_each(|error| self.tell(error)),
            (_, []) => self.tell_tags(here, &of_kind),
            (_, meant) => self.add(here.to_owned(), together(meant, here)),
        }
    }

    /// Tells what the property that tells the alternatives apart may be.
    fn tell_tags(&mut self, here: &str, alternatives: &[&Errors]) {
        let tags: Vec<_> = alternatives.iter().filter_map(|errors| tag(errors, here)).collect();
        let at = tags.first().map(|tag| tag.instance_path().as_str()).unwrap_or_default();
        if tags.iter().all(|tag| is_at(tag, at)) {
            let expected = distinct(tags.iter().flat_map(|tag| expected(tag)));
            self.add(at.to_owned(), format!("expected one of {}", listed(&expected, ", ")));
        } else {
            self.add(here.to_owned(), "matches none of the alternatives".to_owned());
        }
    }
}

fn is_at(error: &ValidationError<'_>, pointer: &str) -> bool {
    error.instance_path().as_str() == pointer
}

/// Whether the error says that the value is something else altogether.
fn is_identity(error: &ValidationError<'_>) -> bool {
    matches!(error.kind(), Kind::Type { .. } | Kind::Constant { .. } | Kind::Enum { .. })
}

/// The error of a property of the value that has to have a certain value.
fn tag<'e>(errors: &'e Errors, here: &str) -> Option<&'e ValidationError<'static>> {
    errors.iter().find(|error| {
        let parent = error.instance_path().as_str().rsplit_once('/').map(|(parent, _)| parent);
        parent == Some(here) && matches!(error.kind(), Kind::Constant { .. } | Kind::Enum { .. })
    })
}

/// One sentence for alternatives of which none is more likely meant than another.
fn together(alternatives: &[&Errors], here: &str) -> String {
    let missing: Option<Vec<String>> = alternatives
        .iter()
        .map(|errors| {
            let names: Option<Vec<String>> =
                errors.iter().map(|error| missing(error, here)).collect();
            names.map(|names| listed(&names, " and "))
        })
        .collect();
    match missing {
        Some(names) => format!("missing required property {}", listed(&names, " or ")),
        None => "matches none of the alternatives".to_owned(),
    }
}

fn missing(error: &ValidationError<'_>, here: &str) -> Option<String> {
    match error.kind() {
        Kind::Required { property } if is_at(error, here) => Some(brief(property)),
        _ => None,
    }
}

fn distinct(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = HashSet::new();
    all.filter(|one| seen.insert(one.clone())).collect()
}
