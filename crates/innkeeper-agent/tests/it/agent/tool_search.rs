//! The model finds its tools with a search.

use std::sync::Arc;

use innkeeper_agent::agent::{Agent, AgentSettings};
use innkeeper_agent::provider::{Request, Response, ScriptedProvider};
use innkeeper_agent::run::RunOutcome;
use innkeeper_agent::safety::{ApprovalPolicy, ToolBlocklist};
use innkeeper_agent::tool_search::ToolSearchSettings;
use serde_json::json;

use super::{AgentHarness, ModelReply, RecordingTools, call_reply, text_reply};

fn searching_harness(
    replies: impl IntoIterator<Item = ModelReply>,
    settings: AgentSettings,
) -> AgentHarness {
    let pinned_tools = vec!["clock.nap".to_owned()];
    let tool_search = ToolSearchSettings { max_listing_share: Some(0.0), pinned_tools };
    let tools = Arc::new(RecordingTools::default());
    let model = Arc::new(ScriptedProvider::new(replies));
    let agent = Agent::new(model.clone(), tools.clone(), AgentSettings { tool_search, ..settings });
    AgentHarness { tools, model, agent }
}

fn offered_names(request: &Request) -> Vec<&str> {
    request.tools.iter().map(|tool| tool.name.as_str()).collect()
}

const SEARCH: (&str, &str) = ("search_tools", r#"{"query": "read a file"}"#);
const DESCRIBE: (&str, &str) = ("describe_tools", r#"{"names": ["fs.read", "fs.wirte"]}"#);
const READ: (&str, &str) = ("fs.read", r#"{"path": "a"}"#);

#[tokio::test]
async fn a_described_tool_is_offered_and_called_in_the_next_iteration() {
    let replies = [SEARCH, DESCRIBE, READ].map(|(name, arguments)| call_reply(name, arguments));
    let harness = searching_harness(
        replies.into_iter().chain([text_reply("Done.")]),
        AgentSettings { approval_policy: ApprovalPolicy::Ask, ..AgentSettings::default() },
    );
    let result = harness.agent.run("Read a.").await;
    assert_eq!(result.outcome, RunOutcome::Completed);
    assert_eq!(harness.tools.calls(), [("fs.read".to_owned(), json!({"path": "a"}))]);
    let requests = harness.model.requests();
    let before = ["search_tools", "describe_tools", "clock.nap"];
    assert_eq!(offered_names(&requests[0]), before);
    assert_eq!(offered_names(&requests[1]), before);
    let after = ["search_tools", "describe_tools", "clock.nap", "fs.read"];
    assert_eq!(offered_names(&requests[2]), after);
    assert_eq!(offered_names(&requests[3]), after);
    let results: Vec<&str> =
        result.tool_calls.iter().map(|call| call.result_text.as_str()).collect();
    assert!(results[0].contains(r#"{"name": "fs.read", "description": "Reads a file."}"#));
    assert!(results[1].contains(r#"{"name": "fs.wirte", "similarNames": "#));
    assert!(result.tool_calls.iter().all(|call| call.outcome.success));
}

#[tokio::test]
async fn a_tool_that_is_not_offered_yet_is_an_unknown_tool() {
    let harness = searching_harness(
        [call_reply(READ.0, READ.1), text_reply("Sorry.")],
        AgentSettings::default(),
    );
    let result = harness.agent.run("Read a.").await;
    assert_eq!(result.outcome, RunOutcome::Completed);
    assert!(harness.tools.calls().is_empty());
    let requests = harness.model.requests();
    let answer = serde_json::to_string(&requests[1].messages).unwrap();
    assert!(answer.contains("there is no tool"), "{answer}");
}

#[tokio::test]
async fn the_schema_of_a_described_tool_is_checked() {
    let harness = searching_harness(
        [
            call_reply(DESCRIBE.0, DESCRIBE.1),
            call_reply("fs.read", r#"{"path": 1, "more": 2}"#),
            call_reply("search_tools", r#"{"limit": 1}"#),
            text_reply("Sorry."),
        ],
        AgentSettings::default(),
    );
    harness.agent.run("Read a.").await;
    assert!(harness.tools.calls().is_empty());
    let requests = harness.model.requests();
    let messages = serde_json::to_string(&requests[3].messages).unwrap();
    assert!(messages.contains("invalid arguments for `fs.read`"), "{messages}");
    assert!(messages.contains("invalid arguments for `search_tools`"), "{messages}");
}

#[tokio::test]
async fn a_blocked_tool_is_neither_found_nor_described_nor_run() {
    let harness = searching_harness(
        [
            call_reply("search_tools", r#"{"query": "removes a file"}"#),
            call_reply("describe_tools", r#"{"names": ["fs.rm"]}"#),
            call_reply("fs.rm", r#"{"path": "a"}"#),
            text_reply("Sorry."),
        ],
        AgentSettings {
            blocklist: ToolBlocklist::new(["fs.rm"]).unwrap(),
            ..AgentSettings::default()
        },
    );
    let result = harness.agent.run("Remove a.").await;
    assert!(harness.tools.calls().is_empty());
    assert!(!result.tool_calls[0].result_text.contains("fs.rm"));
    assert!(result.tool_calls[1].result_text.contains("unknownNames"));
    let requests = harness.model.requests();
    assert!(requests.iter().all(|request| !offered_names(request).contains(&"fs.rm")));
    let messages = serde_json::to_string(&requests[3].messages).unwrap();
    assert!(messages.contains("may not be called here"), "{messages}");
}

#[tokio::test]
async fn few_tools_are_offered_without_a_search() {
    let harness = super::native_harness([text_reply("Hello.")]);
    harness.agent.run("Hello").await;
    assert_eq!(offered_names(&harness.model.requests()[0]), ["fs.read", "fs.rm", "clock.nap"]);
}

#[tokio::test]
async fn a_model_without_native_tools_searches_in_the_same_way() {
    let call = |(name, arguments): (&str, &str)| {
        let text = format!(r#"{{"tool": "{name}", "params": {arguments}}}"#);
        Ok(Response::from_text(text))
    };
    let replies = [SEARCH, DESCRIBE, READ].map(call).into_iter().chain([text_reply("Done.")]);
    let tools = Arc::new(RecordingTools::default());
    let model = ScriptedProvider::new(replies).with_capabilities(super::text_only_capabilities());
    let model = Arc::new(model);
    let tool_search = ToolSearchSettings { max_listing_share: Some(0.0), ..Default::default() };
    let settings = AgentSettings { tool_search, ..AgentSettings::default() };
    let agent = Agent::new(model.clone(), tools.clone(), settings);
    agent.run("Read a.").await;
    assert_eq!(tools.calls(), [("fs.read".to_owned(), json!({"path": "a"}))]);
    let systems: Vec<String> = model.requests().into_iter().map(|request| request.system).collect();
    assert!(systems[0].contains("search_tools") && !systems[1].contains("Reads a file."));
    assert!(systems[2].contains("Reads a file."));
}
