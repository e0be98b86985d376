//! Tests of text output; most other tests use JSON output.

use std::path::Path;
use std::process::Stdio;

use innkeeper_testkit::{Fixture, fixture, mcp_json};

use crate::program::{innkeeper, run};

fn config_dir(servers: impl IntoIterator<Item = Fixture>) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("mcp.json"), mcp_json(servers).to_string()).unwrap();
    dir
}

/// Runs a command that must exit with this code; returns stdout and stderr.
fn run_text(args: &[&str], dir: &Path, code: i32) -> [String; 2] {
    let output = run(args, dir);
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(output.status.code(), Some(code), "{stdout}\n{stderr}");
    [stdout, stderr]
}

#[test]
fn tools_prints_every_kind_of_item_and_why_a_server_is_unavailable() {
    let missing = fixture("away").config_key("command", "/bin/false").config_key("required", false);
    let dir = config_dir([fixture("one"), missing]);
    let [stdout, _] = run_text(&["tools"], dir.path(), 0);
    let lines: Vec<&str> = stdout.lines().collect();
    assert!(lines.contains(&"one: ready, 2025-11-25"), "{stdout}");
    let row = |kind: &str, name: &str| {
        lines.iter().any(|line| line.split_whitespace().take(2).eq([kind, name]))
    };
    assert!(row("tool", "one.echo") && row("prompt", "one.greet"), "{stdout}");
    assert!(row("resource", "fx://one/static"), "{stdout}");
    assert!(lines.iter().any(|line| line.trim_start().starts_with("template ")), "{stdout}");
    let reason = lines.iter().find_map(|line| line.strip_prefix("away: failed: "));
    assert!(reason.is_some_and(|why| why.contains("exit")), "{stdout}");
}

#[test]
fn the_demo_shows_each_call_with_its_result_and_how_every_server_ended() {
    let dir = tempfile::tempdir().unwrap();
    let [stdout, stderr] = run_text(&["demo"], dir.path(), 0);
    assert!(
        stderr.contains("\nNo language model was used: every call above is scripted"),
        "{stderr}"
    );
    assert!(stderr.contains("\n  `ANTHROPIC_API_KEY=… innkeeper ask "), "{stderr}");
    assert!(stdout.contains("The tool calls below are scripted"), "{stdout}");
    let count = |prefix: &str| stdout.lines().filter(|line| line.starts_with(prefix)).count();
    let calls = count("     → ");
    // The killed server has two lines: of its call and of its restart.
    assert!(calls >= 5 && count("     ← ") == calls + 2, "{stdout}");
    let lost = "server `notes` is unavailable: process ended with signal 9 (SIGKILL); the server \
                may have run the request";
    assert!(stdout.contains(lost), "{stdout}");
    assert!(stdout.contains(" ms and still has 1 note\n"), "{stdout}");
    let stopped = stdout.lines().filter(|line| line.contains("on-eof") && line.contains("nothing"));
    assert_eq!(stopped.count(), 2, "{stdout}");
    let last = stdout.lines().last().unwrap_or_default();
    assert!(last.starts_with(&format!("{calls} calls; all servers stopped after ")), "{stdout}");
    assert!(last.ends_with("; no process is left."), "{stdout}");
}

#[test]
fn a_command_that_needs_servers_rejects_a_broken_configuration_with_every_diagnostic_and_hint() {
    let dir = tempfile::tempdir().unwrap();
    let text = r#"{"servers": {"db": {"comand": "x"}, "fs": {"command": "npx", "args": [7]}}}"#;
    std::fs::write(dir.path().join("mcp.json"), text).unwrap();
    let [stdout, stderr] = run_text(&["tools"], dir.path(), 2);
    assert_eq!(stdout, "");
    assert!(stderr.contains("2 problems in the configuration"), "{stderr}");
    for problem in ["servers.db: has neither", "servers.fs.args[0]: expected string"] {
        assert!(stderr.contains(problem), "{stderr}");
    }
    assert!(stderr.contains("hint: did you mean `command`?"), "{stderr}");
}

#[test]
fn an_unknown_server_is_reported_with_a_similar_name() {
    let dir = config_dir([fixture("files")]);
    for line in [&["read", "fx://files/static", "--server", "fils"][..], &["login", "fils"]] {
        let [_, stderr] = run_text(line, dir.path(), 2);
        assert!(stderr.contains("did you mean `files`?"), "{line:?}: {stderr}");
    }
}

#[test]
fn a_name_that_is_no_tool_is_reported_with_the_next_step() {
    let dir = config_dir([fixture("everything")]);
    let stderr_of = |args: &[&str]| {
        run_text(&[args, &["--config", "mcp.json"]].concat(), dir.path(), 2)[1].clone()
    };
    for (command, kind) in [("call", "tool"), ("why", "tool"), ("prompt", "prompt")] {
        let expected = format!(
            "error: `everything` is a server; name a {kind}: `everything.NAME`\n  hint: run \
             `innkeeper tools everything` to show the server\n"
        );
        assert_eq!(stderr_of(&[command, "everything"]), expected);
    }
    assert_eq!(
        stderr_of(&["call", "evrything.echo"]),
        "error: `evrything.echo` does not start with a server name\n  hint: did you mean \
         `everything.echo`?\n"
    );
    assert_eq!(
        stderr_of(&["call", "echo"]),
        "error: `echo` does not start with a server name\n  hint: did you mean \
         `everything.echo`?\n"
    );
    assert_eq!(
        stderr_of(&["call", "nope.echo"]),
        "error: `nope.echo` does not start with a server name\n  hint: use SERVER.NAME; the \
         servers are everything\n"
    );
    let no_tool = "error: server `everything` has no tool `nope`\n  hint: run `innkeeper tools` to \
                   list all tools, prompts and resources\n";
    assert_eq!(stderr_of(&["call", "everything.nope"]), no_tool);
}

#[test]
fn a_disabled_server_is_reported_with_its_position() {
    let dir = tempfile::tempdir().unwrap();
    let text = "{\n \"servers\": {\n  \"dis\": {\"command\": \"x\", \"disabled\": true}\n }\n}\n";
    std::fs::write(dir.path().join("mcp.json"), text).unwrap();
    for line in [
        &["call", "dis.echo"][..],
        &["why", "dis.echo"],
        &["prompt", "dis.greet"],
        &["read", "fx://dis", "--server", "dis"],
    ] {
        let [_, stderr] = run_text(line, dir.path(), 2);
        assert!(stderr.contains("server `dis` is disabled at mcp.json:3:"), "{line:?}: {stderr}");
    }
}

#[test]
fn a_file_that_is_not_there_has_no_line_and_no_key() {
    let dir = tempfile::tempdir().unwrap();
    let [stdout, _] = run_text(&["check", "--json", "--config", "none.json"], dir.path(), 2);
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let problem = json["problems"][0].as_object().unwrap();
    let keys: Vec<&str> = problem.keys().map(String::as_str).collect();
    assert_eq!(keys, ["severity", "source", "message"]);
}

/// Without a state directory, nothing is stored, least of all in the working directory.
#[test]
fn a_home_that_is_no_absolute_path_is_ignored() {
    for home in ["", "here"] {
        let dir = config_dir([fixture("one")]);
        let mut command = innkeeper(&["tools", "--trust"], dir.path());
        let output = command.env("HOME", home).stdin(Stdio::null()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{stderr}");
        assert!(
            stderr.contains("neither `XDG_STATE_HOME` nor `HOME` is set to an absolute"),
            "{stderr}"
        );
        let files = std::fs::read_dir(dir.path()).unwrap();
        let names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
        assert_eq!(names, ["mcp.json"], "{home:?}");
        let mut command = innkeeper(&["model", "list"], dir.path());
        let output = command.env("HOME", home).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{home:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains("`HOME` is set to an absolute path"), "{stderr}");
    }
}

#[test]
fn state_that_cannot_be_stored_is_reported_with_its_path() {
    let dir = config_dir([fixture("one")]);
    std::fs::write(dir.path().join("state"), "a file").unwrap();
    let state = dir.path().join("state");
    let mut command = innkeeper(&["tools", "--trust"], dir.path());
    let output = command.env("XDG_STATE_HOME", &state).stdin(Stdio::null()).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let state_path = |relative: &str| state.join("innkeeper").join(relative).display().to_string();
    let line = |message: &str, directory: &str| {
        stderr.lines().any(|line| line.contains(message) && line.contains(directory))
    };
    assert!(line("cannot read trust decisions", &state_path("trust")), "{stderr}");
    assert!(line("cannot open the ledger of running servers", &state_path("running")), "{stderr}");
}
