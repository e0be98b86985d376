//! The pages of the console with questions, in front of real servers.

use http::StatusCode;
use innkeeper_gateway::pending_questions::{QuestionId, QuestionState};
use innkeeper_gateway::{ConsoleOptions, Principal};
use innkeeper_testkit::{Fixture, Journal};
use serde_json::json;

use crate::approvals::{Approvals, open_question, wait_for};
use crate::console::browser::{Browser, router_with_keys};
use crate::limits::KEYS;
use crate::setup::{TEST_TIMEOUT, TestEnv, TestGateway, text};

/// Returns a gateway whose only operator is `ann`.
async fn gateway(test_env: &TestEnv, approvals: &Approvals, server: Fixture) -> TestGateway {
    let operators = vec![Principal::new("ann")];
    let builder = approvals.builder().console(ConsoleOptions { operators });
    test_env.gateway_with(builder, [server.journal(&test_env.journal())]).await
}

fn page_of(id: QuestionId) -> String {
    format!("/console/question?id={id}")
}

/// Attack: remote | a client approves its own call without being an operator, and an operator's form
/// comes without its token or from another site | nothing is approved, and nothing reaches the server |
/// Approval first
#[tokio::test]
async fn only_the_form_of_an_operator_approves_a_call() {
    let (test_env, approvals) = (TestEnv::new(), Approvals::of(&["a.*"]));
    let gateway = gateway(&test_env, &approvals, test_env.fixture("a")).await;
    let mut ben = gateway.initialized("ben", json!({})).await;
    let params = json!({ "name": "a.echo", "arguments": { "message": "hi" } });
    let call = ben.start("tools/call", params).await;
    let id = open_question(&gateway.gateway).await.id;
    let page = page_of(id);
    let router = router_with_keys(&gateway);
    let approve = [("answer", "approve")];

    let mut client = Browser::new(router.clone());
    client.header = Some(("x-api-key", KEYS[1].to_owned()));
    assert_eq!(client.get(&page).await.status, StatusCode::FORBIDDEN);
    assert_eq!(client.post(&page, &approve, &[]).await.status, StatusCode::FORBIDDEN);
    let mut stranger = Browser::new(router.clone());
    assert_eq!(stranger.post(&page, &approve, &[]).await.status, StatusCode::UNAUTHORIZED);
    let mut operator = Browser::new(router);
    operator.sign_in(KEYS[0]).await;
    assert_eq!(operator.post(&page, &approve, &[]).await.status, StatusCode::FORBIDDEN);
    let other_site = [("sec-fetch-site", "cross-site")];
    assert_eq!(operator.post(&page, &approve, &other_site).await.status, StatusCode::FORBIDDEN);
    assert_eq!(open_question(&gateway.gateway).await.state, QuestionState::Waiting);
    assert_eq!(Journal::read(&test_env.journal()).count("tools/call"), 0);

    let list = operator.get("/console/questions").await.text;
    assert!(list.contains(&format!("href=\"question?id={id}\">Call of <code>a.echo<")), "{list}");
    let answered = operator.submit(&page, &approve).await;
    assert!(answered.text.contains("Answered by <code>ann</code>"), "{}", answered.text);
    assert_eq!(text(&ben.response(&call).await["result"]), "hi");
    wait_for(&gateway.gateway, id, QuestionState::Done).await;
    let audit = operator.get("/console/audit").await.text;
    assert!(audit.contains("approval of `a.echo` for `ben`: running"), "{audit}");
    // A second operator who has the page open still learns who was first.
    let mut second = Browser::new(router_with_keys(&gateway));
    second.sign_in(KEYS[0]).await;
    let token_page = "/console/tool?name=a.pid";
    let late = second.submit_at(token_page, &page, &[("answer", "decline")]).await;
    assert_eq!(late.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(late.text.contains("Your answer came too late: ann answered before"), "{}", late.text);
}

/// Attack: remote | the arguments of a call have markup, direction marks and more characters than a page
/// shows of one text | the operator sees all of them as text | Foreign text stays text
#[tokio::test]
async fn an_operator_sees_the_whole_arguments_as_text() {
    let (test_env, approvals) = (TestEnv::new(), Approvals::of(&["a.*"]));
    let gateway = gateway(&test_env, &approvals, test_env.fixture("a")).await;
    let mut ben = gateway.initialized("ben", json!({})).await;
    let message = format!("<script>\u{202e}{}<b>the end", "x".repeat(45_000));
    let params = json!({ "name": "a.echo", "arguments": { "message": message } });
    ben.start("tools/call", params).await;
    let id = open_question(&gateway.gateway).await.id;
    let mut operator = Browser::new(router_with_keys(&gateway));
    operator.sign_in(KEYS[0]).await;
    let page = operator.get(&page_of(id)).await.text;
    assert!(page.contains("&lt;script&gt;\\u{202e}xxx"), "{page}");
    assert!(page.contains("xxx&lt;b&gt;the end&quot;}"), "{page}");
    assert!(page.matches('x').count() > 45_000 && !page.contains("more characters"));
    assert!(page.contains("Says the message back."));
}

#[tokio::test]
async fn an_operator_fills_a_form_and_learns_which_value_is_wrong() {
    let (test_env, approvals) = (TestEnv::new(), Approvals::for_elicitations());
    let server = test_env.fixture("a").switch("--ask-elicit");
    let gateway = gateway(&test_env, &approvals, server).await;
    let mut ben = gateway.initialized("ben", json!({})).await;
    let params = json!({ "name": "a.echo", "arguments": { "message": "hi" } });
    let call = ben.start("tools/call", params).await;
    let id = open_question(&gateway.gateway).await.id;
    let mut operator = Browser::new(router_with_keys(&gateway));
    operator.sign_in(KEYS[0]).await;
    let page = page_of(id);
    let shown = operator.get(&page).await.text;
    assert!(shown.contains("name=\"f0\"") && shown.contains("colour"), "{shown}");
    let list = operator.get("/console/questions").await.text;
    assert!(list.contains(">Form of <code>a: a.echo<"), "{list}");
    let wrong = operator.submit(&page, &[("answer", "fill"), ("json", "{\"colour\": 7}")]).await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(wrong.text.contains("class=\"problem\""), "{}", wrong.text);
    let right = operator.submit(&page, &[("answer", "fill"), ("f0", "red")]).await;
    assert!(right.text.contains(">answered<"), "{}", right.text);
    assert!(text(&ben.response(&call).await["result"]).contains("\"colour\":\"red\""));
}

/// Attack: remote | an operator starts a call that needs an approval in the console and cancels the call,
/// before and after the approval | nobody can approve the cancelled call, and its server stops the call
/// that runs | No repeated execution
#[tokio::test]
async fn a_call_that_its_operator_cancels_in_the_console_runs_no_more() {
    let (test_env, approvals) = (TestEnv::new(), Approvals::of(&["a.*"]));
    let gateway = gateway(&test_env, &approvals, test_env.fixture("a")).await;
    let mut operator = Browser::new(router_with_keys(&gateway));
    operator.sign_in(KEYS[0]).await;
    let tool = "/console/tool?name=a.sleep";
    let arguments = [("json", r#"{"ms":600000}"#)];

    let waiting = operator.submit(tool, &arguments).await;
    let id = open_question(&gateway.gateway).await.id;
    let cancelled = operator.submit_at(&waiting.path, "/console/call", &[("number", "1")]).await;
    assert!(cancelled.text.contains(">cancelled<"), "{}", cancelled.text);
    let ended = wait_for(&gateway.gateway, id, QuestionState::Ended).await;
    assert_eq!(ended.answer.reason.as_deref(), Some("the operator cancelled the call"));
    assert_eq!(Journal::read(&test_env.journal()).count("tools/call"), 0);

    let running = operator.submit(tool, &arguments).await;
    let id = open_question(&gateway.gateway).await.id;
    operator.submit(&page_of(id), &[("answer", "approve")]).await;
    let is_sent = |journal: &Journal| journal.count("tools/call") == 1;
    Journal::wait_for(&test_env.journal(), TEST_TIMEOUT, is_sent).await;
    operator.submit_at(&running.path, "/console/call", &[("number", "2")]).await;
    let is_cancelled = |journal: &Journal| journal.count("notifications/cancelled") == 1;
    Journal::wait_for(&test_env.journal(), TEST_TIMEOUT, is_cancelled).await;
    wait_for(&gateway.gateway, id, QuestionState::Done).await;
}
