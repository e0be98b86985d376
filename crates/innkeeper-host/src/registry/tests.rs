//! What a server offers, while its settings change.

use std::path::Path;

use innkeeper_protocol::Revision;
use innkeeper_protocol::view::{TasksCapability, Tool};
use innkeeper_testkit::Peer;
use serde_json::json;
use serde_json::value::to_raw_value;
use tokio::sync::Semaphore;

use super::*;
use crate::cache::Cache;
use crate::callback::Callbacks;
use crate::config::{Config, Environment};
use crate::server::age::Ages;
use crate::server::connection::Connection;
use crate::server::meta::Identity;
use crate::server::offer::{Offer, Offered};
use crate::server::session::{Limits, Owner, Session};
use crate::server::silence::Silence;
use crate::server::wishes::Wishes;
use crate::start;
use crate::tasks::Tasks;

fn config(denied: &[&str]) -> Config {
    let entry = json!({"url": "http://a.example/mcp", "tools": {"deny": denied}});
    let file = json!({"servers": {"one": entry}});
    Config::from_value(&file, "mcp.json", Path::new("/"), &Environment::default()).unwrap()
}

/// A shelf with the tools `read` and `write`, made by the settings the server has now.
fn shelf(server: &Server, events: &Events, tasks: &Tasks) -> Shelf {
    let (_, reader, writer) = Peer::new();
    let callbacks = Callbacks::default();
    let owner = Owner {
        server: server.name.clone(),
        callbacks: callbacks.clone(),
        events: events.clone(),
        tasks: tasks.clone(),
    };
    let config = server.config();
    let connection = Connection {
        server: server.name.clone(),
        session: Session::open(owner, reader, writer, Limits::default()),
        revision: Revision::V2025_11_25,
        tasks: TasksCapability::default(),
        identity: Identity::default(),
        permits: Semaphore::new(1),
        retry: config.retry,
        most: config.max_total_timeout,
        cache: Cache::new(config.cache).into(),
        callbacks,
        wishes: Wishes::default(),
        ages: Ages::default(),
        meter: server.meter.clone(),
        silence: Silence::new(1),
        events: events.clone(),
        memory: Arc::default(),
        reporter: None,
    };
    let tool = |name: &str| {
        let raw = to_raw_value(&json!({"name": name, "inputSchema": {"type": "object"}})).unwrap();
        Offered { view: Tool::read(&raw).unwrap(), raw }
    };
    let offer = Offer { tools: vec![tool("read"), tool("write")], ..Offer::default() };
    Shelf::new(Arc::new(connection), &config, (None, None), offer, &mut Vec::new())
}

#[tokio::test]
async fn a_tool_that_a_reload_denies_does_not_come_back_with_a_shelf_made_before() {
    let (before, after) = (config(&[]), config(&["write"]));
    let settings = start::prepare(before.servers.values(), &Environment::default());
    let server = Arc::new(Server::new(settings.unwrap().remove(0)));
    let (events, tasks) = (Events::new(), Tasks::default());
    let registry = Registry::new([server.clone()], false, events.clone(), None);
    let made_before = shelf(&server, &events, &tasks);
    assert_eq!(made_before.tools.len(), 2);
    server.want(&after.servers["one"], None);
    registry.reshelved(&server, made_before);
    let offered = server.status().shelf.clone().unwrap();
    let tools: Vec<_> = offered.tools.iter().map(|route| &*route.tool).collect();
    assert_eq!(tools, ["read"]);
}
