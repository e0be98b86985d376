//! Calls that are wrong, and how the model is asked again.

use std::time::Duration;

use innkeeper_agent::agent::{Event, Settings};
use innkeeper_agent::conversation::Message;
use innkeeper_agent::provider::{Class, LlmError, Response, Scripted};
use innkeeper_agent::turn::{Ended, Limits, Mechanism};
use tokio::time::Instant;

use super::{READ, call, native, prompted, room, say, text_only};

/// Proves: P3, P13, P22
#[tokio::test(start_paused = true)]
async fn a_bad_call_is_corrected_by_asking_again_cooler_with_every_earlier_error() {
    let replies = [
        r#"{"tool": "fs.read", "params": {"path": "#,
        r#"{"tool": "fs.read", "params": {"file": "a"}}"#,
        READ,
        "Done.",
    ];
    let mut room = prompted(replies);
    let begun = Instant::now();
    let report = room.agent.run("Read a.").await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(report.tally.corrections, 2);
    assert_eq!(report.steps[0].mechanism, Mechanism::Corrected);
    assert_eq!(report.steps[0].retries, 2);
    let asked = room.model.asked();
    let cool: Vec<_> = asked.iter().map(|request| request.temperature).collect();
    assert_eq!(cool, [Some(0.7), Some(0.6), Some(0.5), Some(0.7)]);
    let Some(Message::User(again)) = asked[2].messages.last() else { panic!("no question") };
    let (one, two) = (again.find("Attempt 1: "), again.find("Attempt 2: "));
    assert!(again.starts_with("Read a.") && one.is_some() && one < two, "{again}");
    assert!(again.contains("path"), "{again}");
    let waited = begun.elapsed();
    let (least, most) = (Duration::from_secs(3), Duration::from_millis(3900));
    assert!((least..=most).contains(&waited), "{waited:?}");
    assert_eq!(report.lessons.len(), 1);
    assert_eq!(report.lessons[0].attempts.len(), 2);
    assert_eq!(report.lessons[0].corrected, READ);
}

/// Proves: P24
#[tokio::test(start_paused = true)]
async fn each_pause_before_a_correction_is_twice_the_last_with_up_to_three_tenths_added() {
    let bad = |path: &'static str| Ok(Response::text(path));
    let mut jitters = std::collections::BTreeSet::new();
    for _ in 0..20 {
        let replies = [
            bad(r#"{"tool": "fs.read", "params": {"one": 1}}"#),
            bad(r#"{"tool": "fs.read", "params": {"two": 2}}"#),
            bad(r#"{"tool": "fs.read", "params": {"three": 3}}"#),
            say(READ),
            say("Done."),
        ];
        let model = Scripted::new(replies).taking(text_only());
        let mut room = room(model, Settings::default());
        let (mut pauses, begun) = (Vec::new(), Instant::now());
        let report = room
            .agent
            .run_streaming("Read a.", |event| {
                if let Event::Again { after } = event {
                    pauses.push(after);
                }
            })
            .await;
        assert!(report.is_success(), "{report:?}");
        let waited = begun.elapsed();
        assert_eq!(pauses.len(), 3);
        for (pause, seconds) in pauses.iter().zip([1.0, 2.0, 4.0]) {
            let least = Duration::from_secs_f64(seconds);
            assert!((least..=least.mul_f64(1.3)).contains(pause), "{pauses:?}");
        }
        let all: Duration = pauses.iter().sum();
        assert!(waited >= all && waited < all + Duration::from_millis(50), "{waited:?}");
        jitters.insert(pauses[0]);
    }
    assert!(jitters.len() > 10, "{jitters:?}");
}

/// Proves: P10, P23
#[tokio::test(start_paused = true)]
async fn a_missing_parameter_is_named_and_the_form_is_shown_again() {
    let mut room = prompted([r#"{"tool": "fs.read", "params": {}}"#, READ, "Done."]);
    room.agent.run("Read a.").await;
    assert_eq!(room.desk.called().len(), 1);
    let asked = room.model.asked();
    let Some(Message::User(again)) = asked[1].messages.last() else { panic!("no question") };
    assert!(
        again.contains("missing required property `path`") && again.contains("`fs.read`"),
        "{again}"
    );
    assert!(again.contains(r#"{"tool": "name", "params": {...}}"#), "{again}");
}

/// Proves: P34
#[tokio::test(start_paused = true)]
async fn an_unknown_tool_is_answered_with_the_one_that_may_be_meant() {
    let mut room = prompted([r#"{"tool": "fs.reed", "params": {"path": "a"}}"#, READ, "Done."]);
    room.agent.run("Read a.").await;
    let asked = room.model.asked();
    let Some(Message::User(again)) = asked[1].messages.last() else { panic!("no question") };
    assert!(
        again.contains("fs.reed") && again.contains("did you mean") && again.contains("fs.read"),
        "{again}"
    );
}

/// Proves: P29
#[tokio::test(start_paused = true)]
async fn more_calls_than_are_allowed_are_sent_back_and_none_is_run() {
    let six = [READ; 6].join("\n");
    let model =
        Scripted::new([Ok(Response::text(six)), say(READ), say("Done.")]).taking(text_only());
    let limits = Limits { max_calls: 5, ..Limits::default() };
    let mut room = room(model, Settings { limits, ..Settings::default() });
    let report = room.agent.run("Read.").await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(room.desk.called().len(), 1);
    assert_eq!(report.tally.corrections, 1);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_makes_the_same_mistake_twice_is_not_asked_a_third_time() {
    let bad = r#"{"tool": "fs.read", "params": {}}"#;
    let mut room = prompted([bad, bad, READ]);
    let report = room.agent.run("Read a.").await;
    let Ended::NoCall { attempts } = &report.ended else { panic!("{report:?}") };
    assert_eq!(attempts.len(), 2);
    assert!(room.desk.called().is_empty());
    assert_eq!(room.agent.conversation().messages().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_inside_a_providers_error_is_rescued() {
    let mut error = LlmError::new("scripted", Class::Malformed, "error parsing tool call");
    error.written = Some(READ.into());
    let mut room = native([Err(error), say("Done.")]);
    let report = room.agent.run("Read a.").await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(report.steps[0].mechanism, Mechanism::Recovered);
}

/// Proves: G56
#[tokio::test(start_paused = true)]
async fn arguments_that_cannot_be_read_are_an_error_to_the_model() {
    let replies = [
        call("fs.read", "not json"),
        call("fs.read", r#"{"path": 7, "more": 1}"#),
        call("fs.raed", r#"{"path": "a"}"#),
        call("fs.read", r#"{"path": "a"}"#),
        say("Done."),
    ];
    let mut room = native(replies);
    let report = room.agent.run("Read a.").await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(room.desk.called().len(), 1);
    assert_eq!(report.steps[0].mechanism, Mechanism::Corrected);
    let told: Vec<_> = room.model.asked()[4]
        .messages
        .iter()
        .filter_map(|it| match it {
            Message::Results(results) => Some((results[0].is_error, results[0].text.clone())),
            Message::User(_) | Message::Answer(_) => None,
        })
        .collect();
    assert!(told[0].0 && told[0].1.contains("not valid JSON"), "{told:?}");
    assert!(told[1].0 && told[1].1.contains("more"), "{told:?}");
    assert!(told[2].0 && told[2].1.contains("did you mean"), "{told:?}");
    assert!(!told[3].0);
}
