//! Lists that are too long, never come, or hold what nobody can use; and odd handshakes.

use innkeeper_host::{CallError, ErrorClass, Event, ServerState};
use innkeeper_testkit::Fixture;
use serde_json::{Map, Value, json};

use super::marked;
use crate::setup::{Scene, builder, text, told};
use crate::shell::Shell;

/// Starts this server, gives the names of its tools and what was left out, by what and why.
async fn offered(scene: &Scene, server: Fixture) -> (Vec<String>, Vec<(String, String)>) {
    let builder = builder(scene.config([server]));
    let mut events = builder.events();
    let host = builder.start().await.unwrap();
    let result = host.call_tool("one.echo", json!({"message": "well"})).await.unwrap();
    assert_eq!(text(&result), "well");
    let catalog = host.catalog();
    let tools = &catalog.server("one").unwrap().offer().unwrap().tools;
    let names = tools.iter().map(|tool| tool.view.name.clone()).collect();
    host.shutdown().await;
    (names, left_out(told(&mut events)))
}

/// What was left out according to these events, by what and why.
fn left_out(events: Vec<Event>) -> Vec<(String, String)> {
    let left_out = events.into_iter().filter_map(|event| match event {
        Event::Quarantined { what, reason, .. } => Some((what, reason)),
        _ => None,
    });
    left_out.collect()
}

/// Fault 44.
#[tokio::test]
async fn a_cursor_over_the_limit_is_not_sent_back_and_the_pages_before_it_stay() {
    for (longer, whole) in [(60 << 10, true), (65 << 10, false)] {
        let scene = Scene::new();
        let server = scene.fx("one").with("--pages", 3).with("--big-cursor", longer);
        let (names, left_out) = offered(&scene, server).await;
        assert_eq!(names.len() == 9, whole, "{names:?}");
        let list = left_out.iter().find(|(what, _)| what == "list of tools");
        let expected = (!whole).then_some("a cursor is longer than 65536 bytes");
        assert_eq!(list.map(|(_, why)| why.as_str()), expected);
    }
}

/// Fault 47.
#[tokio::test]
async fn of_a_hundred_thousand_tools_in_one_page_the_first_ten_thousand_are_kept() {
    let scene = Scene::new();
    let tool = |number| format!(r#"{{"name":"t{number}","inputSchema":{{}}}}"#);
    let tools: Vec<String> = (0..100_000).map(tool).collect();
    let page = scene.path("page");
    std::fs::write(&page, format!(r#"{{"tools":[{}]}}"#, tools.join(","))).unwrap();
    let on_list = format!("result=$(cat '{}')", page.display());
    let shell = Shell { on_list: &on_list, ..Shell::default() };
    let builder = builder(scene.config_of(&marked(&scene, &shell)));
    let mut events = builder.events();
    let host = builder.start().await.unwrap();
    assert_eq!(host.catalog().server("sh").unwrap().offer().unwrap().tools.len(), 10_000);
    let left_out = left_out(told(&mut events));
    assert!(left_out.iter().all(|(what, _)| what == "list of tools"), "{left_out:?}");
    assert!(!left_out.is_empty());
    host.call_tool("sh.t9999", ()).await.unwrap();
    host.shutdown().await;
}

/// Faults 54, 55 and 57.
#[tokio::test]
async fn tools_with_schemas_made_to_hurt_are_left_out_and_told_and_the_others_stay() {
    let scene = Scene::new();
    let tool = |name: &str, schema: Value| json!({"name": name, "inputSchema": schema});
    let many: Map<String, Value> = (0..50_000).map(|n| (format!("p{n}"), json!({}))).collect();
    let mut bomb = json!({"$ref": "#/$defs/a0"});
    for index in 0..30 {
        let next = json!({"$ref": format!("#/$defs/a{}", index + 1)});
        bomb["$defs"][format!("a{index}")] = json!({"allOf": [next, next]});
    }
    bomb["$defs"]["a30"] = json!(true);
    let mut wordy = tool("wordy", json!({"type": "object"}));
    wordy["description"] = json!("x".repeat(1 << 20));
    let tools = json!([
        tool("wide", json!({"type": "object", "properties": many})),
        tool("bomb", bomb),
        tool("fetches", json!({"properties": {"a": {"$ref": "http://127.0.0.1:9/a.json"}}})),
        wordy,
        tool("echo", json!({"type": "object"})),
    ]);
    std::fs::write(scene.path("tools.json"), tools.to_string()).unwrap();
    let server = scene.fx("one").with("--tools", scene.path("tools.json").display());
    let (names, left_out) = offered(&scene, server).await;
    assert_eq!(names, ["wordy", "echo"], "a long description is no danger to anybody");
    let told: Vec<&str> = left_out.iter().map(|(what, _)| what.as_str()).collect();
    assert_eq!(told, ["tool `wide`", "tool `bomb`", "tool `fetches`"], "{left_out:?}");
}

/// Fault 58.
#[tokio::test]
async fn a_server_whose_lists_never_come_is_out_in_time_and_its_neighbour_is_ready() {
    let scene = Scene::new();
    let hangs = scene.fx("hangs").switch("--hang-lists").key("initTimeout", 0.5);
    let refuses = scene.fx("refuses").with("--list-error", -32603).key("initTimeout", 0.5);
    let servers = [hangs, refuses].map(|server| server.key("required", false));
    let host = scene.start(servers.into_iter().chain([scene.fx("well")])).await.unwrap();
    let status = host.status();
    for name in ["hangs", "refuses"] {
        assert_eq!(status[name].state, ServerState::Unavailable);
        assert!(status[name].reason.as_ref().is_some_and(|why| why.contains("were listed")));
    }
    host.call_tool("well.echo", json!({"message": ""})).await.unwrap();
    host.shutdown().await;
    scene.assert_gone().await;
}

/// Fault 61.
#[tokio::test]
async fn a_tool_that_its_server_no_longer_knows_is_an_error_in_the_words_of_the_server() {
    let scene = Scene::new();
    let shell = Shell { on_call: "result=; code=-32602", ..Shell::default() };
    let host = builder(scene.config_of(&marked(&scene, &shell))).start().await.unwrap();
    let error = host.call_tool("sh.any", ()).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Server);
    let CallError::Server { server, item, error } = error else { panic!("{error:?}") };
    assert_eq!((&*server, &*item, error.code), ("sh", "any", -32602));
    host.shutdown().await;
}

/// Fault 66.
#[tokio::test]
async fn whatever_code_discover_is_refused_with_initialize_follows() {
    let scene = Scene::new();
    let codes = [-32601, -32600, -32602, -32603, -32099, -1, 0, 400];
    let server = |(at, code): (usize, &i32)| {
        scene.fx(&format!("s{at}")).with("--discover-error", code).key("initTimeout", 10)
    };
    let host = scene.start(codes.iter().enumerate().map(server)).await.unwrap();
    for at in 0..codes.len() {
        assert_eq!(host.status()[&*format!("s{at}")].state, ServerState::Ready);
    }
    assert_eq!(scene.journal().count("initialize"), codes.len());
    host.shutdown().await;
}
