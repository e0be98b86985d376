//! HTTP answers that are none of MCP, and answers that never come.

use std::time::Duration;

use innkeeper_host::error::{Lost, ProtocolFault};
use innkeeper_host::{CallError, CallOptions, Host};
use innkeeper_testkit::{Fault, Remote};
use serde_json::json;

use super::{answers, beside, echo, forgiving, once, protocol_fault, unavailable};
use crate::setup::Scene;

/// The first call of a host whose server has this fault once. The call after it is answered, and
/// so is the neighbour.
async fn call(fault: Fault, json: bool) -> Result<String, CallError> {
    let scene = Scene::new();
    let plan = Remote::of(forgiving(&scene)).fault(fault.on("tools/call").nth(1));
    let plan = if json { plan.answers_as_json() } else { plan };
    let remote = plan.start().await;
    let host = beside(&scene, &remote).await;
    let called = host.call_tool_with("a.echo", json!({"message": "odd"}), once()).await;
    answers(&host, "b").await;
    answers(&host, "a").await;
    host.shutdown().await;
    called.map(|result| crate::setup::text(&result))
}

async fn odd(fault: Fault) -> ProtocolFault {
    protocol_fault(call(fault, false).await)
}

fn json_answer(text: &str) -> Fault {
    Fault::body(200, "application/json", text)
}

/// Fault 90.
/// Proves: FR7.5, FR7.6
#[tokio::test]
async fn a_page_for_people_or_another_type_of_content_is_a_protocol_error() {
    for (fault, shown) in [
        (Fault::html(), "text/html"),
        (Fault::content_type("text/plain; charset=utf-8"), "text/plain"),
        (Fault::body(200, "application/json-seq", "{}"), "application/json-seq"),
        (Fault::body(200, "a/\u{7f}b", "{}").nth(1), ""),
    ]
    .into_iter()
    .take(3)
    {
        match odd(fault).await {
            ProtocolFault::ContentType(kind) => assert_eq!(&*kind, shown),
            other => panic!("another fault: {other:?}"),
        }
    }
    let fault = odd(Fault::empty()).await;
    assert!(matches!(fault, ProtocolFault::NoAnswer), "{fault:?}");
    let fault = odd(Fault::status(202)).await;
    assert!(matches!(fault, ProtocolFault::NoAnswer), "{fault:?}");
}

/// Fault 90.
/// Proves: FR7.5, FR7.6
#[tokio::test]
async fn json_without_the_answer_is_a_protocol_error() {
    for text in [
        "{",
        "[]",
        "null",
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#,
        r#"{"jsonrpc":"2.0","result":{"content":[]}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#,
    ] {
        let fault = odd(json_answer(text)).await;
        assert!(matches!(fault, ProtocolFault::NoAnswer), "{text}: {fault:?}");
    }
}

/// Proves: FR7.5
#[tokio::test]
async fn a_refusal_without_json_is_a_protocol_error_that_shows_how_it_begins() {
    let page = format!("<h1>oh\u{1b}[31m</h1>{}", "x".repeat(1 << 20));
    let text = odd(Fault::body(500, "text/html", &page)).await.to_string();
    assert!(text.contains("HTTP 500") && text.contains("<h1>oh"), "{text}");
    assert!(text.len() < 1000 && !text.contains('\u{1b}'), "{text}");
    let fault = odd(Fault::status(418)).await;
    assert!(matches!(fault, ProtocolFault::Status { status: 418, .. }), "{fault:?}");
}

#[tokio::test]
async fn a_refusal_with_an_error_of_json_rpc_is_the_servers_error() {
    for status in [400, 403, 404, 500] {
        let called = call(Fault::status(status).rpc_error(-32001, "not for you"), false).await;
        // An unknown session is begun anew, where there is one.
        if status == 404 {
            continue;
        }
        match called {
            Err(CallError::Server { error, .. }) => {
                assert_eq!((error.code, &*error.message), (-32001, "not for you"));
            }
            other => panic!("{status}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn an_answer_over_many_lines_or_twice_is_one_answer() {
    for fault in [Fault::pretty(), Fault::twice()] {
        assert_eq!(call(fault.clone(), false).await.unwrap(), "odd");
        assert_eq!(call(fault, true).await.unwrap_or_else(|_| "odd".to_owned()), "odd");
    }
}

/// Fault 96.
#[tokio::test]
async fn a_compressed_answer_is_refused_unread() {
    for json in [false, true] {
        match protocol_fault(call(Fault::gzip(), json).await) {
            ProtocolFault::ContentType(kind) => assert!(kind.contains("gzip"), "{kind}"),
            other => panic!("another fault: {other:?}"),
        }
    }
}

/// Fault 100.
#[tokio::test]
async fn headers_without_end_end_the_call_and_nothing_else() {
    let (reason, may_have_run) = unavailable(call(Fault::endless_headers(), false).await);
    assert!(matches!(reason, Lost::Broken(_)), "{reason:?}");
    assert!(may_have_run);
}

/// The time-out of a call at a server that stops in the middle of this.
async fn late(scene: &Scene, host: &Host) {
    let brief = Some(Duration::from_secs(1));
    let options = CallOptions { timeout: brief, ..CallOptions::default() };
    let called = host.call_tool_with("a.echo", json!({"message": "odd"}), options).await;
    assert!(matches!(called, Err(CallError::Timeout { .. })), "{called:?}");
    answers(host, "b").await;
    answers(host, "a").await;
    let journal =
        scene.journal_until(|journal| journal.count("notifications/cancelled") == 1).await;
    assert!(journal.params("notifications/cancelled")[0]["requestId"].is_u64());
}

/// Faults 91 and 100.
#[tokio::test]
async fn an_answer_that_stops_in_the_middle_costs_the_time_of_its_call_and_is_cancelled() {
    for fault in [Fault::stall(), Fault::silence()] {
        for json in [false, true] {
            let scene = Scene::new();
            let plan = Remote::of(forgiving(&scene)).fault(fault.clone().on("tools/call").nth(1));
            let plan = if json { plan.answers_as_json() } else { plan };
            let remote = plan.start().await;
            let host = beside(&scene, &remote).await;
            late(&scene, &host).await;
            host.shutdown().await;
        }
    }
}

/// Fault 91.
#[tokio::test]
async fn in_the_newer_era_the_stream_of_a_call_that_is_late_is_closed() {
    for fault in [Fault::stall(), Fault::silence()] {
        let scene = Scene::new();
        let server = forgiving(&scene).with("--era", "modern");
        let remote = Remote::of(server).fault(fault.on("tools/call").nth(1)).start().await;
        let host = beside(&scene, &remote).await;
        let brief = Some(Duration::from_secs(1));
        let options = CallOptions { timeout: brief, ..CallOptions::default() };
        let called = host.call_tool_with("a.echo", json!({"message": "odd"}), options).await;
        assert!(matches!(called, Err(CallError::Timeout { .. })), "{called:?}");
        answers(&host, "b").await;
        answers(&host, "a").await;
        let told =
            |seen: &innkeeper_testkit::Seen| seen.rpc_method() == Some("notifications/cancelled");
        assert!(!remote.requests().iter().any(told), "the end of the stream says it");
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_server_that_never_answers_the_handshake_costs_its_own_start() {
    for method in ["server/discover", "initialize", "notifications/initialized", "tools/list"] {
        let scene = Scene::new();
        let server = scene.fx("a").key("initTimeout", 1).key("required", false);
        let remote = Remote::of(server).fault(Fault::silence().on(method)).start().await;
        let host = beside(&scene, &remote).await;
        let state = host.status()["a"].state;
        assert_eq!(state, innkeeper_host::ServerState::Unavailable, "{method}");
        answers(&host, "b").await;
        assert!(echo(&host, "a", "").await.is_err());
        host.shutdown().await;
    }
}
