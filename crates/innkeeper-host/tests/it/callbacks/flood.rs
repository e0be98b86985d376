//! Servers that send more requests than the application can handle.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use innkeeper_host::{Callback, CallbackCapabilities, ServerRequest};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{ServerTransport, StartedServers, TRANSPORTS, as_callback, callback_responses};
use crate::setup::{TEST_TIMEOUT, TestEnv, result_text};

/// Counts concurrent callbacks and blocks them until `release` is set.
#[derive(Clone)]
struct BlockingCallback {
    active: Arc<AtomicUsize>,
    max_active: Arc<AtomicUsize>,
    call_count: Arc<AtomicUsize>,
    release: Arc<watch::Sender<bool>>,
}

impl BlockingCallback {
    fn new() -> Self {
        let count = Arc::<AtomicUsize>::default;
        let release = Arc::new(watch::Sender::new(false));
        Self { active: count(), max_active: count(), call_count: count(), release }
    }

    fn callback(&self) -> impl Callback + use<> {
        let handler = self.clone();
        move |_: ServerRequest| {
            let handler = handler.clone();
            async move {
                handler.call_count.fetch_add(1, Ordering::Relaxed);
                let open = handler.active.fetch_add(1, Ordering::Relaxed) + 1;
                handler.max_active.fetch_max(open, Ordering::Relaxed);
                let _ = handler.release.subscribe().wait_for(|free| *free).await;
                handler.active.fetch_sub(1, Ordering::Relaxed);
                Ok(json!({"action": "accept"}))
            }
        }
    }
}

/// Waits until the server has received `count` responses. Polls rarely, because the journal is
/// large.
async fn wait_responses(test_env: &TestEnv, count: usize) {
    let polling = async {
        while test_env.journal().for_server("a").responses().len() < count {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, polling).await.expect("everything is answered");
}

/// Makes a server send `count` requests at once, and blocks the `taken` accepted requests until the
/// server has received all other responses. Returns all responses, the maximum number of concurrent
/// callbacks, and the number of callbacks.
async fn flood(
    transport: ServerTransport,
    switch: &str,
    count: usize,
    taken: usize,
) -> (Vec<Value>, usize, usize) {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").switch(switch).with("--ask-count", count);
    let started = StartedServers::start(transport, [server, test_env.fixture("b")]).await;
    let handler = BlockingCallback::new();
    let host =
        started.start_host(&test_env, &CallbackCapabilities::all(), handler.callback()).await;
    let meanwhile = async {
        wait_responses(&test_env, count - taken).await;
        let message = json!({"message": "still here"});
        let neighbour = host.call_tool("b.echo", message).await;
        // The flood does not delay calls to the other server, which sends no requests.
        assert_eq!(result_text(&neighbour.unwrap()), "still here");
        handler.release.send_replace(true);
    };
    let (responses, ()) = tokio::join!(callback_responses(&host, "a"), meanwhile);
    host.shutdown().await;
    (
        responses,
        handler.max_active.load(Ordering::Relaxed),
        handler.call_count.load(Ordering::Relaxed),
    )
}

/// Fault 40.
/// Attack: flow control | 2,000 sampling requests at once, over three transports | 4 requests reach
/// the application at a time, 16 wait, and 1,980 are rejected | No unbounded memory
#[tokio::test]
async fn of_two_thousand_requests_at_once_four_are_asked_sixteen_wait_and_the_rest_is_refused() {
    for transport in [ServerTransport::Stdio, ServerTransport::Http, ServerTransport::Sse] {
        let (responses, max_concurrent, requests) =
            flood(transport, "--ask-sampling", 2000, 20).await;
        assert_eq!((responses.len(), max_concurrent, requests), (2000, 4, 20), "{transport:?}");
        let rejected =
            responses.iter().filter(|response| response["error"]["code"] == -32603).count();
        assert_eq!(rejected, 1980, "{transport:?}");
    }
}

/// The limit of fault 40: 20 requests and 21 requests.
#[tokio::test]
async fn twenty_requests_at_once_are_all_answered_and_the_next_one_is_refused() {
    let (responses, _, requests) = flood(ServerTransport::Stdio, "--ask-sampling", 20, 20).await;
    assert_eq!(requests, 20);
    assert!(responses.iter().all(|answer| answer.get("result").is_some()), "{responses:?}");
    let (responses, _, requests) = flood(ServerTransport::Stdio, "--ask-sampling", 21, 20).await;
    assert_eq!(requests, 20);
    assert_eq!(responses.iter().filter(|answer| answer.get("error").is_some()).count(), 1);
}

/// Fault 42.
/// Attack: flow control | 200 elicitations at once | the user sees one at a time; 195 are declined
/// | No unbounded memory
#[tokio::test]
async fn a_user_is_asked_one_question_at_a_time_four_wait_and_the_rest_is_declined() {
    for transport in [ServerTransport::Stdio, ServerTransport::Http] {
        let (responses, max_concurrent, requests) = flood(transport, "--ask-elicit", 200, 5).await;
        assert_eq!((responses.len(), max_concurrent, requests), (200, 1, 5), "{transport:?}");
        let declined =
            responses.iter().filter(|response| response["result"]["action"] == "decline");
        assert_eq!(declined.count(), 195, "{transport:?}");
    }
}

/// Fault 43.
/// Attack: flow control | 2,000 pings during a call | each ping gets a response, and the call
/// succeeds | No unbounded wait
#[tokio::test]
async fn a_flood_of_pings_is_answered_and_holds_nobody_up() {
    // The HTTP fixture stores at most 64 messages until the client opens a stream.
    for (transport, count) in [
        (ServerTransport::Stdio, 2000),
        (ServerTransport::Http, 60),
        (ServerTransport::Sse, 60),
        (ServerTransport::WebSocket, 60),
    ] {
        let test_env = TestEnv::new();
        let server = test_env.fixture("a").switch("--ping-client").with("--ping-count", count);
        let started = StartedServers::start(transport, [server]).await;
        let host = started.start_host_without_callback(&test_env).await;
        let result = host.call_tool("a.echo", json!({"message": "through"})).await.unwrap();
        assert_eq!(result_text(&result), "through", "{transport:?}");
        wait_responses(&test_env, count).await;
        let journal = test_env.journal();
        assert!(
            journal.responses().iter().all(|answer| answer["result"] == json!({})),
            "{transport:?}"
        );
        host.shutdown().await;
    }
}

/// Fault 42: a callback that calls its own server waits for that call, and both end at the call's
/// timeout.
/// Attack: flow control | a callback calls the server that asks again inside of that call | the
/// call ends; another server is not affected | No unbounded wait
#[tokio::test]
async fn a_question_inside_of_an_answer_ends_with_the_time_of_the_call() {
    let test_env = TestEnv::new();
    let server =
        test_env.fixture("a").switch("--ask-elicit").config_key("unavailableAfterTimeouts", 9);
    let server = server.config_key("timeout", 0.5).config_key("maxTotalTimeout", 2);
    let started =
        StartedServers::start(ServerTransport::Stdio, [server, test_env.fixture("b")]).await;
    let host = started.start_host_without_callback(&test_env).await;
    let callback = {
        let host = host.clone();
        move |_: ServerRequest| {
            let host = host.clone();
            async move {
                let _ = host.call_tool("a.pid", ()).await;
                Ok(json!({"action": "accept"}))
            }
        }
    };
    host.set_callback(&CallbackCapabilities::elicitation(), as_callback(callback).as_ref());
    let result = tokio::time::timeout(TEST_TIMEOUT, host.call_tool("a.pid", ())).await;
    result.expect("it ends").unwrap_err();
    host.call_tool("b.pid", ()).await.unwrap();
    host.set_callback(&CallbackCapabilities::elicitation(), None);
    host.shutdown().await;
}

#[tokio::test]
async fn an_answer_that_is_too_long_to_be_sent_is_an_error_for_the_server() {
    for transport in TRANSPORTS {
        let test_env = TestEnv::new();
        let started =
            StartedServers::start(transport, [test_env.fixture("a").switch("--ask-sampling")])
                .await;
        let callback = |_: ServerRequest| async { Ok(json!({"text": "x".repeat(9 << 20)})) };
        let host = started.start_host(&test_env, &CallbackCapabilities::sampling(), callback).await;
        assert_eq!(
            callback_responses(&host, "a").await[0]["error"]["code"],
            -32603,
            "{transport:?}"
        );
        host.shutdown().await;
    }
}
