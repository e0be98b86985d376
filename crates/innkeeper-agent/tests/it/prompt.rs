//! The system prompt with tools.

use std::sync::Arc;

use innkeeper_agent::tools::{ToolCallFuture, ToolCallOptions};
use innkeeper_agent::{AvailableTool, Chat, ChatSettings, ToolRunner};
use serde_json::value::RawValue;

use crate::setup::{CollectedResponse, InMemoryTools};

/// A runner without tools.
struct NoTools;

impl ToolRunner for NoTools {
    fn list_tools(&self) -> Vec<AvailableTool> {
        Vec::new()
    }

    fn call_tool<'r>(
        &'r self,
        name: &'r str,
        _: Box<RawValue>,
        _: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        panic!("{name} was never offered")
    }
}

/// Proves: S24
#[test]
fn the_system_prompt_gets_every_tool_and_the_rules() {
    let text = InMemoryTools::new().chat(ChatSettings::default()).enhance_system_prompt("Be kind.");
    assert!(text.starts_with("Be kind.\n"), "{text}");
    assert!(text.contains("## Available Tools"));
    for available in InMemoryTools::default().list_tools() {
        assert!(text.contains(&available.tool.name) && text.contains(&available.tool.description));
    }
    assert!(text.contains("one complete JSON object"), "{text}");
}

/// Proves: S24
#[test]
fn the_system_prompt_stays_as_it_is_when_that_is_switched_off() {
    let settings = ChatSettings { enhance_system_prompts: false, ..ChatSettings::default() };
    assert_eq!(InMemoryTools::new().chat(settings).enhance_system_prompt("Be kind."), "Be kind.");
}

/// Proves: S24
#[test]
fn the_system_prompt_stays_as_it_is_without_tools() {
    let chat = Chat::new(Arc::new(NoTools), ChatSettings::default()).unwrap();
    assert_eq!(chat.enhance_system_prompt("Be kind."), "Be kind.");
}

#[tokio::test]
async fn a_model_that_repeats_its_system_prompt_calls_nothing() {
    let text = InMemoryTools::new().chat(ChatSettings::default()).enhance_system_prompt("");
    assert!(CollectedResponse::from_chunks([text]).await.executions.is_empty());
}
