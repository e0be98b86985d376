//! Partial loads: servers with errors are set aside.

use std::path::Path;

use super::{MISSING_DIR, diagnostics_for, load};
use crate::Config;
use crate::diagnostic::ConfigError;
use crate::load::load_text;
use crate::origin::LoadMode;
use crate::variables::environment::Environment;

fn load_partial(text: &str) -> Result<Config, ConfigError> {
    let environment = Environment::from_pairs([("SET", "value")]);
    load_text(text, "mcp.json", Path::new(MISSING_DIR), &environment, LoadMode::Partial)
}

fn names<V>(servers: &indexmap::IndexMap<String, V>) -> Vec<&str> {
    servers.keys().map(String::as_str).collect()
}

const INVALID_SERVERS: &str = r#"{"host": {"timeout": 5}, "servers": {
  "good": {"command": "a", "args": ["${SET}"]},
  "unset": {"command": "a", "env": {"KEY": "${UNSET_VARIABLE}"}, "comand": "b"},
  "envfile": {"command": "a", "envFile": "missing.env", "required": false},
  "both": {"command": "a", "url": "http://b"},
  "neither": {},
  "type": {"command": "a", "timeout": "1"},
  "twice": {"command": "a", "command": "b"},
  "self": {"url": "http://a", "dependencies": ["self"]},
  "nobody": {"url": "ws://a", "dependencies": ["nothing"]},
  "bad\tname": {"command": "a"},
  "number": 7,
  "off": {"command": 7, "disabled": true},
  "dependent": {"command": "b", "dependencies": ["unset"]}
}}"#;

#[test]
fn a_server_with_an_error_is_set_aside_with_its_problems_and_the_others_are_usable() {
    let config = load_partial(INVALID_SERVERS).unwrap();
    assert_eq!(names(&config.servers), ["good", "dependent"]);
    assert_eq!(names(&config.disabled), ["off"]);
    let mut lines = Vec::new();
    for (name, server) in &config.invalid {
        assert!(server.problems.iter().any(crate::diagnostic::Diagnostic::is_error), "{name}");
        let (transport, required) = (server.transport.unwrap_or("?"), server.required);
        lines.push(format!("{name} ({transport}, required: {required})"));
        lines.push(diagnostics_for(Err(server.to_error())));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    unset (stdio, required: true)
    mcp.json:3:44 servers.unset.env.KEY: variable `UNSET_VARIABLE` is not set
        hint: set the variable, add it to `.env` beside the file, or write `${UNSET_VARIABLE:-default}`
    mcp.json:3:66 servers.unset.comand: unknown key
        hint: did you mean `command`?
    envfile (stdio, required: false)
    mcp.json:4:42 servers.envfile.envFile: `missing.env`: no such file
    both (?, required: true)
    mcp.json:5:11 servers.both: has both `command` and `url`
        hint: set `"type": "stdio"` or `"type": "http"`
    neither (?, required: true)
    mcp.json:6:14 servers.neither: has neither `command` nor `url`
    type (stdio, required: true)
    mcp.json:7:39 servers.type.timeout: expected number
        hint: write the number of seconds: `1`
    twice (stdio, required: true)
    mcp.json:8:3 servers.twice: same server as `type` under another name
    mcp.json:8:29 servers.twice.command: duplicate key, first at mcp.json:8:13
    self (http, required: true)
    mcp.json:9:48 servers.self.dependencies[0]: depends on itself
    nobody (websocket, required: true)
    mcp.json:10:48 servers.nobody.dependencies[0]: no server `nothing`
    bad	name (?, required: true)
    mcp.json:11:3 servers["bad\tname"]: the server name contains control characters or line breaks
        hint: use 1 to 128 visible characters
    number (?, required: true)
    mcp.json:12:13 servers.number: expected object
    "#);
    insta::assert_snapshot!(
        diagnostics_for(Ok(config)),
        @"mcp.json:13:22 servers.off.command: expected string"
    );
}

#[test]
fn a_complete_load_reports_the_problems_of_all_servers() {
    let all = load(INVALID_SERVERS).unwrap_err();
    let partial = load_partial(INVALID_SERVERS).unwrap();
    let set_aside: usize = partial.invalid.values().map(|server| server.problems.len()).sum();
    // The first load has no variable `SET`.
    assert_eq!(all.0.len(), set_aside + partial.warnings.len() + 1);
}

#[test]
fn an_error_of_the_file_rejects_a_partial_load_with_all_problems() {
    let unset = r#""unset": {"command": "${UNSET_VARIABLE}"}"#;
    for (text, expected) in [
        (format!(r#"{{"servers": {{{unset}"#), "missing `}`"),
        (format!(r#"{{"host": {{"timeout": "1"}}, "servers": {{{unset}}}}}"#), "host.timeout"),
        (
            format!(
                r#"{{"servers": {{{unset}, "a": {{"command": "x"}}, "a": {{"command": "y"}}}}}}"#
            ),
            "duplicate server name",
        ),
        (
            format!(
                r#"{{"servers": {{{unset}, "a": {{"command": "x"}}, "A": {{"command": "y"}}}}}}"#
            ),
            "only in case",
        ),
        (
            format!(
                r#"{{"servers": {{{unset}, "a": {{"command": "x", "dependencies": ["b"]}},
                "b": {{"command": "y", "dependencies": ["a"]}}}}}}"#
            ),
            "depends on itself: a -> b -> a",
        ),
        (r#"{"servers": []}"#.to_owned(), "servers: expected object"),
    ] {
        let error = load_partial(&text).unwrap_err();
        assert!(error.to_string().contains(expected), "{expected}: {error}");
        let is_parsed = expected != "missing `}`" && expected != "servers: expected object";
        assert_eq!(error.to_string().contains("UNSET_VARIABLE"), is_parsed, "{error}");
    }
}

#[test]
fn errors_beyond_the_maximum_number_set_their_servers_aside() {
    let bad: Vec<String> =
        (0..300).map(|n| format!(r#""bad{n}": {{"command": "${{UNSET}}"}}"#)).collect();
    let text = format!(r#"{{"servers": {{"good": {{"command": "a"}}, {}}}}}"#, bad.join(","));
    let config = load_partial(&text).unwrap();
    assert_eq!((names(&config.servers), config.invalid.len()), (vec!["good"], 300));
    assert!(config.invalid["bad299"].reason().contains("servers.bad299"));
}

#[test]
fn a_selection_contains_the_invalid_servers_that_it_needs_and_no_others() {
    let config = load_partial(INVALID_SERVERS).unwrap();
    let only = config.select(&["good"]).unwrap();
    assert!(only.invalid.is_empty() && only.origin.is_selection());
    let only = config.select(&["dependent"]).unwrap();
    assert_eq!((names(&only.servers), names(&only.invalid)), (vec!["dependent"], vec!["unset"]));
    let only = config.select(&["both"]).unwrap();
    assert_eq!((only.servers.len(), names(&only.invalid)), (0, vec!["both"]));
    let warned = load(
        r#"{"servers": {"a": {"command": "x", "b": 1}, "ab": {"command": "y", "c": 1}}, "d": 1}"#,
    );
    let only = warned.unwrap().select(&["ab"]).unwrap();
    let keys: Vec<&str> = only.warnings.iter().map(|warning| warning.key.as_str()).collect();
    assert_eq!(keys, ["servers.ab.c", "d"], "the warnings of other servers are removed");
    let unknown = config.select(&["botj"]).unwrap_err();
    assert_eq!(unknown.similar.as_deref(), Some("both"));
}

#[test]
fn a_reload_keeps_the_options_of_the_load() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mcp.json");
    let write = |servers: &str| {
        std::fs::write(&file, format!(r#"{{"servers": {{{servers}}}}}"#)).unwrap();
    };
    write(r#""a": {"command": "a"}"#);
    let files = [file.clone()];
    let config = Config::load_partial(&files, &Environment::default()).unwrap();
    let config = config.with_optional_servers();
    write(r#""a": {"command": "a"}, "b": {}"#);
    let reloaded = config.reload().unwrap().unwrap();
    assert_eq!((names(&reloaded.servers), names(&reloaded.invalid)), (vec!["a"], vec!["b"]));
    assert!(!reloaded.servers["a"].required);
    let selected = reloaded.select(&["b"]).unwrap();
    let reloaded = selected.reload().unwrap().unwrap();
    assert_eq!((reloaded.servers.len(), names(&reloaded.invalid)), (0, vec!["b"]));
}
