//! A faulty server does not affect calls to its neighbour.

use std::cell::RefCell;
use std::time::Duration;

use innkeeper_host::{CallError, CallOptions, Host, HostEvent, ToolResult};
use innkeeper_testkit::tagged_processes;
use serde_json::{Value, json};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;
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

/// Maximum duration of the calls until a sign of the fault; the longest call takes 2 s.
const MAX_FAULT_DURATION: Duration = Duration::from_secs(30);

/// The configuration entry of a faulty server and the tool that triggers the fault.
struct FaultyServer {
    entry: Value,
    tool: &'static str,
    arguments: Value,
    /// Returns whether the fault came about.
    has_fault: fn(&FaultSigns) -> bool,
}

/// What the host saw of the faulty server.
#[derive(Debug, Default)]
struct FaultSigns {
    calls: usize,
    protocol_errors: usize,
    timeouts: usize,
    unavailable: usize,
    largest_result_bytes: usize,
    log_messages: usize,
    /// Tools in the catalog that were not there before the faults.
    new_tools: usize,
    stderr_bytes: usize,
    processes: usize,
}

impl FaultSigns {
    fn record(&mut self, result: &Result<ToolResult, CallError>) {
        self.calls += 1;
        match result {
            Ok(result) => {
                let bytes = result.raw().get().len();
                self.largest_result_bytes = self.largest_result_bytes.max(bytes);
            }
            Err(CallError::Protocol { .. }) => self.protocol_errors += 1,
            Err(CallError::Timeout { .. }) => self.timeouts += 1,
            Err(CallError::Unavailable { .. }) => self.unavailable += 1,
            Err(other) => panic!("another fault: {other}"),
        }
    }

    /// Counts the events since the last call; a flood may push some of them out.
    fn record_events(&mut self, events: &mut Receiver<HostEvent>) {
        loop {
            match events.try_recv() {
                Ok(HostEvent::Message { .. }) => self.log_messages += 1,
                Ok(_) | Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }
}

fn faulty_fixture(
    test_env: &TestEnv,
    switches: &[&str],
    has_fault: fn(&FaultSigns) -> bool,
) -> FaultyServer {
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
        has_fault,
    }
}

fn faulty_shell(
    test_env: &TestEnv,
    on_call: &str,
    has_fault: fn(&FaultSigns) -> bool,
) -> FaultyServer {
    let file = tagged_config(test_env, &ShellServer { on_call, ..ShellServer::default() });
    let entry = file["servers"]["sh"].clone();
    FaultyServer { entry, tool: "sh.any", arguments: json!({}), has_fault }
}

/// Returns the number of tools of the faulty server in the catalog. A flood pushes the events of the
/// changes out.
fn listed_tools(host: &Host) -> usize {
    let catalog = host.catalog();
    let listing = catalog.server("sh").and_then(|server| server.listing());
    listing.map_or(0, |listing| listing.tools.len())
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
    let FaultyServer { entry, tool, arguments, has_fault } = faulty_server(&test_env);
    let neighbour = test_env.fixture("well").config_entry();
    let config = test_env.config_from(&json!({"servers": {"sh": entry, "well": neighbour}}));
    let host = builder(config).start().await.unwrap();
    let before = measure_p99(&host, |calls| calls >= MIN_CALLS).await;
    let (mut events, tools_before) = (host.events(), listed_tools(&host));
    let signs = RefCell::new(FaultSigns::default());
    let faults = async {
        loop {
            let options = CallOptions { retries: Some(0), ..with_timeout(Duration::from_secs(2)) };
            let result = host.call_tool_with(tool, arguments.clone(), options).await;
            signs.borrow_mut().record(&result);
            signs.borrow_mut().record_events(&mut events);
            if !has_fault(&signs.borrow()) {
                let processes = tagged_processes(test_env.process_tag()).len();
                let stderr_bytes = host.status()["sh"].stderr.len();
                let mut signs = signs.borrow_mut();
                signs.processes = signs.processes.max(processes);
                signs.stderr_bytes = signs.stderr_bytes.max(stderr_bytes);
                signs.new_tools = listed_tools(&host).saturating_sub(tools_before);
            }
            if let Err(CallError::Unavailable { .. }) = result {
                host.restart_server("sh").await.unwrap();
            }
        }
    };
    let started_at = Instant::now();
    let calling = measure_p99(&host, |calls| {
        let is_long = calls >= MIN_CALLS && started_at.elapsed() >= MIN_FAULT_DURATION;
        is_long && (has_fault(&signs.borrow()) || started_at.elapsed() >= MAX_FAULT_DURATION)
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
    let signs = signs.borrow();
    println!("{name}: {signs:?}");
    assert!(has_fault(&signs), "{name}: {signs:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_whose_answers_are_no_json() {
    let faulty_server = |test_env: &TestEnv| {
        faulty_fixture(test_env, &["--malformed=truncated"], |signs| signs.protocol_errors > 0)
    };
    assert_neighbour_unaffected("of_a_server_whose_answers_are_no_json", faulty_server).await;
}

/// Attack: flow control | a server writes 900 lines of noise before each response | the calls to
/// another server are not affected | Isolation
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_among_noise() {
    let faulty_server =
        |test_env: &TestEnv| faulty_fixture(test_env, &["--noise=900"], |signs| signs.calls > 0);
    assert_neighbour_unaffected("of_a_server_among_noise", faulty_server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_with_lines_without_end() {
    let faulty_server = |test_env: &TestEnv| {
        faulty_fixture(test_env, &["--endless-line=67108864"], |signs| {
            signs.protocol_errors + signs.timeouts + signs.unavailable > 0
        })
    };
    assert_neighbour_unaffected("of_a_server_with_lines_without_end", faulty_server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_with_big_results() {
    let faulty_server = |test_env: &TestEnv| {
        faulty_fixture(test_env, &["--huge=8388608"], |signs| signs.largest_result_bytes > 8 << 20)
    };
    assert_neighbour_unaffected("of_a_server_with_big_results", faulty_server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_that_floods_with_log_messages() {
    let faulty_server = |test_env: &TestEnv| {
        faulty_fixture(test_env, &["--log-flood=20000"], |signs| signs.log_messages > 0)
    };
    assert_neighbour_unaffected("of_a_server_that_floods_with_log_messages", faulty_server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_that_floods_stderr() {
    let faulty_server = |test_env: &TestEnv| {
        faulty_shell(test_env, "yes 'noise on stderr' | head -c 52428800 >&2", |signs| {
            signs.stderr_bytes > 0
        })
    };
    assert_neighbour_unaffected("of_a_server_that_floods_stderr", faulty_server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_whose_lists_always_change() {
    let faulty_server = |test_env: &TestEnv| FaultyServer {
        tool: "sh.grow",
        arguments: json!({"what": "tools"}),
        ..faulty_fixture(test_env, &["--list-changed", "--list-changed-burst=20000"], |signs| {
            signs.new_tools > 0
        })
    };
    assert_neighbour_unaffected("of_a_server_whose_lists_always_change", faulty_server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_that_hangs() {
    let faulty_server = |test_env: &TestEnv| {
        faulty_fixture(test_env, &["--hang-calls"], |signs| signs.timeouts > 0)
    };
    assert_neighbour_unaffected("of_a_server_that_hangs", faulty_server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_that_stops_reading() {
    let faulty_server = |test_env: &TestEnv| FaultyServer {
        arguments: json!({"message": "x".repeat(1 << 20)}),
        ..faulty_fixture(test_env, &["--stop-reading"], |signs| signs.timeouts > 0)
    };
    assert_neighbour_unaffected("of_a_server_that_stops_reading", faulty_server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_that_crashes() {
    let faulty_server = |test_env: &TestEnv| {
        faulty_fixture(test_env, &["--crash-after=1"], |signs| signs.unavailable > 0)
    };
    assert_neighbour_unaffected("of_a_server_that_crashes", faulty_server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_that_closes_its_output() {
    let faulty_server = |test_env: &TestEnv| {
        faulty_fixture(test_env, &["--close-stdout"], |signs| signs.unavailable > 0)
    };
    assert_neighbour_unaffected("of_a_server_that_closes_its_output", faulty_server).await;
}

/// Attack: flow control | a server uses a whole core | the calls to another server are not affected
/// | Isolation
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_that_spins() {
    let faulty_server =
        |test_env: &TestEnv| faulty_fixture(test_env, &["--spin"], |signs| signs.calls > 0);
    assert_neighbour_unaffected("of_a_server_that_spins", faulty_server).await;
}

/// Attack: flow control | a server starts a chain of 100 processes | the calls to another server
/// are not affected | Isolation
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_that_forks() {
    let faulty_server = |test_env: &TestEnv| {
        faulty_fixture(test_env, &["--fork-loop=100"], |signs| signs.processes > 50)
    };
    assert_neighbour_unaffected("of_a_server_that_forks", faulty_server).await;
}
