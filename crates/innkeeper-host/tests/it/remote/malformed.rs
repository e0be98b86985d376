//! HTTP responses that are not valid MCP, and missing responses.

use std::time::Duration;

use innkeeper_host::error::{ProtocolError, UnavailableReason};
use innkeeper_host::{CallError, CallOptions, Host};
use innkeeper_testkit::{Fault, RemoteServer};
use serde_json::json;

use super::{
    assert_fault_count, assert_responds, echo, protocol_error, start_host_with_neighbour,
    tolerant_fixture, unavailable_error, without_retries,
};
use crate::setup::TestEnv;

/// Makes a call to a server that has this fault once, and checks that the next call and the other
/// server succeed.
async fn call_with_fault(fault: Fault, json: bool) -> Result<String, CallError> {
    let test_env = TestEnv::new();
    let server_builder = RemoteServer::for_fixture(tolerant_fixture(&test_env))
        .fault(fault.on_rpc_method("tools/call").only_nth(1));
    let server_builder = if json { server_builder.with_json_responses() } else { server_builder };
    let remote = server_builder.start().await;
    let host = start_host_with_neighbour(&test_env, &remote).await;
    let response =
        host.call_tool_with("a.echo", json!({"message": "odd"}), without_retries()).await;
    assert_fault_count(&remote, 1);
    assert_responds(&host, "b").await;
    assert_responds(&host, "a").await;
    host.shutdown().await;
    response.map(|result| crate::setup::result_text(&result))
}

async fn protocol_error_of(fault: Fault) -> ProtocolError {
    protocol_error(call_with_fault(fault, false).await)
}

fn json_response(text: &str) -> Fault {
    Fault::body(200, "application/json", text)
}

/// Fault 90.
/// Proves: FR7.5, FR7.6
#[tokio::test]
async fn an_html_page_or_another_content_type_is_a_protocol_error() {
    for (fault, expected) in [
        (Fault::html_page(), "text/html"),
        (Fault::content_type("text/plain; charset=utf-8"), "text/plain"),
        (Fault::body(200, "application/json-seq", "{}"), "application/json-seq"),
    ] {
        match protocol_error_of(fault).await {
            ProtocolError::UnexpectedContentType(kind) => assert_eq!(&*kind, expected),
            other => panic!("another fault: {other:?}"),
        }
    }
    let error = protocol_error_of(Fault::body(200, "", "{}")).await;
    assert!(matches!(error, ProtocolError::MissingResponse), "{error:?}");
    let error = protocol_error_of(Fault::empty_response()).await;
    assert!(matches!(error, ProtocolError::MissingResponse), "{error:?}");
    let error = protocol_error_of(Fault::status(202)).await;
    assert!(matches!(error, ProtocolError::MissingResponse), "{error:?}");
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
        let protocol = protocol_error_of(json_response(text)).await;
        assert!(matches!(protocol, ProtocolError::MissingResponse), "{text}: {protocol:?}");
    }
}

/// Proves: FR7.5
#[tokio::test]
async fn a_refusal_without_json_is_a_protocol_error_that_shows_how_it_begins() {
    let page = format!("<h1>oh\u{1b}[31m</h1>{}", "x".repeat(1 << 20));
    let text = protocol_error_of(Fault::body(500, "text/html", &page)).await.to_string();
    assert!(text.contains("HTTP status 500") && text.contains("<h1>oh"), "{text}");
    assert!(text.len() < 1000 && !text.contains('\u{1b}'), "{text}");
    let error = protocol_error_of(Fault::status(418)).await;
    assert!(matches!(error, ProtocolError::HttpStatus { status: 418, .. }), "{error:?}");
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_its_error_shows_no_path() {
    for (status, target, expected) in [
        (307, "https://other.example/canary", "the target is `https://other.example`;"),
        // A redirect that keeps the method is followed to the slash.
        (302, "/mcp/", "the target ends with a slash;"),
        (307, "/canary/", "the target is another path of `http://127.0.0.1:"),
    ] {
        let error = protocol_error_of(Fault::redirect(status, target)).await.to_string();
        assert!(error.contains(expected) && !error.contains("canary"), "{error}");
    }
}

#[tokio::test]
async fn a_refusal_with_an_error_of_json_rpc_is_the_servers_error() {
    for status in [400, 403, 404, 500] {
        let result =
            call_with_fault(Fault::status(status).rpc_error(-32001, "not for you"), false).await;
        let Err(CallError::Server { error, .. }) = result else { panic!("{status}: {result:?}") };
        assert_eq!((error.code, &*error.message), (-32001, "not for you"));
    }
}

#[tokio::test]
async fn json_under_another_name_or_none_is_json() {
    for name in ["text/json", "application/json-rpc", ""] {
        let fault = Fault::content_type(name);
        assert_eq!(call_with_fault(fault, true).await.unwrap(), "odd", "{name}");
    }
}

#[tokio::test]
async fn an_answer_over_many_lines_or_twice_is_one_answer() {
    for fault in [Fault::pretty_print(), Fault::duplicate()] {
        assert_eq!(call_with_fault(fault.clone(), false).await.unwrap(), "odd");
        assert_eq!(call_with_fault(fault, true).await.unwrap_or_else(|_| "odd".to_owned()), "odd");
    }
}

/// Fault 96.
/// Attack: remote | a compressed response | the response is rejected and not decompressed | No
/// unbounded memory
#[tokio::test]
async fn a_compressed_answer_is_refused_unread() {
    for json in [false, true] {
        match protocol_error(call_with_fault(Fault::gzip(), json).await) {
            ProtocolError::UnexpectedContentType(kind) => assert!(kind.contains("gzip"), "{kind}"),
            other => panic!("another fault: {other:?}"),
        }
    }
}

/// Fault 100.
/// Attack: remote | response headers without end | the call fails | No unbounded memory
#[tokio::test]
async fn headers_without_end_end_the_call_and_nothing_else() {
    let (reason, may_have_run) =
        unavailable_error(call_with_fault(Fault::endless_headers(), false).await);
    assert!(matches!(reason, UnavailableReason::ConnectionLost(_)), "{reason:?}");
    assert!(may_have_run);
}

/// Checks that a call times out at a server that stalls.
async fn assert_timeout(test_env: &TestEnv, host: &Host) {
    let short_timeout = Some(Duration::from_secs(1));
    let options = CallOptions { timeout: short_timeout, ..CallOptions::default() };
    let result = host.call_tool_with("a.echo", json!({"message": "odd"}), options).await;
    assert!(matches!(result, Err(CallError::Timeout { .. })), "{result:?}");
    assert_responds(host, "b").await;
    assert_responds(host, "a").await;
    let journal =
        test_env.wait_for_journal(|journal| journal.count("notifications/cancelled") == 1).await;
    assert!(journal.params("notifications/cancelled")[0]["requestId"].is_u64());
}

/// Faults 91 and 100.
/// Attack: remote | a response stops in the middle | the call ends at its deadline | No unbounded
/// wait
#[tokio::test]
async fn an_answer_that_stops_in_the_middle_costs_the_time_of_its_call_and_is_cancelled() {
    for fault in [Fault::stall(), Fault::never_responds()] {
        for json in [false, true] {
            let test_env = TestEnv::new();
            let server_builder = RemoteServer::for_fixture(tolerant_fixture(&test_env))
                .fault(fault.clone().on_rpc_method("tools/call").only_nth(1));
            let server_builder =
                if json { server_builder.with_json_responses() } else { server_builder };
            let remote = server_builder.start().await;
            let host = start_host_with_neighbour(&test_env, &remote).await;
            assert_timeout(&test_env, &host).await;
            host.shutdown().await;
        }
    }
}

/// Fault 91.
#[tokio::test]
async fn in_the_newer_era_the_stream_of_a_call_that_is_late_is_closed() {
    for fault in [Fault::stall(), Fault::never_responds()] {
        let test_env = TestEnv::new();
        let server = tolerant_fixture(&test_env).with("--era", "modern");
        let remote = RemoteServer::for_fixture(server)
            .fault(fault.on_rpc_method("tools/call").only_nth(1))
            .start()
            .await;
        let host = start_host_with_neighbour(&test_env, &remote).await;
        let short_timeout = Some(Duration::from_secs(1));
        let options = CallOptions { timeout: short_timeout, ..CallOptions::default() };
        let result = host.call_tool_with("a.echo", json!({"message": "odd"}), options).await;
        assert!(matches!(result, Err(CallError::Timeout { .. })), "{result:?}");
        assert_responds(&host, "b").await;
        assert_responds(&host, "a").await;
        let is_cancelled = |request: &innkeeper_testkit::RecordedRequest| {
            request.rpc_method() == Some("notifications/cancelled")
        };
        assert!(!remote.requests().iter().any(is_cancelled), "the end of the stream says it");
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_server_that_never_answers_the_handshake_costs_its_own_start() {
    for method in ["server/discover", "initialize", "notifications/initialized", "tools/list"] {
        let test_env = TestEnv::new();
        let server =
            test_env.fixture("a").config_key("initTimeout", 1).config_key("required", false);
        let remote = RemoteServer::for_fixture(server)
            .fault(Fault::never_responds().on_rpc_method(method))
            .start()
            .await;
        let host = start_host_with_neighbour(&test_env, &remote).await;
        let state = host.status()["a"].state;
        assert_eq!(state, innkeeper_host::ServerState::Unavailable, "{method}");
        assert_responds(&host, "b").await;
        assert!(echo(&host, "a", "").await.is_err());
        host.shutdown().await;
    }
}
