//! Calls: which server takes one, what is sent, what comes back, and how each of them ends.

mod answer;
mod arguments;
mod deadline;
mod fault;
mod lost;
mod many;
mod modern;
mod prompt;
mod resource;
mod route;

use innkeeper_host::error::{Lost, ProtocolFault, RoutingError};
use innkeeper_host::{CallError, ErrorClass};
use innkeeper_testkit::Journal;

/// The routing error of a call that must have one.
fn routing<T: std::fmt::Debug>(result: Result<T, CallError>) -> RoutingError {
    match result {
        Err(CallError::Routing(error)) => error,
        other => panic!("not a routing error: {other:?}"),
    }
}

/// Why a call that must have failed for the lack of its server did, and whether it may have run.
fn unavailable<T: std::fmt::Debug>(result: Result<T, CallError>) -> (Lost, bool) {
    match result {
        Err(CallError::Unavailable { reason, may_have_run, .. }) => (reason, may_have_run),
        other => panic!("not unavailable: {other:?}"),
    }
}

/// What was wrong with the answer of a call that must have failed for it.
fn protocol_fault<T: std::fmt::Debug>(result: Result<T, CallError>) -> ProtocolFault {
    match result {
        Err(CallError::Protocol { source, .. }) => source,
        other => panic!("not a protocol error: {other:?}"),
    }
}

fn class<T: std::fmt::Debug>(result: Result<T, CallError>) -> ErrorClass {
    result.unwrap_err().class()
}

/// The ids of the requests of this method, in the order they came.
fn ids(journal: &Journal, method: &str) -> Vec<u64> {
    let received = journal.received(method);
    received.into_iter().map(|entry| entry.message["id"].as_u64().unwrap()).collect()
}

/// The ids of the requests the server was told to stop working on.
fn cancelled(journal: &Journal) -> Vec<u64> {
    let params = journal.params("notifications/cancelled");
    params.into_iter().map(|params| params["requestId"].as_u64().unwrap()).collect()
}
