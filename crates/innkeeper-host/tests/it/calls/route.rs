//! Which server a tool's name leads to, and what is said of a name that leads nowhere.

use std::time::Duration;

use innkeeper_host::error::RoutingError;
use innkeeper_host::{CallError, CallOptions, ErrorClass};
use serde_json::{Map, json};
use tokio::time::Instant;

use super::{ids, routing, unavailable};
use crate::setup::{Scene, builder, text};

/// Proves: FR4.1
#[tokio::test]
async fn a_tool_gets_its_parameters_and_the_caller_its_result() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one")]).await.unwrap();
    let result = host.call_tool("one.echo", json!({"message": "hello"})).await.unwrap();
    assert_eq!(text(&result), "hello");
    assert!(!result.is_error());
    let failed = host.call_tool("one.fail", json!({})).await.unwrap();
    assert!(failed.is_error(), "the tool's own failure is a result");
    let without = host.call_tool("one.pid", ()).await.unwrap();
    assert_eq!(text(&without), scene.journal().pids()[0].to_string());
    let journal = scene.journal();
    let (sent, ids) = (journal.params("tools/call"), ids(&journal, "tools/call"));
    let meta = |call: usize| json!({"progressToken": ids[call]});
    let echo = json!({"name": "echo", "arguments": {"message": "hello"}, "_meta": meta(0)});
    assert_eq!(*sent[0], echo);
    assert_eq!(*sent[2], json!({"name": "pid", "arguments": {}, "_meta": meta(2)}));
    host.shutdown().await;
}

/// Proves: FR4.7
#[tokio::test]
async fn of_two_servers_with_the_same_tool_the_one_in_the_name_is_called() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one"), scene.fx("two")]).await.unwrap();
    for name in ["two", "one", "two"] {
        let result = host.call_tool(&format!("{name}.pid"), json!({})).await.unwrap();
        assert_eq!(text(&result), scene.journal().of(name).pids()[0].to_string());
    }
    assert_eq!(scene.journal().of("one").count("tools/call"), 1);
    assert_eq!(scene.journal().of("two").count("tools/call"), 2);
    host.shutdown().await;
}

/// Proves: FR4.2
#[tokio::test]
async fn dots_in_names_of_tools_and_servers_are_no_obstacle() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("fs"), scene.fx("x.y")]).await.unwrap();
    for (name, server) in [("fs.a.b", "fs"), ("x.y.a.b", "x.y"), ("x.y.echo", "x.y")] {
        host.call_tool(name, json!({"message": ""})).await.unwrap();
        let (_, tool) = name.split_at(server.len() + 1);
        assert_eq!(scene.journal().of(server).params("tools/call").last().unwrap()["name"], tool);
    }
    host.shutdown().await;
}

/// Proves: FR4.2
#[tokio::test]
async fn a_name_two_servers_could_mean_goes_to_the_longer_server_name() {
    let tools = |name: &str| json!([{"name": name, "inputSchema": {}}]).to_string();
    for reversed in [false, true] {
        let scene = Scene::new();
        let mut servers = vec![
            scene.fx("a").with("--tools", tools("b.greet")),
            scene.fx("a.b").with("--tools", tools("greet")),
        ];
        if reversed {
            servers.reverse();
        }
        let host = scene.start(servers).await.unwrap();
        host.call_tool("a.b.greet", json!({})).await.unwrap();
        assert_eq!(scene.journal().of("a.b").count("tools/call"), 1, "reversed: {reversed}");
        host.get_prompt("a.b.plain", &Map::new(), CallOptions::default()).await.unwrap();
        host.shutdown().await;
    }
}

/// Proves: N15, FR4.3
#[tokio::test]
async fn a_name_without_a_known_server_or_tool_is_a_routing_error_with_a_suggestion() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one"), scene.fx("two")]).await.unwrap();
    for (name, message) in [
        ("nope.x", "`nope.x` names no known server"),
        ("x", "`x` names no known server"),
        ("", "`` names no known server"),
        (".", "`.` names no known server"),
        ("one.", "`one.` names no known server"),
        (".echo", "`.echo` names no known server; did you mean `one.echo`?"),
        ("oen.echo", "`oen.echo` names no known server; did you mean `one.echo`?"),
        ("one.ehco", "server `one` has no tool `ehco`; did you mean `one.echo`?"),
        ("One.echo", "`One.echo` names no known server; did you mean `one.echo`?"),
        ("two.nothing_like_it", "server `two` has no tool `nothing_like_it`"),
        ("echo", "`echo` is offered by several servers: one.echo; two.echo"),
    ] {
        let error = host.call_tool(name, json!({})).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Routing, "{name}");
        assert_eq!(error.to_string(), message);
    }
    assert_eq!(scene.journal().count("tools/call"), 0);
    host.shutdown().await;
}

#[tokio::test]
async fn names_of_a_megabyte_are_refused_as_fast_as_others() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one").with("--many-tools", 2_000)]).await.unwrap();
    let began = Instant::now();
    for name in ["x".repeat(1 << 20), ".".repeat(1 << 20), "one.".repeat(1 << 18)] {
        routing(host.call_tool(&name, json!({})).await);
        routing(host.get_prompt(&name, &Map::new(), CallOptions::default()).await);
        routing(host.read_resource(&name, None, CallOptions::default()).await);
        routing(host.read_resource("fx://one/static", Some(&name), CallOptions::default()).await);
    }
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    host.shutdown().await;
}

/// Proves: FR4.3
#[tokio::test]
async fn a_bare_name_is_refused_with_its_only_candidate() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one")]).await.unwrap();
    let error = routing(host.call_tool("echo", json!({"message": ""})).await);
    let RoutingError::UnknownServer { suggestion, .. } = error else { panic!("{error:?}") };
    assert_eq!(suggestion.as_deref(), Some("one.echo"));
    host.shutdown().await;
}

#[tokio::test]
async fn bare_names_are_taken_where_allowed_and_only_one_server_has_them() {
    let scene = Scene::new();
    let servers = [
        scene.fx("one").key("tools", json!({"allow": ["echo"]})),
        scene.fx("two").key("tools", json!({"allow": ["echo", "a.b"]})),
    ];
    let config = scene.config_with(&json!({"allowBareNames": true}), servers);
    let host = builder(config).start().await.unwrap();
    host.call_tool("a.b", json!({})).await.unwrap();
    assert_eq!(scene.journal().of("two").params("tools/call")[0]["name"], "a.b");
    let error = routing(host.call_tool("echo", json!({"message": ""})).await);
    let RoutingError::Ambiguous { candidates, .. } = error else { panic!("{error:?}") };
    assert_eq!(candidates, ["one.echo".into(), "two.echo".into()]);
    assert_eq!(text(&host.call_tool("two.echo", json!({"message": "2"})).await.unwrap()), "2");
    host.shutdown().await;
}

/// Proves: FR4.4
#[tokio::test]
async fn an_unknown_server_and_one_that_is_gone_give_different_errors() {
    let scene = Scene::new();
    let host =
        scene.start([scene.fx("one"), scene.fx("gone").with("--crash-after", 1)]).await.unwrap();
    host.call_tool("gone.echo", json!({"message": ""})).await.unwrap_err();
    for name in ["gone.echo", "gone.nothing_it_ever_had"] {
        let result = host.call_tool(name, json!({"message": ""})).await;
        let error = result.as_ref().unwrap_err();
        assert_eq!(error.class(), ErrorClass::ServerUnavailable);
        assert_eq!(error.server(), Some("gone"));
        let (_, may_have_run) = unavailable(result);
        assert!(!may_have_run, "nothing was sent");
    }
    let greet = host.get_prompt("gone.plain", &Map::new(), CallOptions::default()).await;
    unavailable(greet);
    routing(host.call_tool("never.echo", json!({"message": ""})).await);
    assert_eq!(scene.journal().count("tools/call"), 1);
    host.shutdown().await;
    unavailable(host.call_tool("one.echo", json!({"message": ""})).await);
}

#[tokio::test]
async fn a_tool_kept_out_by_the_configuration_cannot_be_called_and_the_status_says_why() {
    let scene = Scene::new();
    let rules = json!({"allow": ["e*", "fail"], "deny": ["env"]});
    let host = scene.start([scene.fx("one").key("tools", rules)]).await.unwrap();
    let catalog = host.catalog();
    assert_eq!(catalog.tool_names().collect::<Vec<_>>(), ["one.echo", "one.fail"]);
    for name in ["one.env", "one.pid"] {
        let error = host.call_tool(name, json!({})).await.unwrap_err();
        assert!(matches!(error, CallError::Routing(RoutingError::UnknownItem { .. })), "{error}");
    }
    assert_eq!(scene.journal().count("tools/call"), 0);
    let status = &host.status()["one"];
    let why = |tool: &str| {
        let found = status.hidden.iter().find(|(name, _)| &**name == tool);
        found.map(|(_, reason)| reason.as_str())
    };
    assert_eq!(why("env"), Some("`tools.deny` has `env`"));
    assert_eq!(why("pid"), Some("`tools.allow` does not have it"));
    assert_eq!(why("echo"), None);
    host.shutdown().await;
}
