//! Lists that change while their server runs.

use std::time::Duration;

use innkeeper_host::{ErrorClass, Event, Host};
use innkeeper_testkit::Journal;
use serde_json::{Map, json};
use tokio::time::Instant;

use super::{is_change, tools};
use crate::setup::{PATIENCE, Scene, builder, text, told, until_told};
use crate::shell::Shell;

/// Has the server add an entry and gives its name.
async fn grow(host: &Host, server: &str, what: &str) -> String {
    let result = host.call_tool(&format!("{server}.grow"), json!({"what": what})).await.unwrap();
    let names: Vec<String> = serde_json::from_str(&text(&result)).unwrap();
    names.last().unwrap().clone()
}

/// Calls again until the tool is known; how long that took.
async fn until_callable(host: &Host, tool: &str) -> Duration {
    let began = Instant::now();
    let calling = async {
        while let Err(error) = host.call_tool(tool, json!({})).await {
            assert_eq!(error.class(), ErrorClass::Routing, "{error}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, calling).await.expect("the new tool can be called");
    began.elapsed()
}

/// Proves: FR3.6, FR3.7, N25
#[tokio::test]
async fn a_new_tool_can_be_called_within_a_second_and_a_removed_one_no_longer() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one").switch("--list-changed")]).await.unwrap();
    let mut events = host.events();
    let old = host.catalog();
    let name = grow(&host, "one", "tools").await;
    let tool = format!("one.{name}");
    let took = until_callable(&host, &tool).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert!(tools(&host.catalog(), "one").contains(&name));
    assert!(!tools(&old, "one").contains(&name), "a snapshot stays as it was");
    let changed = until_told(&mut events, is_change).await;
    assert!(matches!(changed, Event::CatalogChanged { server } if &*server == "one"));

    let began = Instant::now();
    host.call_tool("one.shrink", json!({})).await.unwrap();
    until_told(&mut events, is_change).await;
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    let before = scene.journal().count("tools/call");
    let error = host.call_tool(&tool, json!({})).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Routing);
    assert_eq!(scene.journal().count("tools/call"), before, "it was asked all the same");
    host.shutdown().await;
}

/// Proves: FR3.6, FR3.7
#[tokio::test]
async fn changed_prompts_and_resources_are_read_again_and_nothing_else_is() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one").switch("--list-changed")]).await.unwrap();
    let mut events = host.events();
    let prompt = grow(&host, "one", "prompts").await;
    until_told(&mut events, is_change).await;
    host.get_prompt(&format!("one.{prompt}"), &Map::new(), Default::default()).await.unwrap();
    // The fixture tells resources by their URI.
    let resource = grow(&host, "one", "resources").await;
    until_told(&mut events, is_change).await;
    host.read_resource(&resource, None, Default::default()).await.unwrap();
    let journal = scene.journal();
    let counts = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]
        .map(|method| journal.count(method));
    assert_eq!(counts, [1, 2, 2, 2]);
    host.shutdown().await;
}

/// Proves: FR3.7
#[tokio::test]
async fn a_burst_of_notices_costs_one_or_two_readings() {
    let scene = Scene::new();
    let server = scene.fx("one").switch("--list-changed").with("--list-changed-burst", 500);
    let host = scene.start([server]).await.unwrap();
    for round in 1..=3 {
        let name = grow(&host, "one", "tools").await;
        until_callable(&host, &format!("one.{name}")).await;
        let readings = scene.journal().count("tools/list") - 1;
        assert!((round..=2 * round).contains(&readings), "{readings} readings of {round} bursts");
    }
    host.shutdown().await;
}

#[tokio::test]
async fn a_server_that_says_so_after_every_reading_is_read_four_times_a_second_at_most() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one").switch("--relist-loop")]).await.unwrap();
    let readings = |journal: &Journal| {
        let received = journal.received("tools/list");
        received.into_iter().map(|entry| entry.ts_ms).collect::<Vec<_>>()
    };
    let journal = scene.journal_until(|journal| readings(journal).len() >= 5).await;
    // The first is that of the start, the second follows it at once.
    for pair in readings(&journal)[1..].windows(2) {
        assert!(pair[1] - pair[0] >= 230, "{:?}", readings(&journal));
    }
    host.call_tool("one.echo", json!({"message": ""})).await.unwrap();
    host.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_change_during_the_start_is_not_missed() {
    // The notice comes right behind the answer of the first reading: before the server is ready.
    let scene = Scene::new();
    let names: Vec<String> = (0..16).map(|number| format!("s{number}")).collect();
    let server = |name: &String| scene.fx(name).switch("--relist-loop");
    let host = scene.start(names.iter().map(server)).await.unwrap();
    scene
        .journal_until(|journal| names.iter().all(|name| journal.of(name).count("tools/list") > 1))
        .await;
    host.shutdown().await;
}

#[tokio::test]
async fn a_change_that_cannot_be_read_takes_no_server_away_and_is_read_again() {
    let scene = Scene::new();
    let state = scene.path("readings");
    // Read once, then refused, then read again with another tool.
    let on_list = format!(
        "count=$((count+1)); echo $count >>'{}'; result='{{\"tools\":[{{\"name\":\"tool_'$count'\",\
         \"inputSchema\":{{}}}}]}}'; if [ $count = 2 ]; then result=; code=-32603; fi",
        state.display()
    );
    let on_call = r#"printf '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'"#;
    let shell = Shell { on_list: &on_list, on_call, ..Shell::default() };
    let host = builder(scene.config_of(&shell.file())).start().await.unwrap();
    let mut events = host.events();
    host.call_tool("sh.tool_1", json!({})).await.unwrap();
    let refused = async {
        while std::fs::read_to_string(&state).unwrap_or_default().lines().count() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, refused).await.expect("the list is read again");
    // The server does not say it twice.
    until_told(&mut events, is_change).await;
    assert_eq!(tools(&host.catalog(), "sh"), ["tool_3"]);
    assert!(told(&mut events).iter().all(|event| !matches!(event, Event::Unavailable { .. })));
    host.shutdown().await;
}

#[tokio::test]
async fn the_lists_of_a_server_that_says_nothing_are_read_again_on_request() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one")]).await.unwrap();
    let mut events = host.events();
    assert_eq!(scene.journal().count("tools/list"), 1);
    assert!(host.refresh_server("one"));
    until_told(&mut events, is_change).await;
    assert_eq!(scene.journal().count("tools/list"), 2);
    assert!(!host.refresh_server("nobody"));
    host.shutdown().await;
    assert!(!host.refresh_server("one"), "it takes no calls any more");
}
