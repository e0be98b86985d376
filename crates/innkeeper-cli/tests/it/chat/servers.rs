//! Tests of `/disable`, `/enable` and `/reload` with the whole program.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};

use innkeeper_testkit::{Fixture, Journal, ScriptedReply, fixture, mcp_json};
use serde_json::{Value, json};

use super::{ChatEnv, add_call, text};
use crate::program::innkeeper;
use crate::terminal::Typing;

#[tokio::test]
async fn a_disabled_server_is_refused_and_marked_until_it_is_enabled() {
    let replies = [add_call(), ScriptedReply::text("No."), add_call(), ScriptedReply::text("Yes.")];
    let env = ChatEnv::new(fixture("one"), replies).await;
    let lines = "/disable one\n/disable one\n/servers\n/tools\nAdd.\n/prompt one.plain\n\
                 /enable one\nAdd.\n/disable nobody\n/disable\n";
    let output = env.run(&["--approve", "all"], lines).await;
    let stdout = text(&output.stdout);
    for shown in [
        "one is disabled in this conversation: the model gets none of its tools",
        "one is already disabled",
        "ready  disabled in this conversation",
        "hidden  one.add",
        "one is enabled",
    ] {
        assert!(stdout.contains(shown), "{shown}: {stdout}");
    }
    let stderr = text(&output.stderr);
    for problem in ["hint: type /enable one", "no server `nobody`", "usage: /disable SERVER"] {
        assert!(stderr.contains(problem), "{problem}: {stderr}");
    }
    let requests = env.llm.requests();
    let refusal = "not run: the user disabled the server `one` in this conversation";
    assert!(requests[1].body.to_string().contains(refusal), "{}", requests[1].body);
    let has_tools = |index: usize| {
        requests[index].body["tools"].as_array().is_some_and(|tools| !tools.is_empty())
    };
    assert_eq!([has_tools(0), has_tools(2)], [false, true]);
    assert_eq!(Journal::read(&env.path().join("journal")).count("tools/call"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_the_screen_a_server_is_completed_disabled_and_its_items_are_not_used() {
    let env = ChatEnv::new(fixture("one"), [ScriptedReply::text("Hello.")]).await;
    let typing = [
        Typing { shown: "Message, or / for commands", keys: "/disable o\t\r" },
        Typing { shown: "one is disabled in this conversation", keys: "/attach fx://one/static\r" },
        Typing { shown: "hint: type /enable one", keys: "/clear\r" },
        Typing { shown: "new conversation", keys: "/prompt one.plain\r" },
        Typing { shown: "Hello.", keys: "" },
        Typing { shown: "Enter sends", keys: "/reload\r" },
        Typing { shown: "the configuration has no changes", keys: "\u{3}\u{3}" },
    ];
    env.type_keys(&[], &typing);
}

/// A chat whose notices are read one by one.
struct NoticeReader {
    child: Child,
    stdin: ChildStdin,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl NoticeReader {
    fn start(env: &ChatEnv, args: &[&str]) -> Self {
        let mut command = innkeeper(&[&["chat", "--json"], args].concat(), env.path());
        let url = env.llm.origin();
        command.args(["--provider", "anthropic", "--model", "claude-opus-5-5", "--base-url", url]);
        command.env("HOME", env.path()).env("ANTHROPIC_API_KEY", "sk-planted");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, stdin, lines }
    }

    /// Sends a command and returns its notice.
    fn notice(&mut self, command: &str) -> String {
        writeln!(self.stdin, "{command}").unwrap();
        let event: Value = serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap();
        event["text"].as_str().unwrap().to_owned()
    }

    fn finish(mut self) {
        drop(self.stdin);
        self.child.wait().unwrap();
    }
}

fn write_servers(env: &ChatEnv, servers: impl IntoIterator<Item = Fixture>) {
    let servers = servers.into_iter().map(|server| server.process_tag(&env.tag));
    std::fs::write(env.path().join("mcp.json"), mcp_json(servers).to_string()).unwrap();
}

#[tokio::test]
async fn a_reload_applies_the_file_and_says_what_changed() {
    let env = ChatEnv::new(fixture("one"), []).await;
    let mut chat = NoticeReader::start(&env, &["--config", "mcp.json"]);
    assert_eq!(chat.notice("/reload"), "the configuration has no changes");
    let one = fixture("one").env("LEVEL", "2");
    let one = one.config_key("tools", json!({"ask": ["read"]}));
    write_servers(&env, [one, fixture("two")]);
    assert_eq!(chat.notice("/reload"), "added two\nchanged one: tools, args, env");
    let tools = chat.notice("/tools");
    assert!(tools.contains("asks    one.read") && tools.contains("runs    two.read"), "{tools}");
    write_servers(&env, [fixture("two")]);
    assert_eq!(chat.notice("/reload"), "removed one");
    std::fs::write(env.path().join("mcp.json"), "{").unwrap();
    let problem = chat.notice("/reload");
    assert!(problem.contains("in the configuration") && problem.contains("mcp.json"), "{problem}");
    assert!(chat.notice("/servers").contains("two  ready"));
    chat.finish();
}

/// Attack: files | a file of a directory gets another server and another command while a chat runs
/// | a reload starts neither without an approval, and says so | Approval first
#[tokio::test]
async fn a_reload_of_a_found_file_starts_no_server_without_an_approval() {
    let env = ChatEnv::new(fixture("one"), []).await;
    let mut chat = NoticeReader::start(&env, &[]);
    assert!(chat.notice("/servers").contains("one  ready"));
    let one = fixture("one").switch("--no-prompts");
    let approving = fixture("two").config_key("tools", json!({"approve": ["*"]}));
    write_servers(&env, [one, approving]);
    let reloaded = chat.notice("/reload");
    let untrusted = |server| format!("{server} is not trusted: run `innkeeper tools --trust`");
    assert!(reloaded.contains(&untrusted("one")), "{reloaded}");
    assert!(reloaded.contains(&untrusted("two")), "{reloaded}");
    assert!(!chat.notice("/servers").contains("two"));
    let mut trust = innkeeper(&["tools", "--trust"], env.path());
    assert!(trust.env("HOME", env.path()).output().unwrap().status.success());
    let reloaded = chat.notice("/reload");
    assert!(reloaded.starts_with("added two\nchanged one"), "{reloaded}");
    let tools = chat.notice("/tools two");
    assert!(tools.contains("asks    two.add") && !tools.contains("runs    two.add"), "{tools}");
    chat.finish();
}

#[tokio::test]
async fn a_chat_without_a_file_has_nothing_to_reload() {
    let env = ChatEnv::new(fixture("one"), []).await;
    let mut chat = NoticeReader::start(&env, &["--demo"]);
    assert!(chat.notice("/reload").contains("no configuration to read again"));
    chat.finish();
}
