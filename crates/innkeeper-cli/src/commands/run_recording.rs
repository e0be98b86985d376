//! Writes the recording of a run or a chat to a file: `--record` and `--trace`.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::SystemTime;

use innkeeper_agent::agent::AgentSettings;
use innkeeper_agent::ghost::GhostResult;
use innkeeper_agent::golden::{
    Category, DescribedPrompts, DescribedServers, Golden, GoldenRecorder, KnownSecret, RecordError,
    RunDescription, known_secrets, save_golden,
};
use innkeeper_agent::transport::Endpoint;
use innkeeper_host::{Config, Environment, find_credentials};
use serde_json::value::RawValue;

use super::golden::choice::GoldenChoice;
use super::golden::recordable::check_writable;
use crate::exit::CliError;
use crate::output::{Output, Style};

#[derive(Clone, Copy, Debug)]
pub(super) enum RecordTarget<'a> {
    /// A golden, which replays.
    Golden(&'a Path),
    /// A line at the end of a trace, which nobody has replayed.
    Trace(&'a Path),
}

impl<'a> RecordTarget<'a> {
    /// Returns the target of a golden, or of `--trace`.
    ///
    /// # Errors
    ///
    /// The golden is recorded under continuous integration: a golden that records itself tests nothing.
    /// Or a file cannot be written.
    pub(super) fn new(
        choice: Option<GoldenChoice<'a>>,
        trace: Option<&'a Path>,
        environment: &Environment,
    ) -> Result<Option<Self>, CliError> {
        if let Some(choice) = choice {
            return Ok(choice.recorded_file(environment)?.map(Self::Golden));
        }
        let Some(file) = trace else { return Ok(None) };
        check_writable(file)?;
        Ok(Some(Self::Trace(file)))
    }

    fn file(self) -> &'a Path {
        match self {
            Self::Golden(file) | Self::Trace(file) => file,
        }
    }
}

pub(super) struct RunRecording<'a> {
    target: RecordTarget<'a>,
    pub(super) recorder: GoldenRecorder,
    recorded_at: SystemTime,
    server_config: String,
    secrets: Vec<KnownSecret>,
}

/// What the recording gets from the run.
pub(super) struct RunFacts<'a> {
    pub(super) prompt: &'a str,
    /// The messages of a chat after the first one.
    pub(super) further_prompts: &'a [String],
    pub(super) namespace: &'a str,
    pub(super) settings: AgentSettings,
    /// The servers: why a server is not available, or `None`.
    pub(super) servers: BTreeMap<String, Option<String>>,
}

impl<'a> RunRecording<'a> {
    pub(super) fn new(target: RecordTarget<'a>) -> Self {
        Self {
            target,
            recorder: GoldenRecorder::new(),
            recorded_at: SystemTime::now(),
            server_config: String::new(),
            secrets: Vec::new(),
        }
    }

    pub(super) fn file(&self) -> &'a Path {
        self.target.file()
    }

    pub(super) fn set_configuration(&mut self, endpoint: Option<&Endpoint>, config: &Config) {
        self.server_config = config.origin.servers_as_written();
        self.secrets = known_secrets(endpoint, config);
    }

    /// Writes the recording of a run, and says where.
    pub(super) async fn write(
        &self,
        run: RunFacts<'_>,
        result: &GhostResult,
        output: &mut Output,
    ) -> Result<(), CliError> {
        let file = self.target.file();
        let not_recorded = || format!("the run was not recorded in `{}`", file.display());
        let server_config = RawValue::from_string(self.server_config.clone())
            .map_err(|error| CliError::failure(not_recorded()).with_source(error))?;
        let test_name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let description = RunDescription {
            category: Category::from_test_name(&test_name),
            test_name,
            recorded_at: self.recorded_at,
            servers: DescribedServers { config: server_config, states: run.servers },
            prompts: DescribedPrompts {
                first: run.prompt.to_owned(),
                further: run.further_prompts.to_vec(),
            },
            namespace: run.namespace.to_owned(),
            streaming: true,
            settings: run.settings,
        };
        let golden = match self.target {
            RecordTarget::Golden(_) => {
                self.recorder.finish(&description, result, &self.secrets, find_credentials).await
            }
            RecordTarget::Trace(_) => {
                self.recorder.trace(&description, result, &self.secrets, find_credentials)
            }
        };
        let golden = golden.map_err(|error| record_error(not_recorded(), error))?;
        self.store(golden).map_err(|error| CliError::failure(not_recorded()).with_source(error))?;
        let verb = match self.target {
            RecordTarget::Golden(_) => "recorded",
            RecordTarget::Trace(_) => "traced",
        };
        Ok(output.labelled_status(Style::Good, verb, &file.display().to_string())?)
    }

    fn store(&self, golden: Golden) -> Result<(), Box<dyn Error + Send + Sync>> {
        match self.target {
            RecordTarget::Golden(file) => save_golden(file, golden)?,
            RecordTarget::Trace(file) => {
                let mut line = serde_json::to_string(&golden)?;
                line.push('\n');
                append_private(file, &line)?;
            }
        }
        Ok(())
    }
}

fn record_error(message: String, error: RecordError) -> CliError {
    let hint = match &error {
        RecordError::NoHttp => Some("use a provider with an HTTP API"),
        RecordError::Redact(_) => Some("the file was not written, so that no secret is in it"),
        RecordError::OrdinaryWord { .. } => {
            Some("give the server another value for the recording, such as one with a digit")
        }
        RecordError::NotFinished { .. }
        | RecordError::Setting { .. }
        | RecordError::Write(_)
        | RecordError::Replay(_)
        | RecordError::Differs { .. }
        | RecordError::Json(_) => None,
    };
    let failure = CliError::failure(message).with_source(error);
    hint.into_iter().fold(failure, CliError::with_hint)
}

/// Appends to a file. A new file is readable by its owner only.
pub(super) fn append_private(file: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)?.write_all(text.as_bytes())
}
