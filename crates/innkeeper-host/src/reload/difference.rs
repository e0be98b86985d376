//! What is different between two configurations: by their settings in effect, not by their text.

use crate::config::{Expanded, HostConfig, ServerConfig, TransportConfig};

/// The keys of one server that have another value.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Those that need no start to be in effect.
    pub(crate) now: Vec<&'static str>,
    /// Those that do.
    pub(crate) later: Vec<&'static str>,
}

impl Difference {
    pub(crate) fn is_empty(&self) -> bool {
        self.now.is_empty() && self.later.is_empty()
    }

    /// All keys.
    pub(crate) fn keys(&self) -> Vec<&'static str> {
        self.now.iter().chain(&self.later).copied().collect()
    }
}

/// What `new` has that `old` has not. Variables count by what they stand for.
pub(crate) fn between(old: &ServerConfig, new: &ServerConfig) -> Difference {
    let ServerConfig {
        name: _,
        // Where it stands, and what has no meaning, is nothing that a server notices.
        key: _,
        position: _,
        extra: _,
        transport,
        required,
        dependencies,
        timeout,
        init_timeout,
        shutdown_timeout,
        max_total_timeout,
        max_concurrent,
        unavailable_after_timeouts,
        inherit_env,
        tools,
        restart,
        retry,
        cache,
        limits,
        guard,
        sandbox,
        headers_helper,
        oauth,
    } = old;
    let now = [
        ("required", *required != new.required),
        ("dependencies", *dependencies != new.dependencies),
        ("timeout", *timeout != new.timeout),
        ("initTimeout", *init_timeout != new.init_timeout),
        ("shutdownTimeout", *shutdown_timeout != new.shutdown_timeout),
        ("tools", *tools != new.tools),
        ("restart", *restart != new.restart),
        ("guard", *guard != new.guard),
    ];
    let later = [
        ("maxTotalTimeout", *max_total_timeout != new.max_total_timeout),
        ("maxConcurrent", *max_concurrent != new.max_concurrent),
        ("unavailableAfterTimeouts", *unavailable_after_timeouts != new.unavailable_after_timeouts),
        ("inheritEnv", *inherit_env != new.inherit_env),
        ("retry", *retry != new.retry),
        ("cache", *cache != new.cache),
        ("limits", *limits != new.limits),
        ("sandbox", *sandbox != new.sandbox),
        ("headersHelper", exposed(headers_helper) != exposed(&new.headers_helper)),
        ("oauth", *oauth != new.oauth),
    ];
    let mut keys = of_transport(transport, &new.transport);
    keys.extend(changed(&later));
    Difference { now: changed(&now), later: keys }
}

/// `old` with those settings of `new` that need no start.
pub(crate) fn adjusted(old: &ServerConfig, new: &ServerConfig) -> ServerConfig {
    ServerConfig {
        required: new.required,
        dependencies: new.dependencies.clone(),
        timeout: new.timeout,
        init_timeout: new.init_timeout,
        shutdown_timeout: new.shutdown_timeout,
        tools: new.tools.clone(),
        restart: new.restart,
        guard: new.guard,
        ..old.clone()
    }
}

/// Settings of the host itself. Those that are defaults of servers show in the servers.
pub(crate) fn of_host(old: &HostConfig, new: &HostConfig) -> Vec<&'static str> {
    changed(&[
        ("startTimeout", old.start_timeout != new.start_timeout),
        ("installTimeout", old.install_timeout != new.install_timeout),
        ("allowBareNames", old.allow_bare_names != new.allow_bare_names),
    ])
}

fn of_transport(old: &TransportConfig, new: &TransportConfig) -> Vec<&'static str> {
    use TransportConfig::{Http, Sse, Stdio, WebSocket};
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
            let directory = cwd.as_ref().map(Expanded::expose);
            changed(&[
                ("command", command.expose() != new_command.expose()),
                ("args", exposed(args) != exposed(new_args)),
                ("env", env != new_env || unset_env != new_unset),
                ("cwd", directory != new_cwd.as_ref().map(Expanded::expose)),
            ])
        }
        (Http { url, headers }, Http { url: new_url, headers: new_headers })
        | (Sse { url, headers }, Sse { url: new_url, headers: new_headers })
        | (WebSocket { url, headers }, WebSocket { url: new_url, headers: new_headers }) => {
            changed(&[
                ("url", url.expose() != new_url.expose()),
                ("headers", headers != new_headers),
            ])
        }
        (Stdio { .. } | Http { .. } | Sse { .. } | WebSocket { .. }, _) => vec!["type"],
    }
}

fn exposed(words: &[Expanded]) -> Vec<&String> {
    words.iter().map(Expanded::expose).collect()
}

fn changed(keys: &[(&'static str, bool)]) -> Vec<&'static str> {
    keys.iter().filter(|(_, changed)| *changed).map(|(key, _)| *key).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;
    use crate::config::{Config, Environment};

    fn server(entry: &Value) -> ServerConfig {
        let file = json!({"servers": {"one": entry, "two": {"command": "two"}}});
        let env = Environment::from_pairs([("PROGRAM", "one"), ("WORD", "a"), ("SECRET", "b")]);
        let config = Config::from_value(&file, "mcp.json", Path::new("/"), &env).unwrap();
        config.servers["one"].clone()
    }

    fn keys(old: &Value, new: &Value) -> (Vec<&'static str>, Vec<&'static str>) {
        let Difference { now, later } = between(&server(old), &server(new));
        (now, later)
    }

    #[test]
    fn what_variables_stand_for_counts_and_not_how_it_is_written() {
        let plain = json!({"command": "one", "args": ["a"], "env": {"A": "1", "B": "b"}});
        let other = json!({
            "env": {"B": "${SECRET}", "A": 1}, "args": ["${WORD}"], "command": "${PROGRAM}",
            "timeout": 30, "unknown": {"key": true}
        });
        assert!(between(&server(&plain), &server(&other)).is_empty());
    }

    #[test]
    fn every_changed_key_is_named_once_and_in_its_group() {
        let one = json!({"command": "one", "cwd": "/a", "env": {"A": "1"}});
        let other = json!({
            "command": "other", "args": ["x"], "cwd": "/b", "env": {"A": "2"}, "timeout": 3,
            "tools": {"deny": ["x"]}, "dependencies": ["two"], "maxConcurrent": 3,
            "cache": {"ttl": 1}, "limits": {"openFiles": 99}
        });
        let later = ["command", "args", "env", "cwd", "maxConcurrent", "cache", "limits"];
        assert_eq!(keys(&one, &other), (vec!["dependencies", "timeout", "tools"], later.into()));
        let remote = json!({"type": "http", "url": "https://a.example/mcp"});
        let moved = json!({"url": "https://b.example/mcp", "headers": {"X": "1"}});
        assert_eq!(keys(&remote, &moved), (vec![], vec!["url", "headers"]));
        assert_eq!(keys(&one, &remote), (vec![], vec!["type"]));
    }

    #[test]
    fn settings_that_need_no_start_are_all_that_is_adjusted() {
        let old = server(&json!({"command": "one"}));
        let new = server(&json!({"command": "other", "timeout": 3, "restart": "never",
            "required": false, "tools": {"deny": ["x"]}, "maxConcurrent": 3}));
        let adjusted = adjusted(&old, &new);
        assert_eq!(between(&adjusted, &new).now, Vec::<&str>::new());
        assert_eq!(between(&old, &adjusted).later, Vec::<&str>::new());
        assert_eq!(between(&adjusted, &new).later, ["command", "maxConcurrent"]);
    }
}
