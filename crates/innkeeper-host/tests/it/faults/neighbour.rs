//! A faulty server does not affect calls to its neighbour.

use std::time::Duration;

use innkeeper_host::{CallError, CallOptions, Host};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{tagged_config, with_timeout};
use crate::setup::{TEST_TIMEOUT, TestEnv, builder, result_text};
use crate::shell_server::ShellServer;

/// Minimum number of calls to the neighbour before and during the fault.
const MIN_CALLS: usize = 300;

/// Minimum limit for the 99th percentile during a fault, however fast the calls were before: tests
/// on two shared cores may wait this long for a core.
const MIN_ALLOWED_P99: Duration = Duration::from_millis(250);

/// Minimum duration of the fault.
const MIN_FAULT_DURATION: Duration = Duration::from_millis(500);

/// The configuration entry of a faulty server and the tool that triggers the fault.
struct FaultyServer {
    entry: Value,
    tool: &'static str,
    arguments: Value,
}

fn faulty_fixture(test_env: &TestEnv, switches: &[&str]) -> FaultyServer {
    let mut server = test_env.fixture("sh").config_key("unavailableAfterTimeouts", 1000);
    for switch in switches {
        server = match switch.split_once('=') {
            Some((name, value)) => server.with(name, value),
            None => server.switch(switch),
        };
    }
    let server = server.config_key("shutdownTimeout", 0.5);
    FaultyServer {
        entry: server.config_entry(),
        tool: "sh.echo",
        arguments: json!({"message": "hi"}),
    }
}

fn faulty_shell(test_env: &TestEnv, on_call: &str) -> FaultyServer {
    let file = tagged_config(test_env, &ShellServer { on_call, ..ShellServer::default() });
    FaultyServer { entry: file["servers"]["sh"].clone(), tool: "sh.any", arguments: json!({}) }
}

/// Returns the 99th percentile of the duration of calls to the neighbour; no call may fail.
async fn measure_p99(host: &Host, until: impl Fn(usize) -> bool) -> Duration {
    let mut times = Vec::new();
    while !until(times.len()) {
        let started_at = Instant::now();
        let options = CallOptions { retries: Some(0), ..with_timeout(TEST_TIMEOUT) };
        let result = host.call_tool_with("well.echo", json!({"message": "hi"}), options).await;
        times.push(started_at.elapsed());
        assert_eq!(result_text(&result.unwrap()), "hi");
    }
    times.sort_unstable();
    times[times.len() * 99 / 100]
}

/// Measures calls to the neighbour before and during repeated faults of the other server, and
/// compares the results.
#[expect(clippy::print_stdout, reason = "what was measured is read from the output of a test")]
async fn assert_neighbour_unaffected(
    name: &str,
    faulty_server: impl FnOnce(&TestEnv) -> FaultyServer,
) {
    let test_env = TestEnv::new();
    let FaultyServer { entry, tool, arguments } = faulty_server(&test_env);
    let neighbour = test_env.fixture("well").config_entry();
    let config = test_env.config_from(&json!({"servers": {"sh": entry, "well": neighbour}}));
    let host = builder(config).start().await.unwrap();
    let before = measure_p99(&host, |calls| calls >= MIN_CALLS).await;
    let faults = async {
        loop {
            let options = CallOptions { retries: Some(0), ..with_timeout(Duration::from_secs(2)) };
            // The test of each fault checks its result; here the host only restarts an unavailable
            // server.
            let result = host.call_tool_with(tool, arguments.clone(), options).await;
            if let Err(CallError::Unavailable { .. }) = result {
                host.restart_server("sh").await.unwrap();
            }
        }
    };
    let started_at = Instant::now();
    let calling = measure_p99(&host, |calls| {
        calls >= MIN_CALLS && started_at.elapsed() >= MIN_FAULT_DURATION
    });
    let during = tokio::select! {
        during = calling => during,
        () = faults => Duration::MAX,
    };
    let ratio = during.as_secs_f64() / before.as_secs_f64();
    println!("{name}: p99 {before:?} before, {during:?} during, {ratio:.1} times");
    let max = (before * 2).max(MIN_ALLOWED_P99);
    assert!(during <= max, "{name}: p99 {before:?} before, {during:?} during");
    host.shutdown().await;
    test_env.assert_gone().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_whose_answers_are_no_json() {
    let faulty_server = |test_env: &TestEnv| faulty_fixture(test_env, &["--malformed=truncated"]);
    assert_neighbour_unaffected("of_a_server_whose_answers_are_no_json", faulty_server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_among_noise() {
    let faulty_server = |test_env: &TestEnv| faulty_fixture(test_env, &["--noise=900"]);
    assert_neighbour_unaffected("of_a_server_among_noise", faulty_server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_with_lines_without_end() {
    let faulty_server = |test_env: &TestEnv| faulty_fixture(test_env, &["--endless-line=67108864"]);
    assert_neighbour_unaffected("of_a_server_with_lines_without_end", faulty_server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_with_big_results() {
    let faulty_server = |test_env: &TestEnv| faulty_fixture(test_env, &["--huge=8388608"]);
    assert_neighbour_unaffected("of_a_server_with_big_results", faulty_server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_that_floods_with_log_messages() {
    let faulty_server = |test_env: &TestEnv| faulty_fixture(test_env, &["--log-flood=20000"]);
    assert_neighbour_unaffected("of_a_server_that_floods_with_log_messages", faulty_server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_that_floods_stderr() {
    let faulty_server =
        |test_env: &TestEnv| faulty_shell(test_env, "yes 'noise on stderr' | head -c 52428800 >&2");
    assert_neighbour_unaffected("of_a_server_that_floods_stderr", faulty_server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_whose_lists_always_change() {
    let faulty_server = |test_env: &TestEnv| FaultyServer {
        tool: "sh.grow",
        arguments: json!({"what": "tools"}),
        ..faulty_fixture(test_env, &["--list-changed", "--list-changed-burst=20000"])
    };
    assert_neighbour_unaffected("of_a_server_whose_lists_always_change", faulty_server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_that_hangs() {
    let faulty_server = |test_env: &TestEnv| faulty_fixture(test_env, &["--hang-calls"]);
    assert_neighbour_unaffected("of_a_server_that_hangs", faulty_server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_that_stops_reading() {
    let faulty_server = |test_env: &TestEnv| FaultyServer {
        arguments: json!({"message": "x".repeat(1 << 20)}),
        ..faulty_fixture(test_env, &["--stop-reading"])
    };
    assert_neighbour_unaffected("of_a_server_that_stops_reading", faulty_server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_that_crashes() {
    let faulty_server = |test_env: &TestEnv| faulty_fixture(test_env, &["--crash-after=1"]);
    assert_neighbour_unaffected("of_a_server_that_crashes", faulty_server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_that_closes_its_output() {
    let faulty_server = |test_env: &TestEnv| faulty_fixture(test_env, &["--close-stdout"]);
    assert_neighbour_unaffected("of_a_server_that_closes_its_output", faulty_server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_that_spins() {
    let faulty_server = |test_env: &TestEnv| faulty_fixture(test_env, &["--spin"]);
    assert_neighbour_unaffected("of_a_server_that_spins", faulty_server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_that_forks() {
    let faulty_server = |test_env: &TestEnv| faulty_fixture(test_env, &["--fork-loop=100"]);
    assert_neighbour_unaffected("of_a_server_that_forks", faulty_server).await;
}
