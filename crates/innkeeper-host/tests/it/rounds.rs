//! Calls of the newer era that need input: asked in rounds, answered by the application.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use innkeeper_host::error::ProtocolFault;
use innkeeper_host::{Answers, CallError, Callback, Host, Refusal, ServerRequest, ToolResult};
use innkeeper_testkit::{Fixture, Remote};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::remote::{file, hosting};
use crate::setup::{PATIENCE, Scene, builder, text};

/// The longest state that a server may hand out, in bytes of JSON.
const STATE: usize = 64 << 10;

/// What the fixture's state has beside its padding: its name, the number of a round, the quotes.
const NAMED: usize = r#""fx-state-1""#.len();

fn asking(scene: &Scene, switch: &str) -> Fixture {
    scene.fx("a").with("--era", "modern").switch(switch).key("unavailableAfterTimeouts", 9)
}

/// A host of one server that answers everything with this callback.
async fn host(scene: &Scene, entry: Value, callback: impl Callback) -> Host {
    let builder = builder(scene.config_of(&file([("a", entry)])));
    builder.callback(&Answers::everything(), callback).start().await.unwrap()
}

/// Answers with how often it was asked before.
fn counting() -> (impl Callback, Arc<Mutex<Vec<ServerRequest>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    let callback = move |request: ServerRequest| {
        let mut seen = seen.lock().unwrap();
        seen.push(request);
        let answer = json!({"action": "accept", "content": {"number": seen.len()}});
        async move { Ok(answer) }
    };
    (callback, asked)
}

async fn call(host: &Host) -> Result<ToolResult, CallError> {
    host.call_tool("a.pid", ()).await
}

fn fault(result: Result<ToolResult, CallError>) -> ProtocolFault {
    match result {
        Err(CallError::Protocol { source, server, item }) => {
            assert_eq!((&*server, &*item), ("a", "pid"));
            source
        }
        other => panic!("not a protocol error: {other:?}"),
    }
}

/// Two rounds with two questions each, at a server that is reached in this way.
async fn two_rounds(scene: &Scene, entry: Value) {
    let (callback, asked) = counting();
    let host = host(scene, entry, callback).await;
    let result = call(&host).await.unwrap();
    let last: Value = serde_json::from_str(&text(&result)).unwrap();
    let numbers: Vec<&Value> =
        last.as_object().unwrap().values().map(|answer| &answer["content"]["number"]).collect();
    assert_eq!(numbers, [3, 4], "{last}");
    let methods: Vec<String> =
        asked.lock().unwrap().iter().map(|request| request.method.to_string()).collect();
    assert_eq!(methods[..2], methods[2..]);
    assert!(asked.lock().unwrap().iter().all(|request| &*request.server == "a"));
    let journal = scene.journal();
    let calls = journal.received("tools/call");
    let ids: HashSet<u64> = calls.iter().map(|call| call.message["id"].as_u64().unwrap()).collect();
    assert_eq!((calls.len(), ids.len()), (3, 3), "an id was used twice");
    let states: Vec<&Value> =
        calls.iter().map(|call| &call.message["params"]["requestState"]).collect();
    assert_eq!(states, [&Value::Null, &json!("fx-state-1..."), &json!("fx-state-2...")]);
    assert!(calls[0].message["params"].get("inputResponses").is_none());
    assert_eq!(calls[1].message["params"]["inputResponses"].as_object().unwrap().len(), 2);
    let able = "io.modelcontextprotocol/clientCapabilities";
    for call in &calls {
        let able = &call.message["params"]["_meta"][able];
        let extensions = json!({"io.modelcontextprotocol/tasks": {}});
        let all = ["sampling", "elicitation", "roots"].map(|kind| able[kind] == json!({}));
        assert_eq!((all, &able["extensions"]), ([true; 3], &extensions));
        assert_eq!(call.message["params"]["name"], "pid");
    }
    assert!(journal.responses().is_empty(), "an answer is no message of its own");
    let metrics = &host.metrics()["a"];
    assert_eq!((metrics.request_count, metrics.success_count), (1, 1), "it is one call");
    host.shutdown().await;
}

fn twice(scene: &Scene) -> Fixture {
    let server = asking(scene, "--ask-elicit").switch("--ask-sampling");
    server.with("--rounds", 2).with("--state-bytes", 3)
}

/// Proves: FR5.1, FR5.3, FR5.4
#[tokio::test]
async fn a_call_that_needs_input_is_sent_again_with_the_answers_until_it_is_done() {
    let scene = Scene::new();
    two_rounds(&scene, twice(&scene).entry()).await;
    let scene = Scene::new();
    let remote = Remote::of(twice(&scene)).start().await;
    two_rounds(&scene, remote.entry()).await;
    let scene = Scene::new();
    let remote = Remote::of(twice(&scene)).answers_as_json().start().await;
    two_rounds(&scene, remote.entry()).await;
}

/// Fault 41.
#[tokio::test]
async fn a_server_that_asks_for_ever_is_given_eight_rounds() {
    let scene = Scene::new();
    let (callback, asked) = counting();
    let server = asking(&scene, "--ask-elicit").with("--rounds", 1_000_000);
    let host = host(&scene, server.entry(), callback).await;
    let endless = fault(call(&host).await);
    assert!(matches!(endless, ProtocolFault::EndlessRounds { limit: 8 }), "{endless:?}");
    assert_eq!(asked.lock().unwrap().len(), 8);
    assert_eq!(scene.journal().count("tools/call"), 9);
    host.shutdown().await;
}

/// The limit of fault 41.
#[tokio::test]
async fn eight_rounds_are_not_too_many() {
    let scene = Scene::new();
    let (callback, asked) = counting();
    let server = asking(&scene, "--ask-elicit").with("--rounds", 8);
    let host = host(&scene, server.entry(), callback).await;
    call(&host).await.unwrap();
    assert_eq!(asked.lock().unwrap().len(), 8);
    host.shutdown().await;
}

/// Fault 44.
#[tokio::test]
async fn a_state_of_sixty_four_kibibytes_goes_back_and_one_byte_more_is_refused() {
    for (bytes, fits) in [(STATE - NAMED, true), (STATE - NAMED + 1, false), (10 << 20, false)] {
        let scene = Scene::new();
        let (callback, asked) = counting();
        let server = asking(&scene, "--ask-elicit").with("--state-bytes", bytes);
        let host = host(&scene, server.entry(), callback).await;
        let called = call(&host).await;
        if fits {
            called.unwrap();
            let state = scene.journal().params("tools/call")[1]["requestState"].clone();
            assert_eq!(state.as_str().unwrap().len() + 2, STATE);
        } else {
            let fault = fault(called);
            assert!(matches!(fault, ProtocolFault::Shape(_)), "{bytes}: {fault:?}");
            assert!(asked.lock().unwrap().is_empty(), "{bytes}: somebody was asked");
        }
        host.shutdown().await;
    }
}

/// Proves: FR5.3
#[tokio::test]
async fn without_anybody_who_answers_the_call_fails_and_says_what_was_asked_for() {
    let scene = Scene::new();
    let server = asking(&scene, "--ask-sampling").switch("--ask-anyway");
    let host = hosting(&scene, [("a", server.entry())]).await;
    match fault(call(&host).await) {
        ProtocolFault::InputRefused { method, .. } => {
            assert_eq!(&*method, "sampling/createMessage");
        }
        other => panic!("another fault: {other:?}"),
    }
    assert_eq!(scene.journal().count("tools/call"), 1);
    host.shutdown().await;
}

#[tokio::test]
async fn nobody_is_asked_what_comes_before_a_question_that_nobody_answers() {
    let scene = Scene::new();
    let server = asking(&scene, "--ask-roots").switch("--ask-sampling").switch("--ask-anyway");
    let (callback, asked) = counting();
    let builder = builder(scene.config_of(&file([("a", server.entry())])));
    let host = builder.callback(&Answers::roots(), callback).start().await.unwrap();
    let refused = fault(call(&host).await).to_string();
    assert!(refused.contains("`sampling/createMessage`"), "{refused}");
    assert!(asked.lock().unwrap().is_empty());
    host.shutdown().await;
}

/// Proves: TR4.6
#[tokio::test]
async fn an_application_that_refuses_or_panics_ends_the_call_and_nothing_else() {
    let scene = Scene::new();
    let panics = Arc::new(AtomicUsize::new(0));
    let callback = {
        let panics = panics.clone();
        move |_: ServerRequest| {
            let number = panics.fetch_add(1, Ordering::Relaxed);
            assert!(number != 1, "at once, as this test wants it");
            async move {
                match number {
                    0 => Err(Refusal::new(-1, "the user said no")),
                    2 => panic!("later, as this test wants it"),
                    _ => Ok(json!({"action": "accept"})),
                }
            }
        }
    };
    let host = host(&scene, asking(&scene, "--ask-elicit").entry(), callback).await;
    for why in ["the user said no", "panicked", "panicked"] {
        let refused = fault(call(&host).await).to_string();
        assert!(refused.contains("`elicitation/create`") && refused.contains(why), "{refused}");
    }
    call(&host).await.unwrap();
    host.shutdown().await;
}

#[tokio::test]
async fn the_time_of_a_call_does_not_run_while_the_application_thinks() {
    let scene = Scene::new();
    let callback = |_| async {
        sleep(Duration::from_secs(1)).await;
        Ok(json!({"action": "accept"}))
    };
    let server = asking(&scene, "--ask-elicit").key("timeout", 0.5).key("maxTotalTimeout", 30);
    let host = host(&scene, server.entry(), callback).await;
    let began = Instant::now();
    call(&host).await.unwrap();
    assert!(began.elapsed() >= Duration::from_secs(1));
    host.shutdown().await;
}

#[tokio::test]
async fn an_application_that_never_answers_costs_the_longest_time_of_a_call_and_not_the_server() {
    let scene = Scene::new();
    let callback = |_: ServerRequest| std::future::pending();
    let server = asking(&scene, "--ask-elicit").key("timeout", 0.5).key("maxTotalTimeout", 1);
    let server = server.key("unavailableAfterTimeouts", 1);
    let host = host(&scene, server.entry(), callback).await;
    for _ in 0..2 {
        let began = Instant::now();
        let late = call(&host).await.unwrap_err();
        let second = Duration::from_secs(1);
        assert!(matches!(late, CallError::Timeout { after, .. } if after == second), "{late:?}");
        let took = began.elapsed();
        assert!(took >= second && took < PATIENCE, "{took:?}");
    }
    host.shutdown().await;
}

#[tokio::test]
async fn a_caller_that_goes_away_takes_the_question_along() {
    let scene = Scene::new();
    let (asked, mut alive) = tokio::sync::mpsc::channel::<()>(1);
    let callback = move |_: ServerRequest| {
        let asked = asked.clone();
        async move {
            asked.send(()).await.unwrap();
            std::future::pending().await
        }
    };
    let host = host(&scene, asking(&scene, "--ask-elicit").entry(), callback).await;
    tokio::select! {
        called = call(&host) => panic!("nobody has answered: {called:?}"),
        asked = alive.recv() => asked.unwrap(),
    }
    host.set_callback(&Answers::everything(), None);
    // With the callback gone, only an answer that is still being made could hold it.
    let dropped = tokio::time::timeout(PATIENCE, alive.recv()).await;
    assert_eq!(dropped.expect("the answer is still being made"), None);
    assert_eq!(scene.journal().count("tools/call"), 1);
    host.shutdown().await;
}
