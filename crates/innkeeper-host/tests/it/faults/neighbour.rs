//! Whatever one server does, calls to the one beside it are answered as before.

use std::time::Duration;

use innkeeper_host::{CallError, CallOptions, Host};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{marked, within};
use crate::setup::{PATIENCE, Scene, builder, text};
use crate::shell::Shell;

/// Calls to the neighbour before the fault, and at least as many during it.
const CALLS: usize = 300;

/// What no call to the neighbour but one in a hundred may take longer than during a fault, however
/// fast it was before: two cores shared with other tests can be away for so long.
const FLOOR: Duration = Duration::from_millis(250);

/// How long the fault goes on at least.
const LONG_ENOUGH: Duration = Duration::from_millis(500);

/// A server with a fault: its entry of the configuration, and the tool that brings the fault about.
struct Faulty {
    entry: Value,
    tool: &'static str,
    arguments: Value,
}

fn fx(scene: &Scene, switches: &[&str]) -> Faulty {
    let mut server = scene.fx("sh").key("unavailableAfterTimeouts", 1000);
    for switch in switches {
        server = match switch.split_once('=') {
            Some((name, value)) => server.with(name, value),
            None => server.switch(switch),
        };
    }
    let server = server.key("shutdownTimeout", 0.5);
    Faulty { entry: server.entry(), tool: "sh.echo", arguments: json!({"message": "hi"}) }
}

fn shell(scene: &Scene, on_call: &str) -> Faulty {
    let file = marked(scene, &Shell { on_call, ..Shell::default() });
    Faulty { entry: file["servers"]["sh"].clone(), tool: "sh.any", arguments: json!({}) }
}

/// The time that 99 of 100 calls to the neighbour did not exceed; none may fail.
async fn measured(host: &Host, until: impl Fn(usize) -> bool) -> Duration {
    let mut times = Vec::new();
    while !until(times.len()) {
        let began = Instant::now();
        let options = CallOptions { retries: Some(0), ..within(PATIENCE) };
        let result = host.call_tool_with("well.echo", json!({"message": "hi"}), options).await;
        times.push(began.elapsed());
        assert_eq!(text(&result.unwrap()), "hi");
    }
    times.sort_unstable();
    times[times.len() * 99 / 100]
}

/// Starts both servers, calls the neighbour, brings the fault about again and again while the
/// neighbour is called, and compares.
#[expect(clippy::print_stdout, reason = "what was measured is read from the output of a test")]
async fn beside(name: &str, faulty: impl FnOnce(&Scene) -> Faulty) {
    let scene = Scene::new();
    let Faulty { entry, tool, arguments } = faulty(&scene);
    let well = scene.fx("well").entry();
    let config = scene.config_of(&json!({"servers": {"sh": entry, "well": well}}));
    let host = builder(config).start().await.unwrap();
    let before = measured(&host, |calls| calls >= CALLS).await;
    let faults = async {
        loop {
            let options = CallOptions { retries: Some(0), ..within(Duration::from_secs(2)) };
            // How it ends is for the test of that fault; a server that is gone comes again.
            let result = host.call_tool_with(tool, arguments.clone(), options).await;
            if let Err(CallError::Unavailable { .. }) = result {
                host.restart_server("sh").await.unwrap();
            }
        }
    };
    let began = Instant::now();
    let calling = measured(&host, |calls| calls >= CALLS && began.elapsed() >= LONG_ENOUGH);
    let during = tokio::select! {
        during = calling => during,
        () = faults => Duration::MAX,
    };
    let ratio = during.as_secs_f64() / before.as_secs_f64();
    println!("{name}: p99 {before:?} before, {during:?} during, {ratio:.1} times");
    let most = (before * 2).max(FLOOR);
    assert!(during <= most, "{name}: p99 {before:?} before, {during:?} during");
    host.shutdown().await;
    scene.assert_gone().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_whose_answers_are_no_json() {
    let faulty = |scene: &Scene| fx(scene, &["--malformed=truncated"]);
    beside("of_a_server_whose_answers_are_no_json", faulty).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_among_noise() {
    let faulty = |scene: &Scene| fx(scene, &["--noise=900"]);
    beside("of_a_server_among_noise", faulty).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_with_lines_without_end() {
    let faulty = |scene: &Scene| fx(scene, &["--endless-line=67108864"]);
    beside("of_a_server_with_lines_without_end", faulty).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_with_big_results() {
    let faulty = |scene: &Scene| fx(scene, &["--huge=8388608"]);
    beside("of_a_server_with_big_results", faulty).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_that_floods_with_log_messages() {
    let faulty = |scene: &Scene| fx(scene, &["--log-flood=20000"]);
    beside("of_a_server_that_floods_with_log_messages", faulty).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_that_floods_stderr() {
    let faulty = |scene: &Scene| shell(scene, "yes 'noise on stderr' | head -c 52428800 >&2");
    beside("of_a_server_that_floods_stderr", faulty).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_whose_lists_always_change() {
    let faulty = |scene: &Scene| Faulty {
        tool: "sh.grow",
        arguments: json!({"what": "tools"}),
        ..fx(scene, &["--list-changed", "--list-changed-burst=20000"])
    };
    beside("of_a_server_whose_lists_always_change", faulty).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_that_hangs() {
    let faulty = |scene: &Scene| fx(scene, &["--hang-calls"]);
    beside("of_a_server_that_hangs", faulty).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_that_stops_reading() {
    let faulty = |scene: &Scene| Faulty {
        arguments: json!({"message": "x".repeat(1 << 20)}),
        ..fx(scene, &["--stop-reading"])
    };
    beside("of_a_server_that_stops_reading", faulty).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_that_crashes() {
    let faulty = |scene: &Scene| fx(scene, &["--crash-after=1"]);
    beside("of_a_server_that_crashes", faulty).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_that_closes_its_output() {
    let faulty = |scene: &Scene| fx(scene, &["--close-stdout"]);
    beside("of_a_server_that_closes_its_output", faulty).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_that_spins() {
    let faulty = |scene: &Scene| fx(scene, &["--spin"]);
    beside("of_a_server_that_spins", faulty).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_that_forks() {
    let faulty = |scene: &Scene| fx(scene, &["--fork-loop=100"]);
    beside("of_a_server_that_forks", faulty).await;
}
