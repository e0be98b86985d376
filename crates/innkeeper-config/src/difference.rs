//! Compares two configurations by their effective settings.

use crate::secret::ExpandedValue;
use crate::settings::host::HostConfig;
use crate::settings::server::{ServerConfig, TransportConfig};
use crate::settings::shared::{CallConfig, ConfinementConfig, LifecycleConfig};

/// The changed keys of one server.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ConfigDifference {
    /// Keys that take effect without a restart.
    pub immediate: Vec<&'static str>,
    /// Keys that take effect at the next start.
    pub deferred: Vec<&'static str>,
}

impl ConfigDifference {
    /// Returns whether the configurations are equal.
    pub fn is_empty(&self) -> bool {
        self.immediate.is_empty() && self.deferred.is_empty()
    }

    /// Returns all changed keys.
    pub fn keys(&self) -> Vec<&'static str> {
        self.immediate.iter().chain(&self.deferred).copied().collect()
    }
}

/// Compares two configurations of a server. Variables are compared by value.
pub fn compare_servers(old: &ServerConfig, new: &ServerConfig) -> ConfigDifference {
    let ServerConfig {
        name: _,
        // The position and unknown keys do not affect the server.
        key: _,
        position: _,
        extra: _,
        transport,
        required,
        dependencies,
        lifecycle: LifecycleConfig { init_timeout, shutdown_timeout, restart, share, idle_timeout },
        calls:
            CallConfig {
                timeout,
                max_total_timeout,
                max_concurrent,
                unavailable_after_timeouts,
                retry,
                cache,
            },
        confinement: ConfinementConfig { inherit_env, limits, sandbox },
        tools,
        guard,
        headers_helper,
        oauth,
    } = old;
    let now = [
        ("required", *required != new.required),
        ("dependencies", *dependencies != new.dependencies),
        ("timeout", *timeout != new.calls.timeout),
        ("initTimeout", *init_timeout != new.lifecycle.init_timeout),
        ("shutdownTimeout", *shutdown_timeout != new.lifecycle.shutdown_timeout),
        ("tools", *tools != new.tools),
        ("restart", *restart != new.lifecycle.restart),
        ("guard", *guard != new.guard),
        ("idleTimeout", *idle_timeout != new.lifecycle.idle_timeout),
    ];
    let deferred_keys = [
        ("maxTotalTimeout", *max_total_timeout != new.calls.max_total_timeout),
        ("maxConcurrent", *max_concurrent != new.calls.max_concurrent),
        (
            "unavailableAfterTimeouts",
            *unavailable_after_timeouts != new.calls.unavailable_after_timeouts,
        ),
        ("inheritEnv", *inherit_env != new.confinement.inherit_env),
        ("retry", *retry != new.calls.retry),
        ("cache", *cache != new.calls.cache),
        ("limits", *limits != new.confinement.limits),
        ("sandbox", *sandbox != new.confinement.sandbox),
        // The running process may contain the data of other clients.
        ("share", *share != new.lifecycle.share),
        ("headersHelper", exposed_values(headers_helper) != exposed_values(&new.headers_helper)),
        ("oauth", *oauth != new.oauth),
    ];
    let mut keys = changed_transport_keys(transport, &new.transport);
    keys.extend(changed_keys(&deferred_keys));
    ConfigDifference { immediate: changed_keys(&now), deferred: keys }
}

/// Returns `old` with the settings of `new` that need no restart.
pub fn with_immediate(old: &ServerConfig, new: &ServerConfig) -> ServerConfig {
    ServerConfig {
        required: new.required,
        dependencies: new.dependencies.clone(),
        // The running process may contain the data of other clients.
        lifecycle: LifecycleConfig { share: old.lifecycle.share, ..new.lifecycle },
        calls: CallConfig { timeout: new.calls.timeout, ..old.calls },
        tools: new.tools.clone(),
        guard: new.guard,
        ..old.clone()
    }
}

/// Returns the changed host settings. Defaults for servers appear as changes of the servers.
pub fn changed_host_keys(old: &HostConfig, new: &HostConfig) -> Vec<&'static str> {
    changed_keys(&[
        ("startTimeout", old.start_timeout != new.start_timeout),
        ("installTimeout", old.install_timeout != new.install_timeout),
        ("concurrentStarts", old.concurrent_starts != new.concurrent_starts),
        ("allowBareNames", old.allow_bare_names != new.allow_bare_names),
    ])
}

fn changed_transport_keys(old: &TransportConfig, new: &TransportConfig) -> Vec<&'static str> {
    use TransportConfig::{Http, InProcess, Sse, Stdio, WebSocket};
    match (old, new) {
        (
            Stdio { command, args, env, unset_env, cwd },
            Stdio {
                command: new_command,
                args: new_args,
                env: new_env,
                unset_env: new_unset,
                cwd: new_cwd,
            },
        ) => {
            let directory = cwd.as_ref().map(ExpandedValue::expose);
            changed_keys(&[
                ("command", command.expose() != new_command.expose()),
                ("args", exposed_values(args) != exposed_values(new_args)),
                ("env", env != new_env || unset_env != new_unset),
                ("cwd", directory != new_cwd.as_ref().map(ExpandedValue::expose)),
            ])
        }
        (Http { url, headers }, Http { url: new_url, headers: new_headers })
        | (Sse { url, headers }, Sse { url: new_url, headers: new_headers })
        | (WebSocket { url, headers }, WebSocket { url: new_url, headers: new_headers }) => {
            changed_keys(&[
                ("url", url.expose() != new_url.expose()),
                ("headers", headers != new_headers),
            ])
        }
        (InProcess, InProcess) => Vec::new(),
        (Stdio { .. } | Http { .. } | Sse { .. } | WebSocket { .. } | InProcess, _) => vec!["type"],
    }
}

fn exposed_values(values: &[ExpandedValue]) -> Vec<&String> {
    values.iter().map(ExpandedValue::expose).collect()
}

fn changed_keys(keys: &[(&'static str, bool)]) -> Vec<&'static str> {
    keys.iter().filter(|(_, changed)| *changed).map(|(key, _)| *key).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;
    use crate::config::Config;
    use crate::variables::environment::Environment;

    fn server(entry: &Value) -> ServerConfig {
        let file = json!({"servers": {"one": entry, "two": {"command": "two"}}});
        let env = Environment::from_pairs([("PROGRAM", "one"), ("WORD", "a"), ("SECRET", "b")]);
        let config = Config::from_value(&file, "mcp.json", Path::new("/"), &env).unwrap();
        config.servers["one"].clone()
    }

    fn keys(old: &Value, new: &Value) -> (Vec<&'static str>, Vec<&'static str>) {
        let ConfigDifference { immediate, deferred: deferred_keys } =
            compare_servers(&server(old), &server(new));
        (immediate, deferred_keys)
    }

    #[test]
    fn values_of_variables_are_compared_and_not_their_spelling() {
        let plain = json!({"command": "one", "args": ["a"], "env": {"A": "1", "B": "b"}});
        let other = json!({
            "env": {"B": "${SECRET}", "A": 1}, "args": ["${WORD}"], "command": "${PROGRAM}",
            "timeout": 30, "unknown": {"key": true}
        });
        assert!(compare_servers(&server(&plain), &server(&other)).is_empty());
    }

    #[test]
    fn every_changed_key_is_named_once_and_in_its_group() {
        let one = json!({"command": "one", "cwd": "/a", "env": {"A": "1"}});
        let other = json!({
            "command": "other", "args": ["x"], "cwd": "/b", "env": {"A": "2"}, "timeout": 3,
            "tools": {"deny": ["x"]}, "dependencies": ["two"], "maxConcurrent": 3,
            "cache": {"ttl": 1}, "limits": {"openFiles": 99}
        });
        let deferred_keys = ["command", "args", "env", "cwd", "maxConcurrent", "cache", "limits"];
        assert_eq!(
            keys(&one, &other),
            (vec!["dependencies", "timeout", "tools"], deferred_keys.into())
        );
        let remote = json!({"type": "http", "url": "https://a.example/mcp"});
        let moved = json!({"url": "https://b.example/mcp", "headers": {"X": "1"}});
        assert_eq!(keys(&remote, &moved), (vec![], vec!["url", "headers"]));
        assert_eq!(keys(&one, &remote), (vec![], vec!["type"]));
    }

    #[test]
    fn one_changed_key_is_a_difference_whether_or_not_it_needs_a_restart() {
        let old = server(&json!({"command": "one"}));
        for key in ["timeout", "maxConcurrent"] {
            let new = server(&json!({"command": "one", key: 3}));
            let difference = compare_servers(&old, &new);
            assert!(!difference.is_empty(), "{key}");
            assert_eq!(difference.keys(), [key]);
        }
    }

    #[test]
    fn settings_that_need_no_start_are_all_that_is_adjusted() {
        let old = server(&json!({"command": "one"}));
        let new = server(&json!({"command": "other", "timeout": 3, "restart": "never",
            "required": false, "tools": {"deny": ["x"]}, "maxConcurrent": 3}));
        let adjusted = with_immediate(&old, &new);
        assert_eq!(compare_servers(&adjusted, &new).immediate, Vec::<&str>::new());
        assert_eq!(compare_servers(&old, &adjusted).deferred, Vec::<&str>::new());
        assert_eq!(compare_servers(&adjusted, &new).deferred, ["command", "maxConcurrent"]);
    }
}
