//! Schedules the tool calls of one response.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use innkeeper_toolcall::{Json, ResolvedCall};
use serde_json::json;
use tokio::time::Instant;

use super::ToolSnapshot;
use super::cache::ResultCache;
use super::event_log::{LogEventKind, LogWriter};
use super::queue::MAX_UNREAD_BYTES;
use crate::tools::{ToolAnnotations, ToolError, ToolOutput, ToolRunner, execute_call};

/// Maximum number of concurrent calls per response: a model rarely requests more at once, and a
/// server has other clients.
pub const MAX_PARALLEL_CALLS: usize = 4;

/// Maximum number of calls that are run per response; further calls are rejected. A model that
/// writes more calls is in a loop.
pub const MAX_CALLS_PER_RESPONSE: usize = 4096;

/// A tool call that has ended.
#[derive(Clone, Debug)]
pub struct ToolExecution {
    /// The number of the call in the response, counted from 0 by the start of each call. Invalid
    /// calls have numbers too.
    pub index: usize,
    /// The public name of the tool.
    pub tool: String,
    /// The arguments of the call.
    pub arguments: Json,
    /// The output of the tool, or the reason why there is none. A failure that the tool itself
    /// reports is an output.
    pub outcome: Result<Arc<ToolOutput>, Arc<ToolError>>,
    /// The duration of the execution, without the time in the queue.
    pub elapsed: Duration,
    /// Whether the result comes from the cache.
    pub cached: bool,
}

impl ToolExecution {
    /// Returns the approximate memory size in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        let outcome = self.outcome.as_ref().map_or(0, |output| output.raw().get().len());
        size_of::<Self>() + self.tool.len() + json_memory_bytes(&self.arguments) + outcome
    }
}

/// Returns the approximate memory size in bytes.
fn json_memory_bytes(json: &Json) -> usize {
    let inside = match json {
        Json::Null | Json::Bool(_) => 0,
        Json::Number(text) | Json::String(text) => text.len(),
        Json::Array(items) => items.iter().map(json_memory_bytes).sum(),
        Json::Object(members) => {
            members.iter().map(|(key, value)| key.len() + json_memory_bytes(value)).sum::<usize>()
        }
    };
    size_of::<Json>() + inside
}

/// Runs single calls: validates the arguments, uses the cache, calls the runner.
#[derive(Clone)]
pub(super) struct ChatToolDispatcher {
    pub(super) runner: Arc<dyn ToolRunner>,
    pub(super) tool_snapshot: Arc<ToolSnapshot>,
    pub(super) cache: Option<Arc<ResultCache>>,
    pub(super) log_writer: LogWriter,
}

impl std::fmt::Debug for ChatToolDispatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kitchen").field("cache", &self.cache).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct QueuedCall {
    index: usize,
    call: ResolvedCall,
    memory_bytes: usize,
}

/// Queued and running calls of one response.
#[derive(Debug)]
pub(super) struct CallScheduler {
    dispatcher: ChatToolDispatcher,
    queued: VecDeque<QueuedCall>,
    queued_bytes: usize,
    running: FuturesUnordered<BoxFuture<'static, ToolExecution>>,
    accepted_calls: usize,
}

impl CallScheduler {
    pub(super) fn new(dispatcher: ChatToolDispatcher) -> Self {
        let running = FuturesUnordered::new();
        Self { dispatcher, queued: VecDeque::new(), queued_bytes: 0, running, accepted_calls: 0 }
    }

    /// Whether another call may be queued.
    pub(super) fn has_capacity(&self) -> bool {
        self.accepted_calls < MAX_CALLS_PER_RESPONSE
    }

    /// Queues a call; returns the call with an error if too many bytes are queued.
    pub(super) fn enqueue(&mut self, index: usize, call: ResolvedCall) -> Option<ToolExecution> {
        self.accepted_calls += 1;
        let memory_bytes = json_memory_bytes(&call.arguments);
        if self.queued_bytes + memory_bytes > MAX_UNREAD_BYTES {
            return Some(buffer_full_execution(index, call));
        }
        self.queued_bytes += memory_bytes;
        self.queued.push_back(QueuedCall { index, call, memory_bytes });
        None
    }

    /// Starts calls up to the limits, with `untaken_bytes` bytes of unread results.
    pub(super) fn start_next(&mut self, untaken_bytes: usize) -> Option<ToolExecution> {
        while self.running.len() < MAX_PARALLEL_CALLS {
            let QueuedCall { index, call, memory_bytes } = self.queued.pop_front()?;
            self.queued_bytes -= memory_bytes;
            if untaken_bytes >= MAX_UNREAD_BYTES {
                return Some(buffer_full_execution(index, call));
            }
            self.running.push(run_call(self.dispatcher.clone(), index, call).boxed());
        }
        None
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty() && self.queued.is_empty()
    }

    /// Returns the next call that ends; `None` if no call is running. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<ToolExecution> {
        self.running.next().await
    }
}

fn buffer_full_execution(index: usize, call: ResolvedCall) -> ToolExecution {
    let ResolvedCall { name: tool, arguments, .. } = call;
    let outcome =
        Err(Arc::new(ToolError::BufferFull { tool: tool.clone(), limit: MAX_UNREAD_BYTES }));
    ToolExecution { index, tool, arguments, outcome, elapsed: Duration::ZERO, cached: false }
}

async fn run_call(
    dispatcher: ChatToolDispatcher,
    index: usize,
    call: ResolvedCall,
) -> ToolExecution {
    let recorder = dispatcher.log_writer.clone();
    let start = Instant::now();
    recorder.log(LogEventKind::ToolExecutionStart, || json!({"tool": call.name, "call": index}));
    let (outcome, cached) = dispatcher.execute(&call).await;
    let elapsed = start.elapsed();
    recorder.log_execution(index, &call.name, outcome.as_deref(), (elapsed, cached));
    let ResolvedCall { name: tool, arguments, .. } = call;
    ToolExecution { index, tool, arguments, outcome: outcome.map_err(Arc::new), elapsed, cached }
}

impl ChatToolDispatcher {
    async fn execute(&self, call: &ResolvedCall) -> (Result<Arc<ToolOutput>, ToolError>, bool) {
        // Without a verdict of the validator, the runner checks the arguments.
        let violations = self.tool_snapshot.tool_validator.violations(call).unwrap_or_default();
        if !violations.is_empty() {
            return (
                Err(ToolError::InvalidArguments { tool: call.name.clone(), violations }),
                false,
            );
        }
        match &self.cache {
            Some(cache) => {
                let hints = self.annotations(&call.name);
                cache
                    .get_or_run(&call.name, hints, &call.arguments, self.execute_uncached(call))
                    .await
            }
            None => (self.execute_uncached(call).await, false),
        }
    }

    async fn execute_uncached(&self, call: &ResolvedCall) -> Result<Arc<ToolOutput>, ToolError> {
        execute_call(&*self.runner, call).await.map(Arc::new)
    }

    fn annotations(&self, tool: &str) -> ToolAnnotations {
        let available_tool =
            self.tool_snapshot.available_tools.iter().find(|available| available.tool.name == tool);
        available_tool.map(|available| available.annotations).unwrap_or_default()
    }
}
