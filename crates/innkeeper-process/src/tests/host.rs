//! Tests that no process outlives the host.

use std::io::{BufRead, BufReader};

use super::*;

/// Environment variables that control the host process of a test.
const HOST_TAG: &str = "INNKEEPER_TEST_HOST_MARK";
const HOST_SCRIPT: &str = "INNKEEPER_TEST_HOST_SCRIPT";
const HOST_MODE: &str = "INNKEEPER_TEST_HOST_HOW";

/// Starts a host process that runs `script`, and waits until the script is ready.
fn start_host(tag: &ProcessTag, script: &str, how: &str) -> Child {
    let test = "tests::host::runs_a_server_until_it_is_killed";
    let env = [(HOST_TAG, tag.as_str()), (HOST_SCRIPT, script), (HOST_MODE, how)];
    let mut host = spawn_test_process(test, &env);
    let mut lines = BufReader::new(host.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("host ready")), "the host ended early");
    host
}

#[test]
#[ignore = "a host process for the tests below, which start it"]
fn runs_a_server_until_it_is_killed() {
    let Some(tag) = std::env::var_os(HOST_TAG) else { return };
    let script = std::env::var_os(HOST_SCRIPT).unwrap().into_string().unwrap();
    let tag = ProcessTag::from_env(tag);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let how = std::env::var_os(HOST_MODE).unwrap_or_default();
        let mut launch = tag.script(&script);
        if how == "confined" {
            launch.confinement = super::confinement::permissive();
        }
        let (process, _pipes) = start_ready(&launch).await;
        if how == "copied" {
            copy_control_socket(&process);
        }
        println!("host ready");
        std::future::pending::<()>().await;
    });
}

/// Starts a process that holds the host's end of the control socket, like a process forked by the
/// application.
#[expect(clippy::disallowed_methods, reason = "a process that the module does not track")]
fn copy_control_socket(process: &Process) {
    let copy = process.control_socket().unwrap();
    drop(Command::new("/bin/sleep").arg("600").stdin(copy).spawn().unwrap());
}

/// Attack: processes | the host of a hostile tree is killed with SIGKILL, with and without
/// confinement | the whole tree ends | No orphan
#[test]
fn nothing_survives_a_host_that_is_killed() {
    for how in ["", "confined"] {
        let tag = ProcessTag::new();
        let mut host = start_host(&tag, super::hostile::HOSTILE_SCRIPT, how);
        tag.wait_for_count(super::hostile::HOSTILE_COUNT);
        host.kill().unwrap();
        host.wait().unwrap();
        tag.wait_for_count(0);
    }
}

/// Attack: processes | a forked copy of the killed host holds the sockets of the supervisor | the
/// whole tree ends | No orphan
#[test]
fn nothing_survives_a_killed_host_although_a_copy_of_it_holds_its_sockets() {
    let tag = ProcessTag::new();
    let mut host = start_host(&tag, "echo; sleep 600", "copied");
    let host_id = Pid::from_child(&host);
    let copies = || {
        let every = crate::tree::all_processes().into_iter();
        every.filter(|stat| stat.parent == Some(host_id)).map(|stat| stat.pid).collect::<Vec<_>>()
    };
    let below = copies();
    host.kill().unwrap();
    host.wait().unwrap();
    tag.wait_for_count(0);
    for pid in below {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
}
