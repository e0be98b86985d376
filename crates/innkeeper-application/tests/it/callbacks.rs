//! Callbacks: the application answers questions of a server.

use innkeeper::{CallbackCapabilities, ServerRequest};
use serde_json::json;

use crate::server::app_server;

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
