//! Tests that starts and stops of servers leak no resources.

use super::super::{StopTimes, Supervisor, spawn, stop};
use super::*;

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn zombies() -> usize {
    let host_pid = Some(rustix::process::getpid());
    crate::tree::all_processes()
        .iter()
        .filter(|stat| stat.parent == host_pid && stat.zombie)
        .count()
}

/// Proves: FR2.11, TR2.5
#[tokio::test]
async fn fifty_servers_one_after_the_other_leave_no_file_thread_or_zombie() {
    for supervisor in [shim(), fallback_shim(), Supervisor::Group] {
        let tag = ProcessTag::new();
        let launch = tag.script("echo; cat; sleep 0.001");
        let cycle = async |kind: usize| {
            let (mut process, mut pipes) = spawn(&launch, &supervisor, None).await.unwrap();
            read_line(&mut pipes).await;
            match kind % 3 {
                0 => assert!(
                    !stop(
                        &mut process,
                        || drop(pipes),
                        StopTimes::halves(TEST_TIMEOUT, TEST_TIMEOUT)
                    )
                    .await
                    .leftovers
                ),
                1 => {
                    process.kill();
                    expect_tree_gone(&mut process).await;
                }
                _ => drop((process, pipes)),
            }
        };
        cycle(0).await;
        let before = open_files();
        for kind in 0..50 {
            cycle(kind).await;
        }
        tag.wait_for_count(0);
        eventually("no zombie", || zombies() == 0);
        eventually("no open file more than before", || open_files() <= before);
        eventually("no thread more", || {
            let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
            let name = |thread: std::fs::DirEntry| {
                std::fs::read_to_string(thread.path().join("comm")).unwrap_or_default()
            };
            !threads.map(name).any(|name| {
                name.starts_with("innkeeper-wait") || name.starts_with("innkeeper-reap")
            })
        });
    }
}

/// Proves: TR2.5
#[test]
fn an_application_that_reaps_every_child_itself_still_learns_the_exit_code() {
    let test = "tests::resources::runs_a_server_while_reaping_everything";
    let mut host = spawn_test_process(test, &[(REAPER, "1")]);
    let output = std::io::read_to_string(host.stdout.take().unwrap()).unwrap();
    assert!(host.wait().unwrap().success(), "{output}");
    assert!(output.contains("seen: exit code 3"), "{output}");
}

const REAPER: &str = "INNKEEPER_TEST_REAPER";

#[test]
#[ignore = "an application for the test above, which starts it"]
fn runs_a_server_while_reaping_everything() {
    if std::env::var_os(REAPER).is_none() {
        return;
    }
    std::thread::spawn(|| {
        loop {
            let _ = rustix::process::wait(rustix::process::WaitOptions::NOHANG);
            std::thread::yield_now();
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for _ in 0..10 {
            let tag = ProcessTag::new();
            let (mut process, _pipes) = start(&tag.script("exit 3")).await;
            println!("seen: {}", expect_exit(&mut process).await);
            expect_tree_gone(&mut process).await;
        }
    });
}
