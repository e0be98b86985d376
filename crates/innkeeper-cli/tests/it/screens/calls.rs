//! Screens of `call`, `prompt`, `read` and `ask`.

use std::thread;
use std::time::Duration;

use innkeeper_testkit::{Fixture, Journal, Script, ScriptedLlm, ScriptedReply, fixture};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::Project;

#[test]
fn a_server_that_dies_during_a_call_is_one_error() {
    let project = Project::new([fixture("one").with("--crash-after", 1)]);
    insta::assert_snapshot!(project.screens("call one.echo message=hi"));
}

#[test]
fn the_result_of_a_call_is_text_for_people_and_one_object_for_programs() {
    let result = json!({
        "content": [
            {"type": "text", "text": "Two rooms are free."},
            {"type": "resource_link", "uri": "fx://one/rooms", "name": "rooms"},
        ],
        "structuredContent": {"rooms": [
            {"name": "north", "beds": 2, "note": "Its window shows the yard and the old well."},
            {"name": "attic", "beds": 1, "note": null},
        ]}
    });
    let project = Project::new([fixture("one").with("--call-result", result)]);
    insta::assert_snapshot!(project.screens("call one.pid"));
}

#[test]
fn a_tool_that_reports_an_error_shows_its_text_and_the_tool() {
    let project = Project::new([fixture("one")]);
    insta::assert_snapshot!(project.screens("call one.fail"));
}

#[test]
fn wrong_arguments_are_named_with_what_to_type_instead() {
    let tools = json!([{
        "name": "greet",
        "inputSchema": {
            "type": "object",
            "properties": {
                "names": {"type": "array", "items": {"type": "string"}},
                "times": {"type": "integer"}
            },
            "required": ["names"]
        }
    }]);
    let project = Project::new([fixture("one").with("--tools", tools)]);
    insta::assert_snapshot!(
        "unusable_arguments",
        project.screens("call one.greet names=[Ann times=many nmaes=Ann")
    );
    insta::assert_snapshot!("a_missing_argument", project.screens("call one.greet times=2"));
}

#[test]
fn a_repeated_fault_of_a_server_is_one_warning() {
    let server = fixture("one").with("--progress", 2).switch("--bad-progress");
    let project = Project::new([server]);
    insta::assert_snapshot!(project.screens("call one.echo message=hi"));
}

#[test]
fn a_call_without_an_answer_names_the_option_that_allows_more_time() {
    let project = Project::new([fixture("one")]);
    insta::assert_snapshot!(project.screens("call one.sleep ms=60000 --timeout 0.2"));
}

/// Returns the screens of a call of this server that a signal interrupts.
fn interrupted_call(server: Fixture) -> String {
    let project = Project::new([server.journal("journal".as_ref())]);
    let journal = project.path().join("journal");
    project.screens_while("call one.sleep ms=60000 --config mcp.json", |child| {
        while Journal::read(&journal).count("tools/call") == 0 {
            assert!(child.try_wait().unwrap().is_none(), "the program ended before the call");
            thread::sleep(Duration::from_millis(10));
        }
        std::fs::remove_file(&journal).unwrap();
        kill_process(Pid::from_child(child), Signal::INT).unwrap();
    })
}

#[test]
fn an_interrupted_call_prints_nothing() {
    insta::assert_snapshot!(interrupted_call(fixture("one")));
}

#[test]
fn an_interrupted_call_says_which_server_it_waits_for() {
    let server = fixture("one").switch("--ignore-eof").switch("--ignore-sigterm");
    insta::assert_snapshot!(interrupted_call(server.config_key("shutdownTimeout", 1.5)));
}

#[test]
fn a_prompt_is_its_messages_and_a_missing_argument_names_itself() {
    let project = Project::new([fixture("one")]);
    insta::assert_snapshot!("a_prompt", project.screens("prompt one.greet name=Ada"));
    insta::assert_snapshot!("a_prompt_without_its_argument", project.screens("prompt one.greet"));
}

#[test]
fn a_resource_is_its_text() {
    let project = Project::new([fixture("one")]);
    insta::assert_snapshot!("a_resource", project.screens("read fx://one/static"));
    insta::assert_snapshot!("an_unknown_resource", project.screens("read fx://one/gone"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_a_thinking_model_is_its_text_below_the_calls() {
    let call = ScriptedReply::reasoning("Two numbers.")
        .with_text("I add.")
        .with_tool_call("one.add", json!({"a": 2, "b": 3}));
    let replies = [call, ScriptedReply::reasoning("Five.").with_text("It is 5.")];
    let llm = ScriptedLlm::start(Script::new([&replies[..]; 3].concat())).await;
    let project = Project::new([fixture("one")]);
    let line =
        format!("ask 'What is 2 + 3?' --provider ollama --model qwen3 --base-url {}", llm.origin());
    insta::assert_snapshot!(project.screens(&line).replace(llm.origin(), "http://MODEL"));
}
