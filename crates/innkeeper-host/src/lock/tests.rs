//! Tests of locks: serialization, changes and their classes.

mod classes;
mod form;
mod properties;
mod servers;

use std::collections::BTreeMap;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::{Lock, PinChange, PinnedLaunch, PinnedServer, PinnedText, PinnedTool};

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

/// Returns a server with these definitions, started by `command`.
fn server(command: &str, tools: &[Value]) -> PinnedServer {
    let pin = |tool: &Value| {
        let name = tool["name"].as_str().unwrap().to_owned();
        (name, PinnedTool::new(&to_raw_value(tool).unwrap()))
    };
    PinnedServer {
        launch: PinnedLaunch::Program { command: command.to_owned(), args: Vec::new(), cwd: None },
        package: None,
        server_info: None,
        instructions: None,
        tools: tools.iter().map(pin).collect(),
    }
}

fn lock<const N: usize>(servers: [(&str, PinnedServer); N]) -> Lock {
    let servers: BTreeMap<_, _> =
        servers.into_iter().map(|(name, server)| (name.to_owned(), server)).collect();
    Lock { servers, ..Lock::default() }
}

/// Returns a lock of the server `one` with these tools, and of `other` with `send_mail`.
fn tools(tools: &[Value]) -> Lock {
    let other = json!({"name": "send_mail", "inputSchema": {"type": "object"}});
    lock([("one", server("one", tools)), ("other", server("other", &[other]))])
}

/// Returns the class and description of every change.
fn descriptions(changes: &[PinChange]) -> Vec<String> {
    let change_text = |change: &PinChange| {
        let tool = change.tool.as_deref().map(|tool| format!(".{tool}")).unwrap_or_default();
        format!("{} {}{tool} {}", change.class, change.server, change.description)
    };
    changes.iter().map(change_text).collect()
}
