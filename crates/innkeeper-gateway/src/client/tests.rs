//! Tests of the requests of one client.

use bytes::Bytes;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::open_questions::MAX_OPEN_QUESTIONS;
use super::*;

fn client() -> (Arc<Client>, MessageSink, mpsc::Receiver<Bytes>) {
    let (sender, receiver) = mpsc::channel(4);
    let sink = MessageSink::Queue(sender);
    let client = Client::new(Principal::local_user(), 0, MessageSink::None);
    (Arc::new(client), sink, receiver)
}

fn text(message: Option<Bytes>) -> Value {
    serde_json::from_slice(&message.unwrap()).unwrap()
}

#[tokio::test]
async fn a_response_reaches_the_request_with_its_id_once() {
    let (client, sink, mut sent) = client();
    let asking = client.ask(&sink, method::ELICITATION_CREATE, None, None);
    let answering = async {
        let request = text(sent.recv().await);
        assert_eq!(request["params"], json!({}));
        let id = RequestId::Integer(request["id"].as_i64().unwrap());
        let result = to_raw_value(&json!({ "action": "accept" })).unwrap();
        client.answer(&RequestId::Integer(99), Ok(&result));
        client.answer(&id, Ok(&result));
        client.answer(&id, Ok(&result));
    };
    let (answer, ()) = tokio::join!(asking, answering);
    assert_eq!(answer.unwrap().get(), r#"{"action":"accept"}"#);
}

#[tokio::test]
async fn a_dropped_question_is_cancelled_at_the_client() {
    let (client, sink, mut sent) = client();
    {
        let asking = client.ask(&sink, method::ROOTS_LIST, None, None);
        tokio::pin!(asking);
        assert!(futures_util::poll!(&mut asking).is_pending());
    }
    let id = text(sent.recv().await)["id"].clone();
    let cancelled = text(sent.recv().await);
    assert_eq!(cancelled["method"], method::CANCELLED);
    assert_eq!(cancelled["params"]["requestId"], id);
    assert!(client.questions.is_empty());
}

#[tokio::test]
async fn the_end_of_the_connection_fails_questions_and_cancels_requests() {
    let (client, sink, mut sent) = client();
    let guard = client.start_request(&RequestId::Integer(1)).unwrap();
    let asking = client.ask(&sink, method::ROOTS_LIST, None, None);
    let ending = async {
        sent.recv().await;
        client.disconnect();
    };
    let (answer, ()) = tokio::join!(asking, ending);
    assert!(answer.unwrap_err().message.contains("disconnected"));
    guard.cancelled().await;
}

/// Attack: remote | a client opens requests without an end | each request over the limit is rejected |
/// No unbounded memory
#[test]
fn a_client_has_a_maximum_of_requests_in_flight_and_each_id_once() {
    let (client, _, _) = client();
    let id = |number| RequestId::Integer(number);
    let maximum = i64::try_from(MAX_REQUESTS_IN_FLIGHT).unwrap();
    let mut guards: Vec<_> = (1..maximum).map(|n| client.start_request(&id(n)).unwrap()).collect();
    assert_eq!(client.start_request(&id(1)).unwrap_err(), RequestRejection::DuplicateId);
    guards.push(client.start_request(&id(maximum)).unwrap());
    assert_eq!(client.start_request(&id(maximum + 1)).unwrap_err(), RequestRejection::TooMany);
    guards.pop();
    assert!(client.start_request(&id(maximum + 1)).is_ok());
}

#[tokio::test]
async fn a_client_has_a_maximum_of_open_questions() {
    let client = Arc::new(Client::new(Principal::local_user(), 0, MessageSink::None));
    let (sender, _receiver) = mpsc::channel(MAX_OPEN_QUESTIONS + 1);
    let sink = MessageSink::Queue(sender);
    let mut open = Vec::new();
    for _ in 0..MAX_OPEN_QUESTIONS {
        let mut asking = Box::pin(client.ask(&sink, method::ROOTS_LIST, None, None));
        assert!(futures_util::poll!(&mut asking).is_pending());
        open.push(asking);
    }
    let error = client.ask(&sink, method::ROOTS_LIST, None, None).await.unwrap_err();
    assert!(error.message.contains("too many open requests"), "{error}");
}
