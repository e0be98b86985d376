//! Lists of prompts, resources and templates that fail while the list of tools does not.

use innkeeper_host::{Host, HostEvent, MissingList, ServerState};
use innkeeper_testkit::Fixture;
use serde_json::{Value, json};

use super::{is_catalog_change, tools};
use crate::setup::{LogCapture, TestEnv, builder, drain_events, wait_for_event};

const OPTIONAL_LISTS: &str = "prompts/list,resources/list,resources/templates/list";

fn missing_lists(host: &Host) -> Vec<MissingList> {
    host.catalog().server("one").unwrap().listing().unwrap().missing.clone()
}

/// Starts the server; returns the host and the events of missing lists.
async fn start(test_env: &TestEnv, server: Fixture) -> (Host, Vec<(&'static str, String)>) {
    let builder = builder(test_env.config([server]));
    let mut events = builder.events();
    let host = builder.start().await.unwrap();
    let missing = drain_events(&mut events).into_iter().filter_map(|event| match event {
        HostEvent::ListMissing { server, list, reason } => {
            assert_eq!(&*server, "one");
            Some((list, reason))
        }
        _ => None,
    });
    (host, missing.collect())
}

#[tokio::test]
async fn a_server_whose_other_lists_fail_keeps_its_tools_and_says_what_is_missing() {
    let (test_env, log) = (TestEnv::new(), LogCapture::capture());
    let server = test_env.fixture("one").with("--list-error", -32603);
    let server = server.with("--faulty-lists", OPTIONAL_LISTS);
    let (host, events) = start(&test_env, server).await;
    let reason = "listing failed as asked (code -32603)";
    let lists = ["prompts/list", "resources/list", "resources/templates/list"];
    assert_eq!(events, lists.map(|list| (list, reason.to_owned())));
    assert_eq!(log.with_message("list not read").len(), 3);
    assert_eq!(host.status()["one"].state, ServerState::Ready);
    host.call_tool("one.echo", json!({"message": ""})).await.unwrap();
    let catalog = serde_json::to_value(&*host.catalog()).unwrap();
    let entry = &catalog["servers"]["one"];
    assert_eq!(
        entry["missing"],
        Value::from_iter(lists.map(|list| json!({"list": list, "reason": reason})))
    );
    assert_eq!((&entry["prompts"], &entry["resources"]), (&json!([]), &json!([])));
    assert!(!tools(&host.catalog(), "one").is_empty());
    // A missing list does not keep the resources of the server from being read.
    host.read_resource("fx://one/static", Some("one"), Default::default()).await.unwrap();
    host.shutdown().await;
}

#[tokio::test]
async fn a_declared_list_that_the_server_does_not_implement_is_missing() {
    let test_env = TestEnv::new();
    let (host, events) =
        start(&test_env, test_env.fixture("one").switch("--declares-but-32601")).await;
    // No capability declares templates.
    let lists: Vec<&str> = events.iter().map(|(list, _)| *list).collect();
    assert_eq!(lists, ["prompts/list", "resources/list"]);
    assert!(events.iter().all(|(_, reason)| reason.contains("unknown method")), "{events:?}");
    host.call_tool("one.echo", json!({"message": ""})).await.unwrap();
    host.shutdown().await;
}

#[tokio::test]
async fn a_server_that_does_not_respond_to_one_list_is_ready_within_its_start_timeout() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("one").switch("--hang-lists").config_key("initTimeout", 2);
    let (host, events) = start(&test_env, server.with("--faulty-lists", "resources/list")).await;
    let [(list, reason)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(*list, "resources/list");
    assert!(reason.contains("did not respond to `resources/list` within"), "{reason}");
    host.call_tool("one.echo", json!({"message": ""})).await.unwrap();
    host.shutdown().await;
}

#[tokio::test]
async fn a_server_whose_list_of_tools_fails_does_not_start() {
    let test_env = TestEnv::new();
    for code in [-32603, -32000] {
        let server = test_env.fixture("one").with("--list-error", code);
        let error =
            test_env.start([server.with("--faulty-lists", "tools/list")]).await.unwrap_err();
        assert!(error.to_string().contains("tools/list"), "{error}");
    }
}

#[tokio::test]
async fn a_missing_list_is_read_at_the_next_refresh_and_a_list_that_fails_later_stays() {
    let test_env = TestEnv::new();
    let fault = test_env.path("fault");
    std::fs::write(&fault, "").unwrap();
    let server = test_env.fixture("one").with("--list-error", -32603);
    let server = server.with("--faulty-lists", "prompts/list").switch("--list-changed");
    let (host, _) = start(&test_env, server.with("--list-faults-while", fault.display())).await;
    let mut events = host.events();
    assert_eq!(missing_lists(&host)[0].list, "prompts/list");

    std::fs::remove_file(&fault).unwrap();
    assert!(host.refresh_server("one"));
    wait_for_event(&mut events, is_catalog_change).await;
    assert!(missing_lists(&host).is_empty());
    let prompts =
        |host: &Host| host.catalog().server("one").unwrap().listing().unwrap().prompts.len();
    let prompts_before = prompts(&host);
    assert!(prompts_before > 0);

    std::fs::write(&fault, "").unwrap();
    let tools_before = tools(&host.catalog(), "one").len();
    host.call_tool("one.grow", json!({"what": "prompts"})).await.unwrap();
    host.call_tool("one.grow", json!({"what": "tools"})).await.unwrap();
    wait_for_event(&mut events, is_catalog_change).await;
    assert_eq!(tools(&host.catalog(), "one").len(), tools_before + 1);
    assert_eq!(prompts(&host), prompts_before, "the list that failed stays as it was");
    assert!(missing_lists(&host).is_empty());

    // The host tries the failed list again.
    std::fs::remove_file(&fault).unwrap();
    wait_for_event(&mut events, is_catalog_change).await;
    assert_eq!(prompts(&host), prompts_before + 1);
    host.shutdown().await;
}
