//! The system prompt with the tools in it.

use std::sync::Arc;

use innkeeper_agent::tools::Running;
use innkeeper_agent::{Chat, Offered, Settings, ToolRunner};
use serde_json::Value;

use crate::setup::{All, Shop};

/// Nobody's tools.
struct Nothing;

impl ToolRunner for Nothing {
    fn offered(&self) -> Vec<Offered> {
        Vec::new()
    }

    fn run<'r>(&'r self, name: &'r str, _: Value) -> Running<'r> {
        panic!("{name} was never offered")
    }
}

/// Proves: S24
#[test]
fn the_system_prompt_gets_every_tool_and_the_rules() {
    let text = Shop::new().chat(Settings::default()).enhance_system_prompt("Be kind.");
    assert!(text.starts_with("Be kind.\n"), "{text}");
    assert!(text.contains("## Available Tools"));
    for offered in Shop::default().offered() {
        assert!(text.contains(&offered.tool.name) && text.contains(&offered.tool.description));
    }
    assert!(text.contains("one complete JSON object"), "{text}");
}

/// Proves: S24
#[test]
fn the_system_prompt_stays_as_it_is_when_that_is_switched_off() {
    let settings = Settings { enhance_system_prompts: false, ..Settings::default() };
    assert_eq!(Shop::new().chat(settings).enhance_system_prompt("Be kind."), "Be kind.");
}

/// Proves: S24
#[test]
fn the_system_prompt_stays_as_it_is_without_tools() {
    let chat = Chat::new(Arc::new(Nothing), Settings::default()).unwrap();
    assert_eq!(chat.enhance_system_prompt("Be kind."), "Be kind.");
}

#[tokio::test]
async fn a_model_that_repeats_its_system_prompt_calls_nothing() {
    let text = Shop::new().chat(Settings::default()).enhance_system_prompt("");
    assert!(All::read([text]).await.executed.is_empty());
}
