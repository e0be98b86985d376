//! Server processes: isolation, stderr and exit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use innkeeper_host::{HostEvent, ServerState};
use innkeeper_testkit::tagged_processes;
use rustix::process::{Pid, getpgid, getsid};
use serde_json::json;

use crate::setup::{LogCapture, TEST_TIMEOUT, TestEnv, result_text, wait_for_event};

fn to_pid(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).unwrap())
}

/// The session of this process, or `None` if a process outside of the container created the
/// session; `getsid` does not support that case.
fn own_session() -> Option<Pid> {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let session = stat.rsplit_once(") ").unwrap().1.split(' ').nth(3).unwrap();
    Pid::from_raw(session.parse().unwrap())
}

/// Proves: TR2.2
#[tokio::test]
async fn a_flood_on_stderr_holds_up_neither_the_start_nor_a_call() {
    let test_env = TestEnv::new();
    let lines = test_env.fixture("lines").with("--stderr-flood", 1 << 20);
    let endless = test_env.fixture("endless").with("--stderr-endless", 1 << 20);
    let host = test_env.start([lines, endless]).await.unwrap();
    for name in ["lines", "endless"] {
        let tool = format!("{name}.echo");
        let result = host.call_tool(&tool, json!({"message": "through"})).await.unwrap();
        assert_eq!(result_text(&result), "through");
        let stderr_lines = host.status()[name].stderr.len();
        assert!(stderr_lines > 0 && stderr_lines <= 4 << 10, "{stderr_lines} bytes of `{name}`");
    }
    assert!(host.shutdown().await.is_clean());
}

/// Proves: TR2.6
#[tokio::test]
async fn each_server_has_a_process_a_group_and_a_session_of_its_own() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one"), test_env.fixture("two")]).await.unwrap();
    let status = host.status();
    let pids = ["one", "two"].map(|name| to_pid(status[name].pid.unwrap()));
    assert_ne!(pids[0], pids[1]);
    let mut started = test_env.journal().pids();
    started.sort_unstable();
    let mut reported_pids = ["one", "two"].map(|name| status[name].pid.unwrap());
    reported_pids.sort_unstable();
    assert_eq!(started, reported_pids);
    let own_id = own_session();
    for pid in pids {
        assert_eq!(getpgid(pid).ok(), pid, "it leads its group");
        assert_ne!(getsid(pid).ok(), own_id, "it is in the session of the host");
    }
    assert_ne!(getsid(pids[0]).unwrap(), getsid(pids[1]).unwrap());
    host.shutdown().await;
}

/// Proves: TR2.7
#[tokio::test]
async fn what_a_server_writes_to_stderr_is_logged_as_information_with_its_name() {
    let (test_env, log) = (TestEnv::new(), LogCapture::capture());
    let servers = [
        test_env.fixture("one").with("--stderr", "one is up \u{1b}[31m"),
        test_env.fixture("two").with("--stderr", "two is up"),
    ];
    let host = test_env.start(servers).await.unwrap();
    host.shutdown().await;
    let mut lines = log.with_message("stderr");
    lines.sort_by_key(|line| line["server"].to_string());
    let stderr_event = |server: &str, line: &str| json!({"level": "INFO", "message": "stderr", "server": server, "line": line});
    assert_eq!(
        lines,
        [stderr_event("one", "one is up \\u{1b}[31m"), stderr_event("two", "two is up")]
    );
}

/// Proves: TR2.8
#[tokio::test]
async fn the_exit_of_a_running_server_is_logged_as_an_error_with_its_code_or_signal() {
    let (test_env, log) = (TestEnv::new(), LogCapture::capture());
    let servers = [
        test_env.fixture("code").with("--crash-after", 1),
        test_env.fixture("signal").switch("--crash-signal"),
        test_env.fixture("idle"),
    ];
    let host = test_env.start(servers).await.unwrap();
    for (name, ended) in [("code", "exit code 3"), ("signal", "signal 9 (SIGKILL)")] {
        let tool = format!("{name}.echo");
        let error = host.call_tool(&tool, json!({"message": "hi"})).await.unwrap_err().to_string();
        assert!(error.ends_with(&format!("process ended with {ended}")), "{error}");
        let lines = log.with_message("unavailable");
        let line = lines.iter().find(|line| line["server"] == name).unwrap();
        assert_eq!(line["level"], "ERROR");
        assert_eq!(line["reason"], format!("process ended with {ended}"));
        assert_eq!(host.status()[name].state, ServerState::Unavailable);
    }
    let mut events = host.events();
    let idle = to_pid(host.status()["idle"].pid.unwrap()).unwrap();
    rustix::process::kill_process(idle, rustix::process::Signal::TERM).unwrap();
    wait_for_event(&mut events, |event| matches!(event, HostEvent::Unavailable { .. })).await;
    let line = log.with_message("unavailable").pop().unwrap();
    let fields = ["level", "server", "reason"].map(|field| line[field].as_str().unwrap());
    assert_eq!(fields, ["ERROR", "idle", "process ended with signal 15 (SIGTERM)"]);
    host.shutdown().await;
}

/// Attack: processes | a server leaves zombies, crashes or ignores signals while the application
/// handles SIGCHLD | no process remains, and the application gets its signals | No orphan
/// Proves: TR2.5
#[tokio::test]
async fn no_zombie_is_left_although_the_application_handles_sigchld() {
    let all_reported = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGCHLD, all_reported.clone()).unwrap();
    let test_env = TestEnv::new();
    let servers = [
        test_env.fixture("clean"),
        test_env.fixture("crashes").with("--crash-after", 1),
        test_env.fixture("litters").with("--zombies", 3),
        test_env
            .fixture("stubborn")
            .switch("--ignore-eof")
            .switch("--ignore-sigterm")
            .switch("--daemon"),
    ];
    let servers = servers.map(|server| server.config_key("shutdownTimeout", 0.2));
    let host = test_env.start(servers).await.unwrap();
    let zombies =
        || tagged_processes(test_env.process_tag()).iter().filter(|p| p.is_zombie).count();
    let three_zombies = async {
        while zombies() != 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, three_zombies).await.expect("`litters` leaves zombies");
    host.call_tool("crashes.echo", json!({"message": "hi"})).await.unwrap_err();
    host.shutdown().await;
    assert!(all_reported.load(Ordering::Relaxed), "the application was not told of its children");
    test_env.assert_gone().await;
}

/// Proves: TR2.3
#[tokio::test]
async fn a_host_installs_no_signal_handler() {
    // The bits of SIGINT (2) and SIGTERM (15) in the mask of the caught signals.
    let caught = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim();
        u64::from_str_radix(mask, 16).unwrap() & ((1 << 1) | (1 << 14))
    };
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one")]).await.unwrap();
    host.call_tool("one.echo", json!({"message": "hi"})).await.unwrap();
    assert_eq!(caught(), 0);
    host.shutdown().await;
    assert_eq!(caught(), 0);
}
