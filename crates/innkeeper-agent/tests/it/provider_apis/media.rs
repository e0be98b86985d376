//! Images, audio and documents of tool results over the six provider APIs.

use std::sync::Arc;

use innkeeper_agent::agent::{Agent, AgentSettings};
use innkeeper_agent::content::ContentSupport;
use innkeeper_agent::provider::ProviderApi;
use innkeeper_agent::tools::{
    AvailableTool, ToolAnnotations, ToolCallFuture, ToolCallOptions, ToolOutput, ToolRunner,
};
use innkeeper_agent::transport::{Endpoint, HttpProvider};
use innkeeper_testkit::{Script, ScriptedLlm, ScriptedReply};
use innkeeper_toolcall::Tool;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{endpoint, model_name, save_requests};

/// An image of one pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";
const PDF: &str = "JVBERi0xLjQKJSVFT0YK";
const PLACEHOLDER: &str = "[image, image/png, 70 bytes]";

/// A tool with this result.
struct MediaTool(Value);

impl ToolRunner for MediaTool {
    fn list_tools(&self) -> Vec<AvailableTool> {
        let tool = Tool::new("camera.shoot", "Takes a picture.", json!({"type": "object"}));
        vec![AvailableTool::new(tool, ToolAnnotations::default())]
    }

    fn call_tool<'r>(
        &'r self,
        _: &'r str,
        _: Box<RawValue>,
        _: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        let result = serde_json::value::to_raw_value(&self.0).unwrap();
        let is_error = self.0["isError"] == true;
        Box::pin(async move { Ok(ToolOutput::new(result, is_error)) })
    }
}

/// Returns a model of each API that takes images.
fn vision_model(api: ProviderApi) -> &'static str {
    if api == ProviderApi::Ollama { "qwen3-vl:8b" } else { model_name(api) }
}

/// Runs two calls of a tool with these content blocks and returns the body of the last request.
async fn run_tool(
    api: ProviderApi,
    name: &str,
    blocks: Value,
    change: impl FnOnce(&mut Endpoint),
) -> Value {
    run_tool_with_result(api, name, json!({"content": blocks}), change).await
}

/// Runs two calls of a tool with this result and returns the body of the last request.
async fn run_tool_with_result(
    api: ProviderApi,
    name: &str,
    result: Value,
    change: impl FnOnce(&mut Endpoint),
) -> Value {
    let calls = ScriptedReply::tool_call("camera.shoot", json!({}))
        .with_tool_call("camera.shoot", json!({"again": true}));
    let script = Script::new([calls, ScriptedReply::text("A pixel.")]);
    let llm = ScriptedLlm::start(script).await;
    let model = vision_model(api);
    let base_url = endpoint(api, &llm).base_url;
    let mut endpoint = Endpoint { base_url, ..Endpoint::new("test", api, model) };
    change(&mut endpoint);
    let provider = Arc::new(HttpProvider::new(endpoint));
    let agent = Agent::new(provider, Arc::new(MediaTool(result)), AgentSettings::default());
    let report = agent.run("What do you see?").await;
    assert!(report.is_completed(), "{api:?}: {report:?}");
    save_requests(api, name, &llm);
    llm.requests().pop().unwrap().body
}

fn image_blocks() -> Value {
    json!([
        {"type": "text", "text": "before"},
        {"type": "image", "mimeType": "image/png", "data": PNG},
        {"type": "text", "text": "after"},
    ])
}

/// Returns the locations of the strings of a value that contain `text`.
fn locations(value: &Value, text: &str, pointer: &str) -> Vec<String> {
    match value {
        Value::String(string) if string.contains(text) => vec![pointer.to_owned()],
        Value::Array(items) => items
            .iter()
            .enumerate()
            .flat_map(|(at, item)| locations(item, text, &format!("{pointer}/{at}")))
            .collect(),
        Value::Object(members) => members
            .iter()
            .flat_map(|(key, item)| locations(item, text, &format!("{pointer}/{key}")))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

#[tokio::test]
async fn an_image_of_a_tool_reaches_a_model_that_takes_images_over_every_api() {
    for api in ProviderApi::ALL {
        let body = run_tool(api, "image", image_blocks(), |_| {}).await;
        let expected = match api {
            // A tool message is text, so the images follow in a user message.
            ProviderApi::OpenAiChat => {
                ["/messages/4/content/1/image_url/url", "/messages/4/content/3/image_url/url"]
            }
            ProviderApi::OpenAiResponses => {
                ["/input/3/output/1/image_url", "/input/4/output/1/image_url"]
            }
            ProviderApi::Anthropic => [
                "/messages/2/content/0/content/1/source/data",
                "/messages/2/content/1/content/1/source/data",
            ],
            ProviderApi::GeminiGenerate => [
                "/contents/2/parts/0/functionResponse/parts/0/inlineData/data",
                "/contents/2/parts/1/functionResponse/parts/0/inlineData/data",
            ],
            ProviderApi::GeminiInteractions => ["/input/3/result/1/data", "/input/4/result/1/data"],
            ProviderApi::Ollama => ["/messages/4/images/0", "/messages/4/images/1"],
        };
        assert_eq!(locations(&body, PNG, ""), expected, "{api:?}: {body:#}");
    }
}

#[tokio::test]
async fn an_image_of_a_failed_result_follows_in_the_user_message_of_anthropic() {
    let result = json!({"content": image_blocks(), "isError": true});
    let api = ProviderApi::Anthropic;
    let body = run_tool_with_result(api, "image-of-failure", result, |_| {}).await;
    let blocks = &body["messages"][2]["content"];
    for result in [&blocks[0], &blocks[1]] {
        let text = result["content"].as_str().unwrap();
        assert!(text.starts_with(&format!("before\n{PLACEHOLDER}\nafter\n")), "{text}");
        assert_eq!(result["is_error"], json!(true));
    }
    let expected = ["/messages/2/content/3/source/data", "/messages/2/content/5/source/data"];
    assert_eq!(locations(&body, PNG, ""), expected, "{body:#}");
}

#[tokio::test]
async fn a_model_without_images_gets_a_line_of_text_over_every_api() {
    for api in ProviderApi::ALL {
        let body = run_tool(api, "image-as-text", image_blocks(), |endpoint| {
            endpoint.capabilities.content = ContentSupport::default();
        })
        .await;
        assert_eq!(locations(&body, PNG, ""), [""; 0], "{api:?}: {body:#}");
        let places = locations(&body, PLACEHOLDER, "");
        assert_eq!(places.len(), 2, "{api:?}: {body:#}");
        for place in places {
            let text = body.pointer(&place).and_then(Value::as_str);
            assert_eq!(text, Some(&*format!("before\n{PLACEHOLDER}\nafter")), "{api:?} {place}");
        }
    }
}

#[tokio::test]
async fn audio_and_documents_reach_a_model_that_takes_them() {
    let blocks = || {
        json!([
            {"type": "audio", "mimeType": "audio/wav", "data": WAV},
            {
                "type": "resource",
                "resource": {"uri": "f:///a.pdf", "mimeType": "application/pdf", "blob": PDF},
            },
        ])
    };
    for (api, audio, documents) in [
        (ProviderApi::OpenAiChat, 2, 2),
        (ProviderApi::OpenAiResponses, 0, 2),
        (ProviderApi::Anthropic, 0, 2),
        (ProviderApi::GeminiGenerate, 2, 2),
        (ProviderApi::GeminiInteractions, 2, 2),
        (ProviderApi::Ollama, 0, 0),
    ] {
        // No model of OpenAI takes both, but the API does.
        let body = run_tool(api, "media", blocks(), |endpoint| {
            endpoint.capabilities.content.audio = true;
        })
        .await;
        assert_eq!(locations(&body, WAV, "").len(), audio, "{api:?}: {body:#}");
        assert_eq!(locations(&body, PDF, "").len(), documents, "{api:?}: {body:#}");
    }
}
