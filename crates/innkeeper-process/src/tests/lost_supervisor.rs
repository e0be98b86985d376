//! Tests that no process is left when supervisors are killed, alone or with their host.

use std::io::{BufRead, BufReader};

use super::*;
use crate::host_process::adopt_orphans;
use crate::ledger::{Ledger, SweepReport};
use crate::tree::{ProcessStat, all_processes};

const HOST_TAG: &str = "INNKEEPER_TEST_LOST_MARK";
const HOST_SCRIPT: &str = "INNKEEPER_TEST_LOST_SCRIPT";
const HOST_LEDGER: &str = "INNKEEPER_TEST_LOST_LEDGER";
const HOST_ADOPTS: &str = "INNKEEPER_TEST_LOST_ADOPTS";
const HOST_HELPER: &str = "INNKEEPER_TEST_LOST_HELPER";

/// The main process of a server that ignores the end of its input and SIGTERM.
const STUBBORN_SERVER: &str = "trap '' TERM HUP; echo ready; while :; do sleep 600; done";

/// A process that no environment identifies: its arguments contain a random number.
struct HiddenProcess(String);

impl HiddenProcess {
    fn new() -> Self {
        Self(format!("6{:09}", fastrand::u32(..1_000_000_000)))
    }

    /// Returns a script that leaves a daemon without session, parent and environment. `before` runs
    /// in the daemon.
    fn script(&self, before: &str) -> String {
        let Self(number) = self;
        format!(
            "(setsid env -i sh -c '{before} exec sleep {number}' </dev/null >/dev/null 2>&1 &)
             until grep -zqx {number} /proc/[0-9]*/cmdline 2>/dev/null; do :; done\n"
        )
    }

    /// Returns a script that leaves the daemon and then is a server.
    fn server_script(&self, before: &str) -> String {
        self.script(before) + STUBBORN_SERVER
    }

    fn pids(&self) -> Vec<Pid> {
        let command = format!("sleep\0{}\0", self.0).into_bytes();
        let processes = all_processes().into_iter().filter(|stat| !stat.zombie);
        let is_ours = |pid: &Pid| {
            std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == command)
        };
        processes.map(|stat| stat.pid).filter(is_ours).collect()
    }
}

impl Drop for HiddenProcess {
    fn drop(&mut self) {
        for pid in self.pids() {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

#[test]
#[ignore = "a host process for the tests below, which start it"]
fn runs_a_server_until_it_loses_its_supervisor() {
    let Some(tag) = std::env::var_os(HOST_TAG) else { return };
    let tag = ProcessTag::from_env(tag);
    let script = std::env::var_os(HOST_SCRIPT).unwrap().into_string().unwrap();
    let ledger = PathBuf::from(std::env::var_os(HOST_LEDGER).unwrap());
    if std::env::var_os(HOST_ADOPTS).is_some_and(|adopts| adopts == "yes") {
        adopt_orphans().unwrap();
    }
    if let Some(helper) = std::env::var_os(HOST_HELPER) {
        assert!(shell(&helper.into_string().unwrap()).wait().unwrap().success());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (ledger, _) = Ledger::open(&ledger).unwrap();
        let (mut process, mut pipes) =
            spawn(&tag.script(&script), &shim(), Some(&ledger)).await.unwrap();
        read_line(&mut pipes).await;
        let main = Pid::from_raw(process.id().try_into().unwrap()).unwrap();
        let shim = ProcessStat::read(main).and_then(|stat| stat.parent).unwrap();
        println!("host ready {shim}");
        process.wait_tree().await;
        let zombies =
            crate::tree::child_stats(rustix::process::getpid()).iter().any(|stat| stat.zombie);
        println!("tree gone, zombies: {zombies}");
        std::future::pending::<()>().await;
    });
}

struct LostHost {
    process: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    shim: Pid,
}

impl LostHost {
    fn start(tag: &ProcessTag, script: &str, ledger: &Path, adopts: bool) -> Self {
        Self::start_with_helper(tag, script, ledger, (adopts, "true"))
    }

    /// Starts a host that first runs a program of its own.
    fn start_with_helper(
        tag: &ProcessTag,
        script: &str,
        ledger: &Path,
        (adopts, helper): (bool, &str),
    ) -> Self {
        let test = "tests::lost_supervisor::runs_a_server_until_it_loses_its_supervisor";
        let env = [
            (HOST_TAG, tag.as_str()),
            (HOST_SCRIPT, script),
            (HOST_LEDGER, ledger.to_str().unwrap()),
            (HOST_ADOPTS, if adopts { "yes" } else { "no" }),
            (HOST_HELPER, helper),
        ];
        let mut process = spawn_test_process(test, &env);
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let ready = lines.by_ref().map(Result::unwrap).find(|line| line.contains("host ready"));
        let shim = ready.and_then(|line| line.rsplit(' ').next()?.parse().ok());
        let shim = shim.and_then(Pid::from_raw).expect("the host ended early");
        Self { process, lines, shim }
    }

    fn kill_shim(&self) {
        rustix::process::kill_process(self.shim, Signal::KILL).unwrap();
    }

    /// Kills the host and its supervisor, so that neither acts on the end of the other.
    fn kill_with_shim(self) {
        let host = Pid::from_child(&self.process);
        for pid in [host, self.shim] {
            rustix::process::kill_process(pid, Signal::STOP).unwrap();
        }
        for pid in [self.shim, host] {
            rustix::process::kill_process(pid, Signal::KILL).unwrap();
        }
    }
}

impl Drop for LostHost {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Attack: processes | host and supervisor are killed at one moment; the server ignores signals |
/// the server ends without another host | No orphan
#[test]
fn a_server_ends_with_its_supervisor_and_its_host_without_another_host() {
    let (dir, tag) = (tempfile::tempdir().unwrap(), ProcessTag::new());
    let script = "trap '' TERM HUP; echo ready; exec sleep 600";
    LostHost::start(&tag, script, dir.path(), true).kill_with_shim();
    tag.wait_for_count(0);
}

/// Attack: processes | host and supervisor are killed; a daemon left its session and cleared its
/// environment | the sweep of the next host ends the daemon | No orphan
#[test]
fn the_next_host_ends_a_daemon_that_left_session_and_environment() {
    let (dir, tag) = (tempfile::tempdir().unwrap(), ProcessTag::new());
    let daemon = HiddenProcess::new();
    LostHost::start(&tag, &daemon.server_script(""), dir.path(), true).kill_with_shim();
    assert_eq!(daemon.pids().len(), 1);
    let (_ledger, report) = Ledger::open(dir.path()).unwrap();
    assert_eq!(daemon.pids(), []);
    assert_eq!(tag.pids(), []);
    assert!(report.dead_hosts == 1 && report.killed >= 1, "{report:?}");
    let (_ledger, report) = Ledger::open(dir.path()).unwrap();
    assert_eq!(report, SweepReport::default());
}

/// Attack: processes | a daemon without session and environment loses its supervisor; one server
/// changes its resource limit before | the host ends the daemon | No orphan
#[test]
fn a_host_ends_a_daemon_that_its_killed_supervisor_left() {
    for (adopts, before) in [(false, ""), (true, ""), (true, "prlimit --pid $$ --locks=1:1 &&")] {
        let (dir, tag) = (tempfile::tempdir().unwrap(), ProcessTag::new());
        let daemon = HiddenProcess::new();
        let mut host = LostHost::start(&tag, &daemon.server_script(before), dir.path(), adopts);
        assert_eq!(daemon.pids().len(), 1);
        host.kill_shim();
        let line = host.lines.next().unwrap().unwrap();
        assert_eq!(daemon.pids(), [], "adopts: {adopts}, before: {before:?}");
        tag.wait_for_count(0);
        assert_eq!(line, "tree gone, zombies: false");
    }
}

#[test]
fn a_host_that_adopts_orphans_does_not_end_the_child_of_its_own_program() {
    // For example a browser, which the program that opens a URL leaves behind.
    let (dir, tag) = (tempfile::tempdir().unwrap(), ProcessTag::new());
    let browser = HiddenProcess::new();
    let opener = browser.script("");
    let helper = (true, opener.as_str());
    let mut host = LostHost::start_with_helper(&tag, STUBBORN_SERVER, dir.path(), helper);
    host.kill_shim();
    assert_eq!(host.lines.next().unwrap().unwrap(), "tree gone, zombies: false");
    let parent = |pid: &Pid| ProcessStat::read(*pid).and_then(|stat| stat.parent);
    let parents: Vec<_> = browser.pids().iter().map(parent).collect();
    assert_eq!(parents, [Some(Pid::from_child(&host.process))]);
}
