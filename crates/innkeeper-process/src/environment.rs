//! The environment of a server: inherited and configured variables.

use std::ffi::{OsStr, OsString};

use indexmap::IndexMap;
use innkeeper_config::{Environment, InheritedEnvironment};

use super::runner_settings;

/// Variables a program needs to find its home directory, its language and other programs. Variables
/// that load code into a program or hold a secret do not belong here.
#[cfg(not(windows))]
const BASIC_VARIABLES: &[&str] =
    &["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "TMPDIR", "TZ"];

/// Variables a Windows program needs to start, and to find its home directory and other programs.
#[cfg(windows)]
const BASIC_VARIABLES: &[&str] = &[
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

/// Further variables: certificate authorities and proxies, without which no program reaches the
/// network of many companies, and the directories of the user. The address of a proxy may contain a
/// password.
const NETWORK_AND_DIRECTORY_VARIABLES: &[&str] = &[
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
    "XDG_DATA_DIRS",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

/// Prefix of the variables for the parts of a language setting.
const LOCALE_PREFIX: &str = "LC_";

/// An error for a configured variable that cannot be passed to a program. Never shows a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    #[error("`{name}` is not a valid environment variable name")]
    InvalidName { name: String },
    #[error("the value of environment variable `{name}` contains a NUL character")]
    InvalidValue { name: String },
}

/// Builds the complete environment of a server: the variables that `command` inherits from `parent`,
/// overridden by `declared`. A package runner also inherits its own settings.
///
/// # Errors
/// A declared name is not a valid variable name, or a declared value contains NUL.
pub fn child_environment(
    parent: &Environment,
    inherited: InheritedEnvironment,
    command: &str,
    declared: &IndexMap<String, String>,
) -> Result<Vec<(OsString, OsString)>, EnvironmentError> {
    for (name, value) in declared {
        if !is_identifier(name) {
            return Err(EnvironmentError::InvalidName { name: name.escape_debug().to_string() });
        }
        if value.contains('\0') {
            return Err(EnvironmentError::InvalidValue { name: name.clone() });
        }
    }
    let inherited = parent
        .iter_os()
        .filter(|(name, value)| match inherited {
            InheritedEnvironment::Strict => is_listed(BASIC_VARIABLES, name),
            InheritedEnvironment::Standard => {
                is_standard(name) || runner_settings::is_inherited(command, name, value)
            }
            InheritedEnvironment::Complete => true,
        })
        .filter(|(name, value)| {
            is_inheritable(name, value) && !declared.keys().any(|own| same_name(own, name))
        })
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let declared = declared.iter().map(|(name, value)| (name.into(), value.into()));
    Ok(inherited.chain(declared).collect())
}

/// Returns the variables that a program inherits from `parent` without any configuration, as a server
/// with this command does.
pub fn inherited_environment(parent: &Environment, command: &str) -> Vec<(OsString, OsString)> {
    let declared = IndexMap::new();
    // Without declared variables there is nothing to reject.
    child_environment(parent, InheritedEnvironment::Standard, command, &declared)
        .unwrap_or_default()
}

fn is_standard(name: &OsStr) -> bool {
    is_listed(BASIC_VARIABLES, name)
        || is_listed(NETWORK_AND_DIRECTORY_VARIABLES, name)
        || name.as_encoded_bytes().starts_with(LOCALE_PREFIX.as_bytes())
}

fn is_listed(list: &[&str], name: &OsStr) -> bool {
    list.iter().any(|listed| same_name(listed, name))
}

/// Excludes exported shell functions, because a shell in the server would execute them.
fn is_inheritable(name: &OsStr, value: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    let value = value.as_encoded_bytes();
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

fn same_name(left: &str, other: &OsStr) -> bool {
    if cfg!(windows) { other.eq_ignore_ascii_case(left) } else { other == left }
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

    fn build_environment(
        inherited: InheritedEnvironment,
        declared: &[(&str, &str)],
    ) -> Vec<(String, String)> {
        let declared = declared.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let text = |os: OsString| os.into_string().unwrap();
        let built = child_environment(&parent(), inherited, "server", &declared).unwrap();
        built.into_iter().map(|(name, value)| (text(name), text(value))).collect()
    }

    fn refuse(declared: &IndexMap<String, String>) -> EnvironmentError {
        child_environment(&parent(), InheritedEnvironment::Standard, "server", declared)
            .unwrap_err()
    }

    fn names(environment: &[(String, String)]) -> Vec<&str> {
        environment.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// Attack: secrets | the environment of the host contains secrets, loader variables and shell
    /// functions | the server inherits none of them | Secrets stay with their owner
    /// Proves: TR10.2
    #[test]
    fn a_server_inherits_neither_secrets_nor_loader_hooks_nor_shell_functions() {
        let built = build_environment(InheritedEnvironment::Standard, &[("SERVER_KEY", "1")]);
        let expected = if cfg!(windows) {
            &["PATH", "SERVER_KEY"][..]
        } else {
            &["HOME", "PATH", "SERVER_KEY"]
        };
        assert_eq!(names(&built), expected);
    }

    #[test]
    fn everything_but_shell_functions_is_inherited_on_request() {
        let all = build_environment(InheritedEnvironment::Complete, &[]);
        assert_eq!(names(&all), ["API_TOKEN", "HOME", "LD_PRELOAD", "NODE_OPTIONS", "PATH"]);
    }

    #[test]
    fn a_declared_value_replaces_the_inherited_one() {
        let built = build_environment(
            InheritedEnvironment::Standard,
            &[("PATH", "/opt/bin"), ("LD_PRELOAD", "mine.so")],
        );
        let paths: Vec<_> = built.iter().filter(|(name, _)| name == "PATH").collect();
        assert_eq!(paths, [&("PATH".to_owned(), "/opt/bin".to_owned())]);
        assert!(names(&built).contains(&"LD_PRELOAD"));
    }

    /// Proves: TR10.2
    #[test]
    fn a_declared_name_that_is_no_identifier_and_a_value_with_nul_are_refused() {
        for name in ["", "A=B", "A\0", "A\nB", "1A", "A-B", "Ä"] {
            let declared = IndexMap::from([(name.to_owned(), String::new())]);
            let error = refuse(&declared);
            assert!(matches!(error, EnvironmentError::InvalidName { .. }), "{name:?}");
            assert!(!error.to_string().contains(['\n', '\0']), "{name:?} is shown as it is");
        }
        let declared = IndexMap::from([("KEY".to_owned(), "secret\0".to_owned())]);
        let error = refuse(&declared);
        assert_eq!(error, EnvironmentError::InvalidValue { name: "KEY".to_owned() });
        assert!(!error.to_string().contains("secret"));
    }
}
