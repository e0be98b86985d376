//! A configuration that was found: what is started without a word, what is not, and what is kept.

use std::path::Path;
use std::process::{Output, Stdio};

use innkeeper_testkit::{Fixture, Journal, fx, mcp_json};
use serde_json::Value;
use tempfile::TempDir;

use crate::program::innkeeper;

/// A project folder, and where this user's state is.
struct Place {
    project: TempDir,
    state: TempDir,
}

impl Place {
    /// A project with this configuration file.
    fn with(file: &str, server: Fixture) -> Self {
        let place =
            Self { project: tempfile::tempdir().unwrap(), state: tempfile::tempdir().unwrap() };
        std::fs::create_dir(place.path(".vscode")).unwrap();
        place.write(file, server);
        place
    }

    fn write(&self, file: &str, server: Fixture) {
        let server = server.journal(&self.path("journal"));
        std::fs::write(self.path(file), mcp_json([server]).to_string()).unwrap();
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.project.path().join(name)
    }

    fn run_with(&self, args: &[&str], variables: &[(&str, &str)], code: i32) -> Output {
        let mut command = innkeeper(args, self.project.path());
        command.env("XDG_STATE_HOME", self.state.path()).envs(variables.iter().copied());
        let output = command.stdin(Stdio::null()).output().unwrap();
        let said = words(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        output
    }

    /// What a line says on stderr.
    fn said(&self, args: &[&str], code: i32) -> String {
        words(&self.run_with(args, &[], code).stderr).to_owned()
    }

    fn started(&self) -> usize {
        Journal::read(&self.path("journal")).pids().len()
    }
}

fn words(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

const CALL: [&str; 3] = ["call", "one.echo", "message=hi"];

fn call(option: &[&'static str]) -> Vec<&'static str> {
    [&CALL, option].concat()
}

#[test]
fn our_own_file_is_started_without_a_terminal_and_undecided_servers_are_a_warning() {
    let place = Place::with("mcp.json", fx("one"));
    for _ in 0..2 {
        let said = place.said(&CALL, 0);
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains("nobody has decided") && said.contains("security=true"), "{said}");
        assert!(said.contains("servers=one"), "{said}");
    }
    let logged = place.said(&call(&["--log-format", "json"]), 0);
    let line: Value = serde_json::from_str(&logged).unwrap();
    assert_eq!((&line["severity"], &line["servers"]), (&"warning".into(), &"one".into()));
    assert_eq!(place.said(&call(&["--config", "mcp.json"]), 0), "", "it was named");
}

#[test]
fn a_decision_is_kept_outside_the_project_until_the_launch_changes() {
    let place = Place::with("mcp.json", fx("one").env("LEVEL", "1"));
    assert_eq!(place.said(&call(&["--trust"]), 0), "");
    assert_eq!(place.said(&CALL, 0), "");
    place.write("mcp.json", fx("one").env("LEVEL", "1").key("timeout", 9));
    assert_eq!(place.said(&CALL, 0), "", "how long a call may take is no part of it");
    place.write("mcp.json", fx("one").env("LEVEL", "2"));
    assert!(place.said(&CALL, 0).contains("nobody has decided"));
    let kept = std::fs::read_dir(place.state.path().join("innkeeper/trust")).unwrap();
    let pages: Vec<_> = kept.map(|page| page.unwrap().path()).collect();
    assert_eq!(pages.len(), 1);
    let page = std::fs::read_to_string(&pages[0]).unwrap();
    assert!(page.contains("mcp.json") && !page.contains("LEVEL"), "{page}");
}

#[cfg(unix)]
#[test]
fn a_link_to_a_decided_file_in_another_folder_needs_a_decision_of_its_own() {
    let decided = Place::with("mcp.json", fx("one"));
    assert_eq!(decided.said(&call(&["--trust"]), 0), "");
    let clone = Place { project: tempfile::tempdir().unwrap(), state: decided.state };
    std::os::unix::fs::symlink(decided.project.path().join("mcp.json"), clone.path("mcp.json"))
        .unwrap();
    assert!(clone.said(&CALL, 0).contains("nobody has decided"));
}

#[test]
fn files_of_other_programs_are_refused_without_a_terminal_until_somebody_decided() {
    for file in [".vscode/mcp.json", ".mcp.json"] {
        let place = Place::with(file, fx("one").env("TOKEN", "hunter2"));
        let said = place.said(&CALL, 2);
        let opening = format!("error: nobody has decided on the servers of `{file}`\n");
        assert!(said.starts_with(&opening), "{said}");
        assert!(said.contains("variables: ") && said.contains("`TOKEN`"), "{said}");
        assert!(said.contains(&format!("`--config {file}`")) && said.contains("`--trust`"));
        assert!(!said.contains("hunter2"), "{said}");
        assert_eq!(place.started(), 0);
        let told = place.run_with(&["tools", "--json"], &[], 2);
        let told: Value = serde_json::from_slice(&told.stdout).unwrap();
        assert_eq!(told["error"]["exitCode"], 2);
        for harmless in [&["check"][..], &["graph"], &["doctor"]] {
            place.said(harmless, 0);
        }
        assert_eq!(place.said(&call(&["--config", file]), 0), "");
        assert_eq!(place.said(&call(&["--trust"]), 0), "");
        assert_eq!(place.said(&CALL, 0), "");
        assert_eq!(place.started(), 3);
    }
}

#[test]
fn variables_that_load_code_are_refused_from_every_undecided_file() {
    let place = Place::with("mcp.json", fx("one").env("NODE_OPTIONS", "--require=./x.js"));
    let said = place.said(&CALL, 2);
    assert!(said.contains("`NODE_OPTIONS` (loads code)"), "{said}");
    assert_eq!(place.started(), 0);
    assert_eq!(place.said(&call(&["--config", "mcp.json"]), 0), "");
    place.said(&call(&["--trust"]), 0);
    assert_eq!(place.said(&CALL, 0), "");
}

#[test]
fn a_machine_can_be_told_to_start_nothing_undecided() {
    let place = Place::with("mcp.json", fx("one"));
    place.run_with(&CALL, &[("INNKEEPER_TRUST", "strict")], 2);
    assert_eq!(place.started(), 0);
    place.run_with(&CALL, &[("INNKEEPER_TRUST", "lax")], 2);
    place.run_with(&call(&["--trust"]), &[("INNKEEPER_TRUST", "strict")], 0);
    place.run_with(&CALL, &[("INNKEEPER_TRUST", "strict")], 0);
}

#[test]
fn check_warns_of_packages_without_a_version() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"{"servers": {
        "loose": {"command": "npx", "args": ["-y", "some-server"]},
        "exact": {"command": "npx", "args": ["-y", "some-server@1.2.3"]},
        "two": {"command": "npx", "args": ["-p", "exact@1.0.0", "-p", "loose", "bin"]},
        "shell": {"command": "npm", "args": ["exec", "-c", "some-server | tee log"]},
        "place": {"command": "npx", "args": ["git+https://x.example/y.git#1.2.3"]}
    }}"#;
    std::fs::write(folder.path().join("mcp.json"), text).unwrap();
    let checked = crate::program::run(&["check"], Path::new(folder.path()));
    assert_eq!(checked.status.code(), Some(0));
    insta::assert_snapshot!(words(&checked.stdout));
}
