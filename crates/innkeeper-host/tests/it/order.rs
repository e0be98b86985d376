//! The order of starting and stopping: dependencies first, the rest side by side, within one limit.

use std::time::Duration;

use innkeeper_host::error::Phase;
use innkeeper_host::{Event, StartError};
use innkeeper_testkit::{Entry, Fixture, Journal};
use serde_json::json;
use tokio::time::Instant;

use crate::setup::{Scene, builder, told};

/// A server that depends on others.
fn after(scene: &Scene, name: &str, dependencies: &[&str]) -> Fixture {
    scene.fx(name).key("dependencies", json!(dependencies))
}

/// Where the first or last line with this event or method of a server stands in a journal.
fn place(journal: &Journal, server: &str, wanted: impl Fn(&Entry) -> bool) -> usize {
    let found = journal.entries.iter().position(|entry| entry.server == server && wanted(entry));
    found.unwrap_or_else(|| panic!("no such line of {server}: {journal:#?}"))
}

fn event(name: &str) -> impl Fn(&Entry) -> bool + '_ {
    move |entry| entry.event == name
}

fn method(name: &str) -> impl Fn(&Entry) -> bool + '_ {
    move |entry| entry.method() == Some(name)
}

/// Proves: FR10.3, N30
#[tokio::test]
async fn servers_start_after_those_they_depend_on_and_in_the_same_order_every_time() {
    let mut orders = Vec::new();
    for _ in 0..3 {
        let scene = Scene::new();
        // A diamond with a tail, the last of it written first.
        let servers = [
            after(&scene, "tail", &["join"]),
            after(&scene, "join", &["left", "right"]),
            after(&scene, "right", &["root"]),
            after(&scene, "left", &["root"]),
            scene.fx("root"),
        ];
        let config = scene.config(servers);
        assert_eq!(config.waves(), [&["root"][..], &["right", "left"], &["join"], &["tail"]]);
        let host = builder(config);
        let mut events = host.events();
        let host = host.start().await.unwrap();
        let journal = scene.journal();
        for (before, then) in [
            ("root", "left"),
            ("root", "right"),
            ("left", "join"),
            ("right", "join"),
            ("join", "tail"),
        ] {
            let (before, then) = (journal.of(before), journal.of(then));
            let initialized = before.received("notifications/initialized")[0].ts_ms;
            assert!(initialized <= then.events("start")[0].ts_ms, "{journal:#?}");
        }
        let launched: Vec<String> = told(&mut events)
            .into_iter()
            .filter_map(|event| match event {
                Event::Launching { server, .. } => Some((*server).to_owned()),
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
    let scene = Scene::new();
    let servers = [
        after(&scene, "last", &["middle"]),
        after(&scene, "middle", &["first"]),
        scene.fx("first").with("--list-delay", 50),
    ];
    let host = builder(scene.config(servers));
    let mut events = host.events();
    let host = host.start().await.unwrap();
    let steps: Vec<String> = told(&mut events)
        .into_iter()
        .filter_map(|event| match event {
            Event::Launching { server, .. } => Some(format!("{server} launched")),
            Event::Ready { server, .. } => Some(format!("{server} ready")),
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
    let journal = scene.journal();
    for (before, then) in [("first", "middle"), ("middle", "last")] {
        let listed = place(&journal, before, method("tools/list"));
        assert!(listed < place(&journal, then, event("start")), "{journal:#?}");
        let ended = place(&journal, then, event("exit"));
        assert!(ended < place(&journal, before, event("stdin_eof")), "{journal:#?}");
    }
    scene.assert_gone().await;
}

/// Proves: FR10.4, TR9.2, TR4.7
#[tokio::test]
async fn five_servers_that_take_half_a_second_each_start_in_less_than_one() {
    let scene = Scene::new();
    let names = ["a", "b", "c", "d", "e"];
    let servers = names.map(|name| scene.fx(name).with("--init-delay", 500));
    let began = Instant::now();
    let host = scene.start(servers).await.unwrap();
    let took = began.elapsed();
    let journal = scene.journal();
    let last_start = journal.events("start").iter().map(|entry| entry.ts_ms).max().unwrap();
    let initialized = journal.received("notifications/initialized");
    assert!(initialized.iter().all(|entry| entry.ts_ms > last_start), "{journal:#?}");
    assert!(took < Duration::from_secs(1), "{took:?}");
    host.shutdown().await;
}

/// Proves: TR9.3
#[tokio::test]
async fn a_chain_of_slow_servers_fails_at_the_limit_for_all_together() {
    let scene = Scene::new();
    let slow = |name: &str, before: &[&str]| {
        after(&scene, name, before).with("--init-delay", 600).with("--stderr", "is slow")
    };
    let servers = [slow("a", &[]), slow("b", &["a"]), slow("c", &["b"]), scene.fx("d")];
    let config = scene.config_with(&json!({"startTimeout": 1}), servers);
    assert_eq!(scene.config([]).host.start_timeout, Duration::from_secs(60));
    let began = Instant::now();
    let error = builder(config).start().await.unwrap_err();
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(1) && took < Duration::from_millis(1900), "{took:?}");
    let StartError::Servers(failures) = error else { panic!("{error:?}") };
    let seen: Vec<_> = failures
        .iter()
        .map(|failure| (&*failure.server, failure.phase, failure.attempts, &*failure.stderr))
        .collect();
    assert_eq!(
        seen,
        [("b", Phase::Handshake, 1, "is slow"), ("c", Phase::Dependencies, 0, "")],
        "{failures:?}"
    );
    assert_eq!(
        failures[0].to_string(),
        "server `b` failed during the handshake: the start limit of 1 s for all servers was over"
    );
    scene.assert_gone().await;
}
