//! Tests with servers that try to leave processes behind.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::Duration;

use super::super::{ExitStatus, Supervisor, spawn};
use super::*;
use crate::tree::ProcessStat;

/// Six processes that ignore all termination signals: in the group, in separate sessions, and as
/// daemons whose parents have exited.
pub(super) const HOSTILE_SCRIPT: &str = r#"
    trap '' TERM INT HUP
    sleep 600 &
    setsid sh -c 'sleep 600 & exec sleep 600' &
    (setsid sh -c 'setsid sleep 600 </dev/null >/dev/null 2>&1 & exec sleep 600' &)
    echo ready
    exec sleep 600"#;
pub(super) const HOSTILE_COUNT: usize = 6;

fn shim_pid(process: &Process) -> Pid {
    let main = Pid::from_raw(process.id().try_into().unwrap()).unwrap();
    ProcessStat::read(main).and_then(|stat| stat.parent).unwrap()
}

/// Attack: processes | a server starts daemons, new sessions and processes that ignore signals | a
/// kill ends the whole tree | No orphan
/// Proves: TR2.4
#[tokio::test]
async fn nothing_of_a_tree_that_hides_in_sessions_and_daemons_survives_a_kill() {
    let tag = ProcessTag::new();
    let (mut process, _pipes) = start_ready(&tag.script(HOSTILE_SCRIPT)).await;
    tag.wait_for_count(HOSTILE_COUNT);
    process.kill();
    expect_tree_gone(&mut process).await;
    assert_eq!(tag.pids(), []);
    assert_eq!(process.exit_status(), Some(ExitStatus::Signal(9)));
}

/// Attack: processes | the application drops the handle of such a server | the whole tree ends | No
/// orphan
#[tokio::test]
async fn nothing_of_a_tree_survives_its_process_being_dropped() {
    let tag = ProcessTag::new();
    let (process, pipes) = start_ready(&tag.script(HOSTILE_SCRIPT)).await;
    tag.wait_for_count(HOSTILE_COUNT);
    drop((process, pipes));
    tag.wait_for_count(0);
}

/// Attack: processes | a server exits while grandchildren hold its pipes | the exit is reported,
/// and the grandchildren end | No orphan
#[tokio::test]
async fn a_main_process_that_exits_takes_its_grandchildren_and_the_pipes_they_hold_along() {
    let tag = ProcessTag::new();
    let script = "trap '' TERM; setsid sleep 600 & sleep 600 & echo ready; exit 3";
    let (mut process, mut pipes) = start_ready(&tag.script(script)).await;
    assert_eq!(expect_exit(&mut process).await, ExitStatus::Code(3));
    assert_eq!(read_output(&mut pipes).await, "");
    expect_tree_gone(&mut process).await;
    assert_eq!(tag.pids(), []);
}

#[tokio::test]
async fn a_signal_to_the_shim_ends_the_tree() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let tag = ProcessTag::new();
        let (mut process, _pipes) = start_ready(&tag.script(HOSTILE_SCRIPT)).await;
        tag.wait_for_count(HOSTILE_COUNT);
        rustix::process::kill_process(shim_pid(&process), signal).unwrap();
        assert_eq!(expect_exit(&mut process).await, ExitStatus::Signal(9));
        expect_tree_gone(&mut process).await;
        assert_eq!(tag.pids(), []);
    }
}

/// Attack: processes | a server stops its supervisor with SIGSTOP | the kill wakes the supervisor,
/// and the tree ends | No orphan
#[tokio::test]
async fn a_shim_that_the_server_stops_is_woken_to_do_its_work() {
    for dropped in [true, false] {
        let tag = ProcessTag::new();
        let script = "read x; kill -STOP $PPID; echo stopped; exec sleep 600";
        let (mut process, mut pipes) = start(&tag.script(script)).await;
        write_stdin(&mut pipes, "go\n").await;
        assert_eq!(read_line(&mut pipes).await, "stopped");
        if dropped {
            drop(process);
        } else {
            process.kill();
            expect_tree_gone(&mut process).await;
        }
        tag.wait_for_count(0);
    }
}

/// Attack: processes | the supervisor of a hostile tree is killed with SIGKILL | the host ends the
/// rest | No orphan
#[tokio::test]
async fn what_a_killed_shim_leaves_in_its_session_is_ended_by_the_host() {
    let tag = ProcessTag::new();
    let script =
        "trap '' TERM; sleep 600 & (sleep 600 &); setsid sleep 600 & echo ready; exec sleep 600";
    let (mut process, _pipes) = start_ready(&tag.script(script)).await;
    tag.wait_for_count(4);
    rustix::process::kill_process(shim_pid(&process), Signal::KILL).unwrap();
    assert_eq!(expect_exit(&mut process).await, ExitStatus::Unsupervised);
    expect_tree_gone(&mut process).await;
    assert_eq!(tag.pids(), []);
}

/// Attack: processes | a server kills its supervisor after its daemon left the session | the host
/// ends the daemon | No orphan
#[tokio::test]
async fn a_daemon_that_a_killed_shim_leaves_elsewhere_is_ended_too() {
    let tag = ProcessTag::new();
    // The process has a separate session and becomes an orphan when the shim exits.
    let script = "(setsid sleep 600 &); echo ready; read x; kill -KILL $PPID; exec sleep 600";
    let (mut process, mut pipes) = start_ready(&tag.script(script)).await;
    tag.wait_for_count(2);
    write_stdin(&mut pipes, "go\n").await;
    assert_eq!(expect_exit(&mut process).await, ExitStatus::Unsupervised);
    expect_tree_gone(&mut process).await;
    assert_eq!(tag.pids(), []);
}

/// Attack: processes | a server forks in a loop | a kill ends each process | No orphan
#[tokio::test]
async fn a_loop_that_forks_faster_than_it_is_counted_is_ended() {
    let tag = ProcessTag::new();
    let script = "trap '' TERM; echo ready; while :; do sleep 0.05 & done";
    let (mut process, _pipes) = start_ready(&tag.script(script)).await;
    eventually("the loop to run", || tag.pids().len() >= 16);
    process.kill();
    expect_tree_gone(&mut process).await;
    assert_eq!(tag.pids(), []);
}

/// Attack: processes | each process starts its successor in a new session and exits | a kill ends
/// the chain | No orphan
#[tokio::test]
async fn a_process_that_is_always_replaced_by_its_child_is_caught() {
    let tag = ProcessTag::new();
    // Each generation starts the next one in a new session and exits.
    let script =
        "export AGAIN='setsid sh -c \"$AGAIN\" &'; sh -c \"$AGAIN\"; echo ready; sleep 600";
    let (mut process, _pipes) = start_ready(&tag.script(script)).await;
    process.kill();
    expect_tree_gone(&mut process).await;
    assert_eq!(tag.pids(), []);
}

/// Proves: TR2.5
#[tokio::test]
async fn orphans_that_end_are_reaped_while_the_server_runs() {
    let tag = ProcessTag::new();
    let script =
        "for i in 1 2 3 4 5 6 7 8; do (sleep 600 & echo $!); done; echo ready; exec sleep 600";
    let (process, mut pipes) = start(&tag.script(script)).await;
    let mut orphans: Vec<Pid> = Vec::new();
    while let Ok(pid) = read_line(&mut pipes).await.parse() {
        orphans.push(Pid::from_raw(pid).unwrap());
    }
    assert_eq!(orphans.len(), 8);
    let shim = shim_pid(&process);
    eventually("each orphan to be a child of the shim", || {
        let parent = |pid: &Pid| ProcessStat::read(*pid).and_then(|stat| stat.parent);
        orphans.iter().all(|pid| parent(pid) == Some(shim))
    });
    for pid in &orphans {
        rustix::process::kill_process(*pid, Signal::KILL).unwrap();
    }
    // A zombie has a status too.
    eventually("no orphan to have a status", || {
        orphans.iter().all(|pid| ProcessStat::read(*pid).is_none())
    });
    assert_eq!(process.exit_status(), None, "the server runs");
}

/// Attack: secrets | a server opens the environment of its supervisor in `/proc` | the files belong
/// to root and are unreadable | Secrets stay with their owner
#[tokio::test]
async fn the_environment_of_the_host_cannot_be_read_through_the_shim() {
    let tag = ProcessTag::new();
    let (_dir, supervisor) = unprivileged_renamed_shim();
    let launch = tag.script("echo; exec sleep 600");
    let (process, mut pipes) = spawn(&launch, &supervisor, None).await.unwrap();
    read_line(&mut pipes).await;
    let owner = |pid: Pid| std::fs::metadata(format!("/proc/{pid}/environ")).unwrap().uid();
    // An unreadable process belongs to root, whichever user runs it.
    assert_eq!(owner(shim_pid(&process)), 0);
    assert_ne!(owner(Pid::from_raw(process.id().try_into().unwrap()).unwrap()), 0);
}

#[tokio::test]
async fn a_shim_is_listed_under_its_own_name_whatever_program_it_is() {
    let tag = ProcessTag::new();
    let (_dir, supervisor) = unprivileged_renamed_shim();
    let (process, _pipes) = spawn(&tag.script("exec sleep 600"), &supervisor, None).await.unwrap();
    let name = std::fs::read_to_string(format!("/proc/{}/comm", shim_pid(&process))).unwrap();
    assert_eq!(name, "innkeeper-shim\n");
}

/// Copies the shim under another name.
pub(super) fn renamed_shim() -> (tempfile::TempDir, Supervisor) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let copy = dir.path().join("application");
    let args = match (shim(), fallback_shim()) {
        #[cfg(innkeeper_embedded_supervisor)]
        (Supervisor::Embedded(_), _) => {
            std::fs::write(&copy, crate::supervisor::PROGRAM).unwrap();
            std::fs::set_permissions(&copy, PermissionsExt::from_mode(0o755)).unwrap();
            Vec::new()
        }
        (_, Supervisor::Shim { program, args }) => {
            std::fs::copy(program, &copy).unwrap();
            args
        }
        _ => unreachable!(),
    };
    (dir, Supervisor::Shim { program: copy, args })
}

/// Copies the shim under another name. Root can inspect every process, so if root runs the test,
/// the shim runs as another user.
pub(super) fn unprivileged_renamed_shim() -> (tempfile::TempDir, Supervisor) {
    let (dir, supervisor) = renamed_shim();
    if !rustix::process::geteuid().is_root() {
        return (dir, supervisor);
    }
    let Supervisor::Shim { program: copy, args } = supervisor else { unreachable!() };
    let mut lead = ["--reuid=65534", "--clear-groups"].map(OsString::from).to_vec();
    lead.extend([copy.into()].into_iter().chain(args));
    (dir, Supervisor::Shim { program: "/usr/bin/setpriv".into(), args: lead })
}

/// Attack: processes | a server starts 64 sessions that ignore SIGTERM | a kill ends the tree
/// within 1 s | No orphan
#[tokio::test]
async fn a_tree_is_gone_within_a_second_of_a_kill_even_if_it_is_large() {
    let tag = ProcessTag::new();
    let script =
        "trap '' TERM; for i in $(seq 64); do setsid sleep 600 & done; echo ready; exec sleep 600";
    let (mut process, _pipes) = start_ready(&tag.script(script)).await;
    tag.wait_for_count(65);
    process.kill();
    let killed = tokio::time::Instant::now();
    expect_tree_gone(&mut process).await;
    assert!(killed.elapsed() < Duration::from_secs(1), "{:?}", killed.elapsed());
    assert_eq!(tag.pids(), []);
}
