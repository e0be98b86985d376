//! The first minutes of a user with the demo's servers and the real local model.

use std::process::Command;
use std::time::Duration;

use innkeeper_testkit::fixture;

use super::chat_env::{ChatEnv, send_signal};
use super::{EMPTY_EDITOR, EXIT_LIMIT, SIZE};
use crate::model::models_dir;
use crate::terminal::TerminalSession;

/// Timeout of one run of the model on a loaded machine.
const RUN_LIMIT: Duration = Duration::from_secs(90);

/// The first words of the keys of an approval.
const QUESTION: &str = "y once";

fn command(env: &ChatEnv, args: &[&str]) -> Command {
    let mut command = env.chat(&[&["--demo", "--provider", "local"], args].concat());
    command.env("XDG_DATA_HOME", env.path()).env("TMPDIR", env.path());
    command
}

fn is_running(chat: &TerminalSession) -> bool {
    chat.text().contains("Esc stops")
}

/// Sends a message and waits until the run has started.
fn send(chat: &mut TerminalSession, message: &str) {
    chat.type_keys(&format!("{message}\r"));
    chat.wait_for("run", is_running);
}

/// Waits until the run ends; denies each call.
fn wait_end(chat: &mut TerminalSession) {
    let asks = |chat: &TerminalSession| chat.text().contains(QUESTION);
    while is_running(chat) {
        chat.wait_within(RUN_LIMIT, "end of the run", |chat| !is_running(chat) || asks(chat));
        if asks(chat) {
            chat.type_keys("n");
            chat.wait_for("denial", |chat| !asks(chat));
        }
    }
}

#[test]
#[ignore = "needs the local model: `cargo xtask test` runs it"]
fn a_newcomer_asks_approves_interrupts_attaches_saves_and_resumes_after_a_kill() {
    let env = ChatEnv::new(fixture("unused"));
    let data = env.path().join("innkeeper");
    std::fs::create_dir(&data).unwrap();
    let models = std::fs::canonicalize(models_dir()).unwrap();
    std::os::unix::fs::symlink(models, data.join("models")).unwrap();
    let mut chat = TerminalSession::start(&command(&env, &[]), (60, 200));
    chat.wait_within(RUN_LIMIT, "editor", |chat| chat.text().contains(EMPTY_EDITOR));
    send(&mut chat, "Add a note with the title `cider` and the text `twelve casks`.");
    chat.wait_within(RUN_LIMIT, "question", |chat| chat.text().contains(QUESTION));
    chat.type_keys("y");
    chat.wait_within(RUN_LIMIT, "result", |chat| chat.text().contains("ok notes.add_note"));
    wait_end(&mut chat);
    send(&mut chat, "Write a long story about a king.");
    chat.wait_within(RUN_LIMIT, "words", |chat| chat.text().contains("the model writes"));
    chat.type_keys("\x1b");
    chat.wait_for_text("interrupted");
    chat.type_keys("/resources\r");
    chat.wait_for_text("cellar.md");
    let uri = first_resource(&chat);
    chat.type_keys(&format!("/attach {uri}\r"));
    chat.wait_for_text("attached: ");
    send(&mut chat, "Which wine is in the file?");
    wait_end(&mut chat);
    assert!(!chat.text().contains("attached: "), "{}", chat.text());
    chat.type_keys("/save Cellar\r");
    chat.wait_for_text("stored as `Cellar`");
    send_signal("-KILL", chat.id());
    chat.wait_exit(EXIT_LIMIT);
    env.wait_no_process_of_directory();
    let listed = env.chat(&["--list"]).output().unwrap();
    assert!(String::from_utf8_lossy(&listed.stdout).contains("Cellar"), "{listed:?}");
    let mut chat = TerminalSession::start(&command(&env, &["--resume"]), SIZE);
    chat.wait_within(RUN_LIMIT, "editor", |chat| chat.text().contains(EMPTY_EDITOR));
    chat.wait_for_text("Which wine is in the file?");
    send(&mut chat, "Thank you.");
    wait_end(&mut chat);
    chat.type_keys("/quit\r");
    let status = chat.wait_exit(EXIT_LIMIT);
    assert_eq!(status.code(), Some(0), "{}", chat.text());
    env.wait_no_process_of_directory();
}

/// Returns the URI of the first resource on the screen.
fn first_resource(chat: &TerminalSession) -> String {
    let text = chat.text();
    let uri = text.split_whitespace().find(|word| word.starts_with("file://"));
    uri.unwrap_or_else(|| panic!("no resource:\n{text}")).to_owned()
}
