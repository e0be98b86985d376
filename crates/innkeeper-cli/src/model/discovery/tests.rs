//! Tests with servers that respond like real servers, unresponsive servers, and API keys.

use std::time::Instant;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::*;

/// A server that responds with JSON to known paths and with status 404 to others, until dropped.
struct HttpStub {
    port: u16,
    task: JoinHandle<()>,
}

impl Drop for HttpStub {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[expect(clippy::disallowed_methods, reason = "the returned value owns the task")]
async fn start_http_stub(paths: &'static [(&'static str, &'static str)]) -> HttpStub {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") && stream.read_buf(&mut head).await.unwrap() > 0 {}
            let head = String::from_utf8(head).unwrap();
            let route = paths.iter().find(|(path, _)| head.starts_with(&format!("GET {path} ")));
            let (status, body) = route.map_or(("404 Not Found", ""), |(_, body)| ("200 OK", *body));
            let length = body.len();
            let response = format!(
                "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
            );
            stream.write_all(response.as_bytes()).await.unwrap();
        }
    });
    HttpStub { port, task }
}

/// Returns a port without a listener.
fn closed_port() -> u16 {
    std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

fn unreachable_options(environment: &Environment) -> DiscoveryOptions<'_> {
    DiscoveryOptions {
        ollama_port: closed_port(),
        llama_server_port: closed_port(),
        lm_studio_port: closed_port(),
        ..DiscoveryOptions::with_default_ports(environment, None)
    }
}

fn commands(sources: &ModelSources) -> Vec<String> {
    sources.available.iter().map(ModelSource::command).collect()
}

#[tokio::test]
async fn servers_that_respond_are_found_with_a_model_and_the_command_to_type() {
    let ollama =
        start_http_stub(&[("/api/tags", r#"{"models":[{"name":"qwen3:4b"},{"name":"b"}]}"#)]).await;
    let llama = start_http_stub(&[
        ("/health", r#"{"status":"ok"}"#),
        ("/v1/models", r#"{"data":[{"id":"a; rm -rf"}]}"#),
    ])
    .await;
    let studio = start_http_stub(&[("/v1/models", r#"{"data":[{"id":"smollm2-135m"}]}"#)]).await;
    let environment = Environment::default();
    let options = DiscoveryOptions {
        ollama_port: ollama.port,
        llama_server_port: llama.port,
        lm_studio_port: studio.port,
        ..unreachable_options(&environment)
    };
    let sources = discover_models(&options).await;
    let ask_command = "innkeeper ask --demo \"What do the files say about wine?\" --provider";
    let command_for = |port: u16, model: &str| {
        format!(
            "{ask_command} openai-compatible --base-url http://127.0.0.1:{port}/v1 --model {model}"
        )
    };
    assert_eq!(
        commands(&sources),
        [
            format!("{ask_command} ollama --model qwen3:4b"),
            command_for(llama.port, "NAME"),
            command_for(studio.port, "smollm2-135m"),
        ]
    );
    assert!(!sources.suggestions.iter().any(|line| line.contains("Ollama")), "{sources:?}");
}

#[tokio::test]
async fn other_responses_or_none_are_no_model_and_cost_little_time() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let healthy =
        start_http_stub(&[("/health", r#"{"status":"ok"}"#), ("/v1/models", "<html>")]).await;
    let other = start_http_stub(&[("/v1/models", "[]")]).await;
    let environment = Environment::default();
    let options = DiscoveryOptions {
        ollama_port: silent.local_addr().unwrap().port(),
        llama_server_port: healthy.port,
        lm_studio_port: other.port,
        ..unreachable_options(&environment)
    };
    #[expect(clippy::disallowed_methods, reason = "measures the real duration")]
    let started = Instant::now();
    assert_eq!(discover_models(&options).await.available, []);
    let took = started.elapsed();
    assert!(took >= PROBE_TIMEOUT && took < PROBE_TIMEOUT * 10, "{took:?}");
}

#[tokio::test]
async fn keys_are_found_by_their_names_and_missing_ones_are_suggested() {
    let pairs = [("OPENAI_API_KEY", "k"), ("GOOGLE_API_KEY", "k"), ("ANTHROPIC_API_KEY", " ")];
    let environment = Environment::from_pairs(pairs);
    let sources = discover_models(&unreachable_options(&environment)).await;
    let variables: Vec<String> = sources.available.iter().map(ToString::to_string).collect();
    assert_eq!(variables, ["`OPENAI_API_KEY` is set", "`GOOGLE_API_KEY` is set"]);
    let suggestions = sources.suggestions.join("\n");
    assert!(suggestions.contains("`ANTHROPIC_API_KEY=… innkeeper ask"), "{suggestions}");
    assert!(
        !suggestions.contains("OPENAI_API_KEY") && !suggestions.contains("GEMINI_API_KEY"),
        "{suggestions}"
    );
    let both = Environment::from_pairs([("GEMINI_API_KEY", "k"), ("GOOGLE_API_KEY", "k")]);
    assert_eq!(find_api_keys(&both).len(), 1);
}

/// Attack: terminal | the name of a model contains shell syntax or starts with `-` | the name is
/// not part of the suggested command | Foreign text stays text
#[test]
fn a_name_is_shown_up_to_its_limit_and_only_if_it_is_shell_safe() {
    let name_from = |text: &str| shell_safe_name(Some(&json!(text)));
    assert_eq!(name_from("lib/qwen3:4b-q4_K_M").as_deref(), Some("lib/qwen3:4b-q4_K_M"));
    for bad in ["", "a b", "$(id)", "a`b", "--flag", "é"] {
        assert_eq!(name_from(bad), None, "{bad}");
    }
    assert!(name_from(&"x".repeat(MAX_MODEL_NAME_BYTES)).is_some());
    assert!(name_from(&"x".repeat(MAX_MODEL_NAME_BYTES + 1)).is_none());
    assert_eq!(shell_safe_name(Some(&json!(7))), None);
}
