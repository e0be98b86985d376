//! The chat over real servers: child processes behind a host.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_agent::{Chat, OneServer, RunError, Settings, ToolRunner};
use innkeeper_host::{Config, Environment, Host};
use innkeeper_testkit::{Fixture, Journal, fx, fx_program, mcp_json};
use serde_json::json;
use tokio::time::Instant;

use crate::setup::{All, answer_of, call, text};

async fn host(servers: impl IntoIterator<Item = Fixture>) -> Host {
    let environment = Environment::of_process();
    let config =
        Config::from_value(&mcp_json(servers), "mcp.json", Path::new("/"), &environment).unwrap();
    Host::start(config).await.unwrap()
}

async fn read(runner: impl ToolRunner, said: String) -> All {
    let chat = Chat::new(Arc::new(runner), Settings::default()).unwrap();
    All::of(&mut chat.turn().answer(answer_of([said])).unwrap()).await
}

/// Proves: S2
#[tokio::test]
async fn the_tools_of_every_server_of_a_host_are_offered_and_run_by_their_public_names() {
    let host = host([fx("one"), fx("two")]).await;
    let offered = host.offered();
    let read_hint = offered.iter().find(|offered| offered.tool.name == "two.read").unwrap();
    assert!(read_hint.hints.read_only && !read_hint.hints.idempotent);
    assert!(read_hint.tool.property("path").is_some());
    let names: Vec<&str> = offered.iter().map(|offered| offered.tool.name.as_str()).collect();
    assert!(names.contains(&"one.a.b") && names.contains(&"two.a.b"), "{names:?}");
    let said = [call("one.echo", &json!({"message": "x"})), call("two.a.b", &json!({}))].join("\n");
    let mut all = read(host.clone(), said).await;
    all.executed.sort_by_key(|executed| executed.index);
    assert_eq!(all.executed.iter().map(text).collect::<Vec<_>>(), ["x", "a.b"]);
    host.shutdown().await;
}

/// Proves: S3
#[tokio::test]
async fn one_server_is_started_from_its_command_and_its_tools_keep_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("with ${blank}");
    let program = fx_program().display().to_string();
    let args = ["--journal", journal.to_str().unwrap()];
    let server = OneServer::connect(&program, &args, &Environment::of_process()).await.unwrap();
    let all = read(server.clone(), call("echo", &json!({"message": "é"}))).await;
    assert_eq!(text(&all.executed[0]), "é");
    assert_eq!(all.executed[0].tool, "echo");
    let journal = Journal::read(&journal);
    let methods = journal.methods();
    assert!(methods.contains(&"initialize") && methods.contains(&"tools/call"), "{methods:?}");
    server.host().shutdown().await;
}

#[tokio::test]
async fn a_server_that_cannot_be_started_is_named_by_its_command() {
    let environment = Environment::of_process();
    let error = OneServer::connect("./no-such-server", &[], &environment).await.unwrap_err();
    assert_eq!(error.to_string(), "the server `./no-such-server` did not start");
}

/// Proves: S4
#[tokio::test]
async fn a_server_killed_in_a_call_costs_that_call_and_the_chat_goes_on() {
    let host = host([fx("frail").switch("--crash-signal"), fx("well")]).await;
    let said = [call("frail.pid", &json!({})), call("well.echo", &json!({"message": "x"}))];
    let all = read(host.clone(), format!("First\n{}\nLast", said.join("\n"))).await;
    assert!(all.shown().starts_with("First") && all.shown().ends_with("Last"));
    let of = |tool: &str| all.executed.iter().find(|executed| executed.tool == tool).unwrap();
    let failed = of("frail.pid").outcome.as_ref().unwrap_err();
    assert!(matches!(&**failed, RunError::Host(_)), "{failed}");
    assert!(failed.to_string().contains("server `frail` is unavailable"), "{failed}");
    assert_eq!(text(of("well.echo")), "x");
    host.shutdown().await;
}

/// Proves: S18, S43
#[tokio::test]
async fn calls_of_one_server_run_beside_each_other_and_are_timed() {
    let host = host([fx("fx")]).await;
    let begun = Instant::now();
    let calls = [1_000, 1_000].map(|ms| call("fx.sleep", &json!({"ms": ms}))).join("\n");
    let all = read(host.clone(), calls).await;
    let took = begun.elapsed();
    assert_eq!(all.executed.len(), 2);
    for executed in &all.executed {
        assert!(executed.elapsed >= Duration::from_secs(1), "{:?}", executed.elapsed);
    }
    // One behind the other would take two; the stopped clock tells more exactly.
    assert!(took < Duration::from_millis(1_900), "{took:?}");
    host.shutdown().await;
}

#[tokio::test]
async fn arguments_that_do_not_fit_reach_no_server() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let host = host([fx("fx").journal(&journal)]).await;
    let all = read(host.clone(), call("fx.add", &json!({"a": 1}))).await;
    assert!(matches!(
        &**all.executed[0].outcome.as_ref().unwrap_err(),
        RunError::Unfit { violations, .. } if violations.len() == 1
    ));
    assert_eq!(Journal::read(&journal).count("tools/call"), 0);
    host.shutdown().await;
}

#[tokio::test]
async fn dropping_the_answer_cancels_its_calls_at_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let host = host([fx("fx").journal(&journal)]).await;
    let chat = Chat::new(Arc::new(host.clone()), Settings::default()).unwrap();
    let said = call("fx.sleep", &json!({"ms": 60_000}));
    let answer = chat.turn().answer(answer_of([said])).unwrap();
    let patience = Duration::from_secs(20);
    Journal::until(&journal, patience, |journal| journal.count("tools/call") == 1).await;
    drop(answer);
    let cancelled = |journal: &Journal| journal.count("notifications/cancelled") == 1;
    Journal::until(&journal, patience, cancelled).await;
    host.shutdown().await;
}
