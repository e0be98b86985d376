//! The result cache of an agent.

use std::collections::BTreeMap;

use innkeeper_agent::agent::{AgentSettings, CacheSettings};
use innkeeper_agent::provider::ScriptedProvider;

use super::{call_reply, harness, text_reply};

/// Proves: G-b5
#[tokio::test(start_paused = true)]
async fn the_same_call_of_a_read_only_tool_is_answered_from_the_cache() {
    let mut settings = AgentSettings::default();
    settings.calls.cache = Some(CacheSettings::default());
    let call = || call_reply("fs.read", r#"{"path": "a"}"#);
    let remove = || call_reply("fs.rm", r#"{"path": "a"}"#);
    let replies = [call(), call(), remove(), remove(), text_reply("Done.")];
    let test_env = harness(ScriptedProvider::new(replies), settings);
    let report = test_env.agent.run("Read a twice.").await;
    assert!(report.is_success());
    let cached: Vec<_> = report.tool_calls.iter().map(|call| call.outcome.cached).collect();
    assert_eq!(cached, [false, true, false, false]);
    let run: Vec<_> = test_env.tools.calls().into_iter().map(|(tool, _)| tool).collect();
    assert_eq!(run, ["fs.read", "fs.rm", "fs.rm"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_answered_from_the_cache_is_not_undone() {
    let mut settings = AgentSettings::default();
    settings.calls.cache = Some(CacheSettings::default());
    settings.tool_use.undo_tools = BTreeMap::from([("fs.read".to_owned(), "fs.rm".to_owned())]);
    let call = || call_reply("fs.read", r#"{"path": "a"}"#);
    let replies = [call(), call(), text_reply("Done.")];
    let test_env = harness(ScriptedProvider::new(replies), settings);
    let report = test_env.agent.run("Read a twice.").await;
    let undone = test_env.agent.undo(&report).await;
    let ids: Vec<_> = undone.iter().map(|record| &record.call_id).collect();
    assert_eq!(ids, [&report.tool_calls[0].id]);
}
