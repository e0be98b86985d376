//! The handshake with servers of every kind, in memory and with the clock stopped.

use innkeeper_testkit::Peer;
use serde_json::Value;

use super::*;
use crate::callback::Callbacks;
use crate::error::{ErrorClass, ProtocolFault};
use crate::event::Events;
use crate::server::session::{Limits, Owner};
use crate::tasks::Tasks;

const ALLOWED: Duration = Duration::from_secs(30);

/// Runs the handshake against a server played by `play`.
async fn against<F: Future<Output = Peer>>(
    opening: Opening,
    play: impl FnOnce(Peer) -> F,
) -> (Result<Greeting, CallError>, Peer, Duration) {
    let (peer, reader, writer) = Peer::new();
    let server: Arc<str> = "fx".into();
    let (callbacks, tasks) = (Callbacks::default(), Tasks::default());
    let owner = Owner { server: server.clone(), callbacks, events: Events::new(), tasks };
    let session = Session::open(owner, reader, writer, Limits::default());
    let began = Instant::now();
    let info = ClientInfo::default();
    let client = Client {
        server: &server,
        info: &info,
        capabilities: RawValue::from_string("{}".to_owned()).unwrap(),
    };
    let greeting = greet(&session, client, opening, began + ALLOWED);
    let (greeting, peer) = tokio::join!(greeting, play(peer));
    (greeting, peer, began.elapsed())
}

fn initialized(version: &str) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "fx", "version": "1", "vendor": { "kept": 10 } },
    })
}

fn discovered() -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": { "tools": {} },
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "fx", "version": "1" } },
    })
}

/// Proves: TR3.8, FR2.4
#[tokio::test(start_paused = true)]
async fn every_published_legacy_revision_is_accepted_and_initialized_follows() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let (greeting, mut peer, _) = against(Opening::Discover, async |mut peer: Peer| {
            let request = peer.expect(method::SERVER_DISCOVER).await;
            peer.reply_error(&request["id"], -32601, "Method not found").await;
            let request = peer.answer(method::INITIALIZE, initialized(version)).await;
            assert_eq!(request["params"]["protocolVersion"], "2025-11-25");
            assert_eq!(request["params"]["capabilities"], json!({}));
            peer
        })
        .await;
        let greeting = greeting.unwrap();
        assert_eq!(greeting.revision.as_str(), version);
        assert!(greeting.meta.is_none());
        assert!(greeting.server_info.unwrap().get().contains("vendor"));
        let told = peer.expect(method::INITIALIZED).await;
        assert!(told.get("id").is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_revision_is_refused_naming_both_sides() {
    for version in ["1999-01-01", "", "2026-07-28"] {
        let (greeting, _, _) = against(Opening::Initialize, async |mut peer: Peer| {
            peer.answer(method::INITIALIZE, initialized(version)).await;
            peer
        })
        .await;
        let error = greeting.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Protocol);
        let CallError::Protocol { source: ProtocolFault::Revision { theirs, ours }, .. } = error
        else {
            panic!("{error:?}");
        };
        assert_eq!(&*theirs, version);
        assert!(ours.contains("2024-11-05") && ours.contains("2026-07-28"), "{ours}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_is_recognised_and_every_request_carries_its_meta() {
    let (greeting, _, _) = against(Opening::Discover, async |mut peer: Peer| {
        let request = peer.answer(method::SERVER_DISCOVER, discovered()).await;
        let meta = &request["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object());
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "innkeeper");
        peer
    })
    .await;
    let greeting = greeting.unwrap();
    assert_eq!(greeting.revision, Revision::V2026_07_28);
    let meta: Value = serde_json::from_str(greeting.meta.unwrap().get()).unwrap();
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_silent_on_discover_is_asked_the_older_question_too() {
    let (greeting, _, took) = against(Opening::Discover, async |mut peer: Peer| {
        peer.expect(method::SERVER_DISCOVER).await;
        peer.answer(method::INITIALIZE, initialized("2025-06-18")).await;
        peer
    })
    .await;
    assert_eq!(greeting.unwrap().revision, Revision::V2025_06_18);
    assert_eq!(took, PATIENCE);
}

#[tokio::test(start_paused = true)]
async fn a_slow_modern_server_is_not_poisoned_by_the_second_question() {
    let (greeting, _, took) = against(Opening::Discover, async |mut peer: Peer| {
        tokio::time::sleep(Duration::from_secs(12)).await;
        let discover = peer.expect(method::SERVER_DISCOVER).await;
        let initialize = peer.expect(method::INITIALIZE).await;
        let refusal = "connection is serving the 2026-07-28 protocol";
        peer.reply_error(&initialize["id"], -32022, refusal).await;
        peer.reply(&discover["id"], discovered()).await;
        peer
    })
    .await;
    assert_eq!(greeting.unwrap().revision, Revision::V2026_07_28);
    assert_eq!(took, Duration::from_secs(12));
}

#[tokio::test(start_paused = true)]
async fn a_slow_legacy_server_that_refuses_discover_late_is_initialized() {
    let (greeting, _, _) = against(Opening::Discover, async |mut peer: Peer| {
        tokio::time::sleep(Duration::from_secs(12)).await;
        let discover = peer.expect(method::SERVER_DISCOVER).await;
        peer.reply_error(&discover["id"], -32602, "Invalid request parameters").await;
        peer.answer(method::INITIALIZE, initialized("2025-11-25")).await;
        peer
    })
    .await;
    assert_eq!(greeting.unwrap().revision, Revision::V2025_11_25);
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_asked_the_older_question_first_is_then_discovered() {
    let (greeting, _, _) = against(Opening::Initialize, async |mut peer: Peer| {
        let request = peer.expect(method::INITIALIZE).await;
        peer.reply_error(&request["id"], -32022, "Unsupported protocol version").await;
        peer.answer(method::SERVER_DISCOVER, discovered()).await;
        peer
    })
    .await;
    assert_eq!(greeting.unwrap().revision, Revision::V2026_07_28);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_both_questions_fails_at_once_with_its_own_words() {
    let (greeting, _, took) = against(Opening::Discover, async |mut peer: Peer| {
        let request = peer.expect(method::SERVER_DISCOVER).await;
        peer.reply_error(&request["id"], -32601, "Method not found").await;
        let request = peer.expect(method::INITIALIZE).await;
        peer.reply_error(&request["id"], -32603, "database is locked").await;
        peer
    })
    .await;
    assert!(took < Duration::from_millis(250), "{took:?}");
    let error = greeting.unwrap_err();
    assert!(error.to_string().contains("database is locked"), "{error}");
}

/// Proves: FR2.5
#[tokio::test(start_paused = true)]
async fn a_server_that_answers_neither_question_is_given_up_at_the_deadline() {
    let (greeting, mut peer, took) = against(Opening::Discover, async |peer: Peer| peer).await;
    assert!(matches!(greeting, Err(CallError::Timeout { .. })), "{greeting:?}");
    assert_eq!(took, ALLOWED);
    peer.expect(method::SERVER_DISCOVER).await;
    peer.expect(method::INITIALIZE).await;
}

/// Proves: TR3.6
#[tokio::test(start_paused = true)]
async fn a_wrong_typed_answer_is_a_protocol_error_that_points_at_the_fault() {
    let (greeting, _, _) = against(Opening::Initialize, async |mut peer: Peer| {
        let wrong = json!({ "protocolVersion": 7, "capabilities": {}, "serverInfo": {} });
        peer.answer(method::INITIALIZE, wrong).await;
        peer
    })
    .await;
    let CallError::Protocol { source: ProtocolFault::Shape(fault), .. } = greeting.unwrap_err()
    else {
        panic!("not a protocol error");
    };
    assert_eq!(fault.pointer, "/protocolVersion");
}
