//! Starting, staying, leaving children behind: and the counts that see it.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use innkeeper_testkit::{
    Fixture, Journal, Nonce, fx, open_fds, processes_with, rss_kib, threads, wait_gone,
    zombie_children,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::talk::Talk;

/// How long a loaded machine may take to start or end a process.
const PATIENCE: Duration = Duration::from_secs(20);

fn process_id(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).unwrap())
}

fn kill(pid: u32, signal: Signal) {
    kill_process(process_id(pid).unwrap(), signal).unwrap();
}

const GROUP: usize = 2;
const SESSION: usize = 3;

/// One of the fields of `/proc/PID/stat`, counted from the state as 0.
fn stat(pid: u32, field: usize) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.split_whitespace().nth(field).unwrap().to_owned()
}

/// Looks again and again until it is so.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = std::time::SystemTime::now() + PATIENCE;
    while !is_so() {
        assert!(std::time::SystemTime::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

/// A server with a journal of its own and a nonce.
fn watched(fixture: impl Fn(Fixture) -> Fixture) -> (Talk, Nonce, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let nonce = Nonce::new();
    let journal = directory.path().join("journal");
    let talk = Talk::legacy(&fixture(fx("a").journal(&journal).nonce(&nonce)));
    (talk, nonce, directory)
}

fn journal(directory: &tempfile::TempDir) -> Journal {
    Journal::read(&directory.path().join("journal"))
}

async fn sleeper(directory: &tempfile::TempDir) -> u32 {
    let path = directory.path().join("journal");
    let seen = |journal: &Journal| !journal.events("sleeper").is_empty();
    Journal::until(&path, PATIENCE, seen).await.events("sleeper")[0].pid
}

#[test]
fn a_server_can_fail_at_its_start_with_any_code() {
    let mut talk = Talk::start(&fx("a").with("--exit-at-start", 41).with("--stderr", "no licence"));
    let (status, errors) = talk.wait();
    assert_eq!((status.code(), errors.as_str()), (Some(41), "no licence\n"));
}

#[test]
fn the_first_starts_can_fail() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("starts");
    let fixture = fx("a").with("--fail-starts", 2).with("--state", state.display());
    for _ in 0..2 {
        let (status, errors) = Talk::start(&fixture).wait();
        assert_eq!(status.code(), Some(1));
        assert!(errors.contains("fails as asked"));
    }
    assert_eq!(Talk::legacy(&fixture).end(), Some(0));
}

#[test]
fn stderr_can_be_flooded_with_and_without_lines() {
    let mut talk = Talk::legacy(&fx("a").with("--stderr-flood", 250_050));
    talk.close_input();
    let (_, errors) = talk.wait();
    assert_eq!((errors.len(), errors.lines().count()), (250_050, 2501));
    let mut talk = Talk::legacy(&fx("a").with("--stderr-endless", 100_000));
    talk.close_input();
    assert_eq!(talk.wait().1, "e".repeat(100_000));
}

#[test]
fn sigterm_is_recorded_and_kills_unless_ignored() {
    let (mut talk, _, directory) = watched(|fixture| fixture);
    kill(talk.child.id(), Signal::TERM);
    assert_eq!(talk.wait().0.signal(), Some(15));
    assert_eq!(journal(&directory).events("signal").len(), 1);
}

#[tokio::test]
async fn a_server_can_ignore_both_the_end_of_its_input_and_sigterm() {
    let (mut talk, _, directory) =
        watched(|fixture| fixture.switch("--ignore-eof").switch("--ignore-sigterm"));
    talk.close_input();
    let path = directory.path().join("journal");
    Journal::until(&path, PATIENCE, |journal| !journal.events("stdin_eof").is_empty()).await;
    kill(talk.child.id(), Signal::TERM);
    Journal::until(&path, PATIENCE, |journal| !journal.events("signal").is_empty()).await;
    assert!(talk.child.try_wait().unwrap().is_none());
    kill(talk.child.id(), Signal::KILL);
    assert_eq!(talk.wait().0.signal(), Some(9));
}

#[test]
fn a_server_can_take_its_time_to_end() {
    let talk = Talk::legacy(&fx("a").with("--exit-delay", 150));
    let start = std::time::SystemTime::now();
    assert_eq!(talk.end(), Some(0));
    assert!(start.elapsed().unwrap() >= Duration::from_millis(150));
}

#[test]
fn a_server_can_close_its_output_and_stay() {
    let (mut talk, _, _directory) = watched(|fixture| fixture.switch("--close-stdout"));
    talk.post_call(1, "a.b", &json!({}));
    talk.assert_closed();
    assert!(talk.child.try_wait().unwrap().is_none());
    assert_eq!(talk.end(), Some(0));
}

#[tokio::test]
async fn a_server_that_has_stopped_reading_does_not_see_the_end() {
    for (switch, value) in [("--stop-reading", None), ("--stop-reading-after", Some(3))] {
        let (mut talk, _, directory) = watched(|fixture| match value {
            Some(value) => fixture.with(switch, value),
            None => fixture.switch(switch),
        });
        talk.post_call(1, "a.b", &json!({}));
        talk.post(2, "ping", &json!({}));
        talk.close_input();
        let path = directory.path().join("journal");
        Journal::until(&path, PATIENCE, |journal| journal.count("tools/call") == 1).await;
        // As long as another server takes for its whole life, this one does nothing.
        assert_eq!(Talk::legacy(&fx("b")).end(), Some(0));
        assert!(talk.child.try_wait().unwrap().is_none());
        assert_eq!(journal(&directory).count("ping"), 0);
        assert!(journal(&directory).events("stdin_eof").is_empty());
        kill(talk.child.id(), Signal::TERM);
        assert_eq!(talk.wait().0.signal(), Some(15));
    }
}

#[tokio::test]
async fn the_count_sees_a_daemon_and_its_disappearance() {
    let (talk, nonce, directory) = watched(|fixture| fixture.switch("--daemon"));
    let daemon = sleeper(&directory).await;
    let server = talk.child.id();
    assert_eq!(processes_with(&nonce).len(), 2);
    assert_ne!(stat(daemon, SESSION), stat(server, SESSION));
    assert_eq!(talk.end(), Some(0));
    let left = wait_gone(&nonce, Duration::ZERO).unwrap_err();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[0].pid, daemon);
    assert_ne!(left[0].parent, server);
    assert!(left[0].command.contains("--ignore-sigterm"), "{left:?}");
    kill(daemon, Signal::TERM);
    let path = directory.path().join("journal");
    Journal::until(&path, PATIENCE, |journal| !journal.events("signal").is_empty()).await;
    assert_eq!(processes_with(&nonce).len(), 1, "it ignores SIGTERM");
    kill(daemon, Signal::KILL);
    assert!(wait_gone(&nonce, PATIENCE).is_ok());
}

#[tokio::test]
async fn a_child_can_lose_its_parent_or_lead_a_session_of_its_own() {
    for (switch, leads) in [("--double-fork", false), ("--own-session", true)] {
        let (talk, nonce, directory) = watched(|fixture| fixture.switch(switch));
        let (child, server) = (sleeper(&directory).await, talk.child.id());
        let found = processes_with(&nonce);
        let parent = found.iter().find(|found| found.pid == child).unwrap().parent;
        assert_eq!(parent == server, leads);
        assert_eq!(stat(child, SESSION) != stat(server, SESSION), leads);
        assert_eq!(talk.end(), Some(0));
        kill(child, Signal::KILL);
        assert!(wait_gone(&nonce, PATIENCE).is_ok());
    }
}

#[tokio::test]
async fn a_daemon_can_hold_the_output_open() {
    let (mut talk, nonce, directory) = watched(|fixture| fixture.switch("--daemon-holds-stdout"));
    let daemon = sleeper(&directory).await;
    talk.close_input();
    talk.child.wait().unwrap();
    let output = std::fs::read_link(format!("/proc/{daemon}/fd/1")).unwrap();
    assert!(output.display().to_string().starts_with("pipe:"), "{output:?}");
    kill(daemon, Signal::KILL);
    talk.assert_closed();
    assert!(wait_gone(&nonce, PATIENCE).is_ok());
}

#[tokio::test]
async fn a_grandchild_outlives_a_server_that_exits_on_a_call() {
    let (mut talk, nonce, directory) = watched(|fixture| fixture.switch("--exit-while-grandchild"));
    let grandchild = sleeper(&directory).await;
    talk.post_call(1, "a.b", &json!({}));
    assert_eq!(talk.child.wait().unwrap().code(), Some(0));
    assert_eq!(processes_with(&nonce)[0].pid, grandchild);
    kill(grandchild, Signal::TERM);
    assert!(wait_gone(&nonce, PATIENCE).is_ok());
}

#[tokio::test]
async fn a_grandchild_is_in_the_group_of_its_server() {
    let (talk, nonce, directory) = watched(|fixture| fixture.switch("--grandchild"));
    let grandchild = sleeper(&directory).await;
    assert_eq!(stat(grandchild, GROUP), stat(talk.child.id(), GROUP));
    kill(grandchild, Signal::TERM);
    assert_eq!(talk.end(), Some(0));
    assert!(wait_gone(&nonce, PATIENCE).is_ok());
}

#[tokio::test]
async fn a_grandchild_can_ignore_sigterm() {
    let (talk, nonce, directory) =
        watched(|fixture| fixture.switch("--grandchild-ignores-sigterm"));
    let grandchild = sleeper(&directory).await;
    kill(grandchild, Signal::TERM);
    let path = directory.path().join("journal");
    Journal::until(&path, PATIENCE, |journal| !journal.events("signal").is_empty()).await;
    assert_eq!(processes_with(&nonce).iter().filter(|found| !found.zombie).count(), 2);
    kill(grandchild, Signal::KILL);
    assert_eq!(talk.end(), Some(0));
    assert!(wait_gone(&nonce, PATIENCE).is_ok());
}

#[test]
fn a_server_can_start_late_or_keep_a_processor_busy() {
    let start = std::time::SystemTime::now();
    let talk = Talk::legacy(&fx("a").with("--start-delay", 150));
    assert!(start.elapsed().unwrap() >= Duration::from_millis(150));
    drop(talk);
    let talk = Talk::legacy(&fx("a").switch("--spin"));
    let ticks = || stat(talk.child.id(), 11).parse::<u64>().unwrap();
    wait_until("time spent", || ticks() >= 5);
}

#[test]
fn zombies_of_a_server_are_counted() {
    let (talk, nonce, _directory) = watched(|fixture| fixture.with("--zombies", 3));
    let zombies = || processes_with(&nonce).iter().filter(|found| found.zombie).count();
    wait_until("three zombies", || zombies() == 3);
    assert_eq!(processes_with(&nonce).len(), 4);
    assert_eq!(talk.end(), Some(0));
}

#[tokio::test]
async fn a_chain_of_forks_is_counted_whole() {
    let (talk, nonce, _directory) = watched(|fixture| fixture.with("--fork-loop", 5));
    wait_until("a chain of five", || processes_with(&nonce).len() == 6);
    assert_eq!(talk.end(), Some(0));
    for found in processes_with(&nonce) {
        kill(found.pid, Signal::KILL);
    }
    assert!(innkeeper_testkit::until_gone(&nonce, PATIENCE).await.is_ok());
}

#[test]
fn a_server_can_stop_itself_and_take_memory() {
    let (mut talk, nonce, _directory) = watched(|fixture| fixture.switch("--stop-self"));
    talk.post_call(1, "a.b", &json!({}));
    wait_until("a stopped server", || stat(talk.child.id(), 0) == "T");
    assert_eq!(processes_with(&nonce).len(), 1);
    let mut talk = Talk::legacy(&fx("a").with("--alloc", 50_000_000));
    talk.call(1, "a.b", &json!({}));
    let status = std::fs::read_to_string(format!("/proc/{}/status", talk.child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kib > 45_000, "{line}");
}

#[test]
fn the_counts_of_the_calling_process_follow_what_it_holds() {
    let before = (open_fds(), threads());
    let files: Vec<_> = (0..300).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
    let with_files = open_fds();
    drop(files);
    assert!(with_files >= before.0 + 200, "{} then {with_files}", before.0);
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || receiver.recv().is_err());
    assert!(threads() >= 2);
    drop(sender);
    assert!(thread.join().unwrap());
    let small = rss_kib();
    let block = std::hint::black_box(vec![1_u8; 64 << 20]);
    assert!(rss_kib() > small + 32 * 1024);
    drop(block);
}

#[test]
fn a_child_not_waited_for_is_a_zombie_of_the_calling_process() {
    let mut child = fx("a").with("--exit-at-start", 0).command().spawn().unwrap();
    wait_until("a zombie", || zombie_children().contains(&child.id()));
    child.wait().unwrap();
    assert!(!zombie_children().contains(&child.id()));
}
