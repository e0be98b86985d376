//! Tests of questions and calls in the chat line by line.

use innkeeper_testkit::{Journal, ScriptedReply, fixture};
use serde_json::{Value, json};

use super::{ChatEnv, add_call, text};
use crate::terminal::Typing;

fn typing(shown: &'static str, keys: &'static str) -> Typing {
    Typing { shown, keys }
}

fn call(a: u8) -> ScriptedReply {
    ScriptedReply::tool_call("one.add", json!({"a": a, "b": 3}))
}

/// Returns the arguments of the calls that the server got.
fn called_arguments(env: &ChatEnv) -> Vec<Value> {
    let journal = Journal::read(&env.path().join("journal"));
    journal.params("tools/call").iter().map(|params| params["arguments"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_changes_the_arguments_of_a_call_before_it_runs() {
    let replies = [call(2), call(4), ScriptedReply::text("Both done.")];
    let env = ChatEnv::new(fixture("one"), replies).await;
    let typed = [
        typing(">", "Add.\n"),
        typing(r#"{"a":2,"b":3}? The tool"#, "e\n"),
        typing("Type other arguments", "\n"),
        typing("the arguments are no JSON object: EOF", "[1]\n"),
        typing("invalid type: sequence", "/cancel\n"),
        typing("not pinned.\r\n", ""),
        typing("(/cancel keeps them):", "e {\"a\": 40, \"b\": 2}\n"),
        typing(r#"{"a":4,"b":3}? The tool"#, "e {\"a\"\n"),
        typing("EOF while parsing an object", "{\"a\": 1, \"b\": 1}\n"),
        typing("Both done.", "/quit\n"),
    ];
    let typed: Vec<Typing> = typed.into_iter().filter(|typed| !typed.keys.is_empty()).collect();
    env.type_keys(&["--plain"], &typed);
    assert_eq!(called_arguments(&env), [json!({"a": 40, "b": 2}), json!({"a": 1, "b": 1})]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_gets_the_reason_of_a_denial_and_a_denied_tool_asks_no_more() {
    let replies = [call(2), call(4), call(6), ScriptedReply::text("Not added.")];
    let env = ChatEnv::new(fixture("one"), replies).await;
    let typed = [
        typing(">", "Add.\n"),
        typing(r#"{"a":2,"b":3}? The tool"#, "no, use the other server\n"),
        typing(r#"{"a":4,"b":3}? The tool"#, "N\n"),
        typing("Not added.", "/rules\n"),
        typing("denied", "/quit\n"),
    ];
    env.type_keys(&["--plain"], &typed);
    assert_eq!(called_arguments(&env), [] as [Value; 0]);
    let requests = env.llm.requests();
    for (index, result) in [
        (1, "the user denied the call: use the other server"),
        (2, "the user denied the call"),
        (3, "the user does not allow this tool in this conversation"),
    ] {
        let last = requests[index].body["messages"].as_array().unwrap().last().unwrap().to_string();
        assert!(last.contains(result), "{last}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_second_question_waits_until_the_first_is_answered() {
    use std::time::Duration;

    use super::two_servers_with_forms;
    use crate::terminal::TerminalSession;

    let (servers, calls) = two_servers_with_forms();
    let env = ChatEnv::with_servers(servers, [calls, ScriptedReply::text("Both done.")]).await;
    let command = env.command(&["--plain", "--approve", "all"]);
    let mut chat = TerminalSession::start(&command, (24, 80));
    chat.wait_for_text(">");
    chat.type_keys("Add.\n");
    chat.wait_for_text("which colour?");
    let is_called = || Journal::read_unchecked(&env.path().join("journal")).count("tools/call");
    chat.wait_for("call of each server", |_| is_called() == 2);
    // Shows the second question, if nothing holds the question back.
    chat.watch(Duration::from_millis(300));
    assert_eq!(chat.text().matches("which colour?").count(), 1, "{}", chat.text());
    chat.type_keys("blue\n");
    chat.wait_for("second question", |chat| chat.text().matches("which colour?").count() == 2);
    chat.type_keys("red\n");
    chat.wait_for_text("Both done.");
    chat.type_keys("/quit\n");
    assert_eq!(chat.wait_exit(Duration::from_secs(10)).code(), Some(0), "{}", chat.text());
    let form = |colour: &str| json!({"action": "accept", "content": {"colour": colour}});
    let journal = Journal::read(&env.path().join("journal"));
    let responses: Vec<&Value> = journal.responses().iter().map(|it| &it["result"]).collect();
    assert_eq!(responses.len(), 2, "{responses:?}");
    assert!(["blue", "red"].iter().all(|it| responses.contains(&&form(it))), "{responses:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawn_question_says_so_and_takes_no_line() {
    let server = fixture("one").switch("--ask-elicit").with("--era", "modern");
    let server = server.config_key("timeout", 0.5).config_key("maxTotalTimeout", 0.5);
    let replies = [call(2), call(4), ScriptedReply::text("First."), ScriptedReply::text("Second.")];
    let env = ChatEnv::new(server, replies).await;
    let typed = [typing(">", "Add.\n"), typing("First.", "yes\n"), typing("Second.", "/quit\n")];
    let screens = env.type_keys(&["--plain", "--approve", "all"], &typed);
    let count = |text: &str| screens[1].matches(text).count();
    let counts = (count("which colour?"), count("note: the question was withdrawn"));
    assert_eq!(counts, (2, 2), "{}", screens[1]);
    assert!(env.llm.requests()[3].body.to_string().contains("\"yes\""));
}

/// Attack: terminal | a person closes the input while a question is open | the call is denied, and the
/// program ends | No unbounded wait
#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_input_denies_the_open_question() {
    let env = ChatEnv::new(fixture("one"), [call(2), ScriptedReply::text("Not added.")]).await;
    let typed = [typing(">", "Add.\n"), typing(r#"{"a":2,"b":3}? The tool"#, "\u{4}")];
    env.type_keys(&["--plain"], &typed);
    assert_eq!(called_arguments(&env), [] as [Value; 0]);
    let result = env.llm.requests()[1].body.to_string();
    assert!(result.contains("nobody can approve the call"), "{result}");
}

#[tokio::test]
async fn a_call_prints_its_start_and_one_line_of_a_thousand_steps() {
    let server = fixture("one").with("--progress", 1_000).with("--progress-message", "adding");
    let env = ChatEnv::new(server, [add_call(), ScriptedReply::text("It is 5.")]).await;
    let output = env.run(&["--approve", "all"], "Add 2 and 3.\n").await;
    assert_eq!(text(&output.stdout), "I add.\nIt is 5.\n");
    let stderr = text(&output.stderr);
    let position = |part: &str| stderr.find(part).unwrap_or_else(|| panic!("{part}: {stderr}"));
    let start = position(r#"calling: `one.add` {"a":2,"b":3}"#);
    let progress = position("progress: `one.add` 1/1000 adding");
    assert!(start < progress && progress < position("called: `one.add`"), "{stderr}");
    let lines = stderr.lines().filter(|line| line.contains("progress: ")).count();
    assert!(lines < 20, "{stderr}");
}

#[tokio::test]
async fn a_call_that_is_not_native_prints_how_the_model_made_it() {
    let written = r#"<tool_call>{"name": "one.add", "arguments": {"a": 2, "b": 3}}</tool_call>"#;
    let replies = [ScriptedReply::text(written), ScriptedReply::text("It is 5."), call(4)];
    let replies = replies.into_iter().chain([ScriptedReply::text("It is 7.")]);
    let env = ChatEnv::new(fixture("one"), replies).await;
    let output = env.run(&["--approve", "all"], "Add 2 and 3.\nAdd 4 and 3.\n").await;
    let stderr = text(&output.stderr);
    let called: Vec<&str> = stderr.lines().filter(|line| line.contains("called: ")).collect();
    let [recovered, native] = &*called else { panic!("{stderr}") };
    assert!(recovered.ends_with(" ms, recovered"), "{stderr}");
    assert!(native.ends_with(" ms"), "{stderr}");
}

#[tokio::test]
async fn a_line_above_the_limit_is_not_sent() {
    let env = ChatEnv::new(fixture("one"), [ScriptedReply::text("Hello.")]).await;
    let stdin = format!("{}\nHi\n", "x".repeat((4 << 20) + 1));
    let output = env.run(&[], &stdin).await;
    assert_eq!(text(&output.stdout), "Hello.\n");
    let requests = env.llm.requests();
    let [request] = &*requests else { panic!("{} requests", requests.len()) };
    assert_eq!(request.body["messages"][0]["content"][0]["text"], "Hi");
    assert!(text(&output.stderr).contains("note: the line is longer than 4 MiB"));
}
