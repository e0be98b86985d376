//! JSON text from Python objects.

use std::fmt::Write as _;

use innkeeper::CallError;
use innkeeper::error::Violation;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};
use serde_json::value::RawValue;

use crate::failure::Failure;

/// The host refuses arguments that are nested deeper.
const MAX_DEPTH: usize = 120;

/// The host checks arguments as 64-bit floats, and refuses integers beyond their range.
const MAX_ARGUMENT_BITS: usize = 1_023;

/// Returns the JSON text of a call's arguments. What JSON cannot express is refused by its place.
pub(crate) fn to_arguments(value: &Bound<'_, PyAny>) -> Result<Box<RawValue>, NotJson> {
    write(value, Some(MAX_ARGUMENT_BITS))
}

/// Returns the JSON text of a parameter, or the exception that names it and the place.
pub(crate) fn parameter_json(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Box<RawValue>> {
    to_json(value).map_err(|error| {
        let refused = Failure::Call(error.to_call_error(name)).into_error(value.py());
        error.into_error(value.py(), refused)
    })
}

/// Returns the JSON text of a Python value.
pub(crate) fn to_json(value: &Bound<'_, PyAny>) -> Result<Box<RawValue>, NotJson> {
    write(value, None)
}

fn write(value: &Bound<'_, PyAny>, max_bits: Option<usize>) -> Result<Box<RawValue>, NotJson> {
    let mut writer = Writer {
        text: String::new(),
        path: Vec::new(),
        containers: Vec::new(),
        max_bits,
        raised: None,
    };
    let written = writer.value(value).and_then(|()| {
        RawValue::from_string(std::mem::take(&mut writer.text)).map_err(|error| error.to_string())
    });
    written.map_err(|message| NotJson { path: writer.path, message, raised: writer.raised })
}

/// What JSON cannot express, and where it is.
pub(crate) struct NotJson {
    path: Vec<Step>,
    pub(crate) message: String,
    /// What an object of the application raised.
    raised: Option<PyErr>,
}

impl NotJson {
    /// Returns the exception: `refused`, with what the application raised as its cause. What ends a
    /// program or cancels a task stays what it is.
    pub(crate) fn into_error(self, py: Python<'_>, refused: PyErr) -> PyErr {
        match self.raised {
            Some(raised) if !raised.is_instance_of::<PyException>(py) => raised,
            Some(raised) => {
                refused.set_cause(py, Some(raised));
                refused
            }
            None => refused,
        }
    }

    /// Returns the error of a call with such arguments.
    pub(crate) fn to_call_error(&self, item: &str) -> CallError {
        let problems = vec![Violation { pointer: self.pointer(), message: self.message.clone() }];
        CallError::Validation { item: item.into(), problems }
    }

    fn pointer(&self) -> String {
        pointer(&self.path)
    }

    /// Returns the place as the key of a configuration: `servers.files.args[1]`.
    pub(crate) fn key(&self) -> String {
        let key = self.path.iter().fold(String::new(), |key, step| match step {
            Step::Index(index) => format!("{key}[{index}]"),
            Step::Key(name) => format!("{key}.{name}"),
        });
        key.trim_start_matches('.').to_owned()
    }
}

/// Where the writer is inside of the value.
enum Step {
    Index(usize),
    Key(String),
}

/// Returns the JSON pointer of a place.
fn pointer(path: &[Step]) -> String {
    path.iter().fold(String::new(), |pointer, step| match step {
        Step::Index(index) => format!("{pointer}/{index}"),
        Step::Key(key) => format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1")),
    })
}

struct Writer {
    text: String,
    path: Vec<Step>,
    /// The addresses of the containers around the value, one for each step of the path.
    containers: Vec<usize>,
    /// The longest integer.
    max_bits: Option<usize>,
    /// What an object of the application raised.
    raised: Option<PyErr>,
}

impl Writer {
    /// Keeps what an object of the application raised, and returns its text.
    fn raised(&mut self, error: PyErr) -> String {
        let text = error.to_string();
        self.raised = Some(error);
        text
    }

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
            return self.nested(value, |writer| writer.object(&dict.items()));
        }
        if let Ok(list) = value.cast::<PyList>() {
            return self.nested(value, |writer| writer.array(list.iter()));
        }
        if let Ok(tuple) = value.cast::<PyTuple>() {
            return self.nested(value, |writer| writer.array(tuple.iter()));
        }
        if let Ok(mapping) = value.cast::<PyMapping>() {
            let items = mapping.items().map_err(|error| self.raised(error))?;
            return self.nested(value, |writer| writer.object(&items));
        }
        Err(format!("`{}` is no JSON value{}", type_name(value), hint(value)))
    }

    fn nested(
        &mut self,
        container: &Bound<'_, PyAny>,
        write: impl FnOnce(&mut Self) -> Result<(), String>,
    ) -> Result<(), String> {
        let address = container.as_ptr().addr();
        if let Some(depth) = self.containers.iter().position(|&outer| outer == address) {
            let outer = match &self.path[..depth] {
                [] => "the whole value".to_owned(),
                path => format!("`{}`", pointer(path)),
            };
            return Err(format!("contains itself: this is {outer} again"));
        }
        if self.path.len() >= MAX_DEPTH {
            return Err(format!("nested deeper than {MAX_DEPTH} levels"));
        }
        self.containers.push(address);
        write(self)?;
        self.containers.pop();
        Ok(())
    }

    /// Writes an object from a copy of its items: the dict may change meanwhile.
    fn object(&mut self, items: &Bound<'_, PyList>) -> Result<(), String> {
        self.text.push('{');
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.text.push(',');
            }
            let pair = item.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>();
            let (key, value) = pair.map_err(|error: PyErr| self.raised(error))?;
            let Ok(name) = key.cast::<PyString>() else {
                return Err(format!(
                    "the key `{}` is `{}`, not a string",
                    shown(&key),
                    type_name(&key)
                ));
            };
            self.string(name).map_err(|message| format!("a key: {message}"))?;
            self.text.push(':');
            // `to_string` calls Python's `str`, which raises Ctrl-C, and drops what that raises.
            self.path.push(Step::Key(name.to_string_lossy().into_owned()));
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
        if let Some(max_bits) = self.max_bits {
            let bits = value.call_method0("bit_length").and_then(|bits| bits.extract::<usize>());
            if bits.map_err(|error| error.to_string())? > max_bits {
                return Err("an argument is no integer beyond 2 ** 1023: use a string".to_owned());
            }
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
    value
        .get_type()
        .name()
        .map_or_else(|_| "object".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Returns the start of a key's `repr`.
fn shown(key: &Bound<'_, PyAny>) -> String {
    let text = key.repr().map(|text| text.to_string_lossy().into_owned()).unwrap_or_default();
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
