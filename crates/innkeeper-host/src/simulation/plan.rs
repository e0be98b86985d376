//! What a seed makes up: servers, what the application does with them, and how it ends.

use std::collections::BTreeSet;
use std::time::Duration;

use fastrand::Rng;
use serde_json::{Map, Value, json};

/// A server as its configuration and its nature have it.
#[derive(Clone, Debug)]
pub(super) struct ServerPlan {
    pub(super) name: String,
    /// Whether it does nothing wrong at all.
    pub(super) healthy: bool,
    pub(super) modern: bool,
    pub(super) remote: bool,
    /// Of a hundred requests, how many it treats badly.
    pub(super) temper: u8,
    /// Of a hundred launches, how many do not work out.
    pub(super) false_starts: u8,
    pub(super) required: bool,
    pub(super) dependencies: Vec<String>,
    pub(super) timeout: Duration,
    pub(super) most: Duration,
    pub(super) shutdown: Duration,
    concurrent: u32,
    silent_calls: u32,
    restarts: u32,
    ttl: u32,
    /// Another one is another server that has to be started.
    variant: u32,
}

/// What a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A tool that must not run twice.
    Work,
    /// A tool that only looks.
    Look,
    /// One of a few prompts.
    Prompt(u8),
    /// One of a few resources.
    Resource(u8),
}

/// One call of the application.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) server: ServerPlan,
    pub(super) what: What,
    /// When its future is dropped, if it is not done by then.
    pub(super) patience: Option<Duration>,
    /// Whether its arguments are wrong.
    pub(super) misfit: bool,
    pub(super) fresh: bool,
}

/// What the application does.
#[derive(Clone, Debug)]
pub(super) enum Action {
    Calls(Vec<Call>),
    Restart(String),
    Reload {
        servers: Vec<ServerPlan>,
        apply: bool,
        /// Whose calls may fail for it.
        touched: BTreeSet<String>,
    },
}

/// How the application takes leave of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// A shutdown after the last call.
    Quiet,
    /// A shutdown in the middle.
    Shutdown,
    /// A shutdown that is given up and asked for again.
    Impatient,
    /// A kill, then a shutdown.
    Kill,
    /// The last handle is dropped after the last call.
    Drop,
}

/// Everything one seed does.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) servers: Vec<ServerPlan>,
    pub(super) steps: Vec<(Duration, Action)>,
    pub(super) ending: Ending,
}

pub(super) fn millis(rng: &mut Rng, range: std::ops::Range<u64>) -> Duration {
    Duration::from_millis(rng.u64(range))
}

/// Whether something happens that does so in `share` of a hundred cases.
pub(super) fn chance(rng: &mut Rng, share: u8) -> bool {
    rng.u8(..100) < share
}

impl ServerPlan {
    fn new(rng: &mut Rng, number: usize, before: &[Self]) -> Self {
        let healthy = chance(rng, 45);
        let timeout = millis(rng, 1000..3000);
        let names = before.iter().map(|server| server.name.clone());
        let mut dependencies: Vec<String> = names.collect();
        dependencies.retain(|_| chance(rng, 25));
        Self {
            name: format!("s{number}"),
            healthy,
            modern: rng.bool(),
            remote: chance(rng, 35),
            temper: rng.u8(2..50),
            false_starts: if rng.bool() { rng.u8(..60) } else { 0 },
            required: healthy && chance(rng, 20) || chance(rng, 4),
            dependencies,
            timeout: if healthy { Duration::from_secs(4) } else { timeout },
            most: Duration::from_secs(4) + millis(rng, 0..6000),
            shutdown: millis(rng, 200..3000),
            concurrent: if healthy { 32 } else { rng.u32(1..16) },
            silent_calls: rng.u32(1..5),
            restarts: rng.u32(..9),
            ttl: rng.u32(..12),
            variant: 0,
        }
    }

    fn document(&self) -> Value {
        let restart = match self.restarts {
            0 => json!("never"),
            max => json!({ "onFailure": { "max": max } }),
        };
        let mut entry = json!({
            "required": self.required,
            "dependencies": self.dependencies,
            "timeout": self.timeout.as_secs_f64(),
            "maxTotalTimeout": self.most.as_secs_f64(),
            "initTimeout": 20,
            "shutdownTimeout": self.shutdown.as_secs_f64(),
            "maxConcurrent": self.concurrent,
            "unavailableAfterTimeouts": self.silent_calls,
            "restart": restart,
            "retry": { "max": 3, "initialDelay": 0.2, "maxDelay": 1 },
            "cache": { "ttl": self.ttl, "maxEntries": 3 },
        });
        if self.remote {
            entry["url"] = json!(format!("http://127.0.0.1:9/{}", self.variant));
        } else {
            let program = std::env::current_exe().unwrap();
            entry["command"] = json!(program);
            entry["args"] = json!([self.name, self.variant.to_string()]);
        }
        entry
    }
}

/// The configuration that has these servers.
pub(super) fn document(servers: &[ServerPlan]) -> Value {
    let entries = servers.iter().map(|server| (server.name.clone(), server.document()));
    json!({ "host": { "startTimeout": 60 }, "servers": entries.collect::<Map<_, _>>() })
}

impl Plan {
    pub(super) fn new(seed: u64) -> Self {
        let rng = &mut Rng::with_seed(seed);
        let mut servers = Vec::new();
        for number in 0..rng.usize(1..=5) {
            servers.push(ServerPlan::new(rng, number, &servers));
        }
        let mut now =
            Now { servers: servers.clone(), made: servers.len(), waiting: BTreeSet::new() };
        let steps = (0..rng.usize(10..=60)).map(|_| (pause(rng), now.action(rng))).collect();
        let endings =
            [Ending::Quiet, Ending::Shutdown, Ending::Impatient, Ending::Kill, Ending::Drop];
        Self { servers, steps, ending: endings[rng.usize(..endings.len())] }
    }
}

fn pause(rng: &mut Rng) -> Duration {
    match rng.u8(..100) {
        ..40 => Duration::ZERO,
        40..90 => millis(rng, 1..800),
        _ => millis(rng, 800..40_000),
    }
}

/// What the configuration has come to while the plan is made.
struct Now {
    servers: Vec<ServerPlan>,
    made: usize,
    /// Those with settings that wait for a start.
    waiting: BTreeSet<String>,
}

impl Now {
    fn action(&mut self, rng: &mut Rng) -> Action {
        match rng.u8(..100) {
            _ if self.servers.is_empty() => self.reload(rng),
            ..75 => Action::Calls(vec![self.call(rng)]),
            75..88 => {
                let call = self.call(rng);
                Action::Calls(vec![call; rng.usize(2..9)])
            }
            88..94 => {
                let name = self.servers[rng.usize(..self.servers.len())].name.clone();
                Action::Restart(name)
            }
            _ => self.reload(rng),
        }
    }

    fn call(&self, rng: &mut Rng) -> Call {
        let server = self.servers[rng.usize(..self.servers.len())].clone();
        let what = match rng.u8(..100) {
            ..45 => What::Work,
            45..65 => What::Look,
            65..82 => What::Prompt(rng.u8(..5)),
            _ => What::Resource(rng.u8(..5)),
        };
        let patience = match rng.u8(..10) {
            0 => Some(millis(rng, 1..1500)),
            1 => Some(millis(rng, 1..60)),
            _ => None,
        };
        let misfit = chance(rng, 4) && matches!(what, What::Work | What::Look);
        Call { server, what, patience, misfit, fresh: chance(rng, 20) }
    }

    fn reload(&mut self, rng: &mut Rng) -> Action {
        let apply = rng.bool();
        let mut touched = BTreeSet::new();
        for _ in 0..rng.usize(1..3) {
            let some = (!self.servers.is_empty()).then(|| rng.usize(..self.servers.len()));
            match (rng.u8(..3), some) {
                (0, Some(index)) if self.servers.len() > 1 => {
                    let gone = self.servers.remove(index).name;
                    for server in &mut self.servers {
                        server.dependencies.retain(|name| *name != gone);
                    }
                    self.waiting.remove(&gone);
                    touched.insert(gone);
                }
                (1, Some(index)) => {
                    let server = &mut self.servers[index];
                    server.variant += 1;
                    self.waiting.insert(server.name.clone());
                }
                _ if self.servers.len() < 7 => {
                    let server = ServerPlan::new(rng, self.made, &self.servers);
                    self.made += 1;
                    self.servers.push(server);
                }
                _ => {}
            }
        }
        if apply {
            touched.append(&mut self.waiting);
        }
        Action::Reload { servers: self.servers.clone(), apply, touched }
    }
}
