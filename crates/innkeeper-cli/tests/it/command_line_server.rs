//! Tests of `--stdio` and `--url`: one server in place of a configuration.

use std::path::Path;
use std::process::{Output, Stdio};

use innkeeper_testkit::{RemoteServer, fixture, fixture_program};
use serde_json::{Value, json};

use crate::program::{innkeeper, run};

fn json_value(output: &Output) -> Value {
    let stderr = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"))
}

fn stderr_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The command line of the fixture server.
fn fixture_command() -> String {
    shlex::try_quote(fixture_program().to_str().unwrap()).unwrap().into_owned()
}

#[test]
fn each_command_takes_a_server_in_place_of_a_configuration() {
    let dir = tempfile::tempdir().unwrap();
    let command = fixture_command();
    let server = "innkeeper-fixture";
    let listing = run(&["tools", "--json", "--stdio", &command], dir.path());
    assert_eq!(listing.status.code(), Some(0), "{}", stderr_text(&listing));
    assert_eq!(json_value(&listing)["servers"][server]["state"], "ready");
    let full_name = format!("{server}.echo");
    for target in ["echo", &full_name] {
        let called = run(&["call", "--stdio", &command, target, "message=hi"], dir.path());
        assert_eq!(json_value(&called)["content"][0]["text"], "hi", "{target}");
        assert_eq!(stderr_text(&called), "", "{target}");
    }
    let before = run(&["--stdio", &command, "call", "echo", "message=hi"], dir.path());
    assert_eq!(json_value(&before)["content"][0]["text"], "hi");
    let why = json_value(&run(&["why", "echo", "--json", "--stdio", &command], dir.path()));
    assert_eq!((&why["verdict"], &why["server"]), (&json!("callable"), &json!(server)));
    let graph = run(&["graph", "--stdio", &command], dir.path());
    assert_eq!(graph.stdout, format!("wave 1: {server}\n").as_bytes());
    for command_name in ["check", "doctor"] {
        let output = run(&[command_name, "--stdio", &command], dir.path());
        assert_eq!(output.status.code(), Some(0), "{}", stderr_text(&output));
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "a file was written");
}

#[test]
fn a_prompt_of_the_only_server_needs_no_server_name() {
    let dir = tempfile::tempdir().unwrap();
    let command = fixture_command();
    let shown = run(&["prompt", "--json", "--stdio", &command, "plain"], dir.path());
    assert_eq!(shown.status.code(), Some(0), "{}", stderr_text(&shown));
    let full_name = "innkeeper-fixture.plain";
    let same = run(&["prompt", "--json", "--stdio", &command, full_name], dir.path());
    assert_eq!(shown.stdout, same.stdout, "{}", stderr_text(&same));
}

#[test]
fn variables_reach_the_server_and_a_configuration_beside_the_command_is_ignored() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("mcp.json"), "{").unwrap();
    std::fs::write(dir.path().join("mcp.lock"), "{").unwrap();
    let script = "env > env.txt; exec \"$0\"";
    let command = format!("sh -c {} {}", shlex::try_quote(script).unwrap(), fixture_command());
    let args =
        ["call", "echo", "message=hi", "--stdio", &command, "--env", "A=b c", "--env", "KEY"];
    let output = innkeeper(&args, dir.path())
        .env("KEY", "from the shell")
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr_text(&output));
    let environment = std::fs::read_to_string(dir.path().join("env.txt")).unwrap();
    let lines: Vec<&str> = environment.lines().collect();
    assert!(lines.contains(&"A=b c") && lines.contains(&"KEY=from the shell"), "{environment}");
}

/// Attack: files | a `.env` of the directory sets variables that the command line reads | no value
/// of the file reaches the server or its address | Foreign text stays text
#[test]
fn a_server_of_the_command_line_gets_no_value_of_a_dotenv_file() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(".env"), "A=evil\nWHICH=/evil\nHOST=evil.example\n").unwrap();
    let script = "/usr/bin/env > env.txt; exec \"$0\"";
    let fixture = fixture_command();
    let command = format!("${{WHICH:-/bin/sh}} -c {} {fixture}", shlex::try_quote(script).unwrap());
    let called = run(&["call", "echo", "message=hi", "--stdio", &command], dir.path());
    assert_eq!(called.status.code(), Some(0), "{}", stderr_text(&called));
    let environment = std::fs::read_to_string(dir.path().join("env.txt")).unwrap();
    assert!(!environment.contains("evil"), "{environment}");
    for args in [
        &["check", "--stdio", &fixture, "--env", "A"][..],
        &["check", "--stdio", &fixture, "--env", "A=${A}"],
        &["check", "--url", "https://${HOST}/mcp"],
    ] {
        let output = run(args, dir.path());
        let stderr = stderr_text(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(stdout.contains("is not set") && !stdout.contains("`.env`"), "{stdout}");
    }
}

#[test]
fn options_that_do_not_belong_together_are_refused_on_both_sides_of_the_command() {
    let here = Path::new("/");
    for line in [
        "tools --stdio a --config b",
        "--stdio a tools --config b",
        "--config b tools --stdio a",
        "tools --stdio a --url http://b",
        "--url http://b --stdio a tools",
        "ask x --demo --stdio a",
        "tools --header A:b",
        "tools --env A=b --url http://b",
        "tools --config x --env A=b",
        "tools --url a.example",
        "lock --stdio a",
        "tools --stdio 'a",
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let output = run(&args, here);
        assert_eq!(output.status.code(), Some(2), "{line}: {}", stderr_text(&output));
        assert!(stderr_text(&output).starts_with("error: "), "{line}: {}", stderr_text(&output));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_url_of_an_older_server_needs_no_type() {
    let remote = RemoteServer::for_fixture(fixture("old")).sse().start().await;
    let url = remote.url();
    assert!(url.ends_with("/sse"), "{url}");
    let call = move || run(&["call", "echo", "message=hi", "--url", &url], Path::new("/"));
    let called = tokio::task::spawn_blocking(call).await.unwrap();
    assert_eq!(json_value(&called)["content"][0]["text"], "hi");
}

/// Attack: secrets | commands fail or succeed with a secret in `--header` | no output contains the
/// secret | Secrets do not print
#[tokio::test(flavor = "multi_thread")]
async fn a_header_reaches_the_server_of_a_url_and_no_output() {
    let remote = RemoteServer::for_fixture(fixture("far")).start().await;
    let url = remote.url();
    let secret = "canary-5d1c-secret";
    let header = format!("Authorization: Bearer {secret}");
    let call = ["call", "echo", "message=hi", "--url", &url, "--header", &header];
    for (args, code) in [
        (&call[..], 0),
        (&[&call[..], &["--log-level", "debug"]].concat(), 0),
        (&[&call[..], &["--json"]].concat(), 0),
        (&["call", "none", "--url", &url, "--header", &header], 2),
        (&["why", "echo", "--url", &url, "--header", &header], 0),
        (&["tools", "--url", "http://127.0.0.1:1/mcp", "--header", &header], 1),
        (&["tools", "--url", &url, "--header", secret], 2),
        (&["tools", "--url", &url, "--header", &header, "--header", &header], 2),
        (&["tools", "--stdio", "x", "--url", &url, "--header", &header], 2),
    ] {
        let (args, dir) = (args.iter().map(|arg| (*arg).to_owned()), tempfile::tempdir().unwrap());
        let args: Vec<String> = args.collect();
        let task = tokio::task::spawn_blocking(move || {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            run(&args, dir.path())
        });
        let output = task.await.unwrap();
        let stderr = stderr_text(&output);
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(!stdout.contains(secret) && !stderr.contains(secret), "{stdout}\n{stderr}");
    }
    let requests = remote.requests();
    let expected = header.strip_prefix("Authorization: ");
    assert!(requests.iter().any(|request| request.header("authorization") == expected));
}

/// Attack: secrets | a server repeats a value of `--env` in JSON-RPC errors at the start, of a list
/// and of a call | messages, JSON and logs have a mask, and a result stays as sent
/// | Secrets do not print
#[test]
fn a_value_of_a_variable_that_a_server_repeats_in_an_error_is_masked() {
    let dir = tempfile::tempdir().unwrap();
    let secret = "canary-5d1c-secret";
    let variable = format!("KEY={secret}");
    let text = format!("the key {secret} is wrong");
    let command = |switches: &str| {
        let text = shlex::try_quote(&text).unwrap();
        format!("{} {switches} --error-text {text}", fixture_command())
    };
    let start = command("--init-error -32000");
    let prompts = command("--list-error -32603 --faulty-lists prompts/list");
    let call = command("--server-error -32000");
    for (args, command, code) in [
        (&["call", "echo", "message=hi"][..], &call, 1),
        (&["call", "echo", "message=hi", "--json"], &call, 1),
        (&["call", "echo", "message=hi", "--log-level", "debug"], &call, 1),
        (&["tools", "--strict"], &start, 1),
        (&["tools", "--strict", "--json"], &start, 1),
        (&["tools"], &start, 1),
        (&["tools", "--json"], &start, 1),
        (&["why", "echo", "--json", "--log-level", "debug", "--log-format", "json"], &start, 2),
        (&["tools", "--log-level", "debug"], &prompts, 0),
        (&["tools", "--json"], &prompts, 0),
        (&["why", "echo"], &prompts, 0),
        (&["why", "echo", "--json"], &prompts, 0),
    ] {
        let args = [args, &["--stdio", command, "--env", &variable]].concat();
        let output = run(&args, dir.path());
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), stderr_text(&output));
        // The command line of the server contains the error text of this test.
        let mask = |text: &str| text.replace(&**command, "COMMAND");
        let (stdout, stderr) = (mask(&stdout), mask(&stderr));
        assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
        assert!(!stdout.contains(secret) && !stderr.contains(secret), "{stdout}\n{stderr}");
        assert!(
            format!("{stdout}{stderr}").contains("the key *** is wrong"),
            "{args:?}: {stdout}\n{stderr}"
        );
    }
    let message = format!("message={secret}");
    let command = fixture_command();
    let args = ["call", "echo", &message, "--stdio", &command, "--env", &variable];
    assert_eq!(json_value(&run(&args, dir.path()))["content"][0]["text"], secret);
}

/// Attack: secrets | a remote server repeats the token of `--header` in a JSON-RPC error with a
/// success status | message and JSON have a mask | Secrets do not print
#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_a_header_that_a_server_repeats_in_an_error_is_masked() {
    let secret = "canary-5d1c-secret";
    let server = fixture("far").with("--server-error", -32000).with("--error-text", secret);
    let remote = RemoteServer::for_fixture(server).start().await;
    let (url, header) = (remote.url(), format!("Authorization: Bearer {secret}"));
    for format in ["--strict", "--json"] {
        let (url, header) = (url.clone(), header.clone());
        let task = tokio::task::spawn_blocking(move || {
            let args = ["call", "echo", "message=hi", "--url", &url, "--header", &header, format];
            run(&args, Path::new("/"))
        });
        let output = task.await.unwrap();
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), stderr_text(&output));
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(!stdout.contains(secret) && !stderr.contains(secret), "{stdout}\n{stderr}");
        assert!(stderr.contains("returned an error for `echo`: *** (code -32000)"), "{stderr}");
    }
}
