//! Settings with defaults: the `host` object over our own, a server's over the host's.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Map, Value};

use super::guard::{GuardMode, GuardModes};
use super::host::HostConfig;
use super::load::Part;
use super::place::{key, locate};
use super::problem::Position;
use super::raw_value::ByteSize;
use super::server::{Cache, Limits, Restart, Retry, Sandbox};
use super::source::Report;
use super::tree::Node;
use super::{raw, schema, unknown, validate};

/// The host's settings out of every file; a key may be set in one of them only.
pub(super) fn host(parts: &mut [Part<'_>]) -> HostConfig {
    let mut merged = Map::new();
    let mut set_at: HashMap<String, Position> = HashMap::new();
    for part in parts.iter_mut() {
        let Some(node) = &mut part.document.host else {
            continue;
        };
        unknown::take(node, &schema::HOST, "host", &mut part.report);
        let value = validate::host(node, "host", &mut part.report);
        check_sizes(node, "host", &mut part.report);
        for member in node.members() {
            let position = part.report.source().position(member.at);
            match set_at.get(&member.key) {
                Some(first) => {
                    let place = locate(node, "host", &[key(&member.key)]);
                    part.report.error(member.at, place.key, format!("already set at {first}"));
                }
                None => {
                    set_at.insert(member.key.clone(), position);
                }
            }
        }
        if let Value::Object(map) = value {
            merged.extend(map);
        }
    }
    let typed = serde_json::from_value(Value::Object(merged)).unwrap_or_else(|_| {
        if let Some(part) = parts.first_mut() {
            part.report.error(None, "host", "does not fit the schema");
        }
        raw::Host::default()
    });
    of_host(typed)
}

fn of_host(typed: raw::Host) -> HostConfig {
    let own = HostConfig::default();
    let shared = Shared::over(&own, typed.shared);
    HostConfig {
        start_timeout: seconds(typed.start_timeout).unwrap_or(own.start_timeout),
        install_timeout: seconds(typed.install_timeout).unwrap_or(own.install_timeout),
        allow_bare_names: typed.allow_bare_names.unwrap_or(own.allow_bare_names),
        inherit_env: typed.inherit_env.unwrap_or(own.inherit_env),
        timeout: shared.timeout,
        init_timeout: shared.init_timeout,
        shutdown_timeout: shared.shutdown_timeout,
        max_total_timeout: shared.max_total_timeout,
        max_concurrent: shared.max_concurrent,
        unavailable_after_timeouts: shared.unavailable_after_timeouts,
        restart: shared.restart,
        retry: shared.retry,
        cache: shared.cache,
        limits: shared.limits,
        guard: shared.guard,
        sandbox: shared.sandbox,
    }
}

/// The settings that a server and the host have in common.
pub(super) struct Shared {
    pub(super) timeout: Duration,
    pub(super) init_timeout: Duration,
    pub(super) shutdown_timeout: Duration,
    pub(super) max_total_timeout: Duration,
    pub(super) max_concurrent: usize,
    pub(super) unavailable_after_timeouts: u32,
    pub(super) restart: Restart,
    pub(super) retry: Retry,
    pub(super) cache: Cache,
    pub(super) limits: Limits,
    pub(super) guard: GuardModes,
    pub(super) sandbox: Option<Sandbox>,
}

impl Shared {
    /// What is typed where it is, else what the host says.
    pub(super) fn over(host: &HostConfig, typed: raw::Shared) -> Self {
        let timeout = seconds(typed.timeout).unwrap_or(host.timeout);
        let total = seconds(typed.max_total_timeout).unwrap_or(host.max_total_timeout);
        Self {
            timeout,
            init_timeout: seconds(typed.init_timeout).unwrap_or(host.init_timeout),
            shutdown_timeout: seconds(typed.shutdown_timeout).unwrap_or(host.shutdown_timeout),
            // A call may always take as long as it may go without an answer.
            max_total_timeout: total.max(timeout),
            max_concurrent: typed.max_concurrent.map_or(host.max_concurrent, |n| n as usize),
            unavailable_after_timeouts: typed
                .unavailable_after_timeouts
                .unwrap_or(host.unavailable_after_timeouts),
            restart: typed.restart.map_or(host.restart, restart),
            retry: typed.retry.map_or(host.retry, |typed| retry(host.retry, typed)),
            cache: typed.cache.map_or(host.cache, |typed| cache(host.cache, typed)),
            limits: typed.limits.map_or(host.limits, |typed| limits(host.limits, typed)),
            guard: typed.guard.map_or(host.guard, |typed| guard(host.guard, typed)),
            sandbox: typed.sandbox.map(sandbox).or_else(|| host.sandbox.clone()),
        }
    }
}

fn seconds(typed: Option<f64>) -> Option<Duration> {
    typed.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

fn restart(typed: raw::Restart) -> Restart {
    match typed {
        raw::Restart::Never => Restart::Never,
        raw::Restart::OnFailure { max } => Restart::OnFailure { max },
    }
}

fn retry(host: Retry, typed: raw::Retry) -> Retry {
    let initial_delay = seconds(typed.initial_delay).unwrap_or(host.initial_delay);
    Retry {
        max: typed.max.unwrap_or(host.max),
        initial_delay,
        max_delay: seconds(typed.max_delay).unwrap_or(host.max_delay).max(initial_delay),
    }
}

fn cache(host: Cache, typed: raw::Cache) -> Cache {
    Cache {
        ttl: seconds(typed.ttl).unwrap_or(host.ttl),
        max_entries: typed.max_entries.map_or(host.max_entries, |n| n as usize),
        max_bytes: typed.max_bytes.and_then(ByteSize::bytes).unwrap_or(host.max_bytes),
    }
}

fn limits(host: Limits, typed: raw::Limits) -> Limits {
    Limits {
        memory: typed.memory.and_then(ByteSize::bytes).or(host.memory),
        cpu_seconds: typed.cpu_seconds.map(u64::from).or(host.cpu_seconds),
        file_size: typed.file_size.and_then(ByteSize::bytes).or(host.file_size),
        open_files: typed.open_files.map(u64::from).or(host.open_files),
        processes: typed.processes.map(u64::from).or(host.processes),
    }
}

fn guard(host: GuardModes, typed: raw::Guard) -> GuardModes {
    let mode = |typed| match typed {
        raw::GuardMode::Off => GuardMode::Off,
        raw::GuardMode::Flag => GuardMode::Flag,
        raw::GuardMode::Refuse => GuardMode::Refuse,
    };
    match typed {
        raw::Guard::All(all) => GuardModes::all(mode(all)),
        raw::Guard::Each { definitions, arguments, results } => GuardModes {
            definitions: definitions.map_or(host.definitions, mode),
            arguments: arguments.map_or(host.arguments, mode),
            results: results.map_or(host.results, mode),
        },
    }
}

fn sandbox(typed: raw::Sandbox) -> Sandbox {
    Sandbox {
        read: raw::texts(typed.read),
        write: raw::texts(typed.write),
        network: typed.network.unwrap_or(false),
    }
}

/// Sizes with a unit are in range only once they are counted out, which no schema does.
pub(super) fn check_sizes(node: &Node, path: &str, report: &mut Report) {
    for (outer, inner) in [("limits", "memory"), ("cache", "maxBytes")] {
        let member = node.get(outer).and_then(|member| member.value.get(inner));
        let size = member.and_then(|member| member.value.text()).and_then(ByteSize::parse);
        if size.is_some_and(|size| size.bytes().is_none()) {
            let place = locate(node, path, &[key(outer), key(inner)]);
            report.error(place.at, place.key, "expected a size from 1 KiB to 1 TiB");
        }
    }
}
