//! Recognizes frequent problems in the stderr of a server that did not start.

/// A problem that only the user can solve, apart from that of a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StartProblem {
    /// The server requires a variable that is not set.
    MissingVariable(String),
    /// The server requires a key or a token, or does not accept the one that it has.
    Credential,
    /// The program is not there, or lacks a module or a library.
    MissingModule,
    /// The program or its configuration is not valid source text.
    Syntax,
    /// The program does not take its arguments.
    Usage,
    /// The package or the version does not exist.
    MissingPackage,
    /// A program does not trust the certificate of another host.
    Certificate,
    /// The connection to a proxy or through a proxy failed.
    Proxy,
}

/// Texts about a certificate without a trusted issuer: rustls, Node.js, OpenSSL, Python.
const CERTIFICATE_TEXTS: [&str; 7] = [
    "UnknownIssuer",
    "UNABLE_TO_GET_ISSUER_CERT",
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    "SELF_SIGNED_CERT",
    "self-signed certificate",
    "unable to get local issuer certificate",
    "CERTIFICATE_VERIFY_FAILED",
];

/// Texts of package runners about a package or a version that does not exist.
const PACKAGE_TEXTS: [&str; 9] = [
    "npm error code E404",
    "npm ERR! code E404",
    "npm error code ETARGET",
    "npm ERR! code ETARGET",
    "was not found in the package registry",
    "there is no version of",
    "No matching distribution found for",
    "does not provide any executables",
    "is not provided by package",
];

/// Texts about a variable that is not set, in lower case.
const MISSING_TEXTS: [&str; 12] = [
    "required",
    "missing",
    "not set",
    "must be set",
    "must set",
    "please set",
    "not provided",
    "must be provided",
    "please provide",
    "not defined",
    "undefined",
    "keyerror: '",
];

/// Texts about a program, a module or a library that is missing: shells, Python, Node.js, the loader,
/// Java, Ruby.
const MODULE_TEXTS: [&str; 14] = [
    "command not found",
    "ModuleNotFoundError",
    "ImportError",
    "can't open file",
    "Cannot find module",
    "Cannot find package",
    "ERR_MODULE_NOT_FOUND",
    "ERR_PACKAGE_PATH_NOT_EXPORTED",
    "does not provide an export named",
    "error while loading shared libraries",
    "NoClassDefFoundError",
    "Could not find or load main class",
    "Unable to access jarfile",
    "cannot load such file",
];

/// Names of errors in source text.
const SYNTAX_TEXTS: [&str; 5] =
    ["SyntaxError", "IndentationError", "TabError", "syntax error", "UnsupportedClassVersionError"];

/// Texts about arguments, in lower case: argparse, click, clap, commander, yargs, Go.
const USAGE_TEXTS: [&str; 16] = [
    "unrecognized argument",
    "unrecognized option",
    "unrecognised option",
    "unexpected argument",
    "unknown argument",
    "unknown option",
    "unknown command",
    "unknown flag",
    "no such option",
    "no such command",
    "arguments are required",
    "required arguments were not provided",
    "missing required argument",
    "missing argument",
    "flag provided but not defined",
    "invalid choice",
];

/// Names of credentials, in lower case.
const CREDENTIAL_TEXTS: [&str; 9] = [
    "api key",
    "api-key",
    "apikey",
    "api token",
    "access token",
    "auth token",
    "access key",
    "credentials",
    "license key",
];

/// First parts of words that look like variables and are error codes.
const ERROR_CODES: [&str; 6] =
    ["ERR_", "MODULE_", "UNABLE_TO_", "CERT", "SELF_SIGNED_", "DEPTH_ZERO_"];

fn has_any(text: &str, parts: &[&str]) -> bool {
    parts.iter().any(|part| text.contains(part))
}

impl StartProblem {
    /// Recognizes a problem in the stderr tail of a failed start and in the line that
    /// [`failure_line`](super::failure_line) selected.
    pub(super) fn from_stderr(stderr: &str, line: &str) -> Option<Self> {
        if has_any(stderr, &CERTIFICATE_TEXTS) {
            Some(Self::Certificate)
        } else if has_any(stderr, &PACKAGE_TEXTS) {
            Some(Self::MissingPackage)
        } else if is_proxy_failure(stderr) {
            Some(Self::Proxy)
        } else if let Some(name) = missing_variable(line) {
            Some(Self::MissingVariable(name))
        } else {
            Self::from_line(stderr, line)
        }
    }

    /// Recognizes what the selected line says, and a usage message.
    fn from_line(stderr: &str, line: &str) -> Option<Self> {
        let lower = line.to_lowercase();
        let has_usage = stderr.lines().any(|line| line.to_lowercase().starts_with("usage: "));
        let is_shell = ["sh: ", "/bin/sh: "].iter().any(|shell| line.starts_with(shell));
        if has_any(line, &MODULE_TEXTS) || (is_shell && line.ends_with(": not found")) {
            Some(Self::MissingModule)
        // A service that is starting may answer with a page in place of JSON.
        } else if has_any(line, &SYNTAX_TEXTS) && !lower.contains("json") {
            Some(Self::Syntax)
        } else if has_usage || has_any(&lower, &USAGE_TEXTS) {
            Some(Self::Usage)
        } else if has_any(&lower, &CREDENTIAL_TEXTS)
            && (has_any(&lower, &MISSING_TEXTS)
                || has_any(&lower, &["invalid", "no ", "incorrect"]))
        {
            Some(Self::Credential)
        } else {
            None
        }
    }

    /// Returns whether another launch with the same settings fails too.
    pub(super) fn is_permanent(&self) -> bool {
        match self {
            Self::MissingVariable(_)
            | Self::Credential
            | Self::MissingModule
            | Self::Syntax
            | Self::Usage
            | Self::MissingPackage
            | Self::Certificate => true,
            Self::Proxy => false,
        }
    }

    /// Returns what to change for a server.
    pub(super) fn hint(&self, server: &str) -> String {
        match self {
            Self::MissingVariable(name) => format!("set `{name}` in `env` of server `{server}`"),
            Self::Credential => format!("set the key in `env` or `args` of server `{server}`"),
            Self::MissingModule => {
                format!(
                    "install what is missing, or correct `command` and `args` of server `{server}`"
                )
            }
            Self::Syntax => format!(
                "correct the program of server `{server}`, or run it with a newer version in `command`"
            ),
            Self::Usage => format!("correct `args` of server `{server}`"),
            Self::MissingPackage => format!(
                "check the name and the version of the package in `args` of server `{server}`"
            ),
            Self::Certificate => format!(
                "set `SSL_CERT_FILE`, or `NODE_EXTRA_CA_CERTS` for Node.js, in `env` of server \
                 `{server}` to a file with the certificate of the authority"
            ),
            Self::Proxy => format!(
                "set `HTTPS_PROXY`, and `NO_PROXY` for hosts without a proxy, in `env` of server \
                 `{server}`"
            ),
        }
    }
}

/// Returns whether a proxy refused a connection or requires a password.
fn is_proxy_failure(stderr: &str) -> bool {
    stderr.lines().map(str::to_lowercase).any(|line| {
        let fails = ["econnrefused", "407", "tunnel", "connection refused", "enotfound"];
        line.contains("proxy") && fails.iter().any(|text| line.contains(text))
    })
}

/// Returns the variable that a line reports as missing.
fn missing_variable(line: &str) -> Option<String> {
    let lower = line.to_lowercase();
    if !MISSING_TEXTS.iter().any(|text| lower.contains(text)) {
        return None;
    }
    let mentions_variables =
        ["environment variable", "env var"].iter().any(|text| lower.contains(text));
    let is_key_error = lower.contains("keyerror: '");
    let mut words = line.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    let name = words.find(|word| {
        let is_upper = word.starts_with(|letter: char| letter.is_ascii_uppercase())
            && !word.contains(|letter: char| letter.is_ascii_lowercase());
        let is_variable = word.contains('_')
            || (is_key_error && word.len() > 2)
            || (mentions_variables && word.len() > 3 && !["ERROR", "FATAL"].contains(word));
        is_upper && is_variable && !ERROR_CODES.iter().any(|code| word.starts_with(code))
    })?;
    Some(name.to_owned())
}

#[cfg(test)]
mod tests;
