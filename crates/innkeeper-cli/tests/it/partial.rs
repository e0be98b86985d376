//! Tests of commands while some of the servers fail: each server's trouble is its own.

use std::process::Output;

use innkeeper_testkit::{Fixture, ProcessTag, fixture, mcp_json, wait_gone};
use serde_json::{Value, json};

use crate::program::run;

/// Creates a directory with an `mcp.json` that has one server per line.
fn config_dir(servers: impl IntoIterator<Item = Fixture>) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let file = mcp_json(servers);
    let entries = file["servers"].as_object().unwrap().iter();
    let lines: Vec<String> = entries.map(|(name, entry)| format!("\"{name}\": {entry}")).collect();
    let text = format!("{{\"servers\": {{\n{}\n}}}}\n", lines.join(",\n"));
    std::fs::write(dir.path().join("mcp.json"), text).unwrap();
    dir
}

/// A server with one tool and nothing else.
fn small(name: &str) -> Fixture {
    let tools = json!([{"name": "echo", "inputSchema": {"type": "object"}}]);
    let server = fixture(name).with("--tools", tools).switch("--no-prompts");
    server.switch("--no-resources")
}

fn missing_program(name: &str) -> Fixture {
    fixture(name).config_key("command", "no-such-program-here")
}

fn unset_variable(name: &str) -> Fixture {
    fixture(name).env("KEY", "${NOT_SET_ANYWHERE}")
}

fn run_line(line: &str, dir: &tempfile::TempDir) -> Output {
    let args: Vec<&str> = line.split(' ').chain(["--config", "mcp.json"]).collect();
    run(&args, dir.path())
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

/// Returns stderr without the log.
fn messages(output: &Output) -> String {
    let stderr = std::str::from_utf8(&output.stderr).unwrap();
    let is_log = |line: &str| line.starts_with("20") && line.contains("Z ");
    stderr.lines().filter(|line| !is_log(line)).map(|line| format!("{line}\n")).collect()
}

fn json_value(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn tools_lists_nine_good_servers_beside_servers_that_fail_and_names_each_reason() {
    let tag = ProcessTag::new();
    let good = (1..=9).map(|number| small(&format!("good{number}")).process_tag(&tag));
    let cwd = fixture("cwd").config_key("cwd", "missing");
    let after = fixture("after").config_key("dependencies", json!(["unset"]));
    let bad = [missing_program("command"), unset_variable("unset"), cwd, after];
    let dir = config_dir(bad.into_iter().chain(good));
    let output = run_line("tools", &dir);
    assert_eq!(output.status.code(), Some(1), "{}", messages(&output));
    for number in 1..=9 {
        assert!(stdout(&output).contains(&format!("good{number}.echo")), "{}", stdout(&output));
    }
    let failed: Vec<&str> =
        stdout(&output).lines().filter(|line| line.contains(": failed: ")).collect();
    for (line, (name, reason)) in failed.iter().zip([
        ("command", "command `no-such-program-here` was not found in the PATH of the server"),
        ("cwd", "the working directory of command `"),
        ("after", "dependency `unset` is unavailable"),
        ("unset", "servers.unset.env.KEY: variable `NOT_SET_ANYWHERE` is not set"),
    ]) {
        assert!(line.starts_with(&format!("{name}: failed: ")), "{failed:?}");
        assert!(line.contains(reason), "{failed:?}");
    }
    assert_eq!(failed.len(), 4);
    assert_eq!(messages(&output), "");

    let output = run_line("tools --json", &dir);
    assert_eq!(output.status.code(), Some(1));
    let servers = json_value(&output)["servers"].clone();
    assert_eq!(servers.as_object().unwrap().len(), 13);
    assert_eq!(servers["good9"]["tools"][0]["name"], "echo");
    for (name, transport) in [("command", "stdio"), ("unset", "stdio"), ("after", "stdio")] {
        let server = &servers[name];
        assert_eq!(
            (&server["state"], &server["transport"]),
            (&json!("unavailable"), &json!(transport))
        );
        assert_eq!((&server["tools"], &server["resourceTemplates"]), (&json!([]), &json!([])));
        assert!(server["reason"].is_string(), "{server}");
    }
    wait_gone(&tag, std::time::Duration::from_secs(1)).unwrap();
}

#[test]
fn with_strict_one_failed_server_is_the_failure_of_the_command() {
    let dir = config_dir([small("good"), fixture("bad").with("--init-error", -32000)]);
    let output = run_line("tools --strict", &dir);
    assert_eq!((output.status.code(), stdout(&output)), (Some(1), ""));
    assert!(messages(&output).contains("bad"), "{}", messages(&output));
    let dir = config_dir([small("good"), unset_variable("unset")]);
    for line in ["tools --strict --json", "read fx://good/static --strict --json"] {
        let output = run_line(line, &dir);
        assert_eq!(output.status.code(), Some(2));
        let error = &json_value(&output)["error"];
        assert!(error["details"].to_string().contains("NOT_SET_ANYWHERE"), "{error}");
    }
}

#[test]
fn a_failed_server_that_the_configuration_does_not_require_does_not_change_the_exit_code() {
    let optional = |server: Fixture| server.config_key("required", false);
    let bad = [missing_program("command"), unset_variable("unset")].map(optional);
    let dir = config_dir(bad.into_iter().chain([small("good")]));
    let output = run_line("tools", &dir);
    assert_eq!(output.status.code(), Some(0), "{}", messages(&output));
    assert_eq!(stdout(&output).matches(": failed: ").count(), 2, "{}", stdout(&output));
}

#[test]
fn a_command_for_one_server_does_not_mention_the_problems_of_others() {
    let warned = small("warned").config_key("comand", "x");
    let dir =
        config_dir([unset_variable("unset"), missing_program("command"), warned, fixture("good")]);
    for line in [
        "call good.echo message=hi",
        "prompt good.greet name=Ada",
        "read fx://good/static --server good",
        "why good.echo",
        "tools good",
        "tools good.echo",
    ] {
        let output = run_line(line, &dir);
        assert_eq!((output.status.code(), &*messages(&output)), (Some(0), ""), "{line}");
        assert!(output.stderr.is_empty(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let output = run_line("call warned.echo", &dir);
    assert!(messages(&output).contains("servers.warned.comand"), "{}", messages(&output));
}

#[test]
fn a_call_of_a_server_with_an_unset_variable_names_the_variable_and_its_place() {
    let after = fixture("after").config_key("dependencies", json!(["unset"]));
    let dir = config_dir([unset_variable("unset"), small("good"), unset_variable("other"), after]);
    let text = std::fs::read_to_string(dir.path().join("mcp.json")).unwrap();
    let column = text.lines().nth(1).unwrap().find("\"${NOT_SET").unwrap() + 1;
    for line in
        ["call unset.echo message=x", "why unset.echo", "tools unset", "call after.echo message=x"]
    {
        let output = run_line(line, &dir);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""), "{line}");
        let expected = format!(
            "error: 1 problem in the configuration\n  mcp.json:2:{column} servers.unset.env.KEY: \
             variable `NOT_SET_ANYWHERE` is not set\n      hint: set the variable, add it to \
             `.env` beside the file, or write `${{NOT_SET_ANYWHERE:-default}}`\n"
        );
        assert_eq!(messages(&output), expected, "{line}");
    }
    // If no server is usable, nothing can start.
    let dir = config_dir([unset_variable("unset")]);
    assert_eq!(run_line("tools", &dir).status.code(), Some(2));
}

#[test]
fn a_failed_start_of_one_server_has_no_hint_about_other_servers() {
    let disk = small("disk");
    let needs =
        fixture("bad").with("--init-error", -32000).config_key("dependencies", json!(["disk"]));
    let dir = config_dir([disk, needs, small("good")]);
    let output = run_line("call bad.echo message=x", &dir);
    assert_eq!(output.status.code(), Some(1));
    let text = messages(&output);
    assert!(text.contains("bad") && !text.contains("required"), "{text}");
    assert!(!text.contains("all servers"), "{text}");
}

#[test]
fn read_uses_the_servers_that_start_and_names_the_others_if_no_server_has_the_resource() {
    let dir = config_dir([unset_variable("unset"), missing_program("command"), fixture("good")]);
    let output = run_line("read fx://good/static", &dir);
    assert_eq!((output.status.code(), &*messages(&output)), (Some(0), ""));
    let output = run_line("read fx://elsewhere/static", &dir);
    assert_eq!(output.status.code(), Some(1));
    let text = messages(&output);
    assert!(text.contains("unset: failed: invalid configuration: mcp.json:2:"), "{text}");
    assert!(text.contains("command: failed: ") && text.contains("was not found"), "{text}");
    let dir = config_dir([fixture("good")]);
    assert_eq!(run_line("read fx://elsewhere/static", &dir).status.code(), Some(2));
}

#[test]
fn ask_answers_with_the_servers_that_start_and_names_the_others() {
    let dir = config_dir([missing_program("command"), unset_variable("unset"), fixture("good")]);
    let call = json!({"name": "good.echo", "arguments": {"message": "hi"}});
    let script = json!([{"text": "", "calls": [call]}, {"text": "The answer."}]);
    std::fs::write(dir.path().join("script"), script.to_string()).unwrap();
    let output = run_line("ask question --provider scripted --script script", &dir);
    assert_eq!((output.status.code(), stdout(&output)), (Some(1), "The answer.\n"));
    let text = messages(&output);
    assert!(text.contains("command: failed: "), "{text}");
    assert!(text.contains("command `no-such-program-here` was not found"), "{text}");
    assert!(text.contains("unset: failed: invalid configuration: mcp.json:3:"), "{text}");
    let output = run_line("ask question --provider scripted --script script --json", &dir);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(json_value(&output)["final_result"], "The answer.");
    let output = run_line("ask question --provider scripted --script script --strict", &dir);
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""));
}

#[test]
fn lock_pins_all_servers_or_none_and_its_check_compares_the_servers_that_start() {
    let state = tempfile::tempdir().unwrap();
    let fails = state.path().join("fails");
    let flaky = small("flaky").with("--list-error", -32603);
    let flaky = flaky.with("--list-faults-while", fails.display());
    let dir = config_dir([small("good"), flaky]);
    assert_eq!(run_line("lock", &dir).status.code(), Some(0));
    let lock = dir.path().join("mcp.lock");
    let pins = std::fs::read_to_string(&lock).unwrap();

    std::fs::write(&fails, "").unwrap();
    let output = run_line("lock", &dir);
    assert_eq!((output.status.code(), stdout(&output)), (Some(1), ""));
    assert_eq!(std::fs::read_to_string(&lock).unwrap(), pins);
    let output = run_line("lock --check --json", &dir);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(json_value(&output), json!({"changes": [], "unavailable": ["flaky"]}));
    assert!(messages(&output).contains("flaky: failed: "), "{}", messages(&output));
    assert_eq!(run_line("lock --check --strict --json", &dir).status.code(), Some(1));

    let dir = config_dir([small("good"), unset_variable("flaky")]);
    std::fs::write(dir.path().join("mcp.lock"), &pins).unwrap();
    let output = run_line("lock", &dir);
    assert_eq!(output.status.code(), Some(2));
    let output = run_line("lock --check --json", &dir);
    assert_eq!(output.status.code(), Some(1), "{}", messages(&output));
    assert_eq!(json_value(&output)["unavailable"], json!(["flaky"]));
}

#[test]
fn a_server_with_a_failed_list_is_shown_with_its_tools_and_with_what_is_missing() {
    let tools = json!([{"name": "query", "inputSchema": {"type": "object"}}]);
    let server = fixture("one").with("--tools", tools).with("--list-error", -32603);
    let server =
        server.with("--faulty-lists", "prompts/list,resources/list").with("--templates", "[]");
    let dir = config_dir([server]);
    let output = run_line("tools", &dir);
    assert_eq!(output.status.code(), Some(0));
    insta::assert_snapshot!(stdout(&output), @r"
    one: ready, 2025-11-25
      warning: could not list its prompts: listing failed as asked (code -32603)
      warning: could not list its resources: listing failed as asked (code -32603)
      tool  one.query
    ");
    let reason = "listing failed as asked (code -32603)";
    let missing = json!([
        {"list": "prompts/list", "reason": reason}, {"list": "resources/list", "reason": reason}
    ]);
    assert_eq!(json_value(&run_line("tools --json", &dir))["servers"]["one"]["missing"], missing);
    assert_eq!(json_value(&run_line("why one.query --json", &dir))["missing"], missing);
    let output = run_line("why one.query", &dir);
    assert!(
        stdout(&output).contains("resources/list: listing failed as asked"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn a_failed_server_has_the_hint_that_its_failure_shows() {
    let words = "Error: API_KEY environment variable is required";
    let server = fixture("key").with("--stderr", words).with("--fail-starts", 9);
    let state = tempfile::tempdir().unwrap();
    let server = server.with("--state", state.path().join("starts").display());
    let dir = config_dir([server, small("good")]);
    let output = run_line("tools", &dir);
    assert_eq!(output.status.code(), Some(1));
    let lines: Vec<&str> = stdout(&output).lines().collect();
    let failed = lines.iter().position(|line| line.starts_with("key: failed: ")).unwrap();
    assert!(lines[failed].contains("API_KEY environment variable is required"), "{lines:?}");
    let hint = lines[failed + 1];
    assert!(hint.starts_with("  hint: ") && hint.contains("`API_KEY`"), "{lines:?}");
}

#[test]
fn doctor_reports_the_problems_of_all_servers_in_one_run() {
    let dir = config_dir([unset_variable("unset"), missing_program("command"), small("good")]);
    let output = run_line("doctor --json", &dir);
    assert_eq!(output.status.code(), Some(2));
    let report = json_value(&output);
    let problems = report["problems"].as_array().unwrap();
    let keys: Vec<_> = problems.iter().map(|problem| problem["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["servers.unset.env.KEY", "servers.command.command"]);
}
