//! How a server ends: by itself, when it is stopped, and when it is let go of.

use std::time::Duration;

use super::super::stop::StopReport;
use super::super::{Exit, Stopped, Supervisor, spawn, stop};
use super::*;

const GRACE: Duration = Duration::from_secs(2);

/// Stops a server; what it still writes is not read, and the pipes for it stay open.
async fn stop_by_stdin(process: &mut Process, pipes: Pipes, grace: Duration) -> StopReport {
    let Pipes { stdin, stdout: _stdout, stderr: _stderr } = pipes;
    stop(process, || drop(stdin), grace).await
}

#[tokio::test]
async fn the_exit_code_or_the_signal_that_ended_the_server_is_told() {
    for supervisor in [shim(), Supervisor::Group] {
        for (script, exit) in [
            ("exit 0", Exit::Code(0)),
            ("exit 3", Exit::Code(3)),
            ("kill -SEGV $$", Exit::Signal(11)),
            ("kill -KILL $$", Exit::Signal(9)),
        ] {
            let mark = Mark::new();
            let (mut process, _pipes) =
                spawn(&mark.script(script), &supervisor, None).await.unwrap();
            assert_eq!(exited(&mut process).await, exit, "{script}");
            assert_eq!(exited(&mut process).await, exit, "asked again");
            gone(&mut process).await;
            assert_eq!(process.exit(), Some(exit));
        }
    }
}

#[tokio::test]
async fn a_group_ends_with_its_leader() {
    let mark = Mark::new();
    let launch = mark.script("trap '' TERM; sleep 600 & echo; exit 3");
    let (mut process, mut pipes) = spawn(&launch, &Supervisor::Group, None).await.unwrap();
    line(&mut pipes).await;
    assert_eq!(exited(&mut process).await, Exit::Code(3));
    gone(&mut process).await;
    assert_eq!(mark.running(), []);
}

#[tokio::test]
async fn waiting_for_the_end_can_be_given_up_and_taken_up_again() {
    let mark = Mark::new();
    let (mut process, mut pipes) = start_ready(&mark.script("echo; read x; exit 5")).await;
    for _ in 0..100 {
        let soon = Duration::from_micros(200);
        assert!(tokio::time::timeout(soon, process.exited()).await.is_err());
        assert!(tokio::time::timeout(soon, process.gone()).await.is_err());
    }
    say(&mut pipes, "go\n").await;
    assert_eq!(exited(&mut process).await, Exit::Code(5));
    gone(&mut process).await;
}

/// Proves: FR2.8
#[tokio::test]
async fn a_server_that_leaves_at_the_end_of_its_input_gets_no_signal() {
    for supervisor in [shim(), Supervisor::Group] {
        let mark = Mark::new();
        let script = "trap 'exit 9' TERM INT HUP; echo; cat >/dev/null";
        let (mut process, mut pipes) =
            spawn(&mark.script(script), &supervisor, None).await.unwrap();
        line(&mut pipes).await;
        let report = stop_by_stdin(&mut process, pipes, GRACE).await;
        assert_eq!((report.how, report.exit), (Stopped::OnEof, Exit::Code(0)));
        assert!(!report.leftovers && report.took < GRACE, "{report:?}");
        mark.reaches(0);
    }
}

#[tokio::test]
async fn a_server_that_ignores_the_end_of_its_input_is_asked_to_end() {
    for supervisor in [shim(), Supervisor::Group] {
        let mark = Mark::new();
        let script = "trap 'exit 7' TERM; echo; while :; do sleep 0.01; done";
        let (mut process, mut pipes) =
            spawn(&mark.script(script), &supervisor, None).await.unwrap();
        line(&mut pipes).await;
        let report = stop_by_stdin(&mut process, pipes, GRACE / 2).await;
        assert_eq!((report.how, report.exit), (Stopped::OnTerm, Exit::Code(7)));
        assert!(!report.leftovers, "{report:?}");
        mark.reaches(0);
    }
}

/// Proves: FR2.10, TR2.4
#[tokio::test]
async fn a_server_that_ignores_every_request_is_killed_within_its_grace_and_a_second() {
    for supervisor in [shim(), Supervisor::Group] {
        let mark = Mark::new();
        let script = "trap '' TERM INT HUP; echo; while :; do sleep 600; done";
        let (mut process, mut pipes) =
            spawn(&mark.script(script), &supervisor, None).await.unwrap();
        line(&mut pipes).await;
        let grace = GRACE / 4;
        let report = stop_by_stdin(&mut process, pipes, grace).await;
        assert_eq!((report.how, report.exit), (Stopped::OnKill, Exit::Signal(9)));
        assert!(!report.leftovers && report.took >= grace, "{report:?}");
        assert!(report.took <= grace + Duration::from_secs(1), "{report:?}");
        mark.reaches(0);
    }
}

#[tokio::test]
async fn the_server_behind_a_launcher_may_finish_when_the_tree_is_asked_to_end() {
    let mark = Mark::new();
    let dir = tempfile::tempdir().unwrap();
    // The launcher dies of the request at once; the server needs a moment to save.
    let script = r#"(trap 'sleep 0.2; echo saved >"$1/state"; exit' TERM; echo
        while :; do sleep 0.01; done) & wait"#;
    let mut launch = mark.script(script);
    launch.args.push(dir.path().into());
    let (mut process, pipes) = start_ready(&launch).await;
    let report = stop_by_stdin(&mut process, pipes, GRACE).await;
    assert_eq!((report.how, report.exit), (Stopped::OnTerm, Exit::Signal(15)));
    assert_eq!(std::fs::read_to_string(dir.path().join("state")).unwrap(), "saved\n");
}

#[tokio::test]
async fn a_server_that_stopped_itself_is_continued_to_end_and_can_be_killed() {
    for supervisor in [shim(), Supervisor::Group] {
        let mark = Mark::new();
        let script = "trap 'exit 4' TERM; echo; kill -STOP $$; sleep 600";
        let (mut process, mut pipes) =
            spawn(&mark.script(script), &supervisor, None).await.unwrap();
        line(&mut pipes).await;
        process.terminate();
        assert_eq!(exited(&mut process).await, Exit::Code(4));

        let launch = mark.script("echo; kill -STOP $$");
        let (mut process, mut pipes) = spawn(&launch, &supervisor, None).await.unwrap();
        line(&mut pipes).await;
        process.kill();
        assert_eq!(exited(&mut process).await, Exit::Signal(9));
        gone(&mut process).await;
        mark.reaches(0);
    }
}

#[test]
fn a_process_dropped_on_a_plain_thread_or_after_its_runtime_leaves_nothing() {
    for supervisor in [shim(), Supervisor::Group] {
        for on_thread in [true, false] {
            let mark = Mark::new();
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let script = mark.script("trap '' TERM; echo; sleep 600 & exec sleep 600");
            let (process, pipes) = runtime.block_on(async {
                let (process, mut pipes) = spawn(&script, &supervisor, None).await.unwrap();
                line(&mut pipes).await;
                (process, pipes)
            });
            mark.reaches(2);
            if on_thread {
                std::thread::spawn(move || drop(process)).join().unwrap();
                mark.reaches(0);
                drop((pipes, runtime));
            } else {
                drop(runtime);
                mark.reaches(2);
                drop((process, pipes));
                mark.reaches(0);
            }
        }
    }
}

#[tokio::test]
async fn a_killer_works_from_another_thread_and_does_not_keep_the_tree_alive() {
    for supervisor in [shim(), Supervisor::Group] {
        let mark = Mark::new();
        let launch = mark.script("trap '' TERM; echo; sleep 600 & exec sleep 600");
        let (mut process, mut pipes) = spawn(&launch, &supervisor, None).await.unwrap();
        line(&mut pipes).await;
        let killer = process.killer();
        let clone = killer.clone();
        std::thread::spawn(move || clone.kill()).join().unwrap();
        assert_eq!(exited(&mut process).await, Exit::Signal(9));
        gone(&mut process).await;
        killer.kill();

        let (process, mut pipes) = spawn(&launch, &supervisor, None).await.unwrap();
        line(&mut pipes).await;
        let killer = process.killer();
        drop(process);
        mark.reaches(0);
        killer.kill();
    }
}
