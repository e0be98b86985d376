//! Streams and clones of an agent: what they own, and who gets the conversation.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use innkeeper_agent::agent::{Agent, AgentEvent, AgentSettings, AgentStream};
use innkeeper_agent::conversation::Message;
use innkeeper_agent::provider::{LlmError, LlmProvider, Request, Response, ScriptedProvider};
use innkeeper_agent::run::RunOutcome;
use tokio::time::timeout;

use super::{RecordingTools, call_reply, native_harness, text_reply};

/// Requires what a binding to another language must hold.
fn require_owned<T: Send + 'static>(value: T) -> T {
    value
}

fn nap_and_reply() -> super::AgentHarness {
    native_harness([call_reply("clock.nap", r#"{"seconds": 60}"#), text_reply("Done.")])
}

/// Reads the stream until a call has started.
async fn read_to_call(stream: &mut AgentStream) {
    while let Some(event) = stream.next().await {
        if let AgentEvent::ToolCallStarted { .. } = event {
            return;
        }
    }
    panic!("the run ended before a call");
}

#[tokio::test(start_paused = true)]
async fn a_stream_outlives_its_agent_and_ends_with_the_result() {
    let test_env = nap_and_reply();
    let stream = require_owned(test_env.agent.stream(String::from("Wait.")));
    let _ = require_owned(test_env.agent);
    let events: Vec<_> = stream.collect().await;
    let Some(AgentEvent::Finished(result)) = events.last() else { panic!("{events:?}") };
    assert_eq!(result.text, "Done.");
    let records = events.iter().filter_map(|event| {
        let AgentEvent::ToolCallFinished(record) = event else { return None };
        Some(record)
    });
    let records: Vec<_> = records.collect();
    assert_eq!(records.len(), 1);
    assert!(Arc::ptr_eq(records[0], &result.tool_calls[0]), "the record is shared, not copied");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_stream_leaves_a_valid_conversation_that_continues() {
    let test_env = nap_and_reply();
    let mut stream = test_env.agent.stream("Wait.");
    read_to_call(&mut stream).await;
    drop(stream);
    let conversation = test_env.agent.conversation();
    let Some(Message::ToolResults(results)) = conversation.messages().last() else {
        panic!("{conversation:?}")
    };
    assert!(results[0].is_error && results[0].content.to_text().starts_with("interrupted"));
    assert!(test_env.agent.run("Go on.").await.is_success());
    assert_eq!(test_env.agent.conversation().messages().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_second_run_at_the_same_time_is_not_sent_and_changes_nothing() {
    let test_env = nap_and_reply();
    let unread = test_env.agent.stream("Never read.");
    let mut stream = test_env.agent.stream("Wait.");
    read_to_call(&mut stream).await;
    let clone = test_env.agent.clone();
    let refused = timeout(Duration::from_secs(1), clone.run("Hi")).await.unwrap();
    let RunOutcome::NotSent { reason } = &refused.outcome else { panic!("{refused:?}") };
    assert!(reason.contains("in progress"), "{reason}");
    assert!(clone.conversation().messages().is_empty(), "the first run has not ended");
    while stream.next().await.is_some() {}
    drop(unread);
    let messages = clone.conversation().messages().to_vec();
    assert_eq!(messages.len(), 4, "{messages:?}");
    assert_eq!(messages[0], Message::User("Wait.".into()));
    assert_eq!(test_env.model.requests().len(), 2);
    assert_eq!(clone.statistics().runs, 1);
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_is_cleared_during_a_run_stays_empty() {
    let test_env = nap_and_reply();
    let mut stream = test_env.agent.stream("Wait.");
    read_to_call(&mut stream).await;
    test_env.agent.clear();
    let refused = test_env.agent.run("Hi").await;
    assert!(matches!(refused.outcome, RunOutcome::NotSent { .. }), "the run goes on: {refused:?}");
    while stream.next().await.is_some() {}
    assert!(test_env.agent.conversation().messages().is_empty());
    test_env.agent.run("Hi").await;
    assert_eq!(test_env.agent.conversation().messages().len(), 1, "the next run is kept");
}

/// A model whose first request panics.
struct PanickingModel(ScriptedProvider);

#[async_trait::async_trait]
impl LlmProvider for PanickingModel {
    async fn generate(&self, request: Request) -> Result<Response, LlmError> {
        let is_first = self.0.requests().is_empty();
        let response = self.0.generate(request).await;
        assert!(!is_first, "as asked");
        response
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn model(&self) -> &str {
        self.0.model()
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_model_does_not_block_the_agent() {
    let script = ScriptedProvider::new([text_reply("unused"), text_reply("Done.")]);
    let model = Arc::new(PanickingModel(script));
    let tools = Arc::new(RecordingTools::default());
    let agent = Agent::new(model, tools, AgentSettings::default());
    let reading = AssertUnwindSafe(agent.stream("Hi").collect::<Vec<_>>());
    assert!(reading.catch_unwind().await.is_err());
    assert_eq!(agent.run("Hi again").await.text, "Done.");
    assert_eq!(agent.conversation().messages().len(), 3);
}
