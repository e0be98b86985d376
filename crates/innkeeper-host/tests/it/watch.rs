//! Watched configuration: every kind of file change is applied, and only trusted servers start.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use innkeeper_host::{Config, Environment, Host, HostEvent, ServerState, TrustPolicy};
use innkeeper_testkit::{Fixture, mcp_json};
use serde_json::json;
use tokio::sync::broadcast::Receiver;

use crate::setup::{LogCapture, TestEnv, builder, drain_events, wait_for_event};

fn write_config(path: &Path, servers: impl IntoIterator<Item = Fixture>) {
    std::fs::write(path, mcp_json(servers).to_string()).unwrap();
}

/// Starts a host that watches this file.
async fn watching_host(path: &Path, trust: TrustPolicy) -> Host {
    let config = Config::load(&[path.to_owned()], &Environment::from_process()).unwrap();
    builder(config).watch(trust).start().await.unwrap()
}

/// Waits for a reload and returns the added, removed and changed servers.
async fn wait_reloaded(events: &mut Receiver<HostEvent>) -> [Vec<Arc<str>>; 3] {
    let event = wait_for_event(events, |event| matches!(event, HostEvent::Reloaded { .. })).await;
    let HostEvent::Reloaded { added, removed, changed } = event else { unreachable!() };
    [added, removed, changed]
}

fn server_list(name: &str) -> Vec<Arc<str>> {
    vec![name.into()]
}

/// Proves: FR1.6, N9
#[tokio::test]
async fn a_save_by_renaming_is_applied_and_the_running_server_is_not_touched() {
    let test_env = TestEnv::new();
    let path = test_env.path("mcp.json");
    write_config(&path, [test_env.fixture("one")]);
    let host = watching_host(&path, TrustPolicy::AllowAll).await;
    let (pid, mut events) = (host.status()["one"].pid, host.events());
    for names in [&["one", "two"][..], &["one"]] {
        let saved = test_env.path("mcp.json.swp");
        write_config(&saved, names.iter().map(|name| test_env.fixture(name)));
        std::fs::rename(saved, &path).unwrap();
        let [added, removed, _] = wait_reloaded(&mut events).await;
        let (expected, other) = if names.len() == 2 { (added, removed) } else { (removed, added) };
        assert_eq!((expected, other), (server_list("two"), vec![]));
        let call = host.call_tool("two.echo", serde_json::json!({"message": "hi"})).await;
        assert_eq!(call.is_ok(), names.len() == 2, "{call:?}");
    }
    write_config(&path, [test_env.fixture("one").env("LEVEL", "2")]);
    assert_eq!(wait_reloaded(&mut events).await[2], server_list("one"));
    assert_eq!(host.status()["one"].pending_restart, ["env"], "it is not started again");
    assert_eq!(host.status()["one"].pid, pid);
    host.shutdown().await;
    test_env.assert_gone().await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_that_leads_to_another_directory_is_a_change() {
    use std::os::unix::fs::symlink;
    let test_env = TestEnv::new();
    for (version, names) in [("v1", &["one"][..]), ("v2", &["one", "two"])] {
        std::fs::create_dir(test_env.path(version)).unwrap();
        let servers = names.iter().map(|name| test_env.fixture(name));
        write_config(&test_env.path(version).join("mcp.json"), servers);
    }
    symlink("v1", test_env.path("..data")).unwrap();
    symlink("..data/mcp.json", test_env.path("mcp.json")).unwrap();
    let host = watching_host(&test_env.path("mcp.json"), TrustPolicy::AllowAll).await;
    let mut events = host.events();
    symlink("v2", test_env.path("..data_tmp")).unwrap();
    std::fs::rename(test_env.path("..data_tmp"), test_env.path("..data")).unwrap();
    assert_eq!(wait_reloaded(&mut events).await[0], server_list("two"));
    write_config(&test_env.path("v2").join("mcp.json"), [test_env.fixture("one")]);
    assert_eq!(
        wait_reloaded(&mut events).await[1],
        server_list("two"),
        "where it leads now is watched"
    );
    host.shutdown().await;
}

/// Proves: FR1.6
#[tokio::test]
async fn a_file_that_cannot_be_used_is_reported_and_the_next_good_one_is_applied() {
    let test_env = TestEnv::new();
    let path = test_env.path("mcp.json");
    write_config(&path, [test_env.fixture("one")]);
    let log = LogCapture::capture();
    let host = watching_host(&path, TrustPolicy::AllowAll).await;
    let (pid, mut events) = (host.status()["one"].pid, host.events());
    std::fs::write(&path, r#"{"servers": {"one": {"command": 1, "timeout": "x"}}}"#).unwrap();
    let event =
        wait_for_event(&mut events, |event| matches!(event, HostEvent::ReloadFailed { .. })).await;
    let HostEvent::ReloadFailed { diagnostics } = event else { unreachable!() };
    assert_eq!(diagnostics.len(), 2, "{diagnostics:?}");
    assert_eq!(log.with_message("reload failed")[0]["level"], "ERROR");
    assert_eq!((host.status()["one"].pid, host.status()["one"].state), (pid, ServerState::Ready));
    write_config(&path, [test_env.fixture("one"), test_env.fixture("two")]);
    assert_eq!(wait_reloaded(&mut events).await[0], server_list("two"));
    assert_eq!(log.with_message("reloaded")[0]["added"], "two");
    host.shutdown().await;
}

/// Attack: files | a watched file adds a server and sets `LD_PRELOAD` for another | neither launch
/// starts without approval | Approval first
#[tokio::test]
async fn a_new_or_changed_command_is_not_started_unless_it_was_decided_on() {
    let test_env = TestEnv::new();
    let path = test_env.path("mcp.json");
    write_config(&path, [test_env.fixture("one"), test_env.fixture("same")]);
    let approvals = Arc::new(Mutex::new(Vec::new()));
    let questions = approvals.clone();
    let trust = TrustPolicy::from_fn(move |launch| {
        questions.lock().unwrap().push((launch.name.clone(), launch.fingerprint()));
        launch.name == "good"
    });
    let host = watching_host(&path, trust).await;
    let mut events = host.events();
    let turned = test_env.fixture("one").env("LD_PRELOAD", "/somewhere/else.so");
    let adjusted = test_env.fixture("same").config_key("timeout", 9).config_key("maxConcurrent", 9);
    write_config(
        &path,
        [turned.clone(), adjusted, test_env.fixture("good"), test_env.fixture("bad")],
    );
    let [added, _, changed] = wait_reloaded(&mut events).await;
    assert_eq!((added, changed), (server_list("good"), server_list("same")));
    let names = |approvals: &Mutex<Vec<(String, String)>>| -> Vec<String> {
        approvals.lock().unwrap().iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(&approvals), ["one", "good", "bad"], "nobody asks about other settings");
    let status = host.status();
    assert!(status.contains_key("good") && !status.contains_key("bad"));
    assert_eq!(status["one"].pending_restart, [""; 0]);
    let pid = status["one"].pid;
    host.restart_server("one").await.unwrap();
    assert_ne!(host.status()["one"].pid, pid);
    assert_eq!(host.status()["one"].pending_restart, [""; 0], "it has what it had");
    assert!(test_env.journal().for_server("bad").pids().is_empty());

    // An explicit reload by the application counts as approval.
    assert_eq!(host.reload().await.unwrap().added, server_list("bad"));
    assert_eq!(host.status()["one"].pending_restart, ["env"]);
    approvals.lock().unwrap().clear();
    let adjusted = test_env.fixture("same").config_key("timeout", 8);
    write_config(&path, [turned, adjusted, test_env.fixture("good"), test_env.fixture("bad")]);
    let approved = drain_events(&mut events).into_iter().filter_map(|event| match event {
        HostEvent::NotTrusted { server } => Some(server.to_string()),
        _ => None,
    });
    assert_eq!(approved.collect::<Vec<_>>(), [""; 0], "they were told before the reload");
    assert_eq!(wait_reloaded(&mut events).await[2], [Arc::from("one"), Arc::from("same")]);
    assert_eq!(names(&approvals), [""; 0], "what was decided on is not asked again");
    host.shutdown().await;
    test_env.assert_gone().await;
}

#[tokio::test]
async fn pending_settings_end_when_the_file_has_others_that_have_no_approval() {
    let test_env = TestEnv::new();
    let path = test_env.path("mcp.json");
    let write_level =
        |level: &str| write_config(&path, [test_env.fixture("one").env("LEVEL", level)]);
    write_level("1");
    let host = watching_host(&path, TrustPolicy::from_fn(|_| false)).await;
    let mut events = host.events();
    write_level("2");
    wait_reloaded(&mut events).await;
    assert_eq!(host.status()["one"].pending_restart, [""; 0]);
    // An explicit reload by the application counts as approval.
    host.reload().await.unwrap();
    assert_eq!(host.status()["one"].pending_restart, ["env"]);
    drain_events(&mut events);
    write_level("3");
    wait_for_event(&mut events, |event| matches!(event, HostEvent::NotTrusted { .. })).await;
    assert_eq!(host.status()["one"].pending_restart, [""; 0]);
    host.shutdown().await;
    test_env.assert_gone().await;
}

/// Attack: files | a watched file turns the guard off | the guard stays until the approval |
/// Approval first
#[tokio::test]
async fn a_guard_is_not_turned_off_or_down_unless_that_was_decided_on_and_is_turned_up() {
    let test_env = TestEnv::new();
    let path = test_env.path("mcp.json");
    let fixture_with_guard = |guard: &str| test_env.fixture("one").config_key("guard", guard);
    write_config(&path, [fixture_with_guard("refuse")]);
    let agrees = Arc::new(AtomicBool::new(false));
    let approval = agrees.clone();
    let host =
        watching_host(&path, TrustPolicy::from_fn(move |_| approval.load(Ordering::Relaxed))).await;
    let mut events = host.events();
    for weaker in ["off", "flag"] {
        write_config(&path, [fixture_with_guard(weaker)]);
        let event =
            wait_for_event(&mut events, |event| matches!(event, HostEvent::NotTrusted { .. }))
                .await;
        assert!(matches!(event, HostEvent::NotTrusted { server } if &*server == "one"));
        assert_eq!(
            wait_reloaded(&mut events).await[2],
            [""; 0].map(Arc::from),
            "it stays as it is"
        );
    }
    agrees.store(true, Ordering::Relaxed);
    write_config(&path, [fixture_with_guard("off")]);
    assert_eq!(wait_reloaded(&mut events).await[2], [Arc::from("one")]);
    agrees.store(false, Ordering::Relaxed);
    write_config(&path, [fixture_with_guard("flag")]);
    assert_eq!(wait_reloaded(&mut events).await[2], [Arc::from("one")]);
    assert_eq!(host.status()["one"].pending_restart, [""; 0]);
    host.shutdown().await;
    test_env.assert_gone().await;
}

#[tokio::test]
async fn servers_without_a_trust_decision_are_reported_by_name() {
    let test_env = TestEnv::new();
    let path = test_env.path("mcp.json");
    write_config(&path, [test_env.fixture("one")]);
    let log = LogCapture::capture();
    let host = watching_host(&path, TrustPolicy::from_fn(|_| false)).await;
    let mut events = host.events();
    write_config(&path, [test_env.fixture("one"), test_env.fixture("two")]);
    let event =
        wait_for_event(&mut events, |event| matches!(event, HostEvent::NotTrusted { .. })).await;
    assert!(matches!(event, HostEvent::NotTrusted { server } if &*server == "two"));
    assert_eq!(log.with_message("server not trusted, not started")[0]["server"], "two");
    assert_eq!(test_env.journal().for_server("two").pids(), [0; 0]);
    host.shutdown().await;
}

#[tokio::test]
async fn a_path_that_is_no_file_is_reported_as_not_watched_and_the_host_runs() {
    let test_env = TestEnv::new();
    let builder = builder(test_env.config([test_env.fixture("one")])).watch(TrustPolicy::AllowAll);
    let mut events = builder.events();
    let host = builder.start().await.unwrap();
    let event =
        wait_for_event(&mut events, |event| matches!(event, HostEvent::ReloadFailed { .. })).await;
    let HostEvent::ReloadFailed { diagnostics } = event else { unreachable!() };
    assert_eq!(
        diagnostics[0].to_string(),
        "mcp.json: cannot watch: the configuration has no files"
    );
    host.call_tool("one.echo", json!({"message": "on"})).await.unwrap();
    host.shutdown().await;
}

/// Attack: files | the callback for approvals panics | the launch is rejected | Approval first
#[tokio::test]
async fn a_trust_callback_that_panics_denies_and_the_file_is_still_watched() {
    let test_env = TestEnv::new();
    let path = test_env.path("mcp.json");
    write_config(&path, [test_env.fixture("one")]);
    let trust = TrustPolicy::from_fn(|launch| {
        assert_ne!(launch.name, "bad", "asked about this one");
        true
    });
    let host = watching_host(&path, trust).await;
    let mut events = host.events();
    write_config(&path, [test_env.fixture("one"), test_env.fixture("bad")]);
    let event =
        wait_for_event(&mut events, |event| matches!(event, HostEvent::NotTrusted { .. })).await;
    assert!(matches!(event, HostEvent::NotTrusted { server } if &*server == "bad"));
    write_config(&path, [test_env.fixture("one"), test_env.fixture("good")]);
    wait_for_event(
        &mut events,
        |event| matches!(event, HostEvent::Reloaded { added, .. } if added == &server_list("good")),
    )
    .await;
    host.shutdown().await;
}

/// Attack: files | a watched file becomes a pipe | the reload fails, and calls continue | No
/// unbounded wait
#[cfg(unix)]
#[tokio::test]
async fn a_file_that_became_a_pipe_refuses_a_reload_and_blocks_nothing() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    let test_env = TestEnv::new();
    let path = test_env.path("mcp.json");
    write_config(&path, [test_env.fixture("one")]);
    let host = watching_host(&path, TrustPolicy::AllowAll).await;
    std::fs::remove_file(&path).unwrap();
    mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let error = host.reload().await.unwrap_err();
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("not a file"));
    host.call_tool("one.echo", json!({"message": "on"})).await.unwrap();
    host.shutdown().await;
}
