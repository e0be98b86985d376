//! The environment of a server: a short list taken from the host's, and what is configured.

use std::ffi::{OsStr, OsString};

use indexmap::IndexMap;

use crate::config::Environment;

/// What a program needs to find its home, its language and other programs. Nothing that loads code
/// into a program or holds a secret belongs here.
#[cfg(not(windows))]
const INHERITED: &[&str] =
    &["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "TMPDIR", "TZ"];

/// What a Windows program needs to start and to find its home and other programs.
#[cfg(windows)]
const INHERITED: &[&str] = &[
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "PATH",
    "PATHEXT",
    "COMSPEC",
    "TEMP",
    "TMP",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMFILES",
    "PROGRAMDATA",
    "USERPROFILE",
    "USERNAME",
    "HOMEDRIVE",
    "HOMEPATH",
    "PROCESSOR_ARCHITECTURE",
];

/// A configured variable that cannot be handed to a program. Values are never shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EnvironmentError {
    #[error("`{name}` is not the name of an environment variable")]
    Name { name: String },
    #[error("the value of environment variable `{name}` holds a NUL character")]
    Value { name: String },
}

/// Builds a server's whole environment: what is inherited from `parent` (everything if `inherit`,
/// otherwise the short list), and `declared` over it.
///
/// # Errors
/// A declared name is no identifier, or a declared value holds NUL.
pub(crate) fn child_environment(
    parent: &Environment,
    inherit: bool,
    declared: &IndexMap<String, String>,
) -> Result<Vec<(OsString, OsString)>, EnvironmentError> {
    for (name, value) in declared {
        if !is_identifier(name) {
            return Err(EnvironmentError::Name { name: name.escape_debug().to_string() });
        }
        if value.contains('\0') {
            return Err(EnvironmentError::Value { name: name.clone() });
        }
    }
    let declares = |name: &OsStr| declared.keys().any(|declared| same_name(declared, name));
    let inherited = parent
        .iter_os()
        .filter(|(name, _)| inherit || INHERITED.iter().any(|listed| same_name(listed, name)))
        .filter(|(name, value)| is_plain(name, value) && !declares(name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let declared = declared.iter().map(|(name, value)| (name.into(), value.into()));
    Ok(inherited.chain(declared).collect())
}

/// Shells pass functions on in variables, and a shell below would run what is in them.
fn is_plain(name: &OsStr, value: &OsStr) -> bool {
    let (name, value) = (name.as_encoded_bytes(), value.as_encoded_bytes());
    !value.starts_with(b"() {")
        && !name.is_empty()
        && !name.contains(&b'=')
        && !name.contains(&0)
        && !value.contains(&0)
}

fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn same_name(one: &str, other: &OsStr) -> bool {
    if cfg!(windows) { other.eq_ignore_ascii_case(one) } else { other == one }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent() -> Environment {
        Environment::from_pairs([
            ("PATH", "/usr/bin"),
            ("HOME", "/home/ada"),
            ("LD_PRELOAD", "/tmp/evil.so"),
            ("NODE_OPTIONS", "--require=/tmp/evil.js"),
            ("API_TOKEN", "canary"),
            ("TERM", "() { :; }; echo owned"),
        ])
    }

    fn built(inherit: bool, declared: &[(&str, &str)]) -> Vec<(String, String)> {
        let declared = declared.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let text = |os: OsString| os.into_string().unwrap();
        let built = child_environment(&parent(), inherit, &declared).unwrap();
        built.into_iter().map(|(name, value)| (text(name), text(value))).collect()
    }

    fn names(environment: &[(String, String)]) -> Vec<&str> {
        environment.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// Proves: TR10.2
    #[test]
    fn a_server_inherits_neither_secrets_nor_loader_hooks_nor_shell_functions() {
        let built = built(false, &[("SERVER_KEY", "1")]);
        let expected = if cfg!(windows) {
            &["PATH", "SERVER_KEY"][..]
        } else {
            &["HOME", "PATH", "SERVER_KEY"]
        };
        assert_eq!(names(&built), expected);
    }

    #[test]
    fn everything_but_shell_functions_is_inherited_on_request() {
        let all = built(true, &[]);
        assert_eq!(names(&all), ["API_TOKEN", "HOME", "LD_PRELOAD", "NODE_OPTIONS", "PATH"]);
    }

    #[test]
    fn a_declared_value_replaces_the_inherited_one() {
        let built = built(false, &[("PATH", "/opt/bin"), ("LD_PRELOAD", "mine.so")]);
        let paths: Vec<_> = built.iter().filter(|(name, _)| name == "PATH").collect();
        assert_eq!(paths, [&("PATH".to_owned(), "/opt/bin".to_owned())]);
        assert!(names(&built).contains(&"LD_PRELOAD"));
    }

    /// Proves: TR10.2
    #[test]
    fn a_declared_name_that_is_no_identifier_and_a_value_with_nul_are_refused() {
        for name in ["", "A=B", "A\0", "A\nB", "1A", "A-B", "Ä"] {
            let declared = IndexMap::from([(name.to_owned(), String::new())]);
            let error = child_environment(&parent(), false, &declared).unwrap_err();
            assert!(matches!(error, EnvironmentError::Name { .. }), "{name:?}");
            assert!(!error.to_string().contains(['\n', '\0']), "{name:?} is shown as it is");
        }
        let declared = IndexMap::from([("KEY".to_owned(), "secret\0".to_owned())]);
        let error = child_environment(&parent(), false, &declared).unwrap_err();
        assert_eq!(error, EnvironmentError::Value { name: "KEY".to_owned() });
        assert!(!error.to_string().contains("secret"));
    }
}
