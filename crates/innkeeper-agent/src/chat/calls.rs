//! The calls of one answer: some wait, some run side by side, each ends with its result.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use innkeeper_toolcall::{Call, Json};
use serde_json::json;
use tokio::time::Instant;

use super::Known;
use super::cache::Cache;
use super::queue::UNTAKEN;
use super::record::{Kind, Recorder};
use crate::tools::{Hints, Output, RunError, ToolRunner, perform};

/// How many calls of an answer run at once: what a model asks for at once is rarely more, and a
/// server has other clients.
pub const PARALLEL: usize = 4;

/// How many calls of an answer are run; those behind them are not. A model that writes more of them
/// is in a loop.
pub const CALLS: usize = 4096;

/// A call that came to its end.
#[derive(Clone, Debug)]
pub struct Executed {
    /// Which call of the answer, counted from 0 by their beginnings; what turned out to be none has
    /// its number too.
    pub index: usize,
    /// The tool, by the name it was offered under.
    pub tool: String,
    /// The arguments it was called with.
    pub arguments: Json,
    /// What it answered, or why there is no answer. A tool that reports a failure has answered.
    pub outcome: Result<Arc<Output>, Arc<RunError>>,
    /// From when it was run until it had its outcome; without the time it waited for others.
    pub elapsed: Duration,
    /// Whether the answer is one from before.
    pub cached: bool,
}

impl Executed {
    /// How much memory it takes, about.
    pub(super) fn weight(&self) -> usize {
        let outcome = self.outcome.as_ref().map_or(0, |output| output.raw().get().len());
        size_of::<Self>() + self.tool.len() + weight(&self.arguments) + outcome
    }
}

/// How much memory a value takes, about.
fn weight(json: &Json) -> usize {
    let inside = match json {
        Json::Null | Json::Bool(_) => 0,
        Json::Number(text) | Json::String(text) => text.len(),
        Json::Array(items) => items.iter().map(weight).sum(),
        Json::Object(members) => {
            members.iter().map(|(key, value)| key.len() + weight(value)).sum::<usize>()
        }
    };
    size_of::<Json>() + inside
}

/// What running a call takes.
#[derive(Clone)]
pub(super) struct Kitchen {
    pub(super) runner: Arc<dyn ToolRunner>,
    pub(super) known: Arc<Known>,
    pub(super) cache: Option<Arc<Cache>>,
    pub(super) recorder: Recorder,
}

impl std::fmt::Debug for Kitchen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kitchen").field("cache", &self.cache).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Waiting {
    index: usize,
    call: Call,
    weight: usize,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Calls {
    kitchen: Kitchen,
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    running: FuturesUnordered<BoxFuture<'static, Executed>>,
    taken: usize,
}

impl Calls {
    pub(super) fn new(kitchen: Kitchen) -> Self {
        let running = FuturesUnordered::new();
        Self { kitchen, waiting: VecDeque::new(), waiting_bytes: 0, running, taken: 0 }
    }

    /// Whether another call may be taken.
    pub(super) fn has_room(&self) -> bool {
        self.taken < CALLS
    }

    /// Lets a call wait for its turn; gives it back with its outcome if too much waits.
    pub(super) fn take(&mut self, index: usize, call: Call) -> Option<Executed> {
        self.taken += 1;
        let weight = weight(&call.arguments);
        if self.waiting_bytes + weight > UNTAKEN {
            return Some(untaken(index, call));
        }
        self.waiting_bytes += weight;
        self.waiting.push_back(Waiting { index, call, weight });
        None
    }

    /// Begins what may run now, where `untaken` bytes of results wait to be taken.
    pub(super) fn begin(&mut self, untaken_bytes: usize) -> Option<Executed> {
        while self.running.len() < PARALLEL {
            let Waiting { index, call, weight } = self.waiting.pop_front()?;
            self.waiting_bytes -= weight;
            if untaken_bytes >= UNTAKEN {
                return Some(untaken(index, call));
            }
            self.running.push(run(self.kitchen.clone(), index, call).boxed());
        }
        None
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }

    /// The next call that ends; nothing when none runs. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Executed> {
        self.running.next().await
    }
}

fn untaken(index: usize, call: Call) -> Executed {
    let Call { name: tool, arguments, .. } = call;
    let outcome = Err(Arc::new(RunError::Untaken { tool: tool.clone(), limit: UNTAKEN }));
    Executed { index, tool, arguments, outcome, elapsed: Duration::ZERO, cached: false }
}

async fn run(kitchen: Kitchen, index: usize, call: Call) -> Executed {
    let recorder = kitchen.recorder.clone();
    let begun = Instant::now();
    recorder.tell(Kind::ToolExecutionStart, || json!({"tool": call.name, "call": index}));
    let (outcome, cached) = kitchen.outcome(&call).await;
    let elapsed = begun.elapsed();
    recorder.executed(index, &call.name, outcome.as_deref(), (elapsed, cached));
    let Call { name: tool, arguments, .. } = call;
    Executed { index, tool, arguments, outcome: outcome.map_err(Arc::new), elapsed, cached }
}

impl Kitchen {
    async fn outcome(&self, call: &Call) -> (Result<Arc<Output>, RunError>, bool) {
        // Where it cannot be told whether the arguments fit, who runs the tool finds out.
        let violations = self.known.toolbox.violations(call).unwrap_or_default();
        if !violations.is_empty() {
            return (Err(RunError::Unfit { tool: call.name.clone(), violations }), false);
        }
        match &self.cache {
            Some(cache) => {
                let hints = self.hints(&call.name);
                cache.answer(&call.name, hints, &call.arguments, self.ask(call)).await
            }
            None => (self.ask(call).await, false),
        }
    }

    async fn ask(&self, call: &Call) -> Result<Arc<Output>, RunError> {
        perform(&*self.runner, call).await.map(Arc::new)
    }

    fn hints(&self, tool: &str) -> Hints {
        let found = self.known.offered.iter().find(|offered| offered.tool.name == tool);
        found.map(|offered| offered.hints).unwrap_or_default()
    }
}
