//! Malformed responses: each ends only its own call, immediately if its id is readable.

use std::time::Duration;

use innkeeper_host::{CallError, CallOptions, Host};
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::setup::{LogCapture, TestEnv, result_text};

/// The outcome of a call with a malformed response.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ExpectedOutcome {
    /// The response is readable and is the result.
    Result,
    /// The response has a readable id and is unusable.
    ProtocolError,
    /// The response has no readable id, so the call ends at its timeout.
    Timeout,
}

const MALFORMED_KINDS: [(&str, ExpectedOutcome); 18] = [
    ("nojsonrpc", ExpectedOutcome::ProtocolError),
    ("both", ExpectedOutcome::ProtocolError),
    ("neither", ExpectedOutcome::ProtocolError),
    ("notutf8", ExpectedOutcome::ProtocolError),
    ("nul", ExpectedOutcome::ProtocolError),
    ("truncated", ExpectedOutcome::ProtocolError),
    ("pretty", ExpectedOutcome::ProtocolError),
    ("batch", ExpectedOutcome::Result),
    ("stringid", ExpectedOutcome::Result),
    ("floatid", ExpectedOutcome::Result),
    ("duplicatekey", ExpectedOutcome::ProtocolError),
    ("deep", ExpectedOutcome::ProtocolError),
    ("wrongcase", ExpectedOutcome::Timeout),
    ("resultnull", ExpectedOutcome::ProtocolError),
    ("notobject", ExpectedOutcome::ProtocolError),
    ("wrongtypes", ExpectedOutcome::ProtocolError),
    ("nobody", ExpectedOutcome::Timeout),
    ("bignumber", ExpectedOutcome::Result),
];

/// Timeout of the calls whose responses have no readable id; all other calls have more time.
const SHORT_TIMEOUT: Duration = Duration::from_millis(700);
const LONG_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum duration of an immediate error on a loaded machine, much shorter than the call's
/// timeout.
const PROMPT_LIMIT: Duration = Duration::from_secs(5);

/// Proves: TR3.6, TR6.4
#[tokio::test]
async fn each_malformed_answer_ends_its_call_and_the_next_request_is_answered() {
    let test_env = TestEnv::new();
    let servers = MALFORMED_KINDS.map(|(kind, expected)| {
        let time = if expected == ExpectedOutcome::Timeout { SHORT_TIMEOUT } else { LONG_TIMEOUT };
        let server = test_env.fixture(kind).with("--malformed", kind);
        server.config_key("timeout", time.as_secs_f64()).config_key("unavailableAfterTimeouts", 2)
    });
    let host = test_env.start(servers).await.unwrap();
    let mut calls = JoinSet::new();
    for (kind, expected) in MALFORMED_KINDS {
        calls.spawn(check_outcome(host.clone(), kind, expected));
    }
    while let Some(call) = calls.join_next().await {
        call.unwrap();
    }
    assert!(host.shutdown().await.is_clean());
}

/// Proves: FR7.6
#[tokio::test]
async fn a_line_that_is_not_json_is_logged_and_its_call_and_the_next_one_succeed() {
    let (test_env, log) = (TestEnv::new(), LogCapture::capture());
    let host = test_env.start([test_env.fixture("noisy").switch("--bad-json")]).await.unwrap();
    let logged_before = log.with_message("unusable message").len();
    for message in ["first", "second"] {
        let result = host.call_tool("noisy.echo", json!({"message": message})).await.unwrap();
        assert_eq!(result_text(&result), message);
    }
    let lines = log.with_message("unusable message").split_off(logged_before);
    assert_eq!(lines.len(), 2, "one line precedes each response: {lines:#?}");
    for line in &lines {
        let fields = ["level", "server", "what"].map(|field| line[field].as_str().unwrap());
        assert_eq!(fields, ["WARN", "noisy", "malformed message"]);
        let detail = line["detail"].as_str().unwrap();
        assert!(detail.contains("not JSON") && detail.contains("npm WARN"), "{detail}");
    }
    assert!(host.shutdown().await.is_clean());
}

async fn check_outcome(host: Host, kind: &'static str, expected: ExpectedOutcome) {
    for _ in 0..2 {
        let started_at = Instant::now();
        let message = json!({"message": "an answer of some length"});
        let result = host.call_tool(&format!("{kind}.echo"), message).await;
        let elapsed = started_at.elapsed();
        let actual = match &result {
            Ok(_) => ExpectedOutcome::Result,
            Err(CallError::Protocol { server, .. }) => {
                assert_eq!(&**server, kind);
                ExpectedOutcome::ProtocolError
            }
            Err(CallError::Timeout { .. }) => ExpectedOutcome::Timeout,
            other => panic!("{kind}: {other:?}"),
        };
        assert_eq!(actual, expected, "{kind}: {result:?}");
        match actual {
            ExpectedOutcome::Timeout => {
                assert!(elapsed >= SHORT_TIMEOUT, "{kind} took {elapsed:?}");
            }
            ExpectedOutcome::Result | ExpectedOutcome::ProtocolError => {
                assert!(elapsed < PROMPT_LIMIT, "{kind} took {elapsed:?}");
            }
        }
        // Only tool results are malformed; other requests still succeed.
        let (name, none) = (format!("{kind}.plain"), Map::new());
        let prompt = host.get_prompt(&name, &none, CallOptions::default()).await.unwrap();
        let prompt: Value = serde_json::from_str(prompt.get()).unwrap();
        assert_eq!(prompt["messages"][0]["content"]["text"], format!("{kind}: plain"));
    }
}
