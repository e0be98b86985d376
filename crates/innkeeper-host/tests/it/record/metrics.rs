//! Events, metrics and status.

use innkeeper_host::event::{CallOutcome, CallRecord};
use innkeeper_host::{CallErrorKind, Host, HostEvent, ProcessContainment, ServerState};
use serde_json::{Value, json};

use crate::setup::{TestEnv, builder, drain_events, wait_for_event};

fn call_records(events: Vec<HostEvent>) -> Vec<CallRecord> {
    let calls = events.into_iter().filter_map(|event| match event {
        HostEvent::CallFinished(record) => Some(record),
        _ => None,
    });
    calls.collect()
}

/// Proves: FR9.3, N24
#[tokio::test]
async fn three_results_and_an_error_are_four_requests_of_which_three_quarters_succeeded() {
    let test_env = TestEnv::new();
    let servers = [test_env.fixture("one"), test_env.fixture("idle")];
    let host = test_env.start(servers).await.unwrap();
    for _ in 0..3 {
        host.call_tool("one.sleep", json!({"ms": 20})).await.unwrap();
    }
    host.call_tool("one.fail", json!({})).await.unwrap();
    let metrics = host.metrics();
    let server = &metrics["one"];
    assert_eq!((server.request_count, server.success_count, server.error_count), (4, 3, 1));
    assert_eq!((server.rates.success, server.rates.error), (0.75, 0.25));
    assert!(server.latency.avg >= 15.0 && server.latency.max >= 20.0, "{server:?}");
    let idle = &metrics["idle"];
    assert_eq!((idle.request_count, idle.rates.error, idle.rates.success), (0, 0.0, 1.0));
    host.shutdown().await;
    assert_eq!(host.metrics()["one"], *server, "they outlive the servers");
}

/// Proves: FR9.6
#[tokio::test]
async fn metrics_are_reported_for_every_server_under_their_names() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one"), test_env.fixture("two")]).await.unwrap();
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
    let test_env = TestEnv::new();
    let fixture =
        test_env.fixture("one").with("--crash-after", 5).config_key("unavailableAfterTimeouts", 2);
    let host = test_env.start([fixture]).await.unwrap();
    let mut events = host.events();
    host.call_tool("one.pid", ()).await.unwrap();
    host.call_tool("one.fail", ()).await.unwrap();
    let short = std::time::Duration::from_millis(50);
    let options = innkeeper_host::CallOptions { timeout: Some(short), ..Default::default() };
    host.call_tool_with("one.sleep", json!({"ms": 9_000}), options).await.unwrap_err();
    let dropped = host.call_tool("one.sleep", json!({"ms": 9_000}));
    tokio::time::timeout(short, dropped).await.unwrap_err();
    // Neither of these two calls sends a request.
    host.call_tool("one.echo", json!({})).await.unwrap_err();
    host.call_tool("one.nothing", json!({})).await.unwrap_err();
    host.call_tool("one.pid", ()).await.unwrap_err();
    host.call_tool("one.pid", ()).await.unwrap_err();
    let records = call_records(drain_events(&mut events));
    let outcomes: Vec<CallOutcome> = records.iter().map(|record| record.outcome).collect();
    assert_eq!(
        outcomes,
        [
            CallOutcome::Ok,
            CallOutcome::ToolError,
            CallOutcome::Failed(CallErrorKind::Timeout),
            CallOutcome::Cancelled,
            CallOutcome::Failed(CallErrorKind::Unavailable),
        ]
    );
    let journal = test_env.journal();
    let ids: Vec<u64> = journal
        .received("tools/call")
        .iter()
        .map(|entry| entry.message["id"].as_u64().unwrap())
        .collect();
    assert_eq!(records.iter().map(|record| record.id).collect::<Vec<_>>(), ids);
    for record in &records {
        assert_eq!((&*record.server, &*record.method), ("one", "tools/call"));
    }
    let server = &host.metrics()["one"];
    let counts =
        [server.request_count, server.success_count, server.error_count, server.tool_error_count];
    assert_eq!((counts, server.cancelled_count), ([5, 1, 3, 1], 1));
    host.shutdown().await;
}

#[tokio::test]
async fn events_report_the_life_of_a_server_in_order() {
    let test_env = TestEnv::new();
    let builder = builder(test_env.config([test_env.fixture("one").with("--crash-after", 1)]));
    let mut events = builder.events();
    let host = builder.start().await.unwrap();
    let mut late_events = host.events();
    host.call_tool("one.pid", ()).await.unwrap_err();
    wait_for_event(&mut late_events, |event| matches!(event, HostEvent::Unavailable { .. })).await;
    host.shutdown().await;
    let summaries: Vec<String> = drain_events(&mut events).iter().map(event_summary).collect();
    let expected = ["launching 1", "handshake", "ready 9", "called", "unavailable", "stopped"];
    let mut sorted = summaries.clone();
    // The call's event may come before or after the server's event.
    if let Some(at) = sorted.iter().position(|summary| summary == "called") {
        let call_event = sorted.remove(at);
        sorted.insert(3, call_event);
    }
    assert_eq!(sorted, expected, "{summaries:?}");
}

fn event_summary(event: &HostEvent) -> String {
    match event {
        HostEvent::Launching { attempt, .. } => format!("launching {attempt}"),
        HostEvent::Installing { .. } => "installing".to_owned(),
        HostEvent::Handshake { .. } => "handshake".to_owned(),
        HostEvent::LaunchRetry { .. } => "retrying".to_owned(),
        HostEvent::Ready { tools, .. } => format!("ready {tools}"),
        HostEvent::Unavailable { .. } => "unavailable".to_owned(),
        HostEvent::Stopped { .. } => "stopped".to_owned(),
        HostEvent::Reinitialized { .. } => "reinitialized".to_owned(),
        HostEvent::CatalogChanged { .. } => "changed".to_owned(),
        HostEvent::Quarantined { .. } => "quarantined".to_owned(),
        HostEvent::CallRetry { attempt, .. } => format!("call retried {attempt}"),
        HostEvent::ListMissing { list, .. } => format!("{list} missing"),
        HostEvent::SecurityWarning { .. } => "security warning".to_owned(),
        HostEvent::GuardFinding { .. } => "guard finding".to_owned(),
        HostEvent::PinMismatch { .. } => "pin mismatch".to_owned(),
        HostEvent::LimitNotApplied { key, .. } => format!("{key} not applied"),
        HostEvent::ResourceUpdated { .. } => "updated".to_owned(),
        HostEvent::Message { .. } => "message".to_owned(),
        HostEvent::Notification { .. } => "notification".to_owned(),
        HostEvent::Restarting { attempt, .. } => format!("restarting {attempt}"),
        HostEvent::Reloaded { .. } => "reloaded".to_owned(),
        HostEvent::ReloadFailed { .. } => "reload failed".to_owned(),
        HostEvent::NotTrusted { .. } => "not trusted".to_owned(),
        HostEvent::CallFinished(_) => "called".to_owned(),
    }
}

/// Proves: TR5.2
#[tokio::test]
async fn the_status_of_a_server_has_its_process_state_requests_and_last_stderr() {
    let test_env = TestEnv::new();
    let servers = [
        test_env.fixture("one").with("--stderr", "hello from \u{1b}[31mone"),
        test_env.fixture("gone").with("--crash-after", 1),
    ];
    let host: Host = test_env.start(servers).await.unwrap();
    let journal = test_env.journal();
    let waiting = host.call_tool("one.sleep", json!({"ms": 60_000}));
    tokio::pin!(waiting);
    tokio::select! {
        ended = &mut waiting => panic!("{ended:?}"),
        _ = test_env.wait_for_journal(|journal| journal.count("tools/call") == 1) => {}
    }
    let names = ["one", "gone"].map(String::from);
    assert_eq!(host.status().keys().map(|name| name.to_string()).collect::<Vec<_>>(), names);
    assert_eq!(host.metrics().keys().map(|name| name.to_string()).collect::<Vec<_>>(), names);
    assert_eq!(host.catalog().servers().map(|(name, _)| name).collect::<Vec<_>>(), names);
    let server = &host.status()["one"];
    assert_eq!(
        (server.state, server.pid),
        (ServerState::Ready, Some(journal.for_server("one").pids()[0]))
    );
    assert_eq!((server.in_flight, server.reason.as_deref()), (1, None));
    assert_eq!(server.isolation, Some(ProcessContainment::Tree));
    assert_eq!(server.stderr, "hello from one");
    assert!(server.excluded_tools.is_empty());
    let catalog = host.catalog();
    let listing = catalog.server("one").unwrap().listing().unwrap();
    let lists = [
        listing.tools.len(),
        listing.prompts.len(),
        listing.resources.len(),
        listing.resource_templates.len(),
    ];
    assert!(!lists.contains(&0), "{lists:?}");
    assert_eq!(host.metrics()["one"].request_count, 0, "the call has not ended");
    host.call_tool("one.pid", ()).await.unwrap();
    assert_eq!(host.metrics()["one"].request_count, 1);
    assert_eq!(host.status()["one"].in_flight, 1);
    host.call_tool("gone.pid", ()).await.unwrap_err();
    let crashed = &host.status()["gone"];
    assert_eq!(crashed.state, ServerState::Unavailable);
    assert_eq!(crashed.reason.as_deref(), Some("process ended with exit code 3"));
    assert_eq!(crashed.in_flight, 0);
    host.shutdown().await;
    let server = &host.status()["one"];
    assert_eq!((server.state, server.pid, server.in_flight), (ServerState::Shutdown, None, 0));
}
