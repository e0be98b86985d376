//! Calls: routing, requests, results and errors.

mod arguments;
mod concurrent;
mod deadline;
mod malformed;
mod modern;
mod prompt;
mod resource;
mod response;
mod route;
mod server_loss;

use innkeeper_host::error::{ProtocolError, RoutingError, UnavailableReason};
use innkeeper_host::{CallError, ErrorClass};
use innkeeper_testkit::Journal;

/// Returns the routing error of a failed call.
fn routing_error<T: std::fmt::Debug>(result: Result<T, CallError>) -> RoutingError {
    match result {
        Err(CallError::Routing(error)) => error,
        other => panic!("not a routing error: {other:?}"),
    }
}

/// Returns the reason of an `Unavailable` error, and whether the call may have run.
fn unavailable_error<T: std::fmt::Debug>(
    result: Result<T, CallError>,
) -> (UnavailableReason, bool) {
    match result {
        Err(CallError::Unavailable { reason, may_have_run, .. }) => (reason, may_have_run),
        other => panic!("not unavailable: {other:?}"),
    }
}

/// Returns the protocol error of a failed call.
fn protocol_error<T: std::fmt::Debug>(result: Result<T, CallError>) -> ProtocolError {
    match result {
        Err(CallError::Protocol { source, .. }) => source,
        other => panic!("not a protocol error: {other:?}"),
    }
}

fn error_class<T: std::fmt::Debug>(result: Result<T, CallError>) -> ErrorClass {
    result.unwrap_err().class()
}

/// The ids of all requests with this method, in order of arrival.
fn request_ids(journal: &Journal, method: &str) -> Vec<u64> {
    let received = journal.received(method);
    received.into_iter().map(|entry| entry.message["id"].as_u64().unwrap()).collect()
}

/// The ids of the requests that the host has cancelled.
fn cancelled_ids(journal: &Journal) -> Vec<u64> {
    let params = journal.params("notifications/cancelled");
    params.into_iter().map(|params| params["requestId"].as_u64().unwrap()).collect()
}
