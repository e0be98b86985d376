//! Starting: what reaches a server, what is refused before any server runs, and launching again.

use std::time::Duration;

use innkeeper_host::config::Severity;
use innkeeper_host::{Config, Environment, Event, RestartError, ServerState, StartError};
use innkeeper_testkit::mcp_json;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::setup::{Log, Scene, builder, text, told};

/// Proves: N1, N4, FR2.1
#[tokio::test]
async fn every_listed_server_is_started_and_initialised_and_all_are_stopped_at_the_end() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one"), scene.fx("two")]).await.unwrap();
    let catalog = host.catalog();
    for name in ["one", "two"] {
        let server = catalog.server(name).unwrap();
        assert_eq!(server.state(), ServerState::Ready);
        assert!(server.offer().unwrap().tools.iter().any(|tool| tool.view.name == "echo"));
        let journal = scene.journal().of(name);
        assert_eq!(
            journal.methods()[..3],
            ["server/discover", "initialize", "notifications/initialized"]
        );
    }
    let report = host.shutdown().await;
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(report.servers.len(), 2);
    scene.assert_gone().await;
}

/// Proves: FR2.4
#[tokio::test]
async fn the_handshake_follows_the_start_of_the_process_and_precedes_everything_else() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one")]).await.unwrap();
    host.call_tool("one.echo", json!({"message": "hi"})).await.unwrap();
    let journal = scene.journal();
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
    let scene = Scene::new();
    let host = scene.start([scene.fx("one")]).await.unwrap();
    let piece = "Grüße, 世界 👋🏽 \"quoted\" \\ / \u{0}\u{1b}\n\r\t\u{2028}\u{feff} ";
    let message = piece.repeat((1 << 20) / piece.len() + 1);
    assert!(message.len() >= 1 << 20);
    let result = host.call_tool("one.echo", json!({"message": &message})).await.unwrap();
    assert!(text(&result) == message, "the text has changed on its way");
    let sent = scene.journal().params("tools/call")[0]["arguments"]["message"].clone();
    assert!(sent == json!(message), "the server was sent another text");
    host.shutdown().await;
}

/// Proves: FR1.5, TR2.1
#[tokio::test]
async fn arguments_environment_and_directory_reach_the_server_literally() {
    let scene = Scene::new();
    let directory = scene.path("a directory");
    std::fs::create_dir(&directory).unwrap();
    let hostile = "; rm -rf \"$HOME\" $(id) `id` | & > * ~ %PATH% \\ ' \n #";
    let server = scene
        .fx("one")
        .with("--instructions", hostile)
        .env("SPOKEN", hostile)
        .key("cwd", directory.to_str().unwrap())
        .key("colour", "blue");
    let config = scene.config([server.clone()]);
    let warnings: Vec<_> = config.warnings.iter().map(|warning| warning.key.as_str()).collect();
    assert_eq!(warnings, ["servers.one.colour"]);
    let host = builder(config).start().await.unwrap();
    let told = host.call_tool("one.env", json!({})).await.unwrap();
    let told: Value = serde_json::from_str(&text(&told)).unwrap();
    assert_eq!(told["argv"].as_array().unwrap()[1..], *json!(server.args()).as_array().unwrap());
    assert!(server.args().contains(&hostile.to_owned()));
    assert_eq!(told["env"]["SPOKEN"], hostile);
    assert_eq!(told["cwd"], json!(directory.canonicalize().unwrap()));
    host.shutdown().await;
}

/// Proves: TR10.2
#[tokio::test]
async fn a_server_sees_the_short_list_of_the_parent_environment_and_what_is_declared() {
    let scene = Scene::new();
    let parent = Environment::from_pairs([
        ("PATH", "/usr/bin:/bin"),
        ("HOME", "/home/ada"),
        ("LD_PRELOAD", "/nowhere/evil.so"),
        ("API_TOKEN", "canary"),
    ]);
    let server = scene.fx("one").env("DECLARED", "yes");
    let host = builder(scene.config([server])).environment(parent).start().await.unwrap();
    let told = host.call_tool("one.env", json!({})).await.unwrap();
    let told: Value = serde_json::from_str(&text(&told)).unwrap();
    let mut names: Vec<_> = told["env"].as_object().unwrap().keys().cloned().collect();
    // A program that counts the lines it runs sets this one itself.
    names.retain(|name| name != "__LLVM_PROFILE_RT_INIT_ONCE");
    names.sort();
    // By the last but one its processes are known.
    assert_eq!(names, ["DECLARED", "HOME", "INNKEEPER_TEST_NONCE", "INNKEEPER_TREE", "PATH"]);
    host.shutdown().await;
}

/// Proves: TR10.2
#[tokio::test]
async fn names_and_values_no_program_can_be_given_are_refused_before_any_start() {
    for (name, value) in [("A=B", ""), ("A\nB", ""), ("A\0B", ""), ("", ""), ("A", "x\0y")] {
        let scene = Scene::new();
        let file = mcp_json([scene.fx("good"), scene.fx("bad").env(name, value)]);
        let directory = scene.path("");
        let read = Config::from_value(&file, "mcp.json", &directory, &Environment::of_process());
        let error = match read {
            Err(error) => error,
            Ok(config) => match builder(config).start().await {
                Err(StartError::Config(error)) => error,
                other => panic!("{name:?}: {other:?}"),
            },
        };
        let message = error.to_string();
        assert!(message.contains("servers.bad.env"), "{message}");
        assert!(scene.journal().entries.is_empty(), "{name:?}");
    }
}

/// Proves: N13
#[tokio::test]
async fn two_servers_of_one_name_are_refused_with_both_lines_and_none_is_started() {
    let scene = Scene::new();
    let entry = scene.fx("twin").entry();
    let text = format!("{{\"servers\": {{\n  \"twin\": {entry},\n  \"twin\": {entry}\n}}}}\n");
    let environment = Environment::of_process();
    let read = Config::from_text(&text, "mcp.json", &scene.path(""), &environment);
    let message = read.unwrap_err().to_string();
    assert!(message.starts_with("mcp.json:3:3 servers.twin: "), "{message}");
    assert!(message.contains("mcp.json:2:3"), "{message}");
    assert!(scene.journal().entries.is_empty());
}

/// Proves: TR10.1
#[tokio::test]
async fn every_missing_program_is_named_before_any_server_is_started() {
    let scene = Scene::new();
    let servers = [
        scene.fx("good"),
        scene.fx("typo").key("command", "innkeeper-no-such-program"),
        scene.fx("moved").key("command", "./not/here"),
        scene.fx("pathless").key("command", "ls").env("PATH", "/nowhere"),
    ];
    let host = builder(scene.config(servers));
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
    assert!(scene.journal().entries.is_empty());
}

#[tokio::test]
async fn a_program_that_may_be_missing_is_a_warning_until_it_is_there() {
    let scene = Scene::new();
    let late = scene.path("late");
    let server = scene.fx("late").key("command", late.to_str().unwrap()).key("required", false);
    let host = builder(scene.config([scene.fx("good"), server]));
    let told = host.check().unwrap();
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].severity, &*told[0].key), (Severity::Warning, "servers.late.command"));
    let host = host.start().await.unwrap();
    host.call_tool("good.echo", json!({"message": "hi"})).await.unwrap();
    let error = host.call_tool("late.echo", json!({"message": "hi"})).await.unwrap_err();
    let missing = format!("command `{}` was not found", late.display());
    assert!(error.to_string().contains(&missing), "{error}");
    let again = host.restart_server("late").await.unwrap_err();
    assert!(matches!(again, RestartError::Failed(_)), "{again}");
    std::os::unix::fs::symlink(innkeeper_testkit::fx_program(), &late).unwrap();
    host.restart_server("late").await.unwrap();
    host.call_tool("late.echo", json!({"message": "hi"})).await.unwrap();
    host.shutdown().await;
}

/// Proves: TR8.3
#[tokio::test]
async fn a_missing_variable_keeps_every_server_from_being_started() {
    let scene = Scene::new();
    let asks = scene.fx("asks").with("--instructions", "${INNKEEPER_NOT_SET_ANYWHERE}");
    let file = mcp_json([scene.fx("good"), asks]);
    let environment = Environment::of_process();
    let read = Config::from_value(&file, "mcp.json", &scene.path(""), &environment);
    let message = read.unwrap_err().to_string();
    assert!(message.contains("servers.asks.args["), "{message}");
    assert!(message.contains("INNKEEPER_NOT_SET_ANYWHERE"), "{message}");
    assert!(scene.journal().entries.is_empty());
}

/// Proves: N20
#[tokio::test]
async fn a_server_that_fails_twice_is_launched_again_after_one_and_two_seconds() {
    let (scene, log) = (Scene::new(), Log::capture());
    let state = scene.path("starts");
    let server = scene.fx("one").with("--fail-starts", 2).with("--state", state.display());
    let config = scene.config([server.key("initTimeout", 10)]);
    let host = builder(config);
    let mut events = host.events();
    let began = Instant::now();
    let host = host.start().await.unwrap();
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(3) && took < Duration::from_secs(10), "{took:?}");
    let retries = log.of("launch failed, trying again");
    let delays: Vec<_> = retries.iter().map(|line| line["delay_s"].as_f64().unwrap()).collect();
    assert_eq!(delays, [1.0, 2.0]);
    assert!(retries.iter().all(|line| line["level"] == "WARN" && line["server"] == "one"));
    assert!(retries[0]["reason"].as_str().unwrap().contains("exit code 1"), "{retries:?}");
    let starts: Vec<_> = scene.journal().events("start").iter().map(|entry| entry.ts_ms).collect();
    assert_eq!(starts.len(), 3);
    assert!(starts[1] - starts[0] >= 1000 && starts[2] - starts[1] >= 2000, "{starts:?}");
    let attempts: Vec<_> = told(&mut events)
        .into_iter()
        .filter_map(|event| match event {
            Event::Launching { attempt, .. } => Some(attempt),
            _ => None,
        })
        .collect();
    assert_eq!(attempts, [1, 2, 3]);
    host.shutdown().await;
    scene.assert_gone().await;
}

#[tokio::test]
async fn a_server_that_exits_when_asked_to_discover_is_asked_to_initialize_the_next_time() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one").switch("--exit-on-discover")]).await.unwrap();
    let journal = scene.journal();
    let firsts: Vec<_> = journal
        .pids()
        .into_iter()
        .map(|pid| {
            let mut mine = journal.entries.iter().filter(|entry| entry.pid == pid);
            mine.find_map(|entry| entry.method().map(str::to_owned)).unwrap()
        })
        .collect();
    assert_eq!(firsts, ["server/discover", "initialize"]);
    assert_eq!(host.status()["one"].state, ServerState::Ready);
    host.shutdown().await;
}
