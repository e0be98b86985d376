//! Scripted models: every provider's form, whole and streamed, with failures and refusals.

mod checks;
mod failures;
mod fold;
mod program;
mod script;
mod streams;
mod talk;

use innkeeper_testkit::ScriptedLlm;
use serde_json::Value;

use crate::remote::http::Http;

/// The forms, by the names of their providers.
pub(crate) const WIRES: [&str; 6] =
    ["chat", "responses", "anthropic", "gemini", "interactions", "ollama"];

pub(crate) fn path(wire: &str, streams: bool) -> &'static str {
    match (wire, streams) {
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

/// Posts a conversation, which is to be answered.
pub(crate) async fn post(llm: &ScriptedLlm, wire: &str, streams: bool, body: &Value) -> Http {
    let mut body = body.clone();
    if wire != "gemini" {
        body["stream"] = Value::Bool(streams);
    }
    Http::ask(llm, "POST", path(wire, streams), &[], Some(&body)).await
}
