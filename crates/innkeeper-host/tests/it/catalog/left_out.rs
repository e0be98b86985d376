//! What is left out of the catalog never hides the rest, and is told.

use innkeeper_host::{Event, Host};
use innkeeper_testkit::Fixture;
use serde_json::json;

use super::tools;
use crate::setup::{Scene, builder, text, told};

/// Starts one server and gives what its start left out.
async fn start(scene: &Scene, server: Fixture) -> (Host, Vec<(String, String)>) {
    let builder = builder(scene.config([server]));
    let mut events = builder.events();
    let host = builder.start().await.unwrap();
    let left_out = told(&mut events).into_iter().filter_map(|event| match event {
        Event::Quarantined { server, what, reason } => {
            assert_eq!(&*server, "one");
            Some((what, reason))
        }
        _ => None,
    });
    (host, left_out.collect())
}

async fn echoes(host: &Host) {
    let result = host.call_tool("one.echo", json!({"message": "well"})).await.unwrap();
    assert_eq!(text(&result), "well");
}

#[tokio::test]
async fn a_broken_tool_is_told_and_the_others_can_be_called() {
    let scene = Scene::new();
    let (host, left_out) = start(&scene, scene.fx("one").switch("--bad-tool")).await;
    assert_eq!(tools(&host.catalog(), "one").len(), 9);
    assert_eq!(left_out.len(), 1, "{left_out:?}");
    assert_eq!(left_out[0].0, "tool number 1");
    assert!(left_out[0].1.contains("/name"), "{left_out:?}");
    echoes(&host).await;
    host.shutdown().await;
}

#[tokio::test]
async fn of_two_tools_of_one_name_the_first_stays_and_the_second_is_told() {
    let scene = Scene::new();
    let (host, left_out) = start(&scene, scene.fx("one").switch("--dup-tool")).await;
    let catalog = host.catalog();
    let offer = catalog.server("one").unwrap().offer().unwrap();
    let echo = offer.tools.iter().filter(|tool| tool.view.name == "echo");
    let described: Vec<_> = echo.map(|tool| tool.view.description.as_deref()).collect();
    assert_eq!(described, [Some("Says the message back.")]);
    let expected = ("tool `echo`".to_owned(), "the name is taken already".to_owned());
    assert_eq!(left_out, [expected]);
    echoes(&host).await;
    host.shutdown().await;
}

#[tokio::test]
async fn names_nobody_can_use_are_told_harmlessly_and_the_others_stay() {
    let scene = Scene::new();
    let (host, left_out) = start(&scene, scene.fx("one").switch("--odd-names")).await;
    assert_eq!(tools(&host.catalog(), "one").last().unwrap(), "ünï");
    assert_eq!(tools(&host.catalog(), "one").len(), 10);
    assert_eq!(left_out.len(), 5, "{left_out:?}");
    for (what, reason) in &left_out {
        assert!(what.len() < 200 && !what.contains(char::is_control), "{what:?}");
        assert!(reason.starts_with("the name "), "{reason}");
    }
    // The fixture lists it and knows nothing of it; what counts is that it was asked.
    host.call_tool("one.ünï", json!({})).await.unwrap_err();
    assert_eq!(scene.journal().params("tools/call")[0]["name"], "ünï");
    echoes(&host).await;
    host.shutdown().await;
}

#[tokio::test]
async fn entries_that_are_no_objects_are_told_and_the_others_stay() {
    let scene = Scene::new();
    let tools_given = json!(["text", 7, {"name": "echo", "inputSchema": {"type": "object"}}, null]);
    let server = scene.fx("one").with("--tools", tools_given.to_string());
    let (host, left_out) = start(&scene, server).await;
    assert_eq!(tools(&host.catalog(), "one"), ["echo"]);
    assert_eq!(left_out.len(), 1, "{left_out:?}");
    assert_eq!(left_out[0].0, "list of tools");
    assert!(left_out[0].1.contains('3'), "{left_out:?}");
    echoes(&host).await;
    host.shutdown().await;
}

#[tokio::test]
async fn a_list_without_end_is_cut_and_told_and_what_was_read_can_be_called() {
    for (switch, count, reason) in [
        ("--same-cursor", 9, "a cursor came twice"),
        ("--endless-cursor", 9 + 63, "longer than 64 pages"),
    ] {
        let scene = Scene::new();
        let (host, left_out) = start(&scene, scene.fx("one").switch(switch)).await;
        assert_eq!(tools(&host.catalog(), "one").len(), count, "{switch}");
        assert!(scene.journal().count("tools/list") <= 64, "{switch}");
        let list = left_out.iter().find(|(what, _)| what == "list of tools");
        assert!(list.is_some_and(|(_, why)| why.starts_with(reason)), "{switch}: {left_out:?}");
        echoes(&host).await;
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_list_with_too_many_entries_is_cut_at_the_limit_and_told() {
    for (extra, kept, told) in [(10_000 - 9, 10_000, 0), (10_001 - 9, 10_000, 1)] {
        let scene = Scene::new();
        let server = scene.fx("one").with("--many-tools", extra);
        let (host, left_out) = start(&scene, server).await;
        assert_eq!(tools(&host.catalog(), "one").len(), kept);
        assert_eq!(left_out.len(), told, "{left_out:?}");
        echoes(&host).await;
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_declared_list_the_server_does_not_know_is_empty_and_told() {
    let scene = Scene::new();
    let (host, left_out) = start(&scene, scene.fx("one").switch("--declares-but-32601")).await;
    let catalog = host.catalog();
    let offer = catalog.server("one").unwrap().offer().unwrap();
    assert!(offer.prompts.is_empty() && offer.resources.is_empty());
    let lists: Vec<&str> = left_out.iter().map(|(what, _)| what.as_str()).collect();
    let expected = ["list of prompts", "list of resources", "list of resource templates"];
    assert_eq!(lists, expected, "{left_out:?}");
    echoes(&host).await;
    host.shutdown().await;
}
