//! Limits and sandboxes of servers: who crosses one is out, and nobody else notices.

use innkeeper_host::error::{Lost, Phase, StartReason};
use innkeeper_host::{CallError, Event, Exit, Host, Limit, ServerState, StartError, Supervisor};
use serde_json::{Value, json};

use crate::setup::{Log, Scene, builder, text, told, until_told};

async fn echoes(host: &Host, server: &str) {
    let tool = format!("{server}.echo");
    host.call_tool(&tool, json!({"message": "hi"})).await.unwrap();
}

/// Waits until the host knows that this server is lost.
async fn lost(events: &mut tokio::sync::broadcast::Receiver<Event>) -> String {
    match until_told(events, |event| matches!(event, Event::Unavailable { .. })).await {
        Event::Unavailable { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

/// Proves: TR10.4, N10
#[tokio::test]
async fn a_server_that_takes_more_memory_than_its_limit_is_out_and_its_neighbour_is_not() {
    let scene = Scene::new();
    let grows = |name: &str| scene.fx(name).with("--alloc", 256 << 20);
    let limited = grows("limited").key("limits", json!({"memory": "64 MiB"}));
    let host = scene.start([limited, grows("free")]).await.unwrap();
    let error = host.call_tool("limited.echo", json!({"message": "hi"})).await.unwrap_err();
    let CallError::Unavailable { reason: Lost::Exited(exit), .. } = &error else {
        panic!("{error:?}");
    };
    assert!(!exit.success(), "{exit}");
    assert_eq!(host.status()["limited"].state, ServerState::Unavailable);
    echoes(&host, "free").await;
    host.shutdown().await;
    scene.assert_gone().await;
}

/// Proves: TR10.4
#[tokio::test]
async fn a_server_that_uses_up_its_processor_time_is_out_and_the_reason_names_the_limit() {
    let scene = Scene::new();
    let spins = scene.fx("spins").switch("--spin").key("limits", json!({"cpuSeconds": 1}));
    let host = builder(scene.config([spins, scene.fx("calm")])).start().await.unwrap();
    let call = host.call_tool("spins.sleep", json!({"ms": 60_000}));
    let error = call.await.unwrap_err();
    assert!(
        matches!(
            &error,
            CallError::Unavailable { reason: Lost::Exited(Exit::OverLimit(Limit::CpuSeconds)), .. }
        ),
        "{error:?}"
    );
    assert!(error.to_string().contains("`limits.cpuSeconds`"), "{error}");
    echoes(&host, "calm").await;
    host.shutdown().await;
    scene.assert_gone().await;
}

#[tokio::test]
async fn a_server_with_more_processes_than_its_limit_is_out_and_the_reason_names_the_limit() {
    let scene = Scene::new();
    let forks = scene.fx("forks").with("--fork-loop", 40).key("limits", json!({"processes": 20}));
    let host = builder(scene.config([forks.key("required", false)]));
    let mut events = host.events();
    let host = host.start().await.unwrap();
    let reason = lost(&mut events).await;
    assert!(reason.contains("`limits.processes`"), "{reason}");
    host.shutdown().await;
    scene.assert_gone().await;
}

#[tokio::test]
async fn limits_at_which_a_server_is_at_ease_change_nothing() {
    let scene = Scene::new();
    let limits = json!({"memory": "512 MiB", "cpuSeconds": 60, "openFiles": 64, "processes": 5});
    let limited = scene.fx("limited").key("limits", limits).switch("--daemon");
    let host = builder(scene.config([limited]));
    let mut events = host.events();
    let host = host.start().await.unwrap();
    echoes(&host, "limited").await;
    let limits =
        std::fs::read_to_string(format!("/proc/{}/limits", host.status()["limited"].pid.unwrap()));
    let limits = limits.unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert_eq!(line.split_whitespace().skip(3).collect::<Vec<_>>(), ["64", "64", "files"]);
    assert!(host.shutdown().await.is_clean());
    let applied = |event: &Event| !matches!(event, Event::LimitNotApplied { .. });
    assert!(told(&mut events).iter().all(applied));
    scene.assert_gone().await;
}

#[tokio::test]
async fn a_server_in_a_sandbox_reads_what_is_allowed_and_nothing_else() {
    let scene = Scene::new();
    for name in ["open", "closed"] {
        std::fs::write(scene.path(name), name).unwrap();
    }
    let sandbox = json!({"read": [scene.path("open")], "write": [scene.journal_path()]});
    // The journal is there before the sandbox is: what is missing cannot be allowed.
    std::fs::write(scene.journal_path(), "").unwrap();
    let boxed = scene.fx("boxed").key("sandbox", sandbox).switch("--daemon");
    let host = scene.start([boxed, scene.fx("free")]).await.unwrap();
    let read = async |server: &str, name: &str| {
        let path = scene.path(name);
        let result = host.call_tool(&format!("{server}.read"), json!({"path": path})).await;
        text(&result.unwrap())
    };
    assert_eq!(read("boxed", "open").await, "open");
    let refused = read("boxed", "closed").await;
    assert!(refused.contains("Permission denied"), "{refused}");
    assert_eq!(read("free", "closed").await, "closed");
    assert!(host.shutdown().await.is_clean());
    scene.assert_gone().await;
}

#[tokio::test]
async fn without_a_shim_limits_are_told_to_have_no_effect_and_a_sandbox_fails_the_start() {
    let (scene, log) = (Scene::new(), Log::capture());
    let limited = scene.fx("one").key("limits", json!({"memory": "64 MiB", "openFiles": 64}));
    let host = builder(scene.config([limited])).supervisor(Supervisor::Group);
    let mut events = host.events();
    let host = host.start().await.unwrap();
    echoes(&host, "one").await;
    host.shutdown().await;
    let mut keys = Vec::new();
    for event in told(&mut events) {
        if let Event::LimitNotApplied { server, what, reason } = event {
            assert_eq!(&*server, "one");
            assert_eq!(reason, "it needs the program `innkeeper-shim`, which was not found");
            keys.push(what);
        }
    }
    assert_eq!(keys, ["limits.memory", "limits.openFiles"]);
    let logged = log.of("limit not applied");
    let wanted = |line: &Value| line["level"] == "WARN" && line["server"] == "one";
    assert!(logged.len() == 2 && logged.iter().all(wanted), "{logged:?}");

    let boxed = scene.fx("two").key("sandbox", json!({}));
    let error = builder(scene.config([boxed])).supervisor(Supervisor::Group).start().await;
    let Err(StartError::Servers(failures)) = error else { panic!("it started") };
    let failure = &failures[0];
    assert_eq!((failure.phase, failure.attempts), (Phase::Launch, 1));
    assert!(matches!(failure.reason, StartReason::Spawn(_)), "{failure}");
    assert!(failure.to_string().contains("a sandbox needs"), "{failure}");
    scene.assert_gone().await;
}

#[tokio::test]
async fn a_path_of_a_sandbox_that_does_not_exist_is_told_as_it_was_written() {
    let scene = Scene::new();
    let sandbox = json!({"read": ["./nowhere"], "write": [scene.journal_path()], "network": true});
    std::fs::write(scene.journal_path(), "").unwrap();
    let host = builder(scene.config([scene.fx("one").key("sandbox", sandbox)]));
    let mut events = host.events();
    let host = host.start().await.unwrap();
    let event =
        until_told(&mut events, |event| matches!(event, Event::LimitNotApplied { .. })).await;
    let Event::LimitNotApplied { what, reason, .. } = event else { panic!("{event:?}") };
    assert_eq!((what, reason.as_str()), ("sandbox.read", "`./nowhere` does not exist"));
    host.shutdown().await;
    scene.assert_gone().await;
}
