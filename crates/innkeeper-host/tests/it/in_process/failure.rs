//! Connectors that fail, and names without a connector.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use innkeeper_host::error::{ConnectorError, ServerFailure, StartFailureReason, StartPhase};
use innkeeper_host::{ConnectError, Connector, HostEvent};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::*;

/// Starts a host with this connector and returns the failure of the server `local`.
async fn failed_start(connector: impl Connector) -> ServerFailure {
    match builder().connector("local", connector).start().await {
        Err(StartError::Servers(mut failures)) if failures.len() == 1 => failures.remove(0),
        other => panic!("{other:?}"),
    }
}

/// Counts the calls of a connector.
#[derive(Clone, Default)]
struct CallCount(Arc<AtomicUsize>);

impl CallCount {
    fn count(&self) -> usize {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Proves: FR2.5
#[tokio::test(start_paused = true)]
async fn a_silent_server_fails_the_start_at_its_timeout_of_thirty_seconds_by_default() {
    for (init_timeout, expected) in [(None, 30.0), (Some(0.5), 0.5)] {
        let mut entry = json!({"type": "in-process"});
        if let Some(seconds) = init_timeout {
            entry["initTimeout"] = json!(seconds);
        }
        let (stream, _silent) = duplex(STREAM_BYTES);
        let builder = Host::builder(config(&json!({ "local": entry }))).connect("local", stream);
        let started_at = Instant::now();
        let error = builder.start().await.unwrap_err();
        let elapsed = started_at.elapsed().as_secs_f64();
        assert!((expected..expected + 0.1).contains(&elapsed), "{elapsed} of {expected} s");
        assert!(error.to_string().contains(&format!("not ready within {expected} s")), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connector_that_fails_is_retried_and_its_error_names_the_server() {
    let calls = CallCount::default();
    let counted = calls.clone();
    let connector = move || {
        counted.count();
        async { Err::<DuplexStream, _>(ConnectError::from(io::Error::other("no database"))) }
    };
    let failure = failed_start(connector).await;
    assert_eq!(
        failure.to_string(),
        "server `local` failed at launch: the connector failed: no database"
    );
    let reason = &failure.reason;
    assert!(matches!(reason, StartFailureReason::Connector(ConnectorError::Failed(_))));
    assert_eq!((calls.get(), failure.attempts), (4, 4));
}

#[tokio::test(start_paused = true)]
async fn a_connector_that_succeeds_at_the_second_call_starts_its_server() {
    let (calls, servers) = (CallCount::default(), Servers::default());
    let connector = move || {
        let result = match calls.count() {
            1 => Err("not yet".into()),
            _ => Ok(servers.start("local")),
        };
        std::future::ready(result)
    };
    let builder = builder().connector("local", connector);
    let mut events = builder.events();
    let host = builder.start().await.unwrap();
    assert_eq!(echo(&host, "local.echo", "hi").await, "hi");
    let retry = |event: &HostEvent| matches!(event, HostEvent::LaunchRetry { .. });
    assert!(crate::setup::drain_events(&mut events).iter().any(retry));
}

#[tokio::test(start_paused = true)]
async fn a_connector_that_hangs_ends_with_the_timeout_and_its_future_is_dropped() {
    let alive = Arc::new(());
    let held = alive.clone();
    let connector = move || {
        let held = held.clone();
        async move {
            std::future::pending::<()>().await;
            drop(held);
            Err::<DuplexStream, _>("unreachable".into())
        }
    };
    let started = Instant::now();
    let failure = failed_start(connector).await;
    assert_eq!(started.elapsed(), Duration::from_secs(30));
    assert_eq!(failure.to_string(), "server `local` failed at launch: not ready within 30 s");
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[tokio::test(start_paused = true)]
async fn a_connector_that_panics_fails_the_start_and_is_not_retried() {
    struct PanickingConnector;
    impl Connector for PanickingConnector {
        fn connect(&self) -> innkeeper_host::ConnectFuture {
            panic!("in the call")
        }
    }
    let in_the_future = || async {
        if true {
            panic!("in the future");
        }
        Ok(duplex(1).0)
    };
    for failure in [failed_start(PanickingConnector).await, failed_start(in_the_future).await] {
        let reason = &failure.reason;
        assert!(matches!(reason, StartFailureReason::Connector(ConnectorError::Panicked)));
        assert_eq!((failure.phase, failure.attempts), (StartPhase::Launch, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_fails_in_the_handshake_and_loses_its_connection() {
    let (stream, mut server_stream) = duplex(STREAM_BYTES);
    let started = Instant::now();
    let Err(StartError::Servers(failures)) = builder().connect("local", stream).start().await
    else {
        panic!("started")
    };
    assert_eq!(started.elapsed(), Duration::from_secs(30));
    assert_eq!((failures[0].phase, failures[0].attempts), (StartPhase::Handshake, 1));
    server_stream.write_all(b"{}\n").await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_in_the_handshake_is_the_failure_and_not_its_second_use() {
    let (stream, server_stream) = duplex(STREAM_BYTES);
    drop(server_stream);
    let Err(StartError::Servers(failures)) = builder().connect("local", stream).start().await
    else {
        panic!("started")
    };
    let failure = &failures[0];
    assert_eq!((failure.phase, failure.attempts), (StartPhase::Handshake, 1), "{failure}");
}

/// The fault of a stream at each write of a tool call.
#[derive(Clone, Copy, Debug)]
enum WriteFault {
    Panic,
    /// Reports more bytes than the host passed.
    ExcessCount,
}

/// A stream with a fault at each write of a tool call.
struct FaultyStream(DuplexStream, WriteFault);

impl AsyncRead for FaultyStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for FaultyStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if String::from_utf8_lossy(bytes).contains("tools/call") {
            match self.1 {
                WriteFault::Panic => panic!("the stream panics"),
                WriteFault::ExcessCount => return Poll::Ready(Ok(bytes.len() + 1)),
            }
        }
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_with_a_fault_makes_its_server_unavailable_and_no_other() {
    for fault in [WriteFault::Panic, WriteFault::ExcessCount] {
        let servers = Servers::default();
        let stream = FaultyStream(servers.start("faulty"), fault);
        let builder = builder().connect("faulty", stream).connect("other", servers.start("other"));
        let host = builder.start().await.unwrap();
        let mut events = host.events();
        let error = host.call_tool("faulty.echo", json!({})).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::ServerUnavailable, "{fault:?}");
        while !matches!(events.recv().await.unwrap(), HostEvent::Unavailable { .. }) {}
        assert_eq!(host.status()["faulty"].state, ServerState::Unavailable, "{fault:?}");
        assert_eq!(echo(&host, "other.echo", "hi").await, "hi");
        host.shutdown().await;
    }
}

/// Returns the problems of a start with this configuration.
async fn problems(builder: HostBuilder) -> String {
    match builder.start().await {
        Err(StartError::Config(error)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_required_entry_without_a_connector_is_an_error_and_an_optional_entry_a_warning() {
    let required = config(&json!({"local": {"type": "in-process"}}));
    assert_eq!(
        problems(Host::builder(required)).await,
        "mcp.json servers.local.type: the application has no connector for this server\n    \
         hint: call `HostBuilder::connector` with this name, or disable the server"
    );
    let optional = config(&json!({"local": {"type": "in-process", "required": false}}));
    let builder = Host::builder(optional);
    let warnings = builder.check().unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let host = builder.start().await.unwrap();
    assert_eq!(
        host.status()["local"].reason.as_deref(),
        Some("start failed: the application has no connector for this server")
    );
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_invalid_or_belongs_to_another_server_is_an_error() {
    let servers = Servers::default();
    let invalid = builder().connector("", servers.connector("x"));
    assert_eq!(
        problems(invalid).await,
        "HostBuilder servers.: the server name is empty\n    \
         hint: use 1 to 128 visible characters"
    );
    let taken = config(&json!({"local": {"command": "serve"}}));
    assert_eq!(
        problems(Host::builder(taken).connector("local", servers.connector("x"))).await,
        "mcp.json servers.local.type: the application connects this server; the type is `stdio`\n    \
         hint: write `\"type\": \"in-process\"` in place of `command` or `url`"
    );
    let folded = builder()
        .connector("local", servers.connector("x"))
        .connector("LOCAL", servers.connector("x"));
    assert_eq!(
        problems(folded).await,
        "HostBuilder servers.LOCAL: differs from `local` only in case\n    hint: use another name"
    );
    assert!(servers.log().is_empty());
}
