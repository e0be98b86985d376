//! Settings with defaults: a server's settings override the host's, which override our defaults.

use std::time::Duration;

use crate::form::raw;
use crate::form::raw_value::ByteSize;
use crate::settings::guard::{GuardMode, GuardModes};
use crate::settings::shared::{
    CacheConfig, CallConfig, ConfinementConfig, LifecycleConfig, ResourceLimits, RestartPolicy,
    RetryPolicy, SandboxConfig, Share,
};
use crate::text::key_location::{key_segment, locate};
use crate::text::source_text::Diagnostics;
use crate::text::tree::JsonNode;

impl LifecycleConfig {
    /// Returns the settings of the file, with these as defaults.
    pub(crate) fn overridden(self, typed: &raw::SharedSettings) -> Self {
        Self {
            init_timeout: seconds(typed.init_timeout).unwrap_or(self.init_timeout),
            shutdown_timeout: seconds(typed.shutdown_timeout).unwrap_or(self.shutdown_timeout),
            restart: typed.restart.map_or(self.restart, restart),
            share: typed.share.map_or(self.share, share),
            idle_timeout: seconds(typed.idle_timeout).or(self.idle_timeout),
        }
    }
}

impl CallConfig {
    /// Returns the settings of the file, with these as defaults.
    pub(crate) fn overridden(self, typed: &raw::SharedSettings) -> Self {
        let timeout = seconds(typed.timeout).unwrap_or(self.timeout);
        let total = seconds(typed.max_total_timeout).unwrap_or(self.max_total_timeout);
        Self {
            timeout,
            // The total limit is never shorter than the limit without a response.
            max_total_timeout: total.max(timeout),
            max_concurrent: typed.max_concurrent.map_or(self.max_concurrent, |n| n as usize),
            unavailable_after_timeouts: typed
                .unavailable_after_timeouts
                .unwrap_or(self.unavailable_after_timeouts),
            retry: typed.retry.map_or(self.retry, |typed| retry(self.retry, typed)),
            cache: typed.cache.map_or(self.cache, |typed| cache(self.cache, typed)),
        }
    }
}

impl ConfinementConfig {
    /// Returns the settings of the file, with these as defaults.
    pub(crate) fn overridden(
        &self,
        inherit_env: Option<raw::InheritEnv>,
        typed: &raw::SharedSettings,
    ) -> Self {
        Self {
            inherit_env: inherit_env
                .map_or(self.inherit_env, |raw::InheritEnv(inherited)| inherited),
            limits: typed.limits.map_or(self.limits, |typed| limits(self.limits, typed)),
            sandbox: typed.sandbox.clone().map(sandbox).or_else(|| self.sandbox.clone()),
        }
    }
}

/// Converts a number of seconds that the schema allows.
pub(crate) fn seconds(typed: Option<f64>) -> Option<Duration> {
    typed.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

fn restart(typed: raw::Restart) -> RestartPolicy {
    match typed {
        raw::Restart::Never => RestartPolicy::Never,
        raw::Restart::OnFailure { max } => RestartPolicy::OnFailure { max },
    }
}

/// Converts the value of `share`.
pub(crate) fn share(typed: raw::ShareScope) -> Share {
    match typed {
        raw::ShareScope::Process => Share::Process,
        raw::ShareScope::Singleton => Share::Singleton,
        raw::ShareScope::Principal => Share::Principal,
        raw::ShareScope::Session => Share::Session,
    }
}

fn retry(host: RetryPolicy, typed: raw::Retry) -> RetryPolicy {
    let initial_delay = seconds(typed.initial_delay).unwrap_or(host.initial_delay);
    RetryPolicy {
        max: typed.max.unwrap_or(host.max),
        initial_delay,
        max_delay: seconds(typed.max_delay).unwrap_or(host.max_delay).max(initial_delay),
    }
}

fn cache(host: CacheConfig, typed: raw::Cache) -> CacheConfig {
    CacheConfig {
        ttl: seconds(typed.ttl).unwrap_or(host.ttl),
        max_entries: typed.max_entries.map_or(host.max_entries, |n| n as usize),
        max_bytes: typed.max_bytes.and_then(ByteSize::bytes).unwrap_or(host.max_bytes),
    }
}

fn limits(host: ResourceLimits, typed: raw::Limits) -> ResourceLimits {
    ResourceLimits {
        memory: typed.memory.and_then(ByteSize::bytes).or(host.memory),
        cpu_seconds: typed.cpu_seconds.map(u64::from).or(host.cpu_seconds),
        file_size: typed.file_size.and_then(ByteSize::bytes).or(host.file_size),
        open_files: typed.open_files.map(u64::from).or(host.open_files),
        processes: typed.processes.map(u64::from).or(host.processes),
    }
}

fn guard_mode(typed: raw::GuardMode) -> GuardMode {
    match typed {
        raw::GuardMode::Off => GuardMode::Off,
        raw::GuardMode::Flag => GuardMode::Flag,
        raw::GuardMode::Refuse => GuardMode::Refuse,
    }
}

/// Returns the modes of the file, with those of `host` as defaults.
pub(crate) fn guard(host: GuardModes, typed: Option<raw::Guard>) -> GuardModes {
    match typed {
        None => host,
        Some(raw::Guard::All(all)) => GuardModes::all(guard_mode(all)),
        Some(raw::Guard::Each { definitions, arguments, results }) => GuardModes {
            definitions: definitions.map_or(host.definitions, guard_mode),
            arguments: arguments.map_or(host.arguments, guard_mode),
            results: results.map_or(host.results, guard_mode),
        },
    }
}

fn sandbox(typed: raw::Sandbox) -> SandboxConfig {
    SandboxConfig {
        read: raw::strings(typed.read),
        write: raw::strings(typed.write),
        network: typed.network.unwrap_or(false),
    }
}

/// Checks the range of sizes with a unit, which a JSON Schema cannot express.
pub(crate) fn check_sizes(node: &JsonNode, path: &str, report: &mut Diagnostics) {
    for (outer, inner) in [("limits", "memory"), ("cache", "maxBytes")] {
        let member = node.get(outer).and_then(|member| member.value.get(inner));
        let size = member.and_then(|member| member.value.as_str()).and_then(ByteSize::parse);
        if size.is_some_and(|size| size.bytes().is_none()) {
            let location = locate(node, path, &[key_segment(outer), key_segment(inner)]);
            report.error(location.at, location.key, "expected a size from 1 KiB to 1 TiB");
        }
    }
}
