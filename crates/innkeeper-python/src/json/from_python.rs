//! JSON text from Python objects.

use std::fmt::Write as _;

use innkeeper::CallError;
use innkeeper::error::Violation;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde_json::value::RawValue;

use crate::failure::Failure;

/// The host refuses arguments that are nested deeper; a value that contains itself is deeper than any.
const MAX_DEPTH: usize = 120;

/// Returns the JSON text of a Python value. What JSON cannot express is refused by `item`'s name and its
/// place.
pub(crate) fn to_json_text(value: &Bound<'_, PyAny>, item: &str) -> Result<Box<RawValue>, Failure> {
    let mut writer = Writer { text: String::new(), path: Vec::new() };
    let written = writer.value(value).and_then(|()| {
        RawValue::from_string(std::mem::take(&mut writer.text)).map_err(|error| error.to_string())
    });
    written.map_err(|message| {
        let problems = vec![Violation { pointer: writer.pointer(), message }];
        Failure::Call(CallError::Validation { item: item.into(), problems })
    })
}

/// Where the writer is inside of the value.
enum Step {
    Index(usize),
    Key(String),
}

struct Writer {
    text: String,
    path: Vec<Step>,
}

impl Writer {
    fn value(&mut self, value: &Bound<'_, PyAny>) -> Result<(), String> {
        if let Ok(text) = value.cast::<PyString>() {
            return self.string(text);
        }
        if let Ok(value) = value.cast::<PyBool>() {
            self.text.push_str(if value.is_true() { "true" } else { "false" });
            return Ok(());
        }
        if let Ok(value) = value.cast::<PyInt>() {
            return self.integer(value);
        }
        if let Ok(value) = value.cast::<PyFloat>() {
            return self.float(value.value());
        }
        if value.is_none() {
            self.text.push_str("null");
            return Ok(());
        }
        if let Ok(dict) = value.cast::<PyDict>() {
            return self.nested(|writer| writer.object(dict));
        }
        if let Ok(list) = value.cast::<PyList>() {
            return self.nested(|writer| writer.array(list.iter()));
        }
        if let Ok(tuple) = value.cast::<PyTuple>() {
            return self.nested(|writer| writer.array(tuple.iter()));
        }
        Err(format!("`{}` is no JSON value{}", type_name(value), hint(value)))
    }

    fn nested(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<(), String>,
    ) -> Result<(), String> {
        if self.path.len() >= MAX_DEPTH {
            return Err(format!(
                "nested deeper than {MAX_DEPTH} levels, or the value contains itself"
            ));
        }
        write(self)
    }

    fn object(&mut self, dict: &Bound<'_, PyDict>) -> Result<(), String> {
        self.text.push('{');
        for (index, (key, value)) in dict.iter().enumerate() {
            if index > 0 {
                self.text.push(',');
            }
            let Ok(name) = key.cast::<PyString>() else {
                return Err(format!(
                    "the key `{}` is `{}`, not a string",
                    shown(&key),
                    type_name(&key)
                ));
            };
            self.string(name)?;
            self.text.push(':');
            self.path.push(Step::Key(name.to_string()));
            self.value(&value)?;
            self.path.pop();
        }
        self.text.push('}');
        Ok(())
    }

    fn array<'py>(&mut self, items: impl Iterator<Item = Bound<'py, PyAny>>) -> Result<(), String> {
        self.text.push('[');
        for (index, item) in items.enumerate() {
            if index > 0 {
                self.text.push(',');
            }
            self.path.push(Step::Index(index));
            self.value(&item)?;
            self.path.pop();
        }
        self.text.push(']');
        Ok(())
    }

    fn string(&mut self, text: &Bound<'_, PyString>) -> Result<(), String> {
        let text = text.to_str().map_err(|_| {
            "the string contains half of a surrogate pair, which no JSON text can have".to_owned()
        })?;
        let quoted = serde_json::to_string(text).map_err(|error| error.to_string())?;
        self.text.push_str(&quoted);
        Ok(())
    }

    fn integer(&mut self, value: &Bound<'_, PyInt>) -> Result<(), String> {
        if let Ok(value) = value.extract::<i64>() {
            // Writing to a string does not fail.
            let _ = write!(self.text, "{value}");
            return Ok(());
        }
        // `str` refuses integers of more than some thousand digits; `decimal` does not.
        let digits = value.py().import("decimal").and_then(|module| {
            let decimal = module.getattr("Decimal")?.call1((value,))?;
            decimal.call_method1("__format__", ("f",))?.extract::<String>()
        });
        self.text.push_str(&digits.map_err(|error| error.to_string())?);
        Ok(())
    }

    fn float(&mut self, value: f64) -> Result<(), String> {
        if !value.is_finite() {
            return Err(format!("JSON has no `{}`", python_name(value)));
        }
        let text = serde_json::to_string(&value).map_err(|error| error.to_string())?;
        self.text.push_str(&text);
        Ok(())
    }

    /// Returns the JSON pointer of the value that is being written.
    fn pointer(&self) -> String {
        self.path.iter().fold(String::new(), |pointer, step| match step {
            Step::Index(index) => format!("{pointer}/{index}"),
            Step::Key(key) => format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1")),
        })
    }
}

fn python_name(value: f64) -> &'static str {
    if value.is_nan() {
        "nan"
    } else if value > 0.0 {
        "inf"
    } else {
        "-inf"
    }
}

fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string())
}

/// Returns the start of a key's `repr`.
fn shown(key: &Bound<'_, PyAny>) -> String {
    let text = key.repr().map(|text| text.to_string()).unwrap_or_default();
    text.chars().take(60).collect()
}

/// Returns what to write in place of a frequent type.
fn hint(value: &Bound<'_, PyAny>) -> &'static str {
    match &*type_name(value) {
        "bytes" | "bytearray" | "memoryview" => ": use a string, for example of `base64.b64encode`",
        "set" | "frozenset" | "generator" => ": use a list",
        "datetime" | "date" | "time" => ": use `.isoformat()`",
        "Decimal" => ": use a string, an integer or a float",
        _ if value.hasattr("model_dump").unwrap_or(false) => {
            ": use its `.model_dump(mode=\"json\")`"
        }
        _ if value.hasattr("__dataclass_fields__").unwrap_or(false) => ": use `dataclasses.asdict`",
        _ => "",
    }
}
