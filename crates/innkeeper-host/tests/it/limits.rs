//! Limits and sandboxes: a violation affects only its own server.

use std::time::Duration;

use innkeeper_host::error::{StartFailureReason, StartPhase, UnavailableReason};
use innkeeper_host::shutdown::StopStage;
use innkeeper_host::{
    CallError, ExitStatus, Host, HostEvent, ProcessLimit, ServerState, StartError, Supervisor,
};
use innkeeper_testkit::Journal;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::setup::{LogCapture, TestEnv, builder, drain_events, result_text, wait_for_event};

async fn assert_echo(host: &Host, server: &str) {
    let tool = format!("{server}.echo");
    host.call_tool(&tool, json!({"message": "hi"})).await.unwrap();
}

/// Waits until the host reports the server as unavailable.
async fn wait_unavailable(events: &mut tokio::sync::broadcast::Receiver<HostEvent>) -> String {
    match wait_for_event(events, |event| matches!(event, HostEvent::Unavailable { .. })).await {
        HostEvent::Unavailable { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

/// Attack: sandbox | a server allocates 256 MiB with a limit of 64 MiB | the server is unavailable;
/// another server is not affected | Isolation
/// Proves: TR10.4, N10
#[tokio::test]
async fn a_server_that_takes_more_memory_than_its_limit_is_out_and_its_neighbour_is_not() {
    let test_env = TestEnv::new();
    let grows = |name: &str| test_env.fixture(name).with("--alloc", 256 << 20);
    let limited = grows("limited").config_key("limits", json!({"memory": "64 MiB"}));
    let host = test_env.start([limited, grows("free")]).await.unwrap();
    let error = host.call_tool("limited.echo", json!({"message": "hi"})).await.unwrap_err();
    let CallError::Unavailable {
        reason: UnavailableReason::Exited { status: exit_status, .. },
        ..
    } = &error
    else {
        panic!("{error:?}");
    };
    assert!(!exit_status.success(), "{exit_status}");
    assert_eq!(host.status()["limited"].state, ServerState::Unavailable);
    assert_echo(&host, "free").await;
    host.shutdown().await;
    test_env.assert_gone().await;
}

/// Proves: TR10.4
#[tokio::test]
async fn a_server_that_uses_up_its_processor_time_is_out_and_the_reason_names_the_limit() {
    let test_env = TestEnv::new();
    let spins =
        test_env.fixture("spins").switch("--spin").config_key("limits", json!({"cpuSeconds": 1}));
    let host = builder(test_env.config([spins, test_env.fixture("calm")])).start().await.unwrap();
    let call = host.call_tool("spins.sleep", json!({"ms": 60_000}));
    let error = call.await.unwrap_err();
    assert!(
        matches!(
            &error,
            CallError::Unavailable {
                reason: UnavailableReason::Exited {
                    status: ExitStatus::LimitExceeded(ProcessLimit::CpuSeconds),
                    ..
                },
                ..
            }
        ),
        "{error:?}"
    );
    assert!(error.to_string().contains("`limits.cpuSeconds`"), "{error}");
    assert_echo(&host, "calm").await;
    host.shutdown().await;
    test_env.assert_gone().await;
}

/// Attack: sandbox | a server starts a chain of 40 processes with a limit of 20 | the server is
/// unavailable, and the reason names the limit | Confinement holds
#[tokio::test]
async fn a_server_with_more_processes_than_its_limit_is_out_and_the_reason_names_the_limit() {
    let test_env = TestEnv::new();
    let forks = test_env
        .fixture("forks")
        .with("--fork-loop", 40)
        .config_key("limits", json!({"processes": 20}));
    let host = builder(test_env.config([forks.config_key("required", false)]));
    let mut events = host.events();
    let host = host.start().await.unwrap();
    let reason = wait_unavailable(&mut events).await;
    assert!(reason.contains("`limits.processes`"), "{reason}");
    host.shutdown().await;
    test_env.assert_gone().await;
}

#[tokio::test]
async fn limits_at_which_a_server_is_at_ease_change_nothing() {
    let test_env = TestEnv::new();
    let limits = json!({"memory": "512 MiB", "cpuSeconds": 60, "openFiles": 64, "processes": 5});
    let limited = test_env.fixture("limited").config_key("limits", limits).switch("--daemon");
    let host = builder(test_env.config([limited]));
    let mut events = host.events();
    let host = host.start().await.unwrap();
    assert_echo(&host, "limited").await;
    let limits =
        std::fs::read_to_string(format!("/proc/{}/limits", host.status()["limited"].pid.unwrap()));
    let limits = limits.unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert_eq!(line.split_whitespace().skip(3).collect::<Vec<_>>(), ["64", "64", "files"]);
    assert!(host.shutdown().await.is_clean());
    let applied = |event: &HostEvent| !matches!(event, HostEvent::LimitNotApplied { .. });
    assert!(drain_events(&mut events).iter().all(applied));
    test_env.assert_gone().await;
}

/// Attack: sandbox | a sandboxed server reads a file that its entry does not name | the read fails
/// | Confinement holds
/// Proves: S-b2
#[tokio::test]
async fn a_server_in_a_sandbox_reads_what_is_allowed_and_nothing_else() {
    let test_env = TestEnv::new();
    for name in ["open", "closed"] {
        std::fs::write(test_env.path(name), name).unwrap();
    }
    let sandbox = json!({"read": [test_env.path("open")], "write": [test_env.journal_path()]});
    // The sandbox can only permit access to an existing file, so the journal must exist before it.
    std::fs::write(test_env.journal_path(), "").unwrap();
    let sandboxed = test_env.fixture("boxed").config_key("sandbox", sandbox).switch("--daemon");
    let host = test_env.start([sandboxed, test_env.fixture("free")]).await.unwrap();
    let read = async |server: &str, name: &str| {
        let path = test_env.path(name);
        let result = host.call_tool(&format!("{server}.read"), json!({"path": path})).await;
        result_text(&result.unwrap())
    };
    assert_eq!(read("boxed", "open").await, "open");
    let rejected = read("boxed", "closed").await;
    assert!(rejected.contains("Permission denied"), "{rejected}");
    assert_eq!(read("free", "closed").await, "closed");
    assert!(host.shutdown().await.is_clean());
    test_env.assert_gone().await;
}

/// The sandbox refuses every network connection.
/// Proves: TR7.3
#[tokio::test]
async fn scripted_servers_show_their_faults_without_a_network() {
    let (test_env, log) = (TestEnv::new(), LogCapture::capture());
    std::fs::write(test_env.journal_path(), "").unwrap();
    let sandbox = json!({"write": [test_env.journal_path()], "network": false});
    let fixture = |name: &str| test_env.fixture(name).config_key("sandbox", sandbox.clone());
    let healthy = [
        fixture("late").with("--slow", 10),
        fixture("noisy").switch("--bad-json"),
        fixture("stubborn")
            .switch("--ignore-eof")
            .switch("--ignore-sigterm")
            .config_key("shutdownTimeout", 0.2),
        fixture("changing").switch("--list-changed"),
        fixture("asking").switch("--ping-client"),
        fixture("paged").with("--pages", 3),
        fixture("chatty").with("--stderr", "a line on stderr"),
        fixture("modern").with("--era", "modern"),
    ];
    let names = healthy.each_ref().map(|server| server.name().to_owned());
    let hanging = fixture("hanging").switch("--hang-init").config_key("initTimeout", 0.3);
    let faulty =
        [fixture("crashing").with("--crash-after", 1), hanging.config_key("required", false)];
    let host = test_env.start(healthy.into_iter().chain(faulty)).await.unwrap();
    for name in names {
        let started_at = Instant::now();
        assert_echo(&host, &name).await;
        assert!(name != "late" || started_at.elapsed() >= Duration::from_millis(10));
    }
    host.call_tool("changing.grow", ()).await.unwrap();
    let lists = |journal: &Journal, name: &str| journal.for_server(name).count("tools/list");
    let journal = test_env.wait_for_journal(|journal| lists(journal, "changing") == 2).await;
    assert_eq!(lists(&journal, "paged"), 3);
    assert_eq!(journal.for_server("asking").responses()[0]["result"], json!({}));
    assert_eq!(journal.for_server("modern").count("initialize"), 0);
    let noise = log.with_message("unusable message");
    assert!(!noise.is_empty() && noise.iter().all(|line| line["server"] == "noisy"), "{noise:?}");
    let error = host.call_tool("crashing.echo", json!({"message": "hi"})).await.unwrap_err();
    let CallError::Unavailable {
        reason: UnavailableReason::Exited { status: exit_status, .. },
        ..
    } = &error
    else {
        panic!("{error:?}");
    };
    assert_eq!(*exit_status, ExitStatus::Code(3));
    assert_eq!(host.status()["hanging"].state, ServerState::Unavailable);
    assert_eq!(host.status()["chatty"].stderr, "a line on stderr");
    let report = host.shutdown().await;
    let stubborn = report.servers.iter().find(|server| &*server.server == "stubborn").unwrap();
    assert_eq!(stubborn.stage, StopStage::OnKill);
    test_env.assert_gone().await;
}

/// Attack: sandbox | the supervisor is missing for a server with a sandbox | the server does not
/// start; limits are reported as not applied | Confinement holds
/// Proves: TR10.4
#[tokio::test]
async fn without_a_shim_limits_are_reported_as_not_applied_and_a_sandbox_fails_the_start() {
    let (test_env, log) = (TestEnv::new(), LogCapture::capture());
    let limited =
        test_env.fixture("one").config_key("limits", json!({"memory": "64 MiB", "openFiles": 64}));
    let host = builder(test_env.config([limited])).supervisor(Supervisor::Group);
    let mut events = host.events();
    let host = host.start().await.unwrap();
    assert_echo(&host, "one").await;
    host.shutdown().await;
    let mut keys = Vec::new();
    for event in drain_events(&mut events) {
        if let HostEvent::LimitNotApplied { server, key, reason } = event {
            assert_eq!(&*server, "one");
            assert_eq!(reason, "requires `innkeeper-shim`, which was not found");
            keys.push(key);
        }
    }
    assert_eq!(keys, ["limits.memory", "limits.openFiles"]);
    let logged = log.with_message("limit not applied");
    let is_warning = |line: &Value| line["level"] == "WARN" && line["server"] == "one";
    assert!(logged.len() == 2 && logged.iter().all(is_warning), "{logged:?}");

    let sandboxed = test_env.fixture("two").config_key("sandbox", json!({}));
    let error = builder(test_env.config([sandboxed])).supervisor(Supervisor::Group).start().await;
    let Err(StartError::Servers(failures)) = error else { panic!("it started") };
    let failure = &failures[0];
    assert_eq!((failure.phase, failure.attempts), (StartPhase::Launch, 1));
    assert!(matches!(failure.reason, StartFailureReason::Spawn(_)), "{failure}");
    assert!(failure.to_string().contains("sandboxing requires"), "{failure}");
    test_env.assert_gone().await;
}

#[tokio::test]
async fn a_path_of_a_sandbox_that_does_not_exist_is_reported_as_it_was_written() {
    let test_env = TestEnv::new();
    let sandbox =
        json!({"read": ["./nowhere"], "write": [test_env.journal_path()], "network": true});
    std::fs::write(test_env.journal_path(), "").unwrap();
    let host = builder(test_env.config([test_env.fixture("one").config_key("sandbox", sandbox)]));
    let mut events = host.events();
    let host = host.start().await.unwrap();
    let event =
        wait_for_event(&mut events, |event| matches!(event, HostEvent::LimitNotApplied { .. }))
            .await;
    let HostEvent::LimitNotApplied { key, reason, .. } = event else { panic!("{event:?}") };
    assert_eq!((key, reason.as_str()), ("sandbox.read", "`./nowhere` does not exist"));
    host.shutdown().await;
    test_env.assert_gone().await;
}
