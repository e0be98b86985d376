//! Whose question is it: many clients with equal ids on one server over a pipe.

use serde_json::{Value, json};

use crate::setup::{TestClient, TestEnv};

/// Calls of each client.
const CALLS: u64 = 100;

/// Number of calls of a client in flight.
const IN_FLIGHT: u64 = 5;

/// Makes calls and answers the question of each with the name of the client.
async fn run_client(mut client: TestClient, name: &str) {
    let (mut open, mut started, mut questions) = (0, 0, 0);
    while started < CALLS || open > 0 {
        while started < CALLS && open < IN_FLIGHT {
            let message = format!("{name} {started}");
            let params = json!({
                "name": "a.echo",
                "arguments": { "message": message },
                "_meta": { "progressToken": started },
            });
            client.start("tools/call", params).await;
            (started, open) = (started + 1, open + 1);
        }
        let message = client.receive().await;
        if message["method"] == "elicitation/create" {
            questions += 1;
            let answer = json!({ "action": "accept", "content": { "name": name } });
            client.answer(&message, answer).await;
            continue;
        }
        // The result of the fixture is the answer that it got.
        let text = message["result"]["content"].to_string();
        assert!(text.contains(&format!("{name}\\\"")), "{name}: {message}");
        open -= 1;
    }
    assert_eq!(questions, CALLS, "every question of {name} reached it");
}

/// Attack: remote | two clients with equal ids and tokens call one server over a pipe, which asks
/// during each call | every question and every result reaches its own client | Own response
#[tokio::test]
async fn two_clients_with_equal_ids_get_their_own_questions_and_results() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([test_env.fixture("a").switch("--ask-elicit")]).await;
    let capabilities: Value = json!({ "elicitation": {} });
    let ada = gateway.initialized("ada", capabilities.clone()).await;
    let bob = gateway.initialized("bob", capabilities).await;
    tokio::join!(run_client(ada, "ada"), run_client(bob, "bob"));
}
