//! Tests of start, exit and leftover processes, and of the process checks.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use innkeeper_testkit::{
    Fixture, Journal, ProcessTag, fixture, open_fds, rss_kib, tagged_processes, thread_count,
    wait_gone, zombie_children,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::stdio_client::StdioClient;

/// Maximum time for a process start or exit on a loaded machine.
const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

fn process_id(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).unwrap())
}

fn kill(pid: u32, signal: Signal) {
    kill_process(process_id(pid).unwrap(), signal).unwrap();
}

const STAT_GROUP_FIELD: usize = 2;
const STAT_SESSION_FIELD: usize = 3;

/// A field of `/proc/PID/stat`, with the state as field 0.
fn stat_field(pid: u32, field: usize) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.split_whitespace().nth(field).unwrap().to_owned()
}

/// Polls until the condition is true.
fn wait_until(description: &str, is_so: impl Fn() -> bool) {
    let deadline = std::time::SystemTime::now() + WAIT_TIMEOUT;
    while !is_so() {
        assert!(std::time::SystemTime::now() < deadline, "{description}");
        std::thread::yield_now();
    }
}

/// Starts a server with its own journal and tag.
fn start_tagged(
    configure: impl Fn(Fixture) -> Fixture,
) -> (StdioClient, ProcessTag, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let tag = ProcessTag::new();
    let journal = directory.path().join("journal");
    let client =
        StdioClient::start_legacy(&configure(fixture("a").journal(&journal).process_tag(&tag)));
    (client, tag, directory)
}

fn journal(directory: &tempfile::TempDir) -> Journal {
    Journal::read(&directory.path().join("journal"))
}

async fn sleeper_pid(directory: &tempfile::TempDir) -> u32 {
    let path = directory.path().join("journal");
    let has_sleeper = |journal: &Journal| !journal.events("sleeper").is_empty();
    Journal::wait_for(&path, WAIT_TIMEOUT, has_sleeper).await.events("sleeper")[0].pid
}

#[test]
fn a_server_can_fail_at_its_start_with_any_code() {
    let mut client = StdioClient::start(
        &fixture("a").with("--exit-at-start", 41).with("--stderr", "no licence"),
    );
    let (status, errors) = client.wait();
    assert_eq!((status.code(), errors.as_str()), (Some(41), "no licence\n"));
}

#[test]
fn the_first_starts_can_fail() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("starts");
    let fixture = fixture("a").with("--fail-starts", 2).with("--state", state.display());
    for _ in 0..2 {
        let (status, errors) = StdioClient::start(&fixture).wait();
        assert_eq!(status.code(), Some(1));
        assert!(errors.contains("fails as asked"));
    }
    assert_eq!(StdioClient::start_legacy(&fixture).close_and_wait(), Some(0));
}

#[test]
fn stderr_can_be_flooded_with_and_without_lines() {
    let mut client = StdioClient::start_legacy(&fixture("a").with("--stderr-flood", 250_050));
    client.close_input();
    let (_, errors) = client.wait();
    assert_eq!((errors.len(), errors.lines().count()), (250_050, 2501));
    let mut client = StdioClient::start_legacy(&fixture("a").with("--stderr-endless", 100_000));
    client.close_input();
    assert_eq!(client.wait().1, "e".repeat(100_000));
}

#[test]
fn sigterm_is_recorded_and_kills_unless_ignored() {
    let (mut client, _, directory) = start_tagged(|fixture| fixture);
    kill(client.child.id(), Signal::TERM);
    assert_eq!(client.wait().0.signal(), Some(15));
    assert_eq!(journal(&directory).events("signal").len(), 1);
}

#[tokio::test]
async fn a_server_can_ignore_both_the_end_of_its_input_and_sigterm() {
    let (mut client, _, directory) =
        start_tagged(|fixture| fixture.switch("--ignore-eof").switch("--ignore-sigterm"));
    client.close_input();
    let path = directory.path().join("journal");
    Journal::wait_for(&path, WAIT_TIMEOUT, |journal| !journal.events("stdin_eof").is_empty()).await;
    kill(client.child.id(), Signal::TERM);
    Journal::wait_for(&path, WAIT_TIMEOUT, |journal| !journal.events("signal").is_empty()).await;
    assert!(client.child.try_wait().unwrap().is_none());
    kill(client.child.id(), Signal::KILL);
    assert_eq!(client.wait().0.signal(), Some(9));
}

#[test]
fn a_server_can_take_its_time_to_end() {
    let client = StdioClient::start_legacy(&fixture("a").with("--exit-delay", 150));
    let start = std::time::SystemTime::now();
    assert_eq!(client.close_and_wait(), Some(0));
    assert!(start.elapsed().unwrap() >= Duration::from_millis(150));
}

#[test]
fn a_server_can_close_its_output_and_stay() {
    let (mut client, _, _directory) = start_tagged(|fixture| fixture.switch("--close-stdout"));
    client.post_call(1, "a.b", &json!({}));
    client.assert_closed();
    assert!(client.child.try_wait().unwrap().is_none());
    assert_eq!(client.close_and_wait(), Some(0));
}

#[tokio::test]
async fn a_server_that_has_stopped_reading_does_not_see_the_end() {
    for (switch, value) in [("--stop-reading", None), ("--stop-reading-after", Some(3))] {
        let (mut client, _, directory) = start_tagged(|fixture| match value {
            Some(value) => fixture.with(switch, value),
            None => fixture.switch(switch),
        });
        client.post_call(1, "a.b", &json!({}));
        client.post(2, "ping", &json!({}));
        client.close_input();
        let path = directory.path().join("journal");
        Journal::wait_for(&path, WAIT_TIMEOUT, |journal| journal.count("tools/call") == 1).await;
        // The server does nothing during the whole lifetime of another server.
        assert_eq!(StdioClient::start_legacy(&fixture("b")).close_and_wait(), Some(0));
        assert!(client.child.try_wait().unwrap().is_none());
        assert_eq!(journal(&directory).count("ping"), 0);
        assert!(journal(&directory).events("stdin_eof").is_empty());
        kill(client.child.id(), Signal::TERM);
        assert_eq!(client.wait().0.signal(), Some(15));
    }
}

#[tokio::test]
async fn tagged_processes_sees_a_daemon_and_its_disappearance() {
    let (client, tag, directory) = start_tagged(|fixture| fixture.switch("--daemon"));
    let daemon = sleeper_pid(&directory).await;
    let server = client.child.id();
    assert_eq!(tagged_processes(&tag).len(), 2);
    assert_ne!(stat_field(daemon, STAT_SESSION_FIELD), stat_field(server, STAT_SESSION_FIELD));
    assert_eq!(client.close_and_wait(), Some(0));
    let leftovers = wait_gone(&tag, Duration::ZERO).unwrap_err();
    assert_eq!(leftovers.len(), 1, "{leftovers:?}");
    assert_eq!(leftovers[0].pid, daemon);
    assert_ne!(leftovers[0].parent_pid, server);
    assert!(leftovers[0].command.contains("--ignore-sigterm"), "{leftovers:?}");
    kill(daemon, Signal::TERM);
    let path = directory.path().join("journal");
    Journal::wait_for(&path, WAIT_TIMEOUT, |journal| !journal.events("signal").is_empty()).await;
    assert_eq!(tagged_processes(&tag).len(), 1, "it ignores SIGTERM");
    kill(daemon, Signal::KILL);
    assert!(wait_gone(&tag, WAIT_TIMEOUT).is_ok());
}

#[tokio::test]
async fn a_child_can_lose_its_parent_or_lead_a_session_of_its_own() {
    for (switch, leads) in [("--double-fork", false), ("--own-session", true)] {
        let (client, tag, directory) = start_tagged(|fixture| fixture.switch(switch));
        let (child, server) = (sleeper_pid(&directory).await, client.child.id());
        let processes = tagged_processes(&tag);
        let parent = processes.iter().find(|process| process.pid == child).unwrap().parent_pid;
        assert_eq!(parent == server, leads);
        assert_eq!(
            stat_field(child, STAT_SESSION_FIELD) != stat_field(server, STAT_SESSION_FIELD),
            leads
        );
        assert_eq!(client.close_and_wait(), Some(0));
        kill(child, Signal::KILL);
        assert!(wait_gone(&tag, WAIT_TIMEOUT).is_ok());
    }
}

#[tokio::test]
async fn a_daemon_can_hold_the_output_open() {
    let (mut client, tag, directory) =
        start_tagged(|fixture| fixture.switch("--daemon-holds-stdout"));
    let daemon = sleeper_pid(&directory).await;
    client.close_input();
    client.child.wait().unwrap();
    let output = std::fs::read_link(format!("/proc/{daemon}/fd/1")).unwrap();
    assert!(output.display().to_string().starts_with("pipe:"), "{output:?}");
    kill(daemon, Signal::KILL);
    client.assert_closed();
    assert!(wait_gone(&tag, WAIT_TIMEOUT).is_ok());
}

#[tokio::test]
async fn a_grandchild_outlives_a_server_that_exits_on_a_call() {
    let (mut client, tag, directory) =
        start_tagged(|fixture| fixture.switch("--exit-while-grandchild"));
    let grandchild = sleeper_pid(&directory).await;
    client.post_call(1, "a.b", &json!({}));
    assert_eq!(client.child.wait().unwrap().code(), Some(0));
    assert_eq!(tagged_processes(&tag)[0].pid, grandchild);
    kill(grandchild, Signal::TERM);
    assert!(wait_gone(&tag, WAIT_TIMEOUT).is_ok());
}

#[tokio::test]
async fn a_grandchild_is_in_the_group_of_its_server() {
    let (client, tag, directory) = start_tagged(|fixture| fixture.switch("--grandchild"));
    let grandchild = sleeper_pid(&directory).await;
    assert_eq!(
        stat_field(grandchild, STAT_GROUP_FIELD),
        stat_field(client.child.id(), STAT_GROUP_FIELD)
    );
    kill(grandchild, Signal::TERM);
    assert_eq!(client.close_and_wait(), Some(0));
    assert!(wait_gone(&tag, WAIT_TIMEOUT).is_ok());
}

#[tokio::test]
async fn a_grandchild_can_ignore_sigterm() {
    let (client, tag, directory) =
        start_tagged(|fixture| fixture.switch("--grandchild-ignores-sigterm"));
    let grandchild = sleeper_pid(&directory).await;
    kill(grandchild, Signal::TERM);
    let path = directory.path().join("journal");
    Journal::wait_for(&path, WAIT_TIMEOUT, |journal| !journal.events("signal").is_empty()).await;
    assert_eq!(tagged_processes(&tag).iter().filter(|found| !found.is_zombie).count(), 2);
    kill(grandchild, Signal::KILL);
    assert_eq!(client.close_and_wait(), Some(0));
    assert!(wait_gone(&tag, WAIT_TIMEOUT).is_ok());
}

#[test]
fn a_server_can_start_late_or_keep_a_processor_busy() {
    let start = std::time::SystemTime::now();
    let client = StdioClient::start_legacy(&fixture("a").with("--start-delay", 150));
    assert!(start.elapsed().unwrap() >= Duration::from_millis(150));
    drop(client);
    let client = StdioClient::start_legacy(&fixture("a").switch("--spin"));
    let ticks = || stat_field(client.child.id(), 11).parse::<u64>().unwrap();
    wait_until("time spent", || ticks() >= 5);
}

#[test]
fn zombies_of_a_server_are_counted() {
    let (client, tag, _directory) = start_tagged(|fixture| fixture.with("--zombies", 3));
    let zombies = || tagged_processes(&tag).iter().filter(|process| process.is_zombie).count();
    wait_until("three zombies", || zombies() == 3);
    assert_eq!(tagged_processes(&tag).len(), 4);
    assert_eq!(client.close_and_wait(), Some(0));
}

#[tokio::test]
async fn a_chain_of_forks_is_counted_whole() {
    let (client, tag, _directory) = start_tagged(|fixture| fixture.with("--fork-loop", 5));
    wait_until("a chain of five", || tagged_processes(&tag).len() == 6);
    assert_eq!(client.close_and_wait(), Some(0));
    for process in tagged_processes(&tag) {
        kill(process.pid, Signal::KILL);
    }
    assert!(innkeeper_testkit::wait_gone_async(&tag, WAIT_TIMEOUT).await.is_ok());
}

#[test]
fn a_server_can_stop_itself_and_take_memory() {
    let (mut client, tag, _directory) = start_tagged(|fixture| fixture.switch("--stop-self"));
    client.post_call(1, "a.b", &json!({}));
    wait_until("a stopped server", || stat_field(client.child.id(), 0) == "T");
    assert_eq!(tagged_processes(&tag).len(), 1);
    let mut client = StdioClient::start_legacy(&fixture("a").with("--alloc", 50_000_000));
    client.call(1, "a.b", &json!({}));
    let status = std::fs::read_to_string(format!("/proc/{}/status", client.child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kib > 45_000, "{line}");
}

#[test]
fn the_counts_of_the_calling_process_follow_what_it_holds() {
    let before = (open_fds(), thread_count());
    let files: Vec<_> = (0..300).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
    let with_files = open_fds();
    drop(files);
    assert!(with_files >= before.0 + 200, "{} then {with_files}", before.0);
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || receiver.recv().is_err());
    assert!(thread_count() >= 2);
    drop(sender);
    assert!(thread.join().unwrap());
    let small = rss_kib();
    let block = std::hint::black_box(vec![1_u8; 64 << 20]);
    assert!(rss_kib() > small + 32 * 1024);
    drop(block);
}

#[test]
fn a_child_not_waited_for_is_a_zombie_of_the_calling_process() {
    let mut child = fixture("a").with("--exit-at-start", 0).command().spawn().unwrap();
    wait_until("a zombie", || zombie_children().contains(&child.id()));
    child.wait().unwrap();
    assert!(!zombie_children().contains(&child.id()));
}
