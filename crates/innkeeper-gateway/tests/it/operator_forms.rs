//! Forms of servers that operators fill, in place of a client or beside the client.

use innkeeper_gateway::pending_questions::{Question, QuestionState};
use innkeeper_gateway::{AnswerOutcome, OperatorAnswer};
use innkeeper_testkit::Journal;
use serde_json::{Map, Value, json};

use crate::approvals::{Approvals, answer, open_question, wait_for};
use crate::setup::{TestClient, TestEnv, TestGateway, text};

async fn gateway(test_env: &TestEnv, approvals: &Approvals, era: &str) -> TestGateway {
    let server = test_env.fixture("a").switch("--ask-elicit").with("--era", era);
    test_env.gateway_with(approvals.builder(), [server.journal(&test_env.journal())]).await
}

fn form(colour: Value) -> OperatorAnswer {
    OperatorAnswer::Fill(Map::from_iter([("colour".to_owned(), colour)]))
}

async fn start_echo(client: &mut TestClient) -> Value {
    let arguments = json!({ "message": "hi" });
    client.start("tools/call", json!({ "name": "a.echo", "arguments": arguments })).await
}

/// Returns what the server got as the answer to its form: the result of the fixture.
fn server_got(response: &Value) -> Value {
    let mut answers: Value = serde_json::from_str(&text(&response["result"])).unwrap();
    answers[0]["result"].take()
}

fn won(outcome: AnswerOutcome) -> Question {
    match outcome {
        AnswerOutcome::Won(question) => *question,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_operator_fills_the_form_of_a_call_whose_client_cannot_and_the_schema_is_checked() {
    for era in ["legacy", "modern"] {
        let (test_env, approvals) = (TestEnv::new(), Approvals::for_elicitations());
        let gateway = gateway(&test_env, &approvals, era).await;
        let mut legacy = gateway.initialized("ada", json!({})).await;
        let mut modern = gateway.modern("ada", json!({}));
        for client in [&mut legacy, &mut modern] {
            let id = start_echo(client).await;
            let question = open_question(&gateway.gateway).await;
            assert!(question.content.params.get().contains("requestedSchema"), "{era}");
            let outcome = answer(&gateway.gateway, question.id, "ann", form(json!(7))).await;
            let AnswerOutcome::Invalid(problem) = outcome else { panic!("{outcome:?}") };
            assert!(problem.contains("colour"), "{problem}");
            let outcome =
                answer(&gateway.gateway, question.id, "ann", OperatorAnswer::Approve).await;
            assert!(matches!(outcome, AnswerOutcome::Invalid(_)), "{outcome:?}");
            won(answer(&gateway.gateway, question.id, "ann", form(json!("red"))).await);
            // The result of the fixture contains the answers that it got.
            let got = text(&client.response(&id).await["result"]);
            let filled = json!({ "action": "accept", "content": { "colour": "red" } });
            assert!(got.contains(&filled.to_string()), "{era}: {got}");
        }
    }
}

#[tokio::test]
async fn an_operator_who_declines_a_form_declines_it_for_the_server() {
    let (test_env, approvals) = (TestEnv::new(), Approvals::for_elicitations());
    let gateway = gateway(&test_env, &approvals, "legacy").await;
    let mut ada = gateway.initialized("ada", json!({})).await;
    let id = start_echo(&mut ada).await;
    let question = open_question(&gateway.gateway).await;
    let decline = OperatorAnswer::Decline { reason: None };
    won(answer(&gateway.gateway, question.id, "ann", decline).await);
    assert_eq!(server_got(&ada.response(&id).await), json!({ "action": "decline" }));
}

#[tokio::test]
async fn of_operator_and_client_the_first_answer_wins_and_the_other_is_told() {
    let (test_env, approvals) = (TestEnv::new(), Approvals::for_elicitations());
    let gateway = gateway(&test_env, &approvals, "legacy").await;
    let mut ada = gateway.initialized("ada", json!({ "elicitation": {} })).await;
    // The operator is first: the client gets a cancellation.
    let id = start_echo(&mut ada).await;
    let asked = ada.received("elicitation/create").await;
    let question = open_question(&gateway.gateway).await;
    won(answer(&gateway.gateway, question.id, "ann", form(json!("red"))).await);
    let cancelled = ada.received("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], asked["id"]);
    assert_eq!(server_got(&ada.response(&id).await)["content"]["colour"], "red");
    // The client is first: the operator learns that.
    let id = start_echo(&mut ada).await;
    let asked = ada.received("elicitation/create").await;
    let question = open_question(&gateway.gateway).await;
    let blue = json!({ "action": "accept", "content": { "colour": "blue" } });
    ada.answer(&asked, blue.clone()).await;
    assert_eq!(server_got(&ada.response(&id).await), blue);
    let outcome = answer(&gateway.gateway, question.id, "ann", form(json!("red"))).await;
    let AnswerOutcome::Lost(lost) = outcome else { panic!("{outcome:?}") };
    assert_eq!(lost.state, QuestionState::Answered);
    assert_eq!(lost.answer.by.as_deref(), Some("the client of ada"));
    assert!(
        !lost.answer.response.unwrap().get().contains("blue"),
        "the values stay with the client"
    );
}

#[tokio::test]
async fn a_form_ends_with_its_call_and_with_its_server() {
    let (test_env, approvals) = (TestEnv::new(), Approvals::for_elicitations());
    let gateway = gateway(&test_env, &approvals, "legacy").await;
    let mut ada = gateway.initialized("ada", json!({})).await;
    let id = start_echo(&mut ada).await;
    let question = open_question(&gateway.gateway).await.id;
    ada.notify("notifications/cancelled", json!({ "requestId": id })).await;
    let ended = wait_for(&gateway.gateway, question, QuestionState::Ended).await;
    assert_eq!(ended.answer.reason.as_deref(), Some("the call or its server has ended"));

    start_echo(&mut ada).await;
    let question = open_question(&gateway.gateway).await.id;
    gateway.host.shutdown().await;
    wait_for(&gateway.gateway, question, QuestionState::Ended).await;
    let outcome = answer(&gateway.gateway, question, "ann", form(json!("red"))).await;
    assert!(matches!(outcome, AnswerOutcome::Lost(_)), "{outcome:?}");
}

#[tokio::test]
async fn without_the_setting_a_client_without_the_capability_is_not_asked_and_nobody_else_is() {
    let (test_env, approvals) = (TestEnv::new(), Approvals::of(&["b.*"]));
    let gateway = gateway(&test_env, &approvals, "legacy").await;
    let mut ada = gateway.initialized("ada", json!({})).await;
    let id = start_echo(&mut ada).await;
    let response = ada.response(&id).await;
    assert!(text(&response["result"]).contains("error"), "{response}");
    let store = gateway.gateway.questions().unwrap().store();
    assert_eq!(store.count_open().await.unwrap(), 0);
    assert_eq!(Journal::read(&test_env.journal()).count("tools/call"), 1);
}
