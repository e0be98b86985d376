//! How long a call may take, who waits for whom, and that a server is told when nobody waits.

use std::time::Duration;

use innkeeper_host::event::CallOutcome;
use innkeeper_host::{CallError, CallKind, CallOptions, ErrorClass, Event, Host, Progress};
use innkeeper_testkit::Fixture;
use serde_json::{Map, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{cancelled, class, ids};
use crate::setup::{PATIENCE, Scene, builder, text, told};

fn within(timeout: Duration) -> CallOptions {
    CallOptions { timeout: Some(timeout), ..CallOptions::default() }
}

/// A server that stays although calls to it run out of time.
fn forgiving(scene: &Scene, name: &str) -> Fixture {
    scene.fx(name).key("unavailableAfterTimeouts", 1000)
}

/// The time a call that must run out of it was allowed; it took no less.
async fn allowed(host: &Host, tool: &str, options: CallOptions) -> Duration {
    let began = Instant::now();
    match host.call_tool_with(tool, json!({"message": ""}), options).await {
        Err(CallError::Timeout { after, .. }) => {
            let took = began.elapsed();
            assert!(took >= after && took < after + PATIENCE, "{after:?} took {took:?}");
            after
        }
        other => panic!("no time-out: {other:?}"),
    }
}

/// Proves: FR4.10
#[tokio::test]
async fn the_time_of_the_call_counts_before_the_servers_and_the_servers_before_the_hosts() {
    let scene = Scene::new();
    let servers = [
        forgiving(&scene, "own").switch("--hang-calls").key("timeout", 0.3),
        forgiving(&scene, "hosts").switch("--hang-calls"),
    ];
    let config = scene.config_with(&json!({"timeout": 0.4}), servers);
    let host = builder(config).start().await.unwrap();
    let millis = Duration::from_millis;
    let (by_call, by_server, by_host, above) = tokio::join!(
        allowed(&host, "own.echo", within(millis(100))),
        allowed(&host, "own.echo", CallOptions::default()),
        allowed(&host, "hosts.echo", CallOptions::default()),
        allowed(&host, "own.echo", within(millis(500))),
    );
    assert_eq!(
        [by_call, by_server, by_host, above],
        [millis(100), millis(300), millis(400), millis(500)]
    );
    host.shutdown().await;
}

/// Proves: FR4.10
#[tokio::test]
async fn prompts_and_resources_have_the_same_times() {
    let scene = Scene::new();
    let slow = scene.fx("slow").with("--stop-reading-after", 8).key("timeout", 0.2);
    let slow = slow.key("shutdownTimeout", 0.4).key("unavailableAfterTimeouts", 9);
    let host = scene.start([slow]).await.unwrap();
    // It reads the handshake and the lists, then nothing more.
    assert_eq!(scene.journal().entries.iter().filter(|entry| entry.event == "recv").count(), 7);
    host.call_tool("slow.echo", json!({"message": "the last it reads"})).await.unwrap();
    let none = Map::new();
    for options in [CallOptions::default(), within(Duration::from_millis(100))] {
        let after = options.timeout.unwrap_or(Duration::from_millis(200));
        for result in [
            host.get_prompt("slow.plain", &none, options.clone()).await,
            host.read_resource("fx://slow/static", None, options.clone()).await,
        ] {
            let error = result.unwrap_err();
            let CallError::Timeout { after: seen, .. } = error else { panic!("{error}") };
            assert_eq!(seen, after);
        }
    }
    host.shutdown().await;
}

#[tokio::test]
async fn a_time_too_long_to_count_and_one_of_nothing_are_times_like_any_other() {
    let scene = Scene::new();
    let host = scene.start([forgiving(&scene, "one")]).await.unwrap();
    let message = json!({"message": "for ever"});
    let result = host.call_tool_with("one.echo", message.clone(), within(Duration::MAX)).await;
    assert_eq!(text(&result.unwrap()), "for ever");
    let none = host.call_tool_with("one.sleep", json!({"ms": 1}), within(Duration::ZERO)).await;
    assert_eq!(class(none), ErrorClass::Timeout);
    assert_eq!(text(&host.call_tool("one.echo", message).await.unwrap()), "for ever");
    host.shutdown().await;
}

/// Proves: N21
#[tokio::test]
async fn a_call_that_runs_out_of_time_is_cancelled_at_the_server_by_its_id() {
    let scene = Scene::new();
    let host = scene.start([forgiving(&scene, "one")]).await.unwrap();
    let slow =
        host.call_tool_with("one.sleep", json!({"ms": 60_000}), within(Duration::from_millis(100)));
    let quick = async {
        for _ in 0..3 {
            host.call_tool("one.echo", json!({"message": ""})).await.unwrap();
        }
    };
    let (result, ()) = tokio::join!(slow, quick);
    assert_eq!(class(result), ErrorClass::Timeout);
    let journal = scene.journal_until(|journal| !cancelled(journal).is_empty()).await;
    let sleep = journal.received("tools/call")[0];
    assert_eq!(sleep.message["params"]["name"], "sleep");
    assert_eq!(cancelled(&journal), [sleep.message["id"].as_u64().unwrap()]);
    host.shutdown().await;
}

/// Proves: FR4.11
#[tokio::test]
async fn a_dropped_call_is_cancelled_at_the_server_and_its_late_answer_goes_to_nobody() {
    let scene = Scene::new();
    let host = scene.start([forgiving(&scene, "one").switch("--ignore-cancel")]).await.unwrap();
    {
        let call = host.call_tool("one.sleep", json!({"ms": 200}));
        tokio::pin!(call);
        let sent = scene.journal_until(|journal| journal.count("tools/call") == 1);
        tokio::select! {
            result = &mut call => panic!("answered before it was dropped: {result:?}"),
            _ = sent => {}
        }
        assert_eq!(host.status()["one"].in_flight, 1);
    }
    assert_eq!(host.status()["one"].in_flight, 0);
    let journal = scene.journal_until(|journal| !cancelled(journal).is_empty()).await;
    assert_eq!(cancelled(&journal), ids(&journal, "tools/call"));
    // Answered after the late answer, which the server sends all the same.
    let next = host.call_tool("one.sleep", json!({"ms": 300})).await.unwrap();
    assert_eq!(text(&next), "slept");
    let metrics = &host.metrics()["one"];
    assert_eq!((metrics.cancelled_count, metrics.success_count), (1, 1));
    host.shutdown().await;
}

#[tokio::test]
async fn one_permit_lets_one_call_through_and_waiting_for_it_is_part_of_the_time() {
    let scene = Scene::new();
    let one = forgiving(&scene, "one").switch("--hang-calls").key("maxConcurrent", 1);
    let host = scene.start([one]).await.unwrap();
    let holder = {
        let host = host.clone();
        #[expect(clippy::disallowed_methods, reason = "the test owns and aborts the task")]
        tokio::spawn(async move { host.call_tool("one.pid", ()).await.map(drop) })
    };
    scene.journal_until(|journal| journal.count("tools/call") == 1).await;
    let mut events = host.events();
    let waited = allowed(&host, "one.echo", within(Duration::from_millis(100))).await;
    assert_eq!(waited, Duration::from_millis(100));
    let dropped = tokio::time::timeout(Duration::from_millis(50), host.call_tool("one.pid", ()));
    dropped.await.expect_err("it waits for the permit");
    assert_eq!(scene.journal().count("tools/call"), 1, "only the holder's was sent");
    assert_eq!(cancelled(&scene.journal()), [0; 0]);
    let unsent: Vec<_> = told(&mut events)
        .into_iter()
        .map(|event| match event {
            Event::Called(record) => (record.id, record.outcome),
            other => panic!("{other:?}"),
        })
        .collect();
    let late = CallOutcome::Failed(CallKind::Timeout);
    assert_eq!(unsent, [(0, late), (0, CallOutcome::Cancelled)], "neither has an id");
    holder.abort();
    drop(holder.await);
    let next = host.call_tool_with("one.pid", (), within(Duration::from_millis(200))).await;
    assert_eq!(class(next), ErrorClass::Timeout);
    scene.journal_until(|journal| cancelled(journal).len() == 2).await;
    assert_eq!(cancelled(&scene.journal()), ids(&scene.journal(), "tools/call"));
    host.shutdown().await;
}

#[tokio::test]
async fn one_permit_makes_calls_run_one_after_the_other() {
    let scene = Scene::new();
    // It answers in reverse what it has within 20 ms: two calls at once would be seen.
    let one = scene.fx("one").with("--out-of-order", 2).key("maxConcurrent", 1);
    let host = scene.start([one]).await.unwrap();
    let most = std::cell::Cell::new(0);
    let calls = async {
        let call = async || {
            for _ in 0..3 {
                host.call_tool("one.pid", ()).await.unwrap();
            }
        };
        tokio::join!(call(), call(), call());
    };
    let watch = async {
        loop {
            most.set(most.get().max(host.status()["one"].in_flight));
            tokio::task::yield_now().await;
        }
    };
    tokio::select! { () = calls => {}, () = watch => {} }
    assert_eq!(most.get(), 1);
    assert_eq!(host.metrics()["one"].success_count, 9);
    host.shutdown().await;
}

#[tokio::test]
async fn progress_comes_in_order_before_the_answer_and_a_deaf_listener_delays_nothing() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one").with("--progress", 50)]).await.unwrap();
    let (sender, mut receiver) = mpsc::channel(64);
    let options = CallOptions { progress: Some(sender), ..CallOptions::default() };
    let result = host.call_tool_with("one.echo", json!({"message": "done"}), options).await;
    assert_eq!(text(&result.unwrap()), "done");
    let mut steps = Vec::new();
    while let Ok(Progress { progress, total, .. }) = receiver.try_recv() {
        assert_eq!(total, Some(50.0));
        steps.push(progress);
    }
    assert_eq!(steps, (1..=50).map(f64::from).collect::<Vec<_>>());
    let sent = scene.journal();
    assert_eq!(sent.params("tools/call")[0]["_meta"]["progressToken"], ids(&sent, "tools/call")[0]);
    let (sender, receiver) = mpsc::channel(1);
    let options = CallOptions { progress: Some(sender), ..CallOptions::default() };
    let result = host.call_tool_with("one.echo", json!({"message": "deaf"}), options).await;
    assert_eq!(text(&result.unwrap()), "deaf");
    assert_eq!(receiver.len(), 1);
    host.shutdown().await;
}
