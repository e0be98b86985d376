//! The log: which lines are in it, and what is made of them.

use std::path::Path;

use innkeeper_agent::chat::Recording;
use innkeeper_agent::chat::record::{LINE, LogAnalyzer};
use innkeeper_agent::{Chat, Settings};
use serde_json::{Value, json};

use crate::setup::{All, Shop, answer_of, call, cut, echo};

async fn recorded(path: &Path, classes: bool, metrics: bool) -> Vec<Value> {
    let recording = Recording {
        log_path: Some(path.to_owned()),
        token_classifications: classes,
        performance_metrics: metrics,
    };
    let chat = Shop::new().chat(Settings { recording, ..Settings::default() });
    assert!(chat.enhance_system_prompt("x").len() > 1);
    let text = format!("Look: {}\n{} done", echo("SECRET"), call("fail", &json!({})));
    All::of(&mut chat.turn().answer(answer_of(cut(&text, 10))).unwrap()).await;
    let log = std::fs::read_to_string(path).unwrap();
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn kinds(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["event_type"].as_str().unwrap()).collect()
}

/// Proves: S9, S30
#[tokio::test]
async fn every_step_is_a_line_with_its_event_type_once_the_results_have_ended() {
    let folder = tempfile::tempdir().unwrap();
    let lines = recorded(&folder.path().join("log"), false, false).await;
    let mut seen = kinds(&lines);
    seen.sort_unstable();
    let wanted = [
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
    assert_eq!(seen, wanted);
    assert!(lines.iter().all(|line| line["timestamp"].as_u64().unwrap() > 1_600_000_000_000));
    let all = json!(lines).to_string();
    assert!(!all.contains("SECRET"), "what tools are told stays out: {all}");
}

/// Proves: S31
#[tokio::test]
async fn classes_of_tokens_are_told_only_where_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let of = |lines: Vec<Value>| {
        let classes = lines.iter().filter_map(|line| line["details"]["class"].as_str());
        classes.map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(of(recorded(&folder.path().join("a"), false, true).await).is_empty());
    let classes = of(recorded(&folder.path().join("b"), true, false).await);
    for class in ["narrative", "tool_call", "buffered"] {
        assert!(classes.iter().any(|seen| seen == class), "{classes:?}");
    }
}

/// Proves: S32
#[tokio::test]
async fn durations_are_told_only_where_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let timed =
        |lines: &[Value]| lines.iter().filter(|line| line.get("duration_ms").is_some()).count();
    let lines = recorded(&folder.path().join("a"), true, false).await;
    assert_eq!(timed(&lines), 0);
    assert!(!kinds(&lines).contains(&"PerformanceMetric"));
    let lines = recorded(&folder.path().join("b"), false, true).await;
    assert_eq!(timed(&lines), 5, "{lines:#?}");
    assert!(kinds(&lines).contains(&"PerformanceMetric"));
}

#[tokio::test]
async fn a_log_is_counted_by_tool_and_lines_that_are_none_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    recorded(&path, true, true).await;
    recorded(&path, false, false).await;
    let mut log = std::fs::read_to_string(&path).unwrap();
    log.push_str("not a line\n");
    log.push_str(&"x".repeat(3 * LINE));
    log.push_str("\n\n");
    std::fs::write(&path, log).unwrap();
    let log = LogAnalyzer::from_file(&path).unwrap();
    let stats = log.tool_execution_stats();
    assert_eq!((stats["echo"].calls, stats["echo"].errors), (2, 0));
    assert_eq!((stats["fail"].calls, stats["fail"].errors), (2, 2));
    assert!(stats["echo"].mean_ms.unwrap() >= 0.0);
    assert_eq!((log.unreadable(), log.performance_timeline().count()), (2, 5));
}

#[test]
fn a_log_that_cannot_be_opened_is_an_error_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing").join("log");
    let recording = Recording { log_path: Some(path.clone()), ..Recording::default() };
    let settings = Settings { recording, ..Settings::default() };
    let error = Chat::new(Shop::new(), settings).unwrap_err().to_string();
    assert_eq!(error, format!("the log `{}` cannot be opened for writing", path.display()));
    let error = LogAnalyzer::from_file(&path).unwrap_err().to_string();
    assert_eq!(error, format!("the log `{}` cannot be read", path.display()));
}
