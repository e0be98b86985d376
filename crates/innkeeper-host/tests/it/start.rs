//! Starts of servers: launch input, rejected configurations and launch retries.

use std::time::Duration;

use innkeeper_host::config::Severity;
use innkeeper_host::{Config, Environment, Host, HostEvent, RestartError, ServerState, StartError};
use innkeeper_testkit::mcp_json;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::setup::{LogCapture, TestEnv, builder, drain_events, result_text};

/// Proves: N1, N4, FR2.1
#[tokio::test]
async fn every_listed_server_is_started_and_initialised_and_all_are_stopped_at_the_end() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one"), test_env.fixture("two")]).await.unwrap();
    let catalog = host.catalog();
    for name in ["one", "two"] {
        let server = catalog.server(name).unwrap();
        assert_eq!(server.state(), ServerState::Ready);
        assert!(server.listing().unwrap().tools.iter().any(|tool| tool.view.name == "echo"));
        let journal = test_env.journal().for_server(name);
        assert_eq!(
            journal.methods()[..3],
            ["server/discover", "initialize", "notifications/initialized"]
        );
    }
    let report = host.shutdown().await;
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(report.servers.len(), 2);
    test_env.assert_gone().await;
}

/// Proves: FR2.4
#[tokio::test]
async fn the_handshake_follows_the_start_of_the_process_and_precedes_everything_else() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one")]).await.unwrap();
    host.call_tool("one.echo", json!({"message": "hi"})).await.unwrap();
    let journal = test_env.journal();
    assert_eq!(journal.entries[0].event, "start");
    let methods = journal.methods();
    assert_eq!(methods[1..3], ["initialize", "notifications/initialized"]);
    assert_eq!(methods.last(), Some(&"tools/call"));
    assert!(journal.entries.windows(2).all(|pair| pair[0].ts_ms <= pair[1].ts_ms));
    host.shutdown().await;
}

/// Proves: N2, FR2.2
#[tokio::test]
async fn a_mebibyte_of_text_in_every_script_comes_back_as_it_was_sent() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one")]).await.unwrap();
    let segment = "Grüße, 世界 👋🏽 \"quoted\" \\ / \u{0}\u{1b}\n\r\t\u{2028}\u{feff} ";
    let message = segment.repeat((1 << 20) / segment.len() + 1);
    assert!(message.len() >= 1 << 20);
    let result = host.call_tool("one.echo", json!({"message": &message})).await.unwrap();
    assert!(result_text(&result) == message, "the text has changed on its way");
    let sent = test_env.journal().params("tools/call")[0]["arguments"]["message"].clone();
    assert!(sent == json!(message), "the server was sent another text");
    host.shutdown().await;
}

/// Proves: FR1.5, TR2.1
#[tokio::test]
async fn arguments_environment_and_directory_reach_the_server_literally() {
    let test_env = TestEnv::new();
    let directory = test_env.path("a directory");
    std::fs::create_dir(&directory).unwrap();
    let hostile = "; rm -rf \"$HOME\" $(id) `id` | & > * ~ %PATH% \\ ' \n #";
    let server = test_env
        .fixture("one")
        .with("--instructions", hostile)
        .env("SPOKEN", hostile)
        .config_key("cwd", directory.to_str().unwrap())
        .config_key("colour", "blue");
    let config = test_env.config([server.clone()]);
    let warnings: Vec<_> = config.warnings.iter().map(|warning| warning.key.as_str()).collect();
    assert_eq!(warnings, ["servers.one.colour"]);
    let host = builder(config).start().await.unwrap();
    let result = host.call_tool("one.env", json!({})).await.unwrap();
    let env: Value = serde_json::from_str(&result_text(&result)).unwrap();
    assert_eq!(env["argv"].as_array().unwrap()[1..], *json!(server.args()).as_array().unwrap());
    assert!(server.args().contains(&hostile.to_owned()));
    assert_eq!(env["env"]["SPOKEN"], hostile);
    assert_eq!(env["cwd"], json!(directory.canonicalize().unwrap()));
    host.shutdown().await;
}

/// Proves: TR10.2
#[tokio::test]
async fn a_server_sees_the_short_list_of_the_parent_environment_and_what_is_declared() {
    let test_env = TestEnv::new();
    let parent = Environment::from_pairs([
        ("PATH", "/usr/bin:/bin"),
        ("HOME", "/home/ada"),
        ("LD_PRELOAD", "/nowhere/evil.so"),
        ("API_TOKEN", "canary"),
    ]);
    let server = test_env.fixture("one").env("DECLARED", "yes");
    let host = builder(test_env.config([server])).environment(parent).start().await.unwrap();
    let result = host.call_tool("one.env", json!({})).await.unwrap();
    let env: Value = serde_json::from_str(&result_text(&result)).unwrap();
    let mut names: Vec<_> = env["env"].as_object().unwrap().keys().cloned().collect();
    // A program with coverage instrumentation sets this variable itself.
    names.retain(|name| name != "__LLVM_PROFILE_RT_INIT_ONCE");
    names.sort();
    // The host uses `INNKEEPER_TREE` to find the processes of the server.
    assert_eq!(names, ["DECLARED", "HOME", "INNKEEPER_TEST_NONCE", "INNKEEPER_TREE", "PATH"]);
    host.shutdown().await;
}

/// Starts a host with the servers of a file, as an application does: reads the file, then starts.
async fn start_text(
    test_env: &TestEnv,
    text: &str,
    environment: &Environment,
) -> Result<Host, StartError> {
    match Config::from_text(text, "mcp.json", &test_env.path(""), environment) {
        Ok(config) => builder(config).start().await,
        Err(error) => Err(StartError::Config(error)),
    }
}

/// Proves: TR10.2
#[tokio::test]
async fn names_and_values_no_program_can_be_given_are_refused_before_any_start() {
    let test_env = TestEnv::new();
    let file = |name: &str, value: &str| {
        mcp_json([test_env.fixture("good"), test_env.fixture("bad").env(name, value)]).to_string()
    };
    let environment = Environment::from_process();
    for (name, value) in [("A=B", ""), ("A\nB", ""), ("A\0B", ""), ("", ""), ("A", "x\0y")] {
        let error = start_text(&test_env, &file(name, value), &environment).await.unwrap_err();
        assert!(matches!(error, StartError::Config(_)), "{name:?}: {error:?}");
        assert!(error.to_string().contains("servers.bad.env"), "{error}");
        assert!(test_env.journal().entries.is_empty(), "{name:?}");
    }
    let host = start_text(&test_env, &file("A", "x"), &environment).await.unwrap();
    assert_eq!(test_env.journal().pids().len(), 2);
    host.shutdown().await;
}

/// Proves: N13
#[tokio::test]
async fn two_servers_of_one_name_are_refused_with_both_lines_and_none_is_started() {
    let test_env = TestEnv::new();
    let entry = test_env.fixture("twin").config_entry();
    let text = |second: &str| {
        format!("{{\"servers\": {{\n  \"twin\": {entry},\n  \"{second}\": {entry}\n}}}}\n")
    };
    let environment = Environment::from_process();
    let error = start_text(&test_env, &text("twin"), &environment).await.unwrap_err();
    let message = error.to_string();
    assert!(matches!(error, StartError::Config(_)), "{message}");
    assert!(message.starts_with("mcp.json:3:3 servers.twin: "), "{message}");
    assert!(message.contains("mcp.json:2:3"), "{message}");
    assert!(test_env.journal().entries.is_empty());
    // With another name, the same two servers start.
    let host = start_text(&test_env, &text("other"), &environment).await.unwrap();
    assert_eq!(test_env.journal().pids().len(), 2);
    host.shutdown().await;
}

/// Proves: TR10.1
#[tokio::test]
async fn every_missing_program_is_named_before_any_server_is_started() {
    let test_env = TestEnv::new();
    let servers = [
        test_env.fixture("good"),
        test_env.fixture("typo").config_key("command", "innkeeper-no-such-program"),
        test_env.fixture("moved").config_key("command", "./not/here"),
        test_env.fixture("pathless").config_key("command", "ls").env("PATH", "/nowhere"),
    ];
    let host = builder(test_env.config(servers));
    let checked = host.check().unwrap_err();
    let Err(StartError::Config(error)) = host.start().await else { panic!("it has started") };
    assert_eq!(error, checked);
    let problems: Vec<_> =
        error.0.iter().map(|problem| (problem.key.as_str(), problem.message.as_str())).collect();
    assert_eq!(
        problems,
        [
            (
                "servers.typo.command",
                "command `innkeeper-no-such-program` was not found in the PATH of the server"
            ),
            ("servers.moved.command", "command `./not/here` was not found"),
            ("servers.pathless.command", "command `ls` was not found in the PATH of the server"),
        ]
    );
    assert!(test_env.journal().entries.is_empty());
}

#[tokio::test]
async fn a_program_that_may_be_missing_is_a_warning_until_it_is_there() {
    let test_env = TestEnv::new();
    let program = test_env.path("late");
    let server = test_env
        .fixture("late")
        .config_key("command", program.to_str().unwrap())
        .config_key("required", false);
    let host = builder(test_env.config([test_env.fixture("good"), server]));
    let diagnostics = host.check().unwrap();
    assert_eq!(diagnostics.len(), 1);
    assert_eq!(
        (diagnostics[0].severity, &*diagnostics[0].key),
        (Severity::Warning, "servers.late.command")
    );
    let host = host.start().await.unwrap();
    host.call_tool("good.echo", json!({"message": "hi"})).await.unwrap();
    let error = host.call_tool("late.echo", json!({"message": "hi"})).await.unwrap_err();
    let missing = format!("command `{}` was not found", program.display());
    assert!(error.to_string().contains(&missing), "{error}");
    let restart_error = host.restart_server("late").await.unwrap_err();
    assert!(matches!(restart_error, RestartError::Failed(_)), "{restart_error}");
    std::os::unix::fs::symlink(innkeeper_testkit::fixture_program(), &program).unwrap();
    host.restart_server("late").await.unwrap();
    host.call_tool("late.echo", json!({"message": "hi"})).await.unwrap();
    host.shutdown().await;
}

/// Proves: TR8.3
#[tokio::test]
async fn a_missing_variable_keeps_every_server_from_being_started() {
    let test_env = TestEnv::new();
    let asks = test_env.fixture("asks").with("--instructions", "${INNKEEPER_NOT_SET_ANYWHERE}");
    let text = mcp_json([test_env.fixture("good"), asks]).to_string();
    let environment = Environment::from_pairs([("PATH", "/usr/bin:/bin")]);
    let error = start_text(&test_env, &text, &environment).await.unwrap_err();
    let message = error.to_string();
    assert!(matches!(error, StartError::Config(_)), "{message}");
    assert!(message.contains("servers.asks.args["), "{message}");
    assert!(message.contains("INNKEEPER_NOT_SET_ANYWHERE"), "{message}");
    assert!(test_env.journal().entries.is_empty());
    // With the variable, the same two servers start.
    let variables = [("PATH", "/usr/bin:/bin"), ("INNKEEPER_NOT_SET_ANYWHERE", "set")];
    let environment = Environment::from_pairs(variables);
    let host = start_text(&test_env, &text, &environment).await.unwrap();
    assert_eq!(host.catalog().server("asks").unwrap().instructions(), Some("set"));
    assert_eq!(test_env.journal().pids().len(), 2);
    host.shutdown().await;
}

/// Proves: N20
#[tokio::test]
async fn a_server_that_fails_twice_is_launched_again_after_one_and_two_seconds() {
    let (test_env, log) = (TestEnv::new(), LogCapture::capture());
    // A program that ends without a word may succeed the next time.
    let state = test_env.path("starts");
    let script = r#"echo >> "$0"; test "$(wc -l < "$0")" -gt 2 || exit 1; exec "$@""#;
    let fixture = test_env.fixture("one");
    let program = innkeeper_testkit::fixture_program();
    let (program, state) = (program.to_str().unwrap(), state.to_str().unwrap());
    let args = ["-c", script, state, program].map(str::to_owned);
    let args = [&args[..], fixture.args()].concat();
    let server = fixture.config_key("command", "sh").config_key("args", json!(args));
    let config = test_env.config([server.config_key("initTimeout", 10)]);
    let host = builder(config);
    let mut events = host.events();
    let started_at = Instant::now();
    let host = host.start().await.unwrap();
    let elapsed = started_at.elapsed();
    assert!(elapsed >= Duration::from_secs(3) && elapsed < Duration::from_secs(10), "{elapsed:?}");
    let retries = log.with_message("launch failed, retrying");
    let delays: Vec<_> = retries.iter().map(|line| line["delay_s"].as_f64().unwrap()).collect();
    assert_eq!(delays, [1.0, 2.0]);
    assert!(retries.iter().all(|line| line["level"] == "WARN" && line["server"] == "one"));
    assert!(retries[0]["reason"].as_str().unwrap().contains("exit code 1"), "{retries:?}");
    assert_eq!(test_env.journal().events("start").len(), 1);
    let attempts: Vec<_> = drain_events(&mut events)
        .into_iter()
        .filter_map(|event| match event {
            HostEvent::Launching { attempt, .. } => Some(attempt),
            _ => None,
        })
        .collect();
    assert_eq!(attempts, [1, 2, 3]);
    host.shutdown().await;
    test_env.assert_gone().await;
}

#[tokio::test]
async fn a_server_that_ends_with_a_reason_is_launched_again_and_its_reason_is_reported_at_once() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("one").with("--exit-at-start", 7).with("--stderr", "no database");
    let server = server.config_key("initTimeout", 2).config_key("required", false);
    let host = builder(test_env.config([server]));
    let mut events = host.events();
    let host = host.start().await.unwrap();
    assert_eq!(test_env.journal().events("start").len(), 2);
    let retries = drain_events(&mut events).into_iter().filter_map(|event| match event {
        HostEvent::LaunchRetry { delay, reason, .. } => Some((delay, reason)),
        _ => None,
    });
    let first = (Duration::from_secs(1), "no database".to_owned());
    assert_eq!(
        retries.collect::<Vec<_>>(),
        [first],
        "the second delay is longer than `initTimeout`"
    );
    let status = &host.status()["one"];
    let reason = "start failed: no database (process ended with exit code 7)";
    assert_eq!(status.reason.as_deref(), Some(reason));
    assert_eq!(status.stderr, "no database");
    host.shutdown().await;
    test_env.assert_gone().await;
}

#[tokio::test]
async fn what_a_server_says_on_stdout_or_before_its_time_is_up_is_the_reason() {
    for (script, expected) in [
        (
            "echo 'Error: license expired'; exit 2",
            "license expired (process ended with exit code 2)",
        ),
        (
            "echo 'waiting for db' >&2; exec /bin/sleep 60",
            "within 0.5 s; the server said: waiting for db",
        ),
        (
            "echo 'waiting for db'; exec /bin/sleep 60",
            "within 0.5 s; the server said: waiting for db",
        ),
    ] {
        let test_env = TestEnv::new();
        let entry = json!({"command": "/bin/sh", "args": ["-c", script], "initTimeout": 0.5});
        let file = json!({"servers": {"one": entry}});
        let config =
            Config::from_value(&file, "mcp.json", &test_env.path("."), &Environment::default());
        let host = builder(config.unwrap().with_optional_servers()).start().await.unwrap();
        let reason = host.status()["one"].unavailable_reason.as_ref().unwrap().to_string();
        assert!(reason.ends_with(expected), "{reason}");
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_server_without_its_key_is_launched_once_and_the_hint_names_the_key() {
    let test_env = TestEnv::new();
    let words = "\u{1b}[31mError: API_KEY environment variable is required\u{1b}[0m";
    let server = test_env.fixture("one").with("--exit-at-start", 1).with("--stderr", words);
    let host = builder(test_env.config([server]));
    let Err(StartError::Servers(failures)) = host.start().await else { panic!("it has started") };
    let failure = &failures[0];
    assert_eq!((failure.attempts, test_env.journal().events("start").len()), (1, 1));
    let line = "Error: API_KEY environment variable is required";
    assert_eq!(failure.stderr_line().as_deref(), Some(line));
    assert_eq!(failure.hint().as_deref(), Some("set `API_KEY` in `env` of server `one`"));
}

#[tokio::test]
async fn a_server_that_exits_when_asked_to_discover_is_asked_to_initialize_the_next_time() {
    let test_env = TestEnv::new();
    let host =
        test_env.start([test_env.fixture("one").switch("--exit-on-discover")]).await.unwrap();
    let journal = test_env.journal();
    let firsts: Vec<_> = journal
        .pids()
        .into_iter()
        .map(|pid| {
            let mut entries = journal.entries.iter().filter(|entry| entry.pid == pid);
            entries.find_map(|entry| entry.method().map(str::to_owned)).unwrap()
        })
        .collect();
    assert_eq!(firsts, ["server/discover", "initialize"]);
    assert_eq!(host.status()["one"].state, ServerState::Ready);
    host.shutdown().await;
}

#[tokio::test]
async fn a_host_name_without_an_address_fails_the_first_attempt_with_a_hint() {
    let test_env = TestEnv::new();
    // The resolver rejects a label with more than 63 characters without a request.
    let url = format!("http://{}.invalid/mcp", "x".repeat(64));
    let config = test_env.config_from(&json!({"servers": {"web": {"url": url}}}));
    let start = builder(config).start().await;
    let Err(StartError::Servers(failures)) = start else { panic!("it has started") };
    assert_eq!(failures[0].attempts, 1, "{failures:?}");
    assert_eq!(failures[0].hint().as_deref(), Some("correct the host name in `url`"));
}

#[tokio::test]
async fn a_refused_connection_is_repeated_for_two_seconds_at_most() {
    let test_env = TestEnv::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let config = test_env.config_from(&json!({"servers": {"web": {"url": url}}}));
    let started_at = Instant::now();
    let start = builder(config).start().await;
    let Err(StartError::Servers(failures)) = start else { panic!("it has started") };
    let elapsed = started_at.elapsed();
    assert!(
        elapsed >= Duration::from_millis(1750) && elapsed < Duration::from_secs(3),
        "{elapsed:?}"
    );
    assert_eq!(failures[0].attempts, 4);
    let summary = failures[0].summary();
    assert!(summary.starts_with("cannot connect: "), "{summary}");
    let hint = "start the server, or correct the port in `url`";
    assert_eq!(failures[0].hint().as_deref(), Some(hint));
}
