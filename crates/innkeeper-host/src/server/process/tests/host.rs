//! The end of the host itself: nothing it has started may outlive it.

use std::io::{BufRead, BufReader};

use super::*;

/// The variables that tell the host process of a test what to do.
const HOST_MARK: &str = "INNKEEPER_TEST_HOST_MARK";
const HOST_SCRIPT: &str = "INNKEEPER_TEST_HOST_SCRIPT";
const HOST_HOW: &str = "INNKEEPER_TEST_HOST_HOW";

/// Starts a host process that runs `script`, and waits until the script is ready.
fn host(mark: &Mark, script: &str, how: &str) -> Child {
    let test = "server::process::tests::host::runs_a_server_until_it_is_killed";
    let env = [(HOST_MARK, mark.as_str()), (HOST_SCRIPT, script), (HOST_HOW, how)];
    let mut host = other_test_process(test, &env);
    let mut lines = BufReader::new(host.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("host ready")), "the host ended early");
    host
}

#[test]
#[ignore = "a host process for the tests below, which start it"]
fn runs_a_server_until_it_is_killed() {
    let Some(mark) = std::env::var_os(HOST_MARK) else { return };
    let script = std::env::var_os(HOST_SCRIPT).unwrap().into_string().unwrap();
    let mark = Mark::of(mark);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let how = std::env::var_os(HOST_HOW).unwrap_or_default();
        let mut launch = mark.script(&script);
        if how == "confined" {
            launch.bounds = super::bounds::wide();
        }
        let (process, _pipes) = start_ready(&launch).await;
        if how == "copied" {
            copy_of_the_control_socket(&process);
        }
        println!("host ready");
        std::future::pending::<()>().await;
    });
}

/// A process that holds the host's end of the control socket, as one that the application forked
/// would.
#[expect(clippy::disallowed_methods, reason = "a process that the room knows nothing of")]
fn copy_of_the_control_socket(process: &Process) {
    let copy = process.control_socket().unwrap();
    drop(Command::new("/bin/sleep").arg("600").stdin(copy).spawn().unwrap());
}

#[test]
fn nothing_survives_a_host_that_is_killed() {
    for how in ["", "confined"] {
        let mark = Mark::new();
        let mut host = host(&mark, super::hostile::HOSTILE, how);
        mark.reaches(super::hostile::HOSTILE_COUNT);
        host.kill().unwrap();
        host.wait().unwrap();
        mark.reaches(0);
    }
}

#[test]
fn nothing_survives_a_killed_host_although_a_copy_of_it_holds_its_sockets() {
    let mark = Mark::new();
    let mut host = host(&mark, "echo; sleep 600", "copied");
    let host_id = Pid::from_child(&host);
    let copies = || {
        let every = crate::shim::tree::every().into_iter();
        every.filter(|stat| stat.parent == Some(host_id)).map(|stat| stat.pid).collect::<Vec<_>>()
    };
    let below = copies();
    host.kill().unwrap();
    host.wait().unwrap();
    mark.reaches(0);
    for pid in below {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
}
