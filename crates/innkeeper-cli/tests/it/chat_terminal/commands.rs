//! Commands of the chat on a terminal, with real servers.

use innkeeper_testkit::{ScriptedLlm, ScriptedReply, fixture};
use serde_json::{Value, json};

use super::chat_env::{ChatEnv, send_signal};
use super::{EMPTY_EDITOR, SIZE, quit, slow_call, start_slow_call};
use crate::terminal::TerminalSession;

fn text(text: &str) -> Value {
    json!({ "text": text })
}

fn add_call() -> Value {
    json!({"calls": [{"name": "one.add", "arguments": {"a": 2, "b": 3}}]})
}

fn start(env: &ChatEnv, replies: &[Value], args: &[&str]) -> TerminalSession {
    let mut chat = TerminalSession::start(&env.scripted(replies, args), SIZE);
    chat.wait_for_text(EMPTY_EDITOR);
    chat
}

/// Types keys, and waits until the screen has a text.
#[track_caller]
fn type_and_wait(chat: &mut TerminalSession, keys: &str, text: &str) {
    chat.type_keys(keys);
    chat.wait_for_text(text);
}

/// Sends a message and waits for the response and the end of the run.
#[track_caller]
fn converse(chat: &mut TerminalSession, message: &str, response: &str) {
    type_and_wait(chat, &format!("{message}\r"), response);
    chat.wait_for("end of the run", |chat| !chat.text().contains("Esc stops"));
}

#[test]
fn the_model_command_changes_the_model_and_names_what_is_missing() {
    let env = ChatEnv::new(fixture("one"));
    let mut command = env.scripted(&[text("Hello.")], &[]);
    command.env("ANTHROPIC_API_KEY", "sk-planted").env_remove("OPENAI_API_KEY");
    let mut chat = TerminalSession::start(&command, SIZE);
    chat.wait_for_text(EMPTY_EDITOR);
    converse(&mut chat, "Hi", "Hello.");
    type_and_wait(&mut chat, "/model openai\r", "OPENAI_API_KEY");
    type_and_wait(&mut chat, "/model nobody\r", "nobody");
    assert!(!chat.text().contains("the conversation continues"), "{}", chat.text());
    let done = "the conversation continues with anthropic/claude-opus-5-5";
    type_and_wait(&mut chat, "/model anth\t claude-opus-5-5\r", done);
    chat.wait_for("model in the last line", |chat| {
        chat.text().lines().any(|line| line.starts_with("anthropic/claude-opus-5-5 ·"))
    });
    quit(chat, &env);
}

#[test]
fn the_restart_command_starts_the_server_again() {
    let env = ChatEnv::new(fixture("one"));
    let mut chat = start(&env, &[], &[]);
    let earlier = env.server_pid();
    type_and_wait(&mut chat, "/restart on\t\r", "one is ready");
    assert_ne!(env.server_pid(), earlier);
    type_and_wait(&mut chat, "/restart two\r", "two did not restart");
    quit(chat, &env);
}

#[test]
fn the_compact_command_lets_the_model_summarize_the_older_messages() {
    let env = ChatEnv::new(fixture("one"));
    let replies = [text("First."), text("Second."), text("They talked."), text("Third.")];
    let mut chat = start(&env, &replies, &[]);
    type_and_wait(&mut chat, "/compact\r", "no messages to summarize");
    converse(&mut chat, "one", "First.");
    converse(&mut chat, "two", "Second.");
    type_and_wait(&mut chat, "/compact\r", "a summary replaces 2 messages");
    converse(&mut chat, "three", "Third.");
    quit(chat, &env);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_with_an_argument_that_its_server_completes_is_sent() {
    let completions = json!({"name": ["Ada", "Bob"], "style": ["plain"]});
    let env = ChatEnv::new(fixture("one").with("--completions", completions));
    let llm = ScriptedLlm::start([ScriptedReply::text("Hello, Ada.")]).await;
    let mut chat = TerminalSession::start(&env.with_http_model(&llm, &[]), SIZE);
    chat.wait_for_text(EMPTY_EDITOR);
    type_and_wait(&mut chat, "/prompt gr\t", "> /prompt one.greet");
    type_and_wait(&mut chat, " na\t", "> /prompt one.greet name=");
    type_and_wait(&mut chat, "\t", "name=Bob");
    chat.type_keys("A");
    type_and_wait(&mut chat, "\t", "> /prompt one.greet name=Ada");
    type_and_wait(&mut chat, "\r", "Hello, Ada.");
    let requests = llm.requests();
    let sent = requests.last().unwrap().body["messages"].to_string();
    assert!(sent.contains("Ada"), "{sent}");
    quit(chat, &env);
}

#[test]
fn a_variable_of_a_template_is_completed_and_the_resource_is_attached() {
    let env = ChatEnv::new(fixture("one").with("--completions", json!({"id": ["12", "13"]})));
    let mut chat = start(&env, &[text("It is item 12.")], &[]);
    type_and_wait(&mut chat, "/attach fx://one/it\t", "> /attach fx://one/item/");
    type_and_wait(&mut chat, "\t", "fx://one/item/13  id of fx://one/item/{id}");
    type_and_wait(&mut chat, "\x1b[A\x1b[A\r", "> /attach fx://one/item/12");
    type_and_wait(&mut chat, "\r", "attached: fx://one/item/12");
    converse(&mut chat, "Which item?", "It is item 12.");
    quit(chat, &env);
}

#[test]
fn a_file_behind_an_at_sign_is_attached_and_a_pasted_path_of_an_image_too() {
    let env = ChatEnv::new(fixture("one"));
    std::fs::create_dir(env.path().join("docs")).unwrap();
    std::fs::write(env.path().join("docs/notes.md"), "twelve casks").unwrap();
    std::fs::write(env.path().join("a b.png"), "png").unwrap();
    let mut chat = start(&env, &[text("Casks.")], &[]);
    type_and_wait(&mut chat, "Read @do", "docs/  directory");
    type_and_wait(&mut chat, "\t", "docs/notes.md  file");
    type_and_wait(&mut chat, "\t", "attached: docs/notes.md");
    chat.wait_for_text("> Read docs/notes.md");
    let image = env.path().join("a b.png");
    let pasted = format!("\x1b[200~'{}'\x1b[201~", image.display());
    type_and_wait(&mut chat, &pasted, "/detach removes it");
    chat.wait_for_text("a b.png");
    chat.wait_for_text("> Read docs/notes.md");
    converse(&mut chat, "now", "Casks.");
    assert!(!chat.text().contains("attached: "), "{}", chat.text());
    quit(chat, &env);
}

#[test]
fn a_call_of_a_server_that_is_killed_says_that_nothing_shows_whether_the_tool_ran() {
    let env = ChatEnv::new(fixture("one"));
    let mut chat = start(&env, &[slow_call(), text("Lost.")], &["--approve", "all"]);
    start_slow_call(&mut chat);
    send_signal("-KILL", env.server_pid());
    chat.wait_for_text("failed one.sleep");
    chat.wait_for_text("unknown whether the tool ran");
    quit(chat, &env);
}

#[test]
fn log_messages_of_servers_are_shown_from_a_level_on() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("journal");
    let server = fixture("one").with("--log-flood", 1).with("--log-level", "notice");
    let server = server.journal(&journal);
    let env = ChatEnv::new(server);
    let replies = [add_call(), text("Five."), add_call(), text("Five again.")];
    let mut chat = start(&env, &replies, &["--approve", "all"]);
    converse(&mut chat, "Add.", "Five.");
    assert!(!chat.text().contains("log one"), "{}", chat.text());
    type_and_wait(&mut chat, "/log noti\t\r", "log messages from `notice` on are shown");
    type_and_wait(&mut chat, "/log loud\r", "no level `loud`");
    converse(&mut chat, "Add.", "Five again.");
    chat.wait_for_text("log one notice (flood): 0");
    let journal = std::fs::read_to_string(&journal).unwrap();
    let levels = journal.lines().filter(|line| line.contains("logging/setLevel"));
    let levels: Vec<bool> = levels.map(|line| line.contains("notice")).collect();
    assert_eq!(levels, [false, true], "the server gets the level at its start, and each new one");
    quit(chat, &env);
}

#[test]
fn a_removed_exchange_comes_back_until_a_new_message() {
    let env = ChatEnv::new(fixture("one"));
    let mut chat = start(&env, &[text("First."), text("Second."), text("Third.")], &[]);
    converse(&mut chat, "one", "First.");
    converse(&mut chat, "two", "Second.");
    type_and_wait(&mut chat, "/undo\r", "> two");
    assert!(!chat.text().contains("Second."), "{}", chat.text());
    chat.type_keys("\x15");
    type_and_wait(&mut chat, "/undo\r", "> one");
    chat.type_keys("\x15");
    type_and_wait(&mut chat, "/redo\r", "First.");
    type_and_wait(&mut chat, "/redo\r", "Second.");
    type_and_wait(&mut chat, "/redo\r", "no removed exchange");
    type_and_wait(&mut chat, "/undo\r", "> two");
    chat.type_keys("\x15");
    converse(&mut chat, "three", "Third.");
    type_and_wait(&mut chat, "/redo\r", "no removed exchange");
    quit(chat, &env);
    let mut chat = start(&env, &[], &["--resume"]);
    chat.wait_for("stored messages", |chat| {
        ["First.", "Third."].iter().all(|text| chat.text().contains(text))
            && !chat.text().contains("Second.")
    });
    quit(chat, &env);
}

/// Returns the ids of the stored conversations, newest first.
fn stored_ids(env: &ChatEnv) -> Vec<String> {
    let listed = env.chat(&["--list", "--json"]).output().unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let conversations = listed["conversations"].as_array().unwrap();
    conversations.iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_conversation_is_copied_resumed_exported_and_removed_inside_the_program() {
    let env = ChatEnv::new(fixture("one"));
    let replies = [text("First."), text("Second."), text("Third.")];
    let mut chat = TerminalSession::start(&env.scripted(&replies, &[]), (40, 120));
    chat.wait_for_text(EMPTY_EDITOR);
    type_and_wait(&mut chat, "/fork\r", "the conversation is empty");
    converse(&mut chat, "one", "First.");
    let [original] = &*stored_ids(&env) else { panic!("one conversation") };
    type_and_wait(&mut chat, "/fork\r", &format!("stays as {original}"));
    converse(&mut chat, "two", "Second.");
    let copy = stored_ids(&env).into_iter().find(|id| id != original).unwrap();
    type_and_wait(&mut chat, &format!("/resume {original}\r"), &format!("continues {original}"));
    assert!(!chat.text().contains("Second."), "the copy is another conversation");
    converse(&mut chat, "three", "Third.");
    type_and_wait(&mut chat, "/export out.md\r", "wrote `out.md`");
    type_and_wait(&mut chat, "/export out.md\r", "cannot write `out.md`");
    let exported = std::fs::read_to_string(env.path().join("out.md")).unwrap();
    let expected =
        "## User\n\none\n\n## Model\n\nFirst.\n\n## User\n\nthree\n\n## Model\n\nThird.\n";
    assert!(exported.ends_with(expected), "{exported}");
    type_and_wait(&mut chat, &format!("/remove {original}\r"), "cannot be removed");
    type_and_wait(&mut chat, &format!("/remove {}\r", &copy[..8]), "no stored conversation");
    type_and_wait(&mut chat, &format!("/remove {copy}\r"), &format!("removed {copy}: one"));
    assert_eq!(stored_ids(&env), std::slice::from_ref(original));
    quit(chat, &env);
}

#[test]
fn up_recalls_the_messages_of_earlier_conversations() {
    let env = ChatEnv::new(fixture("one"));
    for (message, response) in [("about casks", "Casks."), ("about wine", "Wine.")] {
        let mut chat = start(&env, &[text(response)], &[]);
        converse(&mut chat, message, response);
        quit(chat, &env);
    }
    let mut chat = start(&env, &[], &[]);
    type_and_wait(&mut chat, "\x1b[A", "> about wine");
    type_and_wait(&mut chat, "\x1b[A", "> about casks");
    chat.type_keys("\x15");
    type_and_wait(&mut chat, "\x12wine", "search `wine`: about wine");
    type_and_wait(&mut chat, "\r", "> about wine");
    chat.type_keys("\x15");
    quit(chat, &env);
}
