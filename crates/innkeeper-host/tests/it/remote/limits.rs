//! Messages at the size limit, and messages one byte larger.

use innkeeper_host::error::{ProtocolError, UnavailableReason};
use innkeeper_host::{CallError, Host, HostEvent, ServerState};
use innkeeper_testkit::remote::RemoteServerBuilder;
use innkeeper_testkit::{Fault, RemoteServer};
use serde_json::json;

use super::{
    assert_responds, protocol_error, start_host_with_neighbour, tolerant_fixture, unavailable_error,
};
use crate::setup::{TestEnv, result_text, wait_for_event};

/// Maximum number of bytes in one message.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

async fn call_big(host: &Host, bytes: usize) -> Result<usize, CallError> {
    let response = host.call_tool("a.big", json!({"bytes": bytes})).await;
    response.map(|result| result_text(&result).len())
}

/// Returns the number of bytes around the text in the next result of the tool `big`.
fn envelope_bytes(test_env: &TestEnv) -> usize {
    let journal = test_env.journal().for_server("a");
    let last = journal.received("tools/call").last().unwrap().message["id"].as_u64().unwrap();
    let result = json!({"content": [{"type": "text", "text": ""}]});
    json!({"jsonrpc": "2.0", "id": last + 1, "result": result}).to_string().len()
}

/// Requests a response of the maximum size, then a response that is one byte larger.
async fn call_around_the_limit(
    transport: impl Fn(RemoteServerBuilder) -> RemoteServerBuilder,
) -> (Host, RemoteServer, TestEnv, CallError) {
    let test_env = TestEnv::new();
    let remote = transport(RemoteServer::for_fixture(tolerant_fixture(&test_env))).start().await;
    let host = start_host_with_neighbour(&test_env, &remote).await;
    assert_responds(&host, "a").await;
    let fits = MAX_MESSAGE_BYTES - envelope_bytes(&test_env);
    assert_eq!(call_big(&host, fits).await.unwrap(), fits);
    let error =
        call_big(&host, MAX_MESSAGE_BYTES - envelope_bytes(&test_env) + 1).await.unwrap_err();
    assert_responds(&host, "b").await;
    (host, remote, test_env, error)
}

/// Fault 91.
/// Attack: remote | a response over the size limit, over three transports | the call fails, and the
/// next call succeeds | No unbounded memory
#[tokio::test]
async fn an_answer_over_the_limit_is_a_protocol_error_and_the_next_one_is_given() {
    for transport in [
        |server_builder| server_builder,
        RemoteServerBuilder::with_json_responses,
        RemoteServerBuilder::sse,
    ] {
        let (host, _remote, _scene, error) = call_around_the_limit(transport).await;
        let inner = protocol_error::<()>(Err(error));
        assert!(matches!(inner, ProtocolError::TooLarge { limit: MAX_MESSAGE_BYTES }), "{inner:?}");
        assert_responds(&host, "a").await;
        host.shutdown().await;
    }
}

/// Fault 99: a WebSocket connection cannot continue after a message that was not read.
/// Attack: remote | a response over the size limit on a WebSocket | the connection ends; another
/// server is not affected | Isolation
#[tokio::test]
async fn an_answer_over_the_limit_ends_a_websocket_and_nobody_elses_connection() {
    let (host, _remote, _scene, error) =
        call_around_the_limit(RemoteServerBuilder::websocket).await;
    let mut events = host.events();
    let (reason, may_have_run) = unavailable_error::<()>(Err(error));
    assert!(matches!(reason, UnavailableReason::ConnectionLost(_)) && may_have_run, "{reason:?}");
    if host.status()["a"].state != ServerState::Unavailable {
        wait_for_event(&mut events, |event| matches!(event, HostEvent::Unavailable { .. })).await;
    }
    assert_responds(&host, "b").await;
    host.shutdown().await;
}

/// Fault 91.
/// Attack: remote | 100 MiB of events precede a response | the events are dropped, and the call
/// gets its result | No unbounded memory
#[tokio::test]
async fn a_hundred_megabytes_that_nobody_asked_for_are_dropped_and_the_answer_is_given() {
    let test_env = TestEnv::new();
    let flood = Fault::prepend_message(100 << 20).on_rpc_method("tools/call").only_nth(1);
    let remote = RemoteServer::for_fixture(tolerant_fixture(&test_env)).fault(flood).start().await;
    let host = start_host_with_neighbour(&test_env, &remote).await;
    assert_responds(&host, "a").await;
    assert_responds(&host, "b").await;
    host.shutdown().await;
}

/// Fault 96: the host counts the bytes it reads and ignores the declared length.
/// Attack: remote | 100 MiB precede a JSON response | the call fails; the next call succeeds | No
/// unbounded memory
#[tokio::test]
async fn a_hundred_megabytes_of_nothing_before_an_answer_in_json_are_too_much() {
    let test_env = TestEnv::new();
    let flood = Fault::prepend_message(100 << 20).on_rpc_method("tools/call").only_nth(1);
    let remote = RemoteServer::for_fixture(tolerant_fixture(&test_env))
        .with_json_responses()
        .fault(flood)
        .start()
        .await;
    let host = start_host_with_neighbour(&test_env, &remote).await;
    let error = protocol_error(super::echo(&host, "a", "").await);
    assert!(matches!(error, ProtocolError::TooLarge { limit: MAX_MESSAGE_BYTES }), "{error:?}");
    assert_responds(&host, "a").await;
    assert_responds(&host, "b").await;
    host.shutdown().await;
}
