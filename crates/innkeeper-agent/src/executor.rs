//! Runs the tool calls of models: the only module that runs a call.
//!
//! A native call, a call in the text of an agent's model and a call in the text of a chat take the
//! same steps: blocklist, validation of the arguments, rate limit, approval, permit, cache, the
//! runner, audit. A refused call has an outcome like any other call, which the model gets.

mod cache;
mod call_queue;
mod execute;
mod execution;
mod tool_snapshot;

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use innkeeper_host::Progress;
use innkeeper_toolcall::{Json, ResolvedCall};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::safety::{ApprovalDecision, ApprovalPolicy, ApprovalRequest, Approver};
use crate::safety::{RateLimit, ToolBlocklist, blocked_tool_message};
use crate::timing::Timing;
use crate::tools::{AvailableTool, ToolCallOptions, ToolError, ToolOutput, ToolRunner};
use cache::ResultCache;

pub use cache::CacheSettings;
pub(crate) use call_queue::{CallQueue, QueueEvent, QueuedCall, StartRule};
pub use execution::ToolExecution;
pub(crate) use tool_snapshot::ToolSnapshot;

/// Default of the maximum number of concurrent calls per response: a model rarely requests more at
/// once, and a server has other clients.
pub const DEFAULT_PARALLEL_CALLS: usize = 4;

/// Number of definitions of one tool that the approver is asked about during one call. A tool that
/// changes more often is not meant to be understood.
const MAX_APPROVALS_PER_CALL: usize = 3;

/// Maximum number of calls that a chat runs per response, and the default for an agent. A model that
/// writes more calls is in a loop; a chat must run 1,000 calls (S19).
pub const MAX_CALLS_PER_RESPONSE: usize = 1024;

#[derive(Clone, Debug, Default)]
pub(crate) struct ExecutorSettings {
    pub(crate) blocklist: ToolBlocklist,
    pub(crate) approval_policy: ApprovalPolicy,
    pub(crate) calls: CallSettings,
}

/// How calls run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallSettings {
    /// Maximum number of tool calls in any 60 seconds; further calls are refused. Default: no
    /// limit.
    #[serde(rename = "call_rate_limit_per_minute")]
    pub rate_limit_per_minute: Option<u32>,
    /// Maximum number of concurrent calls per response. Default: [`DEFAULT_PARALLEL_CALLS`].
    #[serde(rename = "max_parallel_calls")]
    pub max_parallel: usize,
    /// The cache of results for repeated calls of tools that are annotated as read-only or
    /// idempotent. Default: no cache.
    pub cache: Option<CacheSettings>,
    /// The timeout of one tool call, without a response or progress. Default: the limit of the
    /// [`ToolRunner`]; for a host, the server's `timeout`.
    #[serde(rename = "call_timeout_ms", with = "crate::millis::option", default)]
    pub timeout: Option<Duration>,
}

impl Default for CallSettings {
    fn default() -> Self {
        Self {
            rate_limit_per_minute: None,
            max_parallel: DEFAULT_PARALLEL_CALLS,
            cache: None,
            timeout: None,
        }
    }
}

/// Runs calls under the safety rules. Clones share the rate limit, the cache and the tools.
#[derive(Clone)]
pub(crate) struct Executor {
    runner: Arc<dyn ToolRunner>,
    approver: Option<Arc<dyn Approver>>,
    settings: Arc<ExecutorSettings>,
    rate_limit: Option<Arc<RateLimit>>,
    cache: Option<Arc<ResultCache>>,
    timing: Timing,
    /// The most recent list of tools.
    tool_snapshot: Arc<Mutex<Arc<ToolSnapshot>>>,
}

impl std::fmt::Debug for Executor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Executor").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Executor {
    pub(crate) fn new(
        runner: Arc<dyn ToolRunner>,
        settings: ExecutorSettings,
        timing: Timing,
    ) -> Self {
        let rate_limit = settings
            .calls
            .rate_limit_per_minute
            .map(|calls| Arc::new(RateLimit::per_minute(calls)));
        let cache = settings
            .calls
            .cache
            .clone()
            .map(|settings| Arc::new(ResultCache::new(settings, timing.clone())));
        Self {
            runner,
            approver: None,
            settings: Arc::new(settings),
            rate_limit,
            cache,
            timing,
            tool_snapshot: Arc::default(),
        }
    }

    /// Returns an executor over other tools, with the same rules, rate limit and cache.
    pub(crate) fn with_runner(&self, runner: Arc<dyn ToolRunner>) -> Self {
        Self { runner, tool_snapshot: Arc::default(), ..self.clone() }
    }

    pub(crate) fn take_approver(&mut self, other: &Self) {
        self.approver.clone_from(&other.approver);
    }

    pub(crate) fn set_approver(&mut self, approver: Arc<dyn Approver>) {
        self.approver = Some(approver);
    }

    /// Returns a snapshot of the tools. If the runner lists other tools than before, the snapshot is
    /// new and the cache is cleared, because a tool of the same name may be another tool.
    pub(crate) fn tool_snapshot(&self) -> Arc<ToolSnapshot> {
        let listed = self.runner.list_tools();
        let mut snapshot = self.tool_snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        if !snapshot.is_of(&listed) {
            let unavailable = self.runner.unavailable_tools();
            let blocklist = &self.settings.blocklist;
            *snapshot = Arc::new(ToolSnapshot::new(listed, unavailable, blocklist));
            if let Some(cache) = &self.cache {
                cache.clear();
            }
        }
        snapshot.clone()
    }

    /// Waits until the runner lists the tools that earlier calls changed.
    pub(crate) async fn finish_refresh(&self) {
        self.runner.finish_refresh().await;
    }

    /// Decides whether a call may run. The approver may replace the arguments.
    async fn check(
        &self,
        snapshot: &ToolSnapshot,
        queued: &mut QueuedCall,
    ) -> Result<(), ToolError> {
        let call = &queued.call;
        let refuse = |reason| ToolError::Refused { tool: call.name.clone(), reason };
        if let Some(name) = self.settings.blocklist.blocked_name(call) {
            return Err(refuse(blocked_tool_message(name)));
        }
        if let Some(reason) = &queued.refusal {
            return Err(refuse(reason.clone()));
        }
        if let Some(reason) = snapshot.find(&call.name).and_then(|tool| tool.refusal.as_deref()) {
            return Err(refuse(reason.to_owned()));
        }
        check_arguments(snapshot, call)?;
        if let Some(rate_limit) = &self.rate_limit
            && let Err(after) = rate_limit.try_acquire_at(self.timing.now())
        {
            let limit = self.settings.calls.rate_limit_per_minute.unwrap_or_default();
            let seconds = after.as_secs_f64();
            return Err(refuse(format!(
                "rate limit of {limit} tool calls per minute reached; next call in {seconds:.1} s"
            )));
        }
        match self.approve(snapshot, queued).await {
            ApprovalDecision::Approve => Ok(()),
            ApprovalDecision::Deny(reason) => Err(refuse(reason)),
            ApprovalDecision::ApproveWith(arguments) => {
                let arguments = serde_json::from_str(&arguments)
                    .ok()
                    .filter(|arguments| matches!(arguments, Json::Object(_)))
                    .ok_or_else(|| {
                        refuse("the changed arguments are not a JSON object".to_owned())
                    })?;
                queued.replace_arguments(arguments);
                check_arguments(snapshot, &queued.call)
            }
        }
    }

    /// Asks the approver if the policy requires an approval. A decision counts only for the
    /// definition that was asked about: if the tool changes in the meantime, the approver is asked
    /// again.
    async fn approve(&self, snapshot: &ToolSnapshot, queued: &QueuedCall) -> ApprovalDecision {
        let mut tool = snapshot.find(&queued.call.name).cloned();
        for _ in 0..MAX_APPROVALS_PER_CALL {
            let decision = self.decide(tool.as_ref(), queued).await;
            if matches!(decision, ApprovalDecision::Deny(_)) {
                return decision;
            }
            let mut present = self.runner.list_tools().into_iter();
            let present = present.find(|tool| tool.tool.name == queued.call.name);
            if present == tool {
                return decision;
            }
            tool = present;
        }
        ApprovalDecision::Deny("the tool changed while the user decided about it".to_owned())
    }

    /// Asks the approver about one definition. A panic of the approver denies the call, because the
    /// approver is code of the application.
    async fn decide(&self, tool: Option<&AvailableTool>, queued: &QueuedCall) -> ApprovalDecision {
        let annotations = tool.map(|tool| tool.annotations).unwrap_or_default();
        let definition = tool.and_then(|tool| tool.definition.as_deref());
        match (self.settings.approval_policy.requires_approval(annotations), &self.approver) {
            (Some(false), _) => ApprovalDecision::Approve,
            (Some(true), Some(approver)) => {
                let tool = &*queued.call.name;
                let arguments = &*queued.arguments_text;
                let request = ApprovalRequest { tool, arguments, annotations, definition };
                let deciding = AssertUnwindSafe(async { approver.decide(request).await });
                deciding
                    .catch_unwind()
                    .await
                    .unwrap_or_else(|_| ApprovalDecision::Deny("the approver panicked".to_owned()))
            }
            (Some(true), None) => ApprovalDecision::Deny("no approver is configured".to_owned()),
            (None, _) => ApprovalDecision::Deny("the approval policy denies all tools".to_owned()),
        }
    }

    /// Runs a call that may run. Returns whether the output comes from the cache.
    async fn run(
        &self,
        snapshot: &ToolSnapshot,
        queued: &QueuedCall,
        progress: Option<mpsc::Sender<Progress>>,
    ) -> (Result<Arc<ToolOutput>, ToolError>, bool) {
        let call = &queued.call;
        let options = ToolCallOptions { timeout: self.settings.calls.timeout, progress };
        let running =
            async { execute::execute_call(&*self.runner, queued, options).await.map(Arc::new) };
        match &self.cache {
            Some(cache) => {
                let annotations = snapshot.annotations(&call.name);
                cache.get_or_run(&call.name, annotations, &call.arguments, running).await
            }
            None => (running.await, false),
        }
    }
}

/// Checks the arguments of a call against the schema of the tool.
fn check_arguments(snapshot: &ToolSnapshot, call: &ResolvedCall) -> Result<(), ToolError> {
    // Without a verdict of the validator, the runner checks the arguments.
    let violations = snapshot.tools.validator.violations(call).unwrap_or_default();
    if violations.is_empty() {
        return Ok(());
    }
    Err(ToolError::InvalidArguments { tool: call.name.clone(), violations })
}

#[cfg(test)]
mod tests;
