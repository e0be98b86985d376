//! Tests of the executor: permits, cache, panics.

mod changed_tools;
mod invalidation;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use innkeeper_toolcall::{Json, ResolvedCall, Tool};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep};

use super::*;
use crate::tools::{AvailableTool, ToolAnnotations, ToolCallFuture};

/// One read-only tool that takes a second.
#[derive(Default)]
struct SlowTool(AtomicUsize);

impl ToolRunner for SlowTool {
    fn list_tools(&self) -> Vec<AvailableTool> {
        let schema = json!({"type": "object", "properties": {"at": {"type": "integer"}}});
        let annotations =
            ToolAnnotations { read_only: true, idempotent: true, ..ToolAnnotations::default() };
        vec![AvailableTool::new(Tool::new("read", "Reads.", schema), annotations)]
    }

    fn call_tool<'r>(
        &'r self,
        _: &'r str,
        _: Box<RawValue>,
        _: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async {
            sleep(Duration::from_secs(1)).await;
            let raw = serde_json::value::to_raw_value(&json!({"content": []})).unwrap();
            Ok(ToolOutput::new(raw, false))
        })
    }
}

fn settings_with(calls: CallSettings) -> ExecutorSettings {
    ExecutorSettings { calls, ..ExecutorSettings::default() }
}

fn executor(runner: Arc<dyn ToolRunner>, settings: ExecutorSettings) -> Executor {
    Executor::new(runner, settings, Timing::default())
}

fn call(at: i64) -> ResolvedCall {
    let arguments = Json::from(&json!({"at": at}));
    ResolvedCall { name: "read".to_owned(), arguments, repairs: Vec::new() }
}

/// Runs the calls and returns their executions in the order of their ends.
async fn run_all(
    executor: &Executor,
    calls: impl IntoIterator<Item = ResolvedCall>,
) -> Vec<ToolExecution> {
    let snapshot = executor.tool_snapshot();
    let mut queue = CallQueue::new(executor.clone(), snapshot, StartRule::AfterItsDecision);
    for (index, call) in calls.into_iter().enumerate() {
        queue.push(QueuedCall::new(index, call));
    }
    let mut executions = Vec::new();
    loop {
        while let Some(queued) = queue.take_ready() {
            queue.start(queued);
        }
        match queue.next().await {
            None => return executions,
            Some(QueueEvent::Approved | QueueEvent::Progress { .. }) => {}
            Some(QueueEvent::Refused { execution, .. } | QueueEvent::Finished(execution)) => {
                executions.push(execution);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn at_most_the_configured_number_of_calls_runs_at_once() {
    for (max_parallel, seconds) in [(0, 5), (1, 5), (2, 3), (DEFAULT_PARALLEL_CALLS, 2)] {
        let settings = settings_with(CallSettings { max_parallel, ..CallSettings::default() });
        let executor = executor(Arc::new(SlowTool::default()), settings);
        let start = Instant::now();
        assert_eq!(run_all(&executor, (0..5).map(call)).await.len(), 5);
        assert_eq!(start.elapsed(), Duration::from_secs(seconds), "{max_parallel}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_cache_serves_equal_calls_only_if_it_is_enabled() {
    for (cache, runs) in [(None, 2), (Some(CacheSettings::default()), 1)] {
        let tool = Arc::new(SlowTool::default());
        let executor = executor(
            tool.clone(),
            settings_with(CallSettings { cache, ..CallSettings::default() }),
        );
        assert!(!run_all(&executor, [call(1)]).await[0].cached);
        assert_eq!(run_all(&executor, [call(1)]).await[0].cached, runs == 1);
        assert_eq!(tool.0.load(Ordering::Relaxed), runs);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_over_the_rate_limit_is_refused_until_a_minute_has_passed() {
    let settings =
        settings_with(CallSettings { rate_limit_per_minute: Some(1), ..CallSettings::default() });
    let executor = executor(Arc::new(SlowTool::default()), settings);
    let executions = run_all(&executor, [call(1), call(2)]).await;
    let refusals: Vec<_> =
        executions.iter().filter_map(|execution| execution.outcome.as_ref().err()).collect();
    assert_eq!(refusals.len(), 1);
    let text = refusals[0].to_string();
    assert!(text.contains("1 tool calls per minute") && text.contains("60.0 s"), "{text}");
    sleep(Duration::from_secs(59)).await;
    assert!(run_all(&executor, [call(3)]).await[0].outcome.is_ok());
}

struct PanickingApprover;

#[async_trait::async_trait]
impl Approver for PanickingApprover {
    async fn decide(&self, _: ApprovalRequest<'_>) -> ApprovalDecision {
        panic!("as asked")
    }
}

/// A tool that changes something, so that its calls need approval.
struct WritingTool(SlowTool);

impl ToolRunner for WritingTool {
    fn list_tools(&self) -> Vec<AvailableTool> {
        let annotations = ToolAnnotations::default();
        self.0.list_tools().into_iter().map(|tool| AvailableTool { annotations, ..tool }).collect()
    }

    fn call_tool<'r>(
        &'r self,
        name: &'r str,
        arguments: Box<RawValue>,
        options: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        self.0.call_tool(name, arguments, options)
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_approver_denies_the_call() {
    let tool = Arc::new(WritingTool(SlowTool::default()));
    let settings =
        ExecutorSettings { approval_policy: ApprovalPolicy::Ask, ..ExecutorSettings::default() };
    let mut executor = executor(tool.clone(), settings);
    executor.set_approver(Arc::new(PanickingApprover));
    let executions = run_all(&executor, [call(1)]).await;
    let error = executions[0].outcome.as_ref().unwrap_err();
    assert!(matches!(&**error, ToolError::Refused { tool, .. } if tool == "read"), "{error:?}");
    assert_eq!(tool.0.0.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_blocked_tool_is_known_and_not_offered() {
    let settings = ExecutorSettings {
        blocklist: ToolBlocklist::new(["read"]).unwrap(),
        ..ExecutorSettings::default()
    };
    let executor = executor(Arc::new(SlowTool::default()), settings);
    let snapshot = executor.tool_snapshot();
    assert!(snapshot.tools.available.is_empty() && snapshot.tools.known.get("read").is_some());
    assert!(
        Arc::ptr_eq(&snapshot, &executor.tool_snapshot()),
        "an equal list is not compiled again"
    );
    assert!(run_all(&executor, [call(1)]).await[0].outcome.is_err());
}

#[tokio::test(start_paused = true)]
async fn durations_rate_limit_and_cache_follow_the_clock_of_the_executor() {
    let base = Instant::now();
    let now = Arc::new(move || base + base.elapsed() * 60);
    let cache = CacheSettings { ttl: Duration::from_secs(90), max_entries: 2 };
    let settings = settings_with(CallSettings {
        rate_limit_per_minute: Some(1),
        cache: Some(cache),
        ..CallSettings::default()
    });
    let tool = Arc::new(SlowTool::default());
    let executor = Executor::new(tool.clone(), settings, Timing { now, ..Timing::default() });
    let first = run_all(&executor, [call(1)]).await;
    assert_eq!(first[0].elapsed, Duration::from_secs(60), "the tool takes a second");
    let second = run_all(&executor, [call(1)]).await;
    assert!(second[0].outcome.is_ok() && second[0].cached, "{second:?}");
    sleep(Duration::from_secs(1)).await;
    let third = run_all(&executor, [call(1)]).await;
    assert!(third[0].outcome.is_ok() && !third[0].cached, "{third:?}");
    assert_eq!(tool.0.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn an_invalid_number_fails_its_call_and_does_not_reach_the_runner() {
    let tool = Arc::new(SlowTool::default());
    let executor = executor(tool.clone(), ExecutorSettings::default());
    let arguments = Json::Object(vec![("at".to_owned(), Json::Number("1x".to_owned()))]);
    let executions = run_all(&executor, [ResolvedCall { arguments, ..call(1) }]).await;
    assert!(executions[0].outcome.is_err(), "{executions:?}");
    assert_eq!(tool.0.load(Ordering::Relaxed), 0);
}

#[test]
fn the_debug_text_of_an_executor_has_its_settings() {
    let text =
        format!("{:?}", executor(Arc::new(SlowTool::default()), ExecutorSettings::default()));
    assert!(text.starts_with("Executor { settings: ExecutorSettings {"), "{text}");
}
