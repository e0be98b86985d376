//! The time from a key to the screen, the memory and the start, under load.

use std::time::Duration;

use innkeeper_testkit::fixture;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::chat_env::ChatEnv;
use super::token_stream::serve_tokens;
use super::{EMPTY_EDITOR, SIZE, quit};
use crate::terminal::TerminalSession;

/// Minimum time from one key on the screen to the next key.
const KEY_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum of the median time from a key to the screen.
const MAX_MEDIAN: Duration = Duration::from_millis(50);

/// Maximum time from a key to the screen.
const MAX_KEY_TIME: Duration = Duration::from_millis(500);

/// The same for the moment in which a result arrives: without optimization, reading ten megabytes of
/// JSON takes most of a second.
const MAX_KEY_TIME_OF_RESULT: Duration =
    if cfg!(debug_assertions) { Duration::from_secs(3) } else { MAX_KEY_TIME };

/// Maximum time that a conversation of a thousand exchanges adds to the start.
const MAX_RESUME_TIME: Duration = Duration::from_secs(1);

/// The key that opens all calls: Ctrl-O.
const OPEN_CALLS: &str = "\x0f";

/// Maximum growth of the memory in KiB.
const MAX_GROWTH: u64 = 150 << 10;

/// Returns the memory of a process in KiB.
fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Types one letter after the other until a condition is met; returns the time of each letter until
/// the letter is on the screen.
fn type_until(
    chat: &mut TerminalSession,
    is_over: impl Fn(&TerminalSession) -> bool,
) -> Vec<Duration> {
    let (mut times, mut typed) = (Vec::new(), String::new());
    while !is_over(chat) {
        let letter = char::from(b'a' + u8::try_from(typed.len() % 26).unwrap());
        typed.push(letter);
        let shown = format!("> {typed}");
        chat.type_keys(&letter.to_string());
        let limit = Duration::from_secs(10);
        times.push(chat.wait_within(limit, &shown, |chat| chat.text().contains(&shown)));
        // Another interval each time, so that the keys meet each moment between two frames.
        chat.watch(KEY_INTERVAL + Duration::from_millis(times.len() as u64 * 37 % 50));
        if typed.len() == 60 {
            remove_typed(chat, &mut typed);
        }
    }
    remove_typed(chat, &mut typed);
    times
}

fn remove_typed(chat: &mut TerminalSession, typed: &mut String) {
    chat.type_keys(&"\x7f".repeat(typed.len()));
    chat.wait_for_text(EMPTY_EDITOR);
    typed.clear();
}

#[track_caller]
fn assert_fast(mut times: Vec<Duration>, max_time: Duration) {
    assert!(times.len() >= 3, "{} keys", times.len());
    times.sort_unstable();
    let (median, max) = (times[times.len() / 2], times[times.len() - 1]);
    assert!(median < MAX_MEDIAN && max < max_time, "median {median:?}, maximum {max:?}");
}

#[test]
fn keys_reach_the_screen_at_once_during_a_stream_of_a_hundred_thousand_tokens() {
    let env = ChatEnv::new(fixture("one"));
    let origin = serve_tokens(100_000, 5_000);
    let mut chat = TerminalSession::start(&env.with_model_at(&origin, &[]), SIZE);
    chat.wait_for_text(EMPTY_EDITOR);
    let before = memory(chat.id());
    chat.type_keys("Tell a story.\r");
    chat.wait_for_text("the model writes");
    let times = type_until(&mut chat, |chat| !chat.text().contains("Esc stops"));
    assert!(chat.text().contains("word99999"), "{}", chat.text());
    let growth = memory(chat.id()) - before;
    assert_fast(times, MAX_KEY_TIME);
    assert!(growth < MAX_GROWTH, "{before} KiB grew by {growth} KiB");
    quit(chat, &env);
}

/// A chat after a call, the memory before the call, and the times of keys during the call.
struct CallUnderLoad {
    chat: TerminalSession,
    memory: u64,
    times: Vec<Duration>,
}

/// Types letters while the model calls a tool, until the response ends.
fn type_during_call(env: &ChatEnv) -> CallUnderLoad {
    let call = json!({"calls": [{"name": "one.add", "arguments": {"a": 2, "b": 3}}]});
    let replies = [call, json!({"text": "Done."})];
    let mut chat = TerminalSession::start(&env.scripted(&replies, &["--approve", "all"]), SIZE);
    chat.wait_for_text(EMPTY_EDITOR);
    let memory = memory(chat.id());
    chat.type_keys("Add.\r");
    let times = type_until(&mut chat, |chat| chat.text().contains("Done."));
    CallUnderLoad { chat, memory, times }
}

#[test]
fn keys_reach_the_screen_at_once_while_a_result_of_ten_megabytes_arrives() {
    let env = ChatEnv::new(fixture("one").with("--huge", 10_000_000));
    let CallUnderLoad { mut chat, memory: before, mut times } = type_during_call(&env);
    chat.type_keys(OPEN_CALLS);
    chat.wait_for_text("bytes more; y copies the text");
    let end = Instant::now() + Duration::from_secs(2);
    times.extend(type_until(&mut chat, |_| Instant::now() > end));
    let growth = memory(chat.id()) - before;
    assert_fast(times, MAX_KEY_TIME_OF_RESULT);
    assert!(growth < MAX_GROWTH, "{before} KiB grew by {growth} KiB");
    quit(chat, &env);
}

/// Attack: terminal | a server logs 50,000 messages at once | keys reach the screen, and the screen
/// says how many messages were left out | No unbounded memory
#[test]
fn keys_reach_the_screen_at_once_while_a_server_logs_without_an_end() {
    let server = fixture("one").with("--log-flood", 50_000).with("--log-level", "error");
    let env = ChatEnv::new(server);
    let CallUnderLoad { mut chat, memory: before, mut times } = type_during_call(&env);
    let end = Instant::now() + Duration::from_secs(1);
    times.extend(type_until(&mut chat, |_| Instant::now() > end));
    assert!(chat.text().contains("log messages left out: "), "{}", chat.text());
    let lines = chat.text().matches("log one error (flood)").count();
    assert!(lines <= 15, "{lines} lines\n{}", chat.text());
    let growth = memory(chat.id()) - before;
    assert_fast(times, MAX_KEY_TIME);
    assert!(growth < MAX_GROWTH, "{before} KiB grew by {growth} KiB");
    quit(chat, &env);
}

/// Returns the time from the start to the first frame with a text.
fn start_time(env: &ChatEnv, args: &[&str], text: &str) -> Duration {
    let start = Instant::now();
    let mut chat = TerminalSession::start(&env.scripted(&[], args), SIZE);
    chat.wait_for_text(text);
    let time = start.elapsed();
    chat.wait_for_text(EMPTY_EDITOR);
    quit(chat, env);
    time
}

#[test]
fn a_conversation_of_a_thousand_exchanges_is_on_the_screen_within_a_second() {
    let env = ChatEnv::new(fixture("one"));
    let call = json!({"calls": [{"name": "one.add", "arguments": {"a": 2, "b": 3}}]});
    // The program writes one exchange; the test repeats the messages with other ids.
    let paragraph = "A sentence with **bold** words and `code`. ".repeat(20);
    let replies = [call, json!({"text": paragraph})];
    let mut chat = TerminalSession::start(&env.scripted(&replies, &["--approve", "all"]), SIZE);
    chat.wait_for_text(EMPTY_EDITOR);
    chat.type_keys("Add two and three.\r");
    chat.wait_for_text("A sentence");
    chat.wait_for("end of the run", |chat| !chat.text().contains("Esc stops"));
    quit(chat, &env);
    env.repeat_stored_messages(1_000);
    let listed = env.chat(&["--list", "--json"]).output().unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed["conversations"][0]["messages"], 4_000, "{listed}");
    let empty = start_time(&env, &[], "Ask something");
    let resumed = start_time(&env, &["--resume"], "A sentence");
    assert!(resumed < empty + MAX_RESUME_TIME, "{resumed:?} instead of {empty:?}");
    // Another conversation finds the messages when a key needs them.
    let mut chat = TerminalSession::start(&env.scripted(&[], &[]), SIZE);
    chat.wait_for_text(EMPTY_EDITOR);
    chat.type_keys("\x1b[A");
    let found = "> Add two and three.";
    chat.wait_within(MAX_RESUME_TIME, found, |chat| chat.text().contains(found));
    chat.type_keys("\x15");
    quit(chat, &env);
}
