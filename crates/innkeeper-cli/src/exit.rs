//! The error type of the program.

mod conversions;
mod model_errors;

use std::error::Error;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use serde_json::json;

use crate::error_chain::error_chain;
pub(crate) use crate::exit_code::CliExitCode;
use crate::output::{Output, Style};
use crate::signals::StopSignal;

/// Why a command did not end with [`CliExitCode::Success`], as messages for the user.
#[derive(Debug)]
pub(crate) struct CliError {
    code: CliExitCode,
    message: Option<String>,
    source: Option<Box<dyn Error + Send + Sync>>,
    details: Vec<String>,
    hints: Vec<String>,
    /// Whether stderr gets no message, because the user who sent a signal knows the reason.
    is_quiet: bool,
}

impl CliError {
    /// Creates an error with the exit code for failed work.
    pub(crate) fn failure(message: impl Into<String>) -> Self {
        Self {
            code: CliExitCode::Failed,
            message: Some(message.into()),
            source: None,
            details: Vec::new(),
            hints: Vec::new(),
            is_quiet: false,
        }
    }

    /// Creates an error with the exit code for wrong usage.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { code: CliExitCode::Usage, ..Self::failure(message) }
    }

    /// Creates the error of a file that cannot be written.
    pub(crate) fn cannot_write(
        file: &Path,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::failure(format!("cannot write `{}`", file.display())).with_source(source)
    }

    /// Creates the error of a file that was named and cannot be read.
    pub(crate) fn cannot_read(
        file: &Path,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::usage(format!("cannot read `{}`", file.display())).with_source(source)
    }

    /// Creates an error without a message, for commands whose output already shows the reason.
    pub(crate) fn without_message(code: CliExitCode) -> Self {
        Self { code, message: None, ..Self::failure("") }
    }

    /// Creates the error for a signal; only `--json` prints its message.
    pub(crate) fn from_signal(signal: StopSignal) -> Self {
        let message = format!("terminated by {}", signal.as_str());
        Self { code: signal.into(), is_quiet: true, ..Self::failure(message) }
    }

    /// Sets the source; the chain of sources is printed below the message.
    pub(crate) fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Adds one line of detail below the message.
    pub(crate) fn with_detail(mut self, line: impl Into<String>) -> Self {
        self.details.push(line.into());
        self
    }

    /// Adds a hint on how to fix the error.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Appends the messages of another error; the exit code stays.
    pub(crate) fn merge(mut self, other: Self) -> Self {
        let causes = other.causes();
        self.details.extend(other.message.into_iter().chain(other.details).chain(causes));
        self.hints.extend(other.hints);
        self
    }

    /// Returns the message with its details, causes and hints on one line, for a screen.
    pub(crate) fn to_line(&self) -> String {
        let message = self.message.iter().cloned();
        let parts = message.chain(self.details.iter().cloned()).chain(self.causes());
        let hints = self.hints.iter().map(|hint| format!("hint: {hint}"));
        parts.chain(hints).collect::<Vec<_>>().join("; ")
    }

    /// Returns whether the error has a message. Without one, the output already shows the reason.
    pub(crate) fn has_message(&self) -> bool {
        self.message.is_some()
    }

    /// Sets the exit code for failed work.
    pub(crate) fn into_failure(self) -> Self {
        Self { code: CliExitCode::Failed, ..self }
    }

    pub(crate) fn exit_code(&self) -> CliExitCode {
        self.code
    }

    /// Reports the error: text on stderr and, with `--json`, one object with `error` on stdout
    /// unless the command has already printed a JSON value.
    ///
    /// If a stream is closed, the exit code is the only report.
    pub(crate) fn report(&self, output: &mut Output) -> ExitCode {
        if let Some(message) = &self.message {
            self.print(message, output).unwrap_or_default();
        }
        self.code.into()
    }

    fn print(&self, message: &str, output: &mut Output) -> io::Result<()> {
        let causes = self.causes();
        if !self.is_quiet {
            self.print_text(message, &causes, output)?;
        }
        if output.is_json() && !output.has_written_json() {
            let mask = output.secret_mask();
            let masked = |lines: &[String]| -> Vec<String> {
                lines.iter().map(|line| mask.apply(line).into_owned()).collect()
            };
            let error = json!({ "error": {
                "message": mask.apply(message),
                "details": masked(&self.details),
                "causes": masked(&causes),
                "hints": masked(&self.hints),
                "exitCode": self.code as u8,
            }});
            output.print_json(&error)?;
        }
        Ok(())
    }

    fn print_text(&self, message: &str, causes: &[String], output: &mut Output) -> io::Result<()> {
        output.labelled_status(Style::Error, "error", message)?;
        for detail in &self.details {
            output.status(&format!("  {detail}"))?;
        }
        for cause in causes {
            output.labelled_status(Style::Note, "  caused by", cause)?;
        }
        for hint in &self.hints {
            output.labelled_status(Style::Hint, "  hint", hint)?;
        }
        Ok(())
    }

    fn causes(&self) -> Vec<String> {
        let source = self.source.as_deref().into_iter();
        source.flat_map(|source| error_chain(source)).map(ToString::to_string).collect()
    }
}

/// Converts an output error; a reader that closed the pipe (`| head`) is not an error.
impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::without_message(CliExitCode::Success)
        } else {
            Self::failure("cannot write the output").with_source(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::capture;

    #[derive(Debug, thiserror::Error)]
    #[error("the pipe broke")]
    struct InnerError;

    #[derive(Debug, thiserror::Error)]
    #[error("server `files` did not answer")]
    struct OuterError(#[source] InnerError);

    fn sample_error() -> CliError {
        CliError::failure("calling `files.read` failed")
            .with_source(OuterError(InnerError))
            .with_hint("try again")
    }

    #[test]
    fn an_error_prints_its_chain_and_its_hints_on_stderr_only() {
        let (mut output, out, err) = capture::captured_output(false, false);
        assert_eq!(sample_error().report(&mut output), ExitCode::from(1));
        insta::assert_snapshot!(err.text(), @r"
        error: calling `files.read` failed
          caused by: server `files` did not answer
          caused by: the pipe broke
          hint: try again
        ");
        assert_eq!(out.text(), "");
    }

    #[test]
    fn with_json_an_error_is_also_one_json_value_on_stdout() {
        let (mut output, out, _) = capture::captured_output(true, false);
        sample_error().report(&mut output);
        insta::assert_snapshot!(out.text(), @r#"{"error":{"message":"calling `files.read` failed","details":[],"causes":["server `files` did not answer","the pipe broke"],"hints":["try again"],"exitCode":1}}"#);
    }

    #[test]
    fn with_json_there_is_one_value_whatever_comes_after_it() {
        let (mut output, out, err) = capture::captured_output(true, false);
        output.print_json(&1).unwrap();
        sample_error().report(&mut output);
        assert_eq!(out.text(), "1\n");
        assert!(err.text().starts_with("error: "), "{}", err.text());
    }

    #[test]
    fn the_exit_codes_are_those_of_the_contract() {
        let codes = [
            (CliError::usage("x").exit_code(), 2),
            (CliError::from_signal(StopSignal::Interrupt).exit_code(), 130),
            (CliError::from_signal(StopSignal::Terminate).exit_code(), 143),
            (CliError::failure("x").exit_code(), 1),
            (CliExitCode::Success, 0),
        ];
        for (code, number) in codes {
            assert_eq!(ExitCode::from(code), ExitCode::from(number));
        }
    }

    #[test]
    fn an_error_without_message_and_a_closed_pipe_print_nothing() {
        let (mut output, out, err) = capture::captured_output(true, false);
        CliError::without_message(CliExitCode::Failed).report(&mut output);
        let broken_pipe = CliError::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(broken_pipe.report(&mut output), ExitCode::SUCCESS);
        assert_eq!((out.text(), err.text()), (String::new(), String::new()));
    }
}
