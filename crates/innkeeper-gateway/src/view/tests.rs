//! Tests of the lists that a view watches.

use std::collections::{HashMap, HashSet};

use innkeeper_host::{Arguments, Config, Environment, Host, HostEvent};
use innkeeper_testkit::{fixture, mcp_json};
use serde_json::json;

use super::*;

/// Changes the list of tools of the server.
async fn change_tools(host: &Host) {
    let mut events = host.events();
    host.call_tool("a.grow", Arguments::from(json!({}))).await.unwrap();
    while !matches!(events.recv().await.unwrap(), HostEvent::CatalogChanged { .. }) {}
}

#[tokio::test]
async fn a_change_costs_nothing_at_endpoints_without_subscribers() {
    let file = mcp_json([fixture("a").switch("--list-changed")]);
    let environment = Environment::from_process();
    let config = Config::from_value(&file, "mcp.json", &std::env::temp_dir(), &environment);
    let host = Host::start(config.unwrap()).await.unwrap();
    let stoppable = Arc::new(HashSet::new());
    let upstream = Upstream::new(host.clone(), stoppable, HashMap::new());
    let view = View::shared(Arc::new(upstream), 2);
    let options = EndpointOptions::default();
    view.watch(0, &options);
    change_tools(&host).await;
    let changed = |index, subscribed| view.changed_lists(index, &options, || subscribed);
    let (tools, nothing) = ([true, false, false, false], [false; 4]);
    assert_eq!(changed(1, true), nothing, "nobody watched the endpoint");
    assert!(view.cached[1].load().is_none(), "the endpoint is not built");
    assert_eq!(changed(0, true), tools);
    assert_eq!(changed(0, true), nothing, "the subscribers know the change");
    change_tools(&host).await;
    assert_eq!(changed(0, false), nothing, "the last subscriber has gone");
    view.watch(0, &options);
    assert_eq!(changed(0, true), nothing, "a later subscriber sees the current list");
    change_tools(&host).await;
    view.watch(0, &options);
    assert_eq!(changed(0, true), tools, "a further subscriber takes no change from the others");
    host.shutdown().await;
}
