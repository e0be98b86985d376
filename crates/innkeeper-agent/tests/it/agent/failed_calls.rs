//! Failed calls: what the model is told, what the result names, and when a run ends early.

use std::sync::Arc;

use innkeeper_agent::agent::{Agent, AgentSettings, RunResult};
use innkeeper_agent::conversation::Message;
use innkeeper_agent::provider::{Response, ScriptedProvider};
use innkeeper_agent::run::{RecoveryAction, RunLimits, RunOutcome};
use innkeeper_agent::tools::{
    AvailableTool, ToolAnnotations, ToolCallFuture, ToolCallOptions, ToolOutput, ToolRunner,
};
use innkeeper_toolcall::Tool;
use serde_json::json;
use serde_json::value::RawValue;

use super::{AgentHarness, ModelReply, harness, native_harness, text_reply};

const GONE: &str = r#"{"path": "gone"}"#;

fn call(name: &str, arguments: &str) -> ModelReply {
    Ok(Response::from_tool_calls([(name, arguments)]))
}

/// Returns the results of the last request.
fn last_results(test_env: &AgentHarness) -> Vec<String> {
    match test_env.model.requests().last().and_then(|request| request.messages.last().cloned()) {
        Some(Message::ToolResults(results)) => {
            results.iter().map(|result| result.content.to_text().into_owned()).collect()
        }
        other => panic!("no results: {other:?}"),
    }
}

fn attempts(report: &RunResult) -> Vec<u32> {
    report.tool_calls.iter().map(|record| record.attempts.retry_attempt).collect()
}

fn actions(report: &RunResult) -> Vec<Option<RecoveryAction>> {
    report.errors.iter().map(|error| error.recovery_action).collect()
}

/// Proves: G8, G40
#[tokio::test(start_paused = true)]
async fn the_model_gets_the_tool_the_error_and_a_request_for_another_approach() {
    let test_env = native_harness([call("fs.read", GONE), text_reply("It is gone.")]);
    let report = test_env.agent.run("Read.").await;
    let [result] = &last_results(&test_env)[..] else { panic!("{report:?}") };
    for part in ["cannot run tool `fs.read`", "`fs.read` failed", "different approach"] {
        assert!(result.contains(part), "{result}");
    }
    let [error] = &report.errors[..] else { panic!("{:?}", report.errors) };
    assert_eq!((error.iteration, error.tool.as_deref()), (1, Some("fs.read")));
    assert_eq!(error.call_id.as_deref(), Some(&*report.tool_calls[0].id));
    assert_eq!(error.error, report.tool_calls[0].result_text, "without the advice");
    assert_eq!((report.is_completed(), error.recovery_action), (true, None));
    assert!(!report.is_success(), "no call succeeded");
}

/// Proves: G10, G41, G43
#[tokio::test(start_paused = true)]
async fn other_arguments_another_tool_and_smaller_steps_answer_a_failure() {
    let steps = Response::from_tool_calls([
        ("fs.read", r#"{"path": "a"}"#),
        ("fs.read", r#"{"path": "b"}"#),
    ]);
    let test_env = native_harness([
        call("fs.read", GONE),
        call("fs.rm", GONE),
        call("fs.rm", r#"{"path": "lost"}"#),
        call("fs.read", GONE),
        Ok(steps),
        call("fs.read", GONE),
        text_reply("Which file do you mean?"),
    ]);
    let report = test_env.agent.run("Read.").await;
    use RecoveryAction::{OtherArguments, OtherTool, Question, SeveralCalls};
    assert_eq!(
        actions(&report),
        [Some(OtherTool), Some(OtherArguments), Some(SeveralCalls), Some(Question)]
    );
    assert_eq!(attempts(&report), [0, 1, 2, 0, 1, 1, 0]);
}

/// Proves: G21
#[tokio::test(start_paused = true)]
async fn without_backtracking_the_first_failed_call_ends_the_run() {
    let calls = Response::from_tool_calls([("fs.read", r#"{"path": "a"}"#), ("fs.read", GONE)]);
    let mut settings = AgentSettings::default();
    settings.tool_use.backtracking = false;
    let test_env = harness(ScriptedProvider::new([Ok(calls), text_reply("Done.")]), settings);
    let report = test_env.agent.run("Read.").await;
    assert_eq!(report.outcome, RunOutcome::CallFailed);
    assert_eq!((report.tool_calls.len(), report.errors.len()), (2, 1));
    assert_eq!(test_env.model.requests().len(), 1);
    assert_eq!(test_env.agent.conversation().pending_calls().count(), 0);
}

/// Proves: G58
#[tokio::test(start_paused = true)]
async fn a_tool_that_failed_three_times_in_a_row_is_refused_without_a_call() {
    let attempts = (0..5).map(|at| call("fs.rm", &format!(r#"{{"path": "gone {at}"}}"#)));
    let test_env = native_harness(attempts.chain([text_reply("I give up.")]));
    let report = test_env.agent.run("Remove.").await;
    assert_eq!(test_env.tools.calls().len(), 3);
    assert_eq!(report.tool_calls.len(), 5);
    let refused = &report.tool_calls[3];
    assert!(refused.result_text.contains("failed 3 times in a row"), "{refused:?}");
    assert!(last_results(&test_env)[0].contains("failed 3 times in a row"));
    assert!(report.is_completed());
}

/// Proves: G-b10
#[tokio::test(start_paused = true)]
async fn a_loop_is_warned_about_then_refused_then_ends_the_run() {
    let replies = (0..9).map(|_| call("fs.read", r#"{"path": "a"}"#));
    let test_env = native_harness(replies);
    let report = test_env.agent.run("Read.").await;
    assert_eq!(report.outcome, RunOutcome::LoopDetected);
    assert_eq!(test_env.tools.calls().len(), 3);
    let texts: Vec<_> = test_env
        .agent
        .conversation()
        .messages()
        .iter()
        .filter_map(|message| match message {
            Message::ToolResults(results) => Some(results[0].content.to_text().into_owned()),
            Message::User(_) | Message::Assistant(_) => None,
        })
        .collect();
    for (text, part) in texts.iter().zip(["", "already returned", "refused from now on"]) {
        assert!(text.starts_with("fs.read {") && text.contains(part), "{text}");
    }
    assert!(texts[3].contains("was not run again") && texts[4].contains("was not run again"));
    assert_eq!(texts.len(), 5);
    assert!(report.errors.iter().any(|error| error.error.contains("same result")));
}

/// Native calls with the tool's own name are calls of the public name.
#[tokio::test(start_paused = true)]
async fn the_breaker_counts_a_tool_under_every_name_that_the_model_writes() {
    let attempts = (0..4).map(|at| call("rm", &format!(r#"{{"path": "gone {at}"}}"#)));
    let test_env = native_harness(attempts.chain([text_reply("I give up.")]));
    let report = test_env.agent.run("Remove.").await;
    assert_eq!(test_env.tools.calls().len(), 3, "{report:?}");
    assert!(report.errors.iter().all(|error| error.tool.as_deref() == Some("fs.rm")));
}

#[tokio::test(start_paused = true)]
async fn the_failed_calls_of_one_response_count_once_and_stop_the_rest_of_it() {
    let paths: Vec<_> = (0..6).map(|at| format!(r#"{{"path": "gone {at}"}}"#)).collect();
    let calls = || Response::from_tool_calls(paths.iter().map(|path| ("fs.rm", path.as_str())));
    let replies = [Ok(calls()), call("fs.rm", r#"{"path": "a"}"#), text_reply("Done.")];
    let mut settings = AgentSettings::default();
    settings.calls.max_parallel = 1;
    let test_env = harness(ScriptedProvider::new(replies), settings);
    let report = test_env.agent.run("Remove.").await;
    assert_eq!(test_env.tools.calls().len(), 4, "three of six, then the other arguments");
    assert!(report.tool_calls[3].result_text.contains("in this response failed"));
    assert!(report.tool_calls[6].outcome.success);
}

#[tokio::test(start_paused = true)]
async fn without_backtracking_calls_that_have_not_started_are_refused() {
    let calls = Response::from_tool_calls([("fs.read", GONE), ("fs.rm", r#"{"path": "a"}"#)]);
    let mut settings = AgentSettings::default();
    settings.tool_use.backtracking = false;
    settings.calls.max_parallel = 1;
    let test_env = harness(ScriptedProvider::new([Ok(calls)]), settings);
    let report = test_env.agent.run("Read.").await;
    assert_eq!(report.outcome, RunOutcome::CallFailed);
    assert_eq!(test_env.tools.calls().len(), 1);
    assert!(report.tool_calls[1].result_text.contains("another call of this response failed"));
}

#[tokio::test(start_paused = true)]
async fn the_correction_of_a_rejected_call_is_its_next_attempt() {
    // A rejected call is no failure of the tool, so the run goes on without backtracking too.
    let mut settings = AgentSettings::default();
    settings.tool_use.backtracking = false;
    let replies = [
        call("fs.read", r#"{"wrong": 1}"#),
        call("fs.read", r#"{"path": "a"}"#),
        text_reply("It says a."),
    ];
    let test_env = harness(ScriptedProvider::new(replies), settings);
    let report = test_env.agent.run("Read.").await;
    assert!(report.is_success(), "{report:?}");
    let [rejected, record] = &report.tool_calls[..] else { panic!("{report:?}") };
    assert!(
        rejected.outcome.rejected && !rejected.outcome.success && !rejected.outcome.was_run,
        "{rejected:?}"
    );
    assert_eq!(rejected.arguments.to_string(), r#"{"wrong":1}"#);
    assert_eq!((record.attempts.retry_attempt, record.attempts.failed_attempts), (1, 1));
    assert_eq!(actions(&report), [Some(RecoveryAction::OtherArguments)]);
}

#[tokio::test(start_paused = true)]
async fn rejected_calls_keep_their_place_among_the_calls_of_their_response() {
    let calls = Response::from_tool_calls([
        ("fs.reed", r#"{"path": "a"}"#),
        ("fs.read", r#"{"path": "b"}"#),
        ("fs.read", "not json"),
        ("fs.rm", r#"{"path": "c"}"#),
    ]);
    let test_env = native_harness([Ok(calls), text_reply("Done.")]);
    let report = test_env.agent.run("Read.").await;
    let calls: Vec<_> =
        report.tool_calls.iter().map(|call| (&*call.tool, call.outcome.rejected)).collect();
    let expected = [("fs.reed", true), ("fs.read", false), ("fs.read", true), ("fs.rm", false)];
    assert_eq!(calls, expected);
    assert!(report.is_success() && test_env.tools.calls().len() == 2);
}

#[tokio::test(start_paused = true)]
async fn the_same_rejected_call_again_and_again_ends_the_run() {
    for (name, arguments) in [("fs.read", r#"{"file": "a"}"#), ("fs.unknown", "{}")] {
        let test_env = native_harness((0..9).map(|_| call(name, arguments)));
        let report = test_env.agent.run("Read.").await;
        assert_eq!(report.outcome, RunOutcome::LoopDetected, "{name}");
        assert_eq!((report.tool_calls.len(), report.stats.iterations), (5, 5));
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_whose_calls_were_rejected_three_times_in_a_row_is_refused() {
    let rejected = (0..3).map(|at| call("fs.read", &format!(r#"{{"at": {at}}}"#)));
    let replies = rejected.chain([call("fs.read", r#"{"path": "a"}"#), text_reply("I stop.")]);
    let test_env = native_harness(replies);
    let report = test_env.agent.run("Read.").await;
    assert!(report.tool_calls[3].result_text.contains("failed 3 times in a row"), "{report:?}");
    assert!(test_env.tools.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_same_result_to_ever_other_arguments_ends_the_run() {
    let replies = (0..20).map(|at| call("echo.same", &format!(r#"{{"page": {at}}}"#)));
    let limits = RunLimits { max_iterations: 20, ..RunLimits::default() };
    let settings = AgentSettings { limits, ..AgentSettings::default() };
    let model = Arc::new(ScriptedProvider::new(replies));
    let agent = Agent::new(model, Arc::new(SameResult), settings);
    let report = agent.run("Turn the pages.").await;
    assert_eq!(report.outcome, RunOutcome::LoopDetected);
    assert_eq!(report.tool_calls.iter().filter(|call| call.outcome.was_run).count(), 15);
    assert_eq!(report.stats.iterations, 17);
}

/// A tool with one result for all arguments.
struct SameResult;

impl ToolRunner for SameResult {
    fn list_tools(&self) -> Vec<AvailableTool> {
        let tool = Tool::new("echo.same", "Returns a page.", json!({"type": "object"}));
        vec![AvailableTool::new(tool, ToolAnnotations::default())]
    }

    fn call_tool<'r>(
        &'r self,
        _: &'r str,
        _: Box<RawValue>,
        _: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        let result = json!({"content": [{"type": "text", "text": "no such page"}]});
        let result = serde_json::value::to_raw_value(&result).unwrap();
        Box::pin(async move { Ok(ToolOutput::new(result, false)) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_tool_called_again_after_a_look_around_is_the_next_attempt() {
    let replies = [
        call("fs.read", GONE),
        call("clock.nap", "{}"),
        call("fs.read", r#"{"path": "a"}"#),
        text_reply("It says a."),
    ];
    let test_env = native_harness(replies);
    let report = test_env.agent.run("Read.").await;
    assert_eq!(attempts(&report), [0, 0, 1]);
}

#[tokio::test(start_paused = true)]
async fn equal_calls_of_one_response_are_no_loop() {
    let read = ("fs.read", r#"{"path": "a"}"#);
    let replies = [Ok(Response::from_tool_calls([read; 3])), text_reply("It says a.")];
    let test_env = native_harness(replies);
    let report = test_env.agent.run("Read.").await;
    assert!(report.is_success() && report.errors.is_empty(), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn a_refused_loop_leaves_the_model_its_last_response() {
    let replies = (0..4).map(|_| call("fs.read", r#"{"path": "a"}"#));
    let test_env = native_harness(replies.chain([text_reply("It says a.")]));
    let report = test_env.agent.run("Read.").await;
    assert_eq!((report.is_success(), &*report.text), (true, "It says a."));
    assert_eq!(test_env.tools.calls().len(), 3);
}

/// Proves: G26
#[tokio::test(start_paused = true)]
async fn a_call_has_only_the_text_that_the_model_wrote_before_it() {
    use innkeeper_agent::conversation::{AssistantMessage, ContentPart, PartContent, ToolCall};
    let call = |id: &str, path: &str| {
        let (name, arguments) = ("fs.read".to_owned(), format!(r#"{{"path": "{path}"}}"#));
        PartContent::ToolCall(ToolCall { id: id.to_owned(), name, arguments, is_cut: false })
    };
    let text = |text: &str| PartContent::Text(text.to_owned());
    let parts = [call("1", "a"), text("Now b. "), call("2", "b"), text("And c."), call("3", "c")];
    let message = AssistantMessage { parts: parts.map(ContentPart::new).into() };
    let reply = Response { message, ..Response::from_tool_calls([("fs.read", "{}")]) };
    let test_env = native_harness([Ok(reply), text_reply("Done.")]);
    let report = test_env.agent.run("Read.").await;
    let reasoning: Vec<_> = report.tool_calls.iter().map(|call| &*call.reasoning).collect();
    assert_eq!(reasoning, ["", "Now b. ", "Now b. And c."]);
}
