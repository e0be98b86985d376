//! Health of servers: causes of unavailability, status and recovery.

use std::time::{Duration, SystemTime};

use innkeeper_host::error::UnavailableReason;
use innkeeper_host::shutdown::StopStage;
use innkeeper_host::{CallError, Host, HostEvent, RestartError, ServerState};
use innkeeper_testkit::{RecordedRequest, RemoteServer};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::setup::{TEST_TIMEOUT, TestEnv, builder, drain_events, result_text, wait_for_event};

fn message_arguments(message: &str) -> Value {
    json!({"message": message})
}

/// Makes a call that times out.
async fn call_until_timeout(host: &Host, server: &str) {
    let tool = format!("{server}.sleep");
    let error = host.call_tool(&tool, json!({"ms": 60_000})).await.unwrap_err();
    assert!(matches!(error, CallError::Timeout { .. }), "{error}");
}

/// Kills the process of a server and waits until the host reports the server as unavailable.
async fn kill_server(host: &Host, server: &str) -> u32 {
    let mut events = host.events();
    let pid = host.status()[server].pid.unwrap();
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
    wait_for_event(&mut events, |event| matches!(event, HostEvent::Unavailable { .. })).await;
    pid
}

/// Advances the clock for all timers.
async fn advance_time(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// Proves: FR6.2
#[tokio::test]
async fn only_a_success_moves_the_time_of_the_last_success() {
    const CALL_INTERVAL: Duration = Duration::from_millis(200);
    let test_env = TestEnv::new();
    let fixture = test_env
        .fixture("one")
        .config_key("timeout", 0.2)
        .config_key("unavailableAfterTimeouts", 9);
    let host = test_env.start([fixture]).await.unwrap();
    let last = || host.status()["one"].last_success;
    assert_eq!(last(), None);
    let before = SystemTime::now();
    host.call_tool("one.echo", message_arguments("hi")).await.unwrap();
    let first = last().unwrap();
    assert!(before <= first && first <= SystemTime::now());
    // The host computes the time from a monotonic clock, so it varies slightly.
    let moved = || last().unwrap().duration_since(first).unwrap_or_default() >= CALL_INTERVAL / 2;
    call_until_timeout(&host, "one").await;
    assert!(!moved(), "by a time-out");
    assert!(host.call_tool("one.fail", json!({})).await.unwrap().is_error());
    assert!(!moved(), "by an error of the tool");
    host.call_tool("one.echo", json!({})).await.unwrap_err();
    assert!(!moved(), "by arguments that do not fit");
    host.call_tool("one.echo", message_arguments("again")).await.unwrap();
    assert!(moved());
    host.shutdown().await;
}

/// Attack: flow control | a server does not respond to a call | the server is unavailable; another
/// server is not affected | Isolation
/// Proves: FR6.6, FR6.7, N27
#[tokio::test]
async fn a_call_without_an_answer_in_time_takes_its_server_out_and_no_other() {
    let test_env = TestEnv::new();
    let servers = [test_env.fixture("one").config_key("timeout", 0.1), test_env.fixture("other")];
    let host = test_env.start(servers).await.unwrap();
    let mut events = host.events();
    call_until_timeout(&host, "one").await;
    let status = &host.status()["one"];
    assert_eq!(status.state, ServerState::Unavailable);
    assert_eq!(status.reason.as_deref(), Some("a call timed out"));
    assert!(status.pid.is_some(), "it may still be at work");
    assert!(host.catalog().server("one").is_none());
    let catalog = host.catalog();
    let servers: Vec<&str> = catalog.servers().map(|(name, _)| name).collect();
    assert_eq!(servers, ["other"]);
    assert!(catalog.tool_names().all(|name| name.starts_with("other.")));
    let error = host.call_tool("one.echo", message_arguments("hi")).await.unwrap_err();
    assert_eq!(error.server(), Some("one"));
    let CallError::Unavailable { reason, may_have_run, .. } = error else { panic!("{error}") };
    assert_eq!((reason, may_have_run), (UnavailableReason::Unresponsive { calls: 1 }, false));
    assert_eq!(
        result_text(&host.call_tool("other.echo", message_arguments("hi")).await.unwrap()),
        "hi"
    );
    wait_for_event(&mut events, |event| matches!(event, HostEvent::Unavailable { .. })).await;
    let report = host.shutdown().await;
    assert_ne!(report.servers[0].stage, StopStage::AlreadyGone);
    test_env.assert_gone().await;
}

/// Proves: FR6.3
#[tokio::test]
async fn one_timeout_makes_a_server_unavailable_or_as_many_in_a_row_as_configured() {
    let test_env = TestEnv::new();
    let fixture = test_env
        .fixture("one")
        .config_key("timeout", 0.1)
        .config_key("unavailableAfterTimeouts", 2);
    let default = test_env.fixture("default").config_key("timeout", 0.1);
    let host = test_env.start([fixture, default]).await.unwrap();
    call_until_timeout(&host, "default").await;
    assert_eq!(host.status()["default"].state, ServerState::Unavailable);
    for tool in ["one.echo", "one.fail"] {
        call_until_timeout(&host, "one").await;
        host.call_tool(tool, message_arguments("it is there")).await.unwrap();
    }
    call_until_timeout(&host, "one").await;
    assert_eq!(host.status()["one"].state, ServerState::Ready);
    call_until_timeout(&host, "one").await;
    assert_eq!(host.status()["one"].state, ServerState::Unavailable);
    let reason = host.status()["one"].reason.clone().unwrap();
    assert_eq!(reason, "2 consecutive calls timed out");
    host.restart_server("one").await.unwrap();
    call_until_timeout(&host, "one").await;
    assert_eq!(host.status()["one"].state, ServerState::Ready, "it begins anew");
    host.shutdown().await;
}

/// Starts a host that pings `one` after the timeouts of calls, which take 0.3 s.
async fn start_with_pings(test_env: &TestEnv, entry: Value) -> Host {
    let config = test_env.config_from(&json!({"servers": {"one": entry}}));
    builder(config).ping_unresponsive(true).start().await.unwrap()
}

#[tokio::test]
async fn a_server_with_slow_calls_stays_ready_if_it_responds_to_a_ping_in_either_era() {
    for (era, ping) in [("legacy", "ping"), ("modern", "server/discover")] {
        let test_env = TestEnv::new();
        let fixture = test_env.fixture("one").with("--era", era).config_key("timeout", 0.3);
        let host = start_with_pings(&test_env, fixture.config_entry()).await;
        let before = test_env.journal().count(ping);
        call_until_timeout(&host, "one").await;
        test_env.wait_for_journal(|journal| journal.count(ping) > before).await;
        // The server responds to the ping before this call.
        host.call_tool("one.echo", message_arguments("after the ping")).await.unwrap();
        assert_eq!(host.status()["one"].state, ServerState::Ready, "{era}");
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_server_that_does_not_respond_to_a_ping_either_becomes_unavailable() {
    let test_env = TestEnv::new();
    let fixture = test_env.fixture("one").switch("--stop-self").config_key("timeout", 0.3);
    let host = start_with_pings(&test_env, fixture.config_entry()).await;
    let mut events = host.events();
    call_until_timeout(&host, "one").await;
    wait_for_event(&mut events, |event| matches!(event, HostEvent::Unavailable { .. })).await;
    let reason = host.status()["one"].reason.clone();
    assert_eq!(reason.as_deref(), Some("a call timed out"));
    host.shutdown().await;
}

#[tokio::test]
async fn a_ping_of_a_modern_remote_server_has_the_headers_of_each_request_once() {
    let test_env = TestEnv::new();
    let fixture = test_env.fixture("one").with("--era", "modern").config_key("timeout", 0.3);
    let remote = RemoteServer::for_fixture(fixture).start().await;
    let host = start_with_pings(&test_env, remote.config_entry()).await;
    call_until_timeout(&host, "one").await;
    let discovers = |requests: &[RecordedRequest]| {
        requests.iter().filter(|request| request.rpc_method() == Some("server/discover")).count()
    };
    let requests = remote.wait_for(TEST_TIMEOUT, |requests| discovers(requests) == 2).await;
    for request in requests.iter().filter(|request| request.method == "POST") {
        let method = request.rpc_method().unwrap();
        for (name, value) in [("mcp-method", method), ("mcp-protocol-version", "2026-07-28")] {
            let values = request.headers.iter().filter(|(key, _)| key == name);
            let values: Vec<&str> = values.map(|(_, value)| value.as_str()).collect();
            assert_eq!(values, [value], "{request:?}");
        }
    }
    host.shutdown().await;
}

/// Proves: FR6.5
#[tokio::test]
async fn a_server_that_died_stays_so_until_it_is_asked_for() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one"), test_env.fixture("other")]).await.unwrap();
    let other = host.status()["other"].pid;
    let connection = || host.catalog().server("one")?.connection_number();
    let first_connection = connection().unwrap();
    assert_ne!(host.catalog().server("other").unwrap().connection_number(), connection());
    let first = kill_server(&host, "one").await;
    assert_eq!(connection(), None);
    let mut events = host.events();
    advance_time(Duration::from_secs(60)).await;
    // Gives woken tasks time to run.
    host.call_tool("other.sleep", json!({"ms": 200})).await.unwrap();
    let launched = |event: &HostEvent| matches!(event, HostEvent::Launching { .. });
    assert!(!drain_events(&mut events).iter().any(launched));
    assert_eq!(test_env.journal().for_server("one").pids(), [first]);
    assert_eq!(host.status()["one"].state, ServerState::Unavailable);
    host.restart_server("one").await.unwrap();
    let second = host.status()["one"].pid.unwrap();
    assert_ne!(first, second);
    assert!(connection().unwrap() > first_connection);
    assert_eq!(host.status()["one"].reason, None);
    assert_eq!(
        result_text(&host.call_tool("one.echo", message_arguments("back")).await.unwrap()),
        "back"
    );
    assert!(host.catalog().server("one").is_some());
    assert_eq!(host.status()["other"].pid, other, "its neighbour went on");
    assert!(host.shutdown().await.is_clean());
    test_env.assert_gone().await;
}

#[tokio::test]
async fn a_running_server_is_stopped_in_order_before_it_is_started_again() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one")]).await.unwrap();
    let first = host.status()["one"].pid.unwrap();
    let (restarted, at_once) = tokio::join!(host.restart_server("one"), host.restart_server("one"));
    restarted.unwrap();
    at_once.unwrap();
    let journal = test_env.journal();
    let pids = journal.for_server("one").pids();
    assert_eq!(pids.len(), 3, "one restart after the other");
    assert_eq!(pids[0], first);
    assert_eq!(host.status()["one"].pid, Some(pids[2]));
    assert_eq!(journal.for_server("one").events("stdin_eof").len(), 2, "they left by themselves");
    assert!(host.shutdown().await.is_clean());
    assert!(matches!(host.restart_server("one").await, Err(RestartError::Shutdown)));
    test_env.assert_gone().await;
}

/// Proves: FR6.1
#[tokio::test]
async fn a_server_is_starting_then_ready_then_unavailable_and_at_the_end_shut_down() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one").with("--start-delay", 300)]).await.unwrap();
    let state = || host.status()["one"].state;
    let mut states = vec![state()];
    kill_server(&host, "one").await;
    states.push(state());
    let mut events = host.events();
    let restart = async {
        wait_for_event(&mut events, |event| matches!(event, HostEvent::Launching { .. })).await;
        let error = host.call_tool("one.echo", message_arguments("hi")).await.unwrap_err();
        assert!(error.to_string().contains("still starting"), "{error}");
        state()
    };
    let (result, starting) = tokio::join!(host.restart_server("one"), restart);
    result.unwrap();
    states.extend([starting, state()]);
    host.shutdown().await;
    states.push(state());
    let state_names: Vec<_> = states.iter().map(|state| state.as_str()).collect();
    assert_eq!(state_names, ["ready", "unavailable", "starting", "ready", "shutdown"]);
}

#[tokio::test]
async fn a_restart_that_fails_leaves_the_server_unavailable_with_the_reason() {
    let test_env = TestEnv::new();
    let program = test_env.path("program");
    std::fs::copy(innkeeper_testkit::fixture_program(), &program).unwrap();
    let fixture = test_env.fixture("one").config_key("command", program.to_str().unwrap());
    let host = test_env.start([fixture, test_env.fixture("other")]).await.unwrap();
    std::fs::remove_file(&program).unwrap();
    let error = host.restart_server("one").await.unwrap_err();
    assert!(matches!(&error, RestartError::Failed(failure) if &*failure.server == "one"));
    let status = &host.status()["one"];
    assert_eq!(status.state, ServerState::Unavailable);
    assert!(status.reason.as_ref().unwrap().starts_with("start failed"), "{status:?}");
    host.call_tool("other.echo", message_arguments("hi")).await.unwrap();
    let error = host.restart_server("two").await.unwrap_err();
    assert_eq!(error.to_string(), "no server `two`");
    host.shutdown().await;
}

#[tokio::test]
async fn a_host_that_is_shut_down_during_a_restart_leaves_nothing_behind() {
    let test_env = TestEnv::new();
    let slow = test_env.fixture("one").with("--start-delay", 400);
    let host = builder(test_env.config([slow])).start().await.unwrap();
    let mut events = host.events();
    let shutdown = async {
        wait_for_event(&mut events, |event| matches!(event, HostEvent::Launching { .. })).await;
        host.shutdown().await
    };
    let (result, report) = tokio::join!(host.restart_server("one"), shutdown);
    assert!(matches!(result, Err(RestartError::Shutdown)), "{result:?}");
    assert_eq!(report.servers.len(), 1);
    assert_eq!(host.status()["one"].state, ServerState::Shutdown);
    test_env.assert_gone().await;
}

/// Proves: FR6.8
#[tokio::test]
async fn no_server_is_probed() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one")]).await.unwrap();
    let received =
        || test_env.journal().entries.iter().filter(|entry| entry.event == "recv").count();
    host.call_tool("one.echo", message_arguments("before")).await.unwrap();
    let before = received();
    advance_time(Duration::from_secs(600)).await;
    // The second call is sent after the woken tasks have run.
    for message in ["after", "and again"] {
        host.call_tool("one.echo", message_arguments(message)).await.unwrap();
    }
    assert_eq!(received(), before + 2);
    host.shutdown().await;
}
