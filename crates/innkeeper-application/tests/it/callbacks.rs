//! Callbacks: the application answers questions of a server.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use innkeeper::call::CallReference;
use innkeeper::{CallOptions, Callback, CallbackCapabilities, HostEvent, ServerRequest};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::server::app_server;

const TIMEOUT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_callback_answers_an_elicitation_of_a_server_in_the_process() {
    let answer = |request: ServerRequest| async move {
        assert_eq!((&*request.server, &*request.method), ("app", "elicitation/create"));
        Ok(json!({"action": "accept", "content": {"city": "Graz"}}))
    };
    let (builder, _) = app_server();
    let builder = builder.callback(&CallbackCapabilities::elicitation(), answer);
    let host = builder.start().await.unwrap();
    let result = host.call_tool("app.ask", ()).await.unwrap();
    let city: std::collections::HashMap<String, String> = result.structured_content().unwrap();
    assert_eq!(city["city"], "Graz");
    host.shutdown().await;
}

#[tokio::test]
async fn the_callback_of_a_call_learns_which_call_the_server_asks_for() {
    let asked = Arc::new(Mutex::new(None));
    let asked_for = asked.clone();
    let answer = move |request: ServerRequest| {
        *asked_for.lock().unwrap() = Some(request.call);
        async { Ok(json!({"action": "accept", "content": {"city": "Linz"}})) }
    };
    let of_host = |_: ServerRequest| async { Ok(json!({"action": "decline"})) };
    let (builder, _) = app_server();
    let builder = builder.callback(&CallbackCapabilities::elicitation(), of_host);
    let host = builder.start().await.unwrap();
    let callback: Arc<dyn Callback> = Arc::new(answer);
    let options = CallOptions { callback: Some(callback), ..CallOptions::default() };
    let result = host.call_tool_with("app.ask", (), options).await.unwrap();
    assert!(result.raw().get().contains("Linz"), "{}", result.raw());
    let call = asked.lock().unwrap().take().unwrap();
    let CallReference::Call { method, item, .. } = call else { panic!("{call:?}") };
    assert_eq!((&*method, &*item), ("tools/call", "ask"));
    host.shutdown().await;
}

#[tokio::test]
async fn an_application_receives_each_notification_in_its_raw_form() {
    let (builder, _) = app_server();
    let host = builder.start().await.unwrap();
    let mut events = host.events();
    let _ = host.request("app", "example/notify", None, CallOptions::default()).await;
    let notification = async {
        loop {
            let event = events.recv().await.unwrap();
            if let HostEvent::Notification { server, method, params, .. } = event {
                break (server, method, params.unwrap());
            }
        }
    };
    let (server, method, params) = timeout(TIMEOUT, notification).await.unwrap();
    assert_eq!((&*server, &*method), ("app", "notifications/example"));
    assert_eq!(params.get(), r#"{"n":1.50}"#);
    host.shutdown().await;
}

#[tokio::test]
async fn a_result_that_depends_on_the_callback_of_a_call_is_not_cached() {
    let (builder, received) = app_server();
    let of_host = |request: ServerRequest| async move { panic!("{request:?}") };
    let host =
        builder.callback(&CallbackCapabilities::elicitation(), of_host).start().await.unwrap();
    for city in ["Oslo", "Lima"] {
        let answer = move |_: ServerRequest| async move {
            Ok(json!({"action": "accept", "content": {"city": city}}))
        };
        let options = CallOptions { callback: Some(Arc::new(answer)), ..CallOptions::default() };
        let read = host.read_resource("app://city", None, options).await.unwrap();
        let read: Value = serde_json::from_str(read.get()).unwrap();
        assert_eq!(read["contents"][0]["text"], city);
    }
    let lines = received.lock().unwrap().clone();
    assert_eq!(lines.iter().filter(|line| line.contains("resources/read")).count(), 2);
    host.shutdown().await;
}
