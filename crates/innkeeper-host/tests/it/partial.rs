//! Starts in which the trouble of one server is its own: invalid entries, optional servers.

use std::path::PathBuf;

use innkeeper_host::{Config, Environment, HostEvent, ServerState, StartError};
use innkeeper_testkit::{Fixture, mcp_json};
use serde_json::{Value, json};

use crate::setup::{TestEnv, builder, drain_events};

fn write_config(test_env: &TestEnv, file: &Value) -> PathBuf {
    let path = test_env.path("mcp.json");
    std::fs::write(&path, file.to_string()).unwrap();
    path
}

fn load_partial(test_env: &TestEnv, file: &Value) -> Config {
    let path = write_config(test_env, file);
    Config::load_partial(&[path], &Environment::from_process()).unwrap()
}

fn dependent(test_env: &TestEnv, name: &str, dependency: &str) -> Fixture {
    test_env.fixture(name).config_key("dependencies", json!([dependency]))
}

#[tokio::test]
async fn a_server_with_an_invalid_entry_is_unavailable_and_the_others_are_ready() {
    let test_env = TestEnv::new();
    let unset = test_env.fixture("unset").env("KEY", "${INNKEEPER_NOT_SET_ANYWHERE}");
    let file = mcp_json([unset, test_env.fixture("good"), dependent(&test_env, "after", "unset")]);
    let config = load_partial(&test_env, &file);
    let host = builder(config.clone());
    let checked = host.check().unwrap_err().to_string();
    assert!(checked.contains("INNKEEPER_NOT_SET_ANYWHERE"), "{checked}");
    let Err(StartError::Servers(failures)) = host.start().await else { panic!("it has started") };
    assert_eq!(failures.len(), 1);
    assert!(failures[0].to_string().contains("dependency `unset` is unavailable"));

    let host = builder(config.with_optional_servers());
    let mut events = host.events();
    let host = host.start().await.unwrap();
    let unavailable: Vec<String> = drain_events(&mut events)
        .into_iter()
        .filter_map(|event| match event {
            HostEvent::Unavailable { server, .. } => Some(server.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(unavailable, ["unset", "after"]);
    host.call_tool("good.echo", json!({"message": "hi"})).await.unwrap();
    let status = host.status();
    let names: Vec<&str> = status.keys().map(|name| &**name).collect();
    assert_eq!(names, ["good", "after", "unset"]);
    assert_eq!(status["unset"].state, ServerState::Unavailable);
    let reason = status["unset"].reason.clone().unwrap();
    assert!(reason.starts_with("invalid configuration: "), "{reason}");
    assert!(reason.contains("variable `INNKEEPER_NOT_SET_ANYWHERE` is not set"), "{reason}");
    assert!(status["after"].reason.as_ref().unwrap().contains("dependency `unset`"));
    let error = host.call_tool("unset.echo", json!({"message": "hi"})).await.unwrap_err();
    assert_eq!(error.to_string(), format!("server `unset` is unavailable: {reason}"));
    assert!(test_env.journal().for_server("after").entries.is_empty());
    host.shutdown().await;
    test_env.assert_gone().await;
}

#[tokio::test]
async fn whatever_keeps_an_optional_server_from_its_start_affects_only_its_dependents() {
    let test_env = TestEnv::new();
    let far = json!({"url": "https://a.example/mcp", "headersHelper": "innkeeper-no-such-helper"});
    let mut file = mcp_json([
        test_env.fixture("command").config_key("command", "innkeeper-no-such-program"),
        test_env.fixture("cwd").config_key("cwd", "missing"),
        test_env.fixture("crash").with("--init-error", -32000),
        dependent(&test_env, "after", "command"),
        dependent(&test_env, "afterwards", "after"),
        test_env.fixture("good"),
    ]);
    file["servers"]["helper"] = far;
    file["servers"]["connector"] = json!({"type": "in-process"});
    let config = load_partial(&test_env, &file).with_optional_servers();
    let host = builder(config);
    let warnings = host.check().unwrap();
    let keys: Vec<&str> = warnings.iter().map(|warning| &*warning.key).collect();
    let expected =
        ["servers.command.command", "servers.helper.headersHelper", "servers.connector.type"];
    assert_eq!(keys, expected);
    let host = host.start().await.unwrap();
    host.call_tool("good.echo", json!({"message": "hi"})).await.unwrap();
    let status = host.status();
    for (name, expected) in [
        ("command", "command `innkeeper-no-such-program` was not found"),
        ("cwd", "the working directory"),
        ("crash", "-32000"),
        ("after", "dependency `command` is unavailable"),
        ("afterwards", "dependency `after` is unavailable"),
        ("helper", "servers.helper.headersHelper: command `innkeeper-no-such-helper`"),
        ("connector", "no connector"),
    ] {
        let reason = status[name].reason.clone().unwrap_or_default();
        assert!(reason.contains(expected), "{name}: {reason}");
    }
    host.shutdown().await;
    test_env.assert_gone().await;
}

#[tokio::test]
async fn a_failing_server_beside_nine_others_delays_none_of_them() {
    let test_env = TestEnv::new();
    let good = (0..9).map(|number| test_env.fixture(&format!("good{number}")));
    let hangs = test_env.fixture("hangs").switch("--hang-init").config_key("initTimeout", 5);
    let config = test_env.config(std::iter::once(hangs).chain(good));
    let host = builder(config.with_optional_servers());
    let mut events = host.events();
    let host = host.start().await.unwrap();
    let ends: Vec<String> = drain_events(&mut events)
        .into_iter()
        .filter_map(|event| match event {
            HostEvent::Ready { server, .. } | HostEvent::Unavailable { server, .. } => {
                Some(server.to_string())
            }
            _ => None,
        })
        .collect();
    assert_eq!(ends.len(), 10);
    assert_eq!(ends[9], "hangs", "the others are ready while the server fails: {ends:?}");
    assert_eq!(host.catalog().servers().count(), 9);
    host.shutdown().await;
    test_env.assert_gone().await;
}

#[tokio::test]
async fn a_reload_keeps_the_earlier_entry_of_a_server_whose_new_entry_is_invalid() {
    let test_env = TestEnv::new();
    let both = [test_env.fixture("one"), test_env.fixture("two")];
    let host = builder(load_partial(&test_env, &mcp_json(both))).start().await.unwrap();
    let broken = |name: &str| test_env.fixture(name).env("KEY", "${INNKEEPER_NOT_SET_ANYWHERE}");
    let file = mcp_json([broken("one"), broken("new"), test_env.fixture("three")]);
    write_config(&test_env, &file);
    let report = host.reload().await.unwrap();
    let names = |names: &[std::sync::Arc<str>]| names.join(",");
    assert_eq!(names(&report.invalid), "one,new");
    assert_eq!((&*names(&report.added), &*names(&report.removed)), ("three", "two"));
    host.call_tool("one.echo", json!({"message": "hi"})).await.unwrap();
    host.call_tool("three.echo", json!({"message": "hi"})).await.unwrap();
    let error = host.call_tool("new.echo", json!({"message": "hi"})).await.unwrap_err();
    assert!(error.to_string().contains("invalid configuration: "), "{error}");
    let report = host.shutdown().await;
    assert_eq!(report.servers.len(), 2);
    test_env.assert_gone().await;
}
