//! In which form tools are offered, and where calls are found.

use innkeeper_agent::agent::{Event, Settings};
use innkeeper_agent::conversation::Message;
use innkeeper_agent::provider::{
    Capabilities, Class, LlmError, LlmProvider, Response, Scripted, Usage,
};
use innkeeper_agent::turn::{Ended, Mechanism, ToolCalling, Way};
use serde_json::json;

use super::{READ, call, native, prompted, room, say, text_only};

#[tokio::test(start_paused = true)]
async fn a_native_call_is_run_and_its_result_leads_to_the_answer() {
    let mut room = native([call("fs.read", r#"{"path": "a"}"#), say("It says a.")]);
    let report = room.agent.run("What is in a?").await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(report.text, "It says a.");
    assert_eq!(room.desk.called(), [("fs.read".to_owned(), json!({"path": "a"}))]);
    assert_eq!((report.tally.iterations, report.tally.requests), (2, 2));
    assert_eq!(report.steps[0].mechanism, Mechanism::Native);
    let asked = room.model.asked();
    assert_eq!(asked[0].tools.len(), 3);
    let Some(Message::Results(results)) = asked[1].messages.last() else { panic!("no results") };
    assert_eq!(results[0].text, r#"fs.read {"path":"a"}"#);
}

/// Proves: P2, P12, P14
#[tokio::test(start_paused = true)]
async fn a_model_without_tools_is_told_of_them_and_its_calls_are_found_in_its_text() {
    let said = "<think>maybe {\"tool\": \"fs.rm\"}</think>I look.\n{\"tool\": \"fs.read\", \"params\": {\"path\": \"a{}b\"}}\n```json\n{\"name\": \"fs.read\", \"arguments\": {\"path\": \"c\"}}\n```\n";
    let mut room = prompted([said, "Both read."]);
    let report = room.agent.run("Read.").await;
    assert_eq!(report.text, "Both read.");
    let paths: Vec<_> = room.desk.called().into_iter().map(|(_, it)| it["path"].clone()).collect();
    assert_eq!(paths, ["a{}b", "c"]);
    assert!(report.steps.iter().all(|step| step.mechanism == Mechanism::Recovered));
    assert_eq!(report.way, Some(Way::Prompt));
    let asked = room.model.asked();
    assert!(asked[0].tools.is_empty() && asked[0].system.contains("fs.read"));
    let Some(Message::User(results)) = asked[1].messages.last() else { panic!("no results") };
    assert!(results.contains(r#""result_of": "fs.read""#), "{results}");
}

/// Proves: P11, P20
#[tokio::test(start_paused = true)]
async fn the_first_request_has_every_schema_and_the_rules_of_calling() {
    let mut room = prompted(["Hello."]);
    room.agent.run("Hi").await;
    let system = room.model.asked().remove(0).system;
    for word in [
        "fs.read",
        "Reads a file.",
        "\"path\"",
        "required",
        "How to Call a Tool",
        r#"{"tool": "name", "params": {...}}"#,
    ] {
        assert!(system.contains(word), "{word} in {system}");
    }
}

/// Proves: P21
#[tokio::test(start_paused = true)]
async fn a_plain_answer_is_taken_at_once() {
    let mut room = prompted(["The tool fs.read reads {files}, but none is needed."]);
    let report = room.agent.run("Hi").await;
    assert!(report.is_success());
    assert_eq!(report.tally.requests, 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_left_in_the_text_of_a_model_with_tools_is_found() {
    let mut room = native([say(READ), say("Done.")]);
    let report = room.agent.run("Read a.").await;
    assert_eq!(report.steps[0].mechanism, Mechanism::Recovered);
    assert_eq!(report.way, Some(Way::Native));
    let asked = room.model.asked();
    let Message::Answer(answer) = &asked[1].messages[1] else { panic!("no answer") };
    assert_eq!(answer.calls().count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_refuses_tools_is_told_of_them_in_its_prompt() {
    let refused = LlmError::new("scripted", Class::NoTools, "does not support tools");
    let mut room = native([Err(refused), say(READ), say("Done.")]);
    let report = room.agent.run("Read a.").await;
    assert!(report.is_success());
    assert_eq!(report.way, Some(Way::Prompt));
    assert!(room.model.asked()[1].system.contains("fs.read"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_drops_tools_is_noticed_by_what_it_read() {
    let usage = Some(Usage { prompt_tokens: 12, ..Usage::default() });
    let blind = Response { usage, ..Response::text("I have no tools.") };
    let takes = Capabilities { native_tools: true, may_drop_tools: true, ..text_only() };
    let model = Scripted::new([Ok(blind), say(READ), say("Done.")]).taking(takes);
    let mut room = room(model, Settings::default());
    let report = room.agent.run("Read a.").await;
    assert_eq!(report.way, Some(Way::Prompt));
    assert_eq!(room.desk.called().len(), 1);
    assert!(!report.tally.usage_is_whole);
}

#[tokio::test(start_paused = true)]
async fn text_is_shown_while_it_is_written_without_the_calls_in_it() {
    let said = "Let me look.\n{\"tool\": \"fs.read\", \"params\": {\"path\": \"a\"}}";
    let mut room = prompted([said, "It says a."]);
    let mut shown = String::new();
    let mut told = Vec::new();
    let report = room
        .agent
        .run_streaming("What is in a?", |event| match event {
            Event::Text(text) => shown.push_str(text),
            Event::Running { tool, .. } => told.push(format!("running {tool}")),
            Event::Ran(step) => told.push(format!("ran {} {}", step.tool, step.success)),
            Event::Reasoning(_) | Event::CallStart { .. } | Event::Again { .. } => {}
        })
        .await;
    assert!(report.is_success());
    assert_eq!(shown.replace('\n', ""), "Let me look.It says a.");
    assert_eq!(told, ["running fs.read", "ran fs.read true"]);
}

#[tokio::test(start_paused = true)]
async fn only_the_prompt_is_used_where_that_is_wanted() {
    let replies = [say(READ), say("Done.")];
    let settings = Settings { calling: ToolCalling::Prompt, ..Settings::default() };
    let mut room = room(Scripted::new(replies), settings);
    assert!(room.agent.run("Read.").await.is_success());
    assert!(room.model.asked().iter().all(|request| request.tools.is_empty()));
    assert_eq!(room.model.name(), "scripted");
}

#[tokio::test(start_paused = true)]
async fn only_the_providers_own_form_is_used_where_that_is_wanted() {
    let refused = LlmError::new("scripted", Class::NoTools, "does not support tools");
    let settings = Settings { calling: ToolCalling::Native, ..Settings::default() };
    let report = room(Scripted::new([Err(refused), say("unused")]), settings).agent.run("Hi").await;
    assert!(matches!(report.ended, Ended::Failed(_)), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn thoughts_in_the_text_of_an_answer_are_not_part_of_it() {
    let mut room = prompted(["<think>Hm, easy.</think>It is 5."]);
    let report = room.agent.run("2 + 3?").await;
    assert_eq!(report.text, "It is 5.");
}
