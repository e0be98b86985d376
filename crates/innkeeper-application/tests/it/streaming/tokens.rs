//! Tests of the tokens and the tool executions of a response, with the names of document 001.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _, stream};
use gamecode_mcp_client::McpClient;
use gamecode_mcp_host::{ChatIntegrationConfig, McpChatIntegration, ProcessedToken, StreamingMode};
use innkeeper_testkit::{Journal, fixture_program};
use serde_json::json;
use tokio::sync::{Mutex, mpsc};

/// Limit of a wait for a token, a tool or a request.
const TIMEOUT: Duration = Duration::from_secs(20);

const PID_CALL: &str = "{\"tool\": \"pid\", \"params\": {}}";

async fn integration(args: &[&str], config: ChatIntegrationConfig) -> McpChatIntegration {
    let program = fixture_program().display().to_string();
    let client = McpClient::connect(&program, args).await.unwrap();
    McpChatIntegration::new(Arc::new(Mutex::new(client)), config).await.unwrap()
}

fn config(streaming_mode: StreamingMode) -> ChatIntegrationConfig {
    ChatIntegrationConfig { streaming_mode, ..ChatIntegrationConfig::default() }
}

/// Returns a sender of tokens, and the open stream of these tokens.
fn open_stream() -> (mpsc::Sender<String>, impl Stream<Item = String> + Send + Unpin + 'static) {
    let (sender, receiver) = mpsc::channel(16);
    let tokens = stream::unfold(receiver, async |mut receiver| {
        receiver.recv().await.map(|token| (token, receiver))
    });
    (sender, tokens.boxed())
}

/// The narrative, the hidden text and the names of the executed tools of a response.
async fn read(integration: &McpChatIntegration, chunks: &[&str]) -> (String, String, Vec<String>) {
    let chunks: Vec<String> = chunks.iter().map(|chunk| (*chunk).to_owned()).collect();
    let mut handle = integration.process_streaming_response(stream::iter(chunks)).await.unwrap();
    let (mut narrative, mut hidden, mut tools) = (String::new(), String::new(), Vec::new());
    while let Some(token) = handle.token_stream.recv().await {
        match token {
            ProcessedToken::Narrative(text) => narrative.push_str(&text),
            ProcessedToken::ToolCall(text) => hidden.push_str(&text),
            ProcessedToken::Buffered(_) => {}
        }
    }
    while let Some(tool) = handle.tool_stream.recv().await {
        tools.push(tool.tool_name);
    }
    let _ = handle.results_as_message().await;
    (narrative, hidden, tools)
}

/// Proves: S27
#[tokio::test]
async fn a_call_in_one_chunk_with_the_text_around_it_is_hidden_and_executed() {
    let integration = integration(&[], ChatIntegrationConfig::default()).await;
    for (before, after) in [("", ""), ("I'll use ", " to help."), ("One.\n\n", "\n\nTwo.")] {
        let (narrative, hidden, tools) =
            read(&integration, &[&format!("{before}{PID_CALL}{after}")]).await;
        assert_eq!((narrative, hidden), (format!("{before}{after}"), PID_CALL.to_owned()));
        assert_eq!(tools, ["pid"]);
        integration.reset();
    }
}

/// Proves: S46
#[tokio::test]
async fn an_unfinished_call_at_the_end_is_narrative_and_is_not_executed() {
    let integration = integration(&[], ChatIntegrationConfig::default()).await;
    for text in ["Hm. {\"tool\": \"pid\", \"params\": {", "Hm. <tool_call>{\"name\": \"pid\""] {
        let (narrative, hidden, tools) = read(&integration, &[text]).await;
        assert_eq!((narrative.as_str(), hidden.as_str()), (text, ""));
        assert_eq!(tools, Vec::<String>::new());
    }
}

/// Proves: S44
#[tokio::test]
async fn text_above_max_buffer_chars_is_narrative_before_the_response_ends() {
    let text = "{\"tool\": \"no such tool of th";
    for (max_buffer_chars, is_narrative) in [(text.len() - 1, true), (text.len(), false)] {
        let mode = StreamingMode::SmartBuffering { max_buffer_chars };
        let integration = integration(&[], config(mode)).await;
        let (sender, tokens) = open_stream();
        let mut handle = integration.process_streaming_response(tokens).await.unwrap();
        sender.send(text.to_owned()).await.unwrap();
        let token = tokio::time::timeout(TIMEOUT, handle.token_stream.recv()).await.unwrap();
        let expected = match is_narrative {
            true => ProcessedToken::Narrative(text[..max_buffer_chars].to_owned()),
            false => ProcessedToken::Buffered(text.to_owned()),
        };
        assert_eq!(token, Some(expected), "{max_buffer_chars}");
    }
}

/// Proves: S42
#[tokio::test]
async fn the_calls_after_max_tool_rounds_are_not_executed() {
    for max_tool_rounds in [0, 1, 3] {
        let config = ChatIntegrationConfig { max_tool_rounds, ..ChatIntegrationConfig::default() };
        let integration = integration(&[], config).await;
        for round in 0..=max_tool_rounds {
            let (_, hidden, tools) = read(&integration, &[PID_CALL]).await;
            assert_eq!(hidden, PID_CALL);
            assert_eq!(tools.len(), usize::from(round < max_tool_rounds), "round {round}");
        }
    }
}

/// Proves: S42
#[tokio::test]
async fn a_model_that_always_calls_a_tool_is_asked_once_more_than_max_tool_rounds() {
    let integration = integration(&[], ChatIntegrationConfig::default()).await;
    let mut requests = 0;
    let mut request_model = |_: Option<String>| {
        requests += 1;
        async { Ok::<_, Infallible>(stream::iter([PID_CALL.to_owned()])) }
    };
    let run = integration.run_rounds(&mut request_model, |_| {}).await.unwrap();
    assert_eq!((requests, run.executions.len()), (4, 3));
}

/// Proves: S23, S18
#[tokio::test]
async fn a_placeholder_replaces_the_call_and_the_tool_runs_before_the_response_ends() {
    let placeholder_text = "[one moment]".to_owned();
    let mode = StreamingMode::WithPlaceholders { placeholder_text };
    let integration = integration(&[], config(mode)).await;
    let (sender, tokens) = open_stream();
    let mut handle = integration.process_streaming_response(tokens).await.unwrap();
    sender.send("a {\"tool\": \"sleep\", \"params\": {\"ms\": 30}} b".to_owned()).await.unwrap();
    let tool = tokio::time::timeout(TIMEOUT, handle.tool_stream.recv()).await.unwrap().unwrap();
    assert_eq!((tool.tool_name.as_str(), &tool.parameters), ("sleep", &json!({"ms": 30})));
    assert!(tool.execution_time_ms >= 30, "{}", tool.execution_time_ms);
    // The response ends only now.
    drop(sender);
    let mut narrative = String::new();
    while let Some(token) = handle.token_stream.recv().await {
        if let ProcessedToken::Narrative(text) = token {
            narrative.push_str(&text);
        }
    }
    assert_eq!(narrative, "a [one moment] b");
}

/// Proves: S19
#[tokio::test]
async fn an_application_may_read_all_tokens_before_the_first_tool() {
    let integration = integration(&[], ChatIntegrationConfig::default()).await;
    let chunks: Vec<String> = (0..300).map(|at| format!("text {at}\n{PID_CALL}\n")).collect();
    let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
    let (narrative, _, tools) =
        tokio::time::timeout(TIMEOUT, read(&integration, &chunks)).await.unwrap();
    assert_eq!(narrative.matches("text ").count(), 300);
    assert_eq!(tools.len(), 300);
}

/// Proves: S43
#[tokio::test]
async fn the_second_tool_starts_while_the_first_one_runs() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("journal");
    let args = ["--hang-calls", "--journal", journal.to_str().unwrap()];
    let integration = integration(&args, ChatIntegrationConfig::default()).await;
    let said = stream::iter([format!("{PID_CALL}\n{PID_CALL}")]);
    let handle = integration.process_streaming_response(said).await.unwrap();
    let is_parallel = |journal: &Journal| journal.count("tools/call") == 2;
    Journal::wait_for(Path::new(&journal), TIMEOUT, is_parallel).await;
    drop(handle);
}
