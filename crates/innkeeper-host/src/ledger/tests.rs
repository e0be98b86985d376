//! The ledger with real processes and hosts that are killed.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use super::page::{Header, Kind, Noted, write};
use super::*;
use crate::server::process::tests::{Mark, eventually, line, other_test_process, sh, shim};
use crate::server::process::{Supervisor, spawn};
use crate::shim::tree::Stat;

const DIRECTORY: &str = "INNKEEPER_TEST_LEDGER";
const HOST_MARK: &str = "INNKEEPER_TEST_LEDGER_MARK";
const SUPERVISOR: &str = "INNKEEPER_TEST_LEDGER_SUPERVISOR";

/// One process in the group, one that has lost its parent, and the leader.
const SCRIPT: &str = "trap '' TERM HUP; sleep 600 & (sleep 600 &); echo ready; exec sleep 600";

fn files(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()).collect()
}

#[test]
#[ignore = "a host for the tests below, which start it"]
fn runs_a_noted_server_until_it_is_killed() {
    let Some(mark) = std::env::var_os(HOST_MARK) else { return };
    let dir = PathBuf::from(std::env::var_os(DIRECTORY).unwrap());
    let group = std::env::var_os(SUPERVISOR).unwrap() == "group";
    let supervisor = if group { Supervisor::Group } else { shim() };
    let mark = Mark::of(mark);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (ledger, _) = Ledger::open(&dir).unwrap();
        let (_process, mut pipes) =
            spawn(&mark.script(SCRIPT), &supervisor, Some(&ledger)).await.unwrap();
        line(&mut pipes).await;
        println!("host ready");
        std::future::pending::<()>().await;
    });
}

/// Starts a host that notes what it starts, and waits until its server runs.
fn host(dir: &Path, mark: &Mark, supervisor: &str) -> std::process::Child {
    let test = "ledger::tests::runs_a_noted_server_until_it_is_killed";
    let dir = dir.to_str().unwrap();
    let env = [(DIRECTORY, dir), (HOST_MARK, mark.as_str()), (SUPERVISOR, supervisor)];
    let mut host = other_test_process(test, &env);
    let mut lines = BufReader::new(host.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("host ready")), "the host ended early");
    mark.reaches(3);
    host
}

#[test]
fn the_next_host_ends_the_group_that_a_killed_host_has_left() {
    for leaderless in [false, true] {
        let (dir, mark) = (tempfile::tempdir().unwrap(), Mark::new());
        let mut host = host(dir.path(), &mark, "group");
        host.kill().unwrap();
        host.wait().unwrap();
        mark.reaches(3);
        if leaderless {
            let group = mark
                .running()
                .into_iter()
                .find(|pid| Stat::read(*pid).is_some_and(|stat| stat.group == Some(*pid)));
            let _ = rustix::process::kill_process(group.unwrap(), rustix::process::Signal::KILL);
            // In a container it may stay a zombie: its first process need not wait for orphans.
            let ended = || Stat::read(group.unwrap()).is_none_or(|stat| stat.zombie);
            eventually("the leader to end", ended);
        }
        let (_ledger, report) = Ledger::open(dir.path()).unwrap();
        mark.reaches(0);
        let killed = if leaderless { 2 } else { 3 };
        assert_eq!(report, SweepReport { dead_hosts: 1, killed });
        assert!(files(dir.path()).is_empty());
    }
}

#[test]
fn the_next_host_wakes_the_shim_of_a_killed_host_to_end_its_tree() {
    let (dir, mark) = (tempfile::tempdir().unwrap(), Mark::new());
    let mut host = host(dir.path(), &mark, "shim");
    let shim = mark.running().into_iter().find_map(|pid| {
        let stat = Stat::read(pid).filter(|stat| stat.group == Some(pid))?;
        stat.parent
    });
    rustix::process::kill_process(shim.unwrap(), rustix::process::Signal::STOP).unwrap();
    host.kill().unwrap();
    host.wait().unwrap();
    mark.reaches(3);
    let (_ledger, report) = Ledger::open(dir.path()).unwrap();
    mark.reaches(0);
    assert_eq!(report, SweepReport { dead_hosts: 1, killed: 0 }, "the shim does the work");
    assert!(files(dir.path()).is_empty());
}

#[test]
fn the_next_host_ends_the_server_whose_shim_died_with_its_host() {
    let (dir, mark) = (tempfile::tempdir().unwrap(), Mark::new());
    let mut host = host(dir.path(), &mark, "shim");
    let leader = mark.running().into_iter().filter_map(Stat::read);
    let shim = leader.filter(|stat| stat.group == Some(stat.pid)).find_map(|stat| stat.parent);
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&host),
        rustix::process::Signal::STOP,
    )
    .unwrap();
    rustix::process::kill_process(shim.unwrap(), rustix::process::Signal::KILL).unwrap();
    host.kill().unwrap();
    host.wait().unwrap();
    mark.reaches(3);
    let (_ledger, report) = Ledger::open(dir.path()).unwrap();
    mark.reaches(0);
    assert_eq!(report, SweepReport { dead_hosts: 1, killed: 3 });
}

#[test]
fn two_hosts_leave_each_other_s_servers_alone() {
    let (dir, mark) = (tempfile::tempdir().unwrap(), Mark::new());
    let mut host = host(dir.path(), &mark, "shim");
    let (_ledger, report) = Ledger::open(dir.path()).unwrap();
    assert_eq!(report, SweepReport::default());
    assert_eq!((mark.running().len(), files(dir.path()).len()), (3, 1));
    host.kill().unwrap();
    host.wait().unwrap();
}

/// A file as a dead host would have left it.
fn left_by_a_dead_host(dir: &Path, header: &Header, entries: &[Noted]) -> PathBuf {
    // No process of this id can have been started in the first tick of the system.
    let file = dir.join(format!("{}-0-0", std::process::id()));
    fs::write(&file, write(header, entries.iter())).unwrap();
    file
}

#[test]
fn a_process_that_only_has_the_id_of_a_noted_one_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut other = sh("exec sleep 600");
    let start = sweep::start_time(other.id()).unwrap();
    let (_, header) = Header::of_this_host().unwrap();
    let pid = other.id();
    let noted = |kind, start| Noted { kind, pid, start };
    let entries = [
        noted(Kind::Shim, start + 1),
        noted(Kind::Server, start + 1),
        noted(Kind::Group, start + 1),
    ];
    let file = left_by_a_dead_host(dir.path(), &header, &entries);
    let (_ledger, report) = Ledger::open(dir.path()).unwrap();
    assert_eq!(report, SweepReport { dead_hosts: 1, killed: 0 });
    assert!(!file.exists());
    assert_eq!(other.try_wait().unwrap(), None);

    let earlier = Header { boot: "earlier-start".to_owned(), ..header.clone() };
    let file = left_by_a_dead_host(dir.path(), &earlier, &[noted(Kind::Server, start)]);
    drop(Ledger::open(dir.path()).unwrap());
    assert!(!file.exists());
    assert_eq!(other.try_wait().unwrap(), None);

    let elsewhere = Header { namespace: "pid:[1]".to_owned(), ..header };
    let file = left_by_a_dead_host(dir.path(), &elsewhere, &[noted(Kind::Server, start)]);
    drop(Ledger::open(dir.path()).unwrap());
    assert!(file.exists());
    assert_eq!(other.try_wait().unwrap(), None);
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn a_sweep_ends_in_time_also_within_one_file_and_leaves_the_rest_to_the_next() {
    let dir = tempfile::tempdir().unwrap();
    // A shim that does not end although it was told to.
    let mut shim = sh("exec setsid sh -c \"trap '' TERM; echo; exec sleep 600\"");
    std::io::Read::read_exact(shim.stdout.as_mut().unwrap(), &mut [0]).unwrap();
    let start = sweep::start_time(shim.id()).unwrap();
    let (_, header) = Header::of_this_host().unwrap();
    let noted = Noted { kind: Kind::Shim, pid: shim.id(), start };
    let file = left_by_a_dead_host(dir.path(), &header, &[noted]);
    let limit = sweep::LIMIT - Duration::from_millis(100);
    let report = sweep::sweep(dir.path(), sweep::end() - limit).unwrap();
    assert_eq!(report, SweepReport { dead_hosts: 1, killed: 0 });
    assert!(file.exists());
    let (_ledger, report) = Ledger::open(dir.path()).unwrap();
    assert_eq!(report, SweepReport { dead_hosts: 1, killed: 1 });
    assert!(!file.exists());
    shim.wait().unwrap();
}

#[test]
fn files_that_make_no_sense_are_no_trouble() {
    let dir = tempfile::tempdir().unwrap();
    let dead = format!("{}-0-1", std::process::id());
    fs::write(dir.path().join(&dead), [0xff; 100]).unwrap();
    fs::write(dir.path().join("README"), "mine").unwrap();
    let (_, header) = Header::of_this_host().unwrap();
    let mut other = sh("exec sleep 600");
    let start = sweep::start_time(other.id()).unwrap();
    let noted = Noted { kind: Kind::Server, pid: other.id(), start };
    let page = left_by_a_dead_host(dir.path(), &header, &[noted]);
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

#[test]
fn a_ledger_is_private_and_gone_when_there_is_nothing_to_note() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("made/on/demand");
    let (ledger, _) = Ledger::open(&dir).unwrap();
    let (other, _) = Ledger::open(&dir).unwrap();
    let own = std::process::id();
    let entries =
        [ledger.record(Kind::Shim, own).unwrap(), ledger.record(Kind::Server, own).unwrap()];
    let mut of_other = Some(other.record(Kind::Group, own).unwrap());
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
    let ledger = Ledger(Arc::new(Shared { file: None, entries: Mutex::default() }));
    let own = std::process::id();
    let mut entries: Vec<_> =
        (0..page::ENTRY_LIMIT).map(|_| ledger.record(Kind::Server, own).unwrap()).collect();
    assert!(ledger.record(Kind::Server, own).is_err());
    entries.pop();
    assert!(ledger.record(Kind::Server, own).is_ok());
}
