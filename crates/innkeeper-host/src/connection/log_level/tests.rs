//! Tests of log levels with an in-memory server.

use innkeeper_protocol::Revision;
use innkeeper_protocol::request_meta::META_LOG_LEVEL;
use serde_json::value::RawValue;
use serde_json::{Value, to_value};
use tokio::time::Instant;

use super::*;
use crate::connection::meta::ClientMeta;
use crate::connection::task_poll::tests::connect;
use crate::error::CallErrorKind;

const TIMEOUT: Duration = Duration::from_secs(3);

fn declare_logging(connection: Arc<Connection>) -> Connection {
    let mut connection = Arc::into_inner(connection).unwrap();
    connection.negotiated.declares_logging = true;
    connection
}

#[test]
fn each_level_has_its_name_in_the_protocol_and_levels_are_ordered_by_severity() {
    for level in LogLevel::ALL {
        assert_eq!(LogLevel::from_name(level.as_str()), Some(level));
        assert_eq!(to_value(level).unwrap(), level.as_str());
    }
    assert!(LogLevel::ALL.is_sorted());
    assert_eq!(LogLevel::from_name("warn"), None);
}

#[test]
fn the_level_of_one_server_takes_precedence_until_the_level_of_all_is_set() {
    let levels = LogLevels::default();
    assert_eq!(levels.get("a"), None);
    levels.set_all(LogLevel::Error);
    levels.set(&"a".into(), LogLevel::Debug);
    assert_eq!([levels.get("a"), levels.get("b")], [Some(LogLevel::Debug), Some(LogLevel::Error)]);
    levels.set_all(LogLevel::Alert);
    assert_eq!(levels.get("a"), Some(LogLevel::Alert));
}

#[test]
fn the_metadata_of_a_modern_request_contains_the_level_and_of_a_legacy_request_does_not() {
    let raw = RawValue::from_string(r#"{"a/b":1}"#.to_owned()).unwrap();
    let (modern, legacy) = (ClientMeta::from_raw(&raw), ClientMeta::default());
    assert_eq!(to_value(modern.meta(None)).unwrap(), json!({ "a/b": 1 }));
    for meta in [&modern, &legacy] {
        meta.set_log_level(LogLevel::Emergency);
        assert_eq!(meta.log_level(), Some(LogLevel::Emergency));
    }
    let expected = json!({ "a/b": 1, META_LOG_LEVEL: "emergency" });
    assert_eq!(to_value(modern.meta(None)).unwrap(), expected);
    assert!(legacy.meta(None).is_none());
    assert_eq!(to_value(legacy.meta(Some(7))).unwrap(), json!({ "progressToken": 7 }));
}

#[tokio::test(start_paused = true)]
async fn a_legacy_server_with_logging_receives_the_level_and_its_error_is_returned() {
    let (mut peer, connection, _tasks) = connect(Revision::V2025_11_25);
    let connection = declare_logging(connection);
    let serve = async {
        let request = peer.respond_to(method::LOGGING_SET_LEVEL, json!({})).await;
        assert_eq!(request["params"], json!({ "level": "notice" }));
        let request: Value = peer.expect(method::LOGGING_SET_LEVEL).await;
        let error = json!({ "code": -32602, "message": "no" });
        let response = json!({ "jsonrpc": "2.0", "id": request["id"], "error": error });
        peer.send(&response).await;
    };
    let set = async {
        set(&connection, LogLevel::Notice, TIMEOUT).await.unwrap();
        set(&connection, LogLevel::Debug, TIMEOUT).await.unwrap_err().kind()
    };
    assert_eq!(tokio::join!(serve, set).1, CallErrorKind::Server);
}

#[tokio::test(start_paused = true)]
async fn a_start_does_not_wait_for_the_response_and_a_server_without_logging_receives_nothing() {
    let (mut peer, connection, _tasks) = connect(Revision::V2025_11_25);
    let started = Instant::now();
    set_detached(&connection, Some(LogLevel::Error));
    set(&connection, LogLevel::Error, TIMEOUT).await.unwrap();
    let connection = declare_logging(connection);
    set_detached(&connection, None);
    set_detached(&connection, Some(LogLevel::Info));
    let request = peer.expect(method::LOGGING_SET_LEVEL).await;
    assert_eq!(request["params"], json!({ "level": "info" }));
    assert_eq!((started.elapsed(), connection.session.in_flight()), (Duration::ZERO, 0));
    renew(&connection);
    let request = peer.expect(method::LOGGING_SET_LEVEL).await;
    assert_eq!(request["params"], json!({ "level": "info" }));
}
