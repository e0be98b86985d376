//! Converts the text that a user enters for a field.

use serde_json::{Number, Value};

use super::{ChoiceOption, FieldError, FieldKind, FormField};

impl FormField {
    /// Converts the input of a user to a checked value. White space around the input is removed.
    /// Empty input means the default; `None` means no value.
    ///
    /// A Boolean is `yes`, `no`, `true` or `false`. An option is its value, its title or its number
    /// from 1; several options have commas between them.
    ///
    /// # Errors
    ///
    /// Returns why the input is invalid.
    pub fn parse_input(&self, input: &str) -> Result<Option<Value>, FieldError> {
        let input = input.trim();
        if input.is_empty() {
            return match &self.default {
                Some(default) => Ok(Some(default.clone())),
                None if self.is_required => Err(FieldError::Missing),
                None => Ok(None),
            };
        }
        let value = match &self.kind {
            FieldKind::Text { .. } => Value::from(input),
            FieldKind::Number { .. } => {
                parse_number(input).map(Value::Number).ok_or_else(|| self.kind.wrong_type())?
            }
            FieldKind::Boolean => {
                parse_boolean(input).map(Value::Bool).ok_or_else(|| self.kind.wrong_type())?
            }
            FieldKind::SingleChoice { options } => Value::from(find_option(input, options)?),
            FieldKind::MultiChoice { options, .. } => parse_choices(input, options)?,
        };
        self.check(&value)?;
        Ok(Some(value))
    }
}

fn parse_number(input: &str) -> Option<Number> {
    if let Ok(integer) = input.parse::<i64>() {
        return Some(integer.into());
    }
    if let Ok(integer) = input.parse::<u64>() {
        return Some(integer.into());
    }
    Number::from_f64(input.parse().ok()?)
}

fn parse_boolean(input: &str) -> Option<bool> {
    match input.to_ascii_lowercase().as_str() {
        "y" | "yes" | "true" => Some(true),
        "n" | "no" | "false" => Some(false),
        _ => None,
    }
}

fn parse_choices(input: &str, options: &[ChoiceOption]) -> Result<Value, FieldError> {
    // The value of an option may contain a comma.
    if let Ok(value) = find_option(input, options) {
        return Ok(Value::from(vec![value]));
    }
    let inputs = input.split(',').map(str::trim).filter(|input| !input.is_empty());
    let chosen: Result<Vec<&str>, FieldError> =
        inputs.map(|input| find_option(input, options)).collect();
    Ok(Value::from(chosen?))
}

/// Finds an option by its value, else by its title, else by its number from 1.
fn find_option<'o>(input: &str, options: &'o [ChoiceOption]) -> Result<&'o str, FieldError> {
    let by_value = options.iter().find(|option| option.value == input);
    let option = by_value
        .or_else(|| options.iter().find(|option| option.label().eq_ignore_ascii_case(input)))
        .or_else(|| options.get(input.parse::<usize>().ok()?.checked_sub(1)?));
    option
        .map(|option| option.value.as_str())
        .ok_or_else(|| FieldError::UnknownOption { value: input.to_owned() })
}
