//! Tests of the commands of the chat line by line and with `--json`.

use std::process::Child;
use std::time::Duration;

use innkeeper_testkit::{Journal, ScriptedReply, fixture, wait_gone};
use serde_json::json;
use tokio::time::Instant;

use super::{ChatEnv, json_events, text};
use crate::terminal::{Typing, run_in_terminal_with_keys};

/// Maximum time of an exit after a signal on a loaded machine.
const EXIT_LIMIT: Duration = Duration::from_secs(20);

/// Runs the lines with `--json`, and returns the texts of the notices.
async fn notices(env: &ChatEnv, stdin: &str) -> Vec<String> {
    let output = env.run(&["--json"], stdin).await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let events = json_events(&output).into_iter();
    let notices = events.filter(|event| event["event"] == "notice");
    notices.map(|event| event["text"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn assert_texts(texts: &[String], parts: &[&str]) {
    assert_eq!(texts.len(), parts.len(), "{texts:#?}");
    for (text, part) in texts.iter().zip(parts) {
        assert!(text.contains(part), "no `{part}` in `{text}`");
    }
}

#[tokio::test]
async fn the_model_command_changes_the_model_and_names_what_is_missing() {
    let env = ChatEnv::new(fixture("one"), []).await;
    let lines = "/model\n/model openai\n/model nobody\n/model anthropic claude-haiku-4-5\n/model\n";
    let expected = [
        "model: anthropic/claude-opus-5-5",
        "OPENAI_API_KEY",
        "nobody",
        "the conversation continues with anthropic/claude-haiku-4-5",
        "model: anthropic/claude-haiku-4-5",
    ];
    assert_texts(&notices(&env, lines).await, &expected);
}

#[tokio::test]
async fn the_restart_command_starts_the_server_again() {
    let env = ChatEnv::new(fixture("one"), []).await;
    let texts = notices(&env, "/restart\n/restart two\n/restart one\n").await;
    assert_texts(&texts, &["usage: /restart SERVER", "two did not restart", "one is ready"]);
    assert_eq!(Journal::read(&env.path().join("journal")).count("initialize"), 2);
}

#[tokio::test]
async fn the_compact_command_lets_the_model_summarize_the_older_messages() {
    let replies = ["First.", "Second.", "They talked.", "Third."].map(ScriptedReply::text);
    let env = ChatEnv::new(fixture("one"), replies).await;
    let texts = notices(&env, "/compact\none\ntwo\n/compact\nthree\n").await;
    assert_texts(&texts, &["no messages to summarize", "a summary replaces 2 messages"]);
    let last = env.llm.requests()[3].body["messages"].to_string();
    assert!(last.contains("They talked.") && !last.contains("First."), "{last}");
}

#[tokio::test]
async fn the_prompt_command_sends_the_prompt_of_a_server() {
    let env = ChatEnv::new(fixture("one"), [ScriptedReply::text("Hello, Ada.")]).await;
    let lines = "/prompt\n/prompt one.greet Ada\n/prompt one.greet \"name=A\n\
        /prompt one.nothing\n/prompt one.greet name=Ada\n";
    let expected =
        ["usage: /prompt", "`Ada` is not KEY=VALUE", "a quotation mark", "nothing", "sends: "];
    assert_texts(&notices(&env, lines).await, &expected);
    let requests = env.llm.requests();
    let [request] = &*requests else { panic!("{} requests", requests.len()) };
    assert!(request.body["messages"].to_string().contains("Ada"), "{}", request.body);
}

#[tokio::test]
async fn attached_files_and_resources_are_sent_with_the_next_message_only() {
    let replies = ["One.", "Two."].map(ScriptedReply::text);
    let env = ChatEnv::new(fixture("one"), replies).await;
    std::fs::write(env.path().join("notes.md"), "twelve casks").unwrap();
    let lines = "/attach\n/attach missing.md\n/attach fx://nowhere/a\n/attach notes.md\n/detach\n\
        /attach notes.md\n/attach fx://one/static\nWhat is there?\nAnd now?\n";
    let expected = [
        "usage: /attach",
        "cannot read `missing.md`",
        "fx://nowhere/a",
        "attached notes.md",
        "removed 1 attachments",
        "attached notes.md",
        "attached fx://one/static",
    ];
    assert_texts(&notices(&env, lines).await, &expected);
    let requests = env.llm.requests();
    let user = |index: usize, message: usize| {
        requests[index].body["messages"][message]["content"].to_string()
    };
    let first = user(0, 0);
    assert_eq!(first.matches("twelve casks").count(), 1, "{first}");
    assert!(first.contains("What is there?") && first.contains("fx://one/static"), "{first}");
    assert!(!user(1, 2).contains("casks"), "{}", user(1, 2));
}

#[tokio::test]
async fn a_new_conversation_counts_its_tokens_from_zero_and_both_are_listed() {
    let replies = [
        ScriptedReply::text("One.").with_usage(50, 10),
        ScriptedReply::text("Two.").with_usage(70, 5),
    ];
    let env = ChatEnv::new(fixture("one"), replies).await;
    let texts = notices(&env, "first\n/tokens\n/clear\nsecond\n/tokens\n/list\n").await;
    let tokens = ["50 tokens to the model", "new conversation", "70 tokens to the model"];
    assert_texts(&texts[..3], &tokens);
    assert!(texts[3].contains("first") && texts[3].contains("second"), "{}", texts[3]);
    let second = env.llm.requests()[1].body["messages"].to_string();
    assert!(!second.contains("first"), "{second}");
}

#[tokio::test]
async fn a_conversation_is_copied_exported_resumed_and_removed_line_by_line() {
    let env = ChatEnv::new(fixture("one"), ["One.", "Two."].map(ScriptedReply::text)).await;
    let texts = notices(&env, "/fork\nfirst\n/undo\n/redo\n/redo\n/fork\n/export out.md\n").await;
    let expected = [
        "the conversation is empty",
        "removed: first",
        "brought back the exchange",
        "no removed exchange",
        "the conversation continues as ",
        "wrote `out.md`",
    ];
    assert_texts(&texts, &expected);
    let exported = std::fs::read_to_string(env.path().join("out.md")).unwrap();
    assert!(exported.contains("first") && exported.contains("One."), "{exported}");
    let stored = env.list();
    let [id, other] = [0, 1].map(|index| stored[index]["id"].as_str().unwrap().to_owned());
    let lines = format!("/resume {id}\n/remove {id}\n/remove {other}\nsecond\n");
    let expected = [&*format!("continues {id}"), "the current conversation", "removed "];
    assert_texts(&notices(&env, &lines).await, &expected);
    let listed = env.list();
    assert_eq!((listed.len(), &listed[0]["messages"]), (1, &json!(4)), "{listed:?}");
}

#[tokio::test]
async fn a_command_that_needs_a_screen_or_is_unknown_says_so() {
    let env = ChatEnv::new(fixture("one"), []).await;
    let output = env.run(&["--json"], "/copy\n/edit\n/nothing\n").await;
    let error = "no command /nothing; /help lists the commands";
    let expected = [
        json!({"event": "notice", "text": "this command needs the chat on a whole screen"}),
        json!({"event": "notice", "text": "this command needs a terminal"}),
        json!({"event": "error", "text": error}),
    ];
    assert_eq!(json_events(&output), expected);
    assert_eq!(text(&output.stderr), "");
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn the_edit_command_opens_the_editor_and_an_empty_line_sends_its_text() {
    use std::os::unix::fs::PermissionsExt as _;

    let env = ChatEnv::new(fixture("one"), [ScriptedReply::text("Hello.")]).await;
    let editor = env.path().join("editor");
    // The editor reads a line of the terminal.
    let script =
        "#!/bin/sh\n/bin/echo 'EDITOR reads' && read line && echo \"two $line\" >> \"$1\"\n";
    std::fs::write(&editor, script).unwrap();
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o700)).unwrap();
    let mut command = env.command(&["--plain"]);
    command.env("EDITOR", editor);
    let typing = [
        Typing { shown: ">", keys: "/edit\n" },
        Typing { shown: "EDITOR reads", keys: "lines\n" },
        Typing { shown: "Enter sends this text", keys: "\n" },
        Typing { shown: "Hello.", keys: "/quit\n" },
    ];
    let (status, screens) = run_in_terminal_with_keys(command, 100, &typing);
    assert_eq!(status.code(), Some(0), "{screens:?}");
    let request = env.llm.requests()[0].body["messages"].to_string();
    assert!(request.contains("two lines"), "{request}");
}

fn interrupt(child: &Child) {
    #[expect(clippy::disallowed_methods, reason = "the signal comes from outside")]
    let sent = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

/// Attack: terminal | a person interrupts a command that does not end | the program ends at once, and
/// no process remains | No unbounded wait
#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_a_restart_and_a_summary_that_do_not_end() {
    use std::io::Write as _;

    let replies = ["One.", "Two."].map(ScriptedReply::text);
    let replies = replies.into_iter().chain([ScriptedReply::text("They").never_responds()]);
    let env = ChatEnv::new(fixture("one"), replies).await;
    let mut child = env.spawn(&[]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"one\ntwo\n/compact\n").unwrap();
    env.llm.wait_for(EXIT_LIMIT, |requests| requests.len() == 3).await;
    interrupt(&child);
    assert_eq!(exit_code(child), Some(130));
    wait_gone(&env.tag, Duration::from_secs(5)).unwrap();

    let slow = ChatEnv::new(fixture("one").with("--start-delay", 2_000), []).await;
    let mut child = slow.spawn(&[]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"/restart one\n").unwrap();
    // The second start waits before the server reads.
    while Journal::read_unchecked(&slow.path().join("journal")).pids().len() < 2 {
        assert!(child.try_wait().unwrap().is_none());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    interrupt(&child);
    assert_eq!(exit_code(child), Some(130));
    wait_gone(&slow.tag, Duration::from_secs(5)).unwrap();
}

#[track_caller]
fn exit_code(mut child: Child) -> Option<i32> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        assert!(start.elapsed() < EXIT_LIMIT, "the program runs");
        std::thread::sleep(Duration::from_millis(10));
    }
}
