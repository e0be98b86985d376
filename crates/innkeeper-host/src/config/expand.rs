//! `${…}` inside one value: replaced once, from left to right, and never looked at again.

use std::path::{MAIN_SEPARATOR_STR, Path};

use super::dotenv::is_name;
use super::trail::shown;

/// What a value may refer to.
pub(super) trait Scope {
    /// The value of a variable, or nothing when it is unset.
    fn variable(&self, name: &str) -> Option<String>;
    /// The directory that the configuration belongs to.
    fn workspace(&self) -> &Path;
    /// The user's home directory.
    fn home(&self) -> Option<&str>;
    /// The directory that the application runs in.
    fn current_dir(&self) -> Option<&Path>;
}

/// A value with its references replaced.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Replaced {
    pub(super) value: String,
    /// The variables that gave it a part.
    pub(super) variables: Vec<String>,
}

/// Why a reference could not be replaced. Names only, never a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    Unset(String),
    Input(String),
    Unknown(&'static str),
    Unsupported(String),
    BadName(String),
    NestedDefault,
    Open,
    TooLong,
}

/// The longest value with references in it, in bytes; Linux takes no longer argument or variable.
/// Without a limit a file of a few megabytes could name a terabyte.
const LONGEST: usize = 128 << 10;

impl Failure {
    pub(super) fn message(&self) -> String {
        match self {
            Self::Unset(name) => format!("variable `{name}` is not set"),
            Self::Input(id) => {
                format!("`${{input:{id}}}` is not supported without a prompt handler")
            }
            Self::Unknown(word) => format!("`${{{word}}}` is not known here"),
            Self::Unsupported(kind) => format!("`${{{kind}:…}}` is not supported"),
            Self::BadName(name) => format!("`{name}` is not the name of a variable"),
            Self::NestedDefault => "a default cannot refer to a variable".to_owned(),
            Self::Open => "`${` is not closed with `}`".to_owned(),
            Self::TooLong => format!("longer than {LONGEST} bytes with its variables put in"),
        }
    }

    pub(super) fn hint(&self) -> Option<String> {
        match self {
            Self::Unset(name) => Some(format!(
                "set it, put it into `.env` beside the file, or write `${{{name}:-default}}`"
            )),
            Self::Input(id) => {
                let name: String = id
                    .chars()
                    .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
                    .collect();
                Some(format!("write `${{env:{name}}}` and set that variable"))
            }
            Self::Open | Self::BadName(_) => Some("for a literal `${` write `$${`".to_owned()),
            Self::Unknown(_) | Self::Unsupported(_) | Self::NestedDefault | Self::TooLong => None,
        }
    }
}

/// Replaces every reference of `text`, or says what is wrong with each that cannot be.
pub(super) fn expand(text: &str, scope: &dyn Scope) -> Result<Replaced, Vec<Failure>> {
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
            failures.push(Failure::Open);
            rest = "";
            break;
        };
        match reference(&inside[..end], scope) {
            Ok(Part::Variable(name, part)) => {
                value.push_str(&part);
                variables.push(name);
            }
            Ok(Part::Text(part)) => value.push_str(&part),
            Err(failure) => failures.push(failure),
        }
        rest = &inside[end + 1..];
        if value.len() > LONGEST {
            return Err(vec![Failure::TooLong]);
        }
    }
    value.push_str(rest);
    if !variables.is_empty() && value.len() > LONGEST {
        return Err(vec![Failure::TooLong]);
    }
    if failures.is_empty() { Ok(Replaced { value, variables }) } else { Err(failures) }
}

enum Part {
    Variable(String, String),
    Text(String),
}

fn reference(body: &str, scope: &dyn Scope) -> Result<Part, Failure> {
    if let Some(part) = predefined(body, scope)? {
        return Ok(Part::Text(part));
    }
    let (name, default) = match body.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (body, None),
    };
    let name = name.strip_prefix("env:").unwrap_or(name);
    if let Some(id) = name.strip_prefix("input:") {
        return Err(Failure::Input(shown(id)));
    }
    if let Some((kind, _)) = name.split_once(':') {
        return Err(Failure::Unsupported(shown(kind)));
    }
    if !is_name(name) {
        return Err(Failure::BadName(shown(name)));
    }
    if default.is_some_and(|default| default.contains("${")) {
        return Err(Failure::NestedDefault);
    }
    match (scope.variable(name), default) {
        (Some(value), None) => Ok(Part::Variable(name.to_owned(), value)),
        (Some(value), Some(_)) if !value.is_empty() => Ok(Part::Variable(name.to_owned(), value)),
        (_, Some(default)) => Ok(Part::Text(default.to_owned())),
        (None, None) => Err(Failure::Unset(name.to_owned())),
    }
}

/// The names that stand for something else than a variable.
fn predefined(body: &str, scope: &dyn Scope) -> Result<Option<String>, Failure> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let found = match body {
        "workspaceFolder" => Some(text(scope.workspace())),
        "workspaceFolderBasename" => {
            let name = scope.workspace().file_name().map(|name| name.to_string_lossy());
            Some(name.ok_or(Failure::Unknown("workspaceFolderBasename"))?.into_owned())
        }
        "userHome" => Some(scope.home().ok_or(Failure::Unknown("userHome"))?.to_owned()),
        "cwd" => Some(text(scope.current_dir().ok_or(Failure::Unknown("cwd"))?)),
        "pathSeparator" | "/" => Some(MAIN_SEPARATOR_STR.to_owned()),
        _ => None,
    };
    Ok(found)
}
