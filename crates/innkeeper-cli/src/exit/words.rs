//! Each typed error of this program as words, hints and an exit code.

use super::Failure;
use crate::arguments::{GivenError, Problem};
use crate::demo::ScriptError;
use crate::import::ImportError;

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Self {
        let failure = Self::usage(error.to_string());
        match error {
            ImportError::Nothing { looked, .. } => {
                let looked: Vec<_> = looked.iter().map(|file| format!("`{file}`")).collect();
                failure.hint(format!("looked for {}", looked.join(", ")))
            }
            ImportError::Unreadable { source, .. } => failure.because(source),
            ImportError::Malformed { source, .. } => failure.because(source),
            ImportError::TooLarge { .. } | ImportError::NotAnObject { .. } => failure,
        }
    }
}

impl From<GivenError> for Failure {
    fn from(error: GivenError) -> Self {
        let failure = Self::usage(error.to_string());
        match error {
            GivenError::Unreadable { source, .. } => failure.because(source),
            GivenError::NotAnObject { source } => {
                failure.because(source).hint("write `--args '{\"key\": \"value\"}'`")
            }
            GivenError::Repeated { .. } | GivenError::TooLong { .. } => failure,
        }
    }
}

impl From<Vec<Problem>> for Failure {
    fn from(problems: Vec<Problem>) -> Self {
        let messages: Vec<_> = problems.iter().map(ToString::to_string).collect();
        problems.iter().map(hint).fold(Self::usage(messages.join("; ")), |failure, hint| match hint
        {
            Some(hint) if !failure.hints.contains(&hint) => failure.hint(hint),
            _ => failure,
        })
    }
}

fn hint(problem: &Problem) -> Option<String> {
    match problem {
        Problem::Unknown { nearest: Some(nearest), .. } => {
            Some(format!("did you mean `{nearest}`?"))
        }
        Problem::Unknown { known, .. } if known.is_empty() => {
            Some("this tool takes no arguments".to_owned())
        }
        Problem::Unknown { known, .. } => {
            let known: Vec<_> = known.iter().map(|key| format!("`{key}`")).collect();
            Some(format!("this tool takes {}", known.join(", ")))
        }
        Problem::Unreadable { .. } | Problem::Repeated { .. } | Problem::Missing { .. } => None,
    }
}

impl From<ScriptError> for Failure {
    fn from(error: ScriptError) -> Self {
        let failure = Self::failed(error.to_string());
        match error {
            ScriptError::Call { source, .. } => failure.because(source),
            ScriptError::Tool { .. } | ScriptError::Surprise { .. } => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::output::capture;

    fn words(failure: impl Into<Failure>) -> String {
        let (mut output, _, err) = capture::output(false, false);
        let failure = failure.into();
        failure.report(&mut output);
        format!("{}{:?}", err.text(), failure.code())
    }

    fn file() -> String {
        ".cursor/mcp.json".to_owned()
    }

    fn denied() -> io::Error {
        io::Error::from(io::ErrorKind::PermissionDenied)
    }

    #[test]
    fn import_errors_are_usage_errors_that_say_where_to_look() {
        let all = [
            ImportError::Nothing { hosts: "`cursor`".into(), looked: vec![file()] },
            ImportError::Unreadable { file: file(), source: denied() },
            ImportError::TooLarge { file: file() },
            ImportError::Malformed { file: file(), source: "line 1".into() },
            ImportError::NotAnObject { file: file(), key: "mcpServers".into() },
        ];
        insta::assert_snapshot!(all.map(words).join("\n"));
    }

    #[test]
    fn argument_errors_are_usage_errors_that_say_what_to_type() {
        let unknown = |nearest: Option<&str>, known: &[&str]| Problem::Unknown {
            key: "pth".into(),
            nearest: nearest.map(str::to_owned),
            known: known.iter().map(|key| (*key).to_owned()).collect(),
        };
        let unreadable = Problem::Unreadable { key: "count".into(), expected: "an integer".into() };
        let all = [
            vec![unknown(Some("path"), &["path"]), unreadable],
            vec![unknown(None, &["query", "tag"])],
            vec![unknown(None, &[])],
            vec![Problem::Repeated { key: "id".into() }, Problem::Missing { key: "x".into() }],
        ];
        insta::assert_snapshot!(all.map(words).join("\n"));
    }

    #[test]
    fn errors_of_given_arguments_are_usage_errors() {
        let source = serde_json::from_str::<u8>("{").unwrap_err();
        let all = [
            GivenError::Unreadable { from: "a.json".into(), source: denied() },
            GivenError::TooLong { from: "stdin".into() },
            GivenError::NotAnObject { source },
            GivenError::Repeated { key: "a".into() },
        ];
        insta::assert_snapshot!(all.map(words).join("\n"));
    }

    #[test]
    fn errors_of_the_demo_are_failures_of_the_work() {
        let (number, tool) = (2, "files.read_text_file");
        let all = [
            ScriptError::Call { number, tool, source: "server `files` is gone".into() },
            ScriptError::Tool { number, tool, text: "no".into() },
            ScriptError::Surprise { number, tool, expected: "the file's text" },
        ];
        insta::assert_snapshot!(all.map(words).join("\n"));
    }
}
