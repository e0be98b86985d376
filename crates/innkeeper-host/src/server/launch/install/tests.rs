//! Handshake on a system that does not report whether the server runs.

use innkeeper_testkit::InMemoryServer;
use serde_json::json;
use tokio::time::sleep;

use super::super::StartDeadline;
use super::*;
use crate::session::{HostContext, OutgoingRequest, SessionContext, SessionLimits};

const START_TIMEOUT: Duration = Duration::from_secs(1);
const INSTALL_TIMEOUT: Duration = Duration::from_secs(60);

fn clock(all: Duration) -> StartClock {
    let limit = |timeout: Duration| StartDeadline { deadline: Instant::now() + timeout, timeout };
    StartClock {
        server_deadline: limit(START_TIMEOUT),
        install_remaining: INSTALL_TIMEOUT,
        install_timeout: INSTALL_TIMEOUT,
        overall_deadline: limit(all),
    }
}

/// Sends a request to a server that sends a notification after `fetching` and responds after
/// `slow`.
async fn run_handshake(
    fetching: Duration,
    slow: Duration,
    clock: &mut StartClock,
) -> Result<(), (StartPhase, StartFailureReason)> {
    let (mut peer, reader, writer) = InMemoryServer::new();
    let owner = SessionContext { server: "fx".into(), host: HostContext::default() };
    let session = Session::open(owner, reader, writer, SessionLimits::default());
    let params = json!({});
    let outgoing =
        OutgoingRequest::new(session.next_id(), "initialize", &params, latest_deadline(clock));
    let handshake = async {
        let response = session.request(outgoing).await;
        assert!(response.is_ok(), "{response:?}");
        Ok(())
    };
    let mut body = ServerInstance::Connection(None);
    let server_side = async {
        let request = peer.expect("initialize").await;
        sleep(fetching).await;
        peer.notify("notifications/message", json!({})).await;
        sleep(slow).await;
        peer.respond(&request["id"], json!({})).await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        result = handshake_during_install(&mut body, &session, clock, handshake) => result,
        () = server_side => unreachable!(),
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_until_the_first_message_is_not_taken_from_the_start_of_the_server() {
    let mut clock = clock(INSTALL_TIMEOUT * 3);
    run_handshake(INSTALL_TIMEOUT - START_TIMEOUT, START_TIMEOUT / 2, &mut clock).await.unwrap();
    assert!(clock.install_remaining <= START_TIMEOUT);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_sent_a_message_has_its_own_start_timeout_and_no_more() {
    let (phase, reason) = run_handshake(
        INSTALL_TIMEOUT - START_TIMEOUT,
        START_TIMEOUT * 2,
        &mut clock(INSTALL_TIMEOUT * 3),
    )
    .await
    .unwrap_err();
    assert_eq!(phase, StartPhase::Handshake);
    assert!(matches!(reason, StartFailureReason::TimedOut(START_TIMEOUT)), "{reason:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_sends_no_message_fails_at_the_install_timeout_and_not_at_the_overall_one() {
    for overall in [INSTALL_TIMEOUT * 3, INSTALL_TIMEOUT / 2] {
        let (phase, reason) =
            run_handshake(INSTALL_TIMEOUT * 2, START_TIMEOUT, &mut clock(overall))
                .await
                .unwrap_err();
        assert_eq!(phase, StartPhase::Install);
        assert!(matches!(reason, StartFailureReason::TimedOut(INSTALL_TIMEOUT)), "{reason:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_clock_of_all_servers_pauses_while_a_package_is_installed() {
    let overall = START_TIMEOUT * 2;
    let mut clock = clock(overall);
    run_handshake(INSTALL_TIMEOUT / 2, START_TIMEOUT / 2, &mut clock).await.unwrap();
    let remaining = clock.overall_deadline.deadline - Instant::now();
    assert_eq!(remaining, overall - START_TIMEOUT / 2);
    assert_eq!(clock.install_remaining, INSTALL_TIMEOUT / 2);
}

fn launch(command: &str, args: &str) -> ProcessSpec {
    ProcessSpec {
        command: command.to_owned(),
        program: command.into(),
        args: args.split_whitespace().map(Into::into).collect(),
        env: Vec::new(),
        cwd: None,
        confinement: innkeeper_process::Confinement::default(),
    }
}

#[test]
fn a_silent_runner_installs_once_it_has_written_more_than_its_cache_entries() {
    let installs =
        |command, written| is_installing(&launch(command, "x"), written, &StderrTail::default());
    for command in ["npx", "/usr/bin/npm"] {
        assert!(!installs(command, MAX_CACHE_CHECK_BYTES), "{command}");
        assert!(installs(command, MAX_CACHE_CHECK_BYTES + 1), "{command}");
    }
    assert!(!installs("uvx", u64::MAX), "it reports each step");
}

#[test]
fn the_package_is_the_first_argument_of_a_runner_that_is_no_option() {
    let package =
        |command: &str, args: &str| package_name(&launch(command, args)).map(String::from);
    let named = [
        ("npx", "-y @scope/server@1 /dir", "@scope/server@1"),
        ("/usr/bin/npx", "--yes --package=pkg cmd", "pkg"),
        ("npx", "-p pkg cmd", "pkg"),
        ("npm", "exec -y pkg -- x", "pkg"),
        ("uvx", "--python 3.12 --from git+https://x.example/a cmd", "git+https://x.example/a"),
        ("uvx", "mcp-server-time --local-timezone UTC", "mcp-server-time"),
        ("pipx", "run --spec pkg==1 cmd", "pkg==1"),
    ];
    for (command, args, expected) in named {
        assert_eq!(package(command, args).as_deref(), Some(expected), "{command} {args}");
    }
    assert_eq!(package("npx", "-y"), None);
}
