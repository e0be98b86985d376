//! Providers that fail, and answers that are none.

use std::time::Duration;

use innkeeper_agent::agent::Settings;
use innkeeper_agent::provider::{Class, Finish, LlmError, Response, Scripted};
use innkeeper_agent::turn::{Ended, Limits};
use tokio::time::Instant;

use super::{native, room, say};

#[tokio::test(start_paused = true)]
async fn a_provider_that_fails_for_a_moment_is_asked_again_when_it_says() {
    let later = |after| LlmError::new("scripted", Class::Later { after }, "overloaded");
    let wait = Some(Duration::from_secs(7));
    let mut room = native([Err(later(wait)), Err(later(None)), say("Done.")]);
    let begun = Instant::now();
    let report = room.agent.run("Hi").await;
    assert!(report.is_success());
    assert_eq!(report.tally.repeated, 2);
    let waited = begun.elapsed().as_millis();
    assert!((8_000..=8_301).contains(&waited), "{waited}");
}

#[tokio::test(start_paused = true)]
async fn all_repeated_requests_of_a_turn_come_out_of_one_budget() {
    let fails = || Err(LlmError::new("scripted", Class::Connection, "reset"));
    let bad = || say(r#"{"tool": "fs.read", "params": {}}"#);
    let replies = [fails(), bad(), fails(), say("unused")];
    let limits = Limits { retry_budget: 2, ..Limits::default() };
    let mut room = room(Scripted::new(replies), Settings { limits, ..Settings::default() });
    let report = room.agent.run("Hi").await;
    assert!(matches!(report.ended, Ended::Failed(_)), "{report:?}");
    assert_eq!((report.tally.repeated, report.tally.corrections), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_asking_again_does_not_mend_is_told_at_once() {
    for class in [
        Class::Key,
        Class::Billing,
        Class::TooLong,
        Class::Later { after: Some(Duration::from_secs(121)) },
    ] {
        let mut room = native([Err(LlmError::new("scripted", class, "no")), say("unused")]);
        let report = room.agent.run("Hi").await;
        let Ended::Failed(error) = &report.ended else { panic!("{report:?}") };
        assert_eq!(error.class, class);
        assert_eq!(report.tally.requests, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_cut_or_declined_is_told_as_such() {
    for (finish, cut) in [(Finish::Length, true), (Finish::Refused, false)] {
        let mut room = native([Ok(Response { finish, ..Response::text("Half of") })]);
        let report = room.agent.run("Tell.").await;
        assert!(!report.is_success());
        assert_eq!(matches!(report.ended, Ended::Cut), cut);
        assert_eq!(matches!(report.ended, Ended::Refused), !cut);
        assert_eq!(report.text, "Half of");
    }
}

/// Proves: G77
#[tokio::test(start_paused = true)]
async fn a_call_that_was_cut_is_never_run() {
    let half =
        Response { finish: Finish::Length, ..Response::calls([("fs.rm", r#"{"path": "a"}"#)]) };
    let mut room = native([Ok(half), say("Done.")]);
    room.agent.run("Remove ab.").await;
    let called = room.desk.called();
    assert!(called.is_empty(), "{called:?}");
}

#[tokio::test(start_paused = true)]
async fn no_call_of_an_answer_that_was_declined_is_run() {
    let calls = Response::calls([("fs.rm", r#"{"path": "a"}"#), ("fs.rm", r#"{"path": "b"}"#)]);
    let mut room = native([Ok(Response { finish: Finish::Refused, ..calls })]);
    let report = room.agent.run("Remove.").await;
    assert!(matches!(report.ended, Ended::Refused));
    assert!(room.desk.called().is_empty());
    assert_eq!(room.agent.conversation().open_calls().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_with_nothing_in_it_is_asked_for_again() {
    let announced = Response { finish: Finish::ToolCalls, ..Response::text("I call.") };
    let mut room = native([say("  "), Ok(announced), say("Here.")]);
    let report = room.agent.run("Hi").await;
    assert_eq!(report.text, "Here.");
    assert_eq!(report.tally.corrections, 2);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_says_at_once_is_not_asked_at_once() {
    let later =
        || Err(LlmError::new("scripted", Class::Later { after: Some(Duration::ZERO) }, "busy"));
    let mut room = native([later(), later(), say("Done.")]);
    let begun = Instant::now();
    assert!(room.agent.run("Hi").await.is_success());
    assert!(begun.elapsed() >= Duration::from_millis(1500));
}

#[tokio::test(start_paused = true)]
async fn what_does_not_answer_at_all_is_asked_three_times_and_no_more() {
    let broken = || Err(LlmError::new("scripted", Class::Connection, "no connection"));
    let mut room = native([broken(), broken(), broken(), say("unused")]);
    let report = room.agent.run("Hi").await;
    assert_eq!(report.tally.requests, 3);
    assert!(!report.tally.usage_is_whole && report.tally.answers == 0);
}
