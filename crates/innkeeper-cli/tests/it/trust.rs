//! Tests of launch approval for a discovered configuration.

use std::path::Path;
use std::process::{Output, Stdio};

use innkeeper_testkit::{Fixture, Journal, fixture, mcp_json};
use serde_json::Value;
use tempfile::TempDir;

use crate::program::innkeeper;

/// A project directory with the state directory of its user.
struct TestProject {
    project: TempDir,
    state: TempDir,
}

impl TestProject {
    /// Creates a project with this configuration file.
    fn with_config(file: &str, server: Fixture) -> Self {
        let test_project =
            Self { project: tempfile::tempdir().unwrap(), state: tempfile::tempdir().unwrap() };
        std::fs::create_dir(test_project.path(".vscode")).unwrap();
        test_project.write(file, server);
        test_project
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
        command.env_remove("INNKEEPER_TRUST").env("XDG_STATE_HOME", self.state.path());
        command.envs(variables.iter().copied());
        let output = command.stdin(Stdio::null()).output().unwrap();
        let stderr = utf8(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
        output
    }

    /// Runs a command and returns its stderr.
    fn stderr_text(&self, args: &[&str], code: i32) -> String {
        utf8(&self.run_with(args, &[], code).stderr).to_owned()
    }

    fn launch_count(&self) -> usize {
        Journal::read(&self.path("journal")).pids().len()
    }
}

fn utf8(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

const FOUND: (&str, &str) = ("INNKEEPER_TRUST", "found");

const CALL_ARGS: [&str; 3] = ["call", "one.echo", "message=hi"];

fn call_args(option: &[&'static str]) -> Vec<&'static str> {
    [&CALL_ARGS, option].concat()
}

#[test]
fn servers_of_mcp_json_start_with_a_warning_if_the_user_accepts_any_found_file() {
    let project = TestProject::with_config("mcp.json", fixture("one"));
    let accepted = |args: &[&str]| utf8(&project.run_with(args, &[FOUND], 0).stderr).to_owned();
    for _ in 0..2 {
        let stderr = accepted(&CALL_ARGS);
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(
            stderr.contains("without a trust decision") && stderr.contains("security=true"),
            "{stderr}"
        );
        assert!(stderr.contains("servers=one"), "{stderr}");
    }
    let logged = accepted(&call_args(&["--log-format", "json"]));
    let line: Value = serde_json::from_str(&logged).unwrap();
    assert_eq!((&line["severity"], &line["servers"]), (&"warning".into(), &"one".into()));
    assert_eq!(accepted(&call_args(&["--config", "mcp.json"])), "", "it was named");
}

/// Attack: files | a file changes a variable of a server after the approval | the approval is not
/// valid for the new launch | Approval first
#[test]
fn a_decision_is_stored_outside_the_project_until_the_launch_changes() {
    let project = TestProject::with_config("mcp.json", fixture("one").env("LEVEL", "1"));
    assert_eq!(project.stderr_text(&call_args(&["--trust"]), 0), "");
    assert_eq!(project.stderr_text(&CALL_ARGS, 0), "");
    project.write("mcp.json", fixture("one").env("LEVEL", "1").config_key("timeout", 9));
    assert_eq!(project.stderr_text(&CALL_ARGS, 0), "", "how long a call may take is no part of it");
    project.write("mcp.json", fixture("one").env("LEVEL", "2"));
    assert!(project.stderr_text(&CALL_ARGS, 2).contains("are not trusted"));
    let stored_files = std::fs::read_dir(project.state.path().join("innkeeper/trust")).unwrap();
    let pages: Vec<_> = stored_files.map(|page| page.unwrap().path()).collect();
    assert_eq!(pages.len(), 1);
    let page = std::fs::read_to_string(&pages[0]).unwrap();
    assert!(page.contains("mcp.json") && !page.contains("LEVEL"), "{page}");
}

/// Attack: files | a clone links to an approved file | the link is not approved | Approval first
#[cfg(unix)]
#[test]
fn a_link_to_a_decided_file_in_another_folder_needs_a_decision_of_its_own() {
    let decided = TestProject::with_config("mcp.json", fixture("one"));
    assert_eq!(decided.stderr_text(&call_args(&["--trust"]), 0), "");
    let clone = TestProject { project: tempfile::tempdir().unwrap(), state: decided.state };
    std::os::unix::fs::symlink(decided.project.path().join("mcp.json"), clone.path("mcp.json"))
        .unwrap();
    assert!(clone.stderr_text(&CALL_ARGS, 2).contains("are not trusted"));
}

/// Attack: files | a cloned repository contains `mcp.json`, `.vscode/mcp.json` or `.mcp.json` | no
/// server starts before the approval, and no secret is shown | Approval first
#[test]
fn found_files_are_denied_without_a_terminal_until_approved() {
    for file in ["mcp.json", ".vscode/mcp.json", ".mcp.json"] {
        let project = TestProject::with_config(file, fixture("one").env("TOKEN", "hunter2"));
        let stderr = project.stderr_text(&CALL_ARGS, 2);
        let opening = format!("error: the servers of `{file}` are not trusted\n");
        assert!(stderr.starts_with(&opening), "{stderr}");
        assert!(stderr.contains("variables: ") && stderr.contains("`TOKEN`"), "{stderr}");
        assert!(stderr.contains(&format!("`--config {file}`")), "{stderr}");
        assert!(stderr.contains("`innkeeper tools --trust`"), "{stderr}");
        assert_eq!(stderr.contains("`INNKEEPER_TRUST=found`"), file == "mcp.json", "{stderr}");
        assert!(!stderr.contains("hunter2"), "{stderr}");
        assert_eq!(project.launch_count(), 0);
        let output = project.run_with(&["tools", "--json"], &[], 2);
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(result["error"]["exitCode"], 2);
        for args in [&["check"][..], &["graph"], &["doctor"]] {
            project.stderr_text(args, 0);
        }
        assert_eq!(project.stderr_text(&call_args(&["--config", file]), 0), "");
        assert_eq!(project.stderr_text(&call_args(&["--trust"]), 0), "");
        assert_eq!(project.stderr_text(&CALL_ARGS, 0), "");
        assert_eq!(project.launch_count(), 3);
    }
}

/// Attack: files | an unapproved `mcp.json` sets `NODE_OPTIONS` | no server starts | Approval first
#[test]
fn variables_that_load_code_are_denied_from_every_undecided_file() {
    let project = TestProject::with_config(
        "mcp.json",
        fixture("one").env("NODE_OPTIONS", "--require=./x.js"),
    );
    for variables in [&[][..], &[FOUND]] {
        let output = project.run_with(&CALL_ARGS, variables, 2);
        let stderr = utf8(&output.stderr);
        assert!(stderr.contains("`NODE_OPTIONS` (loads code)"), "{stderr}");
    }
    assert_eq!(project.launch_count(), 0);
    assert_eq!(project.stderr_text(&call_args(&["--config", "mcp.json"]), 0), "");
    project.stderr_text(&call_args(&["--trust"]), 0);
    assert_eq!(project.stderr_text(&CALL_ARGS, 0), "");
}

#[test]
fn strict_is_the_default_and_another_policy_needs_its_exact_name() {
    let project = TestProject::with_config("mcp.json", fixture("one"));
    let strict = [("INNKEEPER_TRUST", "strict")];
    project.run_with(&CALL_ARGS, &strict, 2);
    project.run_with(&CALL_ARGS, &[("INNKEEPER_TRUST", "lax")], 2);
    assert_eq!(project.launch_count(), 0);
    project.run_with(&call_args(&["--trust"]), &strict, 0);
    project.run_with(&CALL_ARGS, &strict, 0);
}

/// Attack: files | others can write the file in the current directory, or its directory | the file
/// is not used, also with `--trust`, unless it is named | Approval first
#[cfg(unix)]
#[test]
fn a_file_here_that_others_can_change_is_ignored() {
    use std::os::unix::fs::PermissionsExt as _;
    for (place, mode) in [("mcp.json", 0o666), ("", 0o777), ("", 0o1777)] {
        let project = TestProject::with_config("mcp.json", fixture("one"));
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(project.path(place), mode).unwrap();
        let stderr = project.stderr_text(&call_args(&["--trust"]), 2);
        assert!(stderr.contains("other users can change the file"), "{stderr}");
        assert_eq!(project.launch_count(), 0);
        project.stderr_text(&call_args(&["--config", "mcp.json"]), 0);
    }
}

#[test]
fn check_warns_of_packages_without_a_version() {
    let dir = tempfile::tempdir().unwrap();
    let text = r#"{"servers": {
        "loose": {"command": "npx", "args": ["-y", "some-server"]},
        "exact": {"command": "npx", "args": ["-y", "some-server@1.2.3"]},
        "two": {"command": "npx", "args": ["-p", "exact@1.0.0", "-p", "loose", "bin"]},
        "shell": {"command": "npm", "args": ["exec", "-c", "some-server | tee log"]},
        "place": {"command": "npx", "args": ["git+https://x.example/y.git#1.2.3"]}
    }}"#;
    std::fs::write(dir.path().join("mcp.json"), text).unwrap();
    let checked = crate::program::run(&["check"], Path::new(dir.path()));
    assert_eq!(checked.status.code(), Some(0));
    insta::assert_snapshot!(utf8(&checked.stdout));
}
