//! Tests of server termination: exit, stop and drop.

use std::time::Duration;

use super::super::stop::StopReport;
use super::super::{ExitStatus, ProcessStopStage, StopTimes, Supervisor, spawn, stop};
use super::*;

const GRACE: Duration = Duration::from_secs(2);

const EXIT_GRACE: Duration = Duration::from_secs(1);

/// Stops a server without reading its output; the output pipes stay open.
async fn stop_by_stdin(process: &mut Process, pipes: StdioPipes, grace: Duration) -> StopReport {
    let StdioPipes { stdin, stdout: _stdout, stderr: _stderr } = pipes;
    stop(process, || drop(stdin), StopTimes::halves(grace, EXIT_GRACE)).await
}

#[tokio::test]
async fn the_exit_code_or_the_signal_that_ended_the_server_is_reported() {
    for supervisor in [shim(), fallback_shim(), Supervisor::Group] {
        for (script, exit) in [
            ("exit 0", ExitStatus::Code(0)),
            ("exit 3", ExitStatus::Code(3)),
            ("kill -SEGV $$", ExitStatus::Signal(11)),
            ("kill -KILL $$", ExitStatus::Signal(9)),
        ] {
            let tag = ProcessTag::new();
            let (mut process, _pipes) =
                spawn(&tag.script(script), &supervisor, None).await.unwrap();
            assert_eq!(expect_exit(&mut process).await, exit, "{script}");
            assert_eq!(expect_exit(&mut process).await, exit, "asked again");
            expect_tree_gone(&mut process).await;
            assert_eq!(process.exit_status(), Some(exit));
        }
    }
}

#[tokio::test]
async fn a_group_ends_with_its_leader() {
    let tag = ProcessTag::new();
    let launch = tag.script("trap '' TERM; sleep 600 & echo; exit 3");
    let (mut process, mut pipes) = spawn(&launch, &Supervisor::Group, None).await.unwrap();
    read_line(&mut pipes).await;
    assert_eq!(expect_exit(&mut process).await, ExitStatus::Code(3));
    expect_tree_gone(&mut process).await;
    assert_eq!(tag.pids(), []);
}

#[tokio::test]
async fn waiting_for_the_exit_can_be_cancelled_and_repeated() {
    let tag = ProcessTag::new();
    let (mut process, mut pipes) = start_ready(&tag.script("echo; read x; exit 5")).await;
    for _ in 0..100 {
        let soon = Duration::from_micros(200);
        assert!(tokio::time::timeout(soon, process.wait()).await.is_err());
        assert!(tokio::time::timeout(soon, process.wait_tree()).await.is_err());
    }
    write_stdin(&mut pipes, "go\n").await;
    assert_eq!(expect_exit(&mut process).await, ExitStatus::Code(5));
    expect_tree_gone(&mut process).await;
}

/// Proves: FR2.8
#[tokio::test]
async fn a_server_that_leaves_at_the_end_of_its_input_gets_no_signal() {
    for supervisor in [shim(), fallback_shim(), Supervisor::Group] {
        let tag = ProcessTag::new();
        let script = "trap 'exit 9' TERM INT HUP; echo; cat >/dev/null";
        let (mut process, mut pipes) = spawn(&tag.script(script), &supervisor, None).await.unwrap();
        read_line(&mut pipes).await;
        let report = stop_by_stdin(&mut process, pipes, GRACE).await;
        assert_eq!((report.stage, report.exit), (ProcessStopStage::OnEof, ExitStatus::Code(0)));
        assert!(!report.leftovers && report.took < GRACE, "{report:?}");
        tag.wait_for_count(0);
    }
}

#[tokio::test]
async fn a_server_that_ignores_the_end_of_its_input_is_asked_to_end() {
    for supervisor in [shim(), fallback_shim(), Supervisor::Group] {
        let tag = ProcessTag::new();
        let script = "trap 'exit 7' TERM; echo; while :; do sleep 0.01; done";
        let (mut process, mut pipes) = spawn(&tag.script(script), &supervisor, None).await.unwrap();
        read_line(&mut pipes).await;
        let report = stop_by_stdin(&mut process, pipes, GRACE / 2).await;
        assert_eq!((report.stage, report.exit), (ProcessStopStage::OnTerm, ExitStatus::Code(7)));
        assert!(!report.leftovers, "{report:?}");
        tag.wait_for_count(0);
    }
}

/// Attack: processes | a server ignores the end of its input and all signals | the server is killed
/// after its grace | No unbounded wait
/// Proves: FR2.10, TR2.4
#[tokio::test]
async fn a_server_that_ignores_every_request_is_killed_within_its_grace_and_a_second() {
    for supervisor in [shim(), fallback_shim(), Supervisor::Group] {
        let tag = ProcessTag::new();
        let script = "trap '' TERM INT HUP; echo; while :; do sleep 600; done";
        let (mut process, mut pipes) = spawn(&tag.script(script), &supervisor, None).await.unwrap();
        read_line(&mut pipes).await;
        let grace = GRACE / 4;
        let report = stop_by_stdin(&mut process, pipes, grace).await;
        assert_eq!((report.stage, report.exit), (ProcessStopStage::OnKill, ExitStatus::Signal(9)));
        assert!(!report.leftovers && report.took >= grace, "{report:?}");
        assert!(report.took <= grace + Duration::from_secs(1), "{report:?}");
        tag.wait_for_count(0);
    }
}

#[tokio::test]
async fn the_server_behind_a_launcher_may_finish_when_the_tree_is_asked_to_end() {
    let tag = ProcessTag::new();
    let dir = tempfile::tempdir().unwrap();
    // The launcher dies at once; the server needs a moment to save its state.
    let script = r#"(trap 'sleep 0.2; echo saved >"$1/state"; exit' TERM; echo
        while :; do sleep 0.01; done) & wait"#;
    let mut launch = tag.script(script);
    launch.args.push(dir.path().into());
    let (mut process, pipes) = start_ready(&launch).await;
    let report = stop_by_stdin(&mut process, pipes, GRACE).await;
    assert_eq!((report.stage, report.exit), (ProcessStopStage::OnTerm, ExitStatus::Signal(15)));
    assert_eq!(std::fs::read_to_string(dir.path().join("state")).unwrap(), "saved\n");
}

/// Attack: processes | a server stops itself with SIGSTOP | the server is continued and terminated,
/// or killed | No unbounded wait
#[tokio::test]
async fn a_server_that_stopped_itself_is_continued_to_end_and_can_be_killed() {
    for supervisor in [shim(), fallback_shim(), Supervisor::Group] {
        let tag = ProcessTag::new();
        let script = "trap 'exit 4' TERM; echo; kill -STOP $$; sleep 600";
        let (mut process, mut pipes) = spawn(&tag.script(script), &supervisor, None).await.unwrap();
        read_line(&mut pipes).await;
        process.terminate();
        assert_eq!(expect_exit(&mut process).await, ExitStatus::Code(4));

        let launch = tag.script("echo; kill -STOP $$");
        let (mut process, mut pipes) = spawn(&launch, &supervisor, None).await.unwrap();
        read_line(&mut pipes).await;
        process.kill();
        assert_eq!(expect_exit(&mut process).await, ExitStatus::Signal(9));
        expect_tree_gone(&mut process).await;
        tag.wait_for_count(0);
    }
}

#[test]
fn a_process_dropped_on_a_plain_thread_or_after_its_runtime_leaves_nothing() {
    for supervisor in [shim(), fallback_shim(), Supervisor::Group] {
        for on_thread in [true, false] {
            let tag = ProcessTag::new();
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let script = tag.script("trap '' TERM; echo; sleep 600 & exec sleep 600");
            let (process, pipes) = runtime.block_on(async {
                let (process, mut pipes) = spawn(&script, &supervisor, None).await.unwrap();
                read_line(&mut pipes).await;
                (process, pipes)
            });
            tag.wait_for_count(2);
            if on_thread {
                std::thread::spawn(move || drop(process)).join().unwrap();
                tag.wait_for_count(0);
                drop((pipes, runtime));
            } else {
                drop(runtime);
                tag.wait_for_count(2);
                drop((process, pipes));
                tag.wait_for_count(0);
            }
        }
    }
}

#[tokio::test]
async fn a_killer_works_from_another_thread_and_does_not_keep_the_tree_alive() {
    for supervisor in [shim(), fallback_shim(), Supervisor::Group] {
        let tag = ProcessTag::new();
        let launch = tag.script("trap '' TERM; echo; sleep 600 & exec sleep 600");
        let (mut process, mut pipes) = spawn(&launch, &supervisor, None).await.unwrap();
        read_line(&mut pipes).await;
        let killer = process.kill_handle();
        let clone = killer.clone();
        std::thread::spawn(move || clone.kill()).join().unwrap();
        assert_eq!(expect_exit(&mut process).await, ExitStatus::Signal(9));
        expect_tree_gone(&mut process).await;
        killer.kill();

        let (process, mut pipes) = spawn(&launch, &supervisor, None).await.unwrap();
        read_line(&mut pipes).await;
        let killer = process.kill_handle();
        drop(process);
        tag.wait_for_count(0);
        killer.kill();
    }
}
