//! Start and stop order: dependencies first, independent servers in parallel, within one timeout.

use std::time::Duration;

use innkeeper_host::error::StartPhase;
use innkeeper_host::{HostEvent, StartError};
use innkeeper_testkit::{Fixture, Journal, JournalEntry};
use serde_json::json;
use tokio::time::Instant;

use crate::setup::{TestEnv, builder, drain_events};

/// A server with dependencies.
fn fixture_depending_on(test_env: &TestEnv, name: &str, dependencies: &[&str]) -> Fixture {
    test_env.fixture(name).config_key("dependencies", json!(dependencies))
}

/// Returns the position of the first matching journal entry of a server.
fn entry_index(journal: &Journal, server: &str, matches: impl Fn(&JournalEntry) -> bool) -> usize {
    let index = journal.entries.iter().position(|entry| entry.server == server && matches(entry));
    index.unwrap_or_else(|| panic!("no such line of {server}: {journal:#?}"))
}

fn has_event(name: &str) -> impl Fn(&JournalEntry) -> bool + '_ {
    move |entry| entry.event == name
}

fn has_method(name: &str) -> impl Fn(&JournalEntry) -> bool + '_ {
    move |entry| entry.method() == Some(name)
}

/// Proves: FR10.3, N30
#[tokio::test]
async fn servers_start_after_those_they_depend_on_and_in_the_same_order_every_time() {
    let mut orders = Vec::new();
    for _ in 0..3 {
        let test_env = TestEnv::new();
        // A diamond with a tail, with the last server first in the file.
        let servers = [
            fixture_depending_on(&test_env, "tail", &["join"]),
            fixture_depending_on(&test_env, "join", &["left", "right"]),
            fixture_depending_on(&test_env, "right", &["root"]),
            fixture_depending_on(&test_env, "left", &["root"]),
            test_env.fixture("root"),
        ];
        let config = test_env.config(servers);
        assert_eq!(config.waves(), [&["root"][..], &["right", "left"], &["join"], &["tail"]]);
        let host = builder(config);
        let mut events = host.events();
        let host = host.start().await.unwrap();
        let journal = test_env.journal();
        for (before, then) in [
            ("root", "left"),
            ("root", "right"),
            ("left", "join"),
            ("right", "join"),
            ("join", "tail"),
        ] {
            let (before, then) = (journal.for_server(before), journal.for_server(then));
            let initialized = before.received("notifications/initialized")[0].ts_ms;
            assert!(initialized <= then.events("start")[0].ts_ms, "{journal:#?}");
        }
        let launched: Vec<String> = drain_events(&mut events)
            .into_iter()
            .filter_map(|event| match event {
                HostEvent::Launching { server, .. } => Some((*server).to_owned()),
                _ => None,
            })
            .collect();
        orders.push(launched);
        host.shutdown().await;
    }
    assert_eq!(orders[0], ["root", "right", "left", "join", "tail"]);
    assert!(orders.iter().all(|order| *order == orders[0]), "{orders:?}");
}

/// Proves: FR10.5
#[tokio::test]
async fn a_dependent_starts_when_its_dependency_is_ready_and_stops_before_it() {
    let test_env = TestEnv::new();
    let servers = [
        fixture_depending_on(&test_env, "last", &["middle"]),
        fixture_depending_on(&test_env, "middle", &["first"]),
        test_env.fixture("first").with("--list-delay", 50),
    ];
    let host = builder(test_env.config(servers));
    let mut events = host.events();
    let host = host.start().await.unwrap();
    let steps: Vec<String> = drain_events(&mut events)
        .into_iter()
        .filter_map(|event| match event {
            HostEvent::Launching { server, .. } => Some(format!("{server} launched")),
            HostEvent::Ready { server, .. } => Some(format!("{server} ready")),
            _ => None,
        })
        .collect();
    assert_eq!(
        steps,
        [
            "first launched",
            "first ready",
            "middle launched",
            "middle ready",
            "last launched",
            "last ready",
        ]
    );
    assert!(host.shutdown().await.is_clean());
    let journal = test_env.journal();
    for (before, then) in [("first", "middle"), ("middle", "last")] {
        let listed_at = entry_index(&journal, before, has_method("tools/list"));
        assert!(listed_at < entry_index(&journal, then, has_event("start")), "{journal:#?}");
        let ended = entry_index(&journal, then, has_event("exit"));
        assert!(ended < entry_index(&journal, before, has_event("stdin_eof")), "{journal:#?}");
    }
    test_env.assert_gone().await;
}

/// Proves: FR10.4, TR9.2, TR4.7
#[tokio::test]
async fn five_servers_that_take_half_a_second_each_start_in_less_than_one() {
    let test_env = TestEnv::new();
    let names = ["a", "b", "c", "d", "e"];
    let servers = names.map(|name| test_env.fixture(name).with("--init-delay", 500));
    let started_at = Instant::now();
    let host = test_env.start(servers).await.unwrap();
    let elapsed = started_at.elapsed();
    let journal = test_env.journal();
    let last_start = journal.events("start").iter().map(|entry| entry.ts_ms).max().unwrap();
    let initialized = journal.received("notifications/initialized");
    assert!(initialized.iter().all(|entry| entry.ts_ms > last_start), "{journal:#?}");
    assert!(elapsed < Duration::from_secs(1), "{elapsed:?}");
    host.shutdown().await;
}

/// Proves: TR9.3
#[tokio::test]
async fn a_chain_of_slow_servers_fails_at_the_limit_for_all_together() {
    let test_env = TestEnv::new();
    let slow = |name: &str, before: &[&str]| {
        fixture_depending_on(&test_env, name, before)
            .with("--init-delay", 600)
            .with("--stderr", "is slow")
    };
    let servers = [slow("a", &[]), slow("b", &["a"]), slow("c", &["b"]), test_env.fixture("d")];
    let config = test_env.config_with(&json!({"startTimeout": 1}), servers);
    assert_eq!(test_env.config([]).host.start_timeout, Duration::from_secs(60));
    let started_at = Instant::now();
    let error = builder(config).start().await.unwrap_err();
    let elapsed = started_at.elapsed();
    assert!(
        elapsed >= Duration::from_secs(1) && elapsed < Duration::from_millis(1900),
        "{elapsed:?}"
    );
    let StartError::Servers(failures) = error else { panic!("{error:?}") };
    let phases: Vec<_> = failures
        .iter()
        .map(|failure| (&*failure.server, failure.phase, failure.attempts, &*failure.stderr))
        .collect();
    assert_eq!(
        phases,
        [("b", StartPhase::Handshake, 1, "is slow"), ("c", StartPhase::Dependencies, 0, "")],
        "{failures:?}"
    );
    assert_eq!(
        failures[0].to_string(),
        "server `b` failed during the handshake: `startTimeout` (1 s) expired"
    );
    test_env.assert_gone().await;
}
