//! What a person does between and during runs: changed arguments, interruptions, another model,
//! removed exchanges, summaries on request.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use innkeeper_agent::agent::{Agent, AgentEvent, AgentSettings, CompactError};
use innkeeper_agent::conversation::{Conversation, Message};
use innkeeper_agent::provider::{
    LlmError, LlmProvider, Request, Response, ScriptedProvider, StreamChunk,
};
use innkeeper_agent::safety::{ApprovalDecision, ApprovalPolicy, ApprovalRequest, Approver};
use serde_json::json;

use super::{AgentHarness, RecordingTools, call_reply, harness, native_harness, text_reply};

/// Approves each call with these arguments.
struct ChangingApprover(&'static str);

#[async_trait]
impl Approver for ChangingApprover {
    async fn decide(&self, _: ApprovalRequest<'_>) -> ApprovalDecision {
        ApprovalDecision::ApproveWith(self.0.to_owned())
    }
}

async fn run_with_changed_arguments(arguments: &'static str) -> AgentHarness {
    let replies = [call_reply("fs.rm", r#"{"path": "a"}"#), text_reply("Done.")];
    let settings =
        AgentSettings { approval_policy: ApprovalPolicy::Ask, ..AgentSettings::default() };
    let mut test_env = harness(ScriptedProvider::new(replies), settings);
    test_env.agent = test_env.agent.with_approver(Arc::new(ChangingApprover(arguments)));
    assert!(test_env.agent.run("Remove a.").await.is_completed());
    test_env
}

fn last_result(test_env: &AgentHarness) -> String {
    let requests = test_env.model.requests();
    let Some(Message::ToolResults(results)) = requests[1].messages.last() else {
        panic!("no results")
    };
    results[0].content.to_text().into_owned()
}

#[tokio::test(start_paused = true)]
async fn arguments_that_the_approver_changes_are_sent_and_the_model_gets_them() {
    let test_env = run_with_changed_arguments(r#"{"path": "b"}"#).await;
    assert_eq!(test_env.tools.calls(), [("fs.rm".to_owned(), json!({"path": "b"}))]);
    let result = last_result(&test_env);
    assert!(result.ends_with(r#"The user changed the arguments to {"path":"b"}."#), "{result}");
    let unchanged = run_with_changed_arguments(r#"{ "path": "a" }"#).await;
    assert!(!last_result(&unchanged).contains("changed"));
}

/// Attack: model | an approver replaces arguments by invalid ones | the tool does not run
/// | Approval first
#[tokio::test(start_paused = true)]
async fn changed_arguments_that_do_not_fit_the_schema_are_not_sent() {
    for (arguments, problem) in [
        (r#"{"path": 7}"#, "invalid arguments for `fs.rm`"),
        (r#"["b"]"#, "not a JSON object"),
        ("b", "not a JSON object"),
    ] {
        let test_env = run_with_changed_arguments(arguments).await;
        assert!(test_env.tools.calls().is_empty(), "{arguments}");
        let result = last_result(&test_env);
        assert!(result.contains(problem), "{result}");
    }
}

/// A model that streams two chunks, and then nothing.
struct HangingModel;

#[async_trait]
impl LlmProvider for HangingModel {
    async fn generate(&self, _: Request) -> Result<Response, LlmError> {
        std::future::pending().await
    }

    fn name(&self) -> &'static str {
        "hanging"
    }

    fn stream(&self, _: Request) -> BoxStream<'_, Result<StreamChunk, LlmError>> {
        let chunks = ["The answer ", "is"].map(|text| Ok(StreamChunk::Text(text.to_owned())));
        stream::iter(chunks).chain(stream::pending()).boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_gets_the_displayed_text_of_a_response_that_was_interrupted() {
    let tools = Arc::new(RecordingTools::default());
    let agent = Agent::new(Arc::new(HangingModel), tools, AgentSettings::default());
    let mut stream = agent.stream("What is it?");
    let mut text = String::new();
    while text != "The answer is" {
        if let Some(AgentEvent::Text(chunk)) = stream.next().await {
            text.push_str(&chunk);
        }
    }
    drop(stream);
    let model = Arc::new(ScriptedProvider::new([text_reply("Sorry.")]));
    let agent = agent.with_provider(model.clone(), AgentSettings::default());
    assert_eq!(agent.run("Why?").await.text, "Sorry.");
    let texts: Vec<_> = model.requests()[0].messages.iter().map(text_of).collect();
    let interrupted = "The answer is\n\n[The response ends here: it was interrupted.]";
    assert_eq!(texts, ["What is it?", interrupted, "Why?"]);
}

fn text_of(message: &Message) -> String {
    match message {
        Message::User(content) => content.to_text().into_owned(),
        Message::Assistant(assistant) => assistant.visible_text(),
        Message::ToolResults(results) => results[0].content.to_text().into_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_with_another_model_shares_the_conversation() {
    let first = native_harness([text_reply("One."), text_reply("Three.")]);
    first.agent.run("1").await;
    let second = Arc::new(ScriptedProvider::new([text_reply("Two.")]));
    let other = first.agent.clone().with_provider(second.clone(), AgentSettings::default());
    other.run("2").await;
    first.agent.run("3").await;
    assert_eq!(second.requests()[0].messages.len(), 3);
    assert_eq!(first.model.requests()[1].messages.len(), 5);
    assert_eq!(first.agent.statistics().runs, 3);
}

#[tokio::test(start_paused = true)]
async fn the_last_exchange_can_be_removed_with_its_calls() {
    let test_env = native_harness([
        text_reply("One."),
        call_reply("fs.read", r#"{"path": "a"}"#),
        text_reply("Two."),
        text_reply("Another two."),
    ]);
    test_env.agent.run("1").await;
    let before = test_env.agent.conversation();
    test_env.agent.run("2").await;
    let removed = test_env.agent.remove_last_exchange();
    assert_eq!(removed, Some("2".into()));
    assert_eq!(test_env.agent.conversation(), before);
    assert!(test_env.agent.run("2 again").await.is_success());
    assert_eq!(test_env.model.requests()[3].messages.len(), 3);
    assert!(test_env.agent.remove_last_exchange().is_some());
    assert_eq!(test_env.agent.remove_last_exchange(), Some("1".into()));
    assert_eq!(test_env.agent.remove_last_exchange(), None);
    assert_eq!(test_env.agent.conversation(), Conversation::new());
}

#[tokio::test(start_paused = true)]
async fn the_added_messages_of_a_run_are_its_conversation() {
    let test_env = native_harness([
        call_reply("fs.read", r#"{"path": "a"}"#),
        call_reply("fs.read", r#"{"path": "gone"}"#),
        text_reply("Done."),
    ]);
    let mut added = Vec::new();
    let sink = |event| {
        if let AgentEvent::MessagesAdded(messages) = event {
            added.push(messages);
        }
    };
    test_env.agent.run_streaming("Go.", sink).await;
    assert!(added.len() > 4, "each step is reported: {added:?}");
    assert_eq!(added.concat(), test_env.agent.conversation().messages());
}

#[tokio::test(start_paused = true)]
async fn a_history_is_summarized_on_request_except_for_the_last_exchange() {
    let test_env = native_harness([
        text_reply("One."),
        text_reply("Two."),
        text_reply("Three."),
        text_reply("They counted."),
        text_reply("Four."),
    ]);
    assert!(matches!(test_env.agent.compact().await, Err(CompactError::NothingToSummarize)));
    for message in ["1", "2", "3"] {
        test_env.agent.run(message).await;
    }
    assert_eq!(test_env.agent.compact().await.unwrap().messages, 4);
    assert!(matches!(test_env.agent.compact().await, Err(CompactError::NothingToSummarize)));
    assert_eq!(test_env.agent.conversation().messages().len(), 6);
    test_env.agent.run("4").await;
    let requests = test_env.model.requests();
    let texts: Vec<_> = requests[4].messages.iter().map(text_of).collect();
    assert!(texts[0].ends_with("They counted.\n\n3"), "{texts:?}");
    assert_eq!(texts[1..], ["Three.", "4"]);
}

#[tokio::test(start_paused = true)]
async fn a_summary_on_request_that_fails_leaves_the_history_as_it_is() {
    let test_env = native_harness([
        text_reply("One."),
        text_reply("Two."),
        text_reply(""),
        text_reply("Three."),
    ]);
    for message in ["1", "2"] {
        test_env.agent.run(message).await;
    }
    assert!(matches!(test_env.agent.compact().await, Err(CompactError::NoSummary)));
    test_env.agent.run("3").await;
    assert_eq!(test_env.model.requests()[3].messages.len(), 5);
}
