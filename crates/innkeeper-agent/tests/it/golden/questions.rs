//! The questions of servers are part of a recording, with the answers of the user and the model.

use std::sync::Arc;

use async_trait::async_trait;
use innkeeper_agent::golden::{Golden, mcp_ghost_recorded, replay};
use innkeeper_agent::safety::ApprovalDecision;
use innkeeper_agent::server_requests::{
    ElicitationMode, ElicitationRequest, ElicitationResponse, SamplingRequest,
    ServerRequestSettings, UserPrompter,
};
use innkeeper_testkit::{Script, ScriptedLlm, ScriptedReply, fixture};
use serde_json::{Map, Value, json};

use super::{KEY, TOKEN, WIRES, config};

/// A user who lets the model answer, and fills in all forms with one text.
struct User(String);

#[async_trait]
impl UserPrompter for User {
    async fn approve_sampling(&self, _: SamplingRequest<'_>) -> ApprovalDecision {
        ApprovalDecision::Approve
    }

    async fn answer_elicitation(&self, request: ElicitationRequest<'_>) -> ElicitationResponse {
        let ElicitationMode::Form(form) = request.mode else { return ElicitationResponse::Decline };
        let values = form.fields().iter().map(|field| (field.name.clone(), json!(self.0)));
        ElicitationResponse::Accept(values.collect::<Map<String, Value>>())
    }
}

/// Records a run whose server asks the model and the user during its call.
async fn record(era: &str, answer: &str) -> Golden {
    let server = fixture("fx").with("--era", era).switch("--ask-sampling").switch("--ask-elicit");
    let script = Script::new([
        ScriptedReply::text("I add.").with_tool_call("fx.add", json!({"a": 1, "b": 2})),
        ScriptedReply::text(format!("{answer} says the model.")),
        ScriptedReply::text("It is 3."),
    ]);
    let llm = ScriptedLlm::start(script).await;
    let mut config = config(WIRES[2], &llm, server);
    let prompter: Arc<dyn UserPrompter> = Arc::new(User(answer.to_owned()));
    config.server_requests = Some(ServerRequestSettings {
        prompter: Some(prompter),
        ..ServerRequestSettings::default()
    });
    let (result, golden) = mcp_ghost_recorded(config, "asked").await;
    golden.unwrap_or_else(|error| panic!("{era}: {error:?}: {result:?}"))
}

/// Proves: G64
#[tokio::test]
async fn the_questions_of_servers_are_recorded_with_their_answers_and_not_asked_again() {
    for era in ["legacy", "modern"] {
        let golden = record(era, "blue").await;
        let mut methods: Vec<_> =
            golden.questions.iter().map(|question| question.method.as_str()).collect();
        methods.sort_unstable();
        assert_eq!(methods, ["elicitation/create", "sampling/createMessage"], "{era}");
        for question in &golden.questions {
            assert_eq!((&*question.server, question.call), ("fx", Some(0)), "{era}");
            let answer = question.answer.as_ref().unwrap().get();
            assert!(answer.contains("blue"), "{era}: {answer}");
        }
        // The model's answer to the server is not one of the run.
        assert_eq!(golden.provider_responses.len(), 2, "{era}");
        let text = golden.to_json().unwrap();
        let replayed = replay(&Golden::from_json(&text).unwrap()).await.unwrap();
        assert_eq!(replayed.golden.to_json().unwrap(), text, "{era}");
    }
}

/// Proves: G63
#[tokio::test]
async fn no_secret_is_in_a_recorded_answer_to_a_server() {
    for secret in [KEY, TOKEN] {
        let golden = record("legacy", secret).await;
        let text = golden.to_json().unwrap();
        let escaped = serde_json::to_string(secret).unwrap();
        assert!(!text.contains(secret) && !text.contains(escaped.trim_matches('"')), "{text}");
        assert_eq!(golden.questions.len(), 2);
        for question in &golden.questions {
            let answer = question.answer.as_ref().unwrap().get();
            assert!(answer.contains("[redacted:"), "{answer}");
        }
    }
}
