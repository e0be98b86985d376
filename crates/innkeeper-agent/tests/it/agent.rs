//! Tests of the agent with a scripted model and recording tools.

mod cached_calls;
mod constrained;
mod continued_conversations;
mod corrections;
mod displayed_text;
mod failed_calls;
mod failures;
mod interaction;
mod iterations;
mod long_conversations;
mod one_executor;
mod plans;
mod run_events;
mod safety;
mod streams;
mod text_calls;
mod tool_call_modes;
mod tool_search;
mod undo;
mod user_media;

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use innkeeper_agent::agent::{Agent, AgentSettings};
use innkeeper_agent::provider::{Capabilities, LlmError, Response, ScriptedProvider};
use innkeeper_agent::tools::{
    AvailableTool, ToolAnnotations, ToolCallFuture, ToolCallOptions, ToolError, ToolOutput,
    ToolRunner,
};
use innkeeper_toolcall::Tool;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::sleep;

/// Two tools that record their calls.
#[derive(Default)]
struct RecordingTools(Mutex<Vec<(String, Value)>>);

impl RecordingTools {
    fn calls(&self) -> Vec<(String, Value)> {
        self.0.lock().unwrap().clone()
    }
}

impl ToolRunner for RecordingTools {
    fn list_tools(&self) -> Vec<AvailableTool> {
        let path = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"], "additionalProperties": false});
        let read = Tool::new("fs.read", "Reads a file.", path.clone());
        let remove = Tool::new("fs.rm", "Removes a file.", path);
        let nap = json!({"type": "object", "properties": {"seconds": {"type": "integer"}}});
        vec![
            AvailableTool::new(
                read,
                ToolAnnotations { read_only: true, idempotent: true, ..ToolAnnotations::default() },
            ),
            AvailableTool::new(remove, ToolAnnotations::default()),
            AvailableTool::new(Tool::new("clock.nap", "Waits.", nap), ToolAnnotations::default()),
        ]
    }

    fn call_tool<'r>(
        &'r self,
        name: &'r str,
        arguments: Box<RawValue>,
        _: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        let arguments: Value = serde_json::from_str(arguments.get()).unwrap();
        Box::pin(async move {
            self.0.lock().unwrap().push((name.to_owned(), arguments.clone()));
            if let Some(seconds) = arguments.get("seconds").and_then(Value::as_u64) {
                sleep(Duration::from_secs(seconds)).await;
            }
            let path = arguments.get("path").and_then(Value::as_str);
            if path.is_some_and(|path| path.starts_with("gone")) {
                let tool = name.to_owned();
                return Err(ToolError::Runner { tool, source: "no such file".into() });
            }
            let text = format!("{name} {arguments}");
            let result = json!({"content": [{"type": "text", "text": text}]});
            Ok(ToolOutput::new(serde_json::value::to_raw_value(&result).unwrap(), false))
        })
    }
}

type ModelReply = Result<Response, LlmError>;

struct AgentHarness {
    tools: Arc<RecordingTools>,
    model: Arc<ScriptedProvider>,
    agent: Agent,
}

fn harness(model: ScriptedProvider, settings: AgentSettings) -> AgentHarness {
    let (tools, model) = (Arc::new(RecordingTools::default()), Arc::new(model));
    let agent = Agent::new(model.clone(), tools.clone(), settings);
    AgentHarness { tools, model, agent }
}

fn native_harness(replies: impl IntoIterator<Item = ModelReply>) -> AgentHarness {
    harness(ScriptedProvider::new(replies), AgentSettings::default())
}

fn prompted_harness(replies: impl IntoIterator<Item = &'static str>) -> AgentHarness {
    let model = ScriptedProvider::new(replies.into_iter().map(text_reply))
        .with_capabilities(text_only_capabilities());
    let mut settings = AgentSettings::default();
    settings.requests.temperature = Some(0.7);
    harness(model, settings)
}

fn text_only_capabilities() -> Capabilities {
    Capabilities { temperature: true, stop_sequences: true, ..Capabilities::default() }
}

fn text_reply(text: &str) -> ModelReply {
    Ok(Response::from_text(text))
}

fn call_reply(name: &'static str, arguments: &'static str) -> ModelReply {
    Ok(Response::from_tool_calls([(name, arguments)]))
}

const READ_CALL: &str = r#"{"tool": "fs.read", "params": {"path": "a"}}"#;
