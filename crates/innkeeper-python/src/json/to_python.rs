//! Python objects from a tape.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyInt, PyList, PyString};
use tokio::time::Instant;

use super::Tape;
use super::tape::{MAX_DIGITS, Token};
use crate::failure::Failure;
use crate::loop_queue::SLICE;

/// Tokens between two looks at the clock.
const TOKENS_PER_CHECK: usize = 512;

/// A conversion that can pause between two tokens.
pub(crate) struct ToPython {
    tape: Tape,
    next: usize,
    open: Vec<Container>,
}

/// What a slice of a conversion achieved.
pub(crate) enum Progress {
    Finished(PyResult<Py<PyAny>>),
    Unfinished,
}

enum Container {
    List(Py<PyList>),
    Dict { dict: Py<PyDict>, key: Option<Py<PyAny>> },
}

impl Tape {
    /// Creates the Python value.
    pub(crate) fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let mut conversion = ToPython::new(self);
        loop {
            if let Progress::Finished(value) = conversion.advance(py) {
                return value;
            }
        }
    }
}

impl ToPython {
    pub(crate) fn new(tape: Tape) -> Self {
        Self { tape, next: 0, open: Vec::new() }
    }

    /// Converts for at most a slice of time.
    pub(crate) fn advance(&mut self, py: Python<'_>) -> Progress {
        let start = Instant::now();
        loop {
            match self.convert(py, TOKENS_PER_CHECK) {
                Ok(Some(value)) => return Progress::Finished(Ok(value)),
                Err(error) => return Progress::Finished(Err(error)),
                Ok(None) if start.elapsed() >= SLICE => return Progress::Unfinished,
                Ok(None) => {}
            }
        }
    }

    /// Converts some tokens; returns the value at the end.
    fn convert(&mut self, py: Python<'_>, tokens: usize) -> PyResult<Option<Py<PyAny>>> {
        for _ in 0..tokens {
            let Some(token) = self.tape.tokens.get(self.next) else { return Ok(Some(py.None())) };
            self.next += 1;
            let value = match token {
                Token::StartArray => {
                    self.open.push(Container::List(PyList::empty(py).unbind()));
                    continue;
                }
                Token::StartObject => {
                    let dict = PyDict::new(py).unbind();
                    self.open.push(Container::Dict { dict, key: None });
                    continue;
                }
                Token::End => match self.open.pop() {
                    Some(Container::List(list)) => list.into_any(),
                    Some(Container::Dict { dict, .. }) => dict.into_any(),
                    None => return Ok(Some(py.None())),
                },
                Token::Null => py.None(),
                Token::Bool(value) => value.into_pyobject(py)?.to_owned().into_any().unbind(),
                Token::Int(value) => PyInt::new(py, *value).into_any().unbind(),
                Token::LongInt { is_negative, magnitude } => long_int(py, *is_negative, magnitude)?,
                Token::EndlessInt(digits) => return Err(endless_int(py, *digits)),
                Token::Float(value) => PyFloat::new(py, *value).into_any().unbind(),
                Token::Str(range) => {
                    PyString::new(py, &self.tape.text[range.clone()]).into_any().unbind()
                }
                Token::Unescaped(text) => PyString::new(py, text).into_any().unbind(),
                Token::Bytes(bytes) => PyBytes::new(py, bytes).into_any().unbind(),
                Token::Surrogates(range) => surrogates(py, &self.tape.text[range.clone()])?,
            };
            match self.open.last_mut() {
                None => return Ok(Some(value)),
                Some(Container::List(list)) => list.bind(py).append(value)?,
                Some(Container::Dict { dict, key }) => match key.take() {
                    None => *key = Some(value),
                    Some(key) => dict.bind(py).set_item(key, value)?,
                },
            }
        }
        Ok(None)
    }
}

fn long_int(py: Python<'_>, is_negative: bool, magnitude: &[u8]) -> PyResult<Py<PyAny>> {
    let bytes = PyBytes::new(py, magnitude);
    let value = py.get_type::<PyInt>().call_method1("from_bytes", (bytes, "little"))?;
    Ok(if is_negative { value.neg()? } else { value }.unbind())
}

fn endless_int(py: Python<'_>, digits: usize) -> PyErr {
    Failure::Endless(format!(
        "the server sent an integer of {digits} digits; the longest is {MAX_DIGITS}"
    ))
    .into_error(py)
}

/// Returns a string with half of a surrogate pair, as Python's own `json` reads it.
fn surrogates(py: Python<'_>, quoted: &str) -> PyResult<Py<PyAny>> {
    Ok(py.import("json")?.call_method1("loads", (quoted,))?.unbind())
}
