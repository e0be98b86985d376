//! Timeouts and cancellation of calls.

use std::time::Duration;

use innkeeper_host::event::CallOutcome;
use innkeeper_host::{
    CallError, CallErrorKind, CallOptions, ErrorClass, Host, HostEvent, Progress, ServerState,
};
use innkeeper_testkit::Fixture;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{cancelled_ids, error_class, request_ids};
use crate::setup::{TEST_TIMEOUT, TestEnv, builder, drain_events, result_text};

fn with_timeout(timeout: Duration) -> CallOptions {
    CallOptions { timeout: Some(timeout), ..CallOptions::default() }
}

/// A server that stays available after call timeouts.
fn tolerant_fixture(test_env: &TestEnv, name: &str) -> Fixture {
    test_env.fixture(name).config_key("unavailableAfterTimeouts", 1000)
}

/// Returns the timeout of a call that must time out, and checks that the call took at least that
/// long.
async fn allowed_time(host: &Host, tool: &str, options: CallOptions) -> Duration {
    let started_at = Instant::now();
    match host.call_tool_with(tool, json!({"message": ""}), options).await {
        Err(CallError::Timeout { timeout, .. }) => {
            let elapsed = started_at.elapsed();
            assert!(
                elapsed >= timeout && elapsed < timeout + TEST_TIMEOUT,
                "{timeout:?} took {elapsed:?}"
            );
            timeout
        }
        other => panic!("no time-out: {other:?}"),
    }
}

/// Proves: FR4.10
#[tokio::test]
async fn the_time_of_the_call_counts_before_the_servers_and_the_servers_before_the_hosts() {
    let test_env = TestEnv::new();
    let servers = [
        tolerant_fixture(&test_env, "own").switch("--hang-calls").config_key("timeout", 0.3),
        tolerant_fixture(&test_env, "hosts").switch("--hang-calls"),
    ];
    let config = test_env.config_with(&json!({"timeout": 0.4}), servers);
    let host = builder(config).start().await.unwrap();
    let millis = Duration::from_millis;
    let (by_call, by_server, by_host, above) = tokio::join!(
        allowed_time(&host, "own.echo", with_timeout(millis(100))),
        allowed_time(&host, "own.echo", CallOptions::default()),
        allowed_time(&host, "hosts.echo", CallOptions::default()),
        allowed_time(&host, "own.echo", with_timeout(millis(500))),
    );
    assert_eq!(
        [by_call, by_server, by_host, above],
        [millis(100), millis(300), millis(400), millis(500)]
    );
    host.shutdown().await;
}

/// Proves: FR4.10
#[tokio::test]
async fn the_time_of_the_call_counts_before_the_tools_and_the_tools_before_the_servers() {
    let test_env = TestEnv::new();
    let server = |name: &str, timeouts: Value| {
        let server = tolerant_fixture(&test_env, name).switch("--hang-calls");
        server.config_key("timeout", 0.3).config_key("tools", json!({"timeouts": timeouts}))
    };
    let own = server("own", json!({"add": 0.5, "e*": 0.2, "echo": 9}));
    let other = server("other", json!({"add": 0.5}));
    let host = test_env.start([own, other]).await.unwrap();
    let millis = Duration::from_millis;
    let (by_call, by_tool, by_server) = tokio::join!(
        allowed_time(&host, "own.echo", with_timeout(millis(100))),
        allowed_time(&host, "own.echo", CallOptions::default()),
        allowed_time(&host, "other.echo", CallOptions::default()),
    );
    assert_eq!([by_call, by_tool, by_server], [millis(100), millis(200), millis(300)]);
    host.shutdown().await;
}

/// Proves: FR4.10
#[tokio::test]
async fn prompts_and_resources_have_the_same_times() {
    let test_env = TestEnv::new();
    let slow = test_env.fixture("slow").with("--stop-reading-after", 8).config_key("timeout", 0.2);
    let slow = slow.config_key("shutdownTimeout", 0.4).config_key("unavailableAfterTimeouts", 9);
    let host = test_env.start([slow]).await.unwrap();
    // The server reads the handshake and the lists (7 messages) and nothing after them.
    assert_eq!(test_env.journal().entries.iter().filter(|entry| entry.event == "recv").count(), 7);
    host.call_tool("slow.echo", json!({"message": "the last it reads"})).await.unwrap();
    let none = Map::new();
    for options in [CallOptions::default(), with_timeout(Duration::from_millis(100))] {
        let after = options.timeout.unwrap_or(Duration::from_millis(200));
        for result in [
            host.get_prompt("slow.plain", &none, options.clone()).await,
            host.read_resource("fx://slow/static", None, options.clone()).await,
        ] {
            let error = result.unwrap_err();
            let CallError::Timeout { timeout: reported, .. } = error else { panic!("{error}") };
            assert_eq!(reported, after);
        }
    }
    host.shutdown().await;
}

/// Proves: N10
#[tokio::test]
async fn a_server_with_a_short_timeout_times_out_while_its_neighbour_with_the_default_responds() {
    let test_env = TestEnv::new();
    let servers = [test_env.fixture("short").config_key("timeout", 0.2), test_env.fixture("other")];
    let config = test_env.config(servers);
    let timeouts = ["short", "other"].map(|server| config.servers[server].calls.timeout);
    assert_eq!(timeouts, [Duration::from_millis(200), Duration::from_secs(30)]);
    let host = builder(config).start().await.unwrap();
    let sleep = |tool: &'static str| host.call_tool(tool, json!({"ms": 600}));
    let (short, other) = tokio::join!(sleep("short.sleep"), sleep("other.sleep"));
    let Err(CallError::Timeout { timeout, .. }) = short else { panic!("{short:?}") };
    assert_eq!(timeout, timeouts[0]);
    assert_eq!(result_text(&other.unwrap()), "slept");
    let states = ["short", "other"].map(|server| host.status()[server].state);
    assert_eq!(states, [ServerState::Unavailable, ServerState::Ready]);
    host.shutdown().await;
}

#[tokio::test]
async fn a_time_too_long_to_count_and_one_of_nothing_are_times_like_any_other() {
    let test_env = TestEnv::new();
    let host = test_env.start([tolerant_fixture(&test_env, "one")]).await.unwrap();
    let message = json!({"message": "for ever"});
    let result =
        host.call_tool_with("one.echo", message.clone(), with_timeout(Duration::MAX)).await;
    assert_eq!(result_text(&result.unwrap()), "for ever");
    let none =
        host.call_tool_with("one.sleep", json!({"ms": 60_000}), with_timeout(Duration::ZERO)).await;
    assert_eq!(error_class(none), ErrorClass::Timeout);
    assert_eq!(result_text(&host.call_tool("one.echo", message).await.unwrap()), "for ever");
    host.shutdown().await;
}

/// Proves: N21
#[tokio::test]
async fn a_call_that_runs_out_of_time_is_cancelled_at_the_server_by_its_id() {
    let test_env = TestEnv::new();
    let host = test_env.start([tolerant_fixture(&test_env, "one")]).await.unwrap();
    let slow = host.call_tool_with(
        "one.sleep",
        json!({"ms": 60_000}),
        with_timeout(Duration::from_millis(100)),
    );
    let quick = async {
        for _ in 0..3 {
            host.call_tool("one.echo", json!({"message": ""})).await.unwrap();
        }
    };
    let (result, ()) = tokio::join!(slow, quick);
    assert_eq!(error_class(result), ErrorClass::Timeout);
    let journal = test_env.wait_for_journal(|journal| !cancelled_ids(journal).is_empty()).await;
    let sleep = journal.received("tools/call")[0];
    assert_eq!(sleep.message["params"]["name"], "sleep");
    assert_eq!(cancelled_ids(&journal), [sleep.message["id"].as_u64().unwrap()]);
    host.shutdown().await;
}

/// Proves: FR4.11
#[tokio::test]
async fn a_dropped_call_is_cancelled_at_the_server_and_its_late_answer_goes_to_nobody() {
    let test_env = TestEnv::new();
    let host = test_env
        .start([tolerant_fixture(&test_env, "one").switch("--ignore-cancel")])
        .await
        .unwrap();
    {
        let call = host.call_tool("one.sleep", json!({"ms": 200}));
        tokio::pin!(call);
        let sent = test_env.wait_for_journal(|journal| journal.count("tools/call") == 1);
        tokio::select! {
            result = &mut call => panic!("answered before it was dropped: {result:?}"),
            _ = sent => {}
        }
        assert_eq!(host.status()["one"].in_flight, 1);
    }
    assert_eq!(host.status()["one"].in_flight, 0);
    let journal = test_env.wait_for_journal(|journal| !cancelled_ids(journal).is_empty()).await;
    assert_eq!(cancelled_ids(&journal), request_ids(&journal, "tools/call"));
    // The server sends the late response before the response to this call.
    let next = host.call_tool("one.sleep", json!({"ms": 300})).await.unwrap();
    assert_eq!(result_text(&next), "slept");
    let metrics = &host.metrics()["one"];
    assert_eq!((metrics.cancelled_count, metrics.success_count), (1, 1));
    host.shutdown().await;
}

#[tokio::test]
async fn one_permit_lets_one_call_through_and_waiting_for_it_is_part_of_the_time() {
    let test_env = TestEnv::new();
    let fixture =
        tolerant_fixture(&test_env, "one").switch("--hang-calls").config_key("maxConcurrent", 1);
    let host = test_env.start([fixture]).await.unwrap();
    let holder = {
        let host = host.clone();
        #[expect(clippy::disallowed_methods, reason = "the test owns and aborts the task")]
        tokio::spawn(async move { host.call_tool("one.pid", ()).await.map(drop) })
    };
    test_env.wait_for_journal(|journal| journal.count("tools/call") == 1).await;
    let mut events = host.events();
    let elapsed = allowed_time(&host, "one.echo", with_timeout(Duration::from_millis(100))).await;
    assert_eq!(elapsed, Duration::from_millis(100));
    let dropped = tokio::time::timeout(Duration::from_millis(50), host.call_tool("one.pid", ()));
    dropped.await.expect_err("it waits for the permit");
    assert_eq!(test_env.journal().count("tools/call"), 1, "only the holder's was sent");
    assert_eq!(cancelled_ids(&test_env.journal()), [0; 0]);
    let unsent: Vec<_> = drain_events(&mut events)
        .into_iter()
        .map(|event| match event {
            HostEvent::CallFinished(record) => (record.id, record.outcome),
            other => panic!("{other:?}"),
        })
        .collect();
    let timed_out = CallOutcome::Failed(CallErrorKind::Timeout);
    assert_eq!(unsent, [(0, timed_out), (0, CallOutcome::Cancelled)], "neither has an id");
    holder.abort();
    drop(holder.await);
    let next = host.call_tool_with("one.pid", (), with_timeout(Duration::from_millis(200))).await;
    assert_eq!(error_class(next), ErrorClass::Timeout);
    test_env.wait_for_journal(|journal| cancelled_ids(journal).len() == 2).await;
    assert_eq!(cancelled_ids(&test_env.journal()), request_ids(&test_env.journal(), "tools/call"));
    host.shutdown().await;
}

#[tokio::test]
async fn one_permit_makes_calls_run_one_after_the_other() {
    let test_env = TestEnv::new();
    // The fixture would respond in reverse order to two calls within 20 ms, so concurrent calls
    // would be visible.
    let fixture = test_env.fixture("one").with("--out-of-order", 2).config_key("maxConcurrent", 1);
    let host = test_env.start([fixture]).await.unwrap();
    let max = std::cell::Cell::new(0);
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
            max.set(max.get().max(host.status()["one"].in_flight));
            tokio::task::yield_now().await;
        }
    };
    tokio::select! { () = calls => {}, () = watch => {} }
    assert_eq!(max.get(), 1);
    assert_eq!(host.metrics()["one"].success_count, 9);
    host.shutdown().await;
}

#[tokio::test]
async fn progress_comes_in_order_before_the_answer_and_a_deaf_listener_delays_nothing() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one").with("--progress", 50)]).await.unwrap();
    let (sender, mut receiver) = mpsc::channel(64);
    let options = CallOptions { progress: Some(sender), ..CallOptions::default() };
    let result = host.call_tool_with("one.echo", json!({"message": "done"}), options).await;
    assert_eq!(result_text(&result.unwrap()), "done");
    let mut steps = Vec::new();
    while let Ok(Progress { progress, total, .. }) = receiver.try_recv() {
        assert_eq!(total, Some(50.0));
        steps.push(progress);
    }
    assert_eq!(steps, (1..=50).map(f64::from).collect::<Vec<_>>());
    let sent = test_env.journal();
    assert_eq!(
        sent.params("tools/call")[0]["_meta"]["progressToken"],
        request_ids(&sent, "tools/call")[0]
    );
    let (sender, receiver) = mpsc::channel(1);
    let options = CallOptions { progress: Some(sender), ..CallOptions::default() };
    let result = host.call_tool_with("one.echo", json!({"message": "deaf"}), options).await;
    assert_eq!(result_text(&result.unwrap()), "deaf");
    assert_eq!(receiver.len(), 1);
    host.shutdown().await;
}
