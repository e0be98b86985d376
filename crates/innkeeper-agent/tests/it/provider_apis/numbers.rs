//! Numbers that APIs and tools cannot read.

use std::sync::Arc;

use innkeeper_agent::agent::{Agent, AgentSettings};
use innkeeper_agent::provider::ProviderApi;
use innkeeper_agent::transport::HttpProvider;
use innkeeper_testkit::{Script, ScriptedLlm, ScriptedReply};

use super::{ChainTools, endpoint};

#[tokio::test]
async fn a_number_outside_the_range_of_a_float_reaches_no_tool_and_does_not_end_the_conversation() {
    // The scripted model sends such a number over these APIs only.
    for (api, streaming) in [
        (ProviderApi::OpenAiChat, false),
        (ProviderApi::OpenAiChat, true),
        (ProviderApi::OpenAiResponses, false),
        (ProviderApi::OpenAiResponses, true),
        (ProviderApi::Anthropic, true),
        (ProviderApi::GeminiInteractions, true),
    ] {
        let call = ScriptedReply::new().with_raw_tool_call("clock.now", r#"{"n":1e400}"#);
        let llm = ScriptedLlm::start(Script::new([call]).then_repeat(ScriptedReply::text("ok")));
        let llm = llm.await;
        let tools = Arc::new(ChainTools::default());
        let provider = Arc::new(HttpProvider::new(endpoint(api, &llm)));
        let agent = Agent::new(provider, tools.clone(), AgentSettings::default());
        for message in ["one", "two"] {
            let result = match streaming {
                true => agent.run_streaming(message, |_| {}).await,
                false => agent.run(message).await,
            };
            assert!(result.is_completed(), "{api:?} {streaming} {message}: {result:?}");
        }
        assert_eq!(*tools.0.lock().unwrap(), [], "{api:?} {streaming}");
        let conversation = agent.conversation();
        let stored = serde_json::to_value(&conversation).unwrap();
        assert_eq!(serde_json::from_value(stored).ok(), Some(conversation), "{api:?} {streaming}");
    }
}
