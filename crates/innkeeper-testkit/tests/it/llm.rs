//! Tests of scripted models: every API, streamed and not, with failures and rejections.

mod checks;
mod conversation;
mod failures;
mod normalized_reply;
mod program;
mod script;
mod streams;

use innkeeper_testkit::ScriptedLlm;
use serde_json::Value;

use crate::remote::http::HttpExchange;

/// The names of the APIs.
pub(crate) const APIS: [&str; 6] =
    ["chat", "responses", "anthropic", "gemini", "interactions", "ollama"];

pub(crate) fn api_path(api: &str, streams: bool) -> &'static str {
    match (api, streams) {
        ("chat", _) => "/v1/chat/completions",
        ("responses", _) => "/v1/responses",
        ("anthropic", _) => "/v1/messages",
        ("gemini", false) => "/v1beta/models/gemini-4-argon:generateContent",
        ("gemini", true) => "/v1beta/models/gemini-4-argon:streamGenerateContent?alt=sse",
        ("interactions", _) => "/v1beta/interactions",
        ("ollama", _) => "/api/chat",
        (other, _) => panic!("no wire `{other}`"),
    }
}

/// Posts a conversation and returns the response.
pub(crate) async fn post_json(
    llm: &ScriptedLlm,
    api: &str,
    streams: bool,
    body: &Value,
) -> HttpExchange {
    let mut body = body.clone();
    if api != "gemini" {
        body["stream"] = Value::Bool(streams);
    }
    HttpExchange::request(llm, "POST", api_path(api, streams), &[], Some(&body)).await
}
