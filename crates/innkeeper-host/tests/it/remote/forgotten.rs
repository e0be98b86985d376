//! Sessions that a server has forgotten, in the words and codes of many SDKs.

use innkeeper_testkit::{Fault, RemoteServer};
use serde_json::json;

use super::{echo, start_host_with_neighbour};
use crate::setup::TestEnv;

/// Refusals of the second call, as servers send them for a session that they do not know.
fn refusals() -> [Fault; 8] {
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
        Fault::body(200, json, &null_id(-32_600, "Session not found")),
        Fault::body(200, "text/event-stream", "data: {\"error\":\"Session not found\"}\n\n"),
    ]
}

/// Makes three calls, the second of which meets the fault, and returns their results with the messages
/// that reached a tool and the number of sessions.
async fn three_calls(fault: Fault) -> (Vec<Result<String, String>>, Vec<String>, usize) {
    let test_env = TestEnv::new();
    let fault = fault.on_rpc_method("tools/call").only_nth(2);
    let remote = RemoteServer::for_fixture(test_env.fixture("a")).fault(fault).start().await;
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
