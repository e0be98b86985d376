//! How long an answer may take, and who waits for it meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use innkeeper_host::{Answers, CallError, ServerRequest};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{Reached, WAYS, Way, heard};
use crate::setup::{PATIENCE, Scene};

/// Counts the answers that are being made.
struct Open(Arc<AtomicUsize>);

impl Open {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_call_that_waits_for_the_application_may_take_longer_than_its_own_time() {
    for way in WAYS {
        let scene = Scene::new();
        let server = scene.fx("a").switch("--ask-sampling").key("timeout", 0.5);
        let reached = Reached::by(way, [server.key("maxTotalTimeout", 30)]).await;
        let callback = |_: ServerRequest| async {
            sleep(Duration::from_millis(1500)).await;
            Ok(json!("thought about it"))
        };
        let host = reached.host(&scene, &Answers::sampling(), callback).await;
        let began = Instant::now();
        assert_eq!(heard(&host, "a").await[0]["result"], "thought about it", "{way:?}");
        assert!(began.elapsed() >= Duration::from_millis(1500));
        host.shutdown().await;
    }
}

/// Proves: TR4.6
#[tokio::test]
async fn an_application_that_never_answers_is_given_up_and_so_is_the_call() {
    for way in WAYS {
        let scene = Scene::new();
        let server = scene.fx("a").switch("--ask-sampling").key("unavailableAfterTimeouts", 9);
        let server = server.key("timeout", 0.5).key("maxTotalTimeout", 2);
        let reached = Reached::by(way, [server]).await;
        let open = Arc::new(AtomicUsize::new(0));
        let callback = {
            let open = open.clone();
            move |_: ServerRequest| {
                let open = Open::new(&open);
                async move {
                    let _open = open;
                    std::future::pending().await
                }
            }
        };
        let host = reached.host(&scene, &Answers::sampling(), callback).await;
        let began = Instant::now();
        let late = host.call_tool("a.pid", ()).await.unwrap_err();
        assert!(matches!(late, CallError::Timeout { .. }), "{way:?}: {late:?}");
        let took = began.elapsed();
        assert!(took >= Duration::from_secs(2) && took < PATIENCE, "{way:?}: {took:?}");
        let journal = scene.journal_until(|journal| !journal.responses().is_empty()).await;
        assert_eq!(journal.responses()[0]["error"]["code"], -32603, "{way:?}");
        assert_eq!(open.load(Ordering::Relaxed), 0, "{way:?}: the answer is still being made");
        host.shutdown().await;
    }
}

#[tokio::test]
async fn an_answer_that_is_being_made_does_not_hold_up_the_shutdown() {
    for way in WAYS {
        let scene = Scene::new();
        let reached = Reached::by(way, [scene.fx("a").switch("--ask-sampling")]).await;
        let open = Arc::new(AtomicUsize::new(0));
        let callback = {
            let open = open.clone();
            move |_: ServerRequest| {
                let open = Open::new(&open);
                async move {
                    let _open = open;
                    std::future::pending::<Result<Value, _>>().await
                }
            }
        };
        let host = reached.host(&scene, &Answers::sampling(), callback).await;
        let asked = async {
            while open.load(Ordering::Relaxed) == 0 {
                sleep(Duration::from_millis(2)).await;
            }
            let began = Instant::now();
            host.shutdown().await;
            began.elapsed()
        };
        let (call, took) = tokio::join!(host.call_tool("a.pid", ()), asked);
        assert!(call.is_err(), "{way:?}");
        assert!(took < Duration::from_secs(5), "{way:?}: {took:?}");
        assert_eq!(open.load(Ordering::Relaxed), 0, "{way:?}");
    }
}

#[tokio::test]
async fn other_calls_go_on_while_the_application_thinks() {
    let scene = Scene::new();
    let servers = [scene.fx("a").switch("--ask-sampling"), scene.fx("b")];
    let reached = Reached::by(Way::Http, servers).await;
    let (free, held) = tokio::sync::watch::channel(false);
    let callback = move |_: ServerRequest| {
        let mut held = held.clone();
        async move {
            drop(held.wait_for(|free| *free).await);
            Ok(json!("at last"))
        }
    };
    let host = reached.host(&scene, &Answers::sampling(), callback).await;
    let others = async {
        scene.journal_until(|journal| journal.of("a").count("tools/call") == 1).await;
        host.call_tool("b.pid", ()).await.unwrap();
        host.get_prompt("a.plain", &serde_json::Map::new(), Default::default()).await.unwrap();
        free.send_replace(true);
    };
    let (heard, ()) = tokio::join!(heard(&host, "a"), others);
    assert_eq!(heard[0]["result"], "at last");
    host.shutdown().await;
}
