//! The definition of a server from options of the command line.

mod short_name;

use innkeeper_host::config::{Secret, redact_argument, redact_url};
use serde_json::{Map, Value};

pub(crate) use short_name::{name_from_command, name_from_package, name_from_url};

/// Why the options do not define a server. No message shows a value, which may be secret.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DefinitionError {
    #[error("the command is empty")]
    EmptyCommand,
    #[error("the command has a quotation mark without its counterpart")]
    UnclosedQuote,
    #[error("`{url}` is not a URL")]
    InvalidUrl { url: String },
    #[error("a header has no `:` between its name and its value")]
    InvalidHeader,
    #[error("a variable has no name")]
    InvalidVariable,
    #[error("header `{name}` occurs twice")]
    DuplicateHeader { name: String },
    #[error("variable `{name}` occurs twice")]
    DuplicateVariable { name: String },
}

const URL_SCHEMES: [&str; 5] = ["http://", "https://", "ws://", "wss://", "unix://"];

/// Splits a command line into words like a POSIX shell, without running a shell.
///
/// # Errors
///
/// A quotation mark has no counterpart, or there is no word.
pub(crate) fn split_command(line: &str) -> Result<Vec<String>, DefinitionError> {
    let words = shlex::split(line).ok_or(DefinitionError::UnclosedQuote)?;
    if words.is_empty() { Err(DefinitionError::EmptyCommand) } else { Ok(words) }
}

/// Returns the definition of a server that a command starts.
///
/// # Errors
///
/// There is no command, or a variable is invalid.
pub(crate) fn stdio_definition(
    command: &[String],
    env: &[Secret],
) -> Result<Map<String, Value>, DefinitionError> {
    let (program, args) = command.split_first().ok_or(DefinitionError::EmptyCommand)?;
    if program.trim().is_empty() {
        return Err(DefinitionError::EmptyCommand);
    }
    let mut definition = Map::new();
    definition.insert("command".to_owned(), program.clone().into());
    if !args.is_empty() {
        definition.insert("args".to_owned(), args.to_vec().into());
    }
    insert_members(&mut definition, "env", parse_variables(env)?);
    Ok(definition)
}

/// Returns the definition of a remote server.
///
/// # Errors
///
/// The URL has another scheme than the transports, or a header is invalid.
pub(crate) fn remote_definition(
    url: &str,
    headers: &[Secret],
) -> Result<Map<String, Value>, DefinitionError> {
    // A variable may contain the scheme.
    if !URL_SCHEMES.iter().any(|scheme| url.starts_with(scheme)) && !url.starts_with("${") {
        return Err(DefinitionError::InvalidUrl { url: redact_argument(&redact_url(url), None) });
    }
    let mut definition = Map::new();
    definition.insert("url".to_owned(), url.into());
    insert_members(&mut definition, "headers", parse_headers(headers)?);
    Ok(definition)
}

fn insert_members(definition: &mut Map<String, Value>, key: &str, members: Map<String, Value>) {
    if !members.is_empty() {
        definition.insert(key.to_owned(), members.into());
    }
}

/// Parses `NAME=VALUE`, or `NAME` for the variable of this shell.
fn parse_variables(env: &[Secret]) -> Result<Map<String, Value>, DefinitionError> {
    let mut variables = Map::new();
    for variable in env {
        let text = variable.expose();
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, value.to_owned()),
            None => (text, format!("${{{text}}}")),
        };
        if name.is_empty() {
            return Err(DefinitionError::InvalidVariable);
        }
        if variables.insert(name.to_owned(), value.into()).is_some() {
            return Err(DefinitionError::DuplicateVariable { name: name.to_owned() });
        }
    }
    Ok(variables)
}

/// Parses `Name: value`.
fn parse_headers(lines: &[Secret]) -> Result<Map<String, Value>, DefinitionError> {
    let mut headers: Map<String, Value> = Map::new();
    for line in lines {
        let (name, value) = line.expose().split_once(':').ok_or(DefinitionError::InvalidHeader)?;
        let name = name.trim();
        if name.is_empty() {
            return Err(DefinitionError::InvalidHeader);
        }
        if headers.keys().any(|other| other.eq_ignore_ascii_case(name)) {
            return Err(DefinitionError::DuplicateHeader { name: name.to_owned() });
        }
        headers.insert(name.to_owned(), value.trim().into());
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secrets(texts: &[&str]) -> Vec<Secret> {
        texts.iter().map(|text| Secret::new(*text)).collect()
    }

    #[test]
    fn a_command_line_is_split_like_in_a_shell_and_nothing_is_expanded() {
        let words = split_command(r#"npx -y '@a/b c' "d e" f\ g $HOME *.md #x"#).unwrap();
        assert_eq!(words, ["npx", "-y", "@a/b c", "d e", "f g", "$HOME", "*.md"]);
        assert_eq!(split_command("npx 'a"), Err(DefinitionError::UnclosedQuote));
        assert_eq!(split_command("  "), Err(DefinitionError::EmptyCommand));
    }

    #[test]
    fn variables_have_a_value_or_take_the_value_of_the_shell() {
        let command = ["run".to_owned()];
        let env = secrets(&["A=b=c", "TOKEN", "EMPTY="]);
        let definition = stdio_definition(&command, &env).unwrap();
        let expected = json!({"command": "run",
            "env": {"A": "b=c", "TOKEN": "${TOKEN}", "EMPTY": ""}});
        assert_eq!(Value::from(definition), expected);
    }

    #[test]
    fn a_header_is_split_at_its_first_colon() {
        let headers = secrets(&["Authorization: Bearer a:b", "X-Empty:"]);
        let definition = remote_definition("https://a.example/mcp", &headers).unwrap();
        let expected = json!({"url": "https://a.example/mcp",
            "headers": {"Authorization": "Bearer a:b", "X-Empty": ""}});
        assert_eq!(Value::from(definition), expected);
    }

    /// Attack: secrets | invalid variables, headers and URLs contain secrets | no error contains a
    /// value | Secrets do not print
    #[test]
    fn no_error_shows_a_value() {
        let command = ["run".to_owned()];
        for env in [&["=hunter2"][..], &["A=hunter2", "A=hunter2"]] {
            let error = stdio_definition(&command, &secrets(env)).unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
        for headers in [&["hunter2"][..], &[": hunter2"], &["A: hunter2", "a: hunter2"]] {
            let error = remote_definition("http://a", &secrets(headers)).unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
        let error = remote_definition("a.example", &[]).unwrap_err();
        assert_eq!(error, DefinitionError::InvalidUrl { url: "a.example".to_owned() });
        for url in [
            "a.example/mcp?key=hunter2",
            "me:hunter2@a.example/mcp",
            "ftp://me:hunter2@a.example",
            "https:/me:hunter2@a.example",
            "sk-0123456789-hunter2",
        ] {
            let error = remote_definition(url, &[]).unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }
}
