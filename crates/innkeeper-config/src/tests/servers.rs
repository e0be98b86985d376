//! Tests of server entries: transports, settings, defaults, names, dependencies.

use std::time::Duration;

use insta::assert_snapshot;
use serde_json::json;

use super::{args, diagnostics, load, server, server_diagnostics};
use crate::secret::Secret;
use crate::settings::host::HostConfig;
use crate::settings::server::TransportConfig;
use crate::settings::shared::Share;
use crate::{CacheConfig, InheritedEnvironment, OauthGrant, RestartPolicy, RetryPolicy};

/// Proves: FR1.5
#[test]
fn command_arguments_environment_type_and_limits_are_read() {
    let server = server(
        r#""type": "stdio", "command": "npx", "args": ["-y", "x; rm"], "env": {"A": "b"},
           "timeout": 0.2, "limits": {"memory": "512 MiB", "openFiles": 64}"#,
    )
    .unwrap();
    let TransportConfig::Stdio { command, env, cwd, unset_env, .. } = &server.transport else {
        panic!("not stdio");
    };
    assert_eq!(command.expose(), "npx");
    assert_eq!(args(&server), ["-y", "x; rm"]);
    assert_eq!(env["A"].expose(), "b");
    assert_eq!((cwd, unset_env.len()), (&None, 0));
    assert_eq!(server.calls.timeout, Duration::from_millis(200));
    assert_eq!(server.confinement.limits.memory, Some(512 * 1024 * 1024));
    assert_eq!(server.confinement.limits.open_files, Some(64));
}

/// Proves: TR11.2
#[test]
fn paths_with_either_slash_pass_unchanged() {
    let server =
        server(r#""command": "C:\\tools/x.exe", "args": ["a\\b/c", "..\\d", "/e/f"]"#).unwrap();
    let TransportConfig::Stdio { command, .. } = &server.transport else { panic!("not stdio") };
    assert_eq!(command.expose(), r"C:\tools/x.exe");
    assert_eq!(args(&server), [r"a\b/c", r"..\d", "/e/f"]);
}

/// Proves: FR2.5, FR2.9, FR8.1
#[test]
fn missing_settings_have_the_documented_default() {
    let server = server(r#""command": "x""#).unwrap();
    let host = HostConfig::default();
    assert!(server.required);
    assert_eq!(server.calls.timeout, Duration::from_secs(30));
    assert_eq!(server.lifecycle.init_timeout, Duration::from_secs(30));
    assert_eq!(server.lifecycle.shutdown_timeout, Duration::from_secs(10));
    assert_eq!(server.calls.max_total_timeout, Duration::from_secs(600));
    assert_eq!(server.calls.max_concurrent, 64);
    assert_eq!(server.calls.unavailable_after_timeouts, 1);
    assert_eq!(server.confinement.inherit_env, InheritedEnvironment::Standard);
    assert!(server.tools.permits("anything"));
    assert_eq!(server.lifecycle.restart, RestartPolicy::Unset);
    assert_eq!(
        (server.calls.retry, server.calls.cache, server.confinement.limits),
        (host.calls.retry, host.calls.cache, host.confinement.limits)
    );
    assert_eq!((server.lifecycle.share, server.lifecycle.idle_timeout), (Share::Process, None));
    assert_eq!(host.start_timeout, Duration::from_secs(60));
    assert_eq!(host.concurrent_starts, 8);
    assert!(!host.allow_bare_names);
    let cache =
        CacheConfig { ttl: Duration::from_secs(300), max_entries: 1_000, max_bytes: 16 << 20 };
    assert_eq!(server.calls.cache, cache);
    let retry = RetryPolicy {
        max: 3,
        initial_delay: Duration::from_secs(1),
        max_delay: Duration::from_secs(30),
    };
    assert_eq!(server.calls.retry, retry);
}

#[test]
fn the_host_object_gives_defaults_that_a_server_overrides() {
    let config = load(
        r#"{"host": {"timeout": 5, "maxConcurrent": 2, "startTimeout": 7.5, "allowBareNames": true,
                     "concurrentStarts": 3,
                     "inheritEnv": true, "retry": {"max": 1}},
            "servers": {"a": {"command": "x"},
                        "b": {"command": "y", "timeout": 9, "inheritEnv": false,
                              "retry": {"initialDelay": 0.5}}}}"#,
    )
    .unwrap();
    let (a, b) = (&config.servers["a"], &config.servers["b"]);
    assert_eq!(
        (a.calls.timeout, b.calls.timeout),
        (Duration::from_secs(5), Duration::from_secs(9))
    );
    assert_eq!(a.calls.max_concurrent, 2);
    let inherited = (a.confinement.inherit_env, b.confinement.inherit_env);
    assert_eq!(inherited, (InheritedEnvironment::Complete, InheritedEnvironment::Standard));
    assert_eq!((b.calls.retry.max, b.calls.retry.initial_delay), (1, Duration::from_millis(500)));
    assert_eq!(config.host.start_timeout, Duration::from_millis(7500));
    assert!(config.host.allow_bare_names);
    assert_eq!(config.host.concurrent_starts, 3);
}

#[test]
fn a_server_has_the_sharing_and_the_idle_time_of_its_entry_or_of_the_host() {
    let config = load(
        r#"{"host": {"share": "principal", "idleTimeout": 60},
            "servers": {"a": {"command": "x"},
                        "b": {"command": "y", "share": "process", "idleTimeout": 0.5},
                        "c": {"command": "z", "share": "session"}}}"#,
    )
    .unwrap();
    let sharing = |name: &str| {
        (config.servers[name].lifecycle.share, config.servers[name].lifecycle.idle_timeout)
    };
    assert_eq!(sharing("a"), (Share::Principal, Some(Duration::from_secs(60))));
    assert_eq!(sharing("b"), (Share::Process, Some(Duration::from_millis(500))));
    assert_eq!(sharing("c"), (Share::Session, Some(Duration::from_secs(60))));
    for server in config.servers.values() {
        let printed = serde_json::to_value(server).unwrap();
        assert_eq!(printed["share"], server.lifecycle.share.as_str());
        assert_eq!(printed["idleTimeout"], server.lifecycle.idle_timeout.unwrap().as_secs_f64());
    }
}

#[test]
fn the_sharing_and_the_idle_time_are_checked() {
    let text = r#""command": "x", "share": "user", "idleTimeout": 0"#;
    assert_snapshot!(server_diagnostics(text), @"
    mcp.json:1:46 servers.fs.share: expected `process`, `singleton`, `principal` or `session`
    mcp.json:1:69 servers.fs.idleTimeout: expected 0.001 or more
    ");
}

/// A process of all clients cannot use a process of one client.
#[test]
fn a_server_depends_only_on_servers_that_the_same_clients_share() {
    let text = r#"{"servers": {
  "everyone": {"command": "a"},
  "principal": {"command": "b", "share": "principal"},
  "session": {"command": "c", "share": "session"},
  "one": {"command": "1", "dependencies": ["everyone", "principal", "session"]},
  "two": {"command": "2", "share": "principal", "dependencies": ["everyone", "principal", "session"]},
  "three": {"command": "3", "share": "session", "dependencies": ["everyone", "principal", "session"]}
}}"#;
    assert_snapshot!(diagnostics(text), @r#"
    mcp.json:5:56 servers.one.dependencies[1]: `principal` has `share: principal`, but this server has `share: process`
        hint: set `"share": "principal"` for this server, or `"share": "process"` for `principal`
    mcp.json:5:69 servers.one.dependencies[2]: `session` has `share: session`, but this server has `share: process`
        hint: set `"share": "session"` for this server, or `"share": "process"` for `session`
    mcp.json:6:91 servers.two.dependencies[2]: `session` has `share: session`, but this server has `share: principal`
        hint: set `"share": "session"` for this server, or `"share": "principal"` for `session`
    "#);
    let host = r#"{"host": {"share": "principal"}, "servers": {
  "a": {"command": "a"}, "b": {"command": "b", "share": "process", "dependencies": ["a"]}}}"#;
    assert_snapshot!(diagnostics(host), @r#"
    mcp.json:2:85 servers.b.dependencies[0]: `a` has `share: principal`, but this server has `share: process`
        hint: set `"share": "principal"` for this server, or `"share": "process"` for `a`
    "#);
}

#[test]
fn a_server_may_inherit_the_strict_list_and_print_its_setting_as_written() {
    for (text, inherited) in [
        ("\"strict\"", InheritedEnvironment::Strict),
        ("false", InheritedEnvironment::Standard),
        ("true", InheritedEnvironment::Complete),
    ] {
        let server = server(&format!(r#""command": "x", "inheritEnv": {text}"#)).unwrap();
        assert_eq!(server.confinement.inherit_env, inherited);
        assert_eq!(serde_json::to_string(&server.confinement.inherit_env).unwrap(), text);
    }
}

#[test]
fn a_call_may_always_take_as_long_as_it_may_go_without_an_answer() {
    let server = server(r#""command": "x", "timeout": 3000"#).unwrap();
    assert_eq!(server.calls.max_total_timeout, Duration::from_secs(3000));
}

#[test]
fn environment_values_keep_the_text_they_are_written_as() {
    let server =
        server(r#""command": "x", "env": {"A": 1.10, "B": true, "C": null, "D": ""}"#).unwrap();
    let TransportConfig::Stdio { env, unset_env, .. } = &server.transport else {
        panic!("not stdio");
    };
    let pairs: Vec<_> = env.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!(pairs, [("A", "1.10"), ("B", "true"), ("D", "")]);
    assert_eq!(unset_env, &["C"]);
}

#[test]
fn a_whole_number_may_be_written_with_a_fraction() {
    assert_eq!(server(r#""command": "x", "maxConcurrent": 2.0"#).unwrap().calls.max_concurrent, 2);
}

#[test]
fn the_transport_is_inferred_from_the_address() {
    for (keys, kind) in [
        (r#""command": "x""#, "stdio"),
        (r#""url": "https://a/mcp""#, "http"),
        (r#""url": "HTTPS://a/mcp""#, "http"),
        (r#""url": "wss://a/mcp""#, "websocket"),
        (r#""type": "sse", "url": "http://a/sse""#, "sse"),
        (r#""type": "in-process""#, "in-process"),
    ] {
        assert_eq!(server(keys).unwrap().transport.kind(), kind, "{keys}");
    }
}

#[test]
fn the_keys_of_processes_and_urls_have_no_effect_on_an_in_process_server() {
    let keys = r#""type": "in-process", "command": "${UNSET}", "url": "not a url", "oauth": {},
                  "limits": {"openFiles": 99}, "timeout": 3"#;
    assert_snapshot!(server_diagnostics(keys), @"
    mcp.json:1:43 servers.fs.command: not supported for server type `in-process`
    mcp.json:1:66 servers.fs.url: not supported for server type `in-process`
    mcp.json:1:86 servers.fs.oauth: not supported for server type `in-process`
    mcp.json:2:19 servers.fs.limits: not supported for server type `in-process`
    ");
    let server = server(keys).unwrap();
    assert_eq!(server.transport, TransportConfig::InProcess);
    assert_eq!(server.calls.timeout, Duration::from_secs(3));
}

#[test]
fn a_server_that_only_the_application_adds_has_no_environment_of_its_own() {
    let mut config = load(r#"{"servers": {}, "host": {"inheritEnv": true}}"#).unwrap();
    config.add_in_process("own").unwrap();
    let inherit_env = config.servers["own"].confinement.inherit_env;
    assert_eq!(inherit_env, InheritedEnvironment::Standard);
}

#[test]
fn two_in_process_servers_are_not_the_same_server() {
    let config = load(r#"{"servers": {"a": {"type": "in-process"}, "b": {"type": "in-process"}}}"#);
    assert_eq!(config.unwrap().warnings, []);
}

#[test]
fn headers_are_kept_as_secrets() {
    let server = server(r#""url": "https://a", "headers": {"Authorization": "Bearer x"}"#).unwrap();
    let TransportConfig::Http { headers, .. } = &server.transport else {
        panic!("not http");
    };
    assert_eq!(headers["Authorization"], Secret::new("Bearer x"));
}

/// Proves: TR10.2
#[test]
fn names_and_values_that_no_environment_can_hold_are_refused() {
    let text = r#""command": "x", "args": ["a\u0000b"], "env": {"A=B": "1", "A\nB": "1", "1A": "1",
"": "1", "C": "a\u0000b"}"#;
    assert_snapshot!(server_diagnostics(text), @r#"
    mcp.json:1:46 servers.fs.args[0]: contains a NUL character
    mcp.json:1:74 servers.fs.env["A=B"]: not a valid environment variable name
        hint: use letters, digits and `_`; do not start with a digit
    mcp.json:1:87 servers.fs.env["A\nB"]: not a valid environment variable name
        hint: use letters, digits and `_`; do not start with a digit
    mcp.json:1:98 servers.fs.env.1A: not a valid environment variable name
        hint: use letters, digits and `_`; do not start with a digit
    mcp.json:2:5 servers.fs.env[""]: not a valid environment variable name
        hint: use letters, digits and `_`; do not start with a digit
    mcp.json:2:15 servers.fs.env.C: contains a NUL character
    "#);
}

#[test]
fn header_names_and_values_cannot_forge_a_request() {
    let text =
        r#""url": "http://a", "headers": {"A B": "1", "": "1", "C": "x\r\nD: y", "E": "\u0007"}"#;
    assert_snapshot!(server_diagnostics(text), @r#"
    mcp.json:1:59 servers.fs.headers["A B"]: not a valid header name
    mcp.json:1:68 servers.fs.headers[""]: not a valid header name
    mcp.json:1:78 servers.fs.headers.C: a header value must not contain a line break or control character
    mcp.json:1:96 servers.fs.headers.E: a header value must not contain a line break or control character
    "#);
}

/// Proves: FR1.3, FR1.4, N13
#[test]
fn a_duplicate_name_is_an_error_that_names_both_places() {
    let text = r#"{
  "servers": {
    "fs": {
      "command": "npx"
    },
    "git": {
      "command": "git-server"
    },
    "fs": {
      "command": "other"
    }
  }
}"#;
    assert_snapshot!(diagnostics(text), @"mcp.json:9:5 servers.fs: duplicate server name, first at mcp.json:3:5");
}

#[test]
fn names_are_one_name_under_either_key_and_in_any_case() {
    let text = r#"{
  "servers": {"fs": {"command": "a"}, "Git": {"command": "b"}},
  "mcpServers": {"fs": {"command": "c"}, "git": {"command": "d"}}
}"#;
    assert_snapshot!(diagnostics(text), @"
    mcp.json:3:18 mcpServers.fs: duplicate server name, first at mcp.json:2:15
    mcp.json:3:42 mcpServers.git: differs from `Git` at mcp.json:2:39 only in case
    ");
}

#[test]
fn a_name_is_any_visible_text() {
    let names =
        ["a.b-c_D9", "microsoft/playwright-mcp", "My Server", "größe", "@scope/pkg", "-x", "日本"];
    let servers = names.map(|name| (name.to_owned(), serde_json::json!({"command": "a"})));
    let servers = serde_json::Map::from_iter(servers);
    let config = load(&serde_json::json!({ "servers": servers }).to_string()).unwrap();
    assert!(config.servers.keys().eq(names));
    let text = r#"{"servers": {"": {"command": "b"}, " ": {"command": "c"}, "a\nb": {"command": "d"},
"a\u202eb": {"command": "e"}}}"#;
    assert_snapshot!(diagnostics(text), @r#"
    mcp.json:1:14 servers[""]: the server name is empty
        hint: use 1 to 128 visible characters
    mcp.json:1:36 servers[" "]: the server name contains only whitespace
        hint: use 1 to 128 visible characters
    mcp.json:1:59 servers["a\nb"]: the server name contains control characters or line breaks
        hint: use 1 to 128 visible characters
    mcp.json:2:1 servers["a\u{202e}b"]: the server name contains invisible characters
        hint: use 1 to 128 visible characters
    "#);
}

/// Proves: FR10.1
#[test]
fn an_unknown_dependency_is_reported_with_its_place_and_a_suggestion() {
    let text = r#"{"servers": {
  "db": {"command": "a", "disabled": true},
  "cache": {"command": "b"},
  "app": {"command": "c", "dependencies": ["chache", "db", "zzz", "cache", "cache"]}
}}"#;
    assert_snapshot!(diagnostics(text), @"
    mcp.json:4:44 servers.app.dependencies[0]: no server `chache`
        hint: did you mean `cache`?
    mcp.json:4:54 servers.app.dependencies[1]: `db` is disabled
    mcp.json:4:60 servers.app.dependencies[2]: no server `zzz`
    mcp.json:4:76 servers.app.dependencies[4]: duplicate dependency `cache`
    ");
}

/// Proves: FR10.6
#[test]
fn a_cycle_is_reported_whole() {
    let text = r#"{"servers": {
  "z": {"command": "z", "dependencies": ["a"]},
  "a": {"command": "a", "dependencies": ["b"]},
  "b": {"command": "b", "dependencies": ["x", "c"]},
  "c": {"command": "c", "dependencies": ["a"]},
  "x": {"command": "x"},
  "self": {"command": "s", "dependencies": ["self"]}
}}"#;
    assert_snapshot!(diagnostics(text), @"
    mcp.json:3:42 servers.a.dependencies[0]: depends on itself: a -> b -> c -> a
    mcp.json:7:45 servers.self.dependencies[0]: depends on itself
    ");
}

const SIX: &str = r#"{"servers": {
  "web": {"command": "a", "dependencies": ["api", "auth"]},
  "db": {"command": "b"},
  "api": {"command": "c", "dependencies": ["db", "cache"]},
  "cache": {"command": "d"},
  "auth": {"command": "e", "dependencies": ["db"]},
  "logs": {"command": "f"}
}}"#;

/// Proves: FR10.2, FR10.3
#[test]
fn six_servers_start_in_three_waves_each_in_file_order() {
    let config = load(SIX).unwrap();
    assert_eq!(json!(config.waves()), json!([["db", "cache", "logs"], ["api", "auth"], ["web"]]));
}

#[test]
fn a_selection_keeps_what_it_depends_on_and_nothing_else() {
    let config = load(SIX).unwrap();
    let only = config.select(&["api"]).unwrap();
    assert_eq!(json!(only.waves()), json!([["db", "cache"], ["api"]]));
    assert!(config.select(&[]).unwrap().servers.is_empty());
}

#[test]
fn the_servers_of_a_sharing_policy_depend_only_on_each_other() {
    let text = r#"{"servers": {
        "db": {"command": "x"},
        "cache": {"command": "x", "share": "principal", "dependencies": ["db"]},
        "notes": {"command": "x", "share": "principal", "dependencies": ["db", "cache"]}}}"#;
    let config = load(text).unwrap();
    assert_eq!(json!(config.shared_by(Share::Process).waves()), json!([["db"]]));
    let private = config.shared_by(Share::Principal);
    assert_eq!(json!(private.waves()), json!([["cache"], ["notes"]]));
    assert!(private.servers["cache"].dependencies.is_empty());
    assert!(config.shared_by(Share::Session).servers.is_empty());
}

#[test]
fn a_selection_of_an_unknown_server_suggests_a_name() {
    let text =
        r#"{"servers": {"files": {"command": "b"}, "off": {"command": "x", "disabled": true}}}"#;
    let config = load(text).unwrap();
    let error = config.select(&["flies"]).unwrap_err();
    assert_eq!(error.to_string(), "no server `flies` in the configuration");
    assert_eq!(error.similar.as_deref(), Some("files"));
    let error = config.select(&["off"]).unwrap_err();
    assert_eq!(error.to_string(), "server `off` is disabled at mcp.json:1:41");
}

#[test]
fn a_disabled_server_is_left_out_and_not_asked_for_its_variables() {
    let config = load(
        r#"{"servers": {"a": {"command": "${NOWHERE}", "disabled": true}, "b": {"command": "b"}}}"#,
    )
    .unwrap();
    assert_eq!(config.servers.keys().collect::<Vec<_>>(), ["b"]);
    assert_eq!(config.disabled.keys().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn the_same_launch_under_two_names_is_a_warning() {
    let text = r#"{"servers": {
  "a": {"command": "npx", "args": ["x"], "env": {"A": "1", "B": "2"}},
  "b": {"command": "npx", "args": ["x"], "env": {"B": "2", "A": "1"}},
  "c": {"command": "npx", "args": ["x"]}
}}"#;
    assert_snapshot!(diagnostics(text), @"mcp.json:3:3 servers.b: same server as `a` under another name");
}

#[test]
fn unknown_keys_are_kept_but_not_shown() {
    let server = server(r#""command": "x", "apiKey": "canary-in-unknown-key""#).unwrap();
    assert_eq!(server.extra.get("apiKey"), Some(&json!("canary-in-unknown-key")));
    let shown = format!("{server:?}{}", serde_json::to_string(&server).unwrap());
    assert!(shown.contains("apiKey") && !shown.contains("canary"), "{shown}");
}

#[test]
fn a_headers_helper_is_a_list_and_no_shell_command() {
    let full = r#""url": "https://a/mcp", "headersHelper": ["${PROGRAM:-tool}", "a b"]"#;
    let helper = server(full).unwrap().headers_helper;
    assert_eq!((helper[0].expose().as_str(), helper[1].as_written()), ("tool", "a b"));
    let alone = server(r#""url": "https://a/mcp", "headersHelper": "./tool""#).unwrap();
    assert_eq!(alone.headers_helper[0].expose(), "./tool");
    for (keys, message) in [
        (r#""headersHelper": "tool --x""#, "hint: write a list, such as `[\"tool\",\"--x\"]`"),
        (r#""headersHelper": []"#, "headersHelper: no program given"),
        (r#""headersHelper": 3"#, "headersHelper: expected string or array"),
        (r#""headersHelper": ["a", 3]"#, "headersHelper[1]: expected string"),
        (
            r#""headersHelper": "a", "oauth": {}"#,
            "oauth: not allowed together with `headersHelper`",
        ),
    ] {
        let diagnostics = server_diagnostics(&format!(r#""url": "https://a", {keys}"#));
        assert!(diagnostics.contains(message), "{diagnostics}");
    }
}

#[test]
fn oauth_settings_are_read_and_inconsistent_ones_reported() {
    let full = r#""url": "https://a/mcp", "oauth": {"grant": "client_credentials", "clientId": "us",
        "clientSecret": "s", "scopes": ["a", "b"]}"#;
    let oauth = server(full).unwrap().oauth.unwrap();
    assert_eq!(oauth.grant, OauthGrant::ClientCredentials);
    assert_eq!(oauth.client_id.unwrap().expose(), "us");
    assert_eq!(oauth.scopes, ["a", "b"]);
    for (keys, message) in [
        (r#""grant": "client_credentials", "clientId": "us""#, "oauth.grant: "),
        (r#""clientSecret": "s""#, "oauth.clientSecret: needs a `clientId`"),
        (r#""clientMetadataUrl": "http://a/b""#, "oauth.clientMetadataUrl: expected `https://`"),
        (r#""clientId": "us", "privateKey": "k""#, "oauth.privateKey: only for the grant"),
        (r#""clientId": "${NO_SUCH}""#, "oauth.clientId: "),
        (r#""clientId": "us", "enterprise": {"idToken": "t"}"#, "oauth.enterprise: needs `issuer`"),
        (
            r#""clientId": "us", "enterprise": {"idToken": "t", "idTokenFile": "f"}"#,
            "oauth.enterprise.idToken: not allowed together with `idTokenFile`; remove one of the two keys",
        ),
        (r#""clientId": "us", "enterprise": {}"#, "needs an `idToken` or an `idTokenFile`"),
        (
            r#""grant": "client_credentials", "enterprise": {}"#,
            "not allowed together with `enterprise`",
        ),
        (
            r#""enterprise": {"issuer": "https://i", "tokenEndpoint": "https://i/t",
                "clientId": "we", "idToken": "t"}"#,
            "oauth.enterprise: needs a `clientId`",
        ),
        (
            r#""clientId": "us", "enterprise": {"issuer": "https://i", "clientId": "we",
                "tokenEndpoint": "http://i/t", "idToken": "t"}"#,
            "oauth.enterprise.tokenEndpoint: expected `https://`",
        ),
    ] {
        let diagnostics =
            server_diagnostics(&format!(r#""url": "https://a", "oauth": {{{keys}}}"#));
        assert!(diagnostics.contains(message), "{diagnostics}");
    }
}

#[test]
fn rules_for_arguments_are_read_and_a_pattern_that_is_no_text_is_a_problem() {
    let read =
        server(r#""command": "x", "tools": {"approveArguments": {"add": [{"a": "2"}, {}]}}"#);
    let tools = read.unwrap().tools;
    assert!(
        tools.approves_arguments("add", r#"{"a": 2}"#) && tools.approves_arguments("add", "{}")
    );
    assert!(!tools.approves_arguments("add", r#"{"a": 3}"#));
    for rules in [r#"{"add": [{"a": 2}]}"#, r#"{"add": {"a": "2"}}"#, r#"["add"]"#] {
        let problems = server_diagnostics(&format!(
            r#""command": "x", "tools": {{"approveArguments": {rules}}}"#
        ));
        assert!(problems.to_string().contains("approveArguments"), "{rules}: {problems}");
    }
}
