//! Catalog entries of a server while its settings change.

use crate::catalog::Introduction;
use std::path::Path;

use innkeeper_config::{Config, Environment};
use innkeeper_protocol::Revision;
use innkeeper_protocol::view::{TasksCapability, Tool};
use innkeeper_testkit::InMemoryServer;
use serde_json::json;
use serde_json::value::to_raw_value;

use super::*;
use crate::cache::Cache;
use crate::connection::call_permits::CallPermits;
use crate::connection::listing::{Definition, ServerListing};
use crate::connection::meta::ClientMeta;
use crate::connection::timeout_streak::TimeoutStreak;
use crate::connection::{
    Connection, ConnectionNumber, Freshness, Instruments, Negotiated, RequestLimits,
};
use crate::own_files::OwnFiles;
use crate::server::connector::Connectors;
use crate::server::endpoint_resolution;
use crate::session::{HostContext, Session, SessionContext, SessionLimits};
use crate::tasks::BackgroundTasks;

fn config(denied: &[&str]) -> Config {
    let entry = json!({"url": "http://a.example/mcp", "tools": {"deny": denied}});
    let file = json!({"servers": {"one": entry}});
    Config::from_value(&file, "mcp.json", Path::new("/"), &Environment::default()).unwrap()
}

/// Builds an entry with the tools `read` and `write` from the server's current settings.
fn entry(server: &Server, events: &EventPublisher, tasks: &BackgroundTasks) -> CatalogEntry {
    let (_, reader, writer) = InMemoryServer::new();
    let host =
        HostContext { events: events.clone(), tasks: tasks.clone(), ..HostContext::default() };
    let owner = SessionContext { server: server.name.clone(), host: host.clone() };
    let config = server.config();
    let connection = Connection {
        server: server.name.clone(),
        number: ConnectionNumber::next(),
        session: Session::open(owner, reader, writer, SessionLimits::default()),
        negotiated: Negotiated {
            revision: Revision::V2025_11_25,
            tasks: TasksCapability::default(),
            capabilities: Box::default(),
            declares_logging: false,
            client_meta: ClientMeta::default(),
        },
        limits: RequestLimits {
            permits: CallPermits::new(1),
            max_total_timeout: config.calls.max_total_timeout,
            retry: config.calls.retry,
        },
        freshness: Freshness::new(Cache::new(config.calls.cache).into()),
        instruments: Instruments {
            metrics: server.metrics.clone(),
            timeout_streak: TimeoutStreak::new(1),
            telemetry: None,
        },
        host,
    };
    let tool = |name: &str| {
        let raw = to_raw_value(&json!({"name": name, "inputSchema": {"type": "object"}})).unwrap();
        Definition { view: Tool::from_raw(&raw).unwrap(), raw: raw.into() }
    };
    let listing =
        ServerListing { tools: vec![tool("read"), tool("write")], ..ServerListing::default() };
    CatalogEntry::new(
        Arc::new(connection),
        &config,
        Introduction::default(),
        listing,
        &mut Vec::new(),
    )
}

fn server(config: &Config) -> Arc<Server> {
    let (environment, connectors) = (Environment::default(), Connectors::default());
    let own_files = OwnFiles::default();
    let servers = config.servers.values();
    let settings = endpoint_resolution::prepare(servers, &environment, &connectors, &own_files);
    Arc::new(Server::new(settings.unwrap().remove(0)))
}

#[tokio::test]
async fn a_tool_that_a_reload_denies_does_not_come_back_with_an_entry_built_before() {
    let (before, after) = (config(&[]), config(&["write"]));
    let server = server(&before);
    let (events, tasks) = (EventPublisher::default(), BackgroundTasks::default());
    let registry =
        Registry::new([server.clone()], InvalidServers::new(), false, events.clone(), None);
    let made_before = entry(&server, &events, &tasks);
    assert_eq!(made_before.routes.tools.len(), 2);
    server.apply_config(&after.servers["one"], None);
    registry.listing_changed(&server, made_before);
    let catalog_entry = server.status().entry.clone().unwrap();
    let tools: Vec<_> = catalog_entry.routes.tools.iter().map(|route| &*route.name).collect();
    assert_eq!(tools, ["read"]);
}

#[tokio::test]
async fn the_first_reason_of_an_unavailable_server_stays_except_that_of_an_unresponsive_one() {
    let unresponsive = || UnavailableReason::Unresponsive { calls: 3 };
    let lost = || UnavailableReason::ConnectionLost("reset".into());
    for (first, second, is_replaced) in [
        (UnavailableReason::ClosedOutput, lost(), false),
        (unresponsive(), lost(), true),
        (unresponsive(), unresponsive(), false),
    ] {
        let server = server(&config(&[]));
        let events = EventPublisher::default();
        let registry = Registry::new([server.clone()], InvalidServers::new(), false, events, None);
        let (kept, expected) = (first.to_string(), second.to_string());
        assert!(registry.mark_unavailable(&server, first));
        assert_eq!(registry.mark_unavailable(&server, second), is_replaced, "{kept}, {expected}");
        let reason = server.status().unavailable_reason.as_ref().map(ToString::to_string);
        assert_eq!(reason, Some(if is_replaced { expected } else { kept }));
    }
}
