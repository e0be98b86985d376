//! The system prompt with tools.

use std::sync::Arc;

use innkeeper_agent::tools::{ToolCallFuture, ToolCallOptions};
use innkeeper_agent::{AvailableTool, Chat, ChatSettings, ToolRunner};
use innkeeper_toolcall::ModelFamily;
use innkeeper_toolcall::prompt::Template;
use serde_json::value::RawValue;

use crate::setup::{CollectedResponse, InMemoryTools, output_text, response_stream};

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

/// Proves: S-b4
#[tokio::test]
async fn the_system_prompt_has_the_form_of_the_models_family_and_its_call_is_executed() {
    let available = InMemoryTools::default().list_tools();
    let tools = available.into_iter().map(|available| available.tool).collect();
    let mut texts = std::collections::BTreeSet::new();
    for (model, call) in [
        ("llama3.1:8b", r#"{"name": "echo", "parameters": {"message": "hi"}}"#),
        ("mistral:7b", r#"[TOOL_CALLS][{"name": "echo", "arguments": {"message": "hi"}}]"#),
        (
            "qwen2.5-coder:7b",
            "<tool_call>\n{\"name\": \"echo\", \"arguments\": {\"message\": \"hi\"}}\n</tool_call>",
        ),
        ("unheard-of", r#"{"tool": "echo", "params": {"message": "hi"}}"#),
    ] {
        let model_family = ModelFamily::for_model(model);
        let settings = ChatSettings { model_family, ..ChatSettings::default() };
        let chat = InMemoryTools::new().chat(settings);
        let text = chat.enhance_system_prompt("Be kind.");
        if model_family != ModelFamily::Generic {
            let template = Template::for_model(model);
            assert_eq!(text, template.system_prompt("Be kind.", &tools).unwrap(), "{model}");
        }
        texts.insert(text);
        let chunks = response_stream([call.to_owned()]);
        let all =
            CollectedResponse::collect(&mut chat.start_run().read_response(chunks).unwrap()).await;
        let executed: Vec<_> = all.executions.iter().map(output_text).collect();
        assert_eq!(executed, [r#"{"message":"hi"}"#], "{model}");
    }
    assert_eq!(texts.len(), 4, "each family has its own form");
}

#[tokio::test]
async fn a_model_that_repeats_its_system_prompt_calls_nothing() {
    let text = InMemoryTools::new().chat(ChatSettings::default()).enhance_system_prompt("");
    assert!(CollectedResponse::from_chunks([text]).await.executions.is_empty());
}
