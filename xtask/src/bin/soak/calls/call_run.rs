//! Runs the calls on one host with counters for their outcomes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use innkeeper_host::{Config, Environment, Host};
use serde_json::Value;
use tokio::sync::RwLock;
use tokio::task::JoinSet;

use super::call_plan::{CallFault, CallPlan};
use super::servers::SERVER_NAMES;

/// Number of concurrent calls.
pub(super) const IN_FLIGHT: usize = 64;
/// Maximum number of reported wrong outcomes.
const MAX_REPORTED_PROBLEMS: usize = 20;

/// The counters of the outcomes.
#[derive(Clone, Debug, Default)]
pub(super) struct OutcomeCounts {
    pub(super) outcomes: u64,
    pub(super) mismatched: u64,
    pub(super) faults: BTreeMap<&'static str, u64>,
    /// The first wrong outcomes.
    pub(super) problems: Vec<String>,
}

/// A host with its servers.
pub(super) struct CallRun {
    host: Host,
    next_id: AtomicU64,
    counts: Mutex<OutcomeCounts>,
    /// A call that crashes its server holds the write lock, so that the outcome of every other call
    /// is known.
    crash_locks: [RwLock<()>; SERVER_NAMES.len()],
}

impl CallRun {
    pub(super) async fn start(config: &Value) -> Result<Arc<Self>, String> {
        let environment = Environment::from_pairs([("PATH", "/usr/bin:/bin")]);
        let config = Config::from_value(config, "soak", std::path::Path::new("."), &environment)
            .map_err(|error| format!("configuration: {error}"))?;
        let host = Host::start(config).await.map_err(|error| format!("start: {error}"))?;
        let (next_id, counts) = (AtomicU64::new(0), Mutex::default());
        let crash_locks = std::array::from_fn(|_| RwLock::default());
        Ok(Arc::new(Self { host, next_id, counts, crash_locks }))
    }

    /// Runs all calls below `end_id` and waits for their outcomes.
    pub(super) async fn run_until(self: &Arc<Self>, end_id: u64) -> Result<(), String> {
        let mut callers = JoinSet::new();
        for _ in 0..IN_FLIGHT {
            let run = self.clone();
            callers.spawn(async move {
                loop {
                    let claimed =
                        run.next_id.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |id| {
                            (id < end_id).then_some(id + 1)
                        });
                    let Ok(id) = claimed else { break };
                    run.run_call(CallPlan::for_id(id)).await;
                }
            });
        }
        while let Some(ended) = callers.join_next().await {
            ended.map_err(|error| format!("a caller: {error}"))?;
        }
        Ok(())
    }

    async fn run_call(&self, draw: CallPlan) {
        let (crash_lock, name) = (&self.crash_locks[draw.server], SERVER_NAMES[draw.server]);
        let tool = format!("{name}.tally");
        let call = self.host.call_tool_with(&tool, draw.arguments(), draw.options());
        let (outcome, restarted) = if draw.fault == Some(CallFault::Crash) {
            let _alone = crash_lock.write().await;
            let outcome = call.await;
            (outcome, self.host.restart_server(name).await)
        } else {
            let _beside = crash_lock.read().await;
            (call.await, Ok(()))
        };
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.outcomes += 1;
        if let Some(fault) = draw.fault {
            *counts.faults.entry(fault.as_str()).or_default() += 1;
        }
        let right = draw.is_expected(&outcome);
        counts.mismatched += u64::from(!right);
        if (!right || restarted.is_err()) && counts.problems.len() < MAX_REPORTED_PROBLEMS {
            let outcome = outcome.map(|result| result.raw().get().to_owned());
            counts.problems.push(format!("{draw:?}: {outcome:?}, restart {restarted:?}"));
        }
    }

    pub(super) fn counts(&self) -> OutcomeCounts {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) async fn shutdown(&self) {
        self.host.shutdown().await;
    }
}
