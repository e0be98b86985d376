//! Checks the values of a form.

use std::cmp::Ordering;

use chrono::{DateTime, NaiveDate};
use innkeeper_host::display_safe;
use serde_json::{Map, Number, Value};
use url::Url;

use super::{ChoiceOption, FieldKind, Form, FormField, TextFormat};

/// Why a value of a field is invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FieldError {
    /// The required value is missing.
    #[error("a value is required")]
    Missing,
    /// The form has no field with this name.
    #[error("the form has no such field")]
    UnknownField,
    /// The value has another type.
    #[error("expected {expected}")]
    WrongType {
        /// The expected type.
        expected: &'static str,
    },
    /// The text does not have the format.
    #[error("expected {format}")]
    WrongFormat {
        /// The expected format.
        format: TextFormat,
    },
    /// The text is too short.
    #[error("must have at least {minimum} characters")]
    TooShort {
        /// The minimum number of characters.
        minimum: u64,
    },
    /// The text is too long.
    #[error("must have at most {maximum} characters")]
    TooLong {
        /// The maximum number of characters.
        maximum: u64,
    },
    /// The number is too small.
    #[error("must be at least {minimum}")]
    TooSmall {
        /// The smallest number.
        minimum: Number,
    },
    /// The number is too large.
    #[error("must be at most {maximum}")]
    TooLarge {
        /// The largest number.
        maximum: Number,
    },
    /// The text is none of the options.
    #[error("`{}` is none of the options", display_safe(.value))]
    UnknownOption {
        /// The text.
        value: String,
    },
    /// An option is chosen twice.
    #[error("`{}` is chosen twice", display_safe(.value))]
    RepeatedOption {
        /// The value of the option.
        value: String,
    },
    /// Too few options are chosen.
    #[error("choose at least {minimum} options")]
    TooFewOptions {
        /// The minimum number of options.
        minimum: u64,
    },
    /// Too many options are chosen.
    #[error("choose at most {maximum} options")]
    TooManyOptions {
        /// The maximum number of options.
        maximum: u64,
    },
}

/// An invalid value of a form.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("field `{}`: {error}", display_safe(.field))]
pub struct FieldProblem {
    /// The name of the field.
    pub field: String,
    /// Why the value is invalid.
    pub error: FieldError,
}

impl Form {
    /// Checks the values of a response. The function adds no defaults: a field without a value has
    /// none.
    ///
    /// # Errors
    ///
    /// Returns each invalid value, each missing required value and each value without a field.
    pub fn check(&self, values: &Map<String, Value>) -> Result<(), Vec<FieldProblem>> {
        let mut problems = Vec::new();
        for field in self.fields() {
            let checked = match values.get(&field.name) {
                Some(value) => field.check(value),
                None if field.is_required => Err(FieldError::Missing),
                None => Ok(()),
            };
            let problem =
                checked.err().map(|error| FieldProblem { field: field.name.clone(), error });
            problems.extend(problem);
        }
        let unknown = values.keys().filter(|name| self.field(name).is_none());
        problems.extend(
            unknown
                .map(|name| FieldProblem { field: name.clone(), error: FieldError::UnknownField }),
        );
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}

impl FormField {
    /// Checks one value.
    ///
    /// # Errors
    ///
    /// Returns the first rule that the value violates.
    pub fn check(&self, value: &Value) -> Result<(), FieldError> {
        match &self.kind {
            FieldKind::Text { format, min_length, max_length } => {
                let text = value.as_str().ok_or_else(|| self.kind.wrong_type())?;
                check_length(text, *min_length, *max_length)?;
                match format {
                    Some(format) if !format.matches(text) => {
                        Err(FieldError::WrongFormat { format: *format })
                    }
                    Some(_) | None => Ok(()),
                }
            }
            FieldKind::Number { is_integer, minimum, maximum } => {
                let Value::Number(number) = value else { return Err(self.kind.wrong_type()) };
                if *is_integer && !is_whole(number) {
                    return Err(self.kind.wrong_type());
                }
                check_range(number, minimum.as_ref(), maximum.as_ref())
            }
            FieldKind::Boolean => value.as_bool().map(drop).ok_or_else(|| self.kind.wrong_type()),
            FieldKind::SingleChoice { options } => {
                check_option(value.as_str().ok_or_else(|| self.kind.wrong_type())?, options)
            }
            FieldKind::MultiChoice { options, min_items, max_items } => {
                let chosen = value.as_array().ok_or_else(|| self.kind.wrong_type())?;
                let chosen: Option<Vec<&str>> = chosen.iter().map(Value::as_str).collect();
                check_choices(
                    &chosen.ok_or_else(|| self.kind.wrong_type())?,
                    options,
                    *min_items,
                    *max_items,
                )
            }
        }
    }
}

impl FieldKind {
    /// Returns what a value must be, for messages.
    pub(super) fn wrong_type(&self) -> FieldError {
        FieldError::WrongType { expected: self.expected_type() }
    }

    fn expected_type(&self) -> &'static str {
        match self {
            Self::Text { .. } => "a text",
            Self::Number { is_integer: true, .. } => "an integer",
            Self::Number { is_integer: false, .. } => "a number",
            Self::Boolean => "`yes` or `no`",
            Self::SingleChoice { .. } => "one of the options",
            Self::MultiChoice { .. } => "a list of options",
        }
    }
}

impl TextFormat {
    fn matches(self, text: &str) -> bool {
        match self {
            Self::Email => is_email(text),
            Self::Uri => Url::parse(text).is_ok(),
            Self::Date => {
                // chrono also reads years with a sign and numbers without leading zeros.
                text.len() == "2026-07-28".len()
                    && text.starts_with(|first: char| first.is_ascii_digit())
                    && NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok()
            }
            Self::DateTime => DateTime::parse_from_rfc3339(text).is_ok(),
        }
    }
}

/// Returns whether a text has the shape of an email address: one `@` between two parts without
/// white space. Whether the address exists is up to the server.
fn is_email(text: &str) -> bool {
    text.split_once('@').is_some_and(|(local, domain)| {
        let has_part_letters = [local, domain].iter().all(|part| {
            !part.is_empty()
                && !part.contains(|c: char| c.is_whitespace() || c.is_control() || c == '@')
        });
        has_part_letters && !domain.starts_with('.') && !domain.ends_with('.')
    })
}

fn check_length(text: &str, minimum: Option<u64>, maximum: Option<u64>) -> Result<(), FieldError> {
    let length = text.chars().count() as u64;
    match (minimum, maximum) {
        (Some(minimum), _) if length < minimum => Err(FieldError::TooShort { minimum }),
        (_, Some(maximum)) if length > maximum => Err(FieldError::TooLong { maximum }),
        (Some(_) | None, Some(_) | None) => Ok(()),
    }
}

fn check_range(
    number: &Number,
    minimum: Option<&Number>,
    maximum: Option<&Number>,
) -> Result<(), FieldError> {
    if let Some(minimum) = minimum.filter(|minimum| compare(number, minimum).is_lt()) {
        return Err(FieldError::TooSmall { minimum: minimum.clone() });
    }
    if let Some(maximum) = maximum.filter(|maximum| compare(number, maximum).is_gt()) {
        return Err(FieldError::TooLarge { maximum: maximum.clone() });
    }
    Ok(())
}

fn check_option(value: &str, options: &[ChoiceOption]) -> Result<(), FieldError> {
    if options.iter().any(|option| option.value == value) {
        return Ok(());
    }
    Err(FieldError::UnknownOption { value: value.to_owned() })
}

fn check_choices(
    chosen: &[&str],
    options: &[ChoiceOption],
    minimum: Option<u64>,
    maximum: Option<u64>,
) -> Result<(), FieldError> {
    for (index, value) in chosen.iter().enumerate() {
        check_option(value, options)?;
        if chosen[..index].contains(value) {
            return Err(FieldError::RepeatedOption { value: (*value).to_owned() });
        }
    }
    let count = chosen.len() as u64;
    match (minimum, maximum) {
        (Some(minimum), _) if count < minimum => Err(FieldError::TooFewOptions { minimum }),
        (_, Some(maximum)) if count > maximum => Err(FieldError::TooManyOptions { maximum }),
        (Some(_) | None, Some(_) | None) => Ok(()),
    }
}

/// Returns whether a number has no fraction, also `3.0`.
fn is_whole(number: &Number) -> bool {
    !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// Compares two numbers; integers without a loss of precision.
pub(super) fn compare(left: &Number, right: &Number) -> Ordering {
    if let (Some(left), Some(right)) = (left.as_i128(), right.as_i128()) {
        return left.cmp(&right);
    }
    let left = left.as_f64();
    let right = right.as_f64();
    left.partial_cmp(&right).unwrap_or(Ordering::Equal)
}
