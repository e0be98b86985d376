//! Tests of files on disk: several files, `.env`, `envFile`.

use std::fs;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use tempfile::TempDir;

use super::args;
use crate::Config;
use crate::diagnostic::ConfigError;
use crate::settings::server::TransportConfig;
use crate::variables::environment::Environment;

struct TestDir(TempDir);

impl TestDir {
    fn with(files: &[(&str, &str)]) -> Self {
        let directory = Self(TempDir::new().unwrap());
        for (name, text) in files {
            let path = directory.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        directory
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn load(&self, names: &[&str], variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let paths: Vec<PathBuf> = names.iter().map(|name| self.path(name)).collect();
        Config::load(&paths, &Environment::from_pairs(variables.iter().copied()))
    }

    /// Returns the problems without the path of the test directory.
    fn diagnostics(&self, result: Result<Config, ConfigError>) -> String {
        let root = format!("{}{}", self.0.path().display(), std::path::MAIN_SEPARATOR);
        super::diagnostics_for(result).replace(&root, "")
    }
}

fn env(config: &Config) -> Vec<(&str, &str)> {
    match &config.servers["a"].transport {
        TransportConfig::Stdio { env, .. } => {
            env.iter().map(|(name, value)| (name.as_str(), value.expose())).collect()
        }
        other => panic!("not stdio: {other:?}"),
    }
}

const USES_VALUE: &str = r#"{"servers": {"a": {"command": "x", "args": ["${VALUE}"]}}}"#;

#[test]
fn a_variable_is_found_in_the_file_beside_the_configuration() {
    let directory = TestDir::with(&[("mcp.json", USES_VALUE), (".env", "VALUE=from-file\n")]);
    let config = directory.load(&["mcp.json"], &[]).unwrap();
    assert_eq!(args(&config.servers["a"]), ["from-file"]);
}

#[test]
fn the_environment_wins_over_the_file_beside_the_configuration() {
    let directory = TestDir::with(&[("mcp.json", USES_VALUE), (".env", "VALUE=from-file\n")]);
    let config = directory.load(&["mcp.json"], &[("VALUE", "from-environment")]).unwrap();
    assert_eq!(args(&config.servers["a"]), ["from-environment"]);
}

#[test]
fn the_file_beside_the_configuration_is_not_read_when_nothing_is_missing() {
    let invalid = "this is not = a file ${ of ours";
    let directory = TestDir::with(&[("mcp.json", USES_VALUE), (".env", invalid)]);
    assert_eq!(directory.load(&["mcp.json"], &[("VALUE", "k")]).unwrap().warnings, []);
    assert_snapshot!(directory.diagnostics(directory.load(&["mcp.json"], &[])), @"
    mcp.json:1:45 servers.a.args[0]: variable `VALUE` is not set
        hint: set the variable, add it to `.env` beside the file, or write `${VALUE:-default}`
    .env:1:1: a name consists of letters, digits and `_` and does not start with a digit
    ");
}

#[test]
fn a_file_of_variables_stands_below_env_and_takes_nothing_from_the_process() {
    let text = r#"{"servers": {"a": {"command": "x", "envFile": "${DIR}/a.env",
        "env": {"B": "env", "C": null}}}}"#;
    let directory =
        TestDir::with(&[("mcp.json", text), ("conf/a.env", "A=${HOME}\nB=file\nC=file\n")]);
    let config = directory.load(&["mcp.json"], &[("DIR", "conf"), ("HOME", "/home/me")]).unwrap();
    assert_eq!(env(&config), [("A", "${HOME}"), ("B", "env")]);
}

#[test]
fn a_file_of_variables_that_cannot_be_used_is_an_error() {
    let text = r#"{"servers": {
  "gone": {"command": "a", "envFile": "gone.env"},
  "dir": {"command": "b", "envFile": "conf"},
  "bad": {"command": "c", "envFile": "conf/bad.env"},
  "nul": {"command": "d", "envFile": "conf/nul.env"}
}}"#;
    let directory = TestDir::with(&[
        ("mcp.json", text),
        ("conf/bad.env", "A=1\n\nsecret words\n"),
        ("conf/nul.env", "A=1\nB=secret\0words\n"),
    ]);
    assert_snapshot!(directory.diagnostics(directory.load(&["mcp.json"], &[])), @"
    mcp.json:2:39 servers.gone.envFile: `gone.env`: no such file
    mcp.json:3:38 servers.dir.envFile: `conf`: a directory, not a file
    mcp.json:5:38 servers.nul.envFile: `conf/nul.env`: `B` contains a NUL character
    conf/bad.env:3:1: expected `NAME=value`
    ");
}

#[test]
fn several_files_are_one_configuration_each_with_its_own_variable_scope() {
    let directory = TestDir::with(&[
        ("one/mcp.json", r#"{"servers": {"a": {"command": "${VALUE}"}}, "host": {"timeout": 5}}"#),
        ("one/.env", "VALUE=1"),
        (
            "two/mcp.json",
            r#"{"mcpServers": {"b": {"command": "${VALUE}", "dependencies": ["a"]}}}"#,
        ),
        ("two/.env", "VALUE=2"),
    ]);
    let config = directory.load(&["one/mcp.json", "two/mcp.json"], &[]).unwrap();
    assert_eq!(config.waves(), [["a"], ["b"]]);
    assert_eq!(config.sources.len(), 2);
    for (name, expected) in [("a", "1"), ("b", "2")] {
        let TransportConfig::Stdio { command, .. } = &config.servers[name].transport else {
            panic!("not stdio");
        };
        assert_eq!(command.expose(), expected);
    }
    assert_eq!(config.servers["b"].calls.timeout.as_secs(), 5);
}

/// Proves: FR1.3, FR1.4
#[test]
fn the_same_name_in_two_files_is_an_error_that_names_both_places() {
    let directory = TestDir::with(&[
        ("a.json", "{\"host\": {\"timeout\": 1},\n \"servers\": {\"fs\": {\"command\": \"x\"}}}"),
        ("b.json", "{\"host\": {\"timeout\": 2}, \"servers\": {\"fs\": {\"command\": \"y\"}}}"),
    ]);
    assert_snapshot!(directory.diagnostics(directory.load(&["a.json", "b.json"], &[])), @"
    b.json:1:11 host.timeout: already set at a.json:1:11
    b.json:1:38 servers.fs: duplicate server name, first at a.json:2:14
    ");
}

#[test]
fn a_file_that_cannot_be_read_is_reported_beside_the_problems_of_the_others() {
    let directory = TestDir::with(&[("a.json", "{\"servers\": 1}"), ("dir/x", "")]);
    fs::write(directory.path("latin.json"), b"{\"servers\": {\"\xe4\": {}}}").unwrap();
    let result = directory.load(&["gone.json", "dir", "latin.json", "a.json"], &[]);
    assert_snapshot!(directory.diagnostics(result), @"
    gone.json: no such file
    dir: a directory, not a file
    latin.json: not UTF-8 text
    a.json:1:13 servers: expected object
    ");
}

#[test]
fn from_file_reads_the_environment_of_the_process() {
    let text = r#"{"servers": {"a": {"command": "x", "args": ["${PATH}"]}}}"#;
    let directory = TestDir::with(&[("mcp.json", text)]);
    let config = Config::from_file(directory.path("mcp.json")).unwrap();
    let environment = Environment::from_process();
    assert_eq!(args(&config.servers["a"]), [environment.get("PATH").unwrap()]);
    assert!(environment.current_dir().is_some_and(Path::is_absolute));
}

#[cfg(unix)]
#[test]
fn a_pipe_is_never_waited_for() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    let text = r#"{"servers": {"a": {"command": "${VALUE}", "envFile": "pipe"}}}"#;
    let directory = TestDir::with(&[("mcp.json", text)]);
    for name in [".env", "pipe"] {
        mknodat(CWD, directory.path(name), FileType::Fifo, Mode::RWXU, 0).unwrap();
    }
    assert_snapshot!(directory.diagnostics(directory.load(&["mcp.json", "pipe"], &[])), @"
    mcp.json:1:31 servers.a.command: variable `VALUE` is not set
        hint: set the variable, add it to `.env` beside the file, or write `${VALUE:-default}`
    mcp.json:1:54 servers.a.envFile: `pipe`: not a file
    pipe: not a file
    ");
}
