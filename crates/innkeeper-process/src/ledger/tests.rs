//! Ledger tests with real processes and killed hosts.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use super::ledger_file::{HostHeader, ProcessKind, ProcessRecord, format_file};
use super::*;
use crate::tests::{ProcessTag, eventually, read_line, shell, shim, spawn_test_process};
use crate::tree::ProcessStat;
use crate::{Supervisor, spawn};

const DIRECTORY: &str = "INNKEEPER_TEST_LEDGER";
const HOST_MARK: &str = "INNKEEPER_TEST_LEDGER_MARK";
const SUPERVISOR: &str = "INNKEEPER_TEST_LEDGER_SUPERVISOR";

/// A leader with one child in its group and one orphaned process.
const SCRIPT: &str = "trap '' TERM HUP; sleep 600 & (sleep 600 &); echo ready; exec sleep 600";

fn files(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()).collect()
}

#[test]
#[ignore = "a host for the tests below, which start it"]
fn runs_a_recorded_server_until_it_is_killed() {
    let Some(tag) = std::env::var_os(HOST_MARK) else { return };
    let dir = PathBuf::from(std::env::var_os(DIRECTORY).unwrap());
    let group = std::env::var_os(SUPERVISOR).unwrap() == "group";
    let supervisor = if group { Supervisor::Group } else { shim() };
    let tag = ProcessTag::from_env(tag);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (ledger, _) = Ledger::open(&dir).unwrap();
        let (_process, mut pipes) =
            spawn(&tag.script(SCRIPT), &supervisor, Some(&ledger)).await.unwrap();
        read_line(&mut pipes).await;
        println!("host ready");
        std::future::pending::<()>().await;
    });
}

/// Starts a host that records its processes, and waits until its server runs.
fn start_host(dir: &Path, tag: &ProcessTag, supervisor: &str) -> std::process::Child {
    let test = "ledger::tests::runs_a_recorded_server_until_it_is_killed";
    let dir = dir.to_str().unwrap();
    let env = [(DIRECTORY, dir), (HOST_MARK, tag.as_str()), (SUPERVISOR, supervisor)];
    let mut host = spawn_test_process(test, &env);
    let mut lines = BufReader::new(host.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("host ready")), "the host ended early");
    tag.wait_for_count(3);
    host
}

/// Attack: processes | the host is killed, and the leader of the process group too | the next host
/// ends the group | No orphan
#[test]
fn the_next_host_ends_the_group_that_a_killed_host_has_left() {
    for leaderless in [false, true] {
        let (dir, tag) = (tempfile::tempdir().unwrap(), ProcessTag::new());
        let mut host = start_host(dir.path(), &tag, "group");
        host.kill().unwrap();
        host.wait().unwrap();
        tag.wait_for_count(3);
        if leaderless {
            let group = tag
                .pids()
                .into_iter()
                .find(|pid| ProcessStat::read(*pid).is_some_and(|stat| stat.group == Some(*pid)));
            let _ = rustix::process::kill_process(group.unwrap(), rustix::process::Signal::KILL);
            // In a container, the process may stay a zombie: the init process may not reap orphans.
            let ended = || ProcessStat::read(group.unwrap()).is_none_or(|stat| stat.zombie);
            eventually("the leader to end", ended);
        }
        let (_ledger, report) = Ledger::open(dir.path()).unwrap();
        tag.wait_for_count(0);
        let killed = if leaderless { 2 } else { 3 };
        assert_eq!(report, SweepReport { dead_hosts: 1, killed });
        assert!(files(dir.path()).is_empty());
    }
}

/// Attack: processes | the supervisor is stopped when its host is killed | the next host wakes the
/// supervisor, which ends the tree | No orphan
#[test]
fn the_next_host_wakes_the_shim_of_a_killed_host_to_end_its_tree() {
    let (dir, tag) = (tempfile::tempdir().unwrap(), ProcessTag::new());
    let mut host = start_host(dir.path(), &tag, "shim");
    let shim = tag.pids().into_iter().find_map(|pid| {
        let stat = ProcessStat::read(pid).filter(|stat| stat.group == Some(pid))?;
        stat.parent
    });
    rustix::process::kill_process(shim.unwrap(), rustix::process::Signal::STOP).unwrap();
    host.kill().unwrap();
    host.wait().unwrap();
    tag.wait_for_count(3);
    let (_ledger, report) = Ledger::open(dir.path()).unwrap();
    tag.wait_for_count(0);
    assert_eq!(report, SweepReport { dead_hosts: 1, killed: 0 }, "the shim does the work");
    assert!(files(dir.path()).is_empty());
}

#[test]
fn the_next_host_ends_the_server_whose_shim_died_with_its_host() {
    let (dir, tag) = (tempfile::tempdir().unwrap(), ProcessTag::new());
    let mut host = start_host(dir.path(), &tag, "shim");
    let leader = tag.pids().into_iter().filter_map(ProcessStat::read);
    let shim = leader.filter(|stat| stat.group == Some(stat.pid)).find_map(|stat| stat.parent);
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&host),
        rustix::process::Signal::STOP,
    )
    .unwrap();
    rustix::process::kill_process(shim.unwrap(), rustix::process::Signal::KILL).unwrap();
    host.kill().unwrap();
    host.wait().unwrap();
    // The kernel kills the main process with its shim.
    tag.wait_for_count(2);
    let (_ledger, report) = Ledger::open(dir.path()).unwrap();
    tag.wait_for_count(0);
    assert_eq!(report, SweepReport { dead_hosts: 1, killed: 2 });
}

/// Attack: processes | a second host opens the ledger of a running host | the sweep kills nothing |
/// No orphan
#[test]
fn two_hosts_do_not_touch_each_other_s_servers() {
    let (dir, tag) = (tempfile::tempdir().unwrap(), ProcessTag::new());
    let mut host = start_host(dir.path(), &tag, "shim");
    let (_ledger, report) = Ledger::open(dir.path()).unwrap();
    assert_eq!(report, SweepReport::default());
    assert_eq!((tag.pids().len(), files(dir.path()).len()), (3, 1));
    host.kill().unwrap();
    host.wait().unwrap();
}

/// Writes a file as a dead host leaves it.
fn write_dead_host_file(dir: &Path, header: &HostHeader, entries: &[ProcessRecord]) -> PathBuf {
    // No process with this id can have started in the first tick after boot.
    let file = dir.join(format!("{}-0-0", std::process::id()));
    fs::write(&file, format_file(header, entries.iter())).unwrap();
    file
}

/// Attack: processes | another process has the id of a recorded process, or the record is from
/// another boot or namespace | the sweep does not kill the process | No orphan
#[test]
fn a_process_that_only_has_the_id_of_a_recorded_one_is_not_killed() {
    let dir = tempfile::tempdir().unwrap();
    let mut other = shell("exec sleep 600");
    let start = sweep::start_time(other.id()).unwrap();
    let (_, header) = HostHeader::for_current_host().unwrap();
    let pid = other.id();
    let noted = |kind, start| ProcessRecord { kind, pid, start_time: start, tag: None };
    let entries = [
        noted(ProcessKind::Shim, start + 1),
        noted(ProcessKind::Server, start + 1),
        noted(ProcessKind::Group, start + 1),
    ];
    let file = write_dead_host_file(dir.path(), &header, &entries);
    let (_ledger, report) = Ledger::open(dir.path()).unwrap();
    assert_eq!(report, SweepReport { dead_hosts: 1, killed: 0 });
    assert!(!file.exists());
    assert_eq!(other.try_wait().unwrap(), None);

    let earlier = HostHeader { boot_id: "earlier-start".to_owned(), ..header.clone() };
    let file = write_dead_host_file(dir.path(), &earlier, &[noted(ProcessKind::Server, start)]);
    let _ = Ledger::open(dir.path()).unwrap();
    assert!(!file.exists());
    assert_eq!(other.try_wait().unwrap(), None);

    let elsewhere = HostHeader { pid_namespace: "pid:[1]".to_owned(), ..header };
    let file = write_dead_host_file(dir.path(), &elsewhere, &[noted(ProcessKind::Server, start)]);
    let _ = Ledger::open(dir.path()).unwrap();
    assert!(file.exists());
    assert_eq!(other.try_wait().unwrap(), None);
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn a_sweep_ends_in_time_also_within_one_file_and_leaves_the_rest_to_the_next() {
    let dir = tempfile::tempdir().unwrap();
    // A shim that ignores SIGTERM.
    let mut shim = shell("exec setsid sh -c \"trap '' TERM; echo; exec sleep 600\"");
    std::io::Read::read_exact(shim.stdout.as_mut().unwrap(), &mut [0]).unwrap();
    let start = sweep::start_time(shim.id()).unwrap();
    let (_, header) = HostHeader::for_current_host().unwrap();
    let noted =
        ProcessRecord { kind: ProcessKind::Shim, pid: shim.id(), start_time: start, tag: None };
    let file = write_dead_host_file(dir.path(), &header, &[noted]);
    let limit = sweep::SWEEP_TIMEOUT - Duration::from_millis(100);
    let report = sweep::sweep(dir.path(), sweep::deadline() - limit).unwrap();
    assert_eq!(report, SweepReport { dead_hosts: 1, killed: 0 });
    assert!(file.exists());
    let (_ledger, report) = Ledger::open(dir.path()).unwrap();
    assert_eq!(report, SweepReport { dead_hosts: 1, killed: 1 });
    assert!(!file.exists());
    shim.wait().unwrap();
}

/// Attack: files | the ledger directory contains invalid bytes, a directory and a link to a record
/// elsewhere | the sweep follows no link and kills nothing | No orphan
#[test]
fn invalid_files_are_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let dead = format!("{}-0-1", std::process::id());
    fs::write(dir.path().join(&dead), [0xff; 100]).unwrap();
    fs::write(dir.path().join("README"), "mine").unwrap();
    let (_, header) = HostHeader::for_current_host().unwrap();
    let mut other = shell("exec sleep 600");
    let start = sweep::start_time(other.id()).unwrap();
    let noted =
        ProcessRecord { kind: ProcessKind::Server, pid: other.id(), start_time: start, tag: None };
    let page = write_dead_host_file(dir.path(), &header, &[noted]);
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("page");
    fs::rename(page, &target).unwrap();
    std::os::unix::fs::symlink(&target, dir.path().join("7-7-7")).unwrap();
    fs::create_dir(dir.path().join("8-8-8")).unwrap();
    let (_ledger, report) = Ledger::open(dir.path()).unwrap();
    assert_eq!(report, SweepReport::default());
    assert!(!dir.path().join(dead).exists());
    assert!(dir.path().join("README").exists());
    assert!(target.exists());
    assert_eq!(other.try_wait().unwrap(), None, "a link from elsewhere was followed");
    other.kill().unwrap();
    other.wait().unwrap();
}

/// Attack: files | other users read or write the ledger | only the owner has access to directory
/// and file | No orphan
#[test]
fn a_ledger_is_private_and_gone_when_there_is_nothing_to_record() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("made/on/demand");
    let (ledger, _) = Ledger::open(&dir).unwrap();
    let (other, _) = Ledger::open(&dir).unwrap();
    let pid = std::process::id();
    let entries = [
        ledger.record(ProcessKind::Shim, pid, None).unwrap(),
        ledger.record(ProcessKind::Server, pid, None).unwrap(),
    ];
    let mut of_other = Some(other.record(ProcessKind::Group, pid, None).unwrap());
    assert_eq!(files(&dir).len(), 2, "two ledgers of one process share a file");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&dir), mode(&files(&dir)[0])), (0o700, 0o600));
    of_other.take();
    assert_eq!(fs::read_to_string(&files(&dir)[0]).unwrap().lines().count(), 4);
    drop(entries);
    assert!(files(&dir).is_empty());
}

#[test]
fn a_full_ledger_takes_one_more_only_when_another_is_gone() {
    let ledger = Ledger(Arc::new(LedgerState { file: None, entries: Mutex::default() }));
    let pid = std::process::id();
    let mut entries: Vec<_> = (0..ledger_file::MAX_ENTRIES)
        .map(|_| ledger.record(ProcessKind::Server, pid, None).unwrap())
        .collect();
    assert!(ledger.record(ProcessKind::Server, pid, None).is_err());
    entries.pop();
    assert!(ledger.record(ProcessKind::Server, pid, None).is_ok());
}
