//! Whose question is it: clients of one server over a pipe.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::setup::{TestClient, TestEnv, TestGateway, text};

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

/// Attack: remote | two clients with equal ids and tokens call a server over a pipe with a process for
/// each principal, which asks during each call | every question, every progress notification and every
/// result reaches its own client | Own response
#[tokio::test]
async fn two_clients_with_equal_ids_get_their_own_questions_progress_and_results() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").switch("--ask-elicit");
    let server = server.with("--progress", 1).with("--progress-message", "{}");
    let server = server.config_key("share", "principal");
    let gateway = test_env.gateway([server]).await;
    let capabilities: Value = json!({ "elicitation": {} });
    let ada = gateway.initialized("ada", capabilities.clone()).await;
    let bob = gateway.initialized("bob", capabilities).await;
    let calls = async { tokio::join!(run_client(ada, "ada"), run_client(bob, "bob")) };
    timeout(CALLS_TIMEOUT, calls).await.expect("all calls end in time");
}

/// A gateway before one process for all clients, which asks during each call of `echo` and of no other
/// tool.
async fn asking_gateway(test_env: &TestEnv) -> TestGateway {
    let server = test_env.fixture("a").switch("--ask-elicit").with("--ask-of", "echo");
    test_env.gateway([server]).await
}

async fn start_call(client: &mut TestClient, tool: &str, arguments: Value) -> Value {
    client.start("tools/call", json!({ "name": tool, "arguments": arguments })).await
}

/// Answers the questions of a call with the name of the client. Returns the answer that the server
/// got: the result of the fixture.
async fn finish_echo(client: &mut TestClient, id: &Value, name: &str) -> Value {
    loop {
        let message = client.receive().await;
        if message["method"] == "elicitation/create" {
            let answer = json!({ "action": "accept", "content": { "colour": name } });
            client.answer(&message, answer).await;
        } else if message["id"] == *id {
            let mut answers: Value = serde_json::from_str(&text(&message["result"])).unwrap();
            return answers[0].take();
        }
    }
}

/// Attack: remote | the server asks for one client during a slow call of another, who answers requests
/// too | the question reaches its own client after the slow call, and calls that ask nothing do not
/// wait | Own response
#[tokio::test]
async fn a_question_during_a_slow_call_of_another_reaches_its_own_client() {
    let test_env = TestEnv::new();
    let gateway = asking_gateway(&test_env).await;
    let capabilities: Value = json!({ "elicitation": {}, "roots": {}, "sampling": {} });
    let mut ada = gateway.initialized("ada", capabilities.clone()).await;
    let mut bob = gateway.initialized("bob", capabilities.clone()).await;
    let mut eve = gateway.initialized("eve", capabilities).await;
    let started = Instant::now();
    let slow = start_call(&mut ada, "a.sleep", json!({ "ms": 3_000 })).await;
    let asking = start_call(&mut bob, "a.echo", json!({ "message": "hi" })).await;
    eve.call("a.sleep", json!({ "ms": 0 })).await;
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    ada.response(&slow).await;
    let answer = finish_echo(&mut bob, &asking, "bob").await;
    assert_eq!(answer["result"]["content"]["colour"], "bob");
    ada.call("a.sleep", json!({ "ms": 0 })).await;
    assert!(ada.waiting.is_empty() && eve.waiting.is_empty(), "{:?}", ada.waiting);
}

/// Attack: remote | the server asks two clients at the same time | at most one question is refused, and
/// no client gets the question of the other | Own response
#[tokio::test]
async fn of_two_clients_that_are_asked_at_once_at_most_one_is_refused() {
    let test_env = TestEnv::new();
    let gateway = asking_gateway(&test_env).await;
    let mut ada = gateway.initialized("ada", json!({ "elicitation": {} })).await;
    let mut bob = gateway.initialized("bob", json!({ "elicitation": {} })).await;
    let of_ada = start_call(&mut ada, "a.echo", json!({ "message": "hi" })).await;
    let of_bob = start_call(&mut bob, "a.echo", json!({ "message": "hi" })).await;
    let (answer_of_ada, answer_of_bob) =
        tokio::join!(finish_echo(&mut ada, &of_ada, "ada"), finish_echo(&mut bob, &of_bob, "bob"));
    let mut refused = 0;
    for (answer, name) in [(answer_of_ada, "ada"), (answer_of_bob, "bob")] {
        match answer["error"]["message"].as_str() {
            Some(message) => {
                refused += 1;
                assert!(message.contains(r#""share": "principal""#), "{message}");
            }
            None => assert_eq!(answer["result"]["content"]["colour"], name),
        }
    }
    assert!(refused <= 1, "{refused} refused");
}

/// Attack: data | a server ignores that a client cancelled its call, and asks for it while another
/// client has a call | the other client does not get the question | Own response
#[tokio::test]
async fn a_question_for_a_cancelled_call_reaches_no_other_client() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").switch("--ask-elicit").with("--ask-of", "echo");
    let server = server.with("--slow", 500).switch("--ignore-cancel");
    let gateway = test_env.gateway([server]).await;
    let mut ada = gateway.initialized("ada", json!({ "elicitation": {} })).await;
    let mut bob = gateway.initialized("bob", json!({ "elicitation": {} })).await;
    let cancelled = start_call(&mut ada, "a.echo", json!({ "message": "hi" })).await;
    let other = start_call(&mut bob, "a.sleep", json!({ "ms": 7_000 })).await;
    ada.notify("notifications/cancelled", json!({ "requestId": cancelled })).await;
    bob.response(&other).await;
    assert!(bob.waiting.is_empty(), "{:?}", bob.waiting);
}

#[tokio::test]
async fn a_form_that_a_client_leaves_open_keeps_no_other_client_waiting() {
    let test_env = TestEnv::new();
    let gateway = asking_gateway(&test_env).await;
    let mut modern = gateway.modern("ada", json!({ "elicitation": {} }));
    let arguments = json!({ "message": "hi" });
    let params = json!({ "name": "a.echo", "arguments": arguments });
    let parked = modern.request("tools/call", params).await;
    assert_eq!(parked["resultType"], "input_required");
    let mut legacy = gateway.initialized("eve", json!({ "elicitation": {} })).await;
    start_call(&mut legacy, "a.echo", json!({ "message": "hi" })).await;
    let mut bob = gateway.initialized("bob", json!({ "elicitation": {} })).await;
    let started = Instant::now();
    bob.call("a.sleep", json!({ "ms": 0 })).await;
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
}
