//! Lists that are too long, missing or unusable, and unusual handshakes.

use innkeeper_host::{CallError, ErrorClass, HostEvent, ServerState};
use innkeeper_testkit::Fixture;
use serde_json::{Map, Value, json};

use super::tagged_config;
use crate::setup::{TestEnv, builder, drain_events, result_text};
use crate::shell_server::ShellServer;

/// Starts the server and returns its tool names and the excluded items with their reasons.
async fn listed_tools(test_env: &TestEnv, server: Fixture) -> (Vec<String>, Vec<(String, String)>) {
    let builder = builder(test_env.config([server]));
    let mut events = builder.events();
    let host = builder.start().await.unwrap();
    let result = host.call_tool("one.echo", json!({"message": "well"})).await.unwrap();
    assert_eq!(result_text(&result), "well");
    let catalog = host.catalog();
    let tools = &catalog.server("one").unwrap().listing().unwrap().tools;
    let names = tools.iter().map(|tool| tool.view.name.clone()).collect();
    host.shutdown().await;
    (names, quarantined(drain_events(&mut events)))
}

/// Returns the excluded items in these events with their reasons.
fn quarantined(events: Vec<HostEvent>) -> Vec<(String, String)> {
    let exclusions = events.into_iter().filter_map(|event| match event {
        HostEvent::Quarantined { subject, reason, .. } => Some((subject, reason)),
        _ => None,
    });
    exclusions.collect()
}

/// Fault 44.
/// Attack: data | a cursor of 65 KiB | the host does not send the cursor, and keeps the earlier
/// pages | No unbounded memory
#[tokio::test]
async fn a_cursor_over_the_limit_is_not_sent_back_and_the_pages_before_it_stay() {
    for (longer, is_complete) in [(60 << 10, true), (65 << 10, false)] {
        let test_env = TestEnv::new();
        let server = test_env.fixture("one").with("--pages", 3).with("--big-cursor", longer);
        let (names, exclusions) = listed_tools(&test_env, server).await;
        assert_eq!(names.len() == 9, is_complete, "{names:?}");
        let list = exclusions.iter().find(|(subject, _)| subject == "tool list");
        let expected = (!is_complete).then_some("cursor exceeds 65536 bytes");
        assert_eq!(list.map(|(_, why)| why.as_str()), expected);
    }
}

/// Fault 47.
/// Attack: data | 100,000 tools in one page | the host keeps 10,000 tools and reports the rest | No
/// unbounded memory
#[tokio::test]
async fn of_a_hundred_thousand_tools_in_one_page_the_first_ten_thousand_are_kept() {
    let test_env = TestEnv::new();
    let tool = |number| format!(r#"{{"name":"t{number}","inputSchema":{{}}}}"#);
    let tools: Vec<String> = (0..100_000).map(tool).collect();
    let page = test_env.path("page");
    std::fs::write(&page, format!(r#"{{"tools":[{}]}}"#, tools.join(","))).unwrap();
    let on_list = format!("result=$(cat '{}')", page.display());
    let shell = ShellServer { on_list: &on_list, ..ShellServer::default() };
    let builder = builder(test_env.config_from(&tagged_config(&test_env, &shell)));
    let mut events = builder.events();
    let host = builder.start().await.unwrap();
    assert_eq!(host.catalog().server("sh").unwrap().listing().unwrap().tools.len(), 10_000);
    let exclusions = quarantined(drain_events(&mut events));
    assert!(exclusions.iter().all(|(what, _)| what == "tool list"), "{exclusions:?}");
    assert!(!exclusions.is_empty());
    host.call_tool("sh.t9999", ()).await.unwrap();
    host.shutdown().await;
}

/// Faults 54, 55 and 57.
/// Attack: data | schemas with 50,000 properties, with exponential references, and with a reference
/// to a URL | the tools are excluded and reported; the other tools remain | No unbounded wait
#[tokio::test]
async fn tools_with_hostile_schemas_are_quarantined_and_reported_and_the_others_stay() {
    let test_env = TestEnv::new();
    let tool = |name: &str, schema: Value| json!({"name": name, "inputSchema": schema});
    let many: Map<String, Value> = (0..50_000).map(|n| (format!("p{n}"), json!({}))).collect();
    let mut bomb = json!({"$ref": "#/$defs/a0"});
    for index in 0..30 {
        let next = json!({"$ref": format!("#/$defs/a{}", index + 1)});
        bomb["$defs"][format!("a{index}")] = json!({"allOf": [next, next]});
    }
    bomb["$defs"]["a30"] = json!(true);
    let mut verbose = tool("wordy", json!({"type": "object"}));
    verbose["description"] = json!("x".repeat(1 << 20));
    let tools = json!([
        tool("wide", json!({"type": "object", "properties": many})),
        tool("bomb", bomb),
        tool("fetches", json!({"properties": {"a": {"$ref": "http://127.0.0.1:9/a.json"}}})),
        verbose,
        tool("echo", json!({"type": "object"})),
    ]);
    std::fs::write(test_env.path("tools.json"), tools.to_string()).unwrap();
    let server = test_env.fixture("one").with("--tools", test_env.path("tools.json").display());
    let (names, exclusions) = listed_tools(&test_env, server).await;
    assert_eq!(names, ["wordy", "echo"], "a long description is no danger to anybody");
    let subjects: Vec<&str> = exclusions.iter().map(|(subject, _)| subject.as_str()).collect();
    assert_eq!(subjects, ["tool `wide`", "tool `bomb`", "tool `fetches`"], "{exclusions:?}");
}

/// Fault 58.
/// Attack: data | the server never responds to its list requests | the start of the server fails at
/// its timeout; another server is ready | No unbounded wait
#[tokio::test]
async fn a_server_whose_lists_never_come_is_out_in_time_and_its_neighbour_is_ready() {
    let test_env = TestEnv::new();
    let hangs = test_env.fixture("hangs").switch("--hang-lists").config_key("initTimeout", 0.5);
    let refuses =
        test_env.fixture("refuses").with("--list-error", -32603).config_key("initTimeout", 0.5);
    let servers = [hangs, refuses].map(|server| server.config_key("required", false));
    let host = test_env.start(servers.into_iter().chain([test_env.fixture("well")])).await.unwrap();
    let status = host.status();
    for name in ["hangs", "refuses"] {
        assert_eq!(status[name].state, ServerState::Unavailable);
        assert!(status[name].reason.as_ref().is_some_and(
            |why| why.contains("could not list its ") || why.contains("while listing tools")
        ));
    }
    host.call_tool("well.echo", json!({"message": ""})).await.unwrap();
    host.shutdown().await;
    test_env.assert_gone().await;
}

/// Fault 61.
#[tokio::test]
async fn a_tool_that_its_server_no_longer_knows_is_an_error_with_the_message_of_the_server() {
    let test_env = TestEnv::new();
    let shell = ShellServer { on_call: "result=; code=-32602", ..ShellServer::default() };
    let host =
        builder(test_env.config_from(&tagged_config(&test_env, &shell))).start().await.unwrap();
    let error = host.call_tool("sh.any", ()).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Server);
    let CallError::Server { server, item, error } = error else { panic!("{error:?}") };
    assert_eq!((&*server, &*item, error.code), ("sh", "any", -32602));
    host.shutdown().await;
}

/// Fault 66.
#[tokio::test]
async fn whatever_code_discover_is_refused_with_initialize_follows() {
    let test_env = TestEnv::new();
    let codes = [-32601, -32600, -32602, -32603, -32099, -1, 0, 400];
    let server = |(at, code): (usize, &i32)| {
        test_env
            .fixture(&format!("s{at}"))
            .with("--discover-error", code)
            .config_key("initTimeout", 10)
    };
    let host = test_env.start(codes.iter().enumerate().map(server)).await.unwrap();
    for at in 0..codes.len() {
        assert_eq!(host.status()[&*format!("s{at}")].state, ServerState::Ready);
    }
    assert_eq!(test_env.journal().count("initialize"), codes.len());
    host.shutdown().await;
}
