//! Runs of document 002: live, recorded, and replayed from a golden.

use std::time::Duration;

use innkeeper::Environment;
use innkeeper::auth::Secret;
use innkeeper::ghost::{GhostConfig, GhostResult, GhostServers};
use innkeeper::golden::{mcp_ghost_recorded, mcp_ghost_replayed};
use pyo3::prelude::*;

use crate::agent_events::RunStream;
use crate::config::{Config, ConfigSource};
use crate::failure::Failure;
use crate::golden::Golden;
use crate::host::timeout_from;
use crate::json::Tape;
use crate::model::PythonModel;
use crate::operation::{Operation, Output};

/// The longest timeout of a call: the library adds times.
const MAX_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3_600);

/// The parameters of a run, checked and without the secrets in their `repr`.
#[pyclass(frozen, module = "innkeeper._core")]
pub(crate) struct GhostRun(GhostConfig);

#[pymethods]
impl GhostRun {
    #[new]
    #[pyo3(signature = (servers, *, system_prompt, provider, api_key, user_prompt, model, namespace, timeout, max_iterations, enable_backtracking, conversation_memory, base_url, plan, own_model))]
    #[expect(clippy::too_many_arguments, reason = "the parameters of document 002, by name")]
    fn new(
        servers: &Config,
        system_prompt: String,
        provider: String,
        api_key: Option<String>,
        user_prompt: String,
        model: Option<String>,
        namespace: String,
        timeout: f64,
        max_iterations: u32,
        enable_backtracking: bool,
        conversation_memory: bool,
        base_url: Option<String>,
        plan: bool,
        own_model: Option<&Bound<'_, PythonModel>>,
    ) -> PyResult<Self> {
        let servers = match servers.source() {
            ConfigSource::File(path) => GhostServers::File(path),
            ConfigSource::Value(value) => GhostServers::Config(value),
        };
        let environment = Environment::from_process();
        let mut config =
            GhostConfig::new(servers, system_prompt, provider, user_prompt, environment);
        let settings = &mut config.settings;
        settings.limits.max_iterations = max_iterations;
        settings.requests.conversation_memory = conversation_memory;
        settings.tool_use.backtracking = enable_backtracking;
        settings.tool_use.planning = plan;
        settings.calls.timeout = Some(timeout_from(timeout)?.min(MAX_TIMEOUT));
        config.model.key = api_key.map(Secret::new);
        config.model.model = model;
        config.model.base_url = base_url;
        config.namespace = namespace;
        config.own_model = own_model.map(|model| model.get().provider());
        Ok(Self(config))
    }

    /// Runs, and returns the result as a dict.
    fn run(&self) -> Operation {
        let config = self.0.clone();
        Operation::new(async move {
            let result = innkeeper::ghost::mcp_ghost(config).await;
            Ok(Output::Json(result_tape(&result)?))
        })
    }

    /// Runs, and returns the result, and the golden or why there is none.
    fn record(&self, test_name: String) -> Operation {
        let config = self.0.clone();
        Operation::new(async move {
            let (result, golden) = mcp_ghost_recorded(config, &test_name).await;
            let result = result_tape(&result)?;
            let golden = golden.map_err(|error| error_chain(&error));
            Ok(Output::Object(Box::new(move |py| {
                let (golden, problem) = match golden {
                    Ok(golden) => (Some(Golden::new(golden)), None),
                    Err(problem) => (None, Some(problem)),
                };
                let outcome = (result.into_python(py)?, golden, problem);
                Ok(outcome.into_pyobject(py)?.into_any().unbind())
            })))
        })
    }

    /// Replays a golden in place of the run, and returns the result and the recorded answers that
    /// nothing asked for.
    fn replay(&self, golden: &Golden) -> Operation {
        let config = self.0.clone();
        let golden = golden.recording();
        Operation::new(async move {
            let replayed = mcp_ghost_replayed(&config, (*golden).clone()).await;
            let replayed = replayed.map_err(|error| Failure::Replay(error_chain(&error)))?;
            let result = result_tape(&replayed.result)?;
            let unused = replayed.unused;
            Ok(Output::Object(Box::new(move |py| {
                let outcome = (result.into_python(py)?, unused);
                Ok(outcome.into_pyobject(py)?.into_any().unbind())
            })))
        })
    }

    /// Runs, and returns the events of the run one by one.
    fn stream(&self) -> RunStream {
        RunStream::new(self.0.clone())
    }
}

pub(crate) fn result_tape(result: &GhostResult) -> Result<Tape, Failure> {
    let json = serde_json::value::to_raw_value(result);
    Ok(Tape::new(json.map_err(|error| Failure::Internal(error.to_string()))?))
}

/// Returns an error with its causes as one text.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Some errors repeat their cause.
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
