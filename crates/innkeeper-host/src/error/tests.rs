//! Tests of call errors: server, class and reason.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::ErrorObject;
use innkeeper_protocol::envelope::code;
use serde_json::value::RawValue;

use super::*;

mod proofs;

/// Returns one error of every variant.
fn one_of_each() -> Vec<CallError> {
    let server: Arc<str> = "files".into();
    let item: Box<str> = "read".into();
    let routing = RoutingError::UnknownServer { name: "nowhere.x".into(), suggestion: None };
    let pointer = "/path".to_owned();
    let problem = Violation { pointer, message: "expected string".to_owned() };
    let raw = RawValue::from_string("[]".to_owned()).unwrap();
    let shape_error = innkeeper_protocol::view::ToolResult::from_raw(&raw).unwrap_err();
    let source = ProtocolError::InvalidResult(shape_error);
    let error = ErrorObject { code: -32602, message: "no such file".to_owned(), data: None };
    let finding = crate::guard::Finding::sample();
    vec![
        CallError::Routing(routing),
        CallError::Validation { item: "files.read".into(), problems: vec![problem] },
        CallError::Unavailable {
            server: server.clone(),
            reason: UnavailableReason::ClosedOutput,
            may_have_run: true,
            attempts: 2,
        },
        CallError::Timeout {
            server: server.clone(),
            item: item.clone(),
            timeout: Duration::from_millis(1500),
            is_total: false,
        },
        CallError::Protocol { server: server.clone(), item: item.clone(), source },
        CallError::Server { server: server.clone(), item: item.clone(), error },
        CallError::Withheld { server, item, findings: vec![finding] },
    ]
}

/// Returns the expectations for a variant: class, whether the server is named, message.
fn expected(error: &CallError) -> (ErrorClass, bool, &'static str) {
    match error {
        CallError::Routing(_) => (ErrorClass::Routing, false, "no server for `nowhere.x`"),
        CallError::Validation { .. } => (
            ErrorClass::Validation,
            false,
            "invalid arguments for `files.read`: `/path`: expected string",
        ),
        CallError::Unavailable { .. } => (
            ErrorClass::ServerUnavailable,
            true,
            "server `files` is unavailable: the server closed its output (after 2 attempts)",
        ),
        CallError::Timeout { .. } => {
            (ErrorClass::Timeout, true, "server `files` did not respond to `read` within 1.5 s")
        }
        CallError::Protocol { .. } => (
            ErrorClass::Protocol,
            true,
            "server `files` violated the protocol in its response to `read`",
        ),
        CallError::Server { .. } => (
            ErrorClass::Server,
            true,
            "server `files` returned an error for `read`: no such file (code -32602)",
        ),
        CallError::Withheld { .. } => (
            ErrorClass::Withheld,
            true,
            "the result of `read` of server `files` was withheld after the call ran: result /x: \
             contains hidden characters; set `guard.results` to `flag` to allow such results",
        ),
    }
}

/// Proves: FR7.2
#[test]
fn every_failed_call_names_its_server_its_class_and_the_reason() {
    for error in one_of_each() {
        let (expected_class, names_server, expected_text) = expected(&error);
        assert_eq!(error.class(), expected_class);
        // The kinds have the names of the variants.
        assert!(format!("{error:?}").starts_with(&format!("{:?}", error.kind())), "{error:?}");
        assert_eq!(error.server(), names_server.then_some("files"), "{error}");
        assert_eq!(error.to_string(), expected_text);
        let source_text = error.source().map(ToString::to_string);
        let is_protocol = matches!(error, CallError::Protocol { .. });
        assert_eq!(
            source_text.is_some(),
            is_protocol,
            "the fault of the protocol is kept: {source_text:?}"
        );
    }
}

#[test]
fn an_unavailable_server_is_reported_with_the_attempts_if_there_were_several() {
    let reason = UnavailableReason::Busy { status: 503, retry_after: None, body: "".into() };
    let error = |attempts| {
        let (server, reason) = ("web".into(), reason.clone());
        CallError::Unavailable { server, reason, may_have_run: false, attempts: 1 }
            .with_attempts(attempts)
            .to_string()
    };
    assert_eq!(error(1), "server `web` is unavailable: busy (HTTP 503)");
    let several = "server `web` is unavailable: busy (HTTP 503) (after 4 attempts)";
    assert_eq!(error(4), several);
}

#[test]
fn a_start_that_timed_out_quotes_the_last_words_of_its_server() {
    let mut failure = ServerFailure {
        server: "a".into(),
        phase: StartPhase::Handshake,
        reason: StartFailureReason::TimedOut(std::time::Duration::from_secs(3)),
        stderr: "ready\nError: cannot reach the database\n".to_owned(),
        attempts: 1,
    };
    let text = failure.summary_with_last_words();
    assert!(text.ends_with("; the server said: Error: cannot reach the database"), "{text}");
    failure.stderr.clear();
    assert_eq!(failure.summary_with_last_words(), failure.summary());
}

#[test]
fn a_failed_start_says_whether_it_needs_a_user_and_whether_a_later_one_can_succeed() {
    let failure = |reason: StartFailureReason| ServerFailure {
        server: "a".into(),
        phase: StartPhase::Handshake,
        reason,
        stderr: String::new(),
        attempts: 1,
    };
    let unavailable = |reason| {
        let error =
            CallError::Unavailable { server: "a".into(), reason, may_have_run: false, attempts: 1 };
        failure(StartFailureReason::Call(Box::new(error)))
    };
    let unauthorized = |kind: AuthErrorKind| UnavailableReason::Unauthorized(kind.into());
    let no_user = unavailable(unauthorized(AuthErrorKind::NoUserAgent));
    // A person may sign in with another process.
    assert!(no_user.needs_user_sign_in() && no_user.may_succeed_later());
    let other = unavailable(unauthorized(AuthErrorKind::NoAuthorizationServer));
    assert!(!other.needs_user_sign_in() && !other.may_succeed_later());
    assert!(!unavailable(UnavailableReason::ClosedOutput).needs_user_sign_in());
    assert!(!failure(StartFailureReason::Spawn("odd".into())).needs_user_sign_in());
    // A server that speaks no known revision speaks none later.
    let server_error = |code| {
        let error = ErrorObject { code, message: "no".to_owned(), data: None };
        let error = CallError::Server { server: "a".into(), item: "initialize".into(), error };
        failure(StartFailureReason::Call(Box::new(error)))
    };
    assert!(!server_error(code::UNSUPPORTED_PROTOCOL_VERSION).may_succeed_later());
    assert!(server_error(code::INTERNAL_ERROR).may_succeed_later());
}
