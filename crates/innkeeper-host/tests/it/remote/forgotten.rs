//! Sessions that a server has forgotten, in the words and codes of many SDKs.

use innkeeper_host::HostEvent;
use innkeeper_testkit::{Fault, RemoteServer};
use serde_json::json;

use super::{config_json, echo, start_host_with_neighbour};
use crate::setup::{TestEnv, builder, wait_for_event};

/// Refusals of the second call, as servers send them for a session that they do not know.
fn refusals() -> [Fault; 9] {
    let null_id = |code: i64, message: &str| {
        json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}})
            .to_string()
    };
    let json = "application/json";
    [
        Fault::body(400, json, &null_id(-32_000, "Bad Request: No valid session ID provided")),
        Fault::body(400, json, &null_id(-32_000, "Bad Request: Server not initialized")),
        Fault::body(400, "text/plain", "Invalid session ID"),
        Fault::body(401, "text/plain", "unauthorized"),
        Fault::body(410, "text/plain", "gone"),
        Fault::status(200).rpc_error(-32_001, "Session not found"),
        Fault::status(404).rpc_error(-32_001, "Session not found"),
        Fault::body(200, json, &null_id(-32_600, "Session not found")),
        Fault::body(200, "text/event-stream", "data: {\"error\":\"Session not found\"}\n\n"),
    ]
}

/// Makes three calls, the second of which meets the fault, and returns their results with the messages
/// that reached a tool and the number of sessions.
async fn three_calls(fault: Fault) -> (Vec<Result<String, String>>, Vec<String>, usize) {
    three_calls_with([fault.on_rpc_method("tools/call").only_nth(2)]).await
}

async fn three_calls_with(
    faults: impl IntoIterator<Item = Fault>,
) -> (Vec<Result<String, String>>, Vec<String>, usize) {
    let test_env = TestEnv::new();
    let remote = RemoteServer::for_fixture(test_env.fixture("a"));
    let remote = faults.into_iter().fold(remote, |remote, fault| remote.fault(fault));
    let remote = remote.start().await;
    let host = start_host_with_neighbour(&test_env, &remote).await;
    let mut results = Vec::new();
    for message in ["one", "two", "three"] {
        results.push(echo(&host, "a", message).await.map_err(|error| error.to_string()));
    }
    host.shutdown().await;
    let journal = test_env.journal().for_server("a");
    let ran = journal
        .params("tools/call")
        .iter()
        .map(|call| call["arguments"]["message"].as_str().unwrap().to_owned())
        .collect();
    (results, ran, journal.count("initialize"))
}

#[tokio::test]
async fn a_refusal_that_means_an_unknown_session_starts_one_session_and_runs_the_call_once() {
    for fault in refusals() {
        let shown = format!("{fault:?}");
        let (results, ran, sessions) = three_calls(fault).await;
        assert!(results.iter().all(Result::is_ok), "{shown}: {results:?}");
        assert_eq!(ran, ["one", "two", "three"], "{shown}");
        assert_eq!(sessions, 2, "{shown}");
    }
}

/// A server that answers the call and a later ping in the same way.
#[tokio::test]
async fn an_error_with_the_id_of_the_call_counts_if_a_ping_is_refused_too() {
    for (status, code, message) in [
        (200, -32_001, "Session 7f not found"),
        (400, -32_000, "Bad Request: No valid session ID provided"),
        (404, -32_000, "Not Found"),
    ] {
        let refused = Fault::status(status).rpc_error(code, message);
        let of_call = refused.clone().on_rpc_method("tools/call").only_nth(2);
        let (results, ran, sessions) =
            three_calls_with([of_call, refused.on_rpc_method("ping")]).await;
        assert!(results.iter().all(Result::is_ok), "{status}: {results:?}");
        assert_eq!((&*ran, sessions), (&["one", "two", "three"].map(str::to_owned)[..], 2));
    }
}

#[tokio::test]
async fn an_error_of_a_tool_about_its_own_session_is_the_result_of_the_call() {
    for (status, code, message) in [
        (404, -32_601, "project 7 not found"),
        (410, -32_000, "the order is gone"),
        (401, -32_000, "card declined"),
        (400, -32_602, "session_id is required"),
        (422, -32_000, "payment session expired after the charge"),
        (200, -32_600, "browser session 5 is closed"),
    ] {
        let (results, ran, sessions) =
            three_calls(Fault::status(status).rpc_error(code, message)).await;
        let error = results[1].as_ref().unwrap_err();
        assert!(error.contains(message), "{status}: {error}");
        // The second call met the fault instead of the tool.
        assert_eq!((&*ran, sessions), (&["one", "three"].map(str::to_owned)[..], 1), "{status}");
    }
}

#[tokio::test]
async fn a_server_that_comes_back_in_another_mode_gets_another_handshake() {
    for message in ["Bad Request: Missing session ID", "Bad Request: Unsupported protocol version"]
    {
        let test_env = TestEnv::new();
        let refusal = json!({"jsonrpc": "2.0", "id": "server-error",
            "error": {"code": -32_600, "message": message}});
        let fault = Fault::body(400, "application/json", &refusal.to_string());
        let modern = test_env.fixture("a").with("--era", "modern");
        let remote = RemoteServer::for_fixture(modern)
            .fault(fault.on_rpc_method("tools/call").only_nth(1))
            .start()
            .await;
        let config = test_env.config_from(&config_json([("a", remote.config_entry())]));
        let host = builder(config).revive_servers(true).start().await.unwrap();
        let mut events = host.events();
        echo(&host, "a", "refused").await.unwrap_err();
        wait_for_event(&mut events, |event| matches!(event, HostEvent::Ready { .. })).await;
        assert_eq!(echo(&host, "a", "again").await.unwrap(), "again");
        host.shutdown().await;
    }
}

#[tokio::test]
async fn after_a_500_the_next_call_has_a_new_session_and_nothing_is_repeated() {
    let (results, ran, sessions) = three_calls(Fault::body(500, "text/plain", "boom")).await;
    assert!(results[1].is_err(), "{results:?}");
    assert_eq!(results[2].as_deref(), Ok("three"));
    assert_eq!((ran, sessions), (vec!["one".to_owned(), "three".to_owned()], 2));
}

#[tokio::test]
async fn an_error_about_the_call_itself_starts_no_session() {
    for fault in [
        Fault::status(400).rpc_error(-32_602, "text too long"),
        Fault::status(200).rpc_error(-32_603, "browser session 5 not found"),
        Fault::status(200).rpc_error(-32_001, "Request timed out"),
        Fault::body(403, "text/plain", "plan does not include MCP"),
    ] {
        let shown = format!("{fault:?}");
        let (results, ran, sessions) = three_calls(fault).await;
        assert!(results[1].is_err(), "{shown}: {results:?}");
        assert_eq!((ran.len(), sessions), (2, 1), "{shown}");
    }
}
