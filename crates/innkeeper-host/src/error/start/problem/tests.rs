//! Problems in real stderr tails.

use super::*;

#[test]
fn a_missing_variable_is_named() {
    let named = [
        ("Error: BRAVE_API_KEY environment variable is required", "BRAVE_API_KEY"),
        ("KeyError: 'MY_API_KEY'", "MY_API_KEY"),
        ("KeyError: 'TOKEN'", "TOKEN"),
        ("Error: FOO_KEY is not set", "FOO_KEY"),
        ("Please set SLACK_BOT_TOKEN and SLACK_TEAM_ID environment variables", "SLACK_BOT_TOKEN"),
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

#[test]
fn imports_syntax_usage_and_credentials_are_recognized_and_services_that_start_are_not() {
    let recognized = [
        ("ModuleNotFoundError: No module named 'mcp'", StartProblem::MissingModule),
        ("Error: Cannot find module '/srv/index.js'", StartProblem::MissingModule),
        ("sh: 1: mcp-server: not found", StartProblem::MissingModule),
        ("SyntaxError: invalid syntax", StartProblem::Syntax),
        ("error: unexpected argument '--rot' found", StartProblem::Usage),
        ("usage: server [-h]\nserver: error: invalid path", StartProblem::Usage),
        ("Error: API key is required", StartProblem::Credential),
        ("Error: invalid API key", StartProblem::Credential),
    ];
    for (stderr, expected) in recognized {
        let line = stderr.lines().last().unwrap();
        let problem = StartProblem::from_stderr(stderr, line);
        assert_eq!(problem.as_ref(), Some(&expected), "{stderr}");
        assert!(expected.is_permanent() && expected.hint("web").contains("server `web`"));
    }
    for line in [
        "Error: no database",
        "SyntaxError: Unexpected token '<', \"<html>\" is not valid JSON",
        "Error: connection required by the cluster is missing",
        "panic: relation \"sessions\" does not exist",
    ] {
        assert_eq!(StartProblem::from_stderr(line, line), None, "{line}");
    }
}
