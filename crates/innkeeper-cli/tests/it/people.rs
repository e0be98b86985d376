//! What verbs print for people; most other tests look at what they print for programs.

use std::path::Path;
use std::process::Stdio;

use innkeeper_testkit::{Fixture, fx, mcp_json};

use crate::program::{innkeeper, run};

fn folder(servers: impl IntoIterator<Item = Fixture>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mcp.json"), mcp_json(servers).to_string()).unwrap();
    folder
}

/// What a line prints on stdout and stderr, after it ended with this code.
fn printed(args: &[&str], folder: &Path, code: i32) -> [String; 2] {
    let output = run(args, folder);
    let [told, said] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(output.status.code(), Some(code), "{told}\n{said}");
    [told, said]
}

#[test]
fn tools_prints_every_kind_of_thing_and_why_a_server_is_away() {
    let away = fx("away").key("command", "/bin/false").key("required", false);
    let folder = folder([fx("one"), away]);
    let [told, _] = printed(&["tools"], folder.path(), 0);
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines.contains(&"one: ready, 2025-11-25"), "{told}");
    let row = |kind: &str, name: &str| {
        lines.iter().any(|line| line.split_whitespace().take(2).eq([kind, name]))
    };
    assert!(row("tool", "one.echo") && row("prompt", "one.greet"), "{told}");
    assert!(row("resource", "fx://one/static"), "{told}");
    assert!(lines.iter().any(|line| line.trim_start().starts_with("template ")), "{told}");
    let why = lines.iter().find_map(|line| line.strip_prefix("away: unavailable: "));
    assert!(why.is_some_and(|why| why.contains("exit")), "{told}");
}

#[test]
fn the_demo_shows_each_call_with_its_answer_and_how_every_server_ended() {
    let folder = tempfile::tempdir().unwrap();
    let [told, said] = printed(&["demo"], folder.path(), 0);
    assert!(said.starts_with("No language model took part: every call above stood in a"), "{said}");
    assert!(said.contains("\n  `ANTHROPIC_API_KEY=… innkeeper ask "), "{said}");
    assert!(told.contains("The chain of calls below is scripted"), "{told}");
    let count = |mark: &str| told.lines().filter(|line| line.starts_with(mark)).count();
    let calls = count("     → ");
    assert!(calls >= 5 && count("     ← ") == calls, "{told}");
    let stopped = told.lines().filter(|line| line.contains("on-eof") && line.contains("nothing"));
    assert_eq!(stopped.count(), 2, "{told}");
    let last = told.lines().last().unwrap_or_default();
    assert!(last.starts_with(&format!("{calls} calls, all servers gone after ")), "{told}");
}

#[test]
fn a_verb_that_needs_servers_refuses_a_broken_configuration_with_every_problem_and_hint() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"{"servers": {"db": {"comand": "x"}, "fs": {"command": "npx", "args": [7]}}}"#;
    std::fs::write(folder.path().join("mcp.json"), text).unwrap();
    let [told, said] = printed(&["tools"], folder.path(), 2);
    assert_eq!(told, "");
    assert!(said.contains("2 problems in the configuration"), "{said}");
    for problem in ["servers.db: has neither", "servers.fs.args[0]: expected string"] {
        assert!(said.contains(problem), "{said}");
    }
    assert!(said.contains("hint: did you mean `command`?"), "{said}");
}

#[test]
fn a_server_that_is_not_configured_is_answered_with_the_one_that_was_meant() {
    let folder = folder([fx("files")]);
    for line in [&["read", "fx://files/static", "--server", "fils"][..], &["login", "fils"]] {
        let [_, said] = printed(line, folder.path(), 2);
        assert!(said.contains("did you mean `files`?"), "{line:?}: {said}");
    }
}

#[test]
fn a_server_that_is_switched_off_is_said_to_be_so_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let text = "{\n \"servers\": {\n  \"dis\": {\"command\": \"x\", \"disabled\": true}\n }\n}\n";
    std::fs::write(folder.path().join("mcp.json"), text).unwrap();
    for line in [
        &["call", "dis.echo"][..],
        &["why", "dis.echo"],
        &["prompt", "dis.greet"],
        &["read", "fx://dis", "--server", "dis"],
    ] {
        let [_, said] = printed(line, folder.path(), 2);
        assert!(said.contains("server `dis` is disabled at mcp.json:3:"), "{line:?}: {said}");
    }
}

#[test]
fn a_file_that_is_not_there_has_no_line_and_no_key() {
    let folder = tempfile::tempdir().unwrap();
    let [told, _] = printed(&["check", "--json", "--config", "none.json"], folder.path(), 2);
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let problem = told["problems"][0].as_object().unwrap();
    let keys: Vec<&str> = problem.keys().map(String::as_str).collect();
    assert_eq!(keys, ["severity", "source", "message"]);
}

/// Without a place of one's own nothing is kept, least of all in the folder at hand.
#[test]
fn a_home_that_is_no_absolute_path_is_none() {
    for home in ["", "here"] {
        let folder = folder([fx("one")]);
        let mut command = innkeeper(&["tools", "--trust"], folder.path());
        let output = command.env("HOME", home).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(
            said.contains("neither `XDG_STATE_HOME` nor `HOME` is set to an absolute"),
            "{said}"
        );
        let files = std::fs::read_dir(folder.path()).unwrap();
        let names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
        assert_eq!(names, ["mcp.json"], "{home:?}");
        let mut command = innkeeper(&["model", "list"], folder.path());
        let output = command.env("HOME", home).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{home:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("`HOME` is set to an absolute path"), "{said}");
    }
}

#[test]
fn what_cannot_be_kept_is_said_with_its_place() {
    let folder = folder([fx("one")]);
    std::fs::write(folder.path().join("state"), "a file").unwrap();
    let state = folder.path().join("state");
    let mut command = innkeeper(&["tools", "--trust"], folder.path());
    let output = command.env("XDG_STATE_HOME", &state).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let place = |end: &str| state.join("innkeeper").join(end).display().to_string();
    let line = |words: &str, place: &str| {
        said.lines().any(|line| line.contains(words) && line.contains(place))
    };
    assert!(line("decided", &place("trust")), "{said}");
    assert!(line("no ledger of running servers is kept", &place("running")), "{said}");
}
