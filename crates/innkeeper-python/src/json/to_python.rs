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

/// The longest string, in bytes, that is copied at once. The first copy of 50 MB takes a Python thread
/// 60 ms: the system has to find the memory, page by page.
const MAX_BYTES_AT_ONCE: usize = 256 << 10;

/// A conversion that can pause between two tokens, and within a long string.
pub(crate) struct ToPython {
    tape: Tape,
    next: usize,
    open: Vec<Container>,
    long_string: Option<LongString>,
}

/// The beginning of a long string.
struct LongString {
    /// The generator of the Python package that has it.
    parts: Py<PyAny>,
    bytes: usize,
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
        Self { tape, next: 0, open: Vec::new(), long_string: None }
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
                Token::Str(_) | Token::Unescaped(_) => {
                    let text = self.tape.string(self.next - 1).unwrap_or_default();
                    let Some(string) = string(py, text, &mut self.long_string)? else {
                        self.next -= 1;
                        return Ok(None);
                    };
                    string
                }
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

/// Returns a string; none while parts of a long one are missing.
fn string(
    py: Python<'_>,
    text: &str,
    long: &mut Option<LongString>,
) -> PyResult<Option<Py<PyAny>>> {
    if text.len() <= MAX_BYTES_AT_ONCE {
        return Ok(Some(PyString::new(py, text).into_any().unbind()));
    }
    let mut string = match long.take() {
        Some(string) => string,
        None => LongString::new(py)?,
    };
    let rest = &text[string.bytes..];
    if rest.is_empty() {
        return Ok(Some(string.send(py, "")?));
    }
    string.send(py, &rest[..rest.floor_char_boundary(MAX_BYTES_AT_ONCE)])?;
    *long = Some(string);
    Ok(None)
}

impl LongString {
    fn new(py: Python<'_>) -> PyResult<Self> {
        let parts = py.import("innkeeper._long_string")?.call_method0("join_parts")?;
        parts.call_method1("send", (py.None(),))?;
        Ok(Self { parts: parts.unbind(), bytes: 0 })
    }

    /// Adds a part; an empty one returns the string.
    fn send(&mut self, py: Python<'_>, part: &str) -> PyResult<Py<PyAny>> {
        self.bytes += part.len();
        self.parts.call_method1(py, "send", (part,))
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
