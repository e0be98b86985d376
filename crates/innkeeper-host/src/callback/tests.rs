//! Tests of callbacks.

use serde_json::json;

use super::*;

fn fixed_callback(text: &'static str) -> Arc<dyn Callback> {
    Arc::new(move |_: ServerRequest| async move { Ok(json!({"by": text})) })
}

fn value(result: &RawValue) -> Value {
    serde_json::from_str(result.get()).unwrap()
}

async fn respond(callbacks: &CallbackRegistry, server: &str, method: &str) -> Option<Value> {
    let request = ServerRequest {
        server: server.into(),
        key: None,
        method: method.into(),
        params: None,
        call: CallReference::Unknown,
    };
    let result = callbacks.respond(request, None)?.await.ok()?;
    Some(value(&result)["by"].take())
}

/// Proves: FR5.2
#[tokio::test]
async fn the_callback_of_a_server_takes_precedence_and_none_unregisters() {
    let callbacks = CallbackRegistry::default();
    assert!(respond(&callbacks, "a", method::ROOTS_LIST).await.is_none());
    callbacks.set(&CallbackCapabilities::all(), Some(&fixed_callback("all")));
    callbacks
        .set(&CallbackCapabilities::roots().for_server("a"), Some(&fixed_callback("a's roots")));
    assert_eq!(respond(&callbacks, "a", method::ROOTS_LIST).await, Some(json!("a's roots")));
    assert_eq!(respond(&callbacks, "b", method::ROOTS_LIST).await, Some(json!("all")));
    assert_eq!(respond(&callbacks, "a", "own/method").await, Some(json!("all")));
    callbacks.set(&CallbackCapabilities::roots().for_server("a"), None);
    assert_eq!(respond(&callbacks, "a", method::ROOTS_LIST).await, Some(json!("all")));
    callbacks.set(&CallbackCapabilities::all(), None);
    assert!(respond(&callbacks, "a", method::ROOTS_LIST).await.is_none());
}

/// Proves: TR6.4
#[tokio::test]
async fn a_result_that_is_no_object_is_an_error_for_the_server() {
    let callbacks = CallbackRegistry::default();
    for (result, is_sent) in
        [(json!({}), true), (json!("text"), false), (json!([]), false), (Value::Null, false)]
    {
        let returned = result.clone();
        let callback: Arc<dyn Callback> = Arc::new(move |_: ServerRequest| {
            let returned = returned.clone();
            async { Ok(returned) }
        });
        let request = ServerRequest {
            server: "a".into(),
            key: None,
            method: method::ROOTS_LIST.into(),
            params: None,
            call: CallReference::Unknown,
        };
        callbacks.set(&CallbackCapabilities::all(), Some(&callback));
        let by_host = callbacks.respond(request.clone(), None).unwrap().await;
        let by_call = callbacks.respond(request, Some(&callback)).unwrap().await;
        let [by_host, by_call] = [by_host, by_call].map(|sent| sent.map(|sent| value(&sent)));
        assert_eq!(by_host, by_call);
        match by_host {
            Ok(sent) => assert_eq!((sent, is_sent), (result, true)),
            Err(error) => assert_eq!((error.code, is_sent), (code::INTERNAL_ERROR, false)),
        }
    }
}

/// Attack: data | an elicitation form requests a password | the form is rejected before the
/// application is called | Secrets stay with their owner
#[tokio::test]
async fn a_form_that_asks_for_a_secret_is_refused_unless_the_application_wants_it() {
    let properties = json!({ "password": { "type": "string" } });
    let params = json!({ "message": "?", "requestedSchema": { "properties": properties } });
    let request = ServerRequest {
        server: "a".into(),
        key: None,
        method: method::ELICITATION_CREATE.into(),
        params: Some(to_raw_value(&params).unwrap()),
        call: CallReference::Unknown,
    };
    let callbacks = CallbackRegistry::default();
    callbacks.set(&CallbackCapabilities::elicitation(), Some(&fixed_callback("filled in")));
    let error = callbacks.respond(request.clone(), None).unwrap().await.unwrap_err();
    assert_eq!(error.code, code::INVALID_PARAMS);
    callbacks.set(
        &CallbackCapabilities::elicitation().allow_secret_forms().for_server("a"),
        Some(&fixed_callback("a's")),
    );
    let result = callbacks.respond(request.clone(), None).unwrap().await.unwrap();
    assert_eq!(value(&result), json!({"by": "a's"}));
    let other = ServerRequest { server: "b".into(), ..request };
    assert!(callbacks.respond(other, None).unwrap().await.is_err());
}

/// Attack: data | a form has two schemas, of which the last requests no secret | the request is
/// rejected | Complete checks
#[tokio::test]
async fn a_question_with_two_members_of_one_name_is_rejected() {
    let callbacks = CallbackRegistry::default();
    callbacks.set(&CallbackCapabilities::all(), Some(&fixed_callback("called")));
    let rejected = |method: &str, params: &str| {
        let request = ServerRequest {
            server: "a".into(),
            key: None,
            method: method.to_owned().into(),
            params: Some(RawValue::from_string(params.to_owned()).unwrap()),
            call: CallReference::Unknown,
        };
        callbacks.rejection(&request).map(|error| error.message)
    };
    let secret = r#"{"properties":{"password":{"type":"string"}}}"#;
    for (method, params) in [
        (
            method::ELICITATION_CREATE,
            format!(r#"{{"requestedSchema":{secret},"requestedSchema":{{"properties":{{}}}}}}"#),
        ),
        (method::ELICITATION_CREATE, r#"{"mode":"url","mode":"form"}"#.to_owned()),
        (method::SAMPLING_CREATE_MESSAGE, r#"{"messages":[],"t\u006fols":[],"tools":null}"#.into()),
    ] {
        let expected = Some("two members of one object have the same name".into());
        assert_eq!(rejected(method, &params), expected, "{params}");
    }
    assert_eq!(rejected("own/method", r#"{"a":1,"a":2}"#), None, "the host checks nothing of it");
}

/// Attack: data | an elicitation in a mode that the host does not declare | the request is rejected
/// | Foreign text stays text
#[tokio::test]
async fn an_elicitation_mode_that_was_not_declared_is_rejected_before_the_application_is_called() {
    let form = json!({ "city": {} });
    let server_request = |method: &str, params: &Value| ServerRequest {
        server: "a".into(),
        key: None,
        method: method.into(),
        params: Some(to_raw_value(params).unwrap()),
        call: CallReference::Unknown,
    };
    let urls = [
        json!({ "mode": "url", "url": "https://a", "message": "?" }),
        json!({ "mode": "url", "requestedSchema": { "properties": form } }),
        json!({ "mode": "voice", "message": "?" }),
    ];
    let tools = [json!({ "tools": [] }), json!({ "toolChoice": { "mode": "auto" } })];
    let callbacks = CallbackRegistry::default();
    let is_rejected = |request: &ServerRequest| {
        callbacks.rejection(request).is_some_and(|no| no.code == code::INVALID_PARAMS)
    };
    callbacks.set(&CallbackCapabilities::all(), Some(&fixed_callback("all")));
    for params in &urls {
        assert!(is_rejected(&server_request(method::ELICITATION_CREATE, params)), "{params}");
    }
    for params in &tools {
        assert!(is_rejected(&server_request(method::SAMPLING_CREATE_MESSAGE, params)), "{params}");
    }
    assert!(!is_rejected(&server_request(
        method::SAMPLING_CREATE_MESSAGE,
        &json!({ "tools": null })
    )));
    assert!(!is_rejected(&server_request(method::ELICITATION_CREATE, &json!({ "mode": null }))));
    callbacks.set(&CallbackCapabilities::elicitation_with_urls(), Some(&fixed_callback("urls")));
    callbacks.set(&CallbackCapabilities::sampling_with_tools(), Some(&fixed_callback("tools")));
    assert!(!is_rejected(&server_request(method::ELICITATION_CREATE, &urls[0])));
    assert!(is_rejected(&server_request(method::ELICITATION_CREATE, &urls[2])));
    for params in &tools {
        assert!(!is_rejected(&server_request(method::SAMPLING_CREATE_MESSAGE, params)), "{params}");
    }
}

#[test]
fn only_capabilities_with_a_callback_are_declared_and_only_to_their_server() {
    let callbacks = CallbackRegistry::default();
    let declared = |server: &str| -> Value {
        serde_json::from_str(callbacks.capabilities(server).get()).unwrap()
    };
    assert_eq!(declared("a"), json!({}));
    callbacks.set(
        &CallbackCapabilities::sampling_with_tools().for_server("a"),
        Some(&fixed_callback("x")),
    );
    callbacks.set(&CallbackCapabilities::elicitation_with_urls(), Some(&fixed_callback("x")));
    callbacks.set(&CallbackCapabilities::custom(), Some(&fixed_callback("x")));
    let elicitation = json!({ "form": {}, "url": {} });
    assert_eq!(declared("a"), json!({ "sampling": { "tools": {} }, "elicitation": elicitation }),);
    assert_eq!(declared("b"), json!({ "elicitation": elicitation }));
}

#[test]
fn the_debug_text_of_a_callback_is_its_type() {
    assert_eq!(format!("{:?}", fixed_callback("canary")), "Callback");
}
