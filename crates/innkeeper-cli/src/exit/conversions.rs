//! Conversions from typed errors to messages, hints and exit codes.

use super::CliError;
use crate::demo::ScriptError;
use crate::import::ImportError;
use crate::tool_arguments::{ArgumentError, ArgumentSourceError};

impl From<ImportError> for CliError {
    fn from(error: ImportError) -> Self {
        let failure = Self::usage(error.to_string());
        match error {
            ImportError::NotFound { searched_files, .. } => {
                let looked: Vec<_> =
                    searched_files.iter().map(|file| format!("`{file}`")).collect();
                failure.with_detail(format!("searched {}", looked.join(", ")))
            }
            ImportError::Unreadable { source, .. } => failure.with_source(source),
            ImportError::Malformed { source, .. } => failure.with_source(source),
            ImportError::UnknownFormat { .. } => failure.with_hint(
                "the file needs the key `mcpServers`, `servers`, `context_servers`, `mcp`, \
                 `amp.mcpServers` or `mcp_servers`",
            ),
            ImportError::TooLarge { .. }
            | ImportError::Yaml { .. }
            | ImportError::NotAnObject { .. } => failure,
        }
    }
}

impl From<ArgumentSourceError> for CliError {
    fn from(error: ArgumentSourceError) -> Self {
        let failure = Self::usage(error.to_string());
        match error {
            ArgumentSourceError::Unreadable { source, .. } => failure.with_source(source),
            ArgumentSourceError::NotAnObject { source } => {
                failure.with_source(source).with_hint("write `'{\"key\": \"value\"}'`")
            }
            ArgumentSourceError::SeveralObjects => failure
                .with_hint("use `KEY=VALUE` for single arguments in addition to one JSON object"),
            ArgumentSourceError::RepeatedStdin => {
                failure.with_hint("use `KEY=@FILE` for the other argument")
            }
            ArgumentSourceError::DuplicateKey { .. } | ArgumentSourceError::TooLong { .. } => {
                failure
            }
        }
    }
}

impl From<Vec<ArgumentError>> for CliError {
    fn from(problems: Vec<ArgumentError>) -> Self {
        let messages: Vec<_> = problems.iter().map(ToString::to_string).collect();
        problems.iter().map(hint_for).fold(Self::usage(messages.join("; ")), |failure, hint| {
            match hint {
                Some(hint) if !failure.hints.contains(&hint) => failure.with_hint(hint),
                _ => failure,
            }
        })
    }
}

impl CliError {
    /// Adds the invalid arguments as details, with their hints.
    pub(crate) fn with_argument_errors(self, problems: &[ArgumentError]) -> Self {
        problems.iter().fold(self, |failure, problem| {
            let failure = failure.with_detail(problem.to_string());
            match hint_for(problem) {
                Some(hint) if !failure.hints.contains(&hint) => failure.with_hint(hint),
                Some(_) | None => failure,
            }
        })
    }
}

fn hint_for(problem: &ArgumentError) -> Option<String> {
    match problem {
        ArgumentError::Unknown { suggestion: Some(nearest), .. } => {
            Some(format!("did you mean `{nearest}`?"))
        }
        ArgumentError::Unknown { known_keys: keys, .. } if keys.is_empty() => {
            Some("this tool takes no arguments".to_owned())
        }
        ArgumentError::Unknown { known_keys: keys, .. } => {
            let quoted_keys: Vec<_> = keys.iter().map(|key| format!("`{key}`")).collect();
            Some(format!("this tool takes {}", quoted_keys.join(", ")))
        }
        ArgumentError::InvalidValue { .. }
        | ArgumentError::DuplicateKey { .. }
        | ArgumentError::Missing { .. } => None,
    }
}

impl From<ScriptError> for CliError {
    fn from(error: ScriptError) -> Self {
        let failure = Self::failure(error.to_string());
        match error {
            ScriptError::CallFailed { source, .. } => failure.with_source(source),
            ScriptError::ToolFailed { .. } | ScriptError::UnexpectedResult { .. } => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::output::capture;

    fn report_text(failure: impl Into<CliError>) -> String {
        let (mut output, _, err) = capture::captured_output(false, false);
        let failure = failure.into();
        failure.report(&mut output);
        format!("{}{:?}", err.text(), failure.exit_code())
    }

    fn file_name() -> String {
        ".cursor/mcp.json".to_owned()
    }

    fn permission_denied() -> io::Error {
        io::Error::from(io::ErrorKind::PermissionDenied)
    }

    #[test]
    fn import_errors_are_usage_errors_that_say_where_to_look() {
        let all = [
            ImportError::NotFound { hosts: "`cursor`".into(), searched_files: vec![file_name()] },
            ImportError::Unreadable { file: file_name(), source: permission_denied() },
            ImportError::TooLarge { file: file_name() },
            ImportError::Malformed { file: file_name(), source: "line 1".into() },
            ImportError::NotAnObject { file: file_name(), subject: "`mcpServers`".into() },
        ];
        insta::assert_snapshot!(all.map(report_text).join("\n"));
    }

    #[test]
    fn argument_errors_are_usage_errors_that_say_what_to_type() {
        let unknown = |nearest: Option<&str>, keys: &[&str]| ArgumentError::Unknown {
            key: "pth".into(),
            suggestion: nearest.map(str::to_owned),
            known_keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        };
        let unreadable =
            ArgumentError::InvalidValue { key: "count".into(), expected: "an integer".into() };
        let all = [
            vec![unknown(Some("path"), &["path"]), unreadable],
            vec![unknown(None, &["query", "tag"])],
            vec![unknown(None, &[])],
            vec![
                ArgumentError::DuplicateKey { key: "id".into() },
                ArgumentError::Missing { key: "x".into() },
            ],
        ];
        insta::assert_snapshot!(all.map(report_text).join("\n"));
    }

    #[test]
    fn errors_of_argument_sources_are_usage_errors() {
        let source = serde_json::from_str::<u8>("{").unwrap_err();
        let all = [
            ArgumentSourceError::Unreadable {
                origin: "a.json".into(),
                source: permission_denied(),
            },
            ArgumentSourceError::TooLong { origin: "stdin".into() },
            ArgumentSourceError::NotAnObject { source },
            ArgumentSourceError::DuplicateKey { key: "a".into() },
            ArgumentSourceError::SeveralObjects,
            ArgumentSourceError::RepeatedStdin,
        ];
        insta::assert_snapshot!(all.map(report_text).join("\n"));
    }

    #[test]
    fn errors_of_the_demo_are_failures_of_the_work() {
        let (number, tool) = (2, "files.read_text_file");
        let all = [
            ScriptError::CallFailed { number, tool, source: "server `files` is gone".into() },
            ScriptError::ToolFailed { number, tool, text: "no".into() },
            ScriptError::UnexpectedResult { number, tool, expected: "the file's text" },
        ];
        insta::assert_snapshot!(all.map(report_text).join("\n"));
    }
}
