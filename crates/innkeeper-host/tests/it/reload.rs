//! Reload: started, stopped, retained and pending servers.

use std::path::PathBuf;
use std::sync::Arc;

use innkeeper_host::error::{RoutingError, StartPhase};
use innkeeper_host::reload::ServerChange;
use innkeeper_host::{
    CallError, Config, Environment, Host, HostEvent, Lock, PinPolicy, ReloadError, ReloadOptions,
    ReloadReport, ServerState, TrustPolicy,
};
use innkeeper_testkit::{Fixture, mcp_json};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::setup::{TestEnv, builder, drain_events, result_text, wait_for_event};

fn message_arguments(message: &str) -> Value {
    json!({"message": message})
}

/// Writes a configuration file with these servers.
fn write_config(test_env: &TestEnv, servers: impl IntoIterator<Item = Fixture>) -> PathBuf {
    let path = test_env.path("mcp.json");
    std::fs::write(&path, mcp_json(servers).to_string()).unwrap();
    path
}

/// Starts a host from the configuration file.
async fn start(test_env: &TestEnv, servers: impl IntoIterator<Item = Fixture>) -> Host {
    let path = write_config(test_env, servers);
    let config = Config::load(&[path], &Environment::from_process()).unwrap();
    builder(config).start().await.unwrap()
}

fn server_names(servers: &[Arc<str>]) -> Vec<&str> {
    servers.iter().map(|name| &**name).collect()
}

fn server_change(server: &str, keys: &[&'static str], pending: &[&'static str]) -> ServerChange {
    ServerChange { server: server.into(), keys: keys.into(), pending: pending.into() }
}

async fn reload_and_apply(host: &Host) -> ReloadReport {
    let options = ReloadOptions { apply_changes: true, ..ReloadOptions::default() };
    host.reload_with(options).await.unwrap()
}

#[cfg(unix)]
#[tokio::test]
async fn a_reload_that_applies_changes_starts_a_server_whose_program_is_there_now() {
    let test_env = TestEnv::new();
    let program = test_env.path("late");
    let mut entry = test_env.fixture("one").config_entry();
    let fixture = entry["command"].as_str().unwrap().to_owned();
    entry["command"] = program.to_str().unwrap().into();
    entry["required"] = false.into();
    let path = test_env.path("mcp.json");
    std::fs::write(&path, json!({"servers": {"one": entry}}).to_string()).unwrap();
    let config = Config::load(&[path], &Environment::from_process()).unwrap();
    let host = builder(config).start().await.unwrap();
    assert_eq!(reload_and_apply(&host).await.failed.len(), 1);
    std::os::unix::fs::symlink(fixture, program).unwrap();
    host.reload().await.unwrap();
    assert_eq!(host.status()["one"].state, ServerState::Unavailable);
    assert!(reload_and_apply(&host).await.failed.is_empty());
    assert_eq!(host.status()["one"].state, ServerState::Ready);
    host.shutdown().await;
}

/// Proves: FR1.6, N9
#[tokio::test]
async fn an_added_server_starts_a_removed_one_stops_a_changed_one_waits_and_the_rest_goes_on() {
    let test_env = TestEnv::new();
    let host =
        start(&test_env, ["same", "old", "changed"].map(|name| test_env.fixture(name))).await;
    let mut events = host.events();
    let before = host.status();
    let changed = test_env.fixture("changed").env("LEVEL", "2").config_key("timeout", 3);
    write_config(&test_env, [test_env.fixture("new"), changed, test_env.fixture("same")]);

    let report = host.reload().await.unwrap();
    assert_eq!(
        (server_names(&report.added), server_names(&report.removed)),
        (vec!["new"], vec!["old"])
    );
    assert_eq!(report.changed, [server_change("changed", &["timeout", "env"], &["env"])]);
    assert!(report.failed.is_empty() && report.host_keys.is_empty(), "{report:?}");
    let status = host.status();
    assert_eq!(status.keys().map(|name| &**name).collect::<Vec<_>>(), ["new", "changed", "same"]);
    for server in ["same", "changed"] {
        assert_eq!(status[server].pid, before[server].pid, "{server}");
        assert_eq!(
            test_env.journal().for_server(server).pids().len(),
            1,
            "{server} was started once"
        );
        host.call_tool(&format!("{server}.echo"), message_arguments("on")).await.unwrap();
    }
    assert_eq!(status["changed"].pending_restart, ["env"]);
    assert_eq!(
        result_text(&host.call_tool("new.echo", message_arguments("hi")).await.unwrap()),
        "hi"
    );
    let error = host.call_tool("old.echo", message_arguments("hi")).await.unwrap_err();
    assert!(matches!(error, CallError::Routing(RoutingError::UnknownServer { .. })), "{error}");
    assert_eq!(
        test_env.journal().for_server("old").events("stdin_eof").len(),
        1,
        "it left by itself"
    );
    let reloaded = drain_events(&mut events).into_iter().find_map(|event| match event {
        HostEvent::Reloaded { added, removed, changed } => Some([added, removed, changed]),
        _ => None,
    });
    let reloaded = reloaded.unwrap();
    assert_eq!(reloaded.each_ref().map(|told| server_names(told)), [["new"], ["old"], ["changed"]]);

    host.restart_server("changed").await.unwrap();
    assert_ne!(host.status()["changed"].pid, before["changed"].pid);
    assert_eq!(host.status()["changed"].pending_restart, [""; 0]);
    assert!(host.reload().await.unwrap().is_empty());
    assert!(host.shutdown().await.is_clean());
    test_env.assert_gone().await;
}

/// Proves: FR1.6
#[tokio::test]
async fn calls_in_flight_to_servers_that_stay_are_not_touched_by_a_reload() {
    let test_env = TestEnv::new();
    let slow = |name: &str| test_env.fixture(name).config_key("maxConcurrent", 200);
    let host = start(&test_env, [slow("same"), slow("changed"), test_env.fixture("old")]).await;
    let mut calls = JoinSet::new();
    for number in 0..200 {
        let (host, server) = (host.clone(), ["same", "changed"][number % 2]);
        let tool = format!("{server}.sleep");
        calls.spawn(async move { host.call_tool(&tool, json!({"ms": 2_000})).await });
    }
    test_env.wait_for_journal(|journal| journal.count("tools/call") == 200).await;
    write_config(
        &test_env,
        [slow("same"), slow("changed").env("LEVEL", "2"), test_env.fixture("new")],
    );
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
    test_env.assert_gone().await;
}

/// Proves: FR1.6
#[tokio::test]
async fn a_call_under_way_to_a_removed_server_may_finish_and_one_that_needs_longer_fails() {
    let test_env = TestEnv::new();
    let host = start(&test_env, [test_env.fixture("old"), test_env.fixture("same")]).await;
    for (ms, finishes) in [(400, true), (60_000, false)] {
        write_config(&test_env, [test_env.fixture("old"), test_env.fixture("same")]);
        host.reload().await.unwrap();
        let earlier = test_env.journal().count("tools/call");
        let reload = async {
            test_env.wait_for_journal(|journal| journal.count("tools/call") > earlier).await;
            write_config(&test_env, [test_env.fixture("same")]);
            host.reload().await.unwrap();
        };
        let (result, ()) = tokio::join!(host.call_tool("old.sleep", json!({"ms": ms})), reload);
        assert_eq!(result.is_ok(), finishes, "{result:?}");
        assert_eq!(host.status().len(), 1);
    }
    assert!(host.shutdown().await.is_clean());
    test_env.assert_gone().await;
}

/// Replaces a server that stops slowly, and returns the servers in the order of stop and start.
async fn replacement_order(added: impl FnOnce(Fixture) -> Fixture) -> Vec<String> {
    let test_env = TestEnv::new();
    let stuck = test_env.fixture("stuck").switch("--ignore-eof").switch("--ignore-sigterm");
    let stuck = stuck.config_key("shutdownTimeout", 3);
    let host = start(&test_env, [stuck.clone()]).await;
    let mut events = host.events();
    let file = json!({"servers": {"new": added(stuck).config_entry()}});
    std::fs::write(test_env.path("mcp.json"), file.to_string()).unwrap();
    host.reload().await.unwrap();
    let order = drain_events(&mut events).into_iter().filter_map(|event| match event {
        HostEvent::Ready { server, .. } | HostEvent::Stopped { server } => Some(server.to_string()),
        _ => None,
    });
    let order = order.collect();
    host.kill();
    host.shutdown().await;
    test_env.assert_gone().await;
    order
}

#[tokio::test]
async fn a_removed_server_that_stops_slowly_delays_no_added_one() {
    let order = replacement_order(|server| server.switch("--notes")).await;
    assert_eq!(order, ["new", "stuck"]);
}

#[tokio::test]
async fn a_server_with_another_name_starts_when_the_old_one_has_ended() {
    let order = replacement_order(|server| server).await;
    assert_eq!(order, ["stuck", "new"], "both may need the same file or port");
}

#[tokio::test]
async fn settings_that_need_no_start_are_in_effect_at_once() {
    let test_env = TestEnv::new();
    let host = start(&test_env, [test_env.fixture("one")]).await;
    let pid = host.status()["one"].pid;
    write_config(
        &test_env,
        [test_env
            .fixture("one")
            .config_key("tools", json!({"deny": ["add"]}))
            .config_key("timeout", 0.2)],
    );
    let report = host.reload().await.unwrap();
    assert_eq!(report.changed, [server_change("one", &["timeout", "tools"], &[])]);
    let tools: Vec<_> = host.catalog().tool_names().map(str::to_owned).collect();
    assert!(tools.contains(&"one.echo".to_owned()) && !tools.contains(&"one.add".to_owned()));
    let error = host.call_tool("one.sleep", json!({"ms": 60_000})).await.unwrap_err();
    assert!(matches!(error, CallError::Timeout { .. }), "{error}");
    assert_eq!(host.status()["one"].pid, pid);
    host.shutdown().await;
}

/// Proves: FR1.6
#[tokio::test]
async fn a_file_that_cannot_be_used_changes_nothing_and_all_its_problems_are_reported() {
    let test_env = TestEnv::new();
    let host = start(&test_env, [test_env.fixture("one")]).await;
    let (before, mut events) = (host.status()["one"].pid, host.events());
    let invalid =
        r#"{"servers": {"two": {"command": 1}, "three": {"command": "x", "timeout": -1}}}"#;
    let missing = r#"{"servers": {"two": {"command": "there-is-no-such-program"}}}"#;
    for (text, problems) in [(invalid, 2), (missing, 1), ("{", 1)] {
        std::fs::write(test_env.path("mcp.json"), text).unwrap();
        let error = host.reload().await.unwrap_err();
        let ReloadError::Config(error) = error else { panic!("{error}") };
        assert_eq!(error.errors().count(), problems, "{error}");
        let reload_failed =
            wait_for_event(&mut events, |event| matches!(event, HostEvent::ReloadFailed { .. }));
        let HostEvent::ReloadFailed { diagnostics } = reload_failed.await else { unreachable!() };
        assert_eq!(diagnostics, error.0);
        assert_eq!(host.status()["one"].pid, before);
        host.call_tool("one.echo", message_arguments("on")).await.unwrap();
    }
    write_config(&test_env, [test_env.fixture("one"), test_env.fixture("two")]);
    assert_eq!(server_names(&host.reload().await.unwrap().added), ["two"]);
    assert!(host.shutdown().await.is_clean());
    assert!(matches!(host.reload().await, Err(ReloadError::Shutdown)));
    test_env.assert_gone().await;
}

/// Proves: FR1.6
#[tokio::test]
async fn added_servers_wait_for_those_they_depend_on_and_one_that_fails_is_its_own_problem() {
    let test_env = TestEnv::new();
    let host = start(&test_env, [test_env.fixture("base")]).await;
    let after =
        |name: &str, needs: &str| test_env.fixture(name).config_key("dependencies", json!([needs]));
    let bad = test_env.fixture("bad").switch("--hang-init").config_key("initTimeout", 0.3);
    let slow = after("slow", "base").with("--init-delay", 200);
    write_config(
        &test_env,
        [after("last", "slow"), after("lost", "bad"), slow, bad, test_env.fixture("base")],
    );
    let report = host.reload().await.unwrap();
    assert_eq!(server_names(&report.added), ["last", "lost", "slow", "bad"]);
    let failed = report.failed.iter().map(|failure| (&*failure.server, failure.phase));
    let failed: Vec<_> = failed.collect();
    assert_eq!(failed, [("lost", StartPhase::Dependencies), ("bad", StartPhase::Handshake)]);
    let states = host.status().into_iter().map(|(_, status)| status.state);
    let (ready, unavailable) = (ServerState::Ready, ServerState::Unavailable);
    assert_eq!(states.collect::<Vec<_>>(), [ready, unavailable, ready, unavailable, ready]);
    let journal = test_env.journal();
    let mut order: Vec<_> = journal.entries.iter().map(|entry| &*entry.server).collect();
    order.dedup();
    let index_of = |name: &str| order.iter().position(|other| *other == name).unwrap();
    assert!(index_of("slow") < index_of("last"), "{order:?}");
    assert!(test_env.journal().for_server("lost").pids().is_empty());
    host.shutdown().await;
    test_env.assert_gone().await;
}

/// Proves: FR1.6, N9
#[tokio::test]
async fn changes_can_be_applied_at_once_and_only_changed_servers_are_started_again() {
    let test_env = TestEnv::new();
    let host = start(
        &test_env,
        [test_env.fixture("one"), test_env.fixture("two"), test_env.fixture("three")],
    )
    .await;
    let before = host.status();
    let louder = |name: &str| test_env.fixture(name).env("LEVEL", "2");
    write_config(&test_env, [louder("one"), test_env.fixture("two"), test_env.fixture("three")]);
    host.reload().await.unwrap();
    let hanging = louder("three").switch("--hang-init").config_key("initTimeout", 0.3);
    write_config(&test_env, [louder("one"), test_env.fixture("two"), hanging]);
    let report = reload_and_apply(&host).await;
    assert_eq!(report.failed.len(), 1, "{report:?}");
    let status = host.status();
    assert_ne!(status["one"].pid, before["one"].pid);
    assert_eq!(status["two"].pid, before["two"].pid);
    assert_eq!(status["three"].state, ServerState::Unavailable);
    assert!(status.values().all(|status| status.pending_restart.is_empty()));
    assert_eq!(test_env.journal().for_server("one").pids().len(), 2);
    write_config(&test_env, [louder("one"), test_env.fixture("two"), test_env.fixture("three")]);
    assert!(reload_and_apply(&host).await.failed.is_empty());
    assert_eq!(host.status()["three"].state, ServerState::Ready);
    host.shutdown().await;
    test_env.assert_gone().await;
}

#[tokio::test]
async fn a_change_that_is_taken_back_waits_no_more() {
    let test_env = TestEnv::new();
    let host = start(&test_env, [test_env.fixture("one")]).await;
    for (server, pending) in
        [(test_env.fixture("one").env("A", "1"), true), (test_env.fixture("one"), false)]
    {
        write_config(&test_env, [server]);
        host.reload().await.unwrap();
        assert_eq!(!host.status()["one"].pending_restart.is_empty(), pending);
    }
    host.shutdown().await;
}

#[tokio::test]
async fn a_configuration_without_files_is_replaced_by_a_given_one() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one")]).await.unwrap();
    assert!(matches!(host.reload().await, Err(ReloadError::NoFiles)));
    let mut file = mcp_json([test_env.fixture("two")]);
    file["host"] = json!({"allowBareNames": true, "timeout": 9});
    let config = Some(test_env.config_from(&file));
    let options = ReloadOptions { config, ..ReloadOptions::default() };
    let report = host.reload_with(options).await.unwrap();
    assert_eq!(
        (server_names(&report.added), server_names(&report.removed)),
        (vec!["two"], vec!["one"])
    );
    assert_eq!(report.host_keys, ["allowBareNames"]);
    assert!(host.call_tool("echo", message_arguments("hi")).await.is_err());
    assert!(host.shutdown().await.is_clean());
    test_env.assert_gone().await;
}

/// Attack: files | the file of a running host gets another server and another command | a reload with
/// a decision about launches starts neither | Approval first
#[tokio::test]
async fn a_reload_starts_only_the_launches_that_the_decision_allows() {
    let test_env = TestEnv::new();
    let host = start(&test_env, [test_env.fixture("one")]).await;
    let before = host.status()["one"].pid;
    let one = test_env.fixture("one").switch("--no-prompts").config_key("timeout", 3);
    write_config(&test_env, [one, test_env.fixture("two"), test_env.fixture("three")]);
    let trust = TrustPolicy::from_fn(|launch| launch.name == "three");
    let options = ReloadOptions { apply_changes: true, trust: Some(trust), config: None };
    let report = host.reload_with(options).await.unwrap();
    assert_eq!(server_names(&report.added), ["three"]);
    assert_eq!(server_names(&report.not_trusted), ["one", "two"]);
    let status = host.status();
    assert_eq!(status["one"].pid, before);
    assert!(!status.contains_key("two"));
    host.shutdown().await;
    test_env.assert_gone().await;
}

#[tokio::test]
async fn the_servers_of_a_resource_list_it_or_have_a_template_for_it() {
    let test_env = TestEnv::new();
    let host = test_env.start(["one", "two"].map(|name| test_env.fixture(name))).await.unwrap();
    let catalog = host.catalog();
    assert_eq!(catalog.resource_servers("fx://shared"), ["one", "two"]);
    assert_eq!(catalog.resource_servers("fx://two/static"), ["two"]);
    assert_eq!(catalog.resource_servers("fx://one/item/7"), ["one"]);
    assert!(catalog.resource_servers("fx://nobody").is_empty());
    host.shutdown().await;
}

/// Proves: FR1.6
#[tokio::test]
async fn a_server_that_is_removed_while_it_is_started_again_is_not_left_behind() {
    let test_env = TestEnv::new();
    let host = start(&test_env, [test_env.fixture("one").with("--start-delay", 600)]).await;
    let mut events = host.events();
    let reload = async {
        wait_for_event(&mut events, |event| matches!(event, HostEvent::Launching { .. })).await;
        write_config(&test_env, [test_env.fixture("two")]);
        host.reload().await.unwrap()
    };
    let (restart, report) = tokio::join!(host.restart_server("one"), reload);
    assert_eq!(restart.unwrap_err().to_string(), "no server `one`");
    assert_eq!(server_names(&report.removed), ["one"]);
    assert!(test_env.journal().for_server("two").pids().len() == 1);
    assert!(host.shutdown().await.is_clean());
    test_env.assert_gone().await;
}

#[tokio::test]
async fn a_host_that_is_shut_down_or_dropped_during_a_reload_leaves_nothing_behind() {
    for dropped in [false, true] {
        let test_env = TestEnv::new();
        let host = start(&test_env, [test_env.fixture("one").with("--exit-delay", 300)]).await;
        let slow = test_env.fixture("two").with("--start-delay", 400);
        write_config(
            &test_env,
            [slow.clone(), test_env.fixture("three").with("--start-delay", 400)],
        );
        let mut events = host.events();
        let shutdown = async {
            wait_for_event(&mut events, |event| matches!(event, HostEvent::Launching { .. })).await;
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
        test_env.assert_gone().await;
    }
}

#[tokio::test]
async fn pins_hold_for_servers_that_are_added() {
    let test_env = TestEnv::new();
    let path = write_config(&test_env, [test_env.fixture("one")]);
    let config = Config::load(&[path], &Environment::from_process()).unwrap();
    let host = builder(config).pins(Lock::default(), PinPolicy::Report).start().await.unwrap();
    let mut events = host.events();
    write_config(&test_env, [test_env.fixture("one"), test_env.fixture("two")]);
    host.reload().await.unwrap();
    let is_mismatch = |event: &HostEvent| matches!(event, HostEvent::PinMismatch { server, .. } if &**server == "two");
    wait_for_event(&mut events, is_mismatch).await;
    host.shutdown().await;
}
