//! What a tool or a model may not do.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use innkeeper_agent::agent::Settings;
use innkeeper_agent::conversation::Message;
use innkeeper_agent::provider::{Class, Response, Scripted};
use innkeeper_agent::safety::{Approval, Approver, Decision, Patterns, Policy};
use innkeeper_agent::turn::Ended;
use tokio::time::Instant;

use super::{call, room, say};

/// Proves: P9
#[tokio::test(start_paused = true)]
async fn a_blocked_tool_is_not_offered_and_is_refused_when_it_is_called() {
    let replies = [call("fs.rm", r#"{"path": "a"}"#), say("Done.")];
    let blocked = Patterns::new(["rm"]).unwrap();
    let mut room = room(Scripted::new(replies), Settings { blocked, ..Settings::default() });
    room.agent.run("Remove a.").await;
    assert!(room.desk.called().is_empty());
    let asked = room.model.asked();
    assert!(asked[0].tools.get("fs.rm").is_none());
    let Some(Message::Results(results)) = asked[1].messages.last() else { panic!("no results") };
    assert!(results[0].is_error && results[0].text.contains("may not be called"), "{results:?}");
}

struct Says(Decision, Mutex<Vec<String>>);

#[async_trait::async_trait]
impl Approver for Says {
    async fn decide(&self, call: Approval<'_>) -> Decision {
        self.1.lock().unwrap().push(format!("{} {}", call.tool, call.arguments));
        self.0.clone()
    }
}

#[tokio::test(start_paused = true)]
async fn only_calls_that_may_change_something_need_a_yes() {
    for (decision, runs) in [(Decision::Run, 2), (Decision::Refuse("no".to_owned()), 1)] {
        let calls = [("fs.read", r#"{"path": "a"}"#), ("fs.rm", r#"{"path": "b"}"#)];
        let settings = Settings { approve: Policy::Ask, ..Settings::default() };
        let room = room(Scripted::new([Ok(Response::calls(calls)), say("Done.")]), settings);
        let says = Arc::new(Says(decision, Mutex::default()));
        let report = room.agent.with_approver(says.clone()).run("Go.").await;
        assert!(report.is_success());
        assert_eq!(*says.1.lock().unwrap(), [r#"fs.rm {"path":"b"}"#]);
        assert_eq!(room.desk.called().len(), runs);
    }
}

#[tokio::test(start_paused = true)]
async fn without_anyone_to_ask_or_by_policy_nothing_is_run() {
    for approve in [Policy::Ask, Policy::Never] {
        let replies = [call("fs.rm", r#"{"path": "a"}"#), say("I may not.")];
        let mut room = room(Scripted::new(replies), Settings { approve, ..Settings::default() });
        let report = room.agent.run("Remove a.").await;
        assert!(report.is_success() && room.desk.called().is_empty());
        assert!(!report.steps[0].success && report.steps[0].told.starts_with("not run"));
    }
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_requests_a_minute_fails_or_waits() {
    for wait in [false, true] {
        let settings = Settings {
            rate_limit_per_minute: Some(1),
            wait_for_rate_limit: wait,
            ..Settings::default()
        };
        let mut room = room(Scripted::new([say("One."), say("Two.")]), settings);
        assert!(room.agent.run("1").await.is_success());
        let begun = Instant::now();
        let report = room.agent.run("2").await;
        assert_eq!(report.is_success(), wait, "{report:?}");
        if wait {
            assert_eq!(begun.elapsed(), Duration::from_secs(60));
        } else {
            let Ended::Failed(error) = report.ended else { panic!("no error") };
            let after = Duration::from_secs(60);
            assert_eq!(error.class, Class::RateLimited { after });
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_no_requests_fails_at_once_even_where_waiting_is_wanted() {
    let settings = Settings {
        rate_limit_per_minute: Some(0),
        wait_for_rate_limit: true,
        ..Settings::default()
    };
    let report = room(Scripted::new([say("unused")]), settings).agent.run("Hi").await;
    let Ended::Failed(error) = report.ended else { panic!("no error") };
    assert!(matches!(error.class, Class::RateLimited { .. }));
    assert_eq!(report.tally.requests, 0);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_kept_out_is_not_reached_by_a_name_that_is_nearly_another_ones() {
    let blocked = Patterns::new(["fs.r?"]).unwrap();
    let settings = Settings { blocked, ..Settings::default() };
    let replies = [call("fs.rm", r#"{"path": "a"}"#), say("Done.")];
    let mut room = room(Scripted::new(replies), settings);
    room.agent.run("Remove a.").await;
    assert!(room.desk.called().is_empty());
}
