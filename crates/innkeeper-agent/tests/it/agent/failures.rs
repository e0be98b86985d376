//! Failed requests and unusable responses.

use std::time::Duration;

use innkeeper_agent::agent::AgentSettings;
use innkeeper_agent::provider::{FinishReason, LlmError, LlmErrorKind, Response, ScriptedProvider};
use innkeeper_agent::run::{RunLimits, RunOutcome};
use tokio::time::Instant;

use super::{harness, native_harness, text_reply};

/// Proves: G55
#[tokio::test(start_paused = true)]
async fn a_provider_that_fails_for_a_moment_is_asked_again_when_it_says() {
    let retry_later =
        |after| LlmError::new("scripted", LlmErrorKind::RetryLater { after }, "overloaded");
    let wait = Some(Duration::from_secs(7));
    let test_env =
        native_harness([Err(retry_later(wait)), Err(retry_later(None)), text_reply("Done.")]);
    let start = Instant::now();
    let report = test_env.agent.run("Hi").await;
    assert!(report.is_success());
    assert_eq!(report.stats.request_retries, 2);
    let waited = start.elapsed().as_millis();
    assert!((8_000..=8_301).contains(&waited), "{waited}");
}

#[tokio::test(start_paused = true)]
async fn all_retries_of_a_run_share_one_budget() {
    let fails = || Err(LlmError::new("scripted", LlmErrorKind::Connection, "reset"));
    let bad = || text_reply(r#"{"tool": "fs.read", "params": {}}"#);
    let replies = [fails(), bad(), fails(), text_reply("unused")];
    let limits = RunLimits { retry_budget: 2, ..RunLimits::default() };
    let test_env = harness(
        ScriptedProvider::new(replies),
        AgentSettings { limits, ..AgentSettings::default() },
    );
    let report = test_env.agent.run("Hi").await;
    assert!(matches!(report.outcome, RunOutcome::Failed(_)), "{report:?}");
    assert_eq!((report.stats.request_retries, report.stats.corrections), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_a_retry_cannot_fix_is_reported_at_once() {
    for kind in [
        LlmErrorKind::Authentication,
        LlmErrorKind::Billing,
        LlmErrorKind::ContextLength,
        LlmErrorKind::RetryLater { after: Some(Duration::from_secs(121)) },
    ] {
        let test_env =
            native_harness([Err(LlmError::new("scripted", kind, "no")), text_reply("unused")]);
        let report = test_env.agent.run("Hi").await;
        let RunOutcome::Failed(error) = &report.outcome else { panic!("{report:?}") };
        assert_eq!(error.kind, kind);
        assert_eq!(report.stats.requests, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_truncated_or_declined_response_is_reported_as_such() {
    for (finish_reason, is_truncated) in
        [(FinishReason::Length, true), (FinishReason::Refusal, false)]
    {
        let test_env =
            native_harness([Ok(Response { finish_reason, ..Response::from_text("Half of") })]);
        let report = test_env.agent.run("Tell.").await;
        assert!(!report.is_success());
        assert_eq!(matches!(report.outcome, RunOutcome::Truncated), is_truncated);
        assert_eq!(matches!(report.outcome, RunOutcome::Refused), !is_truncated);
        assert_eq!(report.text, "Half of");
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_that_ends_for_another_reason_is_a_failure_that_names_it() {
    let finish_reason = FinishReason::Other("abort".to_owned());
    let test_env =
        native_harness([Ok(Response { finish_reason, ..Response::from_text("Half of") })]);
    let report = test_env.agent.run("Tell.").await;
    let RunOutcome::Failed(error) = &report.outcome else { panic!("{report:?}") };
    assert_eq!((&*error.provider, &*error.model), ("scripted", "scripted"));
    assert!(error.message.contains("`abort`"), "{error}");
    assert_eq!(report.text, "Half of");
}

#[tokio::test(start_paused = true)]
async fn a_response_that_announces_a_call_without_one_is_asked_for_again() {
    let lost = || {
        let response = Response::from_text("I will look it up.");
        Ok(Response { finish_reason: FinishReason::ToolCalls, ..response })
    };
    let report = native_harness([lost(), text_reply("It is 5.")]).agent.run("Tell.").await;
    assert!(report.is_success() && report.text == "It is 5.", "{report:?}");
    let report = native_harness([lost(), lost(), text_reply("unused")]).agent.run("Tell.").await;
    assert!(matches!(report.outcome, RunOutcome::NoValidCall { .. }), "{report:?}");
}

/// Attack: model | a response ends at its length limit after a complete call | the call does not
/// run | No guessed call
/// Proves: G77
#[tokio::test(start_paused = true)]
async fn a_call_that_was_cut_is_never_run() {
    let half = Response {
        finish_reason: FinishReason::Length,
        ..Response::from_tool_calls([("fs.rm", r#"{"path": "a"}"#)])
    };
    let test_env = native_harness([Ok(half), text_reply("Done.")]);
    test_env.agent.run("Remove ab.").await;
    let calls = test_env.tools.calls();
    assert!(calls.is_empty(), "{calls:?}");
}

/// Attack: model | a model declines and writes calls | no call runs | No guessed call
#[tokio::test(start_paused = true)]
async fn no_call_of_an_answer_that_was_declined_is_run() {
    let calls =
        Response::from_tool_calls([("fs.rm", r#"{"path": "a"}"#), ("fs.rm", r#"{"path": "b"}"#)]);
    let test_env = native_harness([Ok(Response { finish_reason: FinishReason::Refusal, ..calls })]);
    let report = test_env.agent.run("Remove.").await;
    assert!(matches!(report.outcome, RunOutcome::Refused));
    assert!(test_env.tools.calls().is_empty());
    assert_eq!(test_env.agent.conversation().pending_calls().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_with_nothing_in_it_is_asked_for_again() {
    let announced =
        Response { finish_reason: FinishReason::ToolCalls, ..Response::from_text("I call.") };
    let test_env = native_harness([text_reply("  "), Ok(announced), text_reply("Here.")]);
    let report = test_env.agent.run("Hi").await;
    assert_eq!(report.text, "Here.");
    assert_eq!(report.stats.corrections, 2);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_says_at_once_is_not_asked_at_once() {
    let retry_later = || {
        Err(LlmError::new(
            "scripted",
            LlmErrorKind::RetryLater { after: Some(Duration::ZERO) },
            "busy",
        ))
    };
    let test_env = native_harness([retry_later(), retry_later(), text_reply("Done.")]);
    let start = Instant::now();
    assert!(test_env.agent.run("Hi").await.is_success());
    assert!(start.elapsed() >= Duration::from_millis(1500));
}

#[tokio::test(start_paused = true)]
async fn what_does_not_answer_at_all_is_asked_three_times_and_no_more() {
    let connection_error =
        || Err(LlmError::new("scripted", LlmErrorKind::Connection, "no connection"));
    let test_env = native_harness([
        connection_error(),
        connection_error(),
        connection_error(),
        text_reply("unused"),
    ]);
    let report = test_env.agent.run("Hi").await;
    assert_eq!(report.stats.requests, 3);
    assert!(!report.stats.usage_is_complete && report.stats.responses == 0);
}
