//! Calls that a server holds to their form.

use innkeeper_agent::agent::Settings;
use innkeeper_agent::conversation::Message;
use innkeeper_agent::provider::{
    Capabilities, Constraint, Constraints, Finish, Response, Scripted,
};
use innkeeper_agent::turn::{Ended, Mechanism, ToolCalling};

use super::{READ, Reply, Room, room, say, text_only};

#[tokio::test(start_paused = true)]
async fn where_the_server_can_hold_an_answer_to_a_form_it_is_the_last_resort() {
    let bad = r#"{"tool": "fs.read", "params": {}}"#;
    let constraints = Constraints { json_schema: true, ..Constraints::default() };
    let held = r#"{"name": "fs.read", "arguments": {"path": "a"}}"#;
    let replies = [say(bad), say(bad), say(held), say("Done.")];
    let model = Scripted::new(replies).taking(Capabilities { constraints, ..text_only() });
    let mut room = room(model, Settings::default());
    let report = room.agent.run("Read a.").await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(report.steps[0].mechanism, Mechanism::Constrained);
    let asked = room.model.asked();
    assert!(matches!(asked[2].constraint, Some(Constraint::JsonSchema(_))));
    assert!(asked[3].constraint.is_none());
}

fn holding() -> Capabilities {
    let constraints = Constraints { json_schema: true, ..Constraints::default() };
    Capabilities { constraints, native_tools: true, ..text_only() }
}

fn wanted(replies: impl IntoIterator<Item = Reply>, capabilities: Capabilities) -> Room {
    let calling = ToolCalling::Constrained;
    let settings = Settings { calling, temperature: Some(0.7), ..Settings::default() };
    room(Scripted::new(replies).taking(capabilities), settings)
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_wanted_is_held_to_its_form_at_once_and_the_answer_to_its_result_is_free() {
    let mut room = wanted([say(READ), say("It says a."), say(READ), say("Still a.")], holding());
    for answer in ["It says a.", "Still a."] {
        let report = room.agent.run("Read a.").await;
        assert_eq!((report.is_success(), &*report.text), (true, answer), "{report:?}");
        let step = &report.steps[0];
        assert_eq!((step.mechanism, step.retries), (Mechanism::Constrained, 0));
    }
    let asked = room.model.asked();
    let held: Vec<_> = asked.iter().map(|request| request.constraint.is_some()).collect();
    assert_eq!(held, [true, false, true, false], "each message anew");
    assert!(asked[0].tools.is_empty() && asked[0].system.contains("fs.read"));
    let Some(Constraint::JsonSchema(schema)) = &asked[0].constraint else { panic!("no schema") };
    let keys: Vec<_> = schema["anyOf"][0]["properties"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["tool", "params"], "the form that the prompt shows");
    let Message::Answer(worked) = &asked[0].messages[1] else { panic!("no example") };
    assert!(worked.shown().starts_with(r#"{"tool": "#), "{worked:?}");
    let lengths: Vec<_> = asked.iter().map(|request| request.messages.len()).collect();
    assert_eq!(lengths, [3, 3, 7, 7], "the example stands before what was said, and is not kept");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_wanted_and_comes_out_wrong_is_asked_for_again_in_the_same_form() {
    let cut = Response { finish: Finish::Length, ..Response::text(&READ[..30]) };
    let mut room = wanted([Ok(cut), say(READ), say("Done.")], holding());
    let report = room.agent.run("Read a.").await;
    assert!(report.is_success(), "{report:?}");
    let step = &report.steps[0];
    assert_eq!((step.mechanism, step.retries), (Mechanism::Constrained, 1));
    let held: Vec<_> = room.model.asked().iter().map(|it| it.constraint.is_some()).collect();
    assert_eq!(held, [true, true, false]);
    let bad = r#"{"tool": "fs.read", "params": {}}"#;
    let mut room = wanted([say(bad), say(bad), say(READ)], holding());
    let report = room.agent.run("Read a.").await;
    assert!(matches!(report.ended, Ended::NoCall { .. }), "the same mistake twice: {report:?}");
}

#[tokio::test(start_paused = true)]
async fn where_no_server_holds_a_call_that_is_wanted_it_is_asked_for_in_the_prompt() {
    let mut room = wanted([say(READ), say("Done.")], text_only());
    let report = room.agent.run("Read a.").await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(report.steps[0].mechanism, Mechanism::Recovered);
    assert!(room.model.asked().iter().all(|request| request.constraint.is_none()));
}
