//! An agent from outside: a scripted model, tools that are ours, one message after the other.

mod corrections;
mod course;
mod failures;
mod safety;
mod wanted;
mod ways;

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use innkeeper_agent::agent::{Agent, Settings};
use innkeeper_agent::provider::{Capabilities, LlmError, Response, Scripted};
use innkeeper_agent::tools::{Hints, Offered, Output, RunError, Running, ToolRunner};
use innkeeper_toolcall::Tool;
use serde_json::{Value, json};
use tokio::time::sleep;

/// Two tools; it keeps what they were called with.
#[derive(Default)]
struct Desk(Mutex<Vec<(String, Value)>>);

impl Desk {
    fn called(&self) -> Vec<(String, Value)> {
        self.0.lock().unwrap().clone()
    }
}

impl ToolRunner for Desk {
    fn offered(&self) -> Vec<Offered> {
        let path = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"], "additionalProperties": false});
        let read = Tool::new("fs.read", "Reads a file.", path.clone());
        let remove = Tool::new("fs.rm", "Removes a file.", path);
        let nap = json!({"type": "object", "properties": {"seconds": {"type": "integer"}}});
        vec![
            Offered { tool: read, hints: Hints { read_only: true, idempotent: true } },
            Offered { tool: remove, hints: Hints::default() },
            Offered { tool: Tool::new("clock.nap", "Waits.", nap), hints: Hints::default() },
        ]
    }

    fn run<'r>(&'r self, name: &'r str, arguments: Value) -> Running<'r> {
        Box::pin(async move {
            self.0.lock().unwrap().push((name.to_owned(), arguments.clone()));
            if let Some(seconds) = arguments.get("seconds").and_then(Value::as_u64) {
                sleep(Duration::from_secs(seconds)).await;
            }
            if arguments.get("path") == Some(&json!("gone")) {
                let tool = name.to_owned();
                return Err(RunError::Runner { tool, source: "no such file".into() });
            }
            let text = format!("{name} {arguments}");
            let result = json!({"content": [{"type": "text", "text": text}]});
            Ok(Output::new(serde_json::value::to_raw_value(&result).unwrap(), false))
        })
    }
}

type Reply = Result<Response, LlmError>;

struct Room {
    desk: Arc<Desk>,
    model: Arc<Scripted>,
    agent: Agent,
}

fn room(model: Scripted, settings: Settings) -> Room {
    let (desk, model) = (Arc::new(Desk::default()), Arc::new(model));
    let agent = Agent::new(model.clone(), desk.clone(), settings);
    Room { desk, model, agent }
}

fn native(replies: impl IntoIterator<Item = Reply>) -> Room {
    room(Scripted::new(replies), Settings::default())
}

fn prompted(replies: impl IntoIterator<Item = &'static str>) -> Room {
    let model = Scripted::new(replies.into_iter().map(say)).taking(text_only());
    room(model, Settings { temperature: Some(0.7), ..Settings::default() })
}

fn text_only() -> Capabilities {
    Capabilities { temperature: true, stop_sequences: true, ..Capabilities::default() }
}

fn say(text: &str) -> Reply {
    Ok(Response::text(text))
}

fn call(name: &'static str, arguments: &'static str) -> Reply {
    Ok(Response::calls([(name, arguments)]))
}

const READ: &str = r#"{"tool": "fs.read", "params": {"path": "a"}}"#;
