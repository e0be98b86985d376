//! Tests of `chat` line by line and with `--json`: a scripted model and the fixture server.

mod argument_rules;
mod commands;
mod permanent_rules;
mod plain;
mod recording;
mod respond;
mod servers;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use innkeeper_testkit::{
    Fixture, Journal, ProcessTag, Script, ScriptedLlm, ScriptedReply, fixture, mcp_json, wait_gone,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::innkeeper;
use crate::terminal::{Typing, run_in_terminal_with_keys};

/// A directory with a configuration, a home and a scripted model.
struct ChatEnv {
    folder: TempDir,
    tag: ProcessTag,
    llm: ScriptedLlm,
}

impl ChatEnv {
    async fn new(server: Fixture, replies: impl IntoIterator<Item = ScriptedReply>) -> Self {
        Self::with_servers([server], replies).await
    }

    async fn with_servers(
        servers: impl IntoIterator<Item = Fixture>,
        replies: impl IntoIterator<Item = ScriptedReply>,
    ) -> Self {
        let (folder, tag) = (tempfile::tempdir().unwrap(), ProcessTag::new());
        let journal = folder.path().join("journal");
        let servers = servers.into_iter().map(|it| it.process_tag(&tag).journal(&journal));
        std::fs::write(folder.path().join("mcp.json"), mcp_json(servers).to_string()).unwrap();
        Self { folder, tag, llm: ScriptedLlm::start(Script::new(replies)).await }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, args: &[&str]) -> Command {
        let model = ["--provider", "anthropic", "--model", "claude-opus-5-5", "--base-url"];
        let mut all = vec!["chat", "--config", "mcp.json"];
        all.extend(model.iter().chain([&self.llm.origin()]).chain(args));
        let mut command = innkeeper(&all, self.path());
        command.env("HOME", self.path()).env("ANTHROPIC_API_KEY", "sk-planted");
        command
    }

    fn spawn(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// Runs the chat with this text on stdin, until the program exits.
    async fn run(&self, args: &[&str], stdin: &str) -> Output {
        let mut child = self.spawn(args);
        child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
        let output = tokio::task::spawn_blocking(|| child.wait_with_output().unwrap()).await;
        wait_gone(&self.tag, Duration::from_secs(2)).unwrap();
        output.unwrap()
    }

    /// Runs the chat on a terminal, until the program exits.
    fn type_keys(&self, args: &[&str], typing: &[Typing]) -> Vec<String> {
        let (status, screens) = run_in_terminal_with_keys(self.command(args), 100, typing);
        assert_eq!(status.code(), Some(0), "{screens:?}");
        wait_gone(&self.tag, Duration::from_secs(2)).unwrap();
        screens
    }

    /// Lists the stored conversations.
    fn list(&self) -> Vec<Value> {
        let mut command = innkeeper(&["chat", "--list", "--json"], self.path());
        let output = command.env("HOME", self.path()).output().unwrap();
        let list: Value = serde_json::from_slice(&output.stdout).unwrap();
        list["conversations"].as_array().unwrap().clone()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the events, with the chunks of a text as one event.
fn json_events(output: &Output) -> Vec<Value> {
    let mut events: Vec<Value> = Vec::new();
    for line in text(&output.stdout).lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let is_chunk = event["event"] == "text" || event["event"] == "reasoning";
        match events.last_mut() {
            Some(last) if is_chunk && last["event"] == event["event"] => {
                let both = format!(
                    "{}{}",
                    last["text"].as_str().unwrap(),
                    event["text"].as_str().unwrap()
                );
                last["text"] = json!(both);
            }
            Some(_) | None => events.push(event),
        }
    }
    events
}

/// Returns two servers that request input in each call, and a response with a call of each.
fn two_servers_with_forms() -> ([Fixture; 2], ScriptedReply) {
    let servers = ["one", "two"].map(|name| fixture(name).switch("--ask-elicit"));
    let arguments = json!({"a": 2, "b": 3});
    let calls =
        ScriptedReply::tool_call("one.add", &arguments).with_tool_call("two.add", &arguments);
    (servers, calls)
}

fn add_call() -> ScriptedReply {
    ScriptedReply::text("I add.").with_tool_call("one.add", json!({"a": 2, "b": 3}))
}

#[tokio::test]
async fn each_line_is_a_message_and_text_and_calls_have_their_own_stream() {
    let replies = [add_call(), ScriptedReply::text("It is 5."), ScriptedReply::text("Bye.")];
    let env = ChatEnv::new(fixture("one"), replies).await;
    let output = env.run(&["--approve", "all"], "Add 2 and 3.\n\nbye\n").await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "I add.\nIt is 5.\nBye.\n");
    let stderr = text(&output.stderr);
    assert!(stderr.contains(r#"called: `one.add` {"a":2,"b":3} in "#), "{stderr}");
    assert!(stderr.contains("continue with: innkeeper chat --resume "), "{stderr}");
    let last = &env.llm.requests()[2];
    assert!(last.body.to_string().contains("Add 2 and 3."), "{}", last.body);
}

/// Attack: model | a model calls a tool, and nobody can answer the question | the tool does not run,
/// and the output says why | Approval first
#[tokio::test]
async fn a_call_that_needs_an_approval_does_not_run_on_a_pipe_and_the_output_says_so() {
    let replies = [add_call(), ScriptedReply::text("Not added.")];
    let env = ChatEnv::new(fixture("one"), replies).await;
    let output = env.run(&[], "Add 2 and 3.\n").await;
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout), "I add.\nNot added.\n");
    let stderr = text(&output.stderr);
    assert!(stderr.contains("failed: `one.add`"), "{stderr}");
    assert!(stderr.contains("not run: nobody can approve the call"), "{stderr}");
    assert_eq!(Journal::read(&env.path().join("journal")).count("tools/call"), 0);
}

#[tokio::test]
async fn each_event_of_json_has_its_documented_members() {
    let reply = ScriptedReply::reasoning("Two numbers.")
        .with_text("I add.")
        .with_tool_call("one.add", json!({"a": 2, "b": 3}))
        .with_usage(50, 10);
    let replies = [reply, ScriptedReply::text("It is 5.").with_usage(70, 5)];
    let server = fixture("one").with("--progress", 1).with("--progress-message", "adding");
    let env = ChatEnv::new(server, replies).await;
    let output = env.run(&["--json", "--approve", "all"], "Add 2 and 3.\n/tokens\n").await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let mut events = json_events(&output);
    let call = events.iter_mut().find(|event| event["event"] == "call_finished").unwrap();
    assert!(call["elapsedMs"].take().is_u64());
    let id = call["id"].clone();
    let progress = events.iter_mut().find(|event| event["event"] == "call_progress").unwrap();
    assert!(progress["progress"].take().is_number() && progress["total"].take().is_number());
    let expected = json!([
        {"event": "reasoning", "text": "Two numbers."},
        {"event": "text", "text": "I add."},
        {"event": "call_started", "id": id, "tool": "one.add", "arguments": "{\"a\":2,\"b\":3}"},
        {"event": "call_progress", "id": id, "tool": "one.add", "progress": null, "total": null,
            "message": "adding"},
        {"event": "call_finished", "id": id, "tool": "one.add", "success": true,
            "result": "5\n{\"sum\":5}",
            "elapsedMs": null, "origin": "native"},
        {"event": "text", "text": "It is 5."},
        {"event": "finished", "success": true, "text": "It is 5.", "problem": null,
            "promptTokens": 120, "completionTokens": 15},
        {"event": "notice", "text": "120 tokens to the model (0 cached), 15 tokens of the model \
            (0 reasoning)\nthe last request with its response: 75 tokens"},
    ]);
    assert_eq!(Value::from(events), expected);
}

#[tokio::test]
async fn the_tokens_show_the_share_of_a_context_whose_size_the_server_reports() {
    let replies = [("One.", 1500), ("Two.", 4000)]
        .map(|(text, prompt)| ScriptedReply::text(text).with_usage(prompt, 96));
    let script = Script::new(replies).chat_template_caps(&json!({"supports_tools": true}));
    let (folder, llm) = (tempfile::tempdir().unwrap(), ScriptedLlm::start(script).await);
    std::fs::write(folder.path().join("mcp.json"), mcp_json([fixture("one")]).to_string()).unwrap();
    let url = format!("{}/v1", llm.origin());
    let mut command = innkeeper(
        &["chat", "--config", "mcp.json", "--provider", "openai-compatible", "--base-url", &url],
        folder.path(),
    );
    command.env("HOME", folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.args(["--model", "m", "--no-store"]).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"one\n/tokens\ntwo\n/tokens\n").unwrap();
    let output = tokio::task::spawn_blocking(|| child.wait_with_output().unwrap()).await.unwrap();
    let stdout = text(&output.stdout);
    let lines: Vec<&str> =
        stdout.lines().filter(|line| line.starts_with("the last request")).collect();
    let expected = [
        "the last request with its response: 1596 tokens, 19 % of 8192 tokens",
        "the last request with its response: 4096 tokens, 50 % of 8192 tokens",
    ];
    assert_eq!(lines, expected, "{stdout}");
}

#[tokio::test]
async fn the_cost_of_the_conversation_is_summed_and_a_response_without_a_cost_is_named() {
    let costs = [Some(0.0125), Some(0.1), None];
    let replies = costs.map(|cost| {
        let reply = ScriptedReply::text("Hi.").with_usage(10, 5);
        cost.map_or(reply.clone(), |cost| reply.with_cost(cost))
    });
    let env = ChatEnv::new(fixture("one"), replies).await;
    let url = format!("{}/v1", env.llm.origin());
    let model = ["--provider", "openai", "--model", "gpt-6-sol", "--base-url", &url, "--json"];
    let mut command =
        innkeeper(&[&["chat", "--config", "mcp.json"], &model[..]].concat(), env.path());
    command.env("HOME", env.path()).env("OPENAI_API_KEY", "sk-planted");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = "/tokens\none\n/tokens\ntwo\n/tokens\nthree\n/tokens\n";
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = tokio::task::spawn_blocking(|| child.wait_with_output().unwrap()).await.unwrap();
    let events = json_events(&output);
    let finished: Vec<_> = events.iter().filter(|event| event["event"] == "finished").collect();
    assert_eq!([&finished[0]["cost"], &finished[1]["cost"]], [&json!(0.0125), &json!(0.1)]);
    assert_eq!(finished[2].get("cost"), None);
    let notices = events.iter().filter(|event| event["event"] == "notice");
    let costs: Vec<_> =
        notices.map(|event| event["text"].as_str().unwrap().split_once("\ncost ")).collect();
    let costs: Vec<_> = costs.into_iter().map(|found| found.map(|(_, cost)| cost)).collect();
    let unit = "in the unit of the provider";
    let expected = [
        None,
        Some(format!("0.0125 {unit}")),
        Some(format!("0.1125 {unit}")),
        Some(format!("0.1125 {unit} or more: some responses report none")),
    ];
    assert_eq!(costs, expected.each_ref().map(Option::as_deref));
}

#[tokio::test]
async fn a_question_of_json_follows_the_text_before_it_and_is_denied() {
    let replies = [add_call(), ScriptedReply::text("Not added.")];
    let env = ChatEnv::new(fixture("one"), replies).await;
    let output = env.run(&["--json", "Add 2 and 3."], "").await;
    let events = json_events(&output);
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["text", "question", "call_finished", "text", "finished"]);
    let question =
        json!({"event": "question", "kind": "approval", "server": "one", "text": "one.add"});
    assert_eq!(events[1], question);
    assert_eq!(events[2]["result"], "not run: nobody can approve the call");
}

#[tokio::test]
async fn a_failed_run_ends_with_1_and_the_next_message_is_still_sent() {
    let replies = [
        ScriptedReply::status(401).with_error_message("that key is not one of ours"),
        ScriptedReply::text("Hello."),
    ];
    let env = ChatEnv::new(fixture("one"), replies).await;
    let output = env.run(&["--json"], "Hi\nHi\n").await;
    assert_eq!(output.status.code(), Some(1));
    let events = json_events(&output);
    assert_eq!(events[0]["event"], "finished");
    assert_eq!(events[0]["success"], false);
    assert!(events[0]["problem"].as_str().unwrap().contains("that key is not one of ours"));
    assert_eq!(events.last().unwrap()["text"], "Hello.");
}

#[tokio::test]
async fn a_conversation_is_listed_and_resumed_and_no_store_leaves_none() {
    let replies = ["One.", "Two.", "Three."].map(ScriptedReply::text);
    let env = ChatEnv::new(fixture("one"), replies).await;
    env.run(&["--no-store"], "not stored\n").await;
    assert_eq!(env.list(), [] as [Value; 0]);
    env.run(&[], "first message\n/save My title\n").await;
    let stored = env.list();
    assert_eq!((&stored[0]["title"], &stored[0]["messages"]), (&json!("My title"), &json!(2)));
    let id = stored[0]["id"].as_str().unwrap();
    let output = env.run(&["--resume", id], "second message\n").await;
    assert_eq!(text(&output.stdout), "Three.\n");
    let request = env.llm.requests()[2].body.to_string();
    assert!(request.contains("first message") && request.contains("Two."), "{request}");
    assert_eq!(env.list()[0]["messages"], 4);
    let unknown = env.run(&["--resume", "nothing"], "").await;
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("no stored conversation `nothing`"));
}

/// Attack: processes | the program is killed during a call | no process remains, and the resumed
/// conversation has the messages and an error result for the call | No orphan
#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_continues_after_a_kill_during_a_call() {
    let call = ScriptedReply::text("I wait.").with_tool_call("one.sleep", json!({"ms": 60_000}));
    let env = ChatEnv::new(fixture("one"), [call, ScriptedReply::text("I know.")]).await;
    let mut child = env.spawn(&["--json", "--approve", "all"]);
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "Wait for me.").unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let is_started = |line: &String| line.contains("call_started");
    assert!(lines.any(|line| is_started(&line.unwrap())));
    while Journal::read(&env.path().join("journal")).count("tools/call") == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    drop(stdin);
    wait_gone(&env.tag, Duration::from_secs(5)).unwrap();
    let output = env.run(&["--resume"], "What happened?\n").await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "I know.\n");
    let body = env.llm.requests()[1].body.clone();
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages[0]["content"][0]["text"], "Wait for me.");
    assert_eq!(messages[1]["content"][0]["text"], "I wait.");
    let result = &messages[2]["content"][0];
    assert_eq!((&result["type"], &result["is_error"]), (&json!("tool_result"), &json!(true)));
    assert!(messages[2].to_string().contains("What happened?"), "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_typed_during_other_work_is_sent_after_the_work() {
    let server = fixture("one").with("--start-delay", 500);
    let env = ChatEnv::new(server, [ScriptedReply::text("Hello back.")]).await;
    let typing = [
        Typing { shown: "Message, or / for commands", keys: "/restart one\rhello\r" },
        Typing { shown: "restarting one · 1 message waits", keys: "" },
        Typing { shown: "Hello back.", keys: "\u{3}\u{3}" },
    ];
    env.type_keys(&[], &typing);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_answers_each_question_with_a_line() {
    let reply = ScriptedReply::tool_call("one.add", json!({"a": 1, "b": 1}))
        .with_tool_call("one.add", json!({"a": 2, "b": 2}));
    let env = ChatEnv::new(fixture("one"), [reply, ScriptedReply::text("Both done.")]).await;
    let typing = [
        Typing { shown: ">", keys: "Add twice.\n" },
        Typing { shown: r#""b":1}? The tool"#, keys: "y\n" },
        Typing { shown: r#""b":2}? The tool"#, keys: "y\n" },
        Typing { shown: "Both done.", keys: "/quit\n" },
    ];
    env.type_keys(&["--plain"], &typing);
    assert_eq!(Journal::read(&env.path().join("journal")).count("tools/call"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_gets_the_reason_that_a_person_writes_for_a_denial() {
    let env = ChatEnv::new(fixture("one"), [add_call(), ScriptedReply::text("I multiply.")]).await;
    let typing = [
        Typing { shown: "Message, or / for commands", keys: "Add 2 and 3.\r" },
        Typing { shown: "r no, reason", keys: "r" },
        Typing { shown: "Enter deny with this reason", keys: "multiply instead\r" },
        Typing { shown: "I multiply.", keys: "\u{3}\u{3}" },
    ];
    env.type_keys(&[], &typing);
    let body = &env.llm.requests()[1].body;
    let result = &body["messages"][2]["content"][0];
    assert_eq!(result["is_error"], true, "{body}");
    let reason = "not run: the user denied the call: multiply instead";
    assert!(result.to_string().contains(reason), "{body}");
    assert_eq!(Journal::read(&env.path().join("journal")).count("tools/call"), 0);
}
