//! Goldens for Python tests: the same files as everywhere, read by the same code.

use std::path::PathBuf;
use std::sync::Arc;

use innkeeper::golden::{compare, load_golden, save_golden};
use pyo3::prelude::*;
use serde_json::value::RawValue;

use crate::failure::Failure;
use crate::ghost::error_chain;
use crate::json::{Tape, parameter_json};

/// A recorded run.
#[pyclass(frozen, module = "innkeeper._core")]
pub(crate) struct Golden(Arc<innkeeper::golden::Golden>);

impl Golden {
    pub(crate) fn new(golden: innkeeper::golden::Golden) -> Self {
        Self(Arc::new(golden))
    }

    pub(crate) fn recording(&self) -> Arc<innkeeper::golden::Golden> {
        self.0.clone()
    }
}

#[pymethods]
impl Golden {
    /// Reads a file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let golden = py.detach(|| load_golden(path));
        golden.map(Self::new).map_err(|error| golden_error(py, &error))
    }

    /// Writes a file for its owner only.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let golden = (*self.0).clone();
        py.detach(|| save_golden(path, golden)).map_err(|error| golden_error(py, &error))
    }

    /// Returns the file's content as a dict.
    fn content(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let text = self.0.to_json().map_err(|error| golden_error(py, &error))?;
        let json = RawValue::from_string(text).map_err(|error| golden_error(py, &error))?;
        Tape::new(json).into_python(py)
    }

    /// Compares a result with the recorded one by the golden's rules. Returns the report of what
    /// differs, or `None`.
    fn compare(&self, py: Python<'_>, result: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
        let actual = parameter_json(result, "the result")?;
        let comparison = compare(&self.0.golden_output, &actual, self.0.rules.as_ref())
            .map_err(|error| golden_error(py, &error))?;
        Ok((!comparison.passed()).then(|| format!("{}: {comparison}", self.0.test_name)))
    }
}

fn golden_error(py: Python<'_>, error: &dyn std::error::Error) -> PyErr {
    Failure::Golden(error_chain(error)).into_error(py)
}
