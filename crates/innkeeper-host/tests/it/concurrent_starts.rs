//! The number of servers that start at the same time (`host.concurrentStarts`).

use futures_util::future::join_all;
use innkeeper_host::{HostEvent, ReloadOptions, ServerState, StartSlots};
use innkeeper_testkit::Fixture;
use serde_json::json;
use tokio::sync::broadcast::Receiver;

use crate::setup::{TestEnv, builder, drain_events};

/// A server that needs 150 ms to start.
fn slow_fixture(test_env: &TestEnv, name: &str) -> Fixture {
    test_env.fixture(name).with("--init-delay", 150)
}

/// Returns the largest number of servers that were between their launch and their end of the start.
fn most_starting(events: impl IntoIterator<Item = HostEvent>) -> usize {
    let (mut starting, mut most) = (0_usize, 0);
    for event in events {
        match event {
            HostEvent::Launching { .. } => starting += 1,
            HostEvent::Ready { .. } | HostEvent::Unavailable { .. } => {
                starting = starting.saturating_sub(1);
            }
            _ => {}
        }
        most = most.max(starting);
    }
    most
}

fn most_starting_of(events: &mut Receiver<HostEvent>) -> usize {
    most_starting(drain_events(events))
}

/// Attack: processes | a configuration has hundreds of servers | a few of them start at a time, and the wait
/// counts for no timeout | No unbounded memory
#[tokio::test]
async fn servers_wait_for_a_slot_and_the_wait_counts_for_no_timeout() {
    let test_env = TestEnv::new();
    let servers = (0..8).map(|number| {
        slow_fixture(&test_env, &format!("s{number}")).config_key("initTimeout", 0.6)
    });
    // Each server needs less than these timeouts, and all of them one after the other more.
    let host = json!({ "concurrentStarts": 2, "startTimeout": 0.6 });
    let builder = builder(test_env.config_with(&host, servers));
    let mut events = builder.events();
    let host = builder.start().await.unwrap();
    assert!(host.status().values().all(|server| server.state == ServerState::Ready));
    assert_eq!(most_starting_of(&mut events), 2);
    host.shutdown().await;
}

#[tokio::test]
async fn a_server_that_waits_for_its_dependency_has_no_slot() {
    let test_env = TestEnv::new();
    let depending = |name: &str, on: &[&str]| {
        slow_fixture(&test_env, name).config_key("dependencies", json!(on))
    };
    // The last server is the first of the file.
    let servers = [
        depending("d", &["c", "b"]),
        depending("c", &["a"]),
        depending("b", &["a"]),
        slow_fixture(&test_env, "a"),
    ];
    let builder = builder(test_env.config_with(&json!({ "concurrentStarts": 1 }), servers));
    let mut events = builder.events();
    let host = builder.start().await.unwrap();
    assert_eq!(host.status()["d"].state, ServerState::Ready);
    assert_eq!(most_starting_of(&mut events), 1);
    host.shutdown().await;
}

#[tokio::test]
async fn a_failed_start_and_a_dropped_start_leave_their_slots_to_others() {
    let test_env = TestEnv::new();
    let hanging = |name: &str| test_env.fixture(name).switch("--hang-init");
    let failing = hanging("a").config_key("initTimeout", 0.2).config_key("required", false);
    let slots = StartSlots::new(1);
    let start = builder(test_env.config([hanging("b")])).start_slots(slots.clone()).start();
    let dropped = tokio::time::timeout(std::time::Duration::from_millis(200), start).await;
    assert!(dropped.is_err(), "the server hangs");
    let servers = [failing, test_env.fixture("c")];
    let host = builder(test_env.config(servers)).start_slots(slots).start().await.unwrap();
    assert_eq!(host.status()["a"].state, ServerState::Unavailable);
    assert_eq!(host.status()["c"].state, ServerState::Ready);
    host.shutdown().await;
}

#[tokio::test]
async fn restarts_and_reloads_take_slots_that_hosts_can_share() {
    let test_env = TestEnv::new();
    let slots = StartSlots::new(1);
    let first = test_env.config([slow_fixture(&test_env, "a"), slow_fixture(&test_env, "b")]);
    let first = builder(first).start_slots(slots.clone());
    let mut events = first.events();
    let second = builder(test_env.config([slow_fixture(&test_env, "c")])).start_slots(slots);
    let (first, second) = tokio::join!(first.start(), second.start());
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!(most_starting_of(&mut events), 1);
    let restarted = join_all(["a", "b"].map(|name| first.restart_server(name))).await;
    assert!(restarted.iter().all(Result::is_ok), "{restarted:?}");
    assert_eq!(most_starting_of(&mut events), 1);
    let added = ["a", "b", "x", "y"].map(|name| slow_fixture(&test_env, name));
    let config = Some(test_env.config(added));
    let reloaded = first.reload_with(ReloadOptions { config, ..ReloadOptions::default() }).await;
    assert_eq!(reloaded.unwrap().added.len(), 2);
    assert_eq!(most_starting_of(&mut events), 1);
    first.shutdown().await;
    second.shutdown().await;
}

#[tokio::test]
async fn a_host_can_leave_its_servers_stopped_until_one_is_restarted() {
    let test_env = TestEnv::new();
    let depending = test_env.fixture("b").config_key("dependencies", json!(["a"]));
    let config = test_env.config([test_env.fixture("a"), depending, test_env.fixture("c")]);
    let host = builder(config).leave_stopped().start().await.unwrap();
    test_env.assert_gone().await;
    assert!(host.status().values().all(|server| server.state == ServerState::Shutdown));
    let error = host.call_tool("b.echo", json!({"message": "x"})).await.unwrap_err();
    assert!(error.to_string().contains('b'), "{error}");
    host.restart_server("b").await.unwrap();
    host.call_tool("b.echo", json!({"message": "x"})).await.unwrap();
    let states = |host: &innkeeper_host::Host| {
        host.status().values().map(|server| server.state).collect::<Vec<_>>()
    };
    let expected = [ServerState::Shutdown, ServerState::Ready, ServerState::Shutdown];
    assert_eq!(states(&host), expected);
    assert!(host.shutdown().await.is_clean());
    test_env.assert_gone().await;
}
