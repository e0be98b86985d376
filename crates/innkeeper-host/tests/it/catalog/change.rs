//! Lists that change while the server runs.

use std::time::Duration;

use innkeeper_host::{ErrorClass, Host, HostEvent};
use innkeeper_testkit::Journal;
use serde_json::{Map, json};
use tokio::time::Instant;

use super::{is_catalog_change, tools};
use crate::setup::{TEST_TIMEOUT, TestEnv, builder, drain_events, result_text, wait_for_event};
use crate::shell_server::ShellServer;

/// Makes the server add an entry and returns its name.
async fn add_entry(host: &Host, server: &str, kind: &str) -> String {
    let result = host.call_tool(&format!("{server}.grow"), json!({"what": kind})).await.unwrap();
    let names: Vec<String> = serde_json::from_str(&result_text(&result)).unwrap();
    names.last().unwrap().clone()
}

/// Repeats the call until the tool is known and returns the elapsed time.
async fn wait_callable(host: &Host, tool: &str) -> Duration {
    let started_at = Instant::now();
    let calling = async {
        while let Err(error) = host.call_tool(tool, json!({})).await {
            assert_eq!(error.class(), ErrorClass::Routing, "{error}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, calling).await.expect("the new tool can be called");
    started_at.elapsed()
}

/// Proves: FR3.6, FR3.7, N25
#[tokio::test]
async fn a_new_tool_can_be_called_within_a_second_and_a_removed_one_no_longer() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one").switch("--list-changed")]).await.unwrap();
    let mut events = host.events();
    let old = host.catalog();
    let name = add_entry(&host, "one", "tools").await;
    let tool = format!("one.{name}");
    let elapsed = wait_callable(&host, &tool).await;
    assert!(elapsed < Duration::from_secs(1), "{elapsed:?}");
    assert!(tools(&host.catalog(), "one").contains(&name));
    assert!(!tools(&old, "one").contains(&name), "a snapshot stays as it was");
    let changed = wait_for_event(&mut events, is_catalog_change).await;
    assert!(matches!(changed, HostEvent::CatalogChanged { server } if &*server == "one"));

    let started_at = Instant::now();
    host.call_tool("one.shrink", json!({})).await.unwrap();
    wait_for_event(&mut events, is_catalog_change).await;
    assert!(started_at.elapsed() < Duration::from_secs(1), "{:?}", started_at.elapsed());
    let before = test_env.journal().count("tools/call");
    let error = host.call_tool(&tool, json!({})).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Routing);
    assert_eq!(test_env.journal().count("tools/call"), before, "it was asked all the same");
    host.shutdown().await;
}

/// The second change is inside the minimum interval between two refreshes.
#[tokio::test]
async fn after_the_wait_for_a_refresh_the_catalog_contains_the_tool_that_a_call_added() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one").switch("--list-changed")]).await.unwrap();
    for _ in 0..2 {
        let name = add_entry(&host, "one", "tools").await;
        let started_at = Instant::now();
        host.finish_tool_refresh().await;
        assert!(tools(&host.catalog(), "one").contains(&name));
        assert!(started_at.elapsed() < Duration::from_secs(2), "the wait ended at its limit");
    }
    host.shutdown().await;
}

/// Attack: flow control | the server reports changed tools and never responds to the request for
/// them | the wait for the refresh ends after two seconds | No unbounded wait
#[tokio::test]
async fn the_wait_for_a_refresh_ends_after_two_seconds() {
    let test_env = TestEnv::new();
    let fault = test_env.path("fault");
    let server = test_env.fixture("one").switch("--list-changed").switch("--hang-lists");
    let server = server.with("--list-faults-while", fault.display());
    let host = test_env.start([server]).await.unwrap();
    std::fs::write(&fault, "").unwrap();
    add_entry(&host, "one", "tools").await;
    tokio::time::pause();
    let started_at = tokio::time::Instant::now();
    host.finish_tool_refresh().await;
    let elapsed = started_at.elapsed();
    tokio::time::resume();
    assert!((2.0..2.1).contains(&elapsed.as_secs_f64()), "{elapsed:?}");
    host.shutdown().await;
}

/// Proves: FR3.6, FR3.7, N25
#[tokio::test]
async fn changed_prompts_and_resources_are_read_again_and_nothing_else_is() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one").switch("--list-changed")]).await.unwrap();
    let mut events = host.events();
    let prompt = add_entry(&host, "one", "prompts").await;
    wait_for_event(&mut events, is_catalog_change).await;
    host.get_prompt(&format!("one.{prompt}"), &Map::new(), Default::default()).await.unwrap();
    // The fixture identifies resources by URI.
    let resource = add_entry(&host, "one", "resources").await;
    wait_for_event(&mut events, is_catalog_change).await;
    host.read_resource(&resource, None, Default::default()).await.unwrap();
    let journal = test_env.journal();
    let counts = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]
        .map(|method| journal.count(method));
    assert_eq!(counts, [1, 2, 2, 2]);
    host.shutdown().await;
}

/// Proves: FR3.7
#[tokio::test]
async fn a_burst_of_notices_costs_one_or_two_readings() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("one").switch("--list-changed").with("--list-changed-burst", 500);
    let host = test_env.start([server]).await.unwrap();
    for round in 1..=3 {
        let name = add_entry(&host, "one", "tools").await;
        wait_callable(&host, &format!("one.{name}")).await;
        let readings = test_env.journal().count("tools/list") - 1;
        assert!((round..=2 * round).contains(&readings), "{readings} readings of {round} bursts");
    }
    host.shutdown().await;
}

/// Attack: flow control | the server reports changed tools after each reading of the list | the
/// host reads the list at most four times per second | No unbounded memory
#[tokio::test]
async fn a_server_that_says_so_after_every_reading_is_read_four_times_a_second_at_most() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one").switch("--relist-loop")]).await.unwrap();
    let readings = |journal: &Journal| {
        let received = journal.received("tools/list");
        received.into_iter().map(|entry| entry.ts_ms).collect::<Vec<_>>()
    };
    let journal = test_env.wait_for_journal(|journal| readings(journal).len() >= 5).await;
    // The first read belongs to the start, and the second follows it immediately.
    for pair in readings(&journal)[1..].windows(2) {
        assert!(pair[1] - pair[0] >= 230, "{:?}", readings(&journal));
    }
    host.call_tool("one.echo", json!({"message": ""})).await.unwrap();
    host.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_change_during_the_start_is_not_missed() {
    // The notification follows the response to the first read, before the server is ready.
    let test_env = TestEnv::new();
    let names: Vec<String> = (0..16).map(|number| format!("s{number}")).collect();
    let server = |name: &String| test_env.fixture(name).switch("--relist-loop");
    let host = test_env.start(names.iter().map(server)).await.unwrap();
    test_env
        .wait_for_journal(|journal| {
            names.iter().all(|name| journal.for_server(name).count("tools/list") > 1)
        })
        .await;
    host.shutdown().await;
}

#[tokio::test]
async fn a_change_that_cannot_be_read_takes_no_server_away_and_is_read_again() {
    let test_env = TestEnv::new();
    let state = test_env.path("readings");
    // The list has a tool, then the request fails, then the list has another tool.
    let on_list = format!(
        "count=$((count+1)); echo $count >>'{}'; result='{{\"tools\":[{{\"name\":\"tool_'$count'\",\
         \"inputSchema\":{{}}}}]}}'; if [ $count = 2 ]; then result=; code=-32603; fi",
        state.display()
    );
    let on_call = r#"printf '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'"#;
    let shell = ShellServer { on_list: &on_list, on_call, ..ShellServer::default() };
    let host = builder(test_env.config_from(&shell.config_json())).start().await.unwrap();
    let mut events = host.events();
    host.call_tool("sh.tool_1", json!({})).await.unwrap();
    let rejected = async {
        while std::fs::read_to_string(&state).unwrap_or_default().lines().count() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, rejected).await.expect("the list is read again");
    // The server sends no second notification.
    wait_for_event(&mut events, is_catalog_change).await;
    assert_eq!(tools(&host.catalog(), "sh"), ["tool_3"]);
    assert!(
        drain_events(&mut events)
            .iter()
            .all(|event| !matches!(event, HostEvent::Unavailable { .. }))
    );
    host.shutdown().await;
}

#[tokio::test]
async fn the_lists_of_a_server_that_says_nothing_are_read_again_on_request() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one")]).await.unwrap();
    let mut events = host.events();
    assert_eq!(test_env.journal().count("tools/list"), 1);
    assert!(host.refresh_server("one"));
    wait_for_event(&mut events, is_catalog_change).await;
    assert_eq!(test_env.journal().count("tools/list"), 2);
    assert!(!host.refresh_server("nobody"));
    host.shutdown().await;
    assert!(!host.refresh_server("one"), "it takes no calls any more");
}
