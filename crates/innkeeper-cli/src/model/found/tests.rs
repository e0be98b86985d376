//! Servers that answer as the real ones do, others that do not, and keys.

use std::time::Instant;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::*;

/// Answers each path with JSON, and others with status 404, until it is dropped.
struct Answering {
    port: u16,
    task: JoinHandle<()>,
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[expect(clippy::disallowed_methods, reason = "owned by what is given back")]
async fn answering(paths: &'static [(&'static str, &'static str)]) -> Answering {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") && stream.read_buf(&mut head).await.unwrap() > 0 {}
            let head = String::from_utf8(head).unwrap();
            let found = paths.iter().find(|(path, _)| head.starts_with(&format!("GET {path} ")));
            let (status, body) = found.map_or(("404 Not Found", ""), |(_, body)| ("200 OK", *body));
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    Answering { port, task }
}

/// A port at which nobody listens.
fn closed() -> u16 {
    std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

fn nowhere(environment: &Environment) -> Look<'_> {
    Look {
        ollama: closed(),
        llama_server: closed(),
        lm_studio: closed(),
        ..Look::usual(environment, None)
    }
}

fn commands(ways: &Ways) -> Vec<String> {
    ways.found.iter().map(Way::command).collect()
}

#[tokio::test]
async fn servers_that_answer_are_found_with_a_model_and_the_command_to_type() {
    let ollama =
        answering(&[("/api/tags", r#"{"models":[{"name":"qwen3:4b"},{"name":"b"}]}"#)]).await;
    let llama = answering(&[
        ("/health", r#"{"status":"ok"}"#),
        ("/v1/models", r#"{"data":[{"id":"a; rm -rf"}]}"#),
    ])
    .await;
    let studio = answering(&[("/v1/models", r#"{"data":[{"id":"smollm2-135m"}]}"#)]).await;
    let environment = Environment::default();
    let look = Look {
        ollama: ollama.port,
        llama_server: llama.port,
        lm_studio: studio.port,
        ..nowhere(&environment)
    };
    let ways = found_models(&look).await;
    let ask = "innkeeper ask --demo \"What do the files say about wine?\" --provider";
    let own = |port: u16, model: &str| {
        format!("{ask} openai-compatible --base-url http://127.0.0.1:{port}/v1 --model {model}")
    };
    assert_eq!(
        commands(&ways),
        [
            format!("{ask} ollama --model qwen3:4b"),
            own(llama.port, "NAME"),
            own(studio.port, "smollm2-135m"),
        ]
    );
    assert!(!ways.possible.iter().any(|line| line.contains("Ollama")), "{ways:?}");
}

#[tokio::test]
async fn what_answers_otherwise_or_not_at_all_is_no_model_and_costs_little_time() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let healthy = answering(&[("/health", r#"{"status":"ok"}"#), ("/v1/models", "<html>")]).await;
    let other = answering(&[("/v1/models", "[]")]).await;
    let environment = Environment::default();
    let look = Look {
        ollama: silent.local_addr().unwrap().port(),
        llama_server: healthy.port,
        lm_studio: other.port,
        ..nowhere(&environment)
    };
    #[expect(clippy::disallowed_methods, reason = "how long it really takes is looked at")]
    let began = Instant::now();
    assert_eq!(found_models(&look).await.found, []);
    let took = began.elapsed();
    assert!(took >= ANSWER && took < ANSWER * 10, "{took:?}");
}

#[tokio::test]
async fn keys_are_found_by_their_names_and_what_is_missing_is_told() {
    let pairs = [("OPENAI_API_KEY", "k"), ("GOOGLE_API_KEY", "k"), ("ANTHROPIC_API_KEY", " ")];
    let environment = Environment::from_pairs(pairs);
    let ways = found_models(&nowhere(&environment)).await;
    let variables: Vec<String> = ways.found.iter().map(ToString::to_string).collect();
    assert_eq!(variables, ["`OPENAI_API_KEY` is set", "`GOOGLE_API_KEY` is set"]);
    let told = ways.possible.join("\n");
    assert!(told.contains("`ANTHROPIC_API_KEY=… innkeeper ask"), "{told}");
    assert!(!told.contains("OPENAI_API_KEY") && !told.contains("GEMINI_API_KEY"), "{told}");
    let both = Environment::from_pairs([("GEMINI_API_KEY", "k"), ("GOOGLE_API_KEY", "k")]);
    assert_eq!(keys(&both).len(), 1);
}

#[test]
fn a_name_is_shown_up_to_its_limit_and_only_if_it_can_be_typed_as_it_is() {
    let said = |text: &str| name(Some(&json!(text)));
    assert_eq!(said("lib/qwen3:4b-q4_K_M").as_deref(), Some("lib/qwen3:4b-q4_K_M"));
    for bad in ["", "a b", "$(id)", "a`b", "--flag", "é"] {
        assert_eq!(said(bad), None, "{bad}");
    }
    assert!(said(&"x".repeat(NAME)).is_some());
    assert!(said(&"x".repeat(NAME + 1)).is_none());
    assert_eq!(name(Some(&json!(7))), None);
}
