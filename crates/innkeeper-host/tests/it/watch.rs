//! A watched configuration: changes are taken up however a file gets there, and nobody undecided starts.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use innkeeper_host::{Config, Environment, Event, Host, ServerState, Trust};
use innkeeper_testkit::{Fixture, mcp_json};
use serde_json::json;
use tokio::sync::broadcast::Receiver;

use crate::setup::{Log, Scene, builder, told, until_told};

fn write(path: &Path, servers: impl IntoIterator<Item = Fixture>) {
    std::fs::write(path, mcp_json(servers).to_string()).unwrap();
}

/// A host that watches this file.
async fn watching(path: &Path, trust: Trust) -> Host {
    let config = Config::load(&[path.to_owned()], &Environment::of_process()).unwrap();
    builder(config).watch(trust).start().await.unwrap()
}

/// Waits for a reload and gives what was added, removed and changed.
async fn reloaded(events: &mut Receiver<Event>) -> [Vec<Arc<str>>; 3] {
    let event = until_told(events, |event| matches!(event, Event::Reloaded { .. })).await;
    let Event::Reloaded { added, removed, changed } = event else { unreachable!() };
    [added, removed, changed]
}

fn one(name: &str) -> Vec<Arc<str>> {
    vec![name.into()]
}

/// Proves: FR1.6, N9
#[tokio::test]
async fn a_save_by_renaming_is_taken_up_and_the_running_server_is_not_touched() {
    let scene = Scene::new();
    let path = scene.path("mcp.json");
    write(&path, [scene.fx("one")]);
    let host = watching(&path, Trust::Everything).await;
    let (pid, mut events) = (host.status()["one"].pid, host.events());
    for names in [&["one", "two"][..], &["one"]] {
        let saved = scene.path("mcp.json.swp");
        write(&saved, names.iter().map(|name| scene.fx(name)));
        std::fs::rename(saved, &path).unwrap();
        let [added, removed, _] = reloaded(&mut events).await;
        let (expected, other) = if names.len() == 2 { (added, removed) } else { (removed, added) };
        assert_eq!((expected, other), (one("two"), vec![]));
    }
    write(&path, [scene.fx("one").env("LEVEL", "2")]);
    assert_eq!(reloaded(&mut events).await[2], one("one"));
    assert_eq!(host.status()["one"].pending_restart, ["env"], "it is not started again");
    assert_eq!(host.status()["one"].pid, pid);
    host.shutdown().await;
    scene.assert_gone().await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_that_leads_to_another_directory_is_a_change() {
    use std::os::unix::fs::symlink;
    let scene = Scene::new();
    for (version, names) in [("v1", &["one"][..]), ("v2", &["one", "two"])] {
        std::fs::create_dir(scene.path(version)).unwrap();
        let servers = names.iter().map(|name| scene.fx(name));
        write(&scene.path(version).join("mcp.json"), servers);
    }
    symlink("v1", scene.path("..data")).unwrap();
    symlink("..data/mcp.json", scene.path("mcp.json")).unwrap();
    let host = watching(&scene.path("mcp.json"), Trust::Everything).await;
    let mut events = host.events();
    symlink("v2", scene.path("..data_tmp")).unwrap();
    std::fs::rename(scene.path("..data_tmp"), scene.path("..data")).unwrap();
    assert_eq!(reloaded(&mut events).await[0], one("two"));
    write(&scene.path("v2").join("mcp.json"), [scene.fx("one")]);
    assert_eq!(reloaded(&mut events).await[1], one("two"), "where it leads now is watched");
    host.shutdown().await;
}

/// Proves: FR1.6
#[tokio::test]
async fn a_file_that_cannot_be_used_is_told_and_the_next_good_one_is_taken_up() {
    let scene = Scene::new();
    let path = scene.path("mcp.json");
    write(&path, [scene.fx("one")]);
    let log = Log::capture();
    let host = watching(&path, Trust::Everything).await;
    let (pid, mut events) = (host.status()["one"].pid, host.events());
    std::fs::write(&path, r#"{"servers": {"one": {"command": 1, "timeout": "x"}}}"#).unwrap();
    let event = until_told(&mut events, |event| matches!(event, Event::ReloadFailed { .. })).await;
    let Event::ReloadFailed { problems } = event else { unreachable!() };
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert_eq!(log.of("reload failed")[0]["level"], "ERROR");
    assert_eq!((host.status()["one"].pid, host.status()["one"].state), (pid, ServerState::Ready));
    write(&path, [scene.fx("one"), scene.fx("two")]);
    assert_eq!(reloaded(&mut events).await[0], one("two"));
    assert_eq!(log.of("reloaded")[0]["added"], "two");
    host.shutdown().await;
}

#[tokio::test]
async fn a_new_or_changed_command_is_not_started_unless_it_was_decided_on() {
    let scene = Scene::new();
    let path = scene.path("mcp.json");
    write(&path, [scene.fx("one"), scene.fx("same")]);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let questions = asked.clone();
    let trust = Trust::ask(move |launch| {
        questions.lock().unwrap().push((launch.name.clone(), launch.fingerprint()));
        launch.name == "good"
    });
    let host = watching(&path, trust).await;
    let mut events = host.events();
    let turned = scene.fx("one").env("LD_PRELOAD", "/somewhere/else.so");
    let adjusted = scene.fx("same").key("timeout", 9).key("maxConcurrent", 9);
    write(&path, [turned.clone(), adjusted, scene.fx("good"), scene.fx("bad")]);
    let [added, _, changed] = reloaded(&mut events).await;
    assert_eq!((added, changed), (one("good"), one("same")));
    let names = |asked: &Mutex<Vec<(String, String)>>| -> Vec<String> {
        asked.lock().unwrap().iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(&asked), ["one", "good", "bad"], "nobody asks about other settings");
    let status = host.status();
    assert!(status.contains_key("good") && !status.contains_key("bad"));
    assert_eq!(status["one"].pending_restart, [""; 0]);
    let pid = status["one"].pid;
    host.restart_server("one").await.unwrap();
    assert_ne!(host.status()["one"].pid, pid);
    assert_eq!(host.status()["one"].pending_restart, [""; 0], "it has what it had");
    assert!(scene.journal().of("bad").pids().is_empty());

    // The application's own act is a decision.
    assert_eq!(host.reload().await.unwrap().added, one("bad"));
    assert_eq!(host.status()["one"].pending_restart, ["env"]);
    asked.lock().unwrap().clear();
    let adjusted = scene.fx("same").key("timeout", 8);
    write(&path, [turned, adjusted, scene.fx("good"), scene.fx("bad")]);
    let shown = told(&mut events).into_iter().filter_map(|event| match event {
        Event::NotTrusted { server } => Some(server.to_string()),
        _ => None,
    });
    assert_eq!(shown.collect::<Vec<_>>(), [""; 0], "they were told before the reload");
    assert_eq!(reloaded(&mut events).await[2], [Arc::from("one"), Arc::from("same")]);
    assert_eq!(names(&asked), [""; 0], "what was decided on is not asked again");
    host.shutdown().await;
    scene.assert_gone().await;
}

#[tokio::test]
async fn a_guard_is_not_turned_off_or_down_unless_that_was_decided_on_and_is_turned_up() {
    let scene = Scene::new();
    let path = scene.path("mcp.json");
    let one = |guard: &str| scene.fx("one").key("guard", guard);
    write(&path, [one("refuse")]);
    let agrees = Arc::new(AtomicBool::new(false));
    let asked = agrees.clone();
    let host = watching(&path, Trust::ask(move |_| asked.load(Ordering::Relaxed))).await;
    let mut events = host.events();
    for weaker in ["off", "flag"] {
        write(&path, [one(weaker)]);
        let event =
            until_told(&mut events, |event| matches!(event, Event::NotTrusted { .. })).await;
        assert!(matches!(event, Event::NotTrusted { server } if &*server == "one"));
        assert_eq!(reloaded(&mut events).await[2], [""; 0].map(Arc::from), "it stays as it is");
    }
    agrees.store(true, Ordering::Relaxed);
    write(&path, [one("off")]);
    assert_eq!(reloaded(&mut events).await[2], [Arc::from("one")]);
    agrees.store(false, Ordering::Relaxed);
    write(&path, [one("flag")]);
    assert_eq!(reloaded(&mut events).await[2], [Arc::from("one")]);
    assert_eq!(host.status()["one"].pending_restart, [""; 0]);
    host.shutdown().await;
    scene.assert_gone().await;
}

#[tokio::test]
async fn servers_nobody_decided_on_are_told_by_name() {
    let scene = Scene::new();
    let path = scene.path("mcp.json");
    write(&path, [scene.fx("one")]);
    let log = Log::capture();
    let host = watching(&path, Trust::ask(|_| false)).await;
    let mut events = host.events();
    write(&path, [scene.fx("one"), scene.fx("two")]);
    let event = until_told(&mut events, |event| matches!(event, Event::NotTrusted { .. })).await;
    assert!(matches!(event, Event::NotTrusted { server } if &*server == "two"));
    assert_eq!(log.of("not trusted, not started")[0]["server"], "two");
    assert_eq!(scene.journal().of("two").pids(), [0; 0]);
    host.shutdown().await;
}

#[tokio::test]
async fn what_is_no_file_is_said_not_to_be_watched_and_the_host_runs() {
    let scene = Scene::new();
    let builder = builder(scene.config([scene.fx("one")])).watch(Trust::Everything);
    let mut events = builder.events();
    let host = builder.start().await.unwrap();
    let event = until_told(&mut events, |event| matches!(event, Event::ReloadFailed { .. })).await;
    let Event::ReloadFailed { problems } = event else { unreachable!() };
    assert_eq!(problems[0].to_string(), "mcp.json: is not a file, so it is not watched");
    host.call_tool("one.echo", json!({"message": "on"})).await.unwrap();
    host.shutdown().await;
}

#[tokio::test]
async fn whoever_panics_when_asked_has_said_no_and_the_file_is_watched_on() {
    let scene = Scene::new();
    let path = scene.path("mcp.json");
    write(&path, [scene.fx("one")]);
    let trust = Trust::ask(|launch| {
        assert_ne!(launch.name, "bad", "asked about this one");
        true
    });
    let host = watching(&path, trust).await;
    let mut events = host.events();
    write(&path, [scene.fx("one"), scene.fx("bad")]);
    let event = until_told(&mut events, |event| matches!(event, Event::NotTrusted { .. })).await;
    assert!(matches!(event, Event::NotTrusted { server } if &*server == "bad"));
    write(&path, [scene.fx("one"), scene.fx("good")]);
    until_told(
        &mut events,
        |event| matches!(event, Event::Reloaded { added, .. } if added == &one("good")),
    )
    .await;
    host.shutdown().await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_became_a_pipe_refuses_a_reload_and_blocks_nothing() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    let scene = Scene::new();
    let path = scene.path("mcp.json");
    write(&path, [scene.fx("one")]);
    let host = watching(&path, Trust::Everything).await;
    std::fs::remove_file(&path).unwrap();
    mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let error = host.reload().await.unwrap_err();
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("not a file"));
    host.call_tool("one.echo", json!({"message": "on"})).await.unwrap();
    host.shutdown().await;
}
