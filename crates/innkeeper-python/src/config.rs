//! The configuration of a host: a file, or a dict.

use std::path::{Path, PathBuf};

use innkeeper::config::{Diagnostic, Severity};
use innkeeper::{ConfigError, Environment};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;

use crate::failure::Failure;
use crate::json::to_json;

/// The source of a configuration that is no file, in messages.
const DICT: &str = "the dict";

/// Where a configuration comes from; read when a host starts.
#[pyclass(frozen, module = "innkeeper._core")]
pub(crate) struct Config(ConfigSource);

#[derive(Clone)]
pub(crate) enum ConfigSource {
    File(PathBuf),
    Value(Value),
}

impl Config {
    pub(crate) fn source(&self) -> ConfigSource {
        self.0.clone()
    }
}

#[pymethods]
impl Config {
    /// Takes a path or a dict. A string is always a path, never a program.
    #[new]
    fn new(py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<Self> {
        if source.cast::<PyDict>().is_err() {
            return Ok(Self(ConfigSource::File(source.extract()?)));
        }
        let refused = |key: String, message: String| {
            let problem = Diagnostic {
                severity: Severity::Error,
                source: DICT.to_owned(),
                line: 0,
                column: 0,
                key,
                message,
                hint: None,
            };
            Failure::Config(ConfigError(vec![problem])).into_error(py)
        };
        let json = to_json(source).map_err(|error| {
            let refusal = refused(error.key(), error.message.clone());
            error.into_error(py, refusal)
        })?;
        let value = serde_json::from_str(json.get());
        let value = value.map_err(|error| refused(String::new(), error.to_string()))?;
        Ok(Self(ConfigSource::Value(value)))
    }
}

impl ConfigSource {
    /// Reads the configuration, with the variables of this process.
    pub(crate) fn load(&self) -> Result<innkeeper::Config, ConfigError> {
        match self {
            Self::File(path) => innkeeper::Config::from_file(path),
            Self::Value(value) => {
                let environment = Environment::from_process();
                innkeeper::Config::from_value(value, DICT, Path::new("."), &environment)
            }
        }
    }
}
