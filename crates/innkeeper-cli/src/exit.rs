//! How the program ends: exit codes, and one error type that becomes words and a code.

mod models;
mod words;

use std::error::Error;
use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use serde_json::json;

use crate::cause::chain;
use crate::output::{Output, Tone};
use crate::signals::Signal;

/// The exit codes of the command line contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// Done.
    Done = 0,
    /// The work failed: a tool error, a server that is not available.
    Failed = 1,
    /// Usage, configuration, or arguments that do not fit; nothing was sent.
    Usage = 2,
    /// Ended by SIGINT.
    Interrupted = 130,
    /// Ended by SIGTERM.
    Terminated = 143,
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}

impl From<Signal> for Code {
    fn from(signal: Signal) -> Self {
        match signal {
            Signal::Interrupt => Self::Interrupted,
            Signal::Terminate => Self::Terminated,
        }
    }
}

/// Why a verb did not end with `Code::Done`, in the user's words.
#[derive(Debug)]
pub(crate) struct Failure {
    code: Code,
    message: Option<String>,
    source: Option<Box<dyn Error + Send + Sync>>,
    details: Vec<String>,
    hints: Vec<String>,
    /// Whether stderr is left alone: who sent a signal knows of it.
    quiet: bool,
}

impl Failure {
    /// The work failed.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self {
            code: Code::Failed,
            message: Some(message.into()),
            source: None,
            details: Vec::new(),
            hints: Vec::new(),
            quiet: false,
        }
    }

    /// The user asked for something that does not fit.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { code: Code::Usage, ..Self::failed(message) }
    }

    /// Ends with a code where the data already printed says why.
    pub(crate) fn silent(code: Code) -> Self {
        Self { code, message: None, ..Self::failed("") }
    }

    /// Ends because a signal asked for it; only `--json` tells of it in words.
    pub(crate) fn signalled(signal: Signal) -> Self {
        let message = format!("ended by {}", signal.word());
        Self { code: signal.into(), quiet: true, ..Self::failed(message) }
    }

    /// Keeps the error this one came from; its chain is printed below the message.
    pub(crate) fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Adds one line of what is wrong, below the message.
    pub(crate) fn detail(mut self, line: impl Into<String>) -> Self {
        self.details.push(line.into());
        self
    }

    /// Adds what the user can type or do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Has another thing that is wrong told with it; the code stays.
    pub(crate) fn and(mut self, other: Self) -> Self {
        let causes = other.causes();
        self.details.extend(other.message.into_iter().chain(other.details).chain(causes));
        self.hints.extend(other.hints);
        self
    }

    pub(crate) fn code(&self) -> Code {
        self.code
    }

    /// Says the failure: words on stderr and, with `--json`, one object with `error` on stdout unless
    /// a value is there already.
    ///
    /// A stream that is gone takes no words; the exit code then says it alone.
    pub(crate) fn report(&self, output: &mut Output) -> ExitCode {
        if let Some(message) = &self.message {
            self.print(message, output).unwrap_or_default();
        }
        self.code.into()
    }

    fn print(&self, message: &str, output: &mut Output) -> io::Result<()> {
        let causes = self.causes();
        if !self.quiet {
            self.say(message, &causes, output)?;
        }
        if output.is_json() && !output.has_told() {
            output.value(&json!({ "error": {
                "message": message,
                "details": self.details,
                "causes": causes,
                "hints": self.hints,
                "exitCode": self.code as u8,
            }}))?;
        }
        Ok(())
    }

    fn say(&self, message: &str, causes: &[String], output: &mut Output) -> io::Result<()> {
        output.label(Tone::Error, "error", message)?;
        for detail in &self.details {
            output.say(&format!("  {detail}"))?;
        }
        for cause in causes {
            output.label(Tone::Note, "  caused by", cause)?;
        }
        for hint in &self.hints {
            output.label(Tone::Hint, "  hint", hint)?;
        }
        Ok(())
    }

    fn causes(&self) -> Vec<String> {
        let source = self.source.as_deref().into_iter();
        source.flat_map(|source| chain(source)).map(ToString::to_string).collect()
    }
}

/// Failures to print: a reader who has seen enough (`| head`) is no failure.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::silent(Code::Done)
        } else {
            Self::failed("writing the output failed").because(error)
        }
    }
}

/// Ends where the command line itself was not understood, or asked for help.
///
/// With `--json` anywhere on the line, the refusal is a JSON value as any other failure is.
pub(crate) fn refused(refusal: &clap::Error, line: impl Iterator<Item = OsString>) -> ExitCode {
    let json = line.skip(1).any(|word| word == "--json");
    if !refusal.use_stderr() {
        return match refusal.print() {
            Ok(()) => Code::Done.into(),
            Err(error) => Failure::from(error).code().into(),
        };
    }
    if json {
        let words = refusal.to_string();
        let (message, rest) = words.split_once('\n').unwrap_or((&words, ""));
        let mut failure = Failure::usage(message.strip_prefix("error: ").unwrap_or(message));
        failure.hints = rest
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect();
        return failure.report(&mut Output::standard(true, true));
    }
    match refusal.print() {
        Ok(()) | Err(_) => Code::Usage.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::capture;

    #[derive(Debug, thiserror::Error)]
    #[error("the pipe broke")]
    struct Inner;

    #[derive(Debug, thiserror::Error)]
    #[error("server `files` did not answer")]
    struct Outer(#[source] Inner);

    fn failure() -> Failure {
        Failure::failed("calling `files.read` failed").because(Outer(Inner)).hint("try again")
    }

    #[test]
    fn a_failure_prints_its_chain_and_its_hints_on_stderr_only() {
        let (mut output, out, err) = capture::output(false, false);
        assert_eq!(failure().report(&mut output), ExitCode::from(1));
        insta::assert_snapshot!(err.text(), @r"
        error: calling `files.read` failed
          caused by: server `files` did not answer
          caused by: the pipe broke
          hint: try again
        ");
        assert_eq!(out.text(), "");
    }

    #[test]
    fn with_json_a_failure_is_also_one_json_value_on_stdout() {
        let (mut output, out, _) = capture::output(true, false);
        failure().report(&mut output);
        insta::assert_snapshot!(out.text(), @r#"{"error":{"message":"calling `files.read` failed","details":[],"causes":["server `files` did not answer","the pipe broke"],"hints":["try again"],"exitCode":1}}"#);
    }

    #[test]
    fn with_json_there_is_one_value_whatever_comes_after_it() {
        let (mut output, out, err) = capture::output(true, false);
        output.value(&1).unwrap();
        failure().report(&mut output);
        assert_eq!(out.text(), "1\n");
        assert!(err.text().starts_with("error: "), "{}", err.text());
    }

    #[test]
    fn the_exit_codes_are_those_of_the_contract() {
        let codes = [
            (Failure::usage("x").code(), 2),
            (Failure::signalled(Signal::Interrupt).code(), 130),
            (Failure::signalled(Signal::Terminate).code(), 143),
            (Failure::failed("x").code(), 1),
            (Code::Done, 0),
        ];
        for (code, number) in codes {
            assert_eq!(ExitCode::from(code), ExitCode::from(number));
        }
    }

    #[test]
    fn a_silent_failure_and_a_reader_who_left_say_nothing() {
        let (mut output, out, err) = capture::output(true, false);
        Failure::silent(Code::Failed).report(&mut output);
        let left = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(left.report(&mut output), ExitCode::SUCCESS);
        assert_eq!((out.text(), err.text()), (String::new(), String::new()));
    }
}
