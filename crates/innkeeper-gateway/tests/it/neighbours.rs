//! Calls of a client beside a misbehaving server, and beside a misbehaving client of the same server.

use std::time::Duration;

use axum::Router;
use innkeeper_host::HostEvent;
use innkeeper_testkit::{Fixture, Journal};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tower::ServiceExt;

use crate::limits::request;
use crate::setup::{TEST_TIMEOUT, TestClient, TestEnv, TestGateway, text};

/// Maximum duration of a call to the healthy server: a hundred times what it takes on an idle
/// machine.
const MAX_CALL: Duration = Duration::from_secs(1);

/// Number of measured calls.
const CALLS: usize = 25;

/// Number of clients that call the misbehaving server all the time.
const DISTURBING_CLIENTS: usize = 2;

/// Minimum number of responses of the misbehaving server during the measured calls.
const DISTURBING_RESPONSES: u32 = 3;

/// Calls a healthy server, and returns the duration of the longest call.
async fn longest_call(client: &mut TestClient, name: &str) -> Duration {
    let mut longest = Duration::ZERO;
    for number in 0..CALLS {
        let started = Instant::now();
        let message = format!("call {number}");
        assert_eq!(client.call(name, json!({ "message": message })).await, message);
        longest = longest.max(started.elapsed());
    }
    longest
}

/// Waits until the server with the journal has received a message.
async fn wait_for_message(test_env: &TestEnv, method: &str) {
    let received = |journal: &Journal| journal.count(method) > 0;
    Journal::wait_for(&test_env.journal(), TEST_TIMEOUT, received).await;
}

/// What the clients of the misbehaving server see.
#[derive(Clone, Copy, Debug)]
enum Disturbance {
    /// Calls get no response.
    Silence,
    /// Calls get responses or errors.
    Responses,
}

/// Calls a healthy server while other clients call a server with a fault.
async fn measure_beside(fault: impl FnOnce(Fixture) -> Fixture, disturbance: Disturbance) {
    let test_env = TestEnv::new();
    let faulty = fault(test_env.fixture("bad").journal(&test_env.journal()));
    let gateway = test_env.gateway([faulty, test_env.fixture("good")]).await;
    let (responses, mut seen) = watch::channel(0_u32);
    let mut disturbing = JoinSet::new();
    for number in 0..DISTURBING_CLIENTS {
        let mut client = gateway.initialized(&format!("loud-{number}"), json!({})).await;
        let responses = responses.clone();
        disturbing.spawn(async move {
            loop {
                let call = json!({ "name": "bad.echo", "arguments": { "message": "loud" } });
                client.respond("tools/call", call).await;
                client.waiting.clear();
                responses.send_modify(|count| *count += 1);
            }
        });
    }
    let mut quiet = gateway.initialized("quiet", json!({})).await;
    match disturbance {
        Disturbance::Silence => wait_for_message(&test_env, "tools/call").await,
        Disturbance::Responses => drop(seen.wait_for(|count| *count > 0).await.unwrap()),
    }
    let before = *responses.borrow();
    let is_disturbed = || match disturbance {
        Disturbance::Silence => true,
        Disturbance::Responses => *responses.borrow() >= before + DISTURBING_RESPONSES,
    };
    loop {
        let longest = longest_call(&mut quiet, "good.echo").await;
        assert!(longest < MAX_CALL, "{longest:?}");
        if is_disturbed() {
            break;
        }
        // A client without a response in time has failed.
        if let Some(ended) = disturbing.try_join_next() {
            ended.unwrap();
        }
    }
    disturbing.abort_all();
}

/// Attack: flow control | a server never responds | the calls of other servers take no longer | Isolation
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_hangs_does_not_slow_the_calls_of_another() {
    measure_beside(|server| server.switch("--hang-calls"), Disturbance::Silence).await;
}

/// Attack: flow control | a server reads no more input | the calls of other servers take no longer |
/// Isolation
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_reading_does_not_slow_the_calls_of_another() {
    measure_beside(|server| server.switch("--stop-reading"), Disturbance::Silence).await;
}

/// Attack: flow control | a server sends log messages and progress without a pause | the calls of other
/// servers take no longer | Isolation
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_floods_does_not_slow_the_calls_of_another() {
    let flood = |server: Fixture| {
        server.with("--log-flood", 5_000).with("--progress", 500).switch("--spin")
    };
    measure_beside(flood, Disturbance::Responses).await;
}

/// Attack: flow control | a server changes its lists without a pause | the calls of other servers take no
/// longer | Isolation
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_changes_its_lists_does_not_slow_the_calls_of_another() {
    let changes = |server: Fixture| server.switch("--relist-loop").with("--many-tools", 500);
    measure_beside(changes, Disturbance::Responses).await;
}

/// Attack: flow control | a server sends lines of 16 MB | the calls of other servers take no longer |
/// Isolation
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_large_lines_does_not_slow_the_calls_of_another() {
    for bytes in [15 << 20, 17 << 20] {
        measure_beside(|server| server.with("--huge", bytes), Disturbance::Responses).await;
    }
}

/// Attack: flow control | a server writes its responses slowly and in parts | the calls of other servers
/// take no longer | Isolation
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_server_does_not_slow_the_calls_of_another() {
    let slow = |server: Fixture| server.with("--slow", 600).with("--stall", 200);
    measure_beside(slow, Disturbance::Responses).await;
}

/// Attack: flow control | a server crashes at each call, and the host restarts it | the calls of other
/// servers take no longer | Isolation
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_crashes_in_a_loop_does_not_slow_the_calls_of_another() {
    let restart = json!({ "onFailure": { "max": 100 } });
    let crash = |server: Fixture| server.with("--crash-after", 1).config_key("restart", restart);
    measure_beside(crash, Disturbance::Responses).await;
}

/// Attack: flow control | a server exits at each call, and its next call starts it | the calls of other
/// servers take no longer | Isolation
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_exits_at_each_call_does_not_slow_the_calls_of_another() {
    let exit = |server: Fixture| server.with("--crash-after", 1).config_key("idleTimeout", 60);
    measure_beside(exit, Disturbance::Responses).await;
}

/// Starts a gateway with one server, and a client that behaves.
async fn one_server(test_env: &TestEnv, max_concurrent: u32) -> (TestGateway, TestClient) {
    let server = test_env
        .fixture("a")
        .config_key("maxConcurrent", max_concurrent)
        .journal(&test_env.journal());
    let gateway = test_env.gateway([server]).await;
    let quiet = gateway.initialized("quiet", json!({})).await;
    (gateway, quiet)
}

async fn start_sleep(client: &mut TestClient) -> Value {
    let call = json!({ "name": "a.sleep", "arguments": { "ms": 3_600_000 } });
    client.start("tools/call", call).await
}

/// Attack: remote | a client keeps more calls in flight than the server permits, and none ends |
/// another client gets its results | Isolation
#[tokio::test]
async fn a_client_with_all_permitted_calls_in_flight_leaves_some_for_another() {
    for max_concurrent in [2, 8] {
        let test_env = TestEnv::new();
        let (gateway, mut quiet) = one_server(&test_env, max_concurrent).await;
        let mut greedy = gateway.initialized("greedy", json!({})).await;
        for _ in 0..3 * max_concurrent {
            start_sleep(&mut greedy).await;
        }
        wait_for_message(&test_env, "tools/call").await;
        let longest = longest_call(&mut quiet, "a.echo").await;
        assert!(longest < MAX_CALL, "{longest:?}");
        let calls = Journal::read(&test_env.journal());
        let is_sleep = |params: &&&Value| params["name"] == "sleep";
        let running = calls.params("tools/call").iter().filter(is_sleep).count();
        // Three quarters of eight calls, and one of two.
        assert_eq!(running, if max_concurrent == 2 { 1 } else { 6 });
    }
}

/// Attack: remote | a client calls a tool that does not end in time | the server stays available for
/// another client | Isolation
#[tokio::test]
async fn a_call_that_times_out_does_not_take_the_server_from_another_client() {
    for era in ["legacy", "modern"] {
        let test_env = TestEnv::new();
        let server = test_env.fixture("a").with("--era", era).config_key("timeout", 0.5);
        let gateway = test_env.gateway([server]).await;
        let mut events = gateway.host.events();
        let mut greedy = gateway.initialized("greedy", json!({})).await;
        let mut quiet = gateway.initialized("quiet", json!({})).await;
        let slow = start_sleep(&mut greedy).await;
        let timed_out = greedy.response(&slow).await;
        assert_eq!(timed_out["error"]["data"]["kind"], "timeout", "{timed_out}");
        // Longer than the server has to respond to the ping.
        while timeout(MAX_CALL, events.recv()).await.is_ok() {}
        assert_eq!(quiet.call("a.echo", json!({ "message": era })).await, era);
    }
}

/// Attack: flow control | a server stops without an end of its process | its calls fail at once after the
/// first timeout | No unbounded wait
#[tokio::test]
async fn a_server_that_does_not_respond_at_all_is_unavailable_after_a_timeout() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").switch("--stop-self").config_key("timeout", 0.5);
    let gateway = test_env.gateway([server]).await;
    let mut events = gateway.host.events();
    let mut client = gateway.initialized("ada", json!({})).await;
    let call = json!({ "name": "a.pid", "arguments": {} });
    let timed_out = client.respond("tools/call", call.clone()).await;
    assert_eq!(timed_out["error"]["data"]["kind"], "timeout", "{timed_out}");
    let unavailable = timeout(TEST_TIMEOUT, async {
        while !matches!(events.recv().await.unwrap(), HostEvent::Unavailable { .. }) {}
    });
    unavailable.await.unwrap();
    let refused = client.respond("tools/call", call).await;
    assert_eq!(refused["error"]["message"], "server `a` is unavailable: a call timed out");
}

/// Attack: remote | a client sends many calls and reads no response | another client of the server
/// gets its results | Isolation
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_never_reads_does_not_stop_another_client_of_its_server() {
    let test_env = TestEnv::new();
    let (gateway, mut quiet) = one_server(&test_env, 8).await;
    let mut deaf = gateway.initialized("deaf", json!({})).await;
    for _ in 0..64 {
        let call = json!({ "name": "a.big", "arguments": { "bytes": 1 << 20 } });
        deaf.start("tools/call", call).await;
    }
    wait_for_message(&test_env, "tools/call").await;
    let longest = longest_call(&mut quiet, "a.echo").await;
    println!("longest call {longest:?}");
    assert!(longest < MAX_CALL, "{longest:?}");
}

/// Attack: remote | a client sends calls without a pause and cancels each | another client of the
/// server gets its results | Isolation
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_cancels_everything_does_not_stop_another_client_of_its_server() {
    let test_env = TestEnv::new();
    let (gateway, mut quiet) = one_server(&test_env, 8).await;
    let mut flood = JoinSet::new();
    for _ in 0..DISTURBING_CLIENTS {
        let mut client = gateway.initialized("loud", json!({})).await;
        flood.spawn(async move {
            loop {
                for _ in 0..64 {
                    let id = start_sleep(&mut client).await;
                    let cancelled = json!({ "requestId": id });
                    client.notify("notifications/cancelled", cancelled).await;
                }
                // The gateway has read all of them.
                client.request("ping", json!({})).await;
                client.waiting.clear();
            }
        });
    }
    wait_for_message(&test_env, "notifications/cancelled").await;
    let longest = longest_call(&mut quiet, "a.echo").await;
    println!("longest call {longest:?}");
    assert!(longest < MAX_CALL, "{longest:?}");
    flood.abort_all();
    assert!(flood.join_next().await.unwrap().unwrap_err().is_cancelled(), "it went on");
}

/// Opens a session, starts a call in it, and leaves both.
async fn leave_session(router: &Router) -> bool {
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} },
        "clientInfo": { "name": "test", "version": "1" } });
    let open = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let opened = router.clone().oneshot(request(None, open.to_string())).await.unwrap();
    let Some(session) = opened.headers().get("mcp-session-id") else { return false };
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": { "name": "a.echo", "arguments": { "message": "left" } } });
    let call = request(Some(session.to_str().unwrap()), call.to_string());
    let calling = router.clone().oneshot(call);
    let _ = timeout(Duration::from_millis(1), calling).await;
    true
}

/// Attack: remote | a client opens sessions without a pause, starts a call in each and leaves |
/// another client of the server gets its results | Isolation
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_leaves_its_sessions_does_not_stop_another_client_of_its_server() {
    let test_env = TestEnv::new();
    let (gateway, mut quiet) = one_server(&test_env, 8).await;
    let router = gateway.router();
    let (sessions, mut opened) = watch::channel(0);
    let mut flood = JoinSet::new();
    for _ in 0..DISTURBING_CLIENTS {
        let (router, sessions) = (router.clone(), sessions.clone());
        flood.spawn(async move {
            while leave_session(&router).await {
                sessions.send_modify(|count| *count += 1);
                // Without a network, no other point of the loop has to wait.
                tokio::task::yield_now().await;
            }
        });
    }
    opened.wait_for(|count| *count > 10).await.unwrap();
    let longest = longest_call(&mut quiet, "a.echo").await;
    println!("longest call {longest:?}, {} sessions", *sessions.borrow());
    assert!(longest < MAX_CALL, "{longest:?}");
    let result = quiet.request("tools/call", json!({ "name": "a.pid", "arguments": {} })).await;
    assert!(!text(&result).is_empty());
}
