//! Tests of results that a later call or another list of tools makes invalid.

use std::sync::atomic::AtomicBool;

use tokio::time::timeout;

use super::*;

/// A number that the idempotent tool `write` sets to 42 within a second, and that the read-only tool
/// `read` returns.
#[derive(Default)]
struct NumberStore {
    number: AtomicUsize,
    /// Whether the next call of `write` fails.
    fails: AtomicBool,
    /// Whether the list of tools has only `read`.
    is_read_only: AtomicBool,
}

impl ToolRunner for NumberStore {
    fn list_tools(&self) -> Vec<AvailableTool> {
        let tool = |name: &str, read_only| {
            let annotations =
                ToolAnnotations { read_only, idempotent: true, ..ToolAnnotations::default() };
            AvailableTool::new(Tool::new(name, "", json!({"type": "object"})), annotations)
        };
        let mut tools = vec![tool("read", true), tool("write", false)];
        tools.truncate(if self.is_read_only.load(Ordering::Relaxed) { 1 } else { 2 });
        tools
    }

    fn call_tool<'r>(
        &'r self,
        name: &'r str,
        _: Box<RawValue>,
        _: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        Box::pin(async move {
            if name == "write" {
                sleep(Duration::from_secs(1)).await;
                if self.fails.swap(false, Ordering::Relaxed) {
                    let tool = name.to_owned();
                    return Err(ToolError::Runner { tool, source: "busy".into() });
                }
                self.number.store(42, Ordering::Relaxed);
            }
            let number = json!({"structuredContent": self.number.load(Ordering::Relaxed)});
            let raw = serde_json::value::to_raw_value(&number).unwrap();
            Ok(ToolOutput::new(raw, false))
        })
    }
}

fn named_call(name: &str) -> ResolvedCall {
    ResolvedCall { name: name.to_owned(), ..call(1) }
}

fn caching_executor(runner: Arc<dyn ToolRunner>) -> Executor {
    let cache = Some(CacheSettings::default());
    executor(
        runner,
        settings_with(CallSettings { cache, max_parallel: 2, ..CallSettings::default() }),
    )
}

/// Returns the result of one call of `read`, and whether the result comes from the cache.
async fn read(executor: &Executor) -> (String, bool) {
    let execution = run_all(executor, [named_call("read")]).await.remove(0);
    (execution.outcome.unwrap().raw().get().to_owned(), execution.cached)
}

const NEW_NUMBER: &str = r#"{"structuredContent":42}"#;

#[tokio::test(start_paused = true)]
async fn a_write_that_waited_for_a_failed_equal_write_invalidates_earlier_results() {
    let store = Arc::new(NumberStore { fails: true.into(), ..NumberStore::default() });
    let executor = caching_executor(store);
    // `read` starts when the first `write` has failed, and ends while the second `write` runs.
    let executions = run_all(&executor, ["write", "write", "read"].map(named_call)).await;
    let tools: Vec<_> = executions.iter().map(|execution| &*execution.tool).collect();
    assert_eq!(tools, ["write", "read", "write"]);
    assert!(executions[0].outcome.is_err() && executions[2].outcome.is_ok());
    assert_eq!(read(&executor).await, (NEW_NUMBER.to_owned(), false));
}

#[tokio::test(start_paused = true)]
async fn a_write_after_a_cancelled_equal_write_invalidates_earlier_results() {
    let executor = caching_executor(Arc::new(NumberStore::default()));
    let calls = run_all(&executor, [named_call("write")]);
    assert!(timeout(Duration::from_millis(500), calls).await.is_err());
    assert!(!read(&executor).await.1);
    assert!(run_all(&executor, [named_call("write")]).await[0].outcome.is_ok());
    assert_eq!(read(&executor).await, (NEW_NUMBER.to_owned(), false));
    assert_eq!(read(&executor).await, (NEW_NUMBER.to_owned(), true));
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_tool_list_invalidates_earlier_results() {
    let store = Arc::new(NumberStore::default());
    let executor = caching_executor(store.clone());
    assert!(!read(&executor).await.1);
    assert!(read(&executor).await.1);
    store.number.store(42, Ordering::Relaxed);
    store.is_read_only.store(true, Ordering::Relaxed);
    assert_eq!(read(&executor).await, (NEW_NUMBER.to_owned(), false));
    assert!(read(&executor).await.1, "the list is the same");
}
