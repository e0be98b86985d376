//! Timeouts of callbacks and of the calls that wait for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use innkeeper_host::{CallError, CallbackCapabilities, ServerRequest};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{ServerTransport, StartedServers, TRANSPORTS, callback_responses};
use crate::setup::{TEST_TIMEOUT, TestEnv};

/// Counts the running callbacks.
struct ActiveGuard(Arc<AtomicUsize>);

impl ActiveGuard {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count.clone())
    }
}

impl Drop for ActiveGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_call_that_waits_for_the_application_may_take_longer_than_its_own_time() {
    for transport in TRANSPORTS {
        let test_env = TestEnv::new();
        let server = test_env.fixture("a").switch("--ask-sampling").config_key("timeout", 0.5);
        let started =
            StartedServers::start(transport, [server.config_key("maxTotalTimeout", 30)]).await;
        let callback = |_: ServerRequest| async {
            sleep(Duration::from_millis(1500)).await;
            Ok(json!({"is": "thought about"}))
        };
        let host = started.start_host(&test_env, &CallbackCapabilities::sampling(), callback).await;
        let started_at = Instant::now();
        assert_eq!(
            callback_responses(&host, "a").await[0]["result"]["is"],
            "thought about",
            "{transport:?}"
        );
        assert!(started_at.elapsed() >= Duration::from_millis(1500));
        host.shutdown().await;
    }
}

/// Proves: TR4.6
#[tokio::test]
async fn an_application_that_never_answers_is_given_up_and_so_is_the_call() {
    for transport in TRANSPORTS {
        let test_env = TestEnv::new();
        let server = test_env
            .fixture("a")
            .switch("--ask-sampling")
            .config_key("unavailableAfterTimeouts", 9);
        let server = server.config_key("timeout", 0.5).config_key("maxTotalTimeout", 2);
        let started = StartedServers::start(transport, [server]).await;
        let open = Arc::new(AtomicUsize::new(0));
        let callback = {
            let open = open.clone();
            move |_: ServerRequest| {
                let open = ActiveGuard::new(&open);
                async move {
                    let _open = open;
                    std::future::pending().await
                }
            }
        };
        let host = started.start_host(&test_env, &CallbackCapabilities::sampling(), callback).await;
        let started_at = Instant::now();
        let error = host.call_tool("a.pid", ()).await.unwrap_err();
        assert!(matches!(error, CallError::Timeout { .. }), "{transport:?}: {error:?}");
        let text = error.to_string();
        assert!(text.ends_with("within 2 s (`maxTotalTimeout`)"), "{transport:?}: {text}");
        let elapsed = started_at.elapsed();
        assert!(
            elapsed >= Duration::from_secs(2) && elapsed < TEST_TIMEOUT,
            "{transport:?}: {elapsed:?}"
        );
        let journal = test_env.wait_for_journal(|journal| !journal.responses().is_empty()).await;
        assert_eq!(journal.responses()[0]["error"]["code"], -32603, "{transport:?}");
        assert_eq!(
            open.load(Ordering::Relaxed),
            0,
            "{transport:?}: the answer is still being made"
        );
        host.shutdown().await;
    }
}

#[tokio::test]
async fn an_answer_that_is_being_made_does_not_hold_up_the_shutdown() {
    for transport in TRANSPORTS {
        let test_env = TestEnv::new();
        let started =
            StartedServers::start(transport, [test_env.fixture("a").switch("--ask-sampling")])
                .await;
        let open = Arc::new(AtomicUsize::new(0));
        let callback = {
            let open = open.clone();
            move |_: ServerRequest| {
                let open = ActiveGuard::new(&open);
                async move {
                    let _open = open;
                    std::future::pending::<Result<Value, _>>().await
                }
            }
        };
        let host = started.start_host(&test_env, &CallbackCapabilities::sampling(), callback).await;
        let requested = async {
            while open.load(Ordering::Relaxed) == 0 {
                sleep(Duration::from_millis(2)).await;
            }
            let started_at = Instant::now();
            host.shutdown().await;
            started_at.elapsed()
        };
        let (call, elapsed) = tokio::join!(host.call_tool("a.pid", ()), requested);
        assert!(call.is_err(), "{transport:?}");
        assert!(elapsed < Duration::from_secs(5), "{transport:?}: {elapsed:?}");
        assert_eq!(open.load(Ordering::Relaxed), 0, "{transport:?}");
    }
}

#[tokio::test]
async fn other_calls_go_on_while_the_application_thinks() {
    let test_env = TestEnv::new();
    let servers = [test_env.fixture("a").switch("--ask-sampling"), test_env.fixture("b")];
    let started = StartedServers::start(ServerTransport::Http, servers).await;
    let (free, release) = tokio::sync::watch::channel(false);
    let callback = move |_: ServerRequest| {
        let mut release = release.clone();
        async move {
            let _ = release.wait_for(|free| *free).await;
            Ok(json!({"is": "at last"}))
        }
    };
    let host = started.start_host(&test_env, &CallbackCapabilities::sampling(), callback).await;
    let others = async {
        test_env.wait_for_journal(|journal| journal.for_server("a").count("tools/call") == 1).await;
        host.call_tool("b.pid", ()).await.unwrap();
        host.get_prompt("a.plain", &serde_json::Map::new(), Default::default()).await.unwrap();
        free.send_replace(true);
    };
    let (responses, ()) = tokio::join!(callback_responses(&host, "a"), others);
    assert_eq!(responses[0]["result"]["is"], "at last");
    host.shutdown().await;
}
