//! Tests of `chat --record` on a terminal.

use innkeeper_testkit::{ScriptedLlm, ScriptedReply, fixture};

use super::chat_env::ChatEnv;
use super::{EMPTY_EDITOR, EXIT_LIMIT, SIZE, quit};
use crate::program::run;
use crate::terminal::TerminalSession;

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_on_a_terminal_is_recorded_when_the_person_leaves() {
    let env = ChatEnv::new(fixture("one"));
    let llm = ScriptedLlm::start(["Hello.", "You too."].map(ScriptedReply::text)).await;
    let command = env.with_http_model(&llm, &["--record", "hi.json"]);
    let mut chat = TerminalSession::start(&command, SIZE);
    chat.wait_for_text(EMPTY_EDITOR);
    chat.type_keys("Hi\r");
    chat.wait_for_text("Hello.");
    chat.type_keys("/undo\r");
    chat.wait_for_text("/undo is not possible while the chat is recorded");
    chat.type_keys("Bye\r");
    chat.wait_for_text("You too.");
    chat.wait_for("end of the run", |chat| !chat.text().contains("Esc stops"));
    quit(chat, &env);
    let replayed = run(&["golden", "replay", "hi.json"], env.path());
    assert!(replayed.status.success(), "{}", String::from_utf8_lossy(&replayed.stdout));
    let shown = run(&["golden", "inspect", "hi.json"], env.path());
    assert!(String::from_utf8_lossy(&shown.stdout).contains("then      Bye"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_with_a_stopped_response_is_not_recorded_and_says_why() {
    let env = ChatEnv::new(fixture("one"));
    let hanging = ScriptedReply::text("Once upon").never_responds();
    let llm = ScriptedLlm::start([hanging, ScriptedReply::text("Here.")]).await;
    let command = env.with_http_model(&llm, &["--record", "story.json"]);
    let mut chat = TerminalSession::start(&command, SIZE);
    chat.wait_for_text(EMPTY_EDITOR);
    chat.type_keys("Tell a story.\r");
    llm.wait_for(EXIT_LIMIT, |requests| requests.iter().any(|one| one.method == "POST")).await;
    chat.wait_for_text("waiting for the model");
    chat.type_keys("\x1b");
    chat.wait_for_text("interrupted");
    chat.type_keys("Are you there?\r");
    chat.wait_for_text("Here.");
    chat.type_keys("/quit\r");
    let status = chat.wait_exit(EXIT_LIMIT);
    assert_eq!(status.code(), Some(1), "{}", chat.text());
    assert!(chat.text().contains("not recorded in `story.json`"), "{}", chat.text());
    assert!(chat.text().contains("a response was interrupted"), "{}", chat.text());
    assert!(!env.path().join("story.json").exists());
    env.wait_no_process();
}
