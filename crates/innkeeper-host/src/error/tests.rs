//! What every failed call can tell: where, what kind, and why.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::ErrorObject;
use serde_json::value::RawValue;

use super::*;

mod proofs;

/// One error of every variant.
fn one_of_each() -> Vec<CallError> {
    let server: Arc<str> = "files".into();
    let item: Box<str> = "read".into();
    let routing = RoutingError::UnknownServer { name: "nowhere.x".into(), suggestion: None };
    let pointer = "/path".to_owned();
    let problem = ArgumentProblem { pointer, message: "expected string".to_owned() };
    let raw = RawValue::from_string("[]".to_owned()).unwrap();
    let shape = innkeeper_protocol::view::ToolResult::read(&raw).unwrap_err();
    let source = ProtocolFault::Shape(shape);
    let error = ErrorObject { code: -32602, message: "no such file".to_owned(), data: None };
    let finding = crate::guard::Finding::sample();
    vec![
        CallError::Routing(routing),
        CallError::Validation { item: "files.read".into(), problems: vec![problem] },
        CallError::Unavailable {
            server: server.clone(),
            reason: Lost::ClosedOutput,
            may_have_run: true,
            attempts: 2,
        },
        CallError::Timeout {
            server: server.clone(),
            item: item.clone(),
            after: Duration::from_millis(1500),
        },
        CallError::Protocol { server: server.clone(), item: item.clone(), source },
        CallError::Server { server: server.clone(), item: item.clone(), error },
        CallError::Withheld { server, item, findings: vec![finding] },
    ]
}

/// What is expected of a variant: its class, whether it names the server, and its words.
fn expected(error: &CallError) -> (ErrorClass, bool, &'static str) {
    match error {
        CallError::Routing(_) => (ErrorClass::Routing, false, "`nowhere.x` names no known server"),
        CallError::Validation { .. } => (
            ErrorClass::Validation,
            false,
            "arguments of `files.read` do not fit: `/path`: expected string",
        ),
        CallError::Unavailable { .. } => (
            ErrorClass::ServerUnavailable,
            true,
            "server `files` is unavailable: it closed its output (after 2 attempts)",
        ),
        CallError::Timeout { .. } => {
            (ErrorClass::Timeout, true, "server `files` did not answer `read` within 1.5 s")
        }
        CallError::Protocol { .. } => {
            (ErrorClass::Protocol, true, "server `files` broke the protocol answering `read`")
        }
        CallError::Server { .. } => {
            (ErrorClass::Server, true, "server `files` refused `read`: no such file (code -32602)")
        }
        CallError::Withheld { .. } => (
            ErrorClass::Withheld,
            true,
            "the answer of `read` of server `files` is withheld, the call has run: result /x: has \
             hidden characters; `guard.results` as `flag` lets such answers pass",
        ),
    }
}

/// Proves: FR7.2
#[test]
fn every_failed_call_tells_its_server_its_class_and_why() {
    for error in one_of_each() {
        let (class, names_server, words) = expected(&error);
        assert_eq!(error.class(), class);
        assert_eq!(error.server(), names_server.then_some("files"), "{error}");
        assert_eq!(error.to_string(), words);
        let kept = error.source().map(ToString::to_string);
        let is_protocol = matches!(error, CallError::Protocol { .. });
        assert_eq!(kept.is_some(), is_protocol, "the fault of the protocol is kept: {kept:?}");
    }
}

#[test]
fn an_unavailable_server_is_told_with_the_attempts_if_there_were_several() {
    let reason = Lost::Busy { status: 503, retry_after: None };
    let error = |attempts| {
        let (server, reason) = ("web".into(), reason.clone());
        CallError::Unavailable { server, reason, may_have_run: false, attempts: 1 }
            .tried(attempts)
            .to_string()
    };
    assert_eq!(error(1), "server `web` is unavailable: it is busy (HTTP 503)");
    let several = "server `web` is unavailable: it is busy (HTTP 503) (after 4 attempts)";
    assert_eq!(error(4), several);
}
