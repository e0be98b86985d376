//! The stop of one server of a running host.

use std::time::Duration;

use innkeeper_host::error::UnavailableReason;
use innkeeper_host::{
    CallError, Host, HostEvent, ProcessTable, ReloadOptions, ServerState, StopError,
};
use innkeeper_testkit::tagged_processes;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::json;
use tokio::time::Instant;

use crate::setup::{TestEnv, drain_events, result_text, wait_for_event};

fn pid(host: &Host, server: &str) -> Option<Pid> {
    Pid::from_raw(host.status()[server].pid?.try_into().unwrap())
}

async fn echo(host: &Host, server: &str) -> Result<String, CallError> {
    let tool = format!("{server}.echo");
    host.call_tool(&tool, json!({"message": "hi"})).await.map(|result| result_text(&result))
}

/// Panics unless the server is stopped and its calls fail for this reason.
async fn assert_stopped(host: &Host, server: &str) {
    let status = host.status();
    assert_eq!((status[server].state, status[server].pid), (ServerState::Shutdown, None));
    assert_eq!(status[server].reason, None);
    let error = echo(host, server).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("server `{server}` is unavailable: the host stopped the server")
    );
    let CallError::Unavailable { reason, may_have_run: false, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(reason, UnavailableReason::Shutdown);
}

#[tokio::test]
async fn a_stopped_server_has_no_process_until_a_restart_and_its_dependents_run_on() {
    let test_env = TestEnv::new();
    let dependent = test_env.fixture("two").config_key("dependencies", json!(["one"]));
    let host = test_env.start([test_env.fixture("one"), dependent]).await.unwrap();
    let (first, other) = (pid(&host, "one").unwrap(), pid(&host, "two").unwrap());
    host.stop_server("one").await.unwrap();
    test_kill_process(first).unwrap_err();
    assert_stopped(&host, "one").await;
    assert!(host.catalog().server("one").is_none());
    echo(&host, "two").await.unwrap();
    assert_eq!(pid(&host, "two"), Some(other), "the dependent runs on");
    let journal = test_env.journal();
    assert_eq!(journal.for_server("one").events("stdin_eof").len(), 1, "it left by itself");
    host.restart_server("one").await.unwrap();
    assert_ne!(pid(&host, "one"), Some(first));
    assert_eq!(echo(&host, "one").await.unwrap(), "hi");
    host.stop_server("one").await.unwrap();
    let report = host.shutdown().await;
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(report.servers.len(), 2, "the stopped server is in the report");
    test_env.assert_gone().await;
}

#[tokio::test]
async fn a_server_is_stopped_by_its_name_while_the_host_runs() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one")]).await.unwrap();
    let error = host.stop_server("two").await.unwrap_err();
    assert_eq!(error.to_string(), "no server `two`");
    assert!(matches!(error, StopError::UnknownServer(name) if &*name == "two"));
    let mut events = host.events();
    host.stop_server("one").await.unwrap();
    host.stop_server("one").await.unwrap();
    let is_stop = |event: &&HostEvent| matches!(event, HostEvent::Stopped { .. });
    assert_eq!(drain_events(&mut events).iter().filter(is_stop).count(), 1);
    host.shutdown().await;
    assert!(matches!(host.stop_server("one").await, Err(StopError::Shutdown)));
    test_env.assert_gone().await;
}

#[tokio::test]
async fn a_call_in_flight_may_finish_before_the_stop_and_a_new_call_is_not_sent() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one").with("--slow", 300)]).await.unwrap();
    let stop = async {
        test_env.wait_for_journal(|journal| journal.count("tools/call") == 1).await;
        let late = async {
            while host.catalog().server("one").is_some() {
                tokio::task::yield_now().await;
            }
            echo(&host, "one").await
        };
        tokio::join!(host.stop_server("one"), late)
    };
    let (result, (stopped, late)) = tokio::join!(echo(&host, "one"), stop);
    assert_eq!(result.unwrap(), "hi");
    stopped.unwrap();
    assert!(matches!(late, Err(CallError::Unavailable { may_have_run: false, .. })), "{late:?}");
    assert_eq!(test_env.journal().count("tools/call"), 1);
    host.shutdown().await;
    test_env.assert_gone().await;
}

#[tokio::test]
async fn a_server_that_ignores_its_stop_is_killed_with_its_call_in_the_promised_time() {
    let test_env = TestEnv::new();
    let stubborn = test_env.fixture("one").switch("--ignore-eof").switch("--ignore-sigterm");
    let stubborn = stubborn.switch("--hang-calls").config_key("shutdownTimeout", 1);
    let host = test_env.start([stubborn, test_env.fixture("two")]).await.unwrap();
    let (other, started) = (pid(&host, "two"), Instant::now());
    let stop = async {
        test_env.wait_for_journal(|journal| journal.count("tools/call") == 1).await;
        host.stop_server("one").await
    };
    let (result, stopped) = tokio::join!(echo(&host, "one"), stop);
    stopped.unwrap();
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    assert!(matches!(result, Err(CallError::Unavailable { may_have_run: true, .. })), "{result:?}");
    assert_stopped(&host, "one").await;
    assert_eq!(pid(&host, "two"), other);
    assert!(tagged_processes(test_env.process_tag()).len() <= 2, "a shim and a server");
    host.shutdown().await;
    test_env.assert_gone().await;
}

#[tokio::test]
async fn no_restart_policy_and_no_reload_starts_a_stopped_server() {
    let test_env = TestEnv::new();
    let fixture =
        || test_env.fixture("one").config_key("restart", json!({"onFailure": {"max": 9}}));
    let host = test_env.start([fixture(), test_env.fixture("other")]).await.unwrap();
    let mut events = host.events();
    kill_process(pid(&host, "one").unwrap(), Signal::KILL).unwrap();
    let event =
        wait_for_event(&mut events, |event| matches!(event, HostEvent::Restarting { .. })).await;
    let HostEvent::Restarting { delay, .. } = event else { unreachable!() };
    host.stop_server("one").await.unwrap();
    assert_stopped(&host, "one").await;
    tokio::time::pause();
    tokio::time::advance(delay).await;
    tokio::time::resume();
    let changed = fixture().config_key("maxConcurrent", 3);
    let config = Some(test_env.config([changed, test_env.fixture("other")]));
    let options = ReloadOptions { config, apply_changes: true, ..ReloadOptions::default() };
    host.reload_with(options).await.unwrap();
    host.call_tool("other.sleep", json!({"ms": 200})).await.unwrap();
    assert_stopped(&host, "one").await;
    assert_eq!(host.status()["one"].pending_restart, ["maxConcurrent"]);
    assert_eq!(test_env.journal().for_server("one").pids().len(), 1);
    host.restart_server("one").await.unwrap();
    assert!(host.status()["one"].pending_restart.is_empty(), "the new settings apply");
    echo(&host, "one").await.unwrap();
    host.shutdown().await;
    test_env.assert_gone().await;
}

#[tokio::test]
async fn stops_and_restarts_at_once_run_one_after_the_other() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one")]).await.unwrap();
    for _ in 0..3 {
        let (stopped, restarted, again) = tokio::join!(
            host.stop_server("one"),
            host.restart_server("one"),
            host.stop_server("one")
        );
        stopped.unwrap();
        restarted.unwrap();
        again.unwrap();
        assert_stopped(&host, "one").await;
        assert!(tagged_processes(test_env.process_tag()).is_empty());
    }
    let (stopped, restarted) = tokio::join!(host.stop_server("one"), host.restart_server("one"));
    stopped.unwrap();
    restarted.unwrap();
    echo(&host, "one").await.unwrap();
    let without = Some(test_env.config([]));
    let options = ReloadOptions { config: without, ..ReloadOptions::default() };
    let (stopped, reloaded) = tokio::join!(host.stop_server("one"), host.reload_with(options));
    assert!(matches!(&stopped, Ok(()) | Err(StopError::UnknownServer(_))), "{stopped:?}");
    assert_eq!(reloaded.unwrap().removed, ["one".into()]);
    test_env.assert_gone().await;
    host.shutdown().await;
}

#[tokio::test]
async fn a_stop_beside_a_shutdown_leaves_nothing_behind() {
    let test_env = TestEnv::new();
    let slow = test_env.fixture("one").switch("--hang-calls");
    let host = test_env.start([slow, test_env.fixture("two")]).await.unwrap();
    let shutdown = async {
        test_env.wait_for_journal(|journal| journal.count("tools/call") == 1).await;
        tokio::join!(host.stop_server("one"), host.shutdown())
    };
    let (result, (stopped, report)) = tokio::join!(echo(&host, "one"), shutdown);
    result.unwrap_err();
    assert!(matches!(stopped, Err(StopError::Shutdown)), "{stopped:?}");
    assert_eq!(report.servers.len(), 2);
    assert_eq!(host.status()["one"].state, ServerState::Shutdown);
    test_env.assert_gone().await;
}

#[tokio::test]
async fn a_catalog_of_one_server_stays_complete_when_the_server_stops() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("a"), test_env.fixture("a.b")]).await.unwrap();
    let both = host.catalog();
    let only = both.only("a").unwrap();
    host.stop_server("a").await.unwrap();
    assert!(host.catalog().only("a").is_none());
    let of_server = |name: &str| name.starts_with("a.") && !name.starts_with("a.b.");
    let names: Vec<&str> = both.tool_names().filter(|name| of_server(name)).collect();
    // The name `a.a.b` belongs to `a`, and no name of `a.b` does.
    assert_eq!(only.tool_names().collect::<Vec<_>>(), names);
    assert_eq!(only.servers().map(|(name, _)| name).collect::<Vec<_>>(), ["a"]);
    let count = |catalog: &innkeeper_host::Catalog| {
        catalog.prompts().filter(|prompt| prompt.server == "a").count()
    };
    assert_eq!(count(&only), count(&both));
    host.shutdown().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_memory_of_a_server_includes_its_descendants() {
    let test_env = TestEnv::new();
    let alone = test_env.fixture("alone");
    let family = test_env.fixture("family").switch("--daemon").switch("--double-fork");
    let host = test_env.start([alone, family]).await.unwrap();
    let usage = host.process_usage(&ProcessTable::read().unwrap());
    let memory = |name: &str| usage[name].resident_bytes;
    assert!(memory("alone") > 1 << 20, "{usage:?}");
    assert!(memory("family") > 2 * memory("alone"), "{usage:?}");
    assert!(usage["family"].processes > usage["alone"].processes, "{usage:?}");
    host.stop_server("alone").await.unwrap();
    let usage = host.process_usage(&ProcessTable::read().unwrap());
    assert_eq!(usage.keys().map(|name| &**name).collect::<Vec<_>>(), ["family"]);
    host.shutdown().await;
}
