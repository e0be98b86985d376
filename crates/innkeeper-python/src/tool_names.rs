//! The names and schemas of tools at a provider.

use innkeeper_toolcall::{Aliases, Dialect, NameRules, lower_schema};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use serde_json::Value;
use serde_json::value::to_raw_value;

use crate::failure::Failure;
use crate::json::{Tape, parameter_json};

/// Returns the names that a provider takes, each with the tool's own name, in the order of the tools.
#[pyfunction]
pub(crate) fn tool_names(
    names: Vec<PyBackedStr>,
    provider: &str,
) -> PyResult<Vec<(String, String)>> {
    let rules = match provider.to_ascii_lowercase().as_str() {
        "openai" | "openai-compatible" => NameRules::OPENAI,
        "anthropic" => NameRules::ANTHROPIC,
        "gemini" => NameRules::GEMINI,
        "ollama" => NameRules::OLLAMA,
        _ => return Err(unknown(provider)),
    };
    let aliases = Aliases::new(names.iter().map(|name| &**name), rules);
    let pairs = names.into_iter().map(|name| {
        let alias = aliases.alias(&name).unwrap_or(&name).to_owned();
        (alias, name.to_string())
    });
    Ok(pairs.collect())
}

/// Returns the schema of a tool's arguments as a provider takes it.
#[pyfunction]
pub(crate) fn tool_schema(
    py: Python<'_>,
    schema: &Bound<'_, PyAny>,
    provider: &str,
) -> PyResult<Py<PyAny>> {
    let dialect = match provider.to_ascii_lowercase().as_str() {
        "openai" | "openai-compatible" => Dialect::OpenAi,
        "anthropic" => Dialect::Anthropic,
        "gemini" => Dialect::Gemini,
        "ollama" => Dialect::Ollama,
        _ => return Err(unknown(provider)),
    };
    let json = parameter_json(schema, "the schema")?;
    let internal = |error: serde_json::Error| Failure::Internal(error.to_string()).into_error(py);
    let schema: Value = serde_json::from_str(json.get()).map_err(internal)?;
    let lowered = to_raw_value(&lower_schema(&schema, dialect).schema).map_err(internal)?;
    Tape::new(lowered).into_python(py)
}

fn unknown(provider: &str) -> PyErr {
    PyValueError::new_err(format!(
        "unknown provider `{provider}`: use openai, openai-compatible, anthropic, gemini or ollama"
    ))
}
