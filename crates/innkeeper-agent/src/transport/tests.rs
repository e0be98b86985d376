//! Tests of providers over a client in memory.

mod bodies;
mod client_errors;
mod deadlines;
mod requests;
mod responses;

use std::sync::Arc;

use innkeeper_host::config::Secret;
use serde_json::Value;

use super::in_memory::InMemoryClient;
use super::{Endpoint, HttpProvider};
use crate::conversation::Message;
use crate::provider::{ProviderApi, Request};

/// The secret that no output may contain.
const KEY: &str = "sk-planted-0123456789";

fn model_name(api: ProviderApi) -> &'static str {
    match api {
        ProviderApi::OpenAiChat => "gpt-4.1",
        ProviderApi::OpenAiResponses => "gpt-6.1-terra",
        ProviderApi::Anthropic => "claude-opus-5-5",
        ProviderApi::GeminiGenerate => "gemini-3.8-flash",
        ProviderApi::GeminiInteractions => "gemini-4-argon",
        ProviderApi::Ollama => "qwen3:8b",
    }
}

fn endpoint(api: ProviderApi) -> Endpoint {
    let base_url = "https://user:password@models.test/base/".to_owned();
    Endpoint {
        base_url,
        key: Some(Secret::new(KEY)),
        ..Endpoint::new("test", api, model_name(api))
    }
}

fn provider(api: ProviderApi, client: &Arc<InMemoryClient>) -> HttpProvider {
    HttpProvider::with_client(endpoint(api), client.clone())
}

fn request(text: &str) -> Request {
    Request { messages: vec![Message::User(text.into())], ..Request::default() }
}

fn parse_body(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap()
}

/// Returns an error with all its sources.
fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(" <- {cause} {cause:?}"));
        source = cause.source();
    }
    text
}
