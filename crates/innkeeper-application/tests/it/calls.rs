//! Calls: exact arguments and results, metadata, other methods, types, completion.

use innkeeper::call::CompletionReference;
use innkeeper::{Arguments, CallError, CallOptions};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, json};

use crate::server::{MEASURED, app_server, request};

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

#[tokio::test]
async fn numbers_of_thirty_digits_pass_in_both_directions_byte_for_byte() {
    let (builder, received) = app_server();
    let host = builder.start().await.unwrap();
    let arguments = r#"{"n": 123456789012345678901234567890, "f": 1.50}"#;
    let result = host.call_tool("app.measure", raw(arguments)).await.unwrap();
    assert_eq!(result.raw().get(), MEASURED);
    let sent = request(&received, "tools/call");
    assert!(sent.contains(&format!(r#""arguments":{arguments}"#)), "{sent}");
    host.shutdown().await;
}

#[tokio::test]
async fn a_duplicate_key_is_rejected_by_its_name_and_nothing_is_sent() {
    let (builder, received) = app_server();
    let host = builder.start().await.unwrap();
    let error = host.call_tool("app.measure", raw(r#"{"unit": 1, "unit": 2}"#)).await.unwrap_err();
    assert!(matches!(error, CallError::Validation { .. }), "{error:?}");
    assert!(error.to_string().contains("/unit"), "{error}");
    assert!(!received.lock().unwrap().iter().any(|line| line.contains("tools/call")));
    host.shutdown().await;
}

#[tokio::test]
async fn a_call_carries_the_metadata_of_its_caller() {
    let (builder, received) = app_server();
    let host = builder.start().await.unwrap();
    let meta = Some(raw(r#"{"example.org/trace": 1.50}"#));
    let options = CallOptions { meta, ..CallOptions::default() };
    host.call_tool_with("app.measure", (), options).await.unwrap();
    let sent = request(&received, "tools/call");
    assert!(sent.contains(r#""example.org/trace":1.50"#), "{sent}");
    for (reserved, named) in
        [(r#"{"progressToken": 1}"#, "progressToken"), ("[]", "expected object")]
    {
        let options = CallOptions { meta: Some(raw(reserved)), ..CallOptions::default() };
        let error = host.call_tool_with("app.measure", (), options).await.unwrap_err();
        assert!(error.to_string().contains(named), "{error}");
    }
    host.shutdown().await;
}

#[tokio::test]
async fn a_request_and_a_notification_may_have_any_method_of_the_server() {
    let (builder, received) = app_server();
    let host = builder.start().await.unwrap();
    let params = raw(r#"{"big": 123456789012345678901234567890}"#);
    let result = host.request("app", "example/raw", Some(&params), CallOptions::default()).await;
    assert_eq!(result.unwrap().get(), r#"{"n":1.50}"#);
    let sent = request(&received, "example/raw");
    assert!(sent.contains(r#""big":123456789012345678901234567890"#), "{sent}");
    host.notify("app", "notifications/example", Some(&params)).unwrap();
    // The server reads its input in order.
    let _ = host.request("app", "example/after", None, CallOptions::default()).await;
    let sent = request(&received, "notifications/example");
    assert!(sent.contains(r#""big":123456789012345678901234567890"#), "{sent}");
    for method in
        ["tools/call", "initialize", "logging/setLevel", "", "a b", "notifications/initialized"]
    {
        let refused = host.request("app", method, None, CallOptions::default()).await.unwrap_err();
        assert!(matches!(refused, CallError::Validation { .. }), "{method}: {refused:?}");
    }
    host.shutdown().await;
}

#[tokio::test]
async fn arguments_and_results_have_types_of_the_application() {
    #[derive(Serialize)]
    struct Measure {
        n: u128,
    }
    #[derive(Debug, Deserialize, PartialEq)]
    struct Measured {
        metres: u128,
        exact: f64,
    }
    let (builder, received) = app_server();
    let host = builder.start().await.unwrap();
    let arguments = Arguments::from_serialize(&Measure { n: u128::MAX }).unwrap();
    let result = host.call_tool("app.measure", arguments).await.unwrap();
    let expected = Measured { metres: 123_456_789_012_345_678_901_234_567_890, exact: 1.5 };
    assert_eq!(result.structured_content::<Measured>().unwrap(), expected);
    assert!(result.structured_content::<Vec<u8>>().is_err());
    assert!(request(&received, "tools/call").contains(&u128::MAX.to_string()));
    host.shutdown().await;
}

#[tokio::test]
async fn tools_are_listed_with_their_definitions_and_arguments_are_completed() {
    let (builder, _) = app_server();
    let host = builder.start().await.unwrap();
    let catalog = host.catalog();
    let names: Vec<_> =
        catalog.tools().map(|tool| (tool.public_name, &*tool.definition.view.name)).collect();
    assert_eq!(names, [("app.measure", "measure"), ("app.ask", "ask")]);
    let prompt = CompletionReference::Prompt("app.greet");
    let options = CallOptions::default();
    let values = host.complete(prompt, "language", "e", &Map::new(), options).await.unwrap();
    let expected = json!({"completion": {"values": ["english", "esperanto"]}});
    assert_eq!(serde_json::from_str::<serde_json::Value>(values.get()).unwrap(), expected);
    host.shutdown().await;
}
