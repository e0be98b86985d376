//! Blocklist, approval and rate limit.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use innkeeper_agent::agent::AgentSettings;
use innkeeper_agent::conversation::Message;
use innkeeper_agent::provider::{LlmErrorKind, Response, ScriptedProvider};
use innkeeper_agent::run::RunOutcome;
use innkeeper_agent::safety::{
    ApprovalDecision, ApprovalPolicy, ApprovalRequest, Approver, ToolBlocklist,
};
use tokio::time::Instant;

use super::{call_reply, harness, text_reply};

/// Attack: model | a model calls a blocked tool | the tool does not run | Approval first
/// Proves: P9
#[tokio::test(start_paused = true)]
async fn a_blocked_tool_is_not_offered_and_is_refused_when_it_is_called() {
    let replies = [call_reply("fs.rm", r#"{"path": "a"}"#), text_reply("Done.")];
    let blocklist = ToolBlocklist::new(["rm"]).unwrap();
    let test_env = harness(
        ScriptedProvider::new(replies),
        AgentSettings { blocklist, ..AgentSettings::default() },
    );
    test_env.agent.run("Remove a.").await;
    assert!(test_env.tools.calls().is_empty());
    let requests = test_env.model.requests();
    assert!(requests[0].tools.get("fs.rm").is_none());
    let Some(Message::ToolResults(results)) = requests[1].messages.last() else {
        panic!("no results")
    };
    assert!(
        results[0].is_error && results[0].content.to_text().contains("may not be called"),
        "{results:?}"
    );
}

struct FixedApprover(ApprovalDecision, Mutex<Vec<String>>);

#[async_trait::async_trait]
impl Approver for FixedApprover {
    async fn decide(&self, call: ApprovalRequest<'_>) -> ApprovalDecision {
        self.1.lock().unwrap().push(format!("{} {}", call.tool, call.arguments));
        self.0.clone()
    }
}

#[tokio::test(start_paused = true)]
async fn only_calls_that_may_change_something_need_a_yes() {
    for (decision, runs) in
        [(ApprovalDecision::Approve, 2), (ApprovalDecision::Deny("no".to_owned()), 1)]
    {
        let calls = [("fs.read", r#"{"path": "a"}"#), ("fs.rm", r#"{"path": "b"}"#)];
        let settings =
            AgentSettings { approval_policy: ApprovalPolicy::Ask, ..AgentSettings::default() };
        let test_env = harness(
            ScriptedProvider::new([Ok(Response::from_tool_calls(calls)), text_reply("Done.")]),
            settings,
        );
        let approver = Arc::new(FixedApprover(decision, Mutex::default()));
        let report = test_env.agent.with_approver(approver.clone()).run("Go.").await;
        assert!(report.is_success());
        assert_eq!(*approver.1.lock().unwrap(), [r#"fs.rm {"path":"b"}"#]);
        assert_eq!(test_env.tools.calls().len(), runs);
    }
}

/// Attack: model | a model calls a tool that needs approval, and nobody can approve | the tool does
/// not run | Approval first
#[tokio::test(start_paused = true)]
async fn without_anyone_to_ask_or_by_policy_nothing_is_run() {
    for approval_policy in [ApprovalPolicy::Ask, ApprovalPolicy::DenyAll] {
        let replies = [call_reply("fs.rm", r#"{"path": "a"}"#), text_reply("I may not.")];
        let test_env = harness(
            ScriptedProvider::new(replies),
            AgentSettings { approval_policy, ..AgentSettings::default() },
        );
        let report = test_env.agent.run("Remove a.").await;
        assert!(report.is_completed() && !report.is_success());
        assert!(test_env.tools.calls().is_empty());
        assert!(
            !report.tool_calls[0].outcome.success
                && report.tool_calls[0].result_text.starts_with("not run")
        );
    }
}

/// Proves: P8
#[tokio::test(start_paused = true)]
async fn the_limit_of_requests_a_minute_fails_or_waits() {
    for wait in [false, true] {
        let mut settings = AgentSettings::default();
        settings.limits.rate_limit_per_minute = Some(1);
        settings.limits.wait_for_rate_limit = wait;
        let test_env =
            harness(ScriptedProvider::new([text_reply("One."), text_reply("Two.")]), settings);
        assert!(test_env.agent.run("1").await.is_success());
        let start = Instant::now();
        let report = test_env.agent.run("2").await;
        assert_eq!(report.is_success(), wait, "{report:?}");
        if wait {
            assert_eq!(start.elapsed(), Duration::from_secs(60));
        } else {
            let RunOutcome::Failed(error) = report.outcome else { panic!("no error") };
            let after = Duration::from_secs(60);
            assert_eq!(error.kind, LlmErrorKind::LocalRateLimit { after });
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_no_requests_fails_at_once_even_where_waiting_is_wanted() {
    let mut settings = AgentSettings::default();
    settings.limits.rate_limit_per_minute = Some(0);
    settings.limits.wait_for_rate_limit = true;
    let report =
        harness(ScriptedProvider::new([text_reply("unused")]), settings).agent.run("Hi").await;
    let RunOutcome::Failed(error) = report.outcome else { panic!("no error") };
    assert!(matches!(error.kind, LlmErrorKind::LocalRateLimit { .. }));
    assert_eq!(report.stats.requests, 0);
}

/// Attack: model | a model calls a tool that a pattern blocks | the tool does not run | Approval
/// first
#[tokio::test(start_paused = true)]
async fn a_blocked_tool_is_not_reached_by_a_similar_name() {
    let blocklist = ToolBlocklist::new(["fs.r?"]).unwrap();
    let settings = AgentSettings { blocklist, ..AgentSettings::default() };
    let replies = [call_reply("fs.rm", r#"{"path": "a"}"#), text_reply("Done.")];
    let test_env = harness(ScriptedProvider::new(replies), settings);
    test_env.agent.run("Remove a.").await;
    assert!(test_env.tools.calls().is_empty());
}
