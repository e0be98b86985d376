//! Servers that ask more than anybody can answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use innkeeper_host::{Answers, Callback, ServerRequest};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{Reached, WAYS, Way, heard, shared};
use crate::setup::{PATIENCE, Scene, text};

/// Counts who is asked at the same time, and holds everyone until told.
#[derive(Clone)]
struct Desk {
    open: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    asked: Arc<AtomicUsize>,
    free: Arc<watch::Sender<bool>>,
}

impl Desk {
    fn new() -> Self {
        let count = Arc::<AtomicUsize>::default;
        let free = Arc::new(watch::Sender::new(false));
        Self { open: count(), most: count(), asked: count(), free }
    }

    fn callback(&self) -> impl Callback + use<> {
        let desk = self.clone();
        move |_: ServerRequest| {
            let desk = desk.clone();
            async move {
                desk.asked.fetch_add(1, Ordering::Relaxed);
                let open = desk.open.fetch_add(1, Ordering::Relaxed) + 1;
                desk.most.fetch_max(open, Ordering::Relaxed);
                drop(desk.free.subscribe().wait_for(|free| *free).await);
                desk.open.fetch_sub(1, Ordering::Relaxed);
                Ok(json!({"action": "accept"}))
            }
        }
    }
}

/// Waits until the server has so many answers. Looks rarely: there is much to read.
async fn answered(scene: &Scene, count: usize) {
    let looking = async {
        while scene.journal().of("a").responses().len() < count {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.expect("everything is answered");
}

/// Has a server ask so often at once, holds what is taken until all others have their answer, and
/// gives every answer, how many were asked at a time and how many at all.
async fn storm(way: Way, switch: &str, count: usize, taken: usize) -> (Vec<Value>, usize, usize) {
    let scene = Scene::new();
    let server = scene.fx("a").switch(switch).with("--ask-count", count);
    let reached = Reached::by(way, [server, scene.fx("b")]).await;
    let desk = Desk::new();
    let host = reached.host(&scene, &Answers::everything(), desk.callback()).await;
    let meanwhile = async {
        answered(&scene, count - taken).await;
        let message = json!({"message": "still here"});
        let neighbour = host.call_tool("b.echo", message).await;
        // The neighbour asks nothing, and is not held up.
        assert_eq!(text(&neighbour.unwrap()), "still here");
        desk.free.send_replace(true);
    };
    let (heard, ()) = tokio::join!(heard(&host, "a"), meanwhile);
    host.shutdown().await;
    (heard, desk.most.load(Ordering::Relaxed), desk.asked.load(Ordering::Relaxed))
}

/// Fault 40.
#[tokio::test]
async fn of_two_thousand_requests_at_once_four_are_asked_sixteen_wait_and_the_rest_is_refused() {
    for way in [Way::Pipe, Way::Http, Way::Sse] {
        let (heard, most, asked) = storm(way, "--ask-sampling", 2000, 20).await;
        assert_eq!((heard.len(), most, asked), (2000, 4, 20), "{way:?}");
        let refused = heard.iter().filter(|answer| answer["error"]["code"] == -32603).count();
        assert_eq!(refused, 1980, "{way:?}");
    }
}

/// The limit of fault 40, and one past it.
#[tokio::test]
async fn twenty_requests_at_once_are_all_answered_and_the_next_one_is_refused() {
    let (heard, _, asked) = storm(Way::Pipe, "--ask-sampling", 20, 20).await;
    assert_eq!(asked, 20);
    assert!(heard.iter().all(|answer| answer.get("result").is_some()), "{heard:?}");
    let (heard, _, asked) = storm(Way::Pipe, "--ask-sampling", 21, 20).await;
    assert_eq!(asked, 20);
    assert_eq!(heard.iter().filter(|answer| answer.get("error").is_some()).count(), 1);
}

/// Fault 42.
#[tokio::test]
async fn a_user_is_asked_one_question_at_a_time_four_wait_and_the_rest_is_declined() {
    for way in [Way::Pipe, Way::Http] {
        let (heard, most, asked) = storm(way, "--ask-elicit", 200, 5).await;
        assert_eq!((heard.len(), most, asked), (200, 1, 5), "{way:?}");
        let declined = heard.iter().filter(|answer| answer["result"]["action"] == "decline");
        assert_eq!(declined.count(), 195, "{way:?}");
    }
}

/// Fault 43.
#[tokio::test]
async fn a_flood_of_pings_is_answered_and_holds_nobody_up() {
    // What comes before there is a stream for it is kept by the fixture up to 64 messages.
    for (way, count) in [(Way::Pipe, 2000), (Way::Http, 60), (Way::Sse, 60), (Way::WebSocket, 60)] {
        let scene = Scene::new();
        let server = scene.fx("a").switch("--ping-client").with("--ping-count", count);
        let reached = Reached::by(way, [server]).await;
        let host = reached.host_alone(&scene).await;
        let called = host.call_tool("a.echo", json!({"message": "through"})).await.unwrap();
        assert_eq!(text(&called), "through", "{way:?}");
        answered(&scene, count).await;
        let journal = scene.journal();
        assert!(journal.responses().iter().all(|answer| answer["result"] == json!({})), "{way:?}");
        host.shutdown().await;
    }
}

/// Fault 42: who is asked in the middle of an answer waits for that answer, and both for their time.
#[tokio::test]
async fn a_question_inside_of_an_answer_ends_with_the_time_of_the_call() {
    let scene = Scene::new();
    let server = scene.fx("a").switch("--ask-elicit").key("unavailableAfterTimeouts", 9);
    let server = server.key("timeout", 0.5).key("maxTotalTimeout", 2);
    let reached = Reached::by(Way::Pipe, [server, scene.fx("b")]).await;
    let host = reached.host_alone(&scene).await;
    let callback = {
        let host = host.clone();
        move |_: ServerRequest| {
            let host = host.clone();
            async move {
                drop(host.call_tool("a.pid", ()).await);
                Ok(json!({"action": "accept"}))
            }
        }
    };
    host.set_callback(&Answers::elicitation(), shared(callback).as_ref());
    let called = tokio::time::timeout(PATIENCE, host.call_tool("a.pid", ())).await;
    called.expect("it ends").unwrap_err();
    host.call_tool("b.pid", ()).await.unwrap();
    host.set_callback(&Answers::elicitation(), None);
    host.shutdown().await;
}

#[tokio::test]
async fn an_answer_that_is_too_long_to_be_sent_is_an_error_for_the_server() {
    for way in WAYS {
        let scene = Scene::new();
        let reached = Reached::by(way, [scene.fx("a").switch("--ask-sampling")]).await;
        let callback = |_: ServerRequest| async { Ok(json!("x".repeat(9 << 20))) };
        let host = reached.host(&scene, &Answers::sampling(), callback).await;
        assert_eq!(heard(&host, "a").await[0]["error"]["code"], -32603, "{way:?}");
        host.shutdown().await;
    }
}
