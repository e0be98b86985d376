//! Handshake with in-memory servers and a paused clock.

use innkeeper_protocol::ErrorObject;
use std::time::Duration;

use innkeeper_testkit::InMemoryServer;
use serde_json::Value;

use super::negotiation::DISCOVER_TIMEOUT;
use super::revisions::supports_revision;
use super::*;
use crate::error::{ErrorClass, ProtocolError};
use crate::session::{HostContext, SessionContext, SessionLimits};

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs the handshake against a server scripted by the closure.
async fn handshake_with<F: Future<Output = InMemoryServer>>(
    opening: HandshakeProbe,
    serve: impl FnOnce(InMemoryServer) -> F,
) -> (Result<HandshakeResult, CallError>, InMemoryServer, Duration) {
    let (peer, reader, writer) = InMemoryServer::new();
    let server: Arc<str> = "fx".into();
    let owner = SessionContext { server: server.clone(), host: HostContext::default() };
    let session = Session::open(owner, reader, writer, SessionLimits::default());
    let started = Instant::now();
    let info = ClientInfo::default();
    let client = HandshakeClient {
        server: &server,
        info: &info,
        capabilities: RawValue::from_string("{}".to_owned()).unwrap(),
    };
    let handshake = perform_handshake(&session, client, opening, started + HANDSHAKE_TIMEOUT);
    let (handshake, peer) = tokio::join!(handshake, serve(peer));
    (handshake, peer, started.elapsed())
}

fn initialize_result(version: &str) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "fx", "version": "1", "vendor": { "kept": 10 } },
    })
}

fn discover_result() -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": { "tools": {} },
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "fx", "version": "1" } },
    })
}

/// Proves: TR3.8, FR2.4, TR1.5
#[tokio::test(start_paused = true)]
async fn every_published_legacy_revision_is_accepted_and_initialized_follows() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let (handshake, mut peer, _) =
            handshake_with(HandshakeProbe::Discover, async |mut peer: InMemoryServer| {
                let request = peer.expect(method::SERVER_DISCOVER).await;
                peer.respond_error(&request["id"], -32601, "Method not found").await;
                let request = peer.respond_to(method::INITIALIZE, initialize_result(version)).await;
                assert_eq!(request["params"]["protocolVersion"], "2025-11-25");
                assert_eq!(request["params"]["capabilities"], json!({}));
                peer
            })
            .await;
        let handshake = handshake.unwrap();
        assert_eq!(handshake.revision.as_str(), version);
        assert!(handshake.meta.is_none());
        assert!(handshake.server_info.unwrap().get().contains("vendor"));
        let notification = peer.expect(method::INITIALIZED).await;
        assert!(notification.get("id").is_none());
    }
}

/// Proves: TR3.8
#[tokio::test(start_paused = true)]
async fn an_unknown_revision_is_refused_naming_both_sides() {
    for version in ["1999-01-01", "", "2026-07-28"] {
        let (handshake, _, _) =
            handshake_with(HandshakeProbe::Initialize, async |mut peer: InMemoryServer| {
                peer.respond_to(method::INITIALIZE, initialize_result(version)).await;
                peer
            })
            .await;
        let error = handshake.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Protocol);
        let CallError::Protocol { source, .. } = error else { panic!("{error:?}") };
        let message = source.to_string();
        let ProtocolError::UnsupportedRevision { requested, supported } = source else {
            panic!("{source:?}");
        };
        assert_eq!(&*requested, version);
        assert!(message.contains(&format!("`{version}`")), "{message}");
        assert!(message.contains(&*supported), "{message}");
        assert!(
            supported.contains("2024-11-05") && supported.contains("2026-07-28"),
            "{supported}"
        );
    }
}

/// Proves: TR3.8, TR1.5
#[tokio::test(start_paused = true)]
async fn a_modern_server_is_recognised_and_every_request_carries_its_meta() {
    let (handshake, _, _) =
        handshake_with(HandshakeProbe::Discover, async |mut peer: InMemoryServer| {
            let request = peer.respond_to(method::SERVER_DISCOVER, discover_result()).await;
            let meta = &request["params"]["_meta"];
            assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
            assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object());
            assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "innkeeper");
            peer
        })
        .await;
    let handshake = handshake.unwrap();
    assert_eq!(handshake.revision, Revision::V2026_07_28);
    let meta: Value = serde_json::from_str(handshake.meta.unwrap().get()).unwrap();
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_silent_on_discover_is_sent_initialize_too() {
    let (handshake, _, took) =
        handshake_with(HandshakeProbe::Discover, async |mut peer: InMemoryServer| {
            peer.expect(method::SERVER_DISCOVER).await;
            peer.respond_to(method::INITIALIZE, initialize_result("2025-06-18")).await;
            peer
        })
        .await;
    let handshake = handshake.unwrap();
    assert_eq!(handshake.revision, Revision::V2025_06_18);
    assert!(handshake.ignored_discover);
    assert_eq!(took, DISCOVER_TIMEOUT);
}

#[tokio::test(start_paused = true)]
async fn a_server_known_to_be_silent_on_discover_is_ready_at_once() {
    let (handshake, _, took) =
        handshake_with(HandshakeProbe::InitializeFirst, async |mut peer: InMemoryServer| {
            peer.respond_to(method::INITIALIZE, initialize_result("2025-06-18")).await;
            peer
        })
        .await;
    assert!(!handshake.unwrap().ignored_discover);
    assert_eq!(took, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_became_modern_since_it_was_silent_is_discovered() {
    for rejects in [true, false] {
        let (handshake, _, took) =
            handshake_with(HandshakeProbe::InitializeFirst, async |mut peer: InMemoryServer| {
                let request = peer.expect(method::INITIALIZE).await;
                if rejects {
                    peer.respond_error(&request["id"], -32601, "Method not found").await;
                }
                peer.respond_to(method::SERVER_DISCOVER, discover_result()).await;
                peer
            })
            .await;
        assert_eq!(handshake.unwrap().revision, Revision::V2026_07_28);
        assert_eq!(took, if rejects { Duration::ZERO } else { DISCOVER_TIMEOUT });
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_modern_server_is_not_poisoned_by_the_second_probe() {
    let (handshake, _, took) =
        handshake_with(HandshakeProbe::Discover, async |mut peer: InMemoryServer| {
            tokio::time::sleep(Duration::from_secs(12)).await;
            let discover = peer.expect(method::SERVER_DISCOVER).await;
            let initialize = peer.expect(method::INITIALIZE).await;
            let message = "connection is serving the 2026-07-28 protocol";
            peer.respond_error(&initialize["id"], -32022, message).await;
            peer.respond(&discover["id"], discover_result()).await;
            peer
        })
        .await;
    assert_eq!(handshake.unwrap().revision, Revision::V2026_07_28);
    assert_eq!(took, Duration::from_secs(12));
}

#[tokio::test(start_paused = true)]
async fn a_slow_legacy_server_that_refuses_discover_late_is_initialized() {
    let (handshake, _, _) =
        handshake_with(HandshakeProbe::Discover, async |mut peer: InMemoryServer| {
            tokio::time::sleep(Duration::from_secs(12)).await;
            let discover = peer.expect(method::SERVER_DISCOVER).await;
            peer.respond_error(&discover["id"], -32602, "Invalid request parameters").await;
            peer.respond_to(method::INITIALIZE, initialize_result("2025-11-25")).await;
            peer
        })
        .await;
    assert_eq!(handshake.unwrap().revision, Revision::V2025_11_25);
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_sent_initialize_first_is_then_discovered() {
    let (handshake, _, _) =
        handshake_with(HandshakeProbe::Initialize, async |mut peer: InMemoryServer| {
            let request = peer.expect(method::INITIALIZE).await;
            peer.respond_error(&request["id"], -32022, "Unsupported protocol version").await;
            peer.respond_to(method::SERVER_DISCOVER, discover_result()).await;
            peer
        })
        .await;
    assert_eq!(handshake.unwrap().revision, Revision::V2026_07_28);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_rejects_both_probes_fails_at_once_with_its_own_message() {
    let (handshake, _, took) =
        handshake_with(HandshakeProbe::Discover, async |mut peer: InMemoryServer| {
            let request = peer.expect(method::SERVER_DISCOVER).await;
            peer.respond_error(&request["id"], -32601, "Method not found").await;
            let request = peer.expect(method::INITIALIZE).await;
            peer.respond_error(&request["id"], -32603, "database is locked").await;
            peer
        })
        .await;
    assert!(took < Duration::from_millis(250), "{took:?}");
    let error = handshake.unwrap_err();
    assert!(error.to_string().contains("database is locked"), "{error}");
}

/// Proves: FR2.5
#[tokio::test(start_paused = true)]
async fn a_server_that_answers_neither_probe_is_given_up_at_the_deadline() {
    let (handshake, mut peer, took) =
        handshake_with(HandshakeProbe::Discover, async |peer: InMemoryServer| peer).await;
    assert!(matches!(handshake, Err(CallError::Timeout { .. })), "{handshake:?}");
    assert_eq!(took, HANDSHAKE_TIMEOUT);
    peer.expect(method::SERVER_DISCOVER).await;
    peer.expect(method::INITIALIZE).await;
}

/// Proves: TR3.6, FR7.5
#[tokio::test(start_paused = true)]
async fn a_wrongly_typed_response_is_a_protocol_error_that_points_at_the_member() {
    let (handshake, _, _) =
        handshake_with(HandshakeProbe::Initialize, async |mut peer: InMemoryServer| {
            let wrong = json!({ "protocolVersion": 7, "capabilities": {}, "serverInfo": {} });
            peer.respond_to(method::INITIALIZE, wrong).await;
            peer
        })
        .await;
    let CallError::Protocol { source: ProtocolError::InvalidResult(view_error), .. } =
        handshake.unwrap_err()
    else {
        panic!("not a protocol error");
    };
    assert_eq!(view_error.pointer, "/protocolVersion");
}

#[test]
fn a_version_error_supports_the_revisions_that_it_lists() {
    let supports = |code: i64, data: Value| {
        let data = RawValue::from_string(data.to_string()).unwrap();
        let error = ErrorObject { code, message: "no".to_owned(), data: Some(data) };
        supports_revision(&error, Revision::LATEST)
    };
    let latest = || json!({ "supported": ["2025-11-25", "2026-07-28"] });
    assert!(supports(code::UNSUPPORTED_PROTOCOL_VERSION, latest()));
    assert!(!supports(code::INVALID_PARAMS, latest()));
    for data in [json!({ "supported": ["2025-11-25"] }), json!({ "supported": "2026-07-28" })] {
        assert!(!supports(code::UNSUPPORTED_PROTOCOL_VERSION, data));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_rejects_the_revision_that_it_supports_is_asked_once_more() {
    let (handshake, _, _) =
        handshake_with(HandshakeProbe::Discover, async |mut peer: InMemoryServer| {
            let request = peer.expect(method::SERVER_DISCOVER).await;
            let error = json!({ "code": code::UNSUPPORTED_PROTOCOL_VERSION, "message": "no",
                "data": { "supported": ["2026-07-28"] } });
            peer.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "error": error })).await;
            peer.respond_to(method::SERVER_DISCOVER, discover_result()).await;
            peer
        })
        .await;
    assert_eq!(handshake.unwrap().revision, Revision::V2026_07_28);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_keeps_rejecting_the_revision_that_it_supports_is_quoted() {
    for of_initialize in [code::UNSUPPORTED_PROTOCOL_VERSION, code::METHOD_NOT_FOUND] {
        let (handshake, _, _) =
            handshake_with(HandshakeProbe::Discover, async |mut peer: InMemoryServer| {
                for _ in 0..2 {
                    let request = peer.expect(method::SERVER_DISCOVER).await;
                    let error = json!({ "code": code::UNSUPPORTED_PROTOCOL_VERSION,
                        "message": "not in this build", "data": { "supported": ["2026-07-28"] } });
                    let id = &request["id"];
                    peer.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error })).await;
                }
                let request = peer.expect(method::INITIALIZE).await;
                peer.respond_error(&request["id"], of_initialize, "not in this build").await;
                peer
            })
            .await;
        let error = handshake.unwrap_err();
        let message = error.to_string();
        assert!(message.contains("not in this build"), "{message}");
        assert!(message.contains("server/discover"), "{message}");
        assert!(!message.contains("expected"), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_names_its_revisions_is_asked_once_more_with_the_newest_known_one() {
    let data = json!({"supported": ["2024-11-05", "2025-06-18", "2020-01-01"], "requested": "x"});
    let message = "Unsupported (supported versions: 2025-06-18, 2024-11-05)";
    for (data, message) in [(data, "Invalid version"), (Value::Null, message)] {
        let (handshake, ..) =
            handshake_with(HandshakeProbe::Initialize, async |mut peer: InMemoryServer| {
                let request = peer.expect(method::INITIALIZE).await;
                let error = json!({"code": -32602, "message": message, "data": data});
                let id = &request["id"];
                peer.send(&json!({"jsonrpc": "2.0", "id": id, "error": error})).await;
                let result = initialize_result("2025-06-18");
                let request = peer.respond_to(method::INITIALIZE, result).await;
                assert_eq!(request["params"]["protocolVersion"], "2025-06-18");
                peer
            })
            .await;
        assert_eq!(handshake.unwrap().revision, Revision::V2025_06_18, "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_without_the_id_of_the_request_starts_the_legacy_handshake_at_once() {
    for id in [json!(null), json!("server-error"), json!(77)] {
        let (handshake, _, elapsed) =
            handshake_with(HandshakeProbe::Discover, async |mut peer: InMemoryServer| {
                peer.expect(method::SERVER_DISCOVER).await;
                let error = json!({"code": -32600, "message": "Invalid Request"});
                peer.send(&json!({"jsonrpc": "2.0", "id": id, "error": error})).await;
                peer.respond_to(method::INITIALIZE, initialize_result("2025-11-25")).await;
                peer
            })
            .await;
        assert_eq!(handshake.unwrap().revision, Revision::V2025_11_25);
        assert!(elapsed < DISCOVER_TIMEOUT, "{id}: {elapsed:?}");
    }
}
