//! Events, metrics and status.

use innkeeper_host::event::{CallOutcome, CallRecord};
use innkeeper_host::{CallKind, Event, Host, Isolation, ServerState};
use serde_json::{Value, json};

use crate::setup::{Scene, builder, told, until_told};

fn calls(events: Vec<Event>) -> Vec<CallRecord> {
    let calls = events.into_iter().filter_map(|event| match event {
        Event::Called(record) => Some(record),
        _ => None,
    });
    calls.collect()
}

/// Proves: FR9.3, N24
#[tokio::test]
async fn three_results_and_an_error_are_four_requests_of_which_three_quarters_succeeded() {
    let scene = Scene::new();
    let servers = [scene.fx("one"), scene.fx("idle")];
    let host = scene.start(servers).await.unwrap();
    for _ in 0..3 {
        host.call_tool("one.sleep", json!({"ms": 20})).await.unwrap();
    }
    host.call_tool("one.fail", json!({})).await.unwrap();
    let metrics = host.metrics();
    let one = &metrics["one"];
    assert_eq!((one.request_count, one.success_count, one.error_count), (4, 3, 1));
    assert_eq!((one.success_rate, one.error_rate), (0.75, 0.25));
    assert!(one.avg_latency >= 15.0 && one.max_latency >= 20.0, "{one:?}");
    let idle = &metrics["idle"];
    assert_eq!((idle.request_count, idle.error_rate, idle.success_rate), (0, 0.0, 1.0));
    host.shutdown().await;
    assert_eq!(host.metrics()["one"], *one, "they outlive the servers");
}

/// Proves: FR9.6
#[tokio::test]
async fn metrics_are_told_for_every_server_under_their_names() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one"), scene.fx("two")]).await.unwrap();
    for _ in 0..20 {
        host.call_tool("two.pid", ()).await.unwrap();
    }
    let metrics = serde_json::to_value(host.metrics()).unwrap();
    let names: Vec<&String> = metrics.as_object().unwrap().keys().collect();
    assert_eq!(names, ["one", "two"]);
    let two = metrics["two"].as_object().unwrap();
    for key in [
        "request_count",
        "success_count",
        "error_count",
        "success_rate",
        "error_rate",
        "avg_latency",
        "min_latency",
        "max_latency",
        "p50_latency",
        "p95_latency",
        "p99_latency",
    ] {
        assert!(two.get(key).is_some_and(Value::is_number), "{key}: {two:?}");
    }
    let order = ["min_latency", "p50_latency", "p95_latency", "p99_latency", "max_latency"]
        .map(|key| two[key].as_f64().unwrap());
    assert!(order.is_sorted() && order[0] > 0.0, "{order:?}");
    let text = host.prometheus();
    for line in [
        r#"innkeeper_server_up{server="one"} 1"#,
        r#"innkeeper_calls_total{server="two",outcome="ok"} 20"#,
        r#"innkeeper_call_duration_seconds_bucket{server="two",le="+Inf"} 20"#,
    ] {
        assert!(text.lines().any(|told| told == line), "{line}: {text}");
    }
    host.shutdown().await;
}

#[tokio::test]
async fn every_way_a_call_ends_is_recorded_once_with_the_same_outcome_everywhere() {
    let scene = Scene::new();
    let one = scene.fx("one").with("--crash-after", 5).key("unavailableAfterTimeouts", 2);
    let host = scene.start([one]).await.unwrap();
    let mut events = host.events();
    host.call_tool("one.pid", ()).await.unwrap();
    host.call_tool("one.fail", ()).await.unwrap();
    let short = std::time::Duration::from_millis(50);
    let options = innkeeper_host::CallOptions { timeout: Some(short), ..Default::default() };
    host.call_tool_with("one.sleep", json!({"ms": 9_000}), options).await.unwrap_err();
    let dropped = host.call_tool("one.sleep", json!({"ms": 9_000}));
    tokio::time::timeout(short, dropped).await.unwrap_err();
    // Neither of these two is a request.
    host.call_tool("one.echo", json!({})).await.unwrap_err();
    host.call_tool("one.nothing", json!({})).await.unwrap_err();
    host.call_tool("one.pid", ()).await.unwrap_err();
    host.call_tool("one.pid", ()).await.unwrap_err();
    let records = calls(told(&mut events));
    let outcomes: Vec<CallOutcome> = records.iter().map(|record| record.outcome).collect();
    assert_eq!(
        outcomes,
        [
            CallOutcome::Ok,
            CallOutcome::ToolError,
            CallOutcome::Failed(CallKind::Timeout),
            CallOutcome::Cancelled,
            CallOutcome::Failed(CallKind::Unavailable),
        ]
    );
    let journal = scene.journal();
    let ids: Vec<u64> = journal
        .received("tools/call")
        .iter()
        .map(|entry| entry.message["id"].as_u64().unwrap())
        .collect();
    assert_eq!(records.iter().map(|record| record.id).collect::<Vec<_>>(), ids);
    for record in &records {
        assert_eq!((&*record.server, record.method), ("one", "tools/call"));
    }
    let one = &host.metrics()["one"];
    let counts = [one.request_count, one.success_count, one.error_count, one.tool_error_count];
    assert_eq!((counts, one.cancelled_count), ([5, 1, 3, 1], 1));
    host.shutdown().await;
}

#[tokio::test]
async fn events_tell_the_life_of_a_server_in_order() {
    let scene = Scene::new();
    let builder = builder(scene.config([scene.fx("one").with("--crash-after", 1)]));
    let mut events = builder.events();
    let host = builder.start().await.unwrap();
    let mut later = host.events();
    host.call_tool("one.pid", ()).await.unwrap_err();
    until_told(&mut later, |event| matches!(event, Event::Unavailable { .. })).await;
    host.shutdown().await;
    let words: Vec<String> = told(&mut events).iter().map(word).collect();
    let expected = ["launching 1", "handshake", "ready 9", "called", "unavailable", "stopped"];
    let mut sorted = words.clone();
    // The call may be told before or after its server is.
    if let Some(at) = sorted.iter().position(|word| word == "called") {
        let called = sorted.remove(at);
        sorted.insert(3, called);
    }
    assert_eq!(sorted, expected, "{words:?}");
}

fn word(event: &Event) -> String {
    match event {
        Event::Launching { attempt, .. } => format!("launching {attempt}"),
        Event::Installing { .. } => "installing".to_owned(),
        Event::Handshake { .. } => "handshake".to_owned(),
        Event::Retrying { .. } => "retrying".to_owned(),
        Event::Ready { tools, .. } => format!("ready {tools}"),
        Event::Unavailable { .. } => "unavailable".to_owned(),
        Event::Stopped { .. } => "stopped".to_owned(),
        Event::CatalogChanged { .. } => "changed".to_owned(),
        Event::Quarantined { .. } => "quarantined".to_owned(),
        Event::CallRetried { attempt, .. } => format!("call retried {attempt}"),
        Event::Doubtful { .. } => "doubtful".to_owned(),
        Event::Suspicious { .. } => "suspicious".to_owned(),
        Event::PinBroken { .. } => "pin broken".to_owned(),
        Event::LimitNotApplied { what, .. } => format!("{what} not applied"),
        Event::ResourceUpdated { .. } => "updated".to_owned(),
        Event::Message { .. } => "message".to_owned(),
        Event::Restarting { attempt, .. } => format!("restarting {attempt}"),
        Event::Reloaded { .. } => "reloaded".to_owned(),
        Event::ReloadFailed { .. } => "reload failed".to_owned(),
        Event::NotTrusted { .. } => "not trusted".to_owned(),
        Event::Called(_) => "called".to_owned(),
    }
}

/// Proves: TR5.2
#[tokio::test]
async fn the_status_of_a_server_has_its_process_state_requests_and_last_words() {
    let scene = Scene::new();
    let servers = [
        scene.fx("one").with("--stderr", "hello from \u{1b}[31mone"),
        scene.fx("gone").with("--crash-after", 1),
    ];
    let host: Host = scene.start(servers).await.unwrap();
    let journal = scene.journal();
    let waiting = host.call_tool("one.sleep", json!({"ms": 60_000}));
    tokio::pin!(waiting);
    tokio::select! {
        ended = &mut waiting => panic!("{ended:?}"),
        _ = scene.journal_until(|journal| journal.count("tools/call") == 1) => {}
    }
    let one = &host.status()["one"];
    assert_eq!((one.state, one.pid), (ServerState::Ready, Some(journal.of("one").pids()[0])));
    assert_eq!((one.in_flight, one.reason.as_deref()), (1, None));
    assert_eq!(one.isolation, Some(Isolation::Tree));
    assert_eq!(one.stderr, "hello from \\u{1b}[31mone");
    assert!(one.hidden.is_empty());
    host.call_tool("gone.pid", ()).await.unwrap_err();
    let gone = &host.status()["gone"];
    assert_eq!(gone.state, ServerState::Unavailable);
    assert_eq!(gone.reason.as_deref(), Some("its process ended with exit code 3"));
    assert_eq!(gone.in_flight, 0);
    host.shutdown().await;
    let one = &host.status()["one"];
    assert_eq!((one.state, one.pid, one.in_flight), (ServerState::Shutdown, None, 0));
}
