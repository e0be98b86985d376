//! Another configuration while the host runs: who is started, stopped, kept, and what waits.

use std::path::PathBuf;
use std::sync::Arc;

use innkeeper_host::error::{Phase, RoutingError};
use innkeeper_host::reload::ServerChange;
use innkeeper_host::{
    CallError, Config, Environment, Event, Host, Lock, PinPolicy, ReloadError, ReloadOptions,
    ReloadReport, ServerState,
};
use innkeeper_testkit::{Fixture, mcp_json};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::setup::{Scene, builder, text, told, until_told};

fn said(word: &str) -> Value {
    json!({"message": word})
}

/// Writes the configuration file of these servers.
fn write(scene: &Scene, servers: impl IntoIterator<Item = Fixture>) -> PathBuf {
    let path = scene.path("mcp.json");
    std::fs::write(&path, mcp_json(servers).to_string()).unwrap();
    path
}

/// A host of the servers in the configuration file.
async fn start(scene: &Scene, servers: impl IntoIterator<Item = Fixture>) -> Host {
    let path = write(scene, servers);
    let config = Config::load(&[path], &Environment::of_process()).unwrap();
    builder(config).start().await.unwrap()
}

fn names(servers: &[Arc<str>]) -> Vec<&str> {
    servers.iter().map(|name| &**name).collect()
}

fn change(server: &str, keys: &[&'static str], pending: &[&'static str]) -> ServerChange {
    ServerChange { server: server.into(), keys: keys.into(), pending: pending.into() }
}

async fn apply(host: &Host) -> ReloadReport {
    let options = ReloadOptions { apply_changes: true, ..ReloadOptions::default() };
    host.reload_with(options).await.unwrap()
}

/// Proves: FR1.6, N9
#[tokio::test]
async fn an_added_server_starts_a_removed_one_stops_a_changed_one_waits_and_the_rest_goes_on() {
    let scene = Scene::new();
    let host = start(&scene, ["same", "old", "changed"].map(|name| scene.fx(name))).await;
    let mut events = host.events();
    let before = host.status();
    let changed = scene.fx("changed").env("LEVEL", "2").key("timeout", 3);
    write(&scene, [scene.fx("new"), changed, scene.fx("same")]);

    let report = host.reload().await.unwrap();
    assert_eq!((names(&report.added), names(&report.removed)), (vec!["new"], vec!["old"]));
    assert_eq!(report.changed, [change("changed", &["timeout", "env"], &["env"])]);
    assert!(report.failed.is_empty() && report.host.is_empty(), "{report:?}");
    let status = host.status();
    assert_eq!(status.keys().map(|name| &**name).collect::<Vec<_>>(), ["new", "changed", "same"]);
    for kept in ["same", "changed"] {
        assert_eq!(status[kept].pid, before[kept].pid, "{kept}");
        assert_eq!(scene.journal().of(kept).pids().len(), 1, "{kept} was started once");
        host.call_tool(&format!("{kept}.echo"), said("on")).await.unwrap();
    }
    assert_eq!(status["changed"].pending_restart, ["env"]);
    assert_eq!(text(&host.call_tool("new.echo", said("hi")).await.unwrap()), "hi");
    let error = host.call_tool("old.echo", said("hi")).await.unwrap_err();
    assert!(matches!(error, CallError::Routing(RoutingError::UnknownServer { .. })), "{error}");
    assert_eq!(scene.journal().of("old").events("stdin_eof").len(), 1, "it left by itself");
    let reloaded = told(&mut events).into_iter().find_map(|event| match event {
        Event::Reloaded { added, removed, changed } => Some([added, removed, changed]),
        _ => None,
    });
    let reloaded = reloaded.unwrap();
    assert_eq!(reloaded.each_ref().map(|told| names(told)), [["new"], ["old"], ["changed"]]);

    host.restart_server("changed").await.unwrap();
    assert_ne!(host.status()["changed"].pid, before["changed"].pid);
    assert_eq!(host.status()["changed"].pending_restart, [""; 0]);
    assert!(host.reload().await.unwrap().is_empty());
    assert!(host.shutdown().await.is_clean());
    scene.assert_gone().await;
}

/// Proves: FR1.6
#[tokio::test]
async fn calls_in_flight_to_servers_that_stay_are_not_touched_by_a_reload() {
    let scene = Scene::new();
    let slow = |name: &str| scene.fx(name).key("maxConcurrent", 200);
    let host = start(&scene, [slow("same"), slow("changed"), scene.fx("old")]).await;
    let mut calls = JoinSet::new();
    for number in 0..200 {
        let (host, server) = (host.clone(), ["same", "changed"][number % 2]);
        let tool = format!("{server}.sleep");
        calls.spawn(async move { host.call_tool(&tool, json!({"ms": 2_000})).await });
    }
    scene.journal_until(|journal| journal.count("tools/call") == 200).await;
    write(&scene, [slow("same"), slow("changed").env("LEVEL", "2"), scene.fx("new")]);
    let report = host.reload().await.unwrap();
    assert_eq!((report.added.len(), report.removed.len(), report.changed.len()), (1, 1, 1));
    assert!(host.status()["same"].in_flight > 0, "the calls were over before the reload");
    let mut ended = 0;
    while let Some(call) = calls.join_next().await {
        call.unwrap().unwrap();
        ended += 1;
    }
    assert_eq!(ended, 200);
    host.shutdown().await;
    scene.assert_gone().await;
}

/// Proves: FR1.6
#[tokio::test]
async fn a_call_under_way_to_a_removed_server_may_finish_and_one_that_needs_longer_fails() {
    let scene = Scene::new();
    let host = start(&scene, [scene.fx("old"), scene.fx("same")]).await;
    for (ms, finishes) in [(400, true), (60_000, false)] {
        write(&scene, [scene.fx("old"), scene.fx("same")]);
        host.reload().await.unwrap();
        let earlier = scene.journal().count("tools/call");
        let reload = async {
            scene.journal_until(|journal| journal.count("tools/call") > earlier).await;
            write(&scene, [scene.fx("same")]);
            host.reload().await.unwrap();
        };
        let (result, ()) = tokio::join!(host.call_tool("old.sleep", json!({"ms": ms})), reload);
        assert_eq!(result.is_ok(), finishes, "{result:?}");
        assert_eq!(host.status().len(), 1);
    }
    assert!(host.shutdown().await.is_clean());
    scene.assert_gone().await;
}

#[tokio::test]
async fn settings_that_need_no_start_are_in_effect_at_once() {
    let scene = Scene::new();
    let host = start(&scene, [scene.fx("one")]).await;
    let pid = host.status()["one"].pid;
    write(&scene, [scene.fx("one").key("tools", json!({"deny": ["add"]})).key("timeout", 0.2)]);
    let report = host.reload().await.unwrap();
    assert_eq!(report.changed, [change("one", &["timeout", "tools"], &[])]);
    let tools: Vec<_> = host.catalog().tool_names().map(str::to_owned).collect();
    assert!(tools.contains(&"one.echo".to_owned()) && !tools.contains(&"one.add".to_owned()));
    let error = host.call_tool("one.sleep", json!({"ms": 60_000})).await.unwrap_err();
    assert!(matches!(error, CallError::Timeout { .. }), "{error}");
    assert_eq!(host.status()["one"].pid, pid);
    host.shutdown().await;
}

/// Proves: FR1.6
#[tokio::test]
async fn a_file_that_cannot_be_used_changes_nothing_and_all_its_problems_are_told() {
    let scene = Scene::new();
    let host = start(&scene, [scene.fx("one")]).await;
    let (before, mut events) = (host.status()["one"].pid, host.events());
    let broken =
        r#"{"servers": {"two": {"command": 1}, "three": {"command": "x", "timeout": -1}}}"#;
    let missing = r#"{"servers": {"two": {"command": "there-is-no-such-program"}}}"#;
    for (text, problems) in [(broken, 2), (missing, 1), ("{", 1)] {
        std::fs::write(scene.path("mcp.json"), text).unwrap();
        let error = host.reload().await.unwrap_err();
        let ReloadError::Config(error) = error else { panic!("{error}") };
        assert_eq!(error.errors().count(), problems, "{error}");
        let told = until_told(&mut events, |event| matches!(event, Event::ReloadFailed { .. }));
        let Event::ReloadFailed { problems: told } = told.await else { unreachable!() };
        assert_eq!(told, error.0);
        assert_eq!(host.status()["one"].pid, before);
        host.call_tool("one.echo", said("on")).await.unwrap();
    }
    write(&scene, [scene.fx("one"), scene.fx("two")]);
    assert_eq!(names(&host.reload().await.unwrap().added), ["two"]);
    assert!(host.shutdown().await.is_clean());
    assert!(matches!(host.reload().await, Err(ReloadError::Shutdown)));
    scene.assert_gone().await;
}

/// Proves: FR1.6
#[tokio::test]
async fn added_servers_wait_for_those_they_depend_on_and_one_that_fails_is_its_own_problem() {
    let scene = Scene::new();
    let host = start(&scene, [scene.fx("base")]).await;
    let after = |name: &str, needs: &str| scene.fx(name).key("dependencies", json!([needs]));
    let bad = scene.fx("bad").switch("--hang-init").key("initTimeout", 0.3);
    let slow = after("slow", "base").with("--init-delay", 200);
    write(&scene, [after("last", "slow"), after("lost", "bad"), slow, bad, scene.fx("base")]);
    let report = host.reload().await.unwrap();
    assert_eq!(names(&report.added), ["last", "lost", "slow", "bad"]);
    let failed = report.failed.iter().map(|failure| (&*failure.server, failure.phase));
    let failed: Vec<_> = failed.collect();
    assert_eq!(failed, [("lost", Phase::Dependencies), ("bad", Phase::Handshake)]);
    let states = host.status().into_iter().map(|(_, status)| status.state);
    let (ready, away) = (ServerState::Ready, ServerState::Unavailable);
    assert_eq!(states.collect::<Vec<_>>(), [ready, away, ready, away, ready]);
    let journal = scene.journal();
    let mut order: Vec<_> = journal.entries.iter().map(|entry| &*entry.server).collect();
    order.dedup();
    let place = |name: &str| order.iter().position(|other| *other == name).unwrap();
    assert!(place("slow") < place("last"), "{order:?}");
    assert!(scene.journal().of("lost").pids().is_empty());
    host.shutdown().await;
    scene.assert_gone().await;
}

#[tokio::test]
async fn changes_can_be_applied_at_once_and_only_changed_servers_are_started_again() {
    let scene = Scene::new();
    let host = start(&scene, [scene.fx("one"), scene.fx("two"), scene.fx("three")]).await;
    let before = host.status();
    let louder = |name: &str| scene.fx(name).env("LEVEL", "2");
    write(&scene, [louder("one"), scene.fx("two"), scene.fx("three")]);
    host.reload().await.unwrap();
    let broken = louder("three").switch("--hang-init").key("initTimeout", 0.3);
    write(&scene, [louder("one"), scene.fx("two"), broken]);
    let report = apply(&host).await;
    assert_eq!(report.failed.len(), 1, "{report:?}");
    let status = host.status();
    assert_ne!(status["one"].pid, before["one"].pid);
    assert_eq!(status["two"].pid, before["two"].pid);
    assert_eq!(status["three"].state, ServerState::Unavailable);
    assert!(status.values().all(|status| status.pending_restart.is_empty()));
    assert_eq!(scene.journal().of("one").pids().len(), 2);
    write(&scene, [louder("one"), scene.fx("two"), scene.fx("three")]);
    assert!(apply(&host).await.failed.is_empty());
    assert_eq!(host.status()["three"].state, ServerState::Ready);
    host.shutdown().await;
    scene.assert_gone().await;
}

#[tokio::test]
async fn a_change_that_is_taken_back_waits_no_more() {
    let scene = Scene::new();
    let host = start(&scene, [scene.fx("one")]).await;
    for (server, pending) in [(scene.fx("one").env("A", "1"), true), (scene.fx("one"), false)] {
        write(&scene, [server]);
        host.reload().await.unwrap();
        assert_eq!(!host.status()["one"].pending_restart.is_empty(), pending);
    }
    host.shutdown().await;
}

#[tokio::test]
async fn a_configuration_without_files_is_replaced_by_a_given_one() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one")]).await.unwrap();
    assert!(matches!(host.reload().await, Err(ReloadError::NoFiles)));
    let mut file = mcp_json([scene.fx("two")]);
    file["host"] = json!({"allowBareNames": true, "timeout": 9});
    let config = Some(scene.config_of(&file));
    let options = ReloadOptions { config, ..ReloadOptions::default() };
    let report = host.reload_with(options).await.unwrap();
    assert_eq!((names(&report.added), names(&report.removed)), (vec!["two"], vec!["one"]));
    assert_eq!(report.host, ["allowBareNames"]);
    assert!(host.call_tool("echo", said("hi")).await.is_err());
    assert!(host.shutdown().await.is_clean());
    scene.assert_gone().await;
}

/// Proves: FR1.6
#[tokio::test]
async fn a_server_that_is_removed_while_it_is_started_again_is_not_left_behind() {
    let scene = Scene::new();
    let host = start(&scene, [scene.fx("one").with("--start-delay", 600)]).await;
    let mut events = host.events();
    let reload = async {
        until_told(&mut events, |event| matches!(event, Event::Launching { .. })).await;
        write(&scene, [scene.fx("two")]);
        host.reload().await.unwrap()
    };
    let (restart, report) = tokio::join!(host.restart_server("one"), reload);
    assert_eq!(restart.unwrap_err().to_string(), "no server `one`");
    assert_eq!(names(&report.removed), ["one"]);
    assert!(scene.journal().of("two").pids().len() == 1);
    assert!(host.shutdown().await.is_clean());
    scene.assert_gone().await;
}

#[tokio::test]
async fn a_host_that_is_shut_down_or_dropped_during_a_reload_leaves_nothing_behind() {
    for dropped in [false, true] {
        let scene = Scene::new();
        let host = start(&scene, [scene.fx("one").with("--exit-delay", 300)]).await;
        let slow = scene.fx("two").with("--start-delay", 400);
        write(&scene, [slow.clone(), scene.fx("three").with("--start-delay", 400)]);
        let mut events = host.events();
        let shutdown = async {
            until_told(&mut events, |event| matches!(event, Event::Launching { .. })).await;
            if !dropped {
                host.shutdown().await;
                assert_eq!(host.status()["two"].state, ServerState::Shutdown);
            }
        };
        tokio::select! {
            _ = host.reload() => {}
            () = shutdown => {}
        }
        drop(host);
        scene.assert_gone().await;
    }
}

#[tokio::test]
async fn pins_hold_for_servers_that_are_added() {
    let scene = Scene::new();
    let path = write(&scene, [scene.fx("one")]);
    let config = Config::load(&[path], &Environment::of_process()).unwrap();
    let host = builder(config).pins(Lock::default(), PinPolicy::Report).start().await.unwrap();
    let mut events = host.events();
    write(&scene, [scene.fx("one"), scene.fx("two")]);
    host.reload().await.unwrap();
    let broken =
        |event: &Event| matches!(event, Event::PinBroken { server, .. } if &**server == "two");
    until_told(&mut events, broken).await;
    host.shutdown().await;
}
