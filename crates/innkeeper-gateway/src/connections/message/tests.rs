//! Tests of messages.

use serde_json::json;

use super::*;

fn metadata(kind: &str) -> Value {
    json!({ "timestamp": "2026-11-26T03:00:00Z", "type": kind,
        "direction": "client_to_server", "category": "jsonrpc",
        "connection_id": "conn-123", "request_id": "req-456" })
}

fn parse(kind: &str, payload: &Value) -> Result<ConnectionMessage, ConnectionError> {
    let message = json!({ "metadata": metadata(kind), "payload": payload });
    ConnectionMessage::from_json(message.to_string().as_bytes())
}

fn request() -> Value {
    json!({ "jsonrpc": "2.0", "method": "get_job_status", "params": { "job_id": "job-789" },
        "id": "req-456" })
}

/// Proves: B30, B31, B32
#[test]
fn each_kind_of_message_keeps_its_metadata_and_its_payload() {
    let error = json!({ "code": -32_400, "message": "unknown tool" });
    for (kind, payload) in [
        ("request", request()),
        ("notification", json!({ "jsonrpc": "2.0", "method": "exit" })),
        ("response", json!({ "jsonrpc": "2.0", "id": 7, "result": { "a": [1] } })),
        ("error", json!({ "jsonrpc": "2.0", "id": null, "error": error })),
    ] {
        let message = parse(kind, &payload).unwrap();
        let written = serde_json::to_value(&message).unwrap();
        assert_eq!(written["payload"], payload);
        assert_eq!(written["metadata"], metadata(kind));
    }
}

/// Proves: B32
#[test]
fn a_request_of_the_document_is_made_from_its_parts() {
    let params = json!({ "job_id": "job-789" }).as_object().cloned().map(JsonRpcParams::Named);
    let message = ConnectionMessage {
        metadata: MessageMetadata {
            connection_id: Some("conn-123".to_owned()),
            request_id: Some("req-456".to_owned()),
            ..MessageMetadata::new(
                MessageType::Request,
                MessageDirection::ClientToServer,
                MessageCategory::Jsonrpc,
            )
        },
        payload: MessagePayload::Request(JsonRpcRequest::new("get_job_status", params, "req-456")),
    };
    let text = serde_json::to_vec(&message).unwrap();
    assert_eq!(ConnectionMessage::from_json(&text).unwrap(), message);
    assert_eq!(serde_json::to_value(&message).unwrap()["payload"], request());
}

#[test]
fn a_null_result_is_a_result() {
    let payload = json!({ "jsonrpc": "2.0", "id": 1, "result": null });
    let message = parse("response", &payload).unwrap();
    let MessagePayload::Response(response) = &message.payload else { panic!("{message:?}") };
    assert_eq!(response.outcome, Ok(Value::Null));
    assert_eq!(serde_json::to_value(&message).unwrap()["payload"], payload);
}

/// Proves: B41
#[test]
fn another_structure_is_a_validation_error() {
    let both = json!({ "jsonrpc": "2.0", "id": 1, "result": 1,
        "error": { "code": -32_603, "message": "" } });
    for (kind, payload) in [
        ("request", json!({ "jsonrpc": "2.0", "method": "a" })),
        ("notification", request()),
        ("response", request()),
        ("response", both),
        ("response", json!({ "jsonrpc": "2.0", "id": 1 })),
        ("error", json!({ "jsonrpc": "2.0", "id": 1, "result": 1 })),
        ("request", json!({ "jsonrpc": "1.0", "method": "a", "id": 1 })),
        ("request", json!({ "jsonrpc": "2.0", "method": 5, "id": 1 })),
        ("request", json!({ "jsonrpc": "2.0", "method": "a", "id": 1, "params": "text" })),
        ("request", json!({ "jsonrpc": "2.0", "method": "a", "id": 1, "more": 1 })),
        ("question", request()),
    ] {
        let error = parse(kind, &payload).unwrap_err();
        assert_eq!(error.code, ErrorCode::ValidationError, "{kind}: {payload}");
    }
    let error = ConnectionMessage::from_json(b"{").unwrap_err();
    assert_eq!(error.code, ErrorCode::ParseError);
}

/// Proves: B43
#[test]
fn a_batch_is_a_list_of_requests_and_of_responses() {
    let batch = JsonRpcBatchRequest {
        requests: vec![
            JsonRpcRequest::new("method1", None, "1"),
            JsonRpcRequest::new("method2", None, 2),
        ],
    };
    let written = serde_json::to_value(&batch).unwrap();
    assert_eq!(
        written,
        json!([{ "jsonrpc": "2.0", "method": "method1", "id": "1" },
            { "jsonrpc": "2.0", "method": "method2", "id": 2 }])
    );
    let responses = batch.requests.iter().map(|request| JsonRpcResponse {
        id: request.id.clone(),
        outcome: Ok(json!(request.method)),
    });
    let responses = JsonRpcBatchResponse { responses: responses.collect() };
    let written = serde_json::to_value(&responses).unwrap();
    assert_eq!(
        written,
        json!([{ "jsonrpc": "2.0", "id": "1", "result": "method1" },
            { "jsonrpc": "2.0", "id": 2, "result": "method2" }])
    );
    assert!(matches!(
        parse("request", &json!([request()])),
        Ok(ConnectionMessage { payload: MessagePayload::BatchRequest(_), .. })
    ));
}
