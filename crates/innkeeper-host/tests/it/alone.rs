//! Hosts in processes of their own: counted over many lives, robbed of their children, and killed.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use innkeeper_host::{Config, Environment, HostBuilder, Supervisor};
use innkeeper_testkit::{
    Fixture, Nonce, fx, mcp_json, open_fds, processes_with, rss_kib, threads, wait_gone,
    zombie_children,
};
use rustix::process::{Pid, Signal, WaitOptions, kill_process};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::setup::{Log, PATIENCE, Scene, builder, shim};

/// Tells a test that it was started by itself, and for which directory.
const DIRECTORY: &str = "INNKEEPER_TEST_ALONE";

/// The lives of a host that are counted, after a few that fill caches.
const LIVES: usize = 50;
const FIRST_LIVES: usize = 5;

/// The directory of the test that started this one again; `None` in the ordinary run.
fn directory() -> Option<PathBuf> {
    Environment::of_process().get(DIRECTORY).map(PathBuf::from)
}

/// Starts a test of this file again, alone in a process that bears the scene's mark.
#[expect(clippy::disallowed_methods, reason = "tests start processes of their own")]
fn again(test: &str, scene: &Scene) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([&format!("alone::{test}"), "--exact", "--nocapture"])
        .env(DIRECTORY, scene.path(""))
        .env(Nonce::VARIABLE, scene.nonce().as_str())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Fails with what the process wrote, unless it ran its one test and passed.
fn assert_passed(child: Child) {
    let output = child.wait_with_output().unwrap();
    let [told, errors] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success() && told.contains("1 passed"), "{told}\n{errors}");
}

/// A server that takes the mark from its host's environment and writes to the directory's journal.
fn server(directory: &Path, name: &str) -> Fixture {
    fx(name).journal(&directory.join("journal")).key("inheritEnv", true)
}

fn host(directory: &Path, servers: impl IntoIterator<Item = Fixture>) -> HostBuilder {
    let environment = Environment::of_process();
    let file = mcp_json(servers);
    builder(Config::from_value(&file, "mcp.json", directory, &environment).unwrap())
}

/// What a process holds once nothing of its children is left.
async fn held() -> (usize, usize, u64) {
    let quiet = async {
        while !zombie_children().is_empty() || threads() > 2 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    // What is still held then is seen in the comparison.
    drop(timeout(Duration::from_secs(2), quiet).await);
    (open_fds(), threads(), rss_kib())
}

/// Proves: FR2.11
#[tokio::test]
async fn fifty_lives_of_a_host_leave_descriptors_threads_and_memory_as_they_were() {
    let Some(directory) = directory() else {
        let scene = Scene::new();
        let test = "fifty_lives_of_a_host_leave_descriptors_threads_and_memory_as_they_were";
        assert_passed(again(test, &scene));
        return assert_eq!(wait_gone(scene.nonce(), Duration::from_secs(1)), Ok(()));
    };
    let live = async |supervisor: Supervisor| {
        let servers = [server(&directory, "one")];
        let host = host(&directory, servers).supervisor(supervisor);
        let host = host.ledger(directory.join("ledger")).start().await.unwrap();
        host.call_tool("one.echo", json!({"message": "hi"})).await.unwrap();
        let report = host.shutdown().await;
        assert!(report.is_clean(), "{report:?}");
    };
    for _ in 0..FIRST_LIVES {
        live(Supervisor::executable(shim())).await;
        live(Supervisor::Group).await;
    }
    let before = held().await;
    for _ in 0..LIVES / 2 {
        live(Supervisor::executable(shim())).await;
        live(Supervisor::Group).await;
    }
    let after = held().await;
    println!("descriptors, threads, KiB: {before:?}, then {after:?}");
    assert_eq!((after.0, after.1), (before.0, before.1));
    assert!(after.2.abs_diff(before.2) <= 2 << 10, "{} KiB, then {} KiB", before.2, after.2);
    assert_eq!(zombie_children(), Vec::<u32>::new());
    assert_eq!(std::fs::read_dir(directory.join("ledger")).unwrap().count(), 0);
}

/// Proves: TR2.5
#[tokio::test]
async fn an_application_that_reaps_every_child_itself_disturbs_neither_start_nor_stop() {
    let Some(directory) = directory() else {
        let scene = Scene::new();
        let test = "an_application_that_reaps_every_child_itself_disturbs_neither_start_nor_stop";
        assert_passed(again(test, &scene));
        return assert_eq!(wait_gone(scene.nonce(), Duration::from_secs(1)), Ok(()));
    };
    std::thread::spawn(|| {
        loop {
            let _ = rustix::process::wait(WaitOptions::NOHANG);
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    for supervisor in [Supervisor::executable(shim()), Supervisor::Group] {
        let servers = [
            server(&directory, "one"),
            server(&directory, "two").with("--crash-after", 1),
            server(&directory, "three").switch("--ignore-eof").key("shutdownTimeout", 0.2),
        ];
        let host = host(&directory, servers).supervisor(supervisor).start().await.unwrap();
        host.call_tool("one.echo", json!({"message": "hi"})).await.unwrap();
        host.call_tool("two.echo", json!({"message": "hi"})).await.unwrap_err();
        let began = Instant::now();
        let report = host.shutdown().await;
        assert!(began.elapsed() < Duration::from_secs(2), "{report:?}");
        assert!(report.servers.iter().all(|server| !server.leftovers), "{report:?}");
    }
}

/// Starts servers that stay whatever happens, and waits to be killed.
async fn be_killed(directory: &Path, supervisor: Supervisor, child: &str) {
    let servers = ["one", "two"].map(|name| {
        let server = server(directory, name).switch("--ignore-eof").switch("--ignore-sigterm");
        server.switch(child)
    });
    let host = host(directory, servers).supervisor(supervisor).ledger(directory.join("ledger"));
    let _host = host.start().await.unwrap();
    std::fs::write(directory.join("up"), "").unwrap();
    sleep(PATIENCE).await;
}

/// Waits until a host that is to [`be_killed`] runs, its servers and their children too.
async fn up(scene: &Scene) {
    scene.journal_until(|journal| journal.events("sleeper").len() == 2).await;
    let up = async {
        while !scene.path("up").exists() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, up).await.expect("the host has started its servers");
}

/// Whether a process is there and has not ended: then it has no arguments any more.
fn runs(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

/// The children of a process, whichever of its threads has started them.
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

fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

fn kill(mut host: Child) {
    send(host.id(), Signal::KILL);
    host.wait().unwrap();
}

/// Starts a host with the ledger of the killed one, and tells how many it says it has ended.
async fn ended_by_the_next_host(scene: &Scene) -> Value {
    let log = Log::capture();
    let next = builder(scene.config([fx("next")])).ledger(scene.path("ledger"));
    let next = next.start().await.unwrap();
    assert_eq!(processes_with(scene.nonce()), []);
    assert!(next.shutdown().await.is_clean());
    assert_eq!(std::fs::read_dir(scene.path("ledger")).unwrap().count(), 0);
    log.of("ended what a killed host had left")[0]["ended"].clone()
}

#[tokio::test]
async fn a_host_that_is_killed_leaves_neither_servers_nor_their_daemons() {
    if let Some(directory) = directory() {
        return be_killed(&directory, Supervisor::executable(shim()), "--daemon").await;
    }
    let scene = Scene::new();
    let test = "a_host_that_is_killed_leaves_neither_servers_nor_their_daemons";
    let host = again(test, &scene);
    up(&scene).await;
    let shims = children(host.id());
    assert_eq!(shims.len(), 2);
    kill(host);
    assert_eq!(wait_gone(scene.nonce(), Duration::from_secs(2)), Ok(()));
    // The mark on a shim can be read by the superuser only, so they are looked at one by one.
    let ended = async {
        while shims.iter().any(|shim| runs(*shim)) {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(2), ended).await.expect("the shims end with their host");
}

#[tokio::test]
async fn servers_in_groups_are_ended_by_the_next_host_when_theirs_was_killed() {
    if let Some(directory) = directory() {
        return be_killed(&directory, Supervisor::Group, "--grandchild-ignores-sigterm").await;
    }
    let scene = Scene::new();
    let test = "servers_in_groups_are_ended_by_the_next_host_when_theirs_was_killed";
    let host = again(test, &scene);
    up(&scene).await;
    kill(host);
    assert_eq!(processes_with(scene.nonce()).len(), 4);
    assert_eq!(ended_by_the_next_host(&scene).await, 4);
}

#[tokio::test]
async fn servers_are_ended_by_the_next_host_when_their_shims_were_killed_too() {
    if let Some(directory) = directory() {
        let child = "--grandchild-ignores-sigterm";
        return be_killed(&directory, Supervisor::executable(shim()), child).await;
    }
    let scene = Scene::new();
    let test = "servers_are_ended_by_the_next_host_when_their_shims_were_killed_too";
    let host = again(test, &scene);
    up(&scene).await;
    // A host that runs would see its shims go and end what they have left.
    send(host.id(), Signal::STOP);
    let shims = children(host.id());
    assert_eq!(shims.len(), 2);
    shims.into_iter().for_each(|shim| send(shim, Signal::KILL));
    kill(host);
    assert_eq!(ended_by_the_next_host(&scene).await, 4);
}
