//! The processes of servers: their isolation, what they write to stderr, and how they end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use innkeeper_host::ServerState;
use rustix::process::{Pid, getpgid, getsid};
use serde_json::json;

use crate::setup::{Log, Scene, text};

fn id(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).unwrap())
}

/// The session of this process; none where it was opened outside of the container, which `getsid`
/// takes for impossible.
fn own_session() -> Option<Pid> {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let session = stat.rsplit_once(") ").unwrap().1.split(' ').nth(3).unwrap();
    Pid::from_raw(session.parse().unwrap())
}

/// Proves: TR2.2
#[tokio::test]
async fn a_flood_on_stderr_holds_up_neither_the_start_nor_a_call() {
    let scene = Scene::new();
    let lines = scene.fx("lines").with("--stderr-flood", 1 << 20);
    let endless = scene.fx("endless").with("--stderr-endless", 1 << 20);
    let host = scene.start([lines, endless]).await.unwrap();
    for name in ["lines", "endless"] {
        let tool = format!("{name}.echo");
        let result = host.call_tool(&tool, json!({"message": "through"})).await.unwrap();
        assert_eq!(text(&result), "through");
        let kept = host.status()[name].stderr.len();
        assert!(kept > 0 && kept <= 4 << 10, "{kept} bytes of `{name}`");
    }
    assert!(host.shutdown().await.is_clean());
}

/// Proves: TR2.6
#[tokio::test]
async fn each_server_has_a_process_a_group_and_a_session_of_its_own() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one"), scene.fx("two")]).await.unwrap();
    let status = host.status();
    let pids = ["one", "two"].map(|name| id(status[name].pid.unwrap()));
    assert_ne!(pids[0], pids[1]);
    let mut started = scene.journal().pids();
    started.sort_unstable();
    let mut told = ["one", "two"].map(|name| status[name].pid.unwrap());
    told.sort_unstable();
    assert_eq!(started, told);
    let own = own_session();
    for pid in pids {
        assert_eq!(getpgid(pid).ok(), pid, "it leads its group");
        assert_ne!(getsid(pid).ok(), own, "it is in the session of the host");
    }
    assert_ne!(getsid(pids[0]).unwrap(), getsid(pids[1]).unwrap());
    host.shutdown().await;
}

/// Proves: TR2.7
#[tokio::test]
async fn what_a_server_writes_to_stderr_is_logged_as_information_with_its_name() {
    let (scene, log) = (Scene::new(), Log::capture());
    let servers = [
        scene.fx("one").with("--stderr", "one is up \u{1b}[31m"),
        scene.fx("two").with("--stderr", "two is up"),
    ];
    let host = scene.start(servers).await.unwrap();
    host.shutdown().await;
    let mut lines = log.of("stderr");
    lines.sort_by_key(|line| line["server"].to_string());
    let told = |server: &str, line: &str| json!({"level": "INFO", "message": "stderr", "server": server, "line": line});
    assert_eq!(lines, [told("one", "one is up \\u{1b}[31m"), told("two", "two is up")]);
}

/// Proves: TR2.8
#[tokio::test]
async fn the_exit_of_a_running_server_is_logged_as_an_error_with_its_code_or_signal() {
    let (scene, log) = (Scene::new(), Log::capture());
    let servers =
        [scene.fx("code").with("--crash-after", 1), scene.fx("signal").switch("--crash-signal")];
    let host = scene.start(servers).await.unwrap();
    for (name, ended) in [("code", "exit code 3"), ("signal", "signal 9 (SIGKILL)")] {
        let tool = format!("{name}.echo");
        let error = host.call_tool(&tool, json!({"message": "hi"})).await.unwrap_err().to_string();
        assert!(error.ends_with(&format!("its process ended with {ended}")), "{error}");
        let lines = log.of("unavailable");
        let line = lines.iter().find(|line| line["server"] == name).unwrap();
        assert_eq!(line["level"], "ERROR");
        assert_eq!(line["reason"], format!("its process ended with {ended}"));
        assert_eq!(host.status()[name].state, ServerState::Unavailable);
    }
    host.shutdown().await;
}

/// Proves: TR2.5
#[tokio::test]
async fn no_zombie_is_left_although_the_application_handles_sigchld() {
    let told = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGCHLD, told.clone()).unwrap();
    let scene = Scene::new();
    let servers = [
        scene.fx("clean"),
        scene.fx("crashes").with("--crash-after", 1),
        scene.fx("litters").with("--zombies", 3),
        scene.fx("stubborn").switch("--ignore-eof").switch("--ignore-sigterm").switch("--daemon"),
    ];
    let servers = servers.map(|server| server.key("shutdownTimeout", 0.2));
    let host = scene.start(servers).await.unwrap();
    host.call_tool("crashes.echo", json!({"message": "hi"})).await.unwrap_err();
    host.shutdown().await;
    assert!(told.load(Ordering::Relaxed), "the application was not told of its children");
    scene.assert_gone().await;
}
