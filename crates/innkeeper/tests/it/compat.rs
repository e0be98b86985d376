//! Tests of the names of document 001, used as in the document.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use innkeeper::chat::TextSegment;
use innkeeper::compat::{
    ChatIntegrationConfig, ExecutedTool, InstrumentationConfig, McpChatIntegration, McpClient,
    ProcessedToken, STREAMING_FRIENDLY_TOOL_PROMPT, StreamingMode,
};
use innkeeper_testkit::fixture_program;
use serde_json::json;
use tokio::sync::Mutex;

async fn connect_client() -> Arc<Mutex<McpClient>> {
    let program = fixture_program().display().to_string();
    Arc::new(Mutex::new(McpClient::connect(&program, &[]).await.unwrap()))
}

/// Proves: S13, S20
#[test]
fn the_defaults_are_those_of_the_document() {
    let expected = ChatIntegrationConfig {
        streaming_mode: StreamingMode::SmartBuffering { max_buffer_chars: 200 },
        enhance_system_prompts: true,
        max_tool_rounds: 3,
        instrumentation: InstrumentationConfig {
            log_path: None,
            log_token_classifications: false,
            log_performance_metrics: true,
        },
    };
    assert_eq!(ChatIntegrationConfig::default(), expected);
}

/// Proves: S10, S11, S16
#[tokio::test]
async fn the_quick_start_runs_as_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("mcp_debug.log");
    let mcp_client = connect_client().await;
    let config = ChatIntegrationConfig {
        streaming_mode: StreamingMode::SmartBuffering { max_buffer_chars: 150 },
        enhance_system_prompts: true,
        max_tool_rounds: 3,
        instrumentation: InstrumentationConfig {
            log_path: Some(log.to_str().unwrap().to_owned()),
            log_token_classifications: false,
            log_performance_metrics: true,
        },
    };
    let integration = McpChatIntegration::new(mcp_client.clone(), config).await.unwrap();
    let chunks = ["Hm. {\"tool\": \"sleep\", ", "\"params\": {\"ms\": 50}} Done."];
    let token_stream = stream::iter(chunks.map(str::to_owned));
    let mut handle = integration.process_streaming_response(token_stream).await.unwrap();
    let (mut visible_text, mut hidden) = (String::new(), String::new());
    while let Some(token) = handle.token_stream.recv().await {
        match token {
            ProcessedToken::Narrative(text) => visible_text.push_str(&text),
            ProcessedToken::ToolCall(text) => hidden.push_str(&text),
            ProcessedToken::Buffered(_) => {}
        }
    }
    let mut tools = Vec::new();
    while let Some(tool) = handle.tool_stream.recv().await {
        tools.push(tool);
    }
    assert_eq!(visible_text, "Hm.  Done.");
    assert_eq!(hidden, "{\"tool\": \"sleep\", \"params\": {\"ms\": 50}}");
    let [ExecutedTool { tool_name, parameters, result, execution_time_ms, index }] = &tools[..]
    else {
        panic!("{tools:?}")
    };
    assert_eq!((tool_name.as_str(), parameters, *index), ("sleep", &json!({"ms": 50}), 0));
    assert_eq!(result["content"][0]["text"], "slept");
    assert!((50..5_000).contains(execution_time_ms), "{execution_time_ms}");
    assert!(std::fs::read_to_string(&log).unwrap().contains("ToolExecutionComplete"));
    assert!(handle.results_as_message().await.unwrap().contains("slept"));
    mcp_client.lock().await.close().await;
}

/// Proves: S12, S14, S15
#[tokio::test]
async fn every_field_and_variant_reaches_what_it_is_for() {
    let client = connect_client().await;
    let dir = tempfile::tempdir().unwrap();
    let placeholder_text = "[…]".to_owned();
    let modes = [
        (StreamingMode::SmartBuffering { max_buffer_chars: 200 }, "a  b"),
        (StreamingMode::WithPlaceholders { placeholder_text }, "a […] b"),
        (StreamingMode::Passthrough, "a {\"tool\": \"pid\", \"params\": {}} b"),
    ];
    for (number, (streaming_mode, expected)) in modes.into_iter().enumerate() {
        let log = dir.path().join(format!("log {number}"));
        let config = ChatIntegrationConfig {
            streaming_mode,
            enhance_system_prompts: false,
            max_tool_rounds: 0,
            instrumentation: InstrumentationConfig {
                log_path: Some(log.to_str().unwrap().to_owned()),
                log_token_classifications: true,
                log_performance_metrics: false,
            },
        };
        let integration = McpChatIntegration::new(client.clone(), config).await.unwrap();
        assert_eq!(integration.enhance_system_prompt("x"), "x");
        let said = stream::iter(["a {\"tool\": \"pid\", \"params\": {}} b".to_owned()]);
        let mut handle = integration.process_streaming_response(said).await.unwrap();
        let mut visible_text = String::new();
        while let Some(token) = handle.token_stream.recv().await {
            if let ProcessedToken::Narrative(text) = token {
                visible_text.push_str(&text);
            }
        }
        assert_eq!(visible_text, expected);
        assert!(handle.tool_stream.recv().await.is_none(), "no rounds, no calls");
        assert_eq!(handle.results_as_message().await, None);
        let log = std::fs::read_to_string(&log).unwrap();
        assert!(log.contains("TokenClassification") && !log.contains("duration_ms"), "{log}");
    }
    client.lock().await.close().await;
}

/// The text of the segments of a response is the text of the model.
/// Proves: S17
#[test]
fn the_tokens_of_a_segment_have_its_text_and_buffered_text_has_a_token_of_its_own() {
    let text = || "some text".to_owned();
    let rejected = TextSegment::RejectedCall { text: text(), reason: "no such tool".to_owned() };
    for (segment, expected) in [
        (TextSegment::Narrative(text()), ProcessedToken::Narrative(text())),
        (TextSegment::Reasoning(text()), ProcessedToken::Narrative(text())),
        (rejected, ProcessedToken::Narrative(text())),
        (TextSegment::ToolCall(text()), ProcessedToken::ToolCall(text())),
    ] {
        assert_eq!(segment.text(), text());
        assert_eq!(ProcessedToken::from(segment), expected);
    }
    let buffered = TextSegment::Buffered(text());
    assert_eq!(buffered.text(), "", "the text comes again");
    assert_eq!(ProcessedToken::from(buffered), ProcessedToken::Buffered(text()));
}

/// Proves: S3
#[tokio::test]
async fn connecting_shakes_hands_and_initialize_may_be_called_again_and_again() {
    let client = connect_client().await;
    let client = client.lock().await;
    for _ in 0..3 {
        let info = client.initialize("app", "1.0").await.unwrap();
        assert_eq!(info["name"], "fx", "{info}");
    }
    let output = client.call_tool("echo", json!({"message": "x"})).await.unwrap();
    assert!(output.raw().get().contains("\"x\""));
    client.close().await;
}

#[tokio::test]
async fn a_failed_call_is_a_result_with_an_error_and_the_lock_is_never_held() {
    let client = connect_client().await;
    let config = ChatIntegrationConfig::default();
    let integration = McpChatIntegration::new(client.clone(), config).await.unwrap();
    assert!(integration.enhance_system_prompt("x").contains(STREAMING_FRIENDLY_TOOL_PROMPT));
    let guard = client.lock().await;
    let said = stream::iter(["{\"tool\": \"add\", \"params\": {\"a\": 1}}".to_owned()]);
    let mut handle = integration.process_streaming_response(said).await.unwrap();
    let received = tokio::time::timeout(Duration::from_secs(20), handle.tool_stream.recv());
    let tool = received.await.unwrap().unwrap();
    let error = tool.result["error"].as_str().unwrap();
    assert!(error.starts_with("invalid arguments for `add`: "), "{error}");
    guard.close().await;
}
