//! The plan of a simulation: servers, actions and the end, all from the seed.

use std::collections::BTreeSet;
use std::time::Duration;

use fastrand::Rng;
use serde_json::{Map, Value, json};

/// The configuration and the behaviour of a server.
#[derive(Clone, Debug)]
pub(super) struct ServerPlan {
    pub(super) name: String,
    pub(super) modern: bool,
    pub(super) remote: bool,
    pub(super) faults: PlannedFaults,
    pub(super) required: bool,
    pub(super) dependencies: Vec<String>,
    pub(super) limits: PlannedLimits,
    /// A changed value is a changed configuration that requires a restart.
    config_version: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct PlannedFaults {
    /// Whether the server injects no faults.
    pub(super) healthy: bool,
    pub(super) request_percent: u8,
    /// The percentage of launches that fail.
    pub(super) launch_percent: u8,
}

/// The configured limits of a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlannedLimits {
    pub(super) timeout: Duration,
    pub(super) max_total_timeout: Duration,
    pub(super) shutdown_timeout: Duration,
    max_concurrent: u32,
    unavailable_after_timeouts: u32,
    max_restarts: u32,
    cache_ttl_secs: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallTarget {
    /// A tool that must not run twice.
    WriteTool,
    /// A read-only tool.
    ReadOnlyTool,
    /// A prompt, by number.
    Prompt(u8),
    /// A resource, by number.
    Resource(u8),
}

/// A call of the application.
#[derive(Clone, Debug)]
pub(super) struct PlannedCall {
    pub(super) server: ServerPlan,
    pub(super) target: CallTarget,
    /// The time after which the application drops the future of the call.
    pub(super) drop_after: Option<Duration>,
    /// Whether the arguments violate the schema.
    pub(super) invalid_arguments: bool,
    pub(super) fresh: bool,
}

#[derive(Clone, Debug)]
pub(super) enum ApplicationAction {
    Calls(Vec<PlannedCall>),
    Restart(String),
    Reload {
        servers: Vec<ServerPlan>,
        apply: bool,
        /// The servers whose calls may fail because of the reload.
        affected: BTreeSet<String>,
    },
}

/// The way the application ends its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostEnding {
    /// Shutdown after the last call.
    WhenIdle,
    /// Shutdown during calls.
    Shutdown,
    /// Shutdown whose future is dropped, then a second shutdown.
    AbandonedShutdown,
    /// Kill, then shutdown.
    Kill,
    /// Drop of the last handle after the last call.
    Drop,
}

/// All servers and actions of one seed.
#[derive(Debug)]
pub(super) struct SimulationPlan {
    pub(super) servers: Vec<ServerPlan>,
    pub(super) steps: Vec<(Duration, ApplicationAction)>,
    pub(super) ending: HostEnding,
}

pub(super) fn millis(rng: &mut Rng, range: std::ops::Range<u64>) -> Duration {
    Duration::from_millis(rng.u64(range))
}

/// Returns `true` with a probability of `share` percent.
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
            modern: rng.bool(),
            remote: chance(rng, 35),
            faults: PlannedFaults {
                healthy,
                request_percent: rng.u8(2..50),
                launch_percent: if rng.bool() { rng.u8(..60) } else { 0 },
            },
            required: healthy && chance(rng, 20) || chance(rng, 4),
            dependencies,
            limits: PlannedLimits {
                timeout: if healthy { Duration::from_secs(4) } else { timeout },
                max_total_timeout: Duration::from_secs(4) + millis(rng, 0..6000),
                shutdown_timeout: millis(rng, 200..3000),
                max_concurrent: if healthy { 32 } else { rng.u32(1..16) },
                unavailable_after_timeouts: rng.u32(1..5),
                max_restarts: rng.u32(..9),
                cache_ttl_secs: rng.u32(..12),
            },
            config_version: 0,
        }
    }

    fn config_entry(&self) -> Value {
        let restart = match self.limits.max_restarts {
            0 => json!("never"),
            max => json!({ "onFailure": { "max": max } }),
        };
        let mut entry = json!({
            "required": self.required,
            "dependencies": self.dependencies,
            "timeout": self.limits.timeout.as_secs_f64(),
            "maxTotalTimeout": self.limits.max_total_timeout.as_secs_f64(),
            "initTimeout": 20,
            "shutdownTimeout": self.limits.shutdown_timeout.as_secs_f64(),
            "maxConcurrent": self.limits.max_concurrent,
            "unavailableAfterTimeouts": self.limits.unavailable_after_timeouts,
            "restart": restart,
            "retry": { "max": 3, "initialDelay": 0.2, "maxDelay": 1 },
            "cache": { "ttl": self.limits.cache_ttl_secs, "maxEntries": 3 },
        });
        if self.remote {
            entry["url"] = json!(format!("http://127.0.0.1:9/{}", self.config_version));
        } else {
            let program = std::env::current_exe().unwrap();
            entry["command"] = json!(program);
            entry["args"] = json!([self.name, self.config_version.to_string()]);
        }
        entry
    }
}

pub(super) fn config_json(servers: &[ServerPlan]) -> Value {
    let entries = servers.iter().map(|server| (server.name.clone(), server.config_entry()));
    json!({ "host": { "startTimeout": 60 }, "servers": entries.collect::<Map<_, _>>() })
}

impl SimulationPlan {
    pub(super) fn new(seed: u64) -> Self {
        let rng = &mut Rng::with_seed(seed);
        let mut servers = Vec::new();
        for number in 0..rng.usize(1..=5) {
            servers.push(ServerPlan::new(rng, number, &servers));
        }
        let mut now = PlanBuilder {
            servers: servers.clone(),
            created_count: servers.len(),
            pending_restart: BTreeSet::new(),
        };
        let steps =
            (0..rng.usize(10..=60)).map(|_| (random_pause(rng), now.next_action(rng))).collect();
        let endings = [
            HostEnding::WhenIdle,
            HostEnding::Shutdown,
            HostEnding::AbandonedShutdown,
            HostEnding::Kill,
            HostEnding::Drop,
        ];
        Self { servers, steps, ending: endings[rng.usize(..endings.len())] }
    }
}

fn random_pause(rng: &mut Rng) -> Duration {
    match rng.u8(..100) {
        ..40 => Duration::ZERO,
        40..90 => millis(rng, 1..800),
        _ => millis(rng, 800..40_000),
    }
}

/// The state of the configuration during the construction of the plan.
struct PlanBuilder {
    servers: Vec<ServerPlan>,
    created_count: usize,
    /// The servers with settings that wait for a restart.
    pending_restart: BTreeSet<String>,
}

impl PlanBuilder {
    fn next_action(&mut self, rng: &mut Rng) -> ApplicationAction {
        match rng.u8(..100) {
            _ if self.servers.is_empty() => self.next_reload(rng),
            ..75 => ApplicationAction::Calls(vec![self.next_call(rng)]),
            75..88 => {
                let call = self.next_call(rng);
                ApplicationAction::Calls(vec![call; rng.usize(2..9)])
            }
            88..94 => {
                let name = self.servers[rng.usize(..self.servers.len())].name.clone();
                ApplicationAction::Restart(name)
            }
            _ => self.next_reload(rng),
        }
    }

    fn next_call(&self, rng: &mut Rng) -> PlannedCall {
        let server = self.servers[rng.usize(..self.servers.len())].clone();
        let target = match rng.u8(..100) {
            ..45 => CallTarget::WriteTool,
            45..65 => CallTarget::ReadOnlyTool,
            65..82 => CallTarget::Prompt(rng.u8(..5)),
            _ => CallTarget::Resource(rng.u8(..5)),
        };
        let drop_after = match rng.u8(..10) {
            0 => Some(millis(rng, 1..1500)),
            1 => Some(millis(rng, 1..60)),
            _ => None,
        };
        let invalid_arguments =
            chance(rng, 4) && matches!(target, CallTarget::WriteTool | CallTarget::ReadOnlyTool);
        PlannedCall { server, target, drop_after, invalid_arguments, fresh: chance(rng, 20) }
    }

    fn next_reload(&mut self, rng: &mut Rng) -> ApplicationAction {
        let apply = rng.bool();
        let mut affected = BTreeSet::new();
        for _ in 0..rng.usize(1..3) {
            let some = (!self.servers.is_empty()).then(|| rng.usize(..self.servers.len()));
            match (rng.u8(..3), some) {
                (0, Some(index)) if self.servers.len() > 1 => {
                    let removed = self.servers.remove(index).name;
                    for server in &mut self.servers {
                        server.dependencies.retain(|name| *name != removed);
                    }
                    self.pending_restart.remove(&removed);
                    affected.insert(removed);
                }
                (1, Some(index)) => {
                    let server = &mut self.servers[index];
                    server.config_version += 1;
                    self.pending_restart.insert(server.name.clone());
                }
                _ if self.servers.len() < 7 => {
                    let server = ServerPlan::new(rng, self.created_count, &self.servers);
                    self.created_count += 1;
                    self.servers.push(server);
                }
                _ => {}
            }
        }
        if apply {
            affected.append(&mut self.pending_restart);
        }
        ApplicationAction::Reload { servers: self.servers.clone(), apply, affected }
    }
}
