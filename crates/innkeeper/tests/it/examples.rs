//! Runs each example with the fixture server and checks the output.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use innkeeper_testkit::{
    Fixture, Journal, Script, ScriptedLlm, ScriptedReply, fixture, fixture_program, mcp_json,
};
use serde_json::json;

/// Path of a built example, relative to the test binary.
fn example_path(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(path.is_file(), "build it with `cargo build -p innkeeper --examples`");
    path
}

/// Runs an example with these arguments and this input. Returns stdout.
#[expect(clippy::disallowed_methods, reason = "these tests are about the programs themselves")]
fn run_program(name: &str, arguments: &[&str], input: &str) -> String {
    let mut child = Command::new(example_path(name))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stdout}\n{stderr}");
    stdout
}

/// Runs an example with `before` ahead of the server's command. Returns stdout and the journal of
/// the fixture server.
fn run_example(name: &str, before: &[&str], input: &str) -> (String, Journal) {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal");
    let server = fixture_program();
    let server = [server.to_str().unwrap(), "--journal", journal.to_str().unwrap()];
    let stdout = run_program(name, &[before, &server].concat(), input);
    (stdout, Journal::read(&journal))
}

/// Runs an example with the path of a configuration with this server ahead of the arguments.
fn run_with_config(name: &str, server: Fixture, arguments: &[&str], input: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("mcp.json");
    std::fs::write(&config, mcp_json([server]).to_string()).unwrap();
    run_program(name, &[&[config.to_str().unwrap()], arguments].concat(), input)
}

/// Replaces the number before each `ms` with `N`.
fn mask_durations(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_inclusive([' ', '\n']) {
        match word.trim_end().strip_suffix("ms") {
            Some(number) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                out.push_str(&word.replacen(number, "N", 1));
            }
            Some(_) | None => out.push_str(word),
        }
    }
    out
}

/// Proves: S34
#[test]
fn the_smallest_example_shows_the_text_and_the_tool() {
    let (stdout, _) = run_example("minimal_streaming", &[], "");
    let expected = "Let me say it.\n\n\n\nSaid.\nTool echo executed in Nms\n\"hello\"\n";
    assert_eq!(mask_durations(&stdout), expected);
}

/// Proves: S1, S35
#[test]
fn the_chat_keeps_its_model_and_history_and_uses_a_tool_in_the_middle() {
    let (stdout, journal) = run_example("streaming_chat_app", &[], "hello\nadd 2 3\n");
    let expected = "> hello\nYou said `hello`, and I am 0.7 warm.\n(0 tools)\n\
                  > add 2 3\nLet me add that.\n\nThe tool says \"5.0\\n{\\\"sum\\\":5.0}\".\n(1 tools)\n\
                  system user assistant user assistant user assistant\n";
    assert_eq!(stdout, expected);
    assert_eq!(journal.count("tools/call"), 1);
}

/// Proves: S35
#[tokio::test]
async fn the_chat_sends_its_history_and_temperature_to_a_model_server() {
    let call = "Let me add that.\n{\"tool\": \"add\", \"params\": {\"a\": 2, \"b\": 3}}";
    let replies = ["Hello.", call, "It is 5."].map(ScriptedReply::text);
    let llm = ScriptedLlm::start(replies).await;
    let url = llm.origin().to_owned();
    let run =
        move || run_example("streaming_chat_app", &["--ollama", &url], "hello\nadd 2 and 3\n");
    let (stdout, journal) = tokio::task::spawn_blocking(run).await.unwrap();
    let expected = "> hello\nHello.\n(0 tools)\n> add 2 and 3\nLet me add that.\nIt is 5.\n\
                    (1 tools)\nsystem user assistant user assistant user assistant\n";
    assert_eq!(stdout, expected);
    assert_eq!(journal.params("tools/call")[0]["arguments"], json!({"a": 2, "b": 3}));
    let requests = llm.requests();
    let roles = requests[2].body["messages"].as_array().unwrap().iter();
    let roles: Vec<&str> = roles.map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user", "assistant", "user"]);
    assert!(requests[2].text.contains("Results of the tools"), "{}", requests[2].text);
    assert!(requests.iter().all(|request| request.body["options"]["temperature"] == json!(0.7)));
    assert!(requests.iter().all(|request| request.body.get("tools").is_none()));
}

/// Proves: S36
#[test]
fn the_pass_through_example_changes_nothing_and_runs_nothing_by_itself() {
    let (stdout, journal) = run_example("passthrough_mode", &[], "");
    let lines: Vec<&str> = stdout.lines().collect();
    let expected = [
        "text: I would call ",
        "text: {\"tool\": \"echo\", \"params\": {\"message\": \"hello\"}}",
        "text:  for that.",
        "0 tool calls executed",
    ];
    assert_eq!(lines[..4], expected);
    assert!(lines[4].contains("by hand"), "{stdout}");
    let calls = journal.params("tools/call");
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0]["arguments"]["message"], "by hand");
}

/// Proves: S37
#[test]
fn the_placeholder_example_shows_one_text_a_call() {
    let (stdout, _) = run_example("placeholder_mode", &[], "");
    let expected = "Two sums: [calculating] and [calculating].\n\
                  add {\"a\":1,\"b\":2} = \"3\"\nadd {\"a\":3,\"b\":4} = \"7\"\n";
    assert_eq!(stdout, expected);
}

/// Proves: S38
#[test]
fn the_instrumentation_example_leaves_a_log_of_three_patterns() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let (stdout, _) = run_example("instrumentation_demo", &[log.to_str().unwrap()], "");
    let expected = "clean: echo\nmixed: add\nseveral: echo, fail\n\
                  add: 1 calls, 0 errors\necho: 2 calls, 0 errors\nfail: 1 calls, 1 errors\n\
                  10 durations\n";
    assert_eq!(stdout, expected);
    let log = std::fs::read_to_string(&log).unwrap();
    let kinds: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for kind in ["ToolDetectionStart", "ToolExecutionError", "TokenClassification"] {
        assert!(kinds.iter().any(|line| line["event_type"] == kind), "{kind}");
    }
}

#[test]
fn the_example_of_a_call_lists_the_tools_and_prints_the_result_of_one() {
    let arguments = ["files.echo", r#"{"message": "there and back"}"#];
    let stdout = run_with_config("call_a_tool", fixture("files"), &arguments, "");
    let lines: Vec<&str> = stdout.lines().collect();
    assert!(lines[0].starts_with("files.echo: "), "{stdout}");
    let result = lines.iter().position(|line| *line == "`files.echo` succeeded:").unwrap();
    assert_eq!(lines[result + 1], "there and back");
    assert!(lines[result + 2].starts_with("`files` stopped after "), "{stdout}");

    let stdout = run_with_config("call_a_tool", fixture("files"), &["files.fail"], "");
    assert!(stdout.contains("`files.fail` failed:\n"), "{stdout}");
}

#[test]
fn the_example_of_a_callback_shows_which_call_asks_and_answers_form_and_model_request() {
    let arguments = ["shop.echo", r#"{"message": "hello"}"#];
    let server = fixture("shop").switch("--ask-elicit");
    let stdout = run_with_config("answer_a_server", server, &arguments, "blue\n");
    let asks = "`shop` requests `elicitation/create` during `tools/call` of `echo`\n\
                shop asks: which colour?\ncolour?\nresult: ";
    let result = stdout.strip_prefix(asks).unwrap_or_else(|| panic!("{stdout}"));
    assert!(result.contains(r#"{\"colour\":\"blue\"}"#), "{stdout}");

    let server = fixture("shop").switch("--ask-sampling");
    let stdout = run_with_config("answer_a_server", server, &arguments, "a warm blue\n");
    let asks = "`shop` requests `sampling/createMessage` during `tools/call` of `echo`\n";
    let (messages, result) = stdout.strip_prefix(asks).unwrap().split_once('\n').unwrap();
    assert!(messages.contains("which colour?"), "{stdout}");
    assert!(result.starts_with("result: ") && result.contains("a warm blue"), "{stdout}");
}

#[test]
fn the_example_of_a_server_in_the_process_greets_and_stops_its_server() {
    let stdout = run_program("server_in_process", &["Ada"], "");
    let expected = "`greeter` is Ready, process id None\nHello, Ada.\n\
                    the server has ended\n";
    assert_eq!(stdout, expected);
}

/// Proves: N7
#[tokio::test]
async fn the_example_of_an_agent_shows_the_calls_and_the_response_of_an_http_model() {
    let call = ScriptedReply::tool_call("files_echo", json!({"message": "there and back"}));
    let replies = [call, ScriptedReply::text("The tool returned there and back.")];
    let llm = ScriptedLlm::start(Script::new(replies).chunk_bytes(7)).await;
    let base_url = format!("{}/v1", llm.origin());
    let run = move || {
        let arguments = ["openai-compatible", "Call the tool.", "any", &base_url];
        run_with_config("ask_a_model", fixture("files"), &arguments, "")
    };
    let stdout = tokio::task::spawn_blocking(run).await.unwrap();
    let expected = "calls `files.echo` {\"message\":\"there and back\"}\n\
                    result of `files.echo`: there and back\n\
                    The tool returned there and back.\n1 of 1 tool calls succeeded\n";
    assert_eq!(stdout, expected);
    let requests = llm.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[0].text.contains("Answer in one sentence."), "{}", requests[0].text);
    assert!(requests[1].text.contains("there and back"), "{}", requests[1].text);
}

/// Proves: G48
#[tokio::test]
async fn the_example_of_a_prompt_builder_collects_facts_with_tools_and_prints_a_prompt() {
    let call = ScriptedReply::tool_call("files_echo", json!({"message": "version 2"}));
    let prompt = "Task: write the release notes. Fact (`files.echo`): version 2.";
    let llm = ScriptedLlm::start(Script::new([call, ScriptedReply::text(prompt)])).await;
    let base_url = format!("{}/v1", llm.origin());
    let run = move || {
        let arguments = ["openai-compatible", "Write the release notes.", "any", &base_url];
        run_with_config("build_prompt", fixture("files"), &arguments, "")
    };
    let stdout = tokio::task::spawn_blocking(run).await.unwrap();
    assert_eq!(stdout, format!("{prompt}\n"));
    let requests = llm.requests();
    assert!(requests[0].text.contains("Write the release notes."), "{}", requests[0].text);
    assert!(requests[0].text.contains("You prepare a task for another model"));
    assert!(requests[1].text.contains("version 2"), "{}", requests[1].text);
}

/// Proves: G47
#[test]
fn the_page_about_trust_says_who_is_trusted_with_what_in_a_run() {
    let page = include_str!("../../../../docs/trust.md");
    let section = page.split("## Runs of a model").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows: Vec<Vec<&str>> = section
        .lines()
        .filter_map(|line| Some(line.strip_prefix("| ")?.split(" | ").collect()))
        .collect();
    assert_eq!(rows[0], ["party", "trusted with", "not trusted with |"]);
    for party in ["application or user", "provider of the model", "model", "server"] {
        let row = rows.iter().find(|row| row[0] == party).unwrap();
        assert!(row.len() == 3 && row[1].len() > 10, "{row:?}");
    }
}

/// Proves: N7, S41
#[test]
fn the_example_of_a_chat_hides_the_call_and_passes_the_result_to_the_model() {
    let arguments = ["files.echo", r#"{"message": "there and back"}"#];
    let stdout = run_with_config("stream_a_chat", fixture("files"), &arguments, "");
    let lines: Vec<&str> = stdout.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines[..2], ["I call the tool.", "[`files.echo` has ended]"], "{stdout}");
    assert!(lines[2].starts_with("for the model: "), "{stdout}");
    assert!(stdout.contains(r#""result": "there and back""#), "{stdout}");
    assert!(lines.last().unwrap().starts_with("The tool returned "), "{stdout}");
    assert!(!stdout.contains("\"params\""), "{stdout}");
}

#[test]
fn each_example_without_arguments_says_how_to_use_the_example() {
    for name in [
        "call_a_tool",
        "answer_a_server",
        "server_in_process",
        "ask_a_model",
        "build_prompt",
        "stream_a_chat",
    ] {
        let message = usage_message(name);
        assert!(message.contains(&format!("usage: {name} ")), "{message}");
    }
}

/// Runs an example without arguments, which must fail. Returns stderr.
#[expect(clippy::disallowed_methods, reason = "these tests are about the programs themselves")]
fn usage_message(name: &str) -> String {
    let output = Command::new(example_path(name)).output().unwrap();
    assert!(!output.status.success(), "{name}");
    String::from_utf8(output.stderr).unwrap()
}
