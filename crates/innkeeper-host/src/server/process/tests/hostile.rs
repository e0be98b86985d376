//! Servers that do their best to leave something behind.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::Duration;

use super::super::{Exit, Supervisor, spawn};
use super::*;
use crate::shim::tree::Stat;

/// Six processes that ignore every request: in the group, in a session of their own, and as
/// daemons whose parents have ended.
pub(super) const HOSTILE: &str = r#"
    trap '' TERM INT HUP
    sleep 600 &
    setsid sh -c 'sleep 600 & exec sleep 600' &
    (setsid sh -c 'setsid sleep 600 </dev/null >/dev/null 2>&1 & exec sleep 600' &)
    echo ready
    exec sleep 600"#;
pub(super) const HOSTILE_COUNT: usize = 6;

fn shim_of(process: &Process) -> Pid {
    let main = Pid::from_raw(process.id().try_into().unwrap()).unwrap();
    Stat::read(main).and_then(|stat| stat.parent).unwrap()
}

/// Proves: TR2.4
#[tokio::test]
async fn nothing_of_a_tree_that_hides_in_sessions_and_daemons_survives_a_kill() {
    let mark = Mark::new();
    let (mut process, _pipes) = start_ready(&mark.script(HOSTILE)).await;
    mark.reaches(HOSTILE_COUNT);
    process.kill();
    gone(&mut process).await;
    assert_eq!(mark.running(), []);
    assert_eq!(process.exit(), Some(Exit::Signal(9)));
}

#[tokio::test]
async fn nothing_of_a_tree_survives_its_process_being_dropped() {
    let mark = Mark::new();
    let (process, pipes) = start_ready(&mark.script(HOSTILE)).await;
    mark.reaches(HOSTILE_COUNT);
    drop((process, pipes));
    mark.reaches(0);
}

#[tokio::test]
async fn a_main_process_that_exits_takes_its_grandchildren_and_the_pipes_they_hold_along() {
    let mark = Mark::new();
    let script = "trap '' TERM; setsid sleep 600 & sleep 600 & echo ready; exit 3";
    let (mut process, mut pipes) = start_ready(&mark.script(script)).await;
    assert_eq!(exited(&mut process).await, Exit::Code(3));
    assert_eq!(output(&mut pipes).await, "");
    gone(&mut process).await;
    assert_eq!(mark.running(), []);
}

#[tokio::test]
async fn a_signal_to_the_shim_ends_the_tree() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mark = Mark::new();
        let (mut process, _pipes) = start_ready(&mark.script(HOSTILE)).await;
        mark.reaches(HOSTILE_COUNT);
        rustix::process::kill_process(shim_of(&process), signal).unwrap();
        assert_eq!(exited(&mut process).await, Exit::Signal(9));
        gone(&mut process).await;
        assert_eq!(mark.running(), []);
    }
}

#[tokio::test]
async fn a_shim_that_the_server_stops_is_woken_to_do_its_work() {
    for dropped in [true, false] {
        let mark = Mark::new();
        let script = "read x; kill -STOP $PPID; echo stopped; exec sleep 600";
        let (mut process, mut pipes) = start(&mark.script(script)).await;
        say(&mut pipes, "go\n").await;
        assert_eq!(line(&mut pipes).await, "stopped");
        if dropped {
            drop(process);
        } else {
            process.kill();
            gone(&mut process).await;
        }
        mark.reaches(0);
    }
}

#[tokio::test]
async fn what_a_killed_shim_leaves_in_its_session_is_ended_by_the_host() {
    let mark = Mark::new();
    let script =
        "trap '' TERM; sleep 600 & (sleep 600 &); setsid sleep 600 & echo ready; exec sleep 600";
    let (mut process, _pipes) = start_ready(&mark.script(script)).await;
    mark.reaches(4);
    rustix::process::kill_process(shim_of(&process), Signal::KILL).unwrap();
    assert_eq!(exited(&mut process).await, Exit::Unsupervised);
    gone(&mut process).await;
    assert_eq!(mark.running(), []);
}

#[tokio::test]
async fn a_daemon_that_a_killed_shim_leaves_elsewhere_is_ended_too() {
    let mark = Mark::new();
    // In a session of its own, and nobody's child once the shim is gone.
    let script = "(setsid sleep 600 &); echo ready; read x; kill -KILL $PPID; exec sleep 600";
    let (mut process, mut pipes) = start_ready(&mark.script(script)).await;
    mark.reaches(2);
    say(&mut pipes, "go\n").await;
    assert_eq!(exited(&mut process).await, Exit::Unsupervised);
    gone(&mut process).await;
    assert_eq!(mark.running(), []);
}

#[tokio::test]
async fn a_loop_that_forks_faster_than_it_is_counted_is_ended() {
    let mark = Mark::new();
    let script = "trap '' TERM; echo ready; while :; do sleep 0.05 & done";
    let (mut process, _pipes) = start_ready(&mark.script(script)).await;
    eventually("the loop to run", || mark.running().len() >= 16);
    process.kill();
    gone(&mut process).await;
    assert_eq!(mark.running(), []);
}

#[tokio::test]
async fn a_process_that_is_always_replaced_by_its_child_is_caught() {
    let mark = Mark::new();
    // Each generation starts the next one in a new session and exits.
    let script =
        "export AGAIN='setsid sh -c \"$AGAIN\" &'; sh -c \"$AGAIN\"; echo ready; sleep 600";
    let (mut process, _pipes) = start_ready(&mark.script(script)).await;
    process.kill();
    gone(&mut process).await;
    assert_eq!(mark.running(), []);
}

/// Proves: TR2.5
#[tokio::test]
async fn orphans_that_end_are_reaped_while_the_server_runs() {
    let mark = Mark::new();
    let script = "for i in 1 2 3 4 5 6 7 8; do (sh -c 'exit 0' &); done; echo ready; sleep 600";
    let (process, _pipes) = start_ready(&mark.script(script)).await;
    let shim = shim_of(&process);
    eventually("no zombie below the shim", || {
        let every = crate::shim::tree::every();
        !every.iter().any(|stat| stat.parent == Some(shim) && stat.zombie)
    });
}

#[tokio::test]
async fn the_environment_of_the_host_cannot_be_read_through_the_shim() {
    let mark = Mark::new();
    let (_dir, supervisor) = renamed_shim_of_an_ordinary_user();
    let launch = mark.script("echo; exec sleep 600");
    let (process, mut pipes) = spawn(&launch, &supervisor, None).await.unwrap();
    line(&mut pipes).await;
    let owner = |pid: Pid| std::fs::metadata(format!("/proc/{pid}/environ")).unwrap().uid();
    // What may not be looked into belongs to root, whoever runs it.
    assert_eq!(owner(shim_of(&process)), 0);
    assert_ne!(owner(Pid::from_raw(process.id().try_into().unwrap()).unwrap()), 0);
}

#[tokio::test]
async fn a_shim_is_listed_under_its_own_name_whatever_program_it_is() {
    let mark = Mark::new();
    let (_dir, supervisor) = renamed_shim_of_an_ordinary_user();
    let (process, _pipes) = spawn(&mark.script("exec sleep 600"), &supervisor, None).await.unwrap();
    let name = std::fs::read_to_string(format!("/proc/{}/comm", shim_of(&process))).unwrap();
    assert_eq!(name, "innkeeper-shim\n");
}

/// A copy of the shim under another name. Root may look into every process, so a test that root
/// runs lets another user run it.
fn renamed_shim_of_an_ordinary_user() -> (tempfile::TempDir, Supervisor) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let Supervisor::Shim { program, args } = shim() else { unreachable!() };
    let copy = dir.path().join("application");
    std::fs::copy(program, &copy).unwrap();
    if !rustix::process::geteuid().is_root() {
        return (dir, Supervisor::Shim { program: copy, args });
    }
    let mut lead = ["--reuid=65534", "--clear-groups"].map(OsString::from).to_vec();
    lead.extend([copy.into()].into_iter().chain(args));
    (dir, Supervisor::Shim { program: "/usr/bin/setpriv".into(), args: lead })
}

#[tokio::test]
async fn a_tree_is_gone_within_a_second_of_a_kill_even_if_it_is_large() {
    let mark = Mark::new();
    let script =
        "trap '' TERM; for i in $(seq 64); do setsid sleep 600 & done; echo ready; exec sleep 600";
    let (mut process, _pipes) = start_ready(&mark.script(script)).await;
    mark.reaches(65);
    process.kill();
    let killed = tokio::time::Instant::now();
    gone(&mut process).await;
    assert!(killed.elapsed() < Duration::from_secs(1), "{:?}", killed.elapsed());
    assert_eq!(mark.running(), []);
}
