//! Tests of the answers to servers.

mod audit_lines;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use innkeeper_host::CallReference;
use serde_json::json;
use serde_json::value::to_raw_value;
use tokio::sync::Notify;

use super::super::{ElicitationMode, ElicitationRequest, ElicitationResponse, SamplingRequest};
use super::*;
use crate::provider::{FinishReason, LlmError, LlmErrorKind, Request, Response, ScriptedProvider};
use crate::safety::ApprovalDecision;

/// A user who gives the same answers to all questions, and remembers the questions.
struct TestUser {
    approval: ApprovalDecision,
    answer: ElicitationResponse,
    questions: Mutex<Vec<String>>,
}

impl TestUser {
    fn new(approval: ApprovalDecision, answer: ElicitationResponse) -> Arc<Self> {
        Arc::new(Self { approval, answer, questions: Mutex::default() })
    }

    fn questions(&self) -> Vec<String> {
        self.questions.lock().unwrap().clone()
    }
}

#[async_trait]
impl UserPrompter for TestUser {
    async fn approve_sampling(&self, request: SamplingRequest<'_>) -> ApprovalDecision {
        let SamplingRequest { server, model, system, messages, max_tokens, .. } = request;
        let question = format!("{server} {model} {system:?} {} {max_tokens}", messages.len());
        self.questions.lock().unwrap().push(question);
        self.approval.clone()
    }

    async fn answer_elicitation(&self, request: ElicitationRequest<'_>) -> ElicitationResponse {
        let ElicitationRequest { server, message, mode, .. } = request;
        let mode = match mode {
            ElicitationMode::Form(form) => form.fields().len().to_string(),
            ElicitationMode::Url { url, host } => format!("{url} {host}"),
        };
        self.questions.lock().unwrap().push(format!("{server} {message} {mode}"));
        self.answer.clone()
    }
}

fn request(server: &str, method: &str, params: &Value) -> ServerRequest {
    ServerRequest {
        server: server.into(),
        key: None,
        method: method.into(),
        params: Some(to_raw_value(params).unwrap()),
        call: CallReference::Call { id: 1, method: "tools/call".into(), item: "paint".into() },
    }
}

fn sampling(server: &str, max_tokens: u32) -> ServerRequest {
    let content = json!({"type": "text", "text": "which colour?"});
    let params = json!({
        "messages": [{"role": "user", "content": content}], "systemPrompt": "S",
        "maxTokens": max_tokens,
    });
    request(server, method::SAMPLING_CREATE_MESSAGE, &params)
}

fn elicitation(server: &str) -> ServerRequest {
    let schema = json!({
        "type": "object", "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}},
        "required": ["colour"],
    });
    let params = json!({"message": "which colour?", "requestedSchema": schema});
    request(server, method::ELICITATION_CREATE, &params)
}

fn values(values: &Value) -> ElicitationResponse {
    ElicitationResponse::Accept(values.as_object().unwrap().clone())
}

fn handler(
    settings: ServerRequestSettings,
    replies: impl IntoIterator<Item = Result<Response, LlmError>>,
) -> (ServerRequestHandler, Arc<ScriptedProvider>) {
    let model = Arc::new(ScriptedProvider::new(replies));
    let handler = ServerRequestHandler::new(settings);
    handler.set_model(Some(model.clone()));
    (handler, model)
}

/// Settings without questions.
fn allow_all() -> ServerRequestSettings {
    ServerRequestSettings { sampling: ApprovalPolicy::AllowAll, ..ServerRequestSettings::default() }
}

fn ask(user: &Arc<TestUser>) -> ServerRequestSettings {
    ServerRequestSettings { prompter: Some(user.clone()), ..ServerRequestSettings::default() }
}

fn text(text: &str) -> Result<Response, LlmError> {
    Ok(Response::from_text(text))
}

async fn error_of(handler: &ServerRequestHandler, request: ServerRequest) -> (i64, String) {
    let error = handler.respond(request).await.unwrap_err();
    (error.code, error.message)
}

#[tokio::test]
async fn the_model_answers_after_the_user_approved_the_request_with_its_model() {
    let user = TestUser::new(ApprovalDecision::Approve, ElicitationResponse::Decline);
    let (handler, model) = handler(ask(&user), [text("Blue.")]);
    let result = handler.inner.respond(&sampling("a", 16)).await.unwrap();
    let content = json!({"type": "text", "text": "Blue."});
    let expected = json!({
        "role": "assistant", "content": content, "model": "scripted", "stopReason": "endTurn",
    });
    assert_eq!(result, expected);
    assert_eq!(user.questions(), [r#"a scripted "S" 1 16"#]);
    let sent = &model.requests()[0];
    assert_eq!((sent.max_tokens, &*sent.system, sent.tools.len()), (Some(16), "S", 0));
    let other = Response { model: Some("other-1".to_owned()), ..Response::from_text("Red.") };
    handler.set_model(Some(Arc::new(ScriptedProvider::new([Ok(other)]))));
    assert_eq!(handler.inner.respond(&sampling("a", 16)).await.unwrap()["model"], "other-1");
}

/// Attack: model | a server requests a message of the model, which the user denies, or which no user
/// can approve | the model gets nothing | Approval first
#[tokio::test]
async fn without_consent_the_model_gets_nothing() {
    let denial = ApprovalDecision::Deny("not today".to_owned());
    let user = TestUser::new(denial, ElicitationResponse::Decline);
    let deny_all = ServerRequestSettings {
        sampling: ApprovalPolicy::DenyAll,
        ..ServerRequestSettings::default()
    };
    for (settings, message) in [
        (ask(&user), "not today"),
        (ServerRequestSettings::default(), "no user can approve sampling"),
        (deny_all, "the settings deny sampling"),
    ] {
        let (handler, model) = handler(settings, [text("Blue.")]);
        assert_eq!(error_of(&handler, sampling("a", 16)).await, (-1, message.to_owned()));
        assert!(model.requests().is_empty());
    }
}

/// Attack: model | a server sends more requests in a minute than its budget, or requests too many
/// tokens | neither the model nor the user gets the requests above the budget | No unbounded memory
#[tokio::test(start_paused = true)]
async fn past_the_budget_of_its_server_a_request_is_an_error_that_says_so() {
    let user = TestUser::new(ApprovalDecision::Approve, values(&json!({"colour": "red"})));
    let settings = ServerRequestSettings {
        max_sampling_per_minute: 1,
        max_elicitations_per_minute: 2,
        max_sampling_tokens: 16,
        ..ask(&user)
    };
    let (handler, _) = handler(settings, (0..3).map(|_| text("Blue.")));
    handler.respond(sampling("a", 16)).await.unwrap();
    for _ in 0..2 {
        handler.respond(elicitation("a")).await.unwrap();
    }
    assert_eq!(user.questions().len(), 3);
    tokio::time::advance(Duration::from_millis(500)).await;
    let expected = "budget of 1 sampling requests per minute used up; the next is possible in 60 s";
    assert_eq!(error_of(&handler, sampling("a", 16)).await, (-1, expected.to_owned()));
    let expected = "budget of 2 elicitations per minute used up; the next is possible in 60 s";
    assert_eq!(error_of(&handler, elicitation("a")).await, (-1, expected.to_owned()));
    assert_eq!(user.questions().len(), 3);
    let expected = "`maxTokens` of 17 exceeds the budget of 16 tokens";
    assert_eq!(error_of(&handler, sampling("b", 17)).await, (-1, expected.to_owned()));
    handler.respond(elicitation("b")).await.unwrap();
    tokio::time::advance(Duration::from_secs(60)).await;
    handler.respond(sampling("a", 16)).await.unwrap();
}

/// Attack: model | a server sends the model more text than a request or a run may have | the model gets
/// none of it, until the user sends another message | No unbounded memory
#[tokio::test(start_paused = true)]
async fn the_input_of_sampling_is_limited_per_request_and_per_run() {
    let bytes = sampling("a", 1).params.unwrap().get().len();
    let settings = ServerRequestSettings {
        max_sampling_input_bytes: bytes,
        max_sampling_input_bytes_per_run: 2 * bytes,
        ..allow_all()
    };
    let (handler, model) = handler(settings, (0..3).map(|_| text("Blue.")));
    let expected = format!("the request has {} bytes, the limit is {bytes}: send less", bytes + 1);
    assert_eq!(error_of(&handler, sampling("a", 10)).await, (-1, expected));
    for _ in 0..2 {
        handler.respond(sampling("a", 1)).await.unwrap();
    }
    let (code, message) = error_of(&handler, sampling("a", 1)).await;
    assert_eq!((code, message.contains("of this run")), (-1, true), "{message}");
    handler.start_run();
    handler.respond(sampling("a", 1)).await.unwrap();
    assert_eq!(model.requests().len(), 3);
}

/// A model that waits, and then answers with the result of another sampling request.
struct NestedModel {
    handler: ServerRequestHandler,
    release: Notify,
    nested_error: Mutex<Option<CallbackError>>,
    is_dropped: Arc<AtomicBool>,
}

struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[async_trait]
impl LlmProvider for NestedModel {
    async fn generate(&self, _: Request) -> Result<Response, LlmError> {
        let _dropped = SetOnDrop(self.is_dropped.clone());
        self.release.notified().await;
        let nested = self.handler.respond(sampling("b", 16)).await;
        *self.nested_error.lock().unwrap() = nested.err();
        text("Blue.")
    }

    fn name(&self) -> &str {
        "nested"
    }
}

fn nested_model() -> (ServerRequestHandler, Arc<NestedModel>) {
    let handler = ServerRequestHandler::new(allow_all());
    let model = Arc::new(NestedModel {
        handler: handler.clone(),
        release: Notify::new(),
        nested_error: Mutex::default(),
        is_dropped: Arc::default(),
    });
    handler.set_model(Some(model.clone()));
    (handler, model)
}

/// Attack: model | a server requests a message of the model while another message is written for the
/// server, and a tool that the model calls requests a further message | each inner request is
/// refused | No unbounded wait
#[tokio::test]
async fn sampling_inside_of_sampling_is_refused() {
    let (handler, model) = nested_model();
    let mut outer = handler.respond(sampling("a", 16));
    assert!(outer.as_mut().now_or_never().is_none());
    let inner = handler.respond(sampling("a", 16)).now_or_never();
    let error = inner.expect("the inner request is refused at once").unwrap_err();
    assert_eq!(error.code, -1);
    assert!(error.message.starts_with("sampling inside of sampling"), "{error}");
    model.release.notify_one();
    outer.await.unwrap();
    let nested_error = model.nested_error.lock().unwrap().clone().unwrap();
    assert!(nested_error.message.starts_with("sampling inside of sampling"), "{nested_error}");
    model.release.notify_one();
    handler.respond(sampling("a", 16)).await.unwrap();
}

#[tokio::test]
async fn a_dropped_request_cancels_the_model_and_frees_its_server() {
    let (handler, model) = nested_model();
    let mut dropped = handler.respond(sampling("a", 16));
    assert!(dropped.as_mut().now_or_never().is_none());
    assert!(!model.is_dropped.load(Ordering::Relaxed));
    drop(dropped);
    assert!(model.is_dropped.load(Ordering::Relaxed));
    model.release.notify_one();
    handler.respond(sampling("a", 16)).await.unwrap();
}

/// Attack: secrets | the provider describes the account of the user in an error | the server gets
/// the kind of the error only | Secrets stay with their owner
#[tokio::test]
async fn a_server_gets_the_kind_of_a_models_failure_and_nothing_of_the_message() {
    let failure = LlmError::new("p", LlmErrorKind::Billing, "organization org-7 has no credit");
    let (handler, _) = handler(allow_all(), [Err(failure)]);
    let expected = (code::INTERNAL_ERROR, "model not available".to_owned());
    assert_eq!(error_of(&handler, sampling("a", 16)).await, expected);
    handler.set_model(None);
    let expected = (code::INTERNAL_ERROR, "the client has no model".to_owned());
    assert_eq!(error_of(&handler, sampling("a", 16)).await, expected);
}

#[tokio::test]
async fn the_end_of_the_response_is_told_in_the_terms_of_mcp() {
    for (finish_reason, expected) in [
        (FinishReason::Length, Some("maxTokens")),
        (FinishReason::ContextFull, Some("maxTokens")),
        (FinishReason::Refusal, Some("refusal")),
        (FinishReason::Other("paused_by_user".to_owned()), Some("paused_by_user")),
        (FinishReason::ToolCalls, None),
        (FinishReason::Paused, None),
    ] {
        let response = Response { finish_reason, ..Response::from_text("Bl") };
        let (handler, _) = handler(allow_all(), [Ok(response)]);
        let answered = handler.inner.respond(&sampling("a", 16)).await;
        let stop_reason = answered.ok().map(|result| result["stopReason"].clone());
        assert_eq!(stop_reason, expected.map(Value::from));
    }
}

#[tokio::test]
async fn the_answers_of_the_user_reach_the_server_only_if_they_fit_the_form() {
    let red = json!({"colour": "red"});
    for (answer, expected) in [
        (values(&red), json!({"action": "accept", "content": red})),
        (ElicitationResponse::Decline, json!({"action": "decline"})),
        (ElicitationResponse::Cancel, json!({"action": "cancel"})),
    ] {
        let user = TestUser::new(ApprovalDecision::Approve, answer);
        let (handler, _) = handler(ask(&user), []);
        assert_eq!(handler.inner.respond(&elicitation("a")).await, Ok(expected));
        assert_eq!(user.questions(), ["a which colour? 1"]);
    }
    for invalid in [json!({"colour": "secret"}), json!({}), json!({"colour": "red", "b": 1})] {
        let user = TestUser::new(ApprovalDecision::Approve, values(&invalid));
        let (handler, _) = handler(ask(&user), []);
        let (code, message) = error_of(&handler, elicitation("a")).await;
        assert_eq!(code, code::INTERNAL_ERROR);
        assert!(
            message.contains("invalid values of `") && !message.contains("secret"),
            "{message}"
        );
    }
    let (handler, _) = handler(allow_all(), []);
    assert_eq!(handler.inner.respond(&elicitation("a")).await, Ok(json!({"action": "decline"})));
}

#[tokio::test]
async fn a_url_is_shown_to_the_user_and_accepted_without_content() {
    let user = TestUser::new(ApprovalDecision::Approve, values(&json!({"ignored": 1})));
    let (handler, _) = handler(ask(&user), []);
    let params = json!({"mode": "url", "message": "sign in", "url": "https://Example.com/x"});
    let result = handler.inner.respond(&request("a", method::ELICITATION_CREATE, &params)).await;
    assert_eq!(result, Ok(json!({"action": "accept"})));
    assert_eq!(user.questions(), ["a sign in https://example.com/x example.com"]);
}

#[tokio::test]
async fn other_methods_are_not_supported() {
    let (handler, _) = handler(allow_all(), []);
    let (code, _) = error_of(&handler, request("a", "roots/list", &json!({}))).await;
    assert_eq!(code, code::METHOD_NOT_FOUND);
}
