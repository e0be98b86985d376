//! Whose question is it: many clients with equal ids on one server over a pipe.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::setup::{TestClient, TestEnv, text};

/// Calls of each client.
const CALLS: u64 = 500;

/// Number of calls of a client in flight.
const IN_FLIGHT: usize = 5;

/// Maximum time of all calls; they take about a tenth of it.
const CALLS_TIMEOUT: Duration = Duration::from_secs(30);

/// What a client has received for a call in flight.
struct OpenCall {
    message: String,
    progress: usize,
}

/// Makes calls and answers the question of each with the name of the client.
async fn run_client(mut client: TestClient, name: &str) {
    let mut open: HashMap<String, OpenCall> = HashMap::new();
    let (mut started, mut questions) = (0, 0);
    while started < CALLS || !open.is_empty() {
        while started < CALLS && open.len() < IN_FLIGHT {
            let message = format!("{name} {started}");
            // Every client uses its request ids as progress tokens.
            let params = json!({
                "name": "a.echo",
                "arguments": { "message": message },
                "_meta": { "progressToken": client.next_id() },
            });
            let id = client.start("tools/call", params).await;
            open.insert(id.to_string(), OpenCall { message, progress: 0 });
            started += 1;
        }
        let message = client.receive().await;
        match message["method"].as_str() {
            Some("elicitation/create") => {
                questions += 1;
                let answer = json!({ "action": "accept", "content": { "colour": name } });
                client.answer(&message, answer).await;
            }
            Some("notifications/progress") => {
                let params = &message["params"];
                let call = open.get_mut(&params["progressToken"].to_string()).unwrap();
                assert_eq!(params["message"], *call.message, "{name}");
                call.progress += 1;
            }
            Some(_) => panic!("{name}: {message}"),
            None => {
                let call = open.remove(&message["id"].to_string()).unwrap();
                assert_eq!(call.progress, 2, "{name}: {message}");
                // The result of the fixture is the answer that it got.
                let answers: Value = serde_json::from_str(&text(&message["result"])).unwrap();
                assert_eq!(answers[0]["result"]["content"]["colour"], name);
            }
        }
    }
    assert_eq!(questions, CALLS, "every question of {name} reached it");
}

/// Attack: remote | two clients with equal ids and tokens call one server over a pipe, which asks
/// during each call | every question, every progress notification and every result reaches its own
/// client | Own response
#[tokio::test]
async fn two_clients_with_equal_ids_get_their_own_questions_progress_and_results() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").switch("--ask-elicit");
    let server = server.with("--progress", 1).with("--progress-message", "{}");
    let gateway = test_env.gateway([server]).await;
    let capabilities: Value = json!({ "elicitation": {} });
    let ada = gateway.initialized("ada", capabilities.clone()).await;
    let bob = gateway.initialized("bob", capabilities).await;
    let calls = async { tokio::join!(run_client(ada, "ada"), run_client(bob, "bob")) };
    timeout(CALLS_TIMEOUT, calls).await.expect("all calls end in time");
}
