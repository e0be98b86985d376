//! Hosts in separate processes: resource leaks, reaped children, killed hosts.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use innkeeper_host::{Config, Environment, HostBuilder, Supervisor};
use innkeeper_testkit::{
    Fixture, ProcessTag, fixture, mcp_json, open_fds, rss_kib, tagged_processes, thread_count,
    wait_gone, zombie_children,
};
use rustix::process::{Pid, Signal, WaitOptions, kill_process};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::setup::{LogCapture, TEST_TIMEOUT, TestEnv, builder, shim_path};

/// Environment variable with the test directory; set only in a process that a test started.
const DIRECTORY_VAR: &str = "INNKEEPER_TEST_ALONE";

/// Number of hosts that the test measures, after a few hosts that fill caches.
const HOST_COUNT: usize = 50;
const WARM_UP_HOSTS: usize = 5;

/// Returns the directory of the test that started this process, or `None` in the ordinary run.
fn inherited_directory() -> Option<PathBuf> {
    Environment::from_process().get(DIRECTORY_VAR).map(PathBuf::from)
}

/// Starts one test of this file in a separate process with the process tag of `test_env`.
#[expect(clippy::disallowed_methods, reason = "tests start processes of their own")]
fn rerun_in_process(test: &str, test_env: &TestEnv) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([&format!("alone::{test}"), "--exact", "--nocapture"])
        .env(DIRECTORY_VAR, test_env.path(""))
        .env(ProcessTag::VARIABLE, test_env.process_tag().as_str())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Panics with the output of the process unless the process ran its one test and passed.
fn assert_passed(child: Child) {
    let output = child.wait_with_output().unwrap();
    let [stdout, errors] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}\n{errors}");
}

/// A server that inherits the process tag from its host and writes to the journal of `directory`.
fn server_fixture(directory: &Path, name: &str) -> Fixture {
    fixture(name).journal(&directory.join("journal")).config_key("inheritEnv", true)
}

fn host_builder(directory: &Path, servers: impl IntoIterator<Item = Fixture>) -> HostBuilder {
    let environment = Environment::from_process();
    let file = mcp_json(servers);
    builder(Config::from_value(&file, "mcp.json", directory, &environment).unwrap())
}

/// Returns the numbers of open files and threads and the resident memory (KiB), after all children
/// have ended.
async fn resource_usage() -> (usize, usize, u64) {
    let quiet = async {
        while !zombie_children().is_empty() || thread_count() > 2 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    // After a timeout, resources that are still in use show up in the comparison.
    let _ = timeout(Duration::from_secs(2), quiet).await;
    (open_fds(), thread_count(), rss_kib())
}

/// Proves: FR2.11
#[tokio::test]
async fn fifty_lives_of_a_host_leave_descriptors_threads_and_memory_as_they_were() {
    let Some(directory) = inherited_directory() else {
        let test_env = TestEnv::new();
        let test = "fifty_lives_of_a_host_leave_descriptors_threads_and_memory_as_they_were";
        assert_passed(rerun_in_process(test, &test_env));
        return assert_eq!(wait_gone(test_env.process_tag(), Duration::from_secs(1)), Ok(()));
    };
    let live = async |supervisor: Supervisor| {
        let servers = [server_fixture(&directory, "one")];
        let host = host_builder(&directory, servers).supervisor(supervisor);
        let host = host.ledger(directory.join("ledger")).start().await.unwrap();
        host.call_tool("one.echo", json!({"message": "hi"})).await.unwrap();
        let report = host.shutdown().await;
        assert!(report.is_clean(), "{report:?}");
    };
    for _ in 0..WARM_UP_HOSTS {
        live(Supervisor::executable(shim_path())).await;
        live(Supervisor::Group).await;
    }
    let before = resource_usage().await;
    for _ in 0..HOST_COUNT / 2 {
        live(Supervisor::executable(shim_path())).await;
        live(Supervisor::Group).await;
    }
    let after = resource_usage().await;
    println!("descriptors, threads, KiB: {before:?}, then {after:?}");
    assert_eq!((after.0, after.1), (before.0, before.1));
    assert!(after.2.abs_diff(before.2) <= 2 << 10, "{} KiB, then {} KiB", before.2, after.2);
    assert_eq!(zombie_children(), Vec::<u32>::new());
    assert_eq!(std::fs::read_dir(directory.join("ledger")).unwrap().count(), 0);
}

/// Proves: TR2.5
#[tokio::test]
async fn an_application_that_reaps_every_child_itself_disturbs_neither_start_nor_stop() {
    let Some(directory) = inherited_directory() else {
        let test_env = TestEnv::new();
        let test = "an_application_that_reaps_every_child_itself_disturbs_neither_start_nor_stop";
        assert_passed(rerun_in_process(test, &test_env));
        return assert_eq!(wait_gone(test_env.process_tag(), Duration::from_secs(1)), Ok(()));
    };
    std::thread::spawn(|| {
        loop {
            let _ = rustix::process::wait(WaitOptions::NOHANG);
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    for supervisor in [Supervisor::executable(shim_path()), Supervisor::Group] {
        let servers = [
            server_fixture(&directory, "one"),
            server_fixture(&directory, "two").with("--crash-after", 1),
            server_fixture(&directory, "three")
                .switch("--ignore-eof")
                .config_key("shutdownTimeout", 0.2),
        ];
        let host = host_builder(&directory, servers).supervisor(supervisor).start().await.unwrap();
        host.call_tool("one.echo", json!({"message": "hi"})).await.unwrap();
        host.call_tool("two.echo", json!({"message": "hi"})).await.unwrap_err();
        let started_at = Instant::now();
        let report = host.shutdown().await;
        assert!(started_at.elapsed() < Duration::from_secs(2), "{report:?}");
        assert!(report.servers.iter().all(|server| !server.leftovers), "{report:?}");
    }
}

/// Starts servers that ignore end of input and SIGTERM, then waits until the process is killed.
async fn run_until_killed(directory: &Path, supervisor: Supervisor, child: &str) {
    let servers = ["one", "two"].map(|name| {
        let server =
            server_fixture(directory, name).switch("--ignore-eof").switch("--ignore-sigterm");
        server.switch(child)
    });
    let host =
        host_builder(directory, servers).supervisor(supervisor).ledger(directory.join("ledger"));
    let _host = host.start().await.unwrap();
    std::fs::write(directory.join("up"), "").unwrap();
    sleep(TEST_TIMEOUT).await;
}

/// Waits until a process in [`run_until_killed`] has started its servers and their children.
async fn wait_started(test_env: &TestEnv) {
    test_env.wait_for_journal(|journal| journal.events("sleeper").len() == 2).await;
    let up = async {
        while !test_env.path("up").exists() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(TEST_TIMEOUT, up).await.expect("the host has started its servers");
}

/// Whether a process exists and has not ended; a zombie has an empty command line.
fn is_running(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

/// Returns the children of all threads of a process.
fn children(parent: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{parent}/task")).unwrap();
    let children = threads
        .map(|thread| std::fs::read_to_string(thread.unwrap().path().join("children")).unwrap());
    let children: Vec<String> = children.collect();
    children
        .iter()
        .flat_map(|line| line.split_whitespace())
        .map(|pid| pid.parse().unwrap())
        .collect()
}

fn send_signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

fn kill_host(mut host: Child) {
    send_signal(host.id(), Signal::KILL);
    host.wait().unwrap();
}

/// Starts a host with the ledger of the killed host and returns the number of ended processes in
/// its log.
async fn killed_by_next_host(test_env: &TestEnv) -> Value {
    let log = LogCapture::capture();
    let next = builder(test_env.config([fixture("next")])).ledger(test_env.path("ledger"));
    let next = next.start().await.unwrap();
    assert_eq!(tagged_processes(test_env.process_tag()), []);
    assert!(next.shutdown().await.is_clean());
    assert_eq!(std::fs::read_dir(test_env.path("ledger")).unwrap().count(), 0);
    log.with_message("processes of a killed host terminated")[0]["ended"].clone()
}

/// Attack: processes | the host of two servers with daemons is killed with SIGKILL | servers,
/// daemons and supervisors end within 2 s | No orphan
#[tokio::test]
async fn a_host_that_is_killed_leaves_neither_servers_nor_their_daemons() {
    if let Some(directory) = inherited_directory() {
        return run_until_killed(&directory, Supervisor::executable(shim_path()), "--daemon").await;
    }
    let test_env = TestEnv::new();
    let test = "a_host_that_is_killed_leaves_neither_servers_nor_their_daemons";
    let host = rerun_in_process(test, &test_env);
    wait_started(&test_env).await;
    let shims = children(host.id());
    assert_eq!(shims.len(), 2);
    kill_host(host);
    assert_eq!(wait_gone(test_env.process_tag(), Duration::from_secs(2)), Ok(()));
    // Only the superuser can read the process tag of a shim, so the test checks each shim by its
    // id.
    let ended = async {
        while shims.iter().any(|shim| is_running(*shim)) {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(2), ended).await.expect("the shims end with their host");
}

/// Attack: processes | a host without supervisor is killed; grandchildren ignore SIGTERM | the next
/// host kills all four processes | No orphan
#[tokio::test]
async fn servers_in_groups_are_ended_by_the_next_host_when_theirs_was_killed() {
    if let Some(directory) = inherited_directory() {
        return run_until_killed(&directory, Supervisor::Group, "--grandchild-ignores-sigterm")
            .await;
    }
    let test_env = TestEnv::new();
    let test = "servers_in_groups_are_ended_by_the_next_host_when_theirs_was_killed";
    let host = rerun_in_process(test, &test_env);
    wait_started(&test_env).await;
    kill_host(host);
    assert_eq!(tagged_processes(test_env.process_tag()).len(), 4);
    assert_eq!(killed_by_next_host(&test_env).await, 4);
}

/// Attack: processes | the supervisors and then the host are killed; grandchildren ignore SIGTERM |
/// the servers end with their supervisors, and the next host kills the rest | No orphan
#[tokio::test]
async fn servers_are_ended_by_the_next_host_when_their_shims_were_killed_too() {
    if let Some(directory) = inherited_directory() {
        let child = "--grandchild-ignores-sigterm";
        return run_until_killed(&directory, Supervisor::executable(shim_path()), child).await;
    }
    let test_env = TestEnv::new();
    let test = "servers_are_ended_by_the_next_host_when_their_shims_were_killed_too";
    let host = rerun_in_process(test, &test_env);
    wait_started(&test_env).await;
    // A running host would notice the killed shims and end their servers itself.
    send_signal(host.id(), Signal::STOP);
    let shims = children(host.id());
    assert_eq!(shims.len(), 2);
    shims.into_iter().for_each(|shim| send_signal(shim, Signal::KILL));
    kill_host(host);
    // The kernel kills the main process of each server with its shim.
    let main_processes_ended = async {
        while tagged_processes(test_env.process_tag()).len() > 2 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(2), main_processes_ended).await.expect("the servers end");
    assert_eq!(killed_by_next_host(&test_env).await, 2);
}
