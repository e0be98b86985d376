//! The results of tools, after their input.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::call::Responses;
use super::items::CHANGING_TOOL;
use super::message::{Outcome, Request, RpcError};
use super::resources::{PNG, json_content, text_content};
use super::server::Server;

/// A WAV file without samples, in Base64.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// The time between two notifications of a call.
const STEP: Duration = Duration::from_millis(50);

/// Returns the result of `tools/call`.
pub(crate) async fn call(server: &Server, request: &Request, responses: &Responses) -> Outcome {
    let name = request.text("name");
    let content = match name {
        "test_simple_text" => vec![text("This is a simple text response for testing.")],
        CHANGING_TOOL => vec![text("This tool is in the list at times.")],
        "test_image_content" => vec![image()],
        "test_audio_content" => {
            vec![json!({ "type": "audio", "data": WAV, "mimeType": "audio/wav" })]
        }
        "test_embedded_resource" => {
            let uri = "test://embedded-resource";
            vec![resource(&text_content(uri, "This is an embedded resource content."))]
        }
        "test_multiple_content_types" => {
            let value = json!({ "test": "data", "value": 123 });
            let mixed = json_content("test://mixed-content-resource", &value);
            vec![text("Multiple content types test:"), image(), resource(&mixed)]
        }
        "test_error_handling" => {
            let content = text("This tool intentionally returns an error for testing");
            return Ok(json!({ "content": [content], "isError": true }));
        }
        "test_tool_with_logging" => {
            for words in ["started", "processes data", "completed"] {
                server.log(request, &format!("Tool execution {words}"));
                sleep(STEP).await;
            }
            vec![text("Three log messages were sent.")]
        }
        "test_logging_tool" => {
            server.log(request, "The tool runs");
            vec![text("One log message was sent, if the request allows it.")]
        }
        "test_tool_with_progress" => {
            for progress in [0, 50, 100] {
                server.report_progress(request, progress);
                sleep(STEP).await;
            }
            vec![text("The progress was reported.")]
        }
        "test_reconnection" => {
            sleep(2 * STEP).await;
            vec![text("The client received this after some time.")]
        }
        "test_trigger_tool_change" => {
            server.change_tools();
            vec![text("The list of tools has changed.")]
        }
        "test_trigger_prompt_change" => {
            server.change_prompts();
            vec![text("The list of prompts has changed.")]
        }
        "test_header_parameter" => {
            vec![text(&format!("The region is {}.", request.argument("region")))]
        }
        "json_schema_2020_12_tool" => vec![text(&request.params["arguments"].to_string())],
        "test_input_required_result_request_state" => vec![text("state-ok")],
        _ if !responses.is_empty() || is_answered(name) => vec![text(&describe(responses))],
        _ => return Err(RpcError::invalid_params("unknown tool")),
    };
    Ok(json!({ "content": content }))
}

/// Returns whether the tool completes although the client gave none of its input.
fn is_answered(name: &str) -> bool {
    name == "test_input_required_result_capabilities"
}

fn describe(responses: &Responses) -> String {
    let lines = responses.iter().map(|(key, response)| {
        let answer = [&response["content"], &response["roots"]].into_iter().find(|v| !v.is_null());
        let action = response["action"].as_str().unwrap_or("accept");
        format!("{key}: action={action}, content={}", answer.unwrap_or(&Value::Null))
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn image() -> Value {
    json!({ "type": "image", "data": PNG, "mimeType": "image/png" })
}

fn resource(contents: &Value) -> Value {
    json!({ "type": "resource", "resource": contents })
}
