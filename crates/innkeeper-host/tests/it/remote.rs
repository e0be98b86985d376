//! Remote servers: responses and transport failures.

mod continued;
mod forgotten;
mod limits;
mod load;
mod malformed;
mod origin;
mod parity;
mod resume;
mod retry;
mod session;
mod shutdown;
mod sse;
mod websocket;

use std::fmt::Debug;

use innkeeper_host::error::{ProtocolError, UnavailableReason};
use innkeeper_host::{CallError, CallOptions, Host};
use innkeeper_testkit::{Fixture, RemoteServer};
use serde_json::{Map, Value, json};

use crate::setup::{TestEnv, builder, result_text};

/// A configuration file with these servers.
pub(crate) fn config_json<const N: usize>(servers: [(&str, Value); N]) -> Value {
    let servers: Map<String, Value> =
        servers.into_iter().map(|(name, entry)| (name.to_owned(), entry)).collect();
    json!({"servers": servers})
}

/// Starts a host from these configuration entries.
pub(crate) async fn start_host<const N: usize>(
    test_env: &TestEnv,
    servers: [(&str, Value); N],
) -> Host {
    builder(test_env.config_from(&config_json(servers))).start().await.unwrap()
}

/// Starts a host with a remote server `a` and a stdio server `b`.
async fn start_host_with_neighbour(test_env: &TestEnv, remote: &RemoteServer) -> Host {
    start_host(
        test_env,
        [("a", remote.config_entry()), ("b", test_env.fixture("b").config_entry())],
    )
    .await
}

/// A fixture server `a` that stays available after call timeouts.
fn tolerant_fixture(test_env: &TestEnv) -> Fixture {
    test_env.fixture("a").config_key("unavailableAfterTimeouts", 1000)
}

/// Calls the tool `echo` of a server and returns the text of its result.
pub(crate) async fn echo(host: &Host, server: &str, message: &str) -> Result<String, CallError> {
    let response = host.call_tool(&format!("{server}.echo"), json!({"message": message})).await;
    response.map(|result| result_text(&result))
}

/// Panics unless the server responds.
async fn assert_responds(host: &Host, server: &str) {
    assert_eq!(echo(host, server, "still here").await.unwrap(), "still here");
}

/// Panics unless the server applied faults to this number of requests.
fn assert_fault_count(remote: &RemoteServer, count: usize) {
    let faults = remote.applied_faults();
    assert_eq!(faults.len(), count, "{faults:?}");
}

/// Call options without retries.
fn without_retries() -> CallOptions {
    CallOptions { retries: Some(0), ..CallOptions::default() }
}

/// Returns the reason of an `Unavailable` error, and whether the call may have run.
fn unavailable_error<T: Debug>(result: Result<T, CallError>) -> (UnavailableReason, bool) {
    match result {
        Err(CallError::Unavailable { reason, may_have_run, .. }) => (reason, may_have_run),
        other => panic!("not unavailable: {other:?}"),
    }
}

/// Returns the protocol error of a failed call.
fn protocol_error<T: Debug>(result: Result<T, CallError>) -> ProtocolError {
    match result {
        Err(CallError::Protocol { source, .. }) => source,
        other => panic!("not a protocol error: {other:?}"),
    }
}
