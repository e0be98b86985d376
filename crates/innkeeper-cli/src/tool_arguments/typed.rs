//! One argument as typed on the command line.

use std::str::FromStr;

use serde_json::value::RawValue;

use super::duplicate_keys::find_duplicate_key;

/// The forms of an argument, for errors.
const FORMS: &str = "expected KEY=VALUE, KEY:=JSON, KEY=@FILE, a JSON object or `-`";

/// An argument of the command line.
#[derive(Clone, Debug)]
pub(crate) enum TypedArgument {
    /// A value of one key.
    Pair { key: String, value: TypedValue },
    /// All arguments as a JSON object.
    Object(String),
    /// All arguments as a JSON object from stdin.
    Stdin,
}

#[derive(Clone, Debug)]
pub(crate) enum TypedValue {
    /// `KEY=VALUE`.
    Text(String),
    /// `KEY:=JSON`.
    Json(Box<RawValue>),
    /// `KEY=@FILE`; `-` is stdin.
    File(String),
}

impl FromStr for TypedArgument {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, Self::Err> {
        if typed == "-" {
            return Ok(Self::Stdin);
        }
        if typed.starts_with('{') {
            return Ok(Self::Object(typed.to_owned()));
        }
        let Some((key, text)) = typed.split_once('=') else {
            return Err(FORMS.to_owned());
        };
        let (key, value) = match (key.strip_suffix(':'), text.strip_prefix('@')) {
            (Some(key), _) => (key, TypedValue::Json(parse_json(key, text)?)),
            (None, Some(rest)) if rest.starts_with('@') => (key, TypedValue::Text(rest.to_owned())),
            (None, Some("")) => {
                return Err(format!(
                    "expected a file name after `{key}=@`; write `{key}=@@` for the text `@`"
                ));
            }
            (None, Some(file)) => (key, TypedValue::File(file.to_owned())),
            (None, None) => (key, TypedValue::Text(text.to_owned())),
        };
        if key.is_empty() {
            return Err(format!("{FORMS}, with a key before the `=`"));
        }
        Ok(Self::Pair { key: key.to_owned(), value })
    }
}

fn parse_json(key: &str, text: &str) -> Result<Box<RawValue>, String> {
    let value: Box<RawValue> = serde_json::from_str(text)
        .map_err(|error| format!("the value of `{key}:=` is not JSON: {error}"))?;
    match find_duplicate_key(value.get()) {
        Some(duplicate) => {
            Err(format!("the value of `{key}:=` has the duplicate key `{duplicate}`"))
        }
        None => Ok(value),
    }
}
