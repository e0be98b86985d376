//! Loss, restart, reload and stop of in-process servers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use innkeeper_host::{
    CallError, CallErrorKind, Host, HostEvent, ReloadOptions, RestartError, ServerState,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, copy_bidirectional, duplex};
use tokio::time::{Instant, sleep};

use super::{STREAM_BYTES, Servers, builder, config, echo};
use crate::setup::{drain_events, wait_for_event};

#[tokio::test(start_paused = true)]
async fn a_restart_connects_to_a_new_server_after_the_old_server_ended() {
    let servers = Servers::default();
    let connector = servers.connector("local");
    let host = builder().connector("local", connector).start().await.unwrap();
    host.restart_server("local").await.unwrap();
    assert_eq!(echo(&host, "local.echo", "again").await, "again");
    assert_eq!(servers.log(), ["local started", "local ended", "local started"]);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_server_fails_its_calls_and_no_other_server() {
    let servers = Servers::default();
    let (mortal, other) = (servers.start("mortal"), Servers::default().start("other"));
    let host = builder().connect("mortal", mortal).connect("other", other).start().await.unwrap();
    let call = host.call_tool("mortal.hang", json!({}));
    let end = async {
        sleep(Duration::from_secs(1)).await;
        servers.end.notify_waiters();
    };
    let started = Instant::now();
    let (result, ()) = tokio::join!(call, end);
    let Err(CallError::Unavailable { may_have_run, reason, .. }) = result else {
        panic!("{result:?}")
    };
    assert!(may_have_run);
    assert_eq!(reason.to_string(), "the server closed its output");
    assert!(started.elapsed() < Duration::from_millis(1250), "{:?}", started.elapsed());
    assert_eq!(host.status()["mortal"].state, ServerState::Unavailable);
    assert_eq!(echo(&host, "other.echo", "hi").await, "hi");

    let error = host.call_tool("mortal.echo", json!({})).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Unavailable);
    let report = host.shutdown().await;
    let stages: Vec<_> = report.servers.iter().map(|server| server.stage.as_str()).collect();
    assert_eq!(stages, ["already-gone", "disconnected"]);
}

#[tokio::test(start_paused = true)]
async fn a_lost_server_is_started_again_by_its_restart_policy() {
    let servers = Servers::default();
    let entry = json!({"type": "in-process", "restart": {"onFailure": {"max": 2}}});
    let config = config(&json!({ "local": entry }));
    let builder = Host::builder(config).connector("local", servers.connector("local"));
    let host = builder.start().await.unwrap();
    for _ in 0..2 {
        let mut events = host.events();
        servers.end.notify_waiters();
        wait_for_event(&mut events, |event| matches!(event, HostEvent::Restarting { .. })).await;
        wait_for_event(&mut events, |event| matches!(event, HostEvent::Ready { .. })).await;
        assert_eq!(echo(&host, "local.echo", "back").await, "back");
    }
    assert_eq!(servers.log().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_used_once_and_a_restart_names_the_way_to_restart() {
    let servers = Servers::default();
    let host = builder().connect("local", servers.start("local")).start().await.unwrap();
    let error = host.restart_server("local").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "server `local` failed at launch: the stream was used by an earlier start; \
         `HostBuilder::connector` allows restarts"
    );
    assert_eq!(host.status()["local"].state, ServerState::Unavailable);
    assert!(host.shutdown().await.servers[0].exit.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_reload_keeps_a_running_server_and_a_changed_limit_waits_for_the_restart() {
    let servers = Servers::default();
    let builder = builder()
        .connector("entry", servers.connector("entry"))
        .connector("code", servers.connector("code"));
    let host = builder.start().await.unwrap();
    let entry = json!({"type": "in-process", "maxConcurrent": 1, "timeout": 5});
    let config = config(&json!({ "entry": entry }));
    let options = ReloadOptions { config: Some(config), ..ReloadOptions::default() };
    let report = host.reload_with(options).await.unwrap();
    assert_eq!((report.added.len(), report.removed.len()), (0, 0), "{report:?}");
    assert_eq!(report.changed.len(), 1, "{report:?}");
    assert_eq!(report.changed[0].keys, ["timeout", "maxConcurrent"]);
    assert_eq!(servers.log(), ["entry started", "code started"]);
    host.restart_server("entry").await.unwrap();
    assert_eq!(servers.log().len(), 4);
    assert!(host.status()["entry"].pending_restart.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_reload_that_disables_a_server_ends_it_and_a_later_reload_connects_it_again() {
    let servers = Servers::default();
    let host = builder().connector("local", servers.connector("local")).start().await.unwrap();
    for (disabled, log_len) in [(true, 2), (false, 3)] {
        let config = config(&json!({"local": {"type": "in-process", "disabled": disabled}}));
        let options = ReloadOptions { config: Some(config), ..ReloadOptions::default() };
        host.reload_with(options).await.unwrap();
        assert_eq!(host.status().contains_key("local"), !disabled);
        assert_eq!(servers.log().len(), log_len);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_removed_during_a_restart_loses_its_connection() {
    let (servers, silent_end) = (Servers::default(), Arc::new(Mutex::new(None)));
    let (started, kept) = (servers.clone(), silent_end.clone());
    let connector = move || {
        if started.log().is_empty() {
            return std::future::ready(Ok(started.start("local")));
        }
        let (stream, server_stream) = duplex(STREAM_BYTES);
        *kept.lock().unwrap() = Some(server_stream);
        std::future::ready(Ok(stream))
    };
    let host = builder().connector("local", connector).start().await.unwrap();
    let removal = async {
        sleep(Duration::from_secs(1)).await;
        let disabled = config(&json!({"local": {"type": "in-process", "disabled": true}}));
        host.reload_with(ReloadOptions { config: Some(disabled), ..ReloadOptions::default() }).await
    };
    let (restarted, reloaded) = tokio::join!(host.restart_server("local"), removal);
    assert!(matches!(restarted, Err(RestartError::UnknownServer(_))), "{restarted:?}");
    assert_eq!(reloaded.unwrap().removed.len(), 1);
    let mut server_stream = silent_end.lock().unwrap().take().unwrap();
    server_stream.write_all(b"{}\n").await.unwrap_err();
    assert!(host.status().is_empty());
}

/// Starts a server that neither reads nor writes after its start, and holds its end of the stream.
async fn start_stubborn() -> (Host, DuplexStream) {
    let (stream, mut server_stream) = duplex(STREAM_BYTES);
    let entry = json!({"type": "in-process", "shutdownTimeout": 4});
    let builder = Host::builder(config(&json!({ "local": entry }))).connect("local", stream);
    let mut responsive = Servers::default().start("local");
    let relay = copy_bidirectional(&mut server_stream, &mut responsive);
    let host = tokio::select! {
        host = builder.start() => host.unwrap(),
        relayed = relay => panic!("{relayed:?}"),
    };
    (host, server_stream)
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ignores_the_end_of_its_input_loses_its_connection_after_the_timeout() {
    let (host, mut server_stream) = start_stubborn().await;
    let started = Instant::now();
    let report = host.shutdown().await;
    assert_eq!(started.elapsed(), Duration::from_secs(4));
    assert_eq!(report.servers[0].stage.as_str(), "disconnected");
    assert!(!report.servers[0].leftovers);
    assert_eq!(server_stream.read(&mut [0; 1024]).await.unwrap(), 0);
    server_stream.write_all(b"{}\n").await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_dropped_host_drops_its_end_of_the_connection_though_a_catalog_is_held() {
    let (host, mut server_stream) = start_stubborn().await;
    let catalog = host.catalog();
    drop(host);
    assert_eq!(server_stream.read(&mut [0; 1024]).await.unwrap(), 0);
    server_stream.write_all(b"{}\n").await.unwrap_err();
    assert!(catalog.server("local").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_reading_ends_its_calls_at_their_deadline() {
    let (host, _server_stream) = start_stubborn().await;
    let mut events = host.events();
    let message = "x".repeat(2 * STREAM_BYTES);
    let started = Instant::now();
    let error = host.call_tool("local.echo", json!({ "message": message })).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Timeout);
    assert_eq!(started.elapsed(), Duration::from_secs(30));
    let lost = |event: &HostEvent| matches!(event, HostEvent::Unavailable { .. });
    assert_eq!(drain_events(&mut events).iter().filter(|event| lost(event)).count(), 1);
    assert!(!host.shutdown().await.servers[0].leftovers);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_with_a_budget_waits_longer_for_calls_and_ends_in_time() {
    let budget = Duration::from_secs(20);
    for (with_budget, min, max) in [(false, 1, 5), (true, 10, 24)] {
        let stream = Servers::default().start("local");
        let host = builder().connect("local", stream).start().await.unwrap();
        let started = Instant::now();
        let call = async {
            let result = host.call_tool("local.hang", json!({})).await;
            assert_eq!(result.unwrap_err().kind(), CallErrorKind::Unavailable);
            started.elapsed()
        };
        let stop = async {
            if with_budget {
                host.shutdown_within(budget).await
            } else {
                host.shutdown().await
            };
            started.elapsed()
        };
        let (call_time, stop_time) = tokio::join!(call, stop);
        let (min, max) = (Duration::from_secs(min), Duration::from_secs(max));
        assert!(min <= call_time && call_time <= stop_time, "{call_time:?} {stop_time:?}");
        assert!(stop_time <= max, "{stop_time:?}");
    }
}

/// Starts servers of which each depends on the previous server. The servers neither read nor write
/// after the start, and the returned streams hold the servers' ends.
async fn start_stubborn_chain(count: usize) -> (Host, Vec<DuplexStream>) {
    let name = |index: usize| format!("s{index}");
    let entry = |index: usize| {
        let dependencies: Vec<_> = index.checked_sub(1).map(name).into_iter().collect();
        (name(index), json!({"type": "in-process", "dependencies": dependencies}))
    };
    let mut builder = Host::builder(config(&Value::Object((0..count).map(entry).collect())));
    let mut server_streams = Vec::new();
    for index in 0..count {
        let (stream, server_stream) = duplex(STREAM_BYTES);
        builder = builder.connect(name(index), stream);
        server_streams.push(server_stream);
    }
    let relays = server_streams.iter_mut().map(async |stream| {
        let mut responsive = Servers::default().start("local");
        copy_bidirectional(stream, &mut responsive).await
    });
    let host = tokio::select! {
        host = builder.start() => host.unwrap(),
        relayed = join_all(relays) => panic!("{relayed:?}"),
    };
    (host, server_streams)
}

#[tokio::test(start_paused = true)]
async fn a_chain_of_servers_that_ignore_the_end_of_their_input_is_stopped_in_the_promised_time() {
    for (budget, max) in [(None, 15), (Some(0), 4), (Some(3), 7)] {
        let (host, _server_streams) = start_stubborn_chain(20).await;
        let started = Instant::now();
        let report = match budget {
            None => host.shutdown().await,
            Some(budget) => host.shutdown_within(Duration::from_secs(budget)).await,
        };
        let elapsed = started.elapsed();
        assert!(elapsed <= Duration::from_secs(max), "{budget:?}: {elapsed:?}");
        assert_eq!(report.servers.len(), 20);
        assert!(report.servers.iter().all(|server| !server.leftovers), "{report:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_stop_gets_its_shutdown_timeout_or_what_the_budget_leaves() {
    for (budget, min, max) in [(60, 10, 15), (8, 8, 12), (2, 2, 6)] {
        let (host, _server_streams) = start_stubborn_chain(1).await;
        let started = Instant::now();
        host.shutdown_within(Duration::from_secs(budget)).await;
        let elapsed = started.elapsed();
        let (min, max) = (Duration::from_secs(min), Duration::from_secs(max));
        assert!(min <= elapsed && elapsed <= max, "{budget}: {elapsed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_later_shutdown_with_a_shorter_limit_ends_the_wait_for_calls_in_its_promised_time() {
    for (budget, max) in [(Some(0), 4), (None, 15)] {
        let stream = Servers::default().start("local");
        let host = builder().connect("local", stream).start().await.unwrap();
        let shorter = async {
            sleep(Duration::from_secs(1)).await;
            let started = Instant::now();
            match budget {
                None => host.shutdown().await,
                Some(budget) => host.shutdown_within(Duration::from_secs(budget)).await,
            };
            started.elapsed()
        };
        let (result, _, elapsed) = tokio::join!(
            host.call_tool("local.hang", json!({})),
            host.shutdown_within(Duration::MAX),
            shorter
        );
        assert_eq!(result.unwrap_err().kind(), CallErrorKind::Unavailable);
        assert!(elapsed <= Duration::from_secs(max), "{budget:?}: {elapsed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_later_shutdown_with_a_shorter_limit_shortens_the_time_of_servers_that_do_not_stop() {
    let (host, _server_streams) = start_stubborn_chain(3).await;
    let shorter = async {
        sleep(Duration::from_secs(1)).await;
        let started = Instant::now();
        (host.shutdown_within(Duration::ZERO).await, started.elapsed())
    };
    let (first, (second, elapsed)) = tokio::join!(host.shutdown(), shorter);
    assert!(elapsed <= Duration::from_secs(4), "{elapsed:?}");
    assert!(second.servers.iter().all(|server| !server.leftovers), "{second:?}");
    assert_eq!(format!("{first:?}"), format!("{second:?}"));
    assert_eq!(first.servers.len(), 3);
}
