//! Routing of tool names to servers, and the errors for unknown names.

use std::time::Duration;

use innkeeper_host::error::RoutingError;
use innkeeper_host::{CallError, CallOptions, ErrorClass};
use serde_json::{Map, json};
use tokio::time::Instant;

use super::{request_ids, routing_error, unavailable_error};
use crate::setup::{TestEnv, builder, result_text};

/// Proves: FR4.1
#[tokio::test]
async fn a_tool_gets_its_parameters_and_the_caller_its_result() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one")]).await.unwrap();
    let result = host.call_tool("one.echo", json!({"message": "hello"})).await.unwrap();
    assert_eq!(result_text(&result), "hello");
    assert!(!result.is_error());
    let tool_result = host.call_tool("one.fail", json!({})).await.unwrap();
    assert!(tool_result.is_error(), "the tool's own failure is a result");
    let without = host.call_tool("one.pid", ()).await.unwrap();
    assert_eq!(result_text(&without), test_env.journal().pids()[0].to_string());
    let journal = test_env.journal();
    let (sent, ids) = (journal.params("tools/call"), request_ids(&journal, "tools/call"));
    let meta = |call: usize| json!({"progressToken": ids[call]});
    let echo = json!({"name": "echo", "arguments": {"message": "hello"}, "_meta": meta(0)});
    assert_eq!(*sent[0], echo);
    assert_eq!(*sent[2], json!({"name": "pid", "arguments": {}, "_meta": meta(2)}));
    host.shutdown().await;
}

/// Proves: FR4.7
#[tokio::test]
async fn of_two_servers_with_the_same_tool_the_one_in_the_name_is_called() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one"), test_env.fixture("two")]).await.unwrap();
    for name in ["two", "one", "two"] {
        let result = host.call_tool(&format!("{name}.pid"), json!({})).await.unwrap();
        assert_eq!(result_text(&result), test_env.journal().for_server(name).pids()[0].to_string());
    }
    assert_eq!(test_env.journal().for_server("one").count("tools/call"), 1);
    assert_eq!(test_env.journal().for_server("two").count("tools/call"), 2);
    host.shutdown().await;
}

/// Proves: FR4.2
#[tokio::test]
async fn dots_in_names_of_tools_and_servers_are_no_obstacle() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("fs"), test_env.fixture("x.y")]).await.unwrap();
    for (name, server) in [("fs.a.b", "fs"), ("x.y.a.b", "x.y"), ("x.y.echo", "x.y")] {
        host.call_tool(name, json!({"message": ""})).await.unwrap();
        let (_, tool) = name.split_at(server.len() + 1);
        assert_eq!(
            test_env.journal().for_server(server).params("tools/call").last().unwrap()["name"],
            tool
        );
    }
    host.shutdown().await;
}

/// Proves: FR4.2
#[tokio::test]
async fn a_name_two_servers_could_mean_goes_to_the_longer_server_name() {
    let tools = |name: &str| json!([{"name": name, "inputSchema": {}}]).to_string();
    for reversed in [false, true] {
        let test_env = TestEnv::new();
        let mut servers = vec![
            test_env.fixture("a").with("--tools", tools("b.greet")),
            test_env.fixture("a.b").with("--tools", tools("greet")),
        ];
        if reversed {
            servers.reverse();
        }
        let host = test_env.start(servers).await.unwrap();
        host.call_tool("a.b.greet", json!({})).await.unwrap();
        assert_eq!(
            test_env.journal().for_server("a.b").count("tools/call"),
            1,
            "reversed: {reversed}"
        );
        host.get_prompt("a.b.plain", &Map::new(), CallOptions::default()).await.unwrap();
        host.shutdown().await;
    }
}

/// Proves: N15, FR4.3
#[tokio::test]
async fn a_name_without_a_known_server_or_tool_is_a_routing_error_with_a_suggestion() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one"), test_env.fixture("two")]).await.unwrap();
    for (name, message) in [
        ("nope.x", "no server for `nope.x`"),
        ("x", "no server for `x`"),
        ("", "no server for ``"),
        (".", "no server for `.`"),
        ("one.", "no server for `one.`"),
        (".echo", "no server for `.echo`; did you mean `one.echo`?"),
        ("oen.echo", "no server for `oen.echo`; did you mean `one.echo`?"),
        ("one.ehco", "server `one` has no tool `ehco`; did you mean `one.echo`?"),
        ("One.echo", "no server for `One.echo`; did you mean `one.echo`?"),
        ("two.nothing_like_it", "server `two` has no tool `nothing_like_it`"),
        ("echo", "`echo` exists on several servers: one.echo; two.echo"),
    ] {
        let error = host.call_tool(name, json!({})).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Routing, "{name}");
        assert_eq!(error.to_string(), message);
    }
    assert_eq!(test_env.journal().count("tools/call"), 0);
    host.shutdown().await;
}

#[tokio::test]
async fn a_suggested_tool_is_similar_itself_or_has_the_name_on_another_server() {
    let test_env = TestEnv::new();
    let only = json!([{"name": "only", "inputSchema": {"type": "object"}}]);
    let other = test_env.fixture("other").with("--tools", only);
    let host = test_env.start([test_env.fixture("everything"), other]).await.unwrap();
    for (name, message) in [
        ("everything.nope", "server `everything` has no tool `nope`"),
        (
            "everything.ecko",
            "server `everything` has no tool `ecko`; did you mean `everything.echo`?",
        ),
        ("everything.only", "server `everything` has no tool `only`; did you mean `other.only`?"),
    ] {
        let error = host.call_tool(name, json!({})).await.unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    host.shutdown().await;
}

/// Attack: model | names of 1 MiB for a tool, prompt, resource and server, beside 2,000 tools |
/// twelve calls fail within 2 s | No unbounded wait
#[tokio::test]
async fn names_of_a_megabyte_are_refused_as_fast_as_others() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one").with("--many-tools", 2_000)]).await.unwrap();
    let started_at = Instant::now();
    for name in ["x".repeat(1 << 20), ".".repeat(1 << 20), "one.".repeat(1 << 18)] {
        routing_error(host.call_tool(&name, json!({})).await);
        routing_error(host.get_prompt(&name, &Map::new(), CallOptions::default()).await);
        routing_error(host.read_resource(&name, None, CallOptions::default()).await);
        routing_error(
            host.read_resource("fx://one/static", Some(&name), CallOptions::default()).await,
        );
    }
    assert!(started_at.elapsed() < Duration::from_secs(2), "{:?}", started_at.elapsed());
    host.shutdown().await;
}

/// Proves: FR4.3
#[tokio::test]
async fn a_bare_name_is_refused_with_its_only_candidate() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one")]).await.unwrap();
    let error = routing_error(host.call_tool("echo", json!({"message": ""})).await);
    let RoutingError::UnknownServer { suggestion, .. } = error else { panic!("{error:?}") };
    assert_eq!(suggestion.as_deref(), Some("one.echo"));
    host.shutdown().await;
}

#[tokio::test]
async fn bare_names_are_taken_where_allowed_and_only_one_server_has_them() {
    let test_env = TestEnv::new();
    let servers = [
        test_env.fixture("one").config_key("tools", json!({"allow": ["echo"]})),
        test_env.fixture("two").config_key("tools", json!({"allow": ["echo", "a.b"]})),
    ];
    let config = test_env.config_with(&json!({"allowBareNames": true}), servers);
    let host = builder(config).start().await.unwrap();
    host.call_tool("a.b", json!({})).await.unwrap();
    assert_eq!(test_env.journal().for_server("two").params("tools/call")[0]["name"], "a.b");
    let error = routing_error(host.call_tool("echo", json!({"message": ""})).await);
    let RoutingError::Ambiguous { candidates, .. } = error else { panic!("{error:?}") };
    assert_eq!(candidates, ["one.echo".into(), "two.echo".into()]);
    assert_eq!(
        result_text(&host.call_tool("two.echo", json!({"message": "2"})).await.unwrap()),
        "2"
    );
    host.shutdown().await;
}

/// Proves: FR4.4
#[tokio::test]
async fn an_unknown_server_and_one_that_is_gone_give_different_errors() {
    let test_env = TestEnv::new();
    let host = test_env
        .start([test_env.fixture("one"), test_env.fixture("gone").with("--crash-after", 1)])
        .await
        .unwrap();
    host.call_tool("gone.echo", json!({"message": ""})).await.unwrap_err();
    for name in ["gone.echo", "gone.nothing_it_ever_had"] {
        let result = host.call_tool(name, json!({"message": ""})).await;
        let error = result.as_ref().unwrap_err();
        assert_eq!(error.class(), ErrorClass::ServerUnavailable);
        assert_eq!(error.server(), Some("gone"));
        let (_, may_have_run) = unavailable_error(result);
        assert!(!may_have_run, "nothing was sent");
    }
    let greet = host.get_prompt("gone.plain", &Map::new(), CallOptions::default()).await;
    unavailable_error(greet);
    routing_error(host.call_tool("never.echo", json!({"message": ""})).await);
    assert_eq!(test_env.journal().count("tools/call"), 1);
    host.shutdown().await;
    unavailable_error(host.call_tool("one.echo", json!({"message": ""})).await);
}

/// Attack: model | a call names a tool that the configuration denies | no request is sent |
/// Approval first
#[tokio::test]
async fn a_tool_kept_out_by_the_configuration_cannot_be_called_and_the_status_says_why() {
    let test_env = TestEnv::new();
    let rules = json!({"allow": ["e*", "fail"], "deny": ["env"]});
    let host = test_env.start([test_env.fixture("one").config_key("tools", rules)]).await.unwrap();
    let catalog = host.catalog();
    assert_eq!(catalog.tool_names().collect::<Vec<_>>(), ["one.echo", "one.fail"]);
    for name in ["one.env", "one.pid"] {
        let error = host.call_tool(name, json!({})).await.unwrap_err();
        assert!(matches!(error, CallError::Routing(RoutingError::UnknownItem { .. })), "{error}");
    }
    assert_eq!(test_env.journal().count("tools/call"), 0);
    let status = &host.status()["one"];
    let reason_of = |tool: &str| {
        let excluded = status.excluded_tools.iter().find(|(name, _)| &**name == tool);
        excluded.map(|(_, reason)| reason.as_str())
    };
    assert_eq!(reason_of("env"), Some("denied by `env` in `tools.deny`"));
    assert_eq!(reason_of("pid"), Some("not in `tools.allow`"));
    assert_eq!(reason_of("echo"), None);
    host.shutdown().await;
}

#[tokio::test]
async fn a_tool_without_a_usable_schema_is_excluded_by_name_and_a_call_says_why() {
    let test_env = TestEnv::new();
    let dangling = json!({"properties": {"a": {"$ref": "#/$defs/Nope"}}});
    let tools =
        json!([{"name": "missing"}, {"name": "dangling", "inputSchema": dangling}]).to_string();
    let host = test_env.start([test_env.fixture("one").with("--tools", tools)]).await.unwrap();
    for (tool, part) in [("missing", "`/inputSchema`"), ("dangling", "`#/$defs/Nope`")] {
        let error = host.call_tool(&format!("one.{tool}"), json!({})).await.unwrap_err();
        assert!(
            matches!(error, CallError::Routing(RoutingError::UnusableItem { .. })),
            "{error:?}"
        );
        let message = error.to_string();
        assert!(message.starts_with(&format!("tool `{tool}` of server `one` is excluded: ")));
        assert!(message.contains(part), "{message}");
    }
    host.shutdown().await;
}

#[tokio::test]
async fn tools_and_prompts_with_spaces_in_their_names_can_be_used() {
    let test_env = TestEnv::new();
    let tools = json!([{"name": "with space", "inputSchema": {"required": null}}]).to_string();
    let server = test_env.fixture("My Server").with("--tools", tools);
    let host = test_env.start([server]).await.unwrap();
    assert_eq!(host.catalog().tool_names().collect::<Vec<_>>(), ["My Server.with space"]);
    host.call_tool("My Server.with space", json!({})).await.unwrap();
    host.get_prompt("My Server.plain", &Map::new(), CallOptions::default()).await.unwrap();
    host.shutdown().await;
}
