//! Tests of `${…}` expansion in every field.

use std::path::Path;

use insta::assert_snapshot;
use proptest::prelude::{any, proptest};

use super::{MISSING_DIR, args, diagnostics, diagnostics_with, load_with};
use crate::Config;
use crate::settings::server::TransportConfig;
use crate::variables::environment::Environment;

const VARIABLES: &[(&str, &str)] =
    &[("A", "one"), ("EMPTY", ""), ("NESTED", "${A}"), ("HOME", "/home/me"), ("CMD", "npx")];

/// Expands the text as the only argument of a server.
fn expand(text: &str) -> String {
    let text = serde_json::to_string(text).unwrap();
    let file = format!(r#"{{"servers": {{"a": {{"command": "x", "args": [{text}]}}}}}}"#);
    let config = load_with(&file, VARIABLES).unwrap();
    args(&config.servers["a"])[0].to_owned()
}

/// Proves: FR1.2
#[test]
fn variables_are_replaced_in_every_field_that_has_them() {
    let text = r#"{"servers": {
      "a": {"command": "${CMD}", "args": ["--x=${A}"], "env": {"K": "${A}!"}, "cwd": "${HOME}/d"},
      "b": {"url": "https://${A}.example/mcp", "headers": {"X": "Bearer ${A}"}}
    }}"#;
    let config = load_with(text, VARIABLES).unwrap();
    let TransportConfig::Stdio { command, args, env, cwd, .. } = &config.servers["a"].transport
    else {
        panic!("not stdio");
    };
    assert_eq!(command.expose(), "npx");
    assert_eq!(args[0].expose(), "--x=one");
    assert_eq!(env["K"].expose(), "one!");
    assert_eq!(cwd.as_ref().unwrap().expose(), Path::new("/home/me/d"));
    let TransportConfig::Http { url, headers } = &config.servers["b"].transport else {
        panic!("not http");
    };
    assert_eq!(url.expose(), "https://one.example/mcp");
    assert_eq!(headers["X"].expose(), "Bearer one");
}

#[test]
fn every_form_of_a_reference_is_read() {
    for (text, expected) in [
        ("${A}", "one"),
        ("${env:A}", "one"),
        ("<${A}${A}>", "<oneone>"),
        ("${NO:-two}", "two"),
        ("${env:NO:-two}", "two"),
        ("${EMPTY:-two}", "two"),
        ("${EMPTY}", ""),
        ("${NO:-}", ""),
        ("${NO:-a:-b}", "a:-b"),
        ("${NO:-$A}", "$A"),
        ("${userHome}", "/home/me"),
        ("${workspaceFolder}", MISSING_DIR),
        ("${workspaceFolderBasename}", "project"),
    ] {
        assert_eq!(expand(text), expected, "{text}");
    }
    let separator = std::path::MAIN_SEPARATOR.to_string();
    assert_eq!(expand("${pathSeparator}${/}"), separator.repeat(2));
}

#[test]
fn what_is_not_a_reference_stays_as_it_is() {
    for text in ["$A", "$$", "$", "{A}", "%A%", "$(A)", "`A`", "$ {A}", "~"] {
        assert_eq!(expand(text), text);
    }
    assert_eq!(expand("$${A}"), "${A}");
}

#[test]
fn values_of_variables_are_not_expanded_again() {
    assert_eq!(expand("${NESTED}"), "${A}");
    assert_eq!(expand("${NO:-x}${NESTED}"), "x${A}");
}

#[test]
fn a_header_with_an_empty_variable_is_a_warning_and_one_with_a_default_is_not() {
    let text = r#"{"servers": {"a": {"url": "http://a", "headers": {
  "Authorization": "Bearer ${TOKEN}", "X-Team": "${TEAM:-none}"
}}}}"#;
    let variables = [("TOKEN", ""), ("TEAM", "")];
    assert_snapshot!(diagnostics_with(text, &variables), @"mcp.json:2:20 servers.a.headers.Authorization: variable `TOKEN` is empty");
}

#[test]
fn the_working_directory_is_the_one_that_was_handed_in() {
    let text = r#"{"servers": {"a": {"command": "x", "args": ["${cwd}"]}}}"#;
    let environment = Environment::default().with_current_dir("/nowhere/here");
    let config = Config::from_text(text, "mcp.json", Path::new("sub"), &environment).unwrap();
    assert_eq!(args(&config.servers["a"]), ["/nowhere/here"]);
    assert_snapshot!(diagnostics(text), @"mcp.json:1:45 servers.a.args[0]: unknown reference `${cwd}`");
}

#[test]
fn the_workspace_of_a_file_in_an_editor_s_directory_is_the_one_around_it() {
    let text = r#"{"servers": {"a": {"command": "x", "args": ["${workspaceFolder}"]}}}"#;
    for (base, workspace) in [
        ("/nowhere/project/.vscode", MISSING_DIR),
        ("/nowhere/project", MISSING_DIR),
        (".vscode", "."),
        ("", "."),
    ] {
        let environment = Environment::default();
        let config = Config::from_text(text, "mcp.json", Path::new(base), &environment).unwrap();
        assert_eq!(args(&config.servers["a"]), [workspace], "{base}");
    }
}

#[test]
fn a_relative_directory_starts_at_the_file_s() {
    let text = r#"{"servers": {"a": {"command": "x", "cwd": "sub/dir"}}}"#;
    let environment = Environment::default().with_current_dir("/nowhere");
    let config = Config::from_text(text, "mcp.json", Path::new("conf"), &environment).unwrap();
    let TransportConfig::Stdio { cwd, .. } = &config.servers["a"].transport else {
        panic!("not stdio");
    };
    assert_eq!(cwd.as_ref().unwrap().expose(), Path::new("/nowhere/conf/sub/dir"));
}

/// Proves: TR8.2
#[test]
fn a_reference_that_cannot_be_replaced_is_reported_by_variable_and_field() {
    let text = r#"{"servers": {"a": {
  "command": "${NO_COMMAND}",
  "args": ["${input:api-key}", "${A B}", "${}", "${OPEN", "${command:ls}", "${A:-${B}}", "${userHome}"],
  "env": {"K": "${ONE}${TWO}"},
  "cwd": "${NO_CWD}",
  "envFile": "${NO_FILE}/.env"
}, "b": {"url": "https://${NO_HOST}/", "headers": {"X": "${NO_HEADER}"}}}}"#;
    assert_snapshot!(diagnostics(text), @"
    mcp.json:2:14 servers.a.command: variable `NO_COMMAND` is not set
        hint: set the variable, add it to `.env` beside the file, or write `${NO_COMMAND:-default}`
    mcp.json:3:12 servers.a.args[0]: `${input:api-key}` is not supported without a prompt handler
        hint: write `${env:API_KEY}` and set that variable
    mcp.json:3:32 servers.a.args[1]: invalid variable name `A B`
        hint: for a literal `${` write `$${`
    mcp.json:3:42 servers.a.args[2]: invalid variable name ``
        hint: for a literal `${` write `$${`
    mcp.json:3:49 servers.a.args[3]: unclosed `${`
        hint: for a literal `${` write `$${`
    mcp.json:3:59 servers.a.args[4]: `${command:…}` is not supported
    mcp.json:3:76 servers.a.args[5]: a default cannot refer to a variable
    mcp.json:3:90 servers.a.args[6]: unknown reference `${userHome}`
    mcp.json:4:16 servers.a.env.K: variable `ONE` is not set
        hint: set the variable, add it to `.env` beside the file, or write `${ONE:-default}`
    mcp.json:4:16 servers.a.env.K: variable `TWO` is not set
        hint: set the variable, add it to `.env` beside the file, or write `${TWO:-default}`
    mcp.json:5:10 servers.a.cwd: variable `NO_CWD` is not set
        hint: set the variable, add it to `.env` beside the file, or write `${NO_CWD:-default}`
    mcp.json:6:14 servers.a.envFile: variable `NO_FILE` is not set
        hint: set the variable, add it to `.env` beside the file, or write `${NO_FILE:-default}`
    mcp.json:7:17 servers.b.url: variable `NO_HOST` is not set
        hint: set the variable, add it to `.env` beside the file, or write `${NO_HOST:-default}`
    mcp.json:7:57 servers.b.headers.X: variable `NO_HEADER` is not set
        hint: set the variable, add it to `.env` beside the file, or write `${NO_HEADER:-default}`
    ");
}

#[test]
fn names_types_and_tool_lists_are_never_expanded() {
    let text = r#"{"servers": {"a": {"command": "x", "tools": {"allow": ["${A}"]},
        "dependencies": [], "env": {"${A}": "1"}, "type": "${A}"}}}"#;
    let error = load_with(text, VARIABLES).unwrap_err();
    let keys: Vec<_> = error.errors().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, [r#"servers.a.env["${A}"]"#, "servers.a.type"]);
}

proptest! {
    #[test]
    fn a_text_without_references_is_left_as_it_is(text in "[^$\0]{0,40}(\\$[^{\0]{0,10})?") {
        proptest::prop_assert_eq!(expand(&text), text);
    }

    #[test]
    fn a_value_is_inserted_once_whatever_it_is(value in "[^\0]{0,40}") {
        let file = r#"{"servers": {"a": {"command": "x", "args": ["<${V}>"]}}}"#;
        let config = load_with(file, &[("V", &value)]).unwrap();
        proptest::prop_assert_eq!(args(&config.servers["a"])[0], format!("<{value}>"));
    }

    #[test]
    fn no_text_makes_the_expansion_panic(text in any::<String>()) {
        let text = serde_json::to_string(&text).unwrap();
        let file = format!(r#"{{"servers": {{"a": {{"command": {text}, "env": {{"A": {text}}}}}}}}}"#);
        drop(load_with(&file, VARIABLES));
    }
}
