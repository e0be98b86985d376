//! Tests of `add`, `remove`, `enable` and `disable`.

use std::path::Path;
use std::process::{Output, Stdio};

use innkeeper_testkit::fixture_program;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::innkeeper;

/// A directory with the state directory of its user.
struct Project {
    directory: TempDir,
    state: TempDir,
}

impl Project {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), state: tempfile::tempdir().unwrap() }
    }

    fn with_config(text: &str) -> Self {
        let project = Self::new();
        std::fs::write(project.directory.path().join("mcp.json"), text).unwrap();
        project
    }

    fn config(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("mcp.json")).unwrap()
    }

    fn run(&self, args: &[&str], code: i32) -> Output {
        let output = innkeeper(args, self.directory.path())
            .env("XDG_STATE_HOME", self.state.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
        output
    }

    fn stderr(&self, args: &[&str], code: i32) -> String {
        String::from_utf8(self.run(args, code).stderr).unwrap()
    }
}

const COMMENTED: &str = r#"{
  // The servers of the team.
  "mcpServers": {
    "files": { "command": "files-server" }, // reads files
    "notes": { "command": "notes-server" }
  }
}
"#;

#[test]
fn an_added_server_is_approved_and_can_be_called() {
    let project = Project::new();
    let program = fixture_program();
    let program = program.to_str().unwrap();
    let added = project.stderr(&["add", "one", "--env", "LEVEL=1", "--", program], 0);
    assert_eq!(added, "`mcp.json`: server `one` added\n");
    let config: Value = serde_json::from_str(&project.config()).unwrap();
    assert_eq!(config["servers"]["one"], json!({"command": program, "env": {"LEVEL": "1"}}));
    assert_eq!(project.stderr(&["call", "one.echo", "message=hi"], 0), "");
}

/// Attack: files | the file or `.env` adds variables to a server that the user adds | the server is
/// not approved | Approval first
#[test]
fn an_added_server_whose_launch_the_file_or_a_dotenv_file_changes_is_not_approved() {
    let program = fixture_program();
    let program = program.to_str().unwrap();
    let approvals = |project: &Project| {
        std::fs::read_dir(project.state.path().join("innkeeper/trust")).map_or(0, Iterator::count)
    };
    let inherits = r#"{"host": {"inheritEnv": true}, "servers": {}}"#;
    let with_limits = r#"{"host": {"limits": {"openFiles": 64}}, "servers": {}}"#;
    for (text, dotenv, env) in [
        (inherits, "", "A=1"),
        (with_limits, "", "A=1"),
        ("{\"servers\": {}}", "EVIL=x\n", "NODE_OPTIONS=${EVIL}"),
        ("{\"servers\": {}}", "EVIL=x\n", "NODE_OPTIONS=${EVIL:-none}"),
    ] {
        let project = Project::with_config(text);
        std::fs::write(project.directory.path().join(".env"), dotenv).unwrap();
        let added = project.stderr(&["add", "one", "--env", env, "--", program], 0);
        assert!(added.contains("server `one` is not approved"), "{text}: {added}");
        assert!(added.contains("the next command that starts the server asks"), "{added}");
        assert_eq!(approvals(&project), 0, "{text}");
    }
    let timeout = Project::with_config(r#"{"host": {"timeout": 5}, "servers": {}}"#);
    let added = timeout.stderr(&["add", "one", "--", program], 0);
    assert_eq!(added, "`mcp.json`: server `one` added\n");
    assert_eq!(approvals(&timeout), 1);
}

#[test]
fn the_other_lines_of_a_file_stay() {
    let project = Project::with_config(COMMENTED);
    let header = "Authorization: Bearer ${TOKEN:-none}";
    project.run(&["add", "web", "https://a.example/mcp", "--header", header], 0);
    project.run(&["disable", "files"], 0);
    project.run(&["remove", "notes"], 0);
    insta::assert_snapshot!(project.config());
    project.run(&["enable", "files"], 0);
    let unchanged = project.config();
    assert_eq!(
        project.stderr(&["enable", "files"], 0),
        "`mcp.json`: server `files` already enabled\n"
    );
    assert_eq!(project.config(), unchanged);
}

#[test]
fn a_taken_name_is_refused_unless_the_replacement_is_forced() {
    let project = Project::with_config(COMMENTED);
    let stderr = project.stderr(&["add", "files", "--", "other"], 2);
    insta::assert_snapshot!(stderr, @r"
    error: `mcp.json` has a server `files`
      hint: use `--force` to replace the server, or choose another name
    ");
    assert_eq!(project.config(), COMMENTED);
    let output = project.run(&["add", "files", "--force", "--json", "--", "other"], 0);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report, json!({"file": "mcp.json", "server": "files", "change": "replaced"}));
    assert_eq!(
        project.config(),
        COMMENTED.replace("{ \"command\": \"files-server\" }", "{ \"command\": \"other\" }",)
    );
}

#[test]
fn a_change_that_makes_the_file_invalid_is_refused_and_the_file_stays() {
    let text = r#"{"servers": {
        "a": {"command": "x"}, "b": {"command": "y", "dependencies": ["a"]}
    }}"#;
    let project = Project::with_config(text);
    for (args, part) in [
        (&["add", "A", "--", "x"][..], "only in case"),
        (&["add", "c\nd", "--", "x"], "control characters"),
        (&["add", "c", "--env", "K=${UNSET_VARIABLE}", "--", "x"], "`UNSET_VARIABLE` is not set"),
        (&["remove", "a"], "no server `a`"),
        (&["disable", "a"], "`a` is disabled"),
    ] {
        let stderr = project.stderr(args, 2);
        assert!(stderr.contains("nothing was written") && stderr.contains(part), "{stderr}");
        assert!(stderr.lines().all(|line| !line.trim().is_empty()), "{stderr}");
        assert_eq!(project.config(), text);
    }
}

#[test]
fn a_file_with_an_older_problem_can_be_changed_but_not_a_file_that_is_no_json() {
    let text = r#"{"servers": {"a": {"command": "x", "timeout": -1}}}"#;
    let project = Project::with_config(text);
    project.run(&["add", "b", "--", "y"], 0);
    project.run(&["remove", "a"], 0);
    project.run(&["check"], 0);
    let broken = Project::with_config("{\"servers\": {");
    let stderr = broken.stderr(&["add", "b", "--", "y"], 2);
    assert!(stderr.starts_with("error: cannot change `mcp.json`: "), "{stderr}");
    assert_eq!(broken.config(), "{\"servers\": {");
}

#[test]
fn wrong_command_lines_say_what_to_write() {
    let project = Project::with_config(COMMENTED);
    for (args, part) in [
        (&["add", "x", "npx"][..], "add x -- COMMAND"),
        (&["add", "x", "https://a", "--env", "A=1"], "a remote server has no `--env`"),
        (&["add", "x", "--header", "A: b", "--", "y"], "a local server has no `--header`"),
        (&["add", "x", "https://a", "--header", "nocolon"], "--header 'Name: value'"),
        (&["add", "x"], "run `innkeeper add x -- COMMAND`"),
        (&["add", "x", "https://a", "--", "y"], "cannot be used with"),
        (&["add", "x", "--stdio", "a", "--", "y"], "innkeeper add NAME -- COMMAND"),
        (&["remove", "none"], "`mcp.json` has no server `none`"),
        (&["enable", "files", "--config", "a", "--config", "b"], "more than one configuration"),
        (&["disable", "files", "--config", "none.json"], "cannot read `none.json`"),
    ] {
        let stderr = project.stderr(args, 2);
        assert!(stderr.contains(part), "{args:?}: {stderr}");
    }
    assert_eq!(project.config(), COMMENTED);
}

#[test]
fn a_file_that_is_a_map_of_servers_keeps_its_servers() {
    let project = Project::with_config(r#"{"files": {"command": "true"}}"#);
    project.run(&["add", "notes", "--", "true"], 0);
    let graph = project.run(&["graph"], 0);
    assert_eq!(graph.stdout, b"wave 1: files, notes\n");
    let config = project.config();
    let stderr = project.stderr(&["add", "servers", "--", "true"], 2);
    assert!(stderr.contains("without the server `files`; nothing was written"), "{stderr}");
    assert_eq!(project.config(), config);
    project.run(&["disable", "notes"], 0);
    project.run(&["remove", "files"], 0);
    project.run(&["remove", "notes"], 0);
    assert_eq!(project.config(), "{\n  \"servers\": {}\n}");
}

/// Attack: files | `mcp.json` is a link to a missing file elsewhere | no file is created there |
/// Foreign text stays text
#[cfg(unix)]
#[test]
fn a_link_to_a_missing_file_is_refused_and_stays() {
    let project = Project::new();
    let target = project.state.path().join("missing.json");
    let link = project.directory.path().join("mcp.json");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let stderr = project.stderr(&["add", "one", "--", "true"], 2);
    assert!(stderr.contains("`mcp.json` is a link to a file that does not exist"), "{stderr}");
    assert!(link.is_symlink() && !target.exists());
}

#[test]
fn enable_mends_a_server_with_both_keys() {
    let text = r#"{"servers": {"a": {"command": "x", "disabled": true, "enabled": true}}}"#;
    let project = Project::with_config(text);
    project.run(&["enable", "a"], 0);
    project.run(&["check"], 0);
    assert_eq!(project.run(&["graph"], 0).stdout, b"wave 1: a\n");
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link_and_a_pipe_is_refused() {
    let project = Project::new();
    let target = project.state.path().join("dotfiles.json");
    std::fs::write(&target, COMMENTED).unwrap();
    let link = project.directory.path().join("mcp.json");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    project.run(&["remove", "notes"], 0);
    assert!(link.is_symlink());
    assert!(!std::fs::read_to_string(&target).unwrap().contains("notes"));
    let pipe = project.directory.path().join("pipe.json");
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
    let stderr = project.stderr(&["remove", "notes", "--config", "pipe.json"], 2);
    assert!(stderr.contains("not a regular file"), "{stderr}");
}

#[test]
fn a_named_file_is_created_where_it_is_named() {
    let project = Project::new();
    let args = ["add", "a", "--config", "team.json", "https://a.example/mcp"];
    assert_eq!(project.stderr(&args, 0), "`team.json`: server `a` added\n");
    assert!(Path::new(&project.directory.path().join("team.json")).is_file());
    assert!(!project.directory.path().join("mcp.json").exists());
}

#[test]
fn the_last_server_of_a_file_is_removed() {
    for text in ["{\"a\": {\"command\": \"x\"}}", "{\"servers\": {\"a\": {\"command\": \"x\"}}}"] {
        let project = Project::with_config(text);
        project.run(&["remove", "a"], 0);
        let file: Value = serde_json::from_str(&project.config()).unwrap();
        assert_eq!(file, json!({"servers": {}}), "{text}");
        assert_eq!(project.stderr(&["check"], 0), "`mcp.json`: 0 servers, no errors\n");
    }
}
