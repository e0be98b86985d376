//! The golden that a command line names, and what the command does with it.

use std::path::Path;

use innkeeper_agent::golden::{GoldenAction, GoldenMode, UnusedAnswers};
use innkeeper_host::Environment;

use super::recordable::{check_recordable, is_continuous_integration};
use crate::cli::RunFileArgs;
use crate::exit::CliError;

#[derive(Clone, Copy, Debug)]
pub(in crate::commands) struct GoldenChoice<'a> {
    pub(in crate::commands) file: &'a Path,
    mode: GoldenMode,
    /// What the user typed, for messages.
    option: &'static str,
}

impl<'a> GoldenChoice<'a> {
    /// Returns the golden of `--record FILE`.
    pub(in crate::commands) fn to_record(file: &'a Path) -> Self {
        Self { file, mode: GoldenMode::Record, option: "--record" }
    }

    /// Returns the golden that `ask` has, if any. Under continuous integration, a golden without a mode
    /// is strict.
    pub(in crate::commands) fn of_ask(
        args: &'a RunFileArgs,
        environment: &Environment,
    ) -> Option<Self> {
        let or_strict = |mode| match is_continuous_integration(environment) {
            true => GoldenMode::Strict,
            false => mode,
        };
        if let Some(file) = &args.record {
            return Some(Self::to_record(file));
        }
        if let Some(file) = &args.replay {
            let mode = or_strict(GoldenMode::Replay);
            return Some(Self { file, mode, option: "--replay" });
        }
        let file = args.golden.as_deref()?;
        let mode = match args.golden_mode {
            Some(mode) => mode.into(),
            None => or_strict(GoldenMode::Auto),
        };
        let option = match mode {
            GoldenMode::Auto => "--golden-mode auto",
            GoldenMode::Record => "--golden-mode record",
            GoldenMode::Live | GoldenMode::Replay | GoldenMode::Strict => "--golden",
        };
        Some(Self { file, mode, option })
    }

    /// Returns what unused answers of a replay mean; `None` if the golden is not replayed.
    pub(in crate::commands) fn replay(self) -> Option<UnusedAnswers> {
        match self.action() {
            GoldenAction::Replay(unused) => Some(unused),
            GoldenAction::Run | GoldenAction::Record => None,
        }
    }

    /// Returns the file of a golden that is recorded; `None` for one that is not.
    ///
    /// # Errors
    ///
    /// As for [`check_recordable`].
    pub(in crate::commands) fn recorded_file(
        self,
        environment: &Environment,
    ) -> Result<Option<&'a Path>, CliError> {
        match self.action() {
            GoldenAction::Record => {
                check_recordable(self.file, self.option, environment)?;
                Ok(Some(self.file))
            }
            GoldenAction::Run | GoldenAction::Replay(_) => Ok(None),
        }
    }

    /// What cannot be looked at exists: reading it says why it can't be read.
    fn action(self) -> GoldenAction {
        self.mode.action(self.file.try_exists().unwrap_or(true))
    }
}
