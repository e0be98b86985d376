//! One host and those that call: each call has one outcome, and it is counted.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use innkeeper_host::{Config, Environment, Host};
use serde_json::Value;
use tokio::sync::RwLock;
use tokio::task::JoinSet;

use super::draw::{Draw, Fault};
use super::servers::NAMES;

/// Calls under way at the same time.
pub(super) const IN_FLIGHT: usize = 64;
/// Wrong outcomes that are told in words; more would say nothing new.
const TOLD: usize = 20;

/// What came of the calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) outcomes: u64,
    pub(super) mismatched: u64,
    pub(super) faults: BTreeMap<&'static str, u64>,
    /// The first of those that are not what they must be.
    pub(super) words: Vec<String>,
}

/// A host with its servers.
pub(super) struct Run {
    host: Host,
    next: AtomicU64,
    counts: Mutex<Counts>,
    /// A call that has its server crash is alone with it, so that every other outcome is known.
    alone: [RwLock<()>; NAMES.len()],
}

impl Run {
    pub(super) async fn start(config: &Value) -> Result<Arc<Self>, String> {
        let environment = Environment::from_pairs([("PATH", "/usr/bin:/bin")]);
        let config = Config::from_value(config, "soak", std::path::Path::new("."), &environment)
            .map_err(|error| format!("configuration: {error}"))?;
        let host = Host::start(config).await.map_err(|error| format!("start: {error}"))?;
        let (next, counts) = (AtomicU64::new(0), Mutex::default());
        let alone = std::array::from_fn(|_| RwLock::default());
        Ok(Arc::new(Self { host, next, counts, alone }))
    }

    /// Makes the calls up to this number and waits until each has its outcome.
    pub(super) async fn until(self: &Arc<Self>, end: u64) -> Result<(), String> {
        let mut callers = JoinSet::new();
        for _ in 0..IN_FLIGHT {
            let run = self.clone();
            callers.spawn(async move {
                loop {
                    let taken = run.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |id| {
                        (id < end).then_some(id + 1)
                    });
                    let Ok(id) = taken else { break };
                    run.call(Draw::of(id)).await;
                }
            });
        }
        while let Some(ended) = callers.join_next().await {
            ended.map_err(|error| format!("a caller: {error}"))?;
        }
        Ok(())
    }

    async fn call(&self, draw: Draw) {
        let (alone, name) = (&self.alone[draw.server], NAMES[draw.server]);
        let tool = format!("{name}.tally");
        let ask = self.host.call_tool_with(&tool, draw.arguments(), draw.options());
        let (outcome, restarted) = if draw.fault == Some(Fault::Crash) {
            let _alone = alone.write().await;
            let outcome = ask.await;
            (outcome, self.host.restart_server(name).await)
        } else {
            let _beside = alone.read().await;
            (ask.await, Ok(()))
        };
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.outcomes += 1;
        if let Some(fault) = draw.fault {
            *counts.faults.entry(fault.word()).or_default() += 1;
        }
        let right = draw.judge(&outcome);
        counts.mismatched += u64::from(!right);
        if (!right || restarted.is_err()) && counts.words.len() < TOLD {
            let outcome = outcome.map(|result| result.raw().get().to_owned());
            counts.words.push(format!("{draw:?}: {outcome:?}, restart {restarted:?}"));
        }
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) async fn shutdown(&self) {
        self.host.shutdown().await;
    }
}
