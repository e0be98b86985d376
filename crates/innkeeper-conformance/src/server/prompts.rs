//! The results of prompts, after their input.

use serde_json::{Value, json};

use super::call::Responses;
use super::items::CHANGING_PROMPT;
use super::message::{Outcome, Request, RpcError};
use super::resources::{PNG, text_content};

/// Returns the result of `prompts/get`.
pub(crate) fn get(request: &Request, responses: &Responses) -> Outcome {
    let messages = match request.text("name") {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let first = request.argument("arg1");
            let second = request.argument("arg2");
            vec![text(&format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))]
        }
        "test_prompt_with_embedded_resource" => {
            let uri = request.argument("resourceUri");
            let resource = text_content(uri, "Embedded resource content for testing.");
            vec![
                message(&json!({ "type": "resource", "resource": resource })),
                text("Please process the embedded resource above."),
            ]
        }
        "test_prompt_with_image" => vec![
            message(&json!({ "type": "image", "data": PNG, "mimeType": "image/png" })),
            text("Please analyze the image above."),
        ],
        "test_input_required_result_prompt" => {
            let context = &responses["user_context"]["content"]["context"];
            vec![text(&format!("Use this context: {context}"))]
        }
        CHANGING_PROMPT => vec![text("This prompt is in the list at times.")],
        _ => return Err(RpcError::invalid_params("unknown prompt")),
    };
    Ok(json!({ "messages": messages }))
}

fn message(content: &Value) -> Value {
    json!({ "role": "user", "content": content })
}

fn text(text: &str) -> Value {
    message(&json!({ "type": "text", "text": text }))
}
