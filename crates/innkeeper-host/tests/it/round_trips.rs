//! Calls of the modern era with input requests: round trips and callbacks.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use innkeeper_host::error::ProtocolError;
use innkeeper_host::{
    CallError, CallOptions, Callback, CallbackCapabilities, CallbackError, Host, ServerRequest,
    ToolResult,
};
use innkeeper_testkit::{Fixture, RemoteServer};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::remote::{config_json, start_host};
use crate::setup::{TEST_TIMEOUT, TestEnv, builder, result_text};

/// Maximum size of a server's request state, in bytes of JSON.
const MAX_STATE_BYTES: usize = 64 << 10;

/// Number of bytes in the fixture's request state around its padding: name, round number and
/// quotes.
const STATE_OVERHEAD_BYTES: usize = r#""fx-state-1""#.len();

fn asking_fixture(test_env: &TestEnv, switch: &str) -> Fixture {
    test_env
        .fixture("a")
        .with("--era", "modern")
        .switch(switch)
        .config_key("unavailableAfterTimeouts", 9)
}

/// Starts a host with one server and a callback for all requests.
async fn host_with_callback(test_env: &TestEnv, entry: Value, callback: impl Callback) -> Host {
    let builder = builder(test_env.config_from(&config_json([("a", entry)])));
    builder.callback(&CallbackCapabilities::all(), callback).start().await.unwrap()
}

/// Returns a callback that responds with the number of requests so far, and the recorded requests.
fn counting_callback() -> (impl Callback, Arc<Mutex<Vec<ServerRequest>>>) {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let recorded = requests.clone();
    let callback = move |request: ServerRequest| {
        let mut recorded = recorded.lock().unwrap();
        recorded.push(request);
        let response = json!({"action": "accept", "content": {"number": recorded.len()}});
        async move { Ok(response) }
    };
    (callback, requests)
}

async fn call(host: &Host) -> Result<ToolResult, CallError> {
    host.call_tool("a.pid", ()).await
}

fn protocol_error(result: Result<ToolResult, CallError>) -> ProtocolError {
    match result {
        Err(CallError::Protocol { source, server, item }) => {
            assert_eq!((&*server, &*item), ("a", "pid"));
            source
        }
        other => panic!("not a protocol error: {other:?}"),
    }
}

/// Checks a call with two round trips of two requests each over the transport of `entry`.
async fn assert_two_round_trips(test_env: &TestEnv, entry: Value) {
    let (callback, requests) = counting_callback();
    let host = host_with_callback(test_env, entry, callback).await;
    let result = call(&host).await.unwrap();
    let last: Value = serde_json::from_str(&result_text(&result)).unwrap();
    let numbers: Vec<&Value> =
        last.as_object().unwrap().values().map(|response| &response["content"]["number"]).collect();
    assert_eq!(numbers, [3, 4], "{last}");
    let methods: Vec<String> =
        requests.lock().unwrap().iter().map(|request| request.method.to_string()).collect();
    assert_eq!(methods[..2], methods[2..]);
    assert!(requests.lock().unwrap().iter().all(|request| &*request.server == "a"));
    let journal = test_env.journal();
    let calls = journal.received("tools/call");
    let ids: HashSet<u64> = calls.iter().map(|call| call.message["id"].as_u64().unwrap()).collect();
    assert_eq!((calls.len(), ids.len()), (3, 3), "an id was used twice");
    let states: Vec<&Value> =
        calls.iter().map(|call| &call.message["params"]["requestState"]).collect();
    assert_eq!(states, [&Value::Null, &json!("fx-state-1..."), &json!("fx-state-2...")]);
    assert!(calls[0].message["params"].get("inputResponses").is_none());
    assert_eq!(calls[1].message["params"]["inputResponses"].as_object().unwrap().len(), 2);
    let capabilities_key = "io.modelcontextprotocol/clientCapabilities";
    for call in &calls {
        let capabilities = &call.message["params"]["_meta"][capabilities_key];
        let extensions = json!({"io.modelcontextprotocol/tasks": {}});
        let all = ["sampling", "elicitation", "roots"].map(|kind| capabilities[kind] == json!({}));
        assert_eq!((all, &capabilities["extensions"]), ([true; 3], &extensions));
        assert_eq!(call.message["params"]["name"], "pid");
    }
    assert!(journal.responses().is_empty(), "an answer is no message of its own");
    let metrics = &host.metrics()["a"];
    assert_eq!((metrics.request_count, metrics.success_count), (1, 1), "it is one call");
    host.shutdown().await;
}

fn two_round_trip_fixture(test_env: &TestEnv) -> Fixture {
    let server = asking_fixture(test_env, "--ask-elicit").switch("--ask-sampling");
    server.with("--rounds", 2).with("--state-bytes", 3)
}

/// Proves: FR5.1, FR5.3, FR5.4
#[tokio::test]
async fn a_call_that_needs_input_is_sent_again_with_the_answers_until_it_is_done() {
    let test_env = TestEnv::new();
    assert_two_round_trips(&test_env, two_round_trip_fixture(&test_env).config_entry()).await;
    let test_env = TestEnv::new();
    let remote = RemoteServer::for_fixture(two_round_trip_fixture(&test_env)).start().await;
    assert_two_round_trips(&test_env, remote.config_entry()).await;
    let test_env = TestEnv::new();
    let remote = RemoteServer::for_fixture(two_round_trip_fixture(&test_env))
        .with_json_responses()
        .start()
        .await;
    assert_two_round_trips(&test_env, remote.config_entry()).await;
}

/// Fault 41.
/// Attack: flow control | a call requests input without end | the call fails after 8 round trips |
/// No unbounded wait
#[tokio::test]
async fn a_server_that_asks_for_ever_is_given_eight_round_trips() {
    let test_env = TestEnv::new();
    let (callback, requests) = counting_callback();
    let server = asking_fixture(&test_env, "--ask-elicit").with("--rounds", 1_000_000);
    let host = host_with_callback(&test_env, server.config_entry(), callback).await;
    let endless = protocol_error(call(&host).await);
    assert!(matches!(endless, ProtocolError::TooManyRoundTrips { limit: 8 }), "{endless:?}");
    assert_eq!(requests.lock().unwrap().len(), 8);
    assert_eq!(test_env.journal().count("tools/call"), 9);
    host.shutdown().await;
}

/// The limit of fault 41.
#[tokio::test]
async fn eight_round_trips_are_not_too_many() {
    let test_env = TestEnv::new();
    let (callback, requests) = counting_callback();
    let server = asking_fixture(&test_env, "--ask-elicit").with("--rounds", 8);
    let host = host_with_callback(&test_env, server.config_entry(), callback).await;
    call(&host).await.unwrap();
    assert_eq!(requests.lock().unwrap().len(), 8);
    host.shutdown().await;
}

/// Fault 44.
/// Attack: flow control | the state of a round trip is longer than 64 KiB | the call fails before a
/// callback is called | No unbounded memory
#[tokio::test]
async fn a_state_of_sixty_four_kibibytes_goes_back_and_one_byte_more_is_refused() {
    for (bytes, fits) in [
        (MAX_STATE_BYTES - STATE_OVERHEAD_BYTES, true),
        (MAX_STATE_BYTES - STATE_OVERHEAD_BYTES + 1, false),
        (10 << 20, false),
    ] {
        let test_env = TestEnv::new();
        let (callback, requests) = counting_callback();
        let server = asking_fixture(&test_env, "--ask-elicit").with("--state-bytes", bytes);
        let host = host_with_callback(&test_env, server.config_entry(), callback).await;
        let outcome = call(&host).await;
        if fits {
            outcome.unwrap();
            let state = test_env.journal().params("tools/call")[1]["requestState"].clone();
            assert_eq!(state.as_str().unwrap().len() + 2, MAX_STATE_BYTES);
        } else {
            let error = protocol_error(outcome);
            assert!(matches!(error, ProtocolError::InvalidResult(_)), "{bytes}: {error:?}");
            assert!(requests.lock().unwrap().is_empty(), "{bytes}: somebody was asked");
        }
        host.shutdown().await;
    }
}

/// Proves: FR5.3
#[tokio::test]
async fn without_anybody_who_answers_the_call_fails_and_says_what_was_asked_for() {
    let test_env = TestEnv::new();
    let server = asking_fixture(&test_env, "--ask-sampling").switch("--ask-anyway");
    let host = start_host(&test_env, [("a", server.config_entry())]).await;
    match protocol_error(call(&host).await) {
        ProtocolError::InputDenied { method, .. } => {
            assert_eq!(&*method, "sampling/createMessage");
        }
        other => panic!("another fault: {other:?}"),
    }
    assert_eq!(test_env.journal().count("tools/call"), 1);
    host.shutdown().await;
}

#[tokio::test]
async fn no_callback_is_called_if_one_of_the_requests_has_none() {
    let test_env = TestEnv::new();
    let server =
        asking_fixture(&test_env, "--ask-roots").switch("--ask-sampling").switch("--ask-anyway");
    let (callback, requests) = counting_callback();
    let builder = builder(test_env.config_from(&config_json([("a", server.config_entry())])));
    let host = builder.callback(&CallbackCapabilities::roots(), callback).start().await.unwrap();
    let error = protocol_error(call(&host).await).to_string();
    assert!(error.contains("`sampling/createMessage`"), "{error}");
    assert!(requests.lock().unwrap().is_empty());
    host.shutdown().await;
}

/// Proves: TR4.6
#[tokio::test]
async fn an_application_that_refuses_or_panics_ends_the_call_and_nothing_else() {
    let test_env = TestEnv::new();
    let panics = Arc::new(AtomicUsize::new(0));
    let callback = {
        let panics = panics.clone();
        move |_: ServerRequest| {
            let number = panics.fetch_add(1, Ordering::Relaxed);
            assert!(number != 1, "at once, as this test wants it");
            async move {
                match number {
                    0 => Err(CallbackError::new(-1, "the user said no")),
                    2 => panic!("later, as this test wants it"),
                    _ => Ok(json!({"action": "accept"})),
                }
            }
        }
    };
    let host = host_with_callback(
        &test_env,
        asking_fixture(&test_env, "--ask-elicit").config_entry(),
        callback,
    )
    .await;
    for reason in ["the user said no", "panicked", "panicked"] {
        let error = protocol_error(call(&host).await).to_string();
        assert!(error.contains("`elicitation/create`") && error.contains(reason), "{error}");
    }
    call(&host).await.unwrap();
    host.shutdown().await;
}

#[tokio::test]
async fn the_time_of_a_call_does_not_run_while_the_application_thinks() {
    let test_env = TestEnv::new();
    let callback = |_| async {
        sleep(Duration::from_secs(1)).await;
        Ok(json!({"action": "accept"}))
    };
    let server = asking_fixture(&test_env, "--ask-elicit")
        .config_key("timeout", 0.5)
        .config_key("maxTotalTimeout", 30);
    let host = host_with_callback(&test_env, server.config_entry(), callback).await;
    let started_at = Instant::now();
    call(&host).await.unwrap();
    assert!(started_at.elapsed() >= Duration::from_secs(1));
    host.shutdown().await;
}

#[tokio::test]
async fn an_application_that_never_answers_costs_the_longest_time_of_a_call_and_not_the_server() {
    let test_env = TestEnv::new();
    let callback = |_: ServerRequest| std::future::pending();
    let server = asking_fixture(&test_env, "--ask-elicit")
        .config_key("timeout", 0.5)
        .config_key("maxTotalTimeout", 1);
    let server = server.config_key("unavailableAfterTimeouts", 1);
    let host = host_with_callback(&test_env, server.config_entry(), callback).await;
    for _ in 0..2 {
        let started_at = Instant::now();
        let error = call(&host).await.unwrap_err();
        let second = Duration::from_secs(1);
        assert!(
            matches!(error, CallError::Timeout { timeout, .. } if timeout == second),
            "{error:?}"
        );
        let elapsed = started_at.elapsed();
        assert!(elapsed >= second && elapsed < TEST_TIMEOUT, "{elapsed:?}");
    }
    host.shutdown().await;
}

#[tokio::test]
async fn a_dropped_call_cancels_its_callback() {
    let test_env = TestEnv::new();
    let (requested, mut alive) = tokio::sync::mpsc::channel::<()>(1);
    let callback = move |_: ServerRequest| {
        let requested = requested.clone();
        async move {
            requested.send(()).await.unwrap();
            std::future::pending().await
        }
    };
    let host = host_with_callback(
        &test_env,
        asking_fixture(&test_env, "--ask-elicit").config_entry(),
        callback,
    )
    .await;
    tokio::select! {
        called = call(&host) => panic!("nobody has answered: {called:?}"),
        asked = alive.recv() => asked.unwrap(),
    }
    host.set_callback(&CallbackCapabilities::all(), None);
    // Without the registered callback, only a running callback still holds the sender.
    let dropped = tokio::time::timeout(TEST_TIMEOUT, alive.recv()).await;
    assert_eq!(dropped.expect("the answer is still being made"), None);
    assert_eq!(test_env.journal().count("tools/call"), 1);
    host.shutdown().await;
}

#[tokio::test]
async fn a_dropped_call_cancels_the_callback_of_the_call() {
    let test_env = TestEnv::new();
    let (requested, mut alive) = tokio::sync::mpsc::channel::<()>(1);
    let of_host = |request: ServerRequest| async move { panic!("{request:?}") };
    let entry = asking_fixture(&test_env, "--ask-elicit").config_entry();
    let host = host_with_callback(&test_env, entry, of_host).await;
    let of_call = move |_: ServerRequest| {
        let requested = requested.clone();
        async move {
            requested.send(()).await.unwrap();
            std::future::pending().await
        }
    };
    let options = CallOptions { callback: Some(Arc::new(of_call)), ..CallOptions::default() };
    tokio::select! {
        called = host.call_tool_with("a.pid", (), options) => panic!("no response: {called:?}"),
        asked = alive.recv() => asked.unwrap(),
    }
    let dropped = tokio::time::timeout(TEST_TIMEOUT, alive.recv()).await;
    assert_eq!(dropped.expect("the callback still runs"), None);
    assert_eq!(test_env.journal().count("tools/call"), 1);
    host.shutdown().await;
}
