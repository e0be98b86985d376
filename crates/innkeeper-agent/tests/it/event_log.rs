//! The event log and its analyzer.

use std::path::Path;

use innkeeper_agent::chat::LogConfig;
use innkeeper_agent::chat::event_log::{LogAnalyzer, MAX_LINE_BYTES};
use innkeeper_agent::{Chat, ChatSettings};
use serde_json::{Value, json};

use crate::setup::{
    CollectedResponse, InMemoryTools, call_json, echo_call, response_stream, split_chunks,
};

async fn record_log(path: &Path, classes: bool, metrics: bool) -> Vec<Value> {
    let log_config = LogConfig {
        log_path: Some(path.to_owned()),
        token_classifications: classes,
        performance_metrics: metrics,
    };
    let chat = InMemoryTools::new().chat(ChatSettings { log_config, ..ChatSettings::default() });
    assert!(chat.enhance_system_prompt("x").len() > 1);
    let text = format!("Look: {}\n{} done", echo_call("SECRET"), call_json("fail", &json!({})));
    CollectedResponse::collect(
        &mut chat.start_run().read_response(response_stream(split_chunks(&text, 10))).unwrap(),
    )
    .await;
    let log = std::fs::read_to_string(path).unwrap();
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn event_types(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["event_type"].as_str().unwrap()).collect()
}

/// Proves: S9, S30
#[tokio::test]
async fn every_step_is_a_line_with_its_event_type_once_the_results_have_ended() {
    let dir = tempfile::tempdir().unwrap();
    let lines = record_log(&dir.path().join("log"), false, false).await;
    let mut events = event_types(&lines);
    events.sort_unstable();
    let expected = [
        "ContinuationRequest",
        "ContinuationResponse",
        "PromptEnhancementComplete",
        "PromptEnhancementStart",
        "ToolDetectionComplete",
        "ToolDetectionComplete",
        "ToolDetectionStart",
        "ToolDetectionStart",
        "ToolExecutionComplete",
        "ToolExecutionError",
        "ToolExecutionStart",
        "ToolExecutionStart",
    ];
    assert_eq!(events, expected);
    assert!(lines.iter().all(|line| line["timestamp"].as_u64().unwrap() > 1_600_000_000_000));
    let all = json!(lines).to_string();
    assert!(!all.contains("SECRET"), "what tools are told stays out: {all}");
}

/// Proves: S31
#[tokio::test]
async fn token_classifications_are_logged_only_where_configured() {
    let dir = tempfile::tempdir().unwrap();
    let classes_in = |lines: Vec<Value>| {
        let classes = lines.iter().filter_map(|line| line["details"]["class"].as_str());
        classes.map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(classes_in(record_log(&dir.path().join("a"), false, true).await).is_empty());
    let classes = classes_in(record_log(&dir.path().join("b"), true, false).await);
    for expected in ["narrative", "tool_call", "buffered"] {
        assert!(classes.iter().any(|seen| seen == expected), "{classes:?}");
    }
}

/// Proves: S32
#[tokio::test]
async fn durations_are_logged_only_where_configured() {
    let dir = tempfile::tempdir().unwrap();
    let timed =
        |lines: &[Value]| lines.iter().filter(|line| line.get("duration_ms").is_some()).count();
    let lines = record_log(&dir.path().join("a"), true, false).await;
    assert_eq!(timed(&lines), 0);
    assert!(!event_types(&lines).contains(&"PerformanceMetric"));
    let lines = record_log(&dir.path().join("b"), false, true).await;
    assert_eq!(timed(&lines), 5, "{lines:#?}");
    assert!(event_types(&lines).contains(&"PerformanceMetric"));
}

#[tokio::test]
async fn a_log_is_counted_by_tool_and_lines_that_are_none_are_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    record_log(&path, true, true).await;
    let lines = record_log(&path, false, false).await.len();
    let mut log = std::fs::read_to_string(&path).unwrap();
    log.push_str("not a line\n");
    log.push_str(&"x".repeat(3 * MAX_LINE_BYTES));
    log.push_str("\n\n");
    std::fs::write(&path, log).unwrap();
    let log = LogAnalyzer::from_file(&path).unwrap();
    assert_eq!(log.lines(), lines as u64);
    let stats = log.tool_execution_stats();
    assert_eq!((stats["echo"].calls, stats["echo"].errors), (2, 0));
    assert_eq!((stats["fail"].calls, stats["fail"].errors), (2, 2));
    assert!(stats["echo"].mean_ms.unwrap() >= 0.0);
    assert_eq!((log.unreadable(), log.performance_timeline().count()), (2, 5));
}

#[test]
fn a_log_that_cannot_be_opened_is_an_error_with_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("missing").join("log");
    let log_config = LogConfig { log_path: Some(path.clone()), ..LogConfig::default() };
    let settings = ChatSettings { log_config, ..ChatSettings::default() };
    let error = Chat::new(InMemoryTools::new(), settings).unwrap_err().to_string();
    assert_eq!(error, format!("cannot open log `{}` for writing", path.display()));
    let error = LogAnalyzer::from_file(&path).unwrap_err().to_string();
    assert_eq!(error, format!("cannot read log `{}`", path.display()));
}
