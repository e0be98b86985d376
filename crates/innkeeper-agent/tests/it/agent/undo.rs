//! Undoes the calls of a run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use innkeeper_agent::agent::{Agent, AgentSettings, UNDO_META_KEY};
use innkeeper_agent::provider::{Response, ScriptedProvider};
use innkeeper_agent::safety::ToolBlocklist;
use innkeeper_agent::tool_search::ToolSearchSettings;
use innkeeper_agent::tools::{
    AvailableTool, ToolAnnotations, ToolCallFuture, ToolCallOptions, ToolError, ToolOutput,
    ToolRunner,
};
use innkeeper_toolcall::Tool;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::text_reply;

/// A tracker whose `create` returns an id, with tools that undo each other.
#[derive(Default)]
struct Tracker(Mutex<Vec<(String, Value)>>);

impl ToolRunner for Tracker {
    fn list_tools(&self) -> Vec<AvailableTool> {
        let object = |properties: Value| json!({"type": "object", "properties": properties});
        let text = json!({"type": "string"});
        let create = Tool::new("git.create", "", object(json!({"title": text})));
        let number = json!({"type": "integer"});
        let delete = Tool::new("git.delete", "", object(json!({"id": number, "title": text})));
        let label = Tool::new("git.label", "", object(json!({"name": text})));
        let drop = Tool::new("git.unlabel", "", object(json!({"name": text})));
        let definition =
            json!({"name": "label", "_meta": {UNDO_META_KEY: "unlabel", "other": [1]}});
        let annotations = ToolAnnotations::default();
        let mut tools =
            [create, delete, label, drop].map(|tool| AvailableTool::new(tool, annotations));
        tools[2].definition = Some(to_raw_value(&definition).unwrap().into());
        tools[3].definition = Some(to_raw_value(&json!({"name": "unlabel"})).unwrap().into());
        tools.into()
    }

    fn call_tool<'r>(
        &'r self,
        name: &'r str,
        arguments: Box<RawValue>,
        _: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        let arguments: Value = serde_json::from_str(arguments.get()).unwrap();
        let mut calls = self.0.lock().unwrap();
        calls.push((name.to_owned(), arguments.clone()));
        let result = json!({"content": [], "structuredContent": {"id": 40 + calls.len()}});
        let fails =
            arguments["name"] == "fails" || (name, &arguments["id"]) == ("git.delete", &json!(42));
        let tool = name.to_owned();
        Box::pin(async move {
            match fails {
                true => Err(ToolError::Runner { tool, source: "it is locked".into() }),
                false => Ok(ToolOutput::new(to_raw_value(&result).unwrap(), false)),
            }
        })
    }
}

fn tracker_agent(change: impl FnOnce(&mut AgentSettings)) -> (Agent, Arc<Tracker>) {
    let calls = Response::from_tool_calls([
        ("git.create", r#"{"title": "one"}"#),
        ("git.create", r#"{"title": "two"}"#),
        ("git.label", r#"{"name": "bug"}"#),
        ("git.label", r#"{"name": "fails"}"#),
    ]);
    let model = ScriptedProvider::new([Ok(calls), text_reply("Done.")]);
    let mut settings = AgentSettings::default();
    settings.tool_use.undo_tools =
        BTreeMap::from([("git.create".to_owned(), "git.delete".to_owned())]);
    settings.calls.max_parallel = 1;
    change(&mut settings);
    let tracker = Arc::new(Tracker::default());
    (Agent::new(Arc::new(model), tracker.clone(), settings), tracker)
}

/// Proves: G-b11
#[tokio::test(start_paused = true)]
async fn successful_calls_are_undone_in_reverse_order_with_the_values_of_their_results() {
    let (agent, tracker) = tracker_agent(|_| {});
    let result = agent.run("Create two.").await;
    let before = (agent.conversation(), tracker.0.lock().unwrap().len());
    let undone = agent.undo(&result).await;
    let calls = tracker.0.lock().unwrap()[before.1..].to_vec();
    let expected = [
        ("git.unlabel", json!({"name": "bug"})),
        ("git.delete", json!({"id": 42, "title": "two"})),
        ("git.delete", json!({"id": 41, "title": "one"})),
    ];
    assert_eq!(calls, expected.map(|(tool, arguments)| (tool.to_owned(), arguments)));
    // A failed attempt does not stop the others.
    assert_eq!(undone.iter().map(|it| it.is_undone()).collect::<Vec<_>>(), [true, false, true]);
    let ids: Vec<_> = undone.iter().map(|record| &record.call_id).collect();
    let [first, second, third, _] = &result.tool_calls[..] else { panic!("{result:?}") };
    assert_eq!(ids, [&third.id, &second.id, &first.id]);
    assert_eq!(agent.conversation(), before.0);
}

/// A server `a` whose tool names a tool of the server `a.b`.
struct Neighbours(Mutex<Vec<String>>);

impl ToolRunner for Neighbours {
    fn list_tools(&self) -> Vec<AvailableTool> {
        let available = |name: &str, definition: Value| {
            let tool = Tool::new(name, "", json!({"type": "object"}));
            let definition = Some(to_raw_value(&definition).unwrap().into());
            AvailableTool { definition, ..AvailableTool::new(tool, ToolAnnotations::default()) }
        };
        vec![
            available("a.x", json!({"name": "x", "_meta": {UNDO_META_KEY: "b.delete"}})),
            available("a.b.delete", json!({"name": "delete"})),
        ]
    }

    fn call_tool<'r>(
        &'r self,
        name: &'r str,
        _: Box<RawValue>,
        _: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        self.0.lock().unwrap().push(name.to_owned());
        let result = to_raw_value(&json!({"content": []})).unwrap();
        Box::pin(async move { Ok(ToolOutput::new(result, false)) })
    }
}

/// Attack: data | a definition names a tool of another server for the undo of its calls | the tool is
/// not called | Complete checks
#[tokio::test(start_paused = true)]
async fn a_definition_cannot_name_another_server_s_tool_for_undo() {
    let calls = Response::from_tool_calls([("a.x", "{}")]);
    let model = ScriptedProvider::new([Ok(calls), text_reply("Done.")]);
    let tools = Arc::new(Neighbours(Mutex::default()));
    let agent = Agent::new(Arc::new(model), tools.clone(), AgentSettings::default());
    let result = agent.run("Do x.").await;
    assert!(agent.undo(&result).await.is_empty());
    assert_eq!(*tools.0.lock().unwrap(), ["a.x"]);
}

#[tokio::test(start_paused = true)]
async fn a_blocked_undo_tool_is_not_called() {
    let (agent, tracker) = tracker_agent(|settings| {
        settings.blocklist = ToolBlocklist::new(&["git.delete"]).unwrap();
    });
    let result = agent.run("Create two.").await;
    let undone = agent.undo(&result).await;
    let outcomes: Vec<_> = undone.iter().map(|record| record.is_undone()).collect();
    assert_eq!(outcomes, [true, false, false]);
    let calls = tracker.0.lock().unwrap();
    assert!(calls.iter().all(|(tool, _)| tool != "git.delete"), "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn calls_are_undone_with_tools_that_the_model_did_not_search() {
    let (agent, tracker) = tracker_agent(|settings| {
        settings.tool_search = ToolSearchSettings {
            max_listing_share: Some(0.0),
            pinned_tools: ["git.create", "git.label"].map(str::to_owned).into(),
        };
    });
    let result = agent.run("Create two.").await;
    assert_eq!(tracker.0.lock().unwrap().len(), 4);
    assert_eq!(agent.undo(&result).await.len(), 3);
}
