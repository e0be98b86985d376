//! Recognizes frequent problems in the stderr of a server that did not start.

/// A problem that only the user can solve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StartProblem {
    /// The server requires a variable that is not set.
    MissingVariable(String),
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

/// First parts of words that look like variables and are error codes.
const ERROR_CODES: [&str; 6] =
    ["ERR_", "MODULE_", "UNABLE_TO_", "CERT", "SELF_SIGNED_", "DEPTH_ZERO_"];

impl StartProblem {
    /// Recognizes a problem in the stderr tail of a failed start and in the line that
    /// [`failure_line`](super::failure_line) selected.
    pub(super) fn from_stderr(stderr: &str, line: &str) -> Option<Self> {
        let has = |texts: &[&str]| texts.iter().any(|text| stderr.contains(text));
        if has(&CERTIFICATE_TEXTS) {
            Some(Self::Certificate)
        } else if has(&PACKAGE_TEXTS) {
            Some(Self::MissingPackage)
        } else if is_proxy_failure(stderr) {
            Some(Self::Proxy)
        } else {
            missing_variable(line).map(Self::MissingVariable)
        }
    }

    /// Returns whether another launch with the same settings fails too.
    pub(super) fn is_permanent(&self) -> bool {
        match self {
            Self::MissingVariable(_) | Self::MissingPackage | Self::Certificate => true,
            Self::Proxy => false,
        }
    }

    /// Returns what to change for a server.
    pub(super) fn hint(&self, server: &str) -> String {
        match self {
            Self::MissingVariable(name) => format!("set `{name}` in `env` of server `{server}`"),
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
mod tests {
    use super::*;

    #[test]
    fn a_missing_variable_is_named() {
        let named = [
            ("Error: BRAVE_API_KEY environment variable is required", "BRAVE_API_KEY"),
            ("KeyError: 'MY_API_KEY'", "MY_API_KEY"),
            ("KeyError: 'TOKEN'", "TOKEN"),
            ("Error: FOO_KEY is not set", "FOO_KEY"),
            (
                "Please set SLACK_BOT_TOKEN and SLACK_TEAM_ID environment variables",
                "SLACK_BOT_TOKEN",
            ),
            ("Missing required environment variable: GITHUB_TOKEN", "GITHUB_TOKEN"),
            ("ERROR: environment variable TOKEN must be set", "TOKEN"),
            ("ValueError: $NOTION_KEY not provided", "NOTION_KEY"),
        ];
        for (line, name) in named {
            assert_eq!(missing_variable(line).as_deref(), Some(name), "{line}");
        }
        let others = [
            "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'x', which is required by y",
            "error: the following arguments are required: --api-key",
            "KeyError: 'name'",
            "Error: EACCES: permission denied, open '/etc/MY_FILE'",
            "TypeError: Cannot read properties of undefined (reading 'A')",
        ];
        for line in others {
            assert_eq!(missing_variable(line), None, "{line}");
        }
    }

    #[test]
    fn certificates_packages_and_proxies_are_recognized_with_a_hint() {
        let recognized = [
            ("  Caused by: invalid peer certificate: UnknownIssuer", StartProblem::Certificate),
            ("npm error code UNABLE_TO_GET_ISSUER_CERT_LOCALLY", StartProblem::Certificate),
            ("npm error code SELF_SIGNED_CERT_IN_CHAIN", StartProblem::Certificate),
            (
                "ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify \
                 failed: self-signed certificate in certificate chain",
                StartProblem::Certificate,
            ),
            ("npm error code E404\nnpm error 404 Not Found - GET x", StartProblem::MissingPackage),
            ("npm error code ETARGET", StartProblem::MissingPackage),
            (
                "  cause: Because x was not found in the package registry and you require x",
                StartProblem::MissingPackage,
            ),
            ("ERROR: No matching distribution found for x", StartProblem::MissingPackage),
            ("npm error 407 Proxy Authentication Required", StartProblem::Proxy),
            (
                "Error: connect ECONNREFUSED 10.0.0.1:3128 through the proxy http://10.0.0.1:3128",
                StartProblem::Proxy,
            ),
        ];
        for (stderr, expected) in recognized {
            let problem = StartProblem::from_stderr(stderr, stderr);
            assert_eq!(problem.as_ref(), Some(&expected), "{stderr}");
            let hint = expected.hint("web");
            assert!(hint.contains("server `web`"), "{hint}");
        }
        for stderr in ["Error: connect ECONNREFUSED 127.0.0.1:5432", "listening on port 407"] {
            assert_eq!(StartProblem::from_stderr(stderr, stderr), None, "{stderr}");
        }
    }

    #[test]
    fn a_hint_names_the_variable_and_only_a_proxy_may_work_the_next_time() {
        let missing = StartProblem::MissingVariable("API_KEY".to_owned());
        assert_eq!(missing.hint("web"), "set `API_KEY` in `env` of server `web`");
        assert!(missing.is_permanent() && StartProblem::Certificate.is_permanent());
        assert!(!StartProblem::Proxy.is_permanent());
    }
}
