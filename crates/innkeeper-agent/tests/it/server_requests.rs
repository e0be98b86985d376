//! Requests of real servers, answered by a model and a user, in both eras.

use std::error::Error as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use innkeeper_agent::ghost::{GhostConfig, GhostServers, mcp_ghost};
use innkeeper_agent::provider::{
    LlmError, LlmErrorKind, LlmProvider, Request, Response, ScriptedProvider,
};
use innkeeper_agent::safety::{ApprovalDecision, ApprovalPolicy};
use innkeeper_agent::server_requests::{
    ElicitationMode, ElicitationRequest, ElicitationResponse, SamplingRequest,
    ServerRequestHandler, ServerRequestSettings, UserPrompter,
};
use innkeeper_host::config::Secret;
use innkeeper_host::{CallError, CallReference, Config, Environment, Host};
use innkeeper_testkit::{Fixture, Journal, Script, ScriptedLlm, ScriptedReply, fixture, mcp_json};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use tokio::time::timeout;

const ERAS: [&str; 2] = ["legacy", "modern"];

/// Bounds a wait for a condition.
const WAIT_LIMIT: Duration = Duration::from_secs(20);

/// A user who approves all requests, and answers all forms with `blue`.
#[derive(Default)]
struct BlueUser {
    /// The server and the tool of each question.
    questions: Mutex<Vec<String>>,
}

impl BlueUser {
    fn record(&self, kind: &str, server: &str, call: &CallReference) {
        let tool = match call {
            CallReference::Call { item, .. } => item.to_string(),
            CallReference::Unknown => "unknown".to_owned(),
        };
        self.questions.lock().unwrap().push(format!("{kind} {server} {tool}"));
    }

    fn questions(&self) -> Vec<String> {
        let mut questions = self.questions.lock().unwrap().clone();
        questions.sort();
        questions
    }
}

#[async_trait]
impl UserPrompter for BlueUser {
    async fn approve_sampling(&self, request: SamplingRequest<'_>) -> ApprovalDecision {
        self.record("sampling", request.server, request.call);
        ApprovalDecision::Approve
    }

    async fn answer_elicitation(&self, request: ElicitationRequest<'_>) -> ElicitationResponse {
        self.record("elicitation", request.server, request.call);
        let ElicitationMode::Form(form) = request.mode else { return ElicitationResponse::Decline };
        let values = form.fields().iter().map(|field| (field.name.clone(), json!("blue")));
        ElicitationResponse::Accept(values.collect::<Map<String, Value>>())
    }
}

/// A user who never answers.
#[derive(Default)]
struct AbsentUser {
    asked: Notify,
    withdrawn: Arc<WithdrawnFlag>,
}

#[derive(Default)]
struct WithdrawnFlag {
    is_set: AtomicBool,
    set: Notify,
}

struct SetOnDrop(Arc<WithdrawnFlag>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.is_set.store(true, Ordering::Relaxed);
        self.0.set.notify_one();
    }
}

#[async_trait]
impl UserPrompter for AbsentUser {
    async fn approve_sampling(&self, _: SamplingRequest<'_>) -> ApprovalDecision {
        let _withdrawn = SetOnDrop(self.withdrawn.clone());
        self.asked.notify_one();
        std::future::pending().await
    }

    async fn answer_elicitation(&self, _: ElicitationRequest<'_>) -> ElicitationResponse {
        ElicitationResponse::Decline
    }
}

fn allow_all() -> ServerRequestSettings {
    ServerRequestSettings { sampling: ApprovalPolicy::AllowAll, ..ServerRequestSettings::default() }
}

fn ask(user: Arc<dyn UserPrompter>) -> ServerRequestSettings {
    ServerRequestSettings { prompter: Some(user), ..ServerRequestSettings::default() }
}

async fn start_host(
    server: Fixture,
    settings: ServerRequestSettings,
    model: Arc<dyn LlmProvider>,
) -> Host {
    let environment = Environment::from_process();
    let config =
        Config::from_value(&mcp_json([server]), "mcp.json", Path::new("/"), &environment).unwrap();
    let handler = ServerRequestHandler::new(settings);
    handler.set_model(Some(model));
    handler.register(Host::builder(config)).start().await.unwrap()
}

fn model(replies: impl IntoIterator<Item = Result<Response, LlmError>>) -> Arc<ScriptedProvider> {
    Arc::new(ScriptedProvider::new(replies))
}

/// Calls a tool, and returns the responses that the server got before, or the error of the call.
async fn call(host: &Host) -> Result<Value, String> {
    let with_sources = |error: CallError| {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(error) = source {
            text.push_str(&format!(": {error}"));
            source = error.source();
        }
        text
    };
    let result = host.call_tool("a.pid", ()).await.map_err(with_sources)?;
    let result: Value = serde_json::from_str(result.raw().get()).unwrap();
    Ok(serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap())
}

#[tokio::test]
async fn a_server_of_each_era_gets_the_message_of_the_model_and_the_input_of_the_user() {
    for era in ERAS {
        let dir = tempfile::tempdir().unwrap();
        let journal = dir.path().join("journal");
        let server = fixture("a").with("--era", era).switch("--ask-sampling");
        let server = server.switch("--ask-elicit").journal(&journal);
        let (user, model) =
            (Arc::new(BlueUser::default()), model([Ok(Response::from_text("Blue."))]));
        let host = start_host(server, ask(user.clone()), model.clone()).await;
        let mut responses = call(&host).await.unwrap();
        if let Some(list) = responses.as_array_mut() {
            list.sort_by_key(|response| response["method"].to_string());
        }
        insta::assert_json_snapshot!(format!("responses_{era}"), responses);
        assert_eq!(user.questions(), ["elicitation a pid", "sampling a pid"], "{era}");
        let request = &model.requests()[0];
        assert_eq!((request.max_tokens, request.tools.len()), (Some(16), 0), "{era}");
        assert!(request.to_prompt_text().contains("a asks: which colour?"), "{era}");
        host.shutdown().await;
        // Checks each message of the host against the schema of the specification.
        let calls = if era == "legacy" { 1 } else { 2 };
        assert_eq!(Journal::read(&journal).count("tools/call"), calls, "{era}");
    }
}

#[tokio::test]
async fn only_what_the_settings_can_answer_is_declared() {
    let both = json!({"sampling": {}, "elicitation": {"form": {}, "url": {}}});
    let elicitation = json!({"elicitation": {"form": {}, "url": {}}});
    let nothing = ServerRequestSettings {
        sampling: ApprovalPolicy::DenyAll,
        elicitation: false,
        ..ServerRequestSettings::default()
    };
    for (settings, expected) in [
        (allow_all(), both.clone()),
        (ask(Arc::new(BlueUser::default())), both),
        (ServerRequestSettings::default(), elicitation),
        (nothing, json!({})),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let journal = dir.path().join("journal");
        let host = start_host(fixture("a").journal(&journal), settings, model([])).await;
        host.shutdown().await;
        assert_eq!(Journal::read(&journal).params("initialize")[0]["capabilities"], expected);
    }
}

#[tokio::test]
async fn a_refusal_and_a_failed_model_reach_a_server_of_each_era_as_errors() {
    let none = ServerRequestSettings { max_sampling_per_minute: 0, ..allow_all() };
    let few_tokens = ServerRequestSettings { max_sampling_tokens: 15, ..allow_all() };
    for era in ERAS {
        for (settings, expected) in [
            (none.clone(), "budget of 0 sampling requests per minute used up"),
            (few_tokens.clone(), "`maxTokens` of 16 exceeds the budget of 15 tokens"),
            (allow_all(), "model not available"),
        ] {
            let failure = LlmError::new("p", LlmErrorKind::Billing, "organization org-7");
            let server = fixture("a").with("--era", era).switch("--ask-sampling");
            let host = start_host(server, settings, model([Err(failure)])).await;
            // In the modern era, a client cannot respond with an error, so the call ends.
            let text = match call(&host).await {
                Ok(responses) => responses[0]["error"]["message"].to_string(),
                Err(error) => error,
            };
            assert!(text.contains(expected) && !text.contains("org-7"), "{era}: {text}");
            host.shutdown().await;
        }
    }
}

/// A model that answers after its release.
#[derive(Default)]
struct HeldModel(Notify);

#[async_trait]
impl LlmProvider for HeldModel {
    async fn generate(&self, _: Request) -> Result<Response, LlmError> {
        self.0.notified().await;
        Ok(Response::from_text("Blue."))
    }

    fn name(&self) -> &str {
        "held"
    }
}

#[tokio::test]
async fn the_second_of_two_sampling_requests_at_once_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal");
    let model = Arc::new(HeldModel::default());
    let server = fixture("a").switch("--ask-sampling").with("--ask-count", 2).journal(&journal);
    let host = start_host(server, allow_all(), model.clone()).await;
    let release = async {
        let is_refused = |journal: &Journal| !journal.responses().is_empty();
        Journal::wait_for(&journal, WAIT_LIMIT, is_refused).await;
        model.0.notify_one();
    };
    let (responses, ()) = tokio::join!(call(&host), release);
    let responses = responses.unwrap();
    let message = responses[0]["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("sampling inside of sampling"), "{message}");
    assert_eq!(responses[1]["result"]["content"]["text"], "Blue.");
    host.shutdown().await;
}

#[tokio::test]
async fn the_end_of_the_call_or_of_the_session_withdraws_the_question() {
    for era in ERAS {
        let user = Arc::new(AbsentUser::default());
        let server = fixture("a").with("--era", era).switch("--ask-sampling");
        let host = start_host(server, ask(user.clone()), model([])).await;
        tokio::select! {
            answered = call(&host) => panic!("{era}: {answered:?}"),
            () = user.asked.notified() => {}
        }
        // A legacy server works on after the cancellation until it ends or takes its request back.
        assert_eq!(user.withdrawn.is_set.load(Ordering::Relaxed), era == "modern");
        host.shutdown().await;
        timeout(WAIT_LIMIT, user.withdrawn.set.notified()).await.unwrap();
    }
}

fn ghost_config(server: Fixture, llm: &ScriptedLlm) -> GhostConfig {
    let servers = GhostServers::Config(mcp_json([server]));
    let environment = Environment::from_process();
    let mut config = GhostConfig::new(servers, "Be brief.", "Anthropic", "Call.", environment);
    config.model.key = Some(Secret::new("k"));
    config.model.base_url = Some(llm.origin().to_owned());
    config
}

#[tokio::test]
async fn the_model_of_a_one_shot_run_answers_its_servers_only_if_the_settings_say_so() {
    for era in ERAS {
        for settings in [None, Some(allow_all())] {
            let is_answered = settings.is_some();
            let sampled = is_answered.then(|| ScriptedReply::text("Blue."));
            let replies = [ScriptedReply::tool_call("a.pid", json!({}))].into_iter();
            let replies = replies.chain(sampled).chain([ScriptedReply::text("Done.")]);
            let llm = ScriptedLlm::start(Script::new(replies)).await;
            let server = fixture("a").with("--era", era).switch("--ask-sampling");
            let config = GhostConfig { server_requests: settings, ..ghost_config(server, &llm) };
            let result = serde_json::to_value(mcp_ghost(config).await).unwrap();
            assert_eq!(result["final_result"], "Done.", "{era}");
            let of_call = result["tool_chain"][0].to_string();
            assert_eq!(of_call.contains("Blue."), is_answered, "{era}: {of_call}");
            let requests = llm.requests();
            assert_eq!(requests.len(), if is_answered { 3 } else { 2 }, "{era}");
            if is_answered {
                let body = &requests[1].body;
                assert_eq!((&body["max_tokens"], body.get("tools")), (&json!(16), None), "{era}");
                assert!(!body.to_string().contains("Be brief."), "{era}: {body}");
            }
        }
    }
}
