//! The capabilities of all servers of an offering as those of one server.

use innkeeper_protocol::request_meta::EXTENSION_TASKS;
use innkeeper_protocol::{Era, Revision, skim};
use serde_json::{Map, Value, json};

use super::OfferedServer;

/// The members of the capabilities that the gateway writes itself.
const OWN_MEMBERS: [&str; 6] = ["tools", "prompts", "resources", "logging", "completions", "tasks"];

/// Returns the union of the capabilities for a client of this revision. The gateway notifies about every change of a list, and
/// handles subscriptions. Of a capability that the gateway does not know, the value of the first
/// server applies, and objects are merged.
pub(crate) fn aggregate_capabilities<'a>(
    servers: impl Iterator<Item = &'a OfferedServer> + Clone,
    revision: Revision,
) -> Map<String, Value> {
    let any = |capability: &str| servers.clone().any(|server| server.declares(capability));
    let mut all = Map::new();
    for list in ["tools", "prompts"] {
        if any(list) {
            all.insert(list.to_owned(), json!({ "listChanged": true }));
        }
    }
    if any("resources") {
        let subscribe = servers.clone().any(can_subscribe);
        all.insert("resources".to_owned(), json!({ "subscribe": subscribe, "listChanged": true }));
    }
    for plain in ["logging", "completions"] {
        if any(plain) {
            all.insert(plain.to_owned(), json!({}));
        }
    }
    for server in servers.clone() {
        for (key, value) in skim::members(server.declared.capabilities.get()) {
            let key = skim::decode_key(key);
            if OWN_MEMBERS.contains(&&*key) {
                continue;
            }
            let Ok(value) = serde_json::from_str::<Value>(value) else { continue };
            merge(all.entry(key.into_owned()).or_insert(Value::Null), value);
        }
    }
    set_task_capability(&mut all, servers, revision);
    all
}

/// Declares what servers may have that were never ready. A client asks for the lists of what is declared only.
pub(crate) fn declare_all(all: &mut Map<String, Value>, revision: Revision) {
    for list in ["tools", "prompts"] {
        all.insert(list.to_owned(), json!({ "listChanged": true }));
    }
    all.insert("resources".to_owned(), json!({ "subscribe": true, "listChanged": true }));
    for plain in ["logging", "completions"] {
        all.insert(plain.to_owned(), json!({}));
    }
    if revision.era() == Era::Modern {
        merge(all.entry("extensions").or_insert(Value::Null), json!({ EXTENSION_TASKS: {} }));
    } else if revision.has_core_tasks() {
        let tasks = json!({ "requests": { "tools": { "call": {} } }, "cancel": {} });
        all.insert("tasks".to_owned(), tasks);
    }
}

/// Declares tasks in the form of the client's revision, if a server of the same era has them. Tasks
/// do not pass from one era to the other, and the gateway does not know the tasks of a client, so it
/// does not list them.
fn set_task_capability<'a>(
    all: &mut Map<String, Value>,
    servers: impl Iterator<Item = &'a OfferedServer> + Clone,
    revision: Revision,
) {
    let mut with_tasks = servers
        .filter(|server| server.declared.era == revision.era() && server.declared.tasks.call)
        .peekable();
    let has_tasks = with_tasks.peek().is_some();
    if let Some(Value::Object(extensions)) = all.get_mut("extensions") {
        if !has_tasks || revision.era() == Era::Legacy {
            extensions.remove(EXTENSION_TASKS);
        }
        if extensions.is_empty() {
            all.remove("extensions");
        }
    }
    if has_tasks && revision.has_core_tasks() {
        let mut tasks = json!({ "requests": { "tools": { "call": {} } } });
        if with_tasks.any(|server| server.declared.tasks.cancel) {
            tasks["cancel"] = json!({});
        }
        all.insert("tasks".to_owned(), tasks);
    }
}

/// Returns whether a server accepts subscriptions to resources.
fn can_subscribe(server: &OfferedServer) -> bool {
    let resources = skim::member(server.declared.capabilities.get(), "resources");
    resources.and_then(|resources| skim::member(resources, "subscribe")) == Some("true")
}

fn merge(target: &mut Value, value: Value) {
    match (target, value) {
        (Value::Object(target), Value::Object(members)) => {
            for (key, member) in members {
                target.entry(key).or_insert(member);
            }
        }
        (target @ Value::Null, value) => *target = value,
        _ => {}
    }
}
