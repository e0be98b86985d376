//! Malformed answers: each ends its own call, at once where it can be told whose it is.

use std::time::Duration;

use innkeeper_host::{CallError, CallOptions, Host};
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::setup::Scene;

/// How an answer malformed in one way ends its call.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// It can be read, and is the result.
    Result,
    /// It is the call's and cannot be used.
    Fault,
    /// It cannot be told whose it is: the call goes on until its time is over.
    Late,
}

const KINDS: [(&str, End); 18] = [
    ("nojsonrpc", End::Fault),
    ("both", End::Fault),
    ("neither", End::Fault),
    ("notutf8", End::Fault),
    ("nul", End::Fault),
    ("truncated", End::Fault),
    ("pretty", End::Fault),
    ("batch", End::Result),
    ("stringid", End::Result),
    ("floatid", End::Result),
    ("duplicatekey", End::Fault),
    ("deep", End::Fault),
    ("wrongcase", End::Late),
    ("resultnull", End::Fault),
    ("notobject", End::Fault),
    ("wrongtypes", End::Fault),
    ("nobody", End::Late),
    ("bignumber", End::Result),
];

/// The time of calls whose answers nobody can assign, and of all others.
const SHORT: Duration = Duration::from_millis(700);
const LONG: Duration = Duration::from_secs(30);

/// What is still at once on a loaded machine, and far from the time of the call.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Proves: TR3.6, TR6.4
#[tokio::test]
async fn each_malformed_answer_ends_its_call_and_the_next_request_is_answered() {
    let scene = Scene::new();
    let servers = KINDS.map(|(kind, end)| {
        let time = if end == End::Late { SHORT } else { LONG };
        let server = scene.fx(kind).with("--malformed", kind);
        server.key("timeout", time.as_secs_f64()).key("unavailableAfterTimeouts", 2)
    });
    let host = scene.start(servers).await.unwrap();
    let mut calls = JoinSet::new();
    for (kind, end) in KINDS {
        calls.spawn(check(host.clone(), kind, end));
    }
    while let Some(call) = calls.join_next().await {
        call.unwrap();
    }
    assert!(host.shutdown().await.is_clean());
}

async fn check(host: Host, kind: &'static str, expected: End) {
    for _ in 0..2 {
        let began = Instant::now();
        let message = json!({"message": "an answer of some length"});
        let result = host.call_tool(&format!("{kind}.echo"), message).await;
        let took = began.elapsed();
        let end = match &result {
            Ok(_) => End::Result,
            Err(CallError::Protocol { server, .. }) => {
                assert_eq!(&**server, kind);
                End::Fault
            }
            Err(CallError::Timeout { .. }) => End::Late,
            other => panic!("{kind}: {other:?}"),
        };
        assert_eq!(end, expected, "{kind}: {result:?}");
        match end {
            End::Late => assert!(took >= SHORT, "{kind} took {took:?}"),
            End::Result | End::Fault => assert!(took < AT_ONCE, "{kind} took {took:?}"),
        }
        // Only answers of tools are malformed: whatever else is asked comes back.
        let (name, none) = (format!("{kind}.plain"), Map::new());
        let prompt = host.get_prompt(&name, &none, CallOptions::default()).await.unwrap();
        let prompt: Value = serde_json::from_str(prompt.get()).unwrap();
        assert_eq!(prompt["messages"][0]["content"]["text"], format!("{kind}: plain"));
    }
}
