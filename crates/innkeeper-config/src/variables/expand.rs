//! Single-pass expansion of `${…}` references in a value.

use std::path::{MAIN_SEPARATOR_STR, Path};

use crate::text::key_path::escape_for_message;
use crate::variables::dotenv::is_variable_name;

/// A source of values for references.
pub(crate) trait VariableSource {
    /// Returns the value of a variable, or `None` if the variable is unset.
    fn variable(&self, name: &str) -> Option<String>;
    /// Whether the file `.env` beside the configuration can supply variables.
    fn reads_dotenv(&self) -> bool;
    fn workspace(&self) -> &Path;
    /// Returns the user's home directory.
    fn home(&self) -> Option<&str>;
    /// Returns the working directory of the application.
    fn current_dir(&self) -> Option<&Path>;
}

/// A value after expansion.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expansion {
    pub(crate) value: String,
    /// Variables that contributed to the value.
    pub(crate) variables: Vec<String>,
}

/// An invalid reference, with names only and never a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ExpandError {
    Unset(String),
    InputUnsupported(String),
    UnknownName(&'static str),
    UnsupportedKind(String),
    InvalidName(String),
    NestedDefault,
    Unterminated,
    TooLong,
}

/// Maximum size of an expanded value, in bytes: Linux accepts no longer argument or variable.
/// Without this limit, a file of a few megabytes could expand to a terabyte.
const MAX_EXPANDED_BYTES: usize = 128 << 10;

impl ExpandError {
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Unset(name) => format!("variable `{name}` is not set"),
            Self::InputUnsupported(id) => {
                format!("`${{input:{id}}}` is not supported without a prompt handler")
            }
            Self::UnknownName(unknown) => format!("unknown reference `${{{unknown}}}`"),
            Self::UnsupportedKind(kind) => format!("`${{{kind}:…}}` is not supported"),
            Self::InvalidName(name) => format!("invalid variable name `{name}`"),
            Self::NestedDefault => "a default cannot refer to a variable".to_owned(),
            Self::Unterminated => "unclosed `${`".to_owned(),
            Self::TooLong => {
                format!("longer than {MAX_EXPANDED_BYTES} bytes after expansion")
            }
        }
    }

    pub(crate) fn hint(&self, scope: &dyn VariableSource) -> Option<String> {
        match self {
            Self::Unset(name) if scope.reads_dotenv() => Some(format!(
                "set the variable, add it to `.env` beside the file, or write `${{{name}:-default}}`"
            )),
            Self::Unset(name) => Some(format!("set the variable, or write `${{{name}:-default}}`")),
            Self::InputUnsupported(id) => {
                let name: String = id
                    .chars()
                    .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
                    .collect();
                Some(format!("write `${{env:{name}}}` and set that variable"))
            }
            Self::Unterminated | Self::InvalidName(_) => {
                Some("for a literal `${` write `$${`".to_owned())
            }
            Self::UnknownName(_)
            | Self::UnsupportedKind(_)
            | Self::NestedDefault
            | Self::TooLong => None,
        }
    }
}

/// Expands every reference of `text`, or returns an error for each invalid reference.
pub(crate) fn expand(
    text: &str,
    scope: &dyn VariableSource,
) -> Result<Expansion, Vec<ExpandError>> {
    let mut value = String::with_capacity(text.len());
    let mut variables = Vec::new();
    let mut failures = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            value.push_str(&rest[..at]);
            value.push('{');
            rest = &rest[at + 2..];
            continue;
        }
        value.push_str(&rest[..at]);
        let inside = &rest[at + 2..];
        let Some(end) = inside.find('}') else {
            failures.push(ExpandError::Unterminated);
            rest = "";
            break;
        };
        match resolve_reference(&inside[..end], scope) {
            Ok(Segment::Variable(name, segment)) => {
                value.push_str(&segment);
                variables.push(name);
            }
            Ok(Segment::Literal(literal)) => value.push_str(&literal),
            Err(failure) => failures.push(failure),
        }
        rest = &inside[end + 1..];
        if value.len() > MAX_EXPANDED_BYTES {
            return Err(vec![ExpandError::TooLong]);
        }
    }
    value.push_str(rest);
    if !variables.is_empty() && value.len() > MAX_EXPANDED_BYTES {
        return Err(vec![ExpandError::TooLong]);
    }
    if failures.is_empty() { Ok(Expansion { value, variables }) } else { Err(failures) }
}

enum Segment {
    Variable(String, String),
    Literal(String),
}

fn resolve_reference(body: &str, scope: &dyn VariableSource) -> Result<Segment, ExpandError> {
    if let Some(predefined) = resolve_predefined(body, scope)? {
        return Ok(Segment::Literal(predefined));
    }
    let (name, default) = match body.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (body, None),
    };
    let name = name.strip_prefix("env:").unwrap_or(name);
    if let Some(id) = name.strip_prefix("input:") {
        return Err(ExpandError::InputUnsupported(escape_for_message(id)));
    }
    if let Some((kind, _)) = name.split_once(':') {
        return Err(ExpandError::UnsupportedKind(escape_for_message(kind)));
    }
    if !is_variable_name(name) {
        return Err(ExpandError::InvalidName(escape_for_message(name)));
    }
    if default.is_some_and(|default| default.contains("${")) {
        return Err(ExpandError::NestedDefault);
    }
    match (scope.variable(name), default) {
        (Some(value), None) => Ok(Segment::Variable(name.to_owned(), value)),
        (Some(value), Some(_)) if !value.is_empty() => {
            Ok(Segment::Variable(name.to_owned(), value))
        }
        (_, Some(default)) => Ok(Segment::Literal(default.to_owned())),
        (None, None) => Err(ExpandError::Unset(name.to_owned())),
    }
}

/// Resolves predefined names, which are not variables.
fn resolve_predefined(
    body: &str,
    scope: &dyn VariableSource,
) -> Result<Option<String>, ExpandError> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let predefined = match body {
        "workspaceFolder" => Some(text(scope.workspace())),
        "workspaceFolderBasename" => {
            let name = scope.workspace().file_name().map(|name| name.to_string_lossy());
            Some(name.ok_or(ExpandError::UnknownName("workspaceFolderBasename"))?.into_owned())
        }
        "userHome" => Some(scope.home().ok_or(ExpandError::UnknownName("userHome"))?.to_owned()),
        "cwd" => Some(text(scope.current_dir().ok_or(ExpandError::UnknownName("cwd"))?)),
        "pathSeparator" | "/" => Some(MAIN_SEPARATOR_STR.to_owned()),
        _ => None,
    };
    Ok(predefined)
}
