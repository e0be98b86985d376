//! Excluded items are reported and exclude no other item.

use innkeeper_host::{Host, HostEvent};
use innkeeper_testkit::Fixture;
use serde_json::json;

use super::tools;
use crate::setup::{TestEnv, builder, drain_events, result_text};

/// Starts one server and returns the items that the host quarantined.
async fn start_quarantined(test_env: &TestEnv, server: Fixture) -> (Host, Vec<(String, String)>) {
    let builder = builder(test_env.config([server]));
    let mut events = builder.events();
    let host = builder.start().await.unwrap();
    let quarantined = drain_events(&mut events).into_iter().filter_map(|event| match event {
        HostEvent::Quarantined { server, subject, reason } => {
            assert_eq!(&*server, "one");
            Some((subject, reason))
        }
        _ => None,
    });
    (host, quarantined.collect())
}

async fn assert_echo(host: &Host) {
    let result = host.call_tool("one.echo", json!({"message": "well"})).await.unwrap();
    assert_eq!(result_text(&result), "well");
}

#[tokio::test]
async fn a_broken_tool_is_reported_and_the_others_can_be_called() {
    let test_env = TestEnv::new();
    let (host, quarantined) =
        start_quarantined(&test_env, test_env.fixture("one").switch("--bad-tool")).await;
    assert_eq!(tools(&host.catalog(), "one").len(), 9);
    assert_eq!(quarantined.len(), 1, "{quarantined:?}");
    assert_eq!(quarantined[0].0, "tool number 1");
    assert!(quarantined[0].1.contains("/name"), "{quarantined:?}");
    assert_echo(&host).await;
    host.shutdown().await;
}

#[tokio::test]
async fn of_two_tools_of_one_name_the_first_stays_and_the_second_is_reported() {
    let test_env = TestEnv::new();
    let (host, quarantined) =
        start_quarantined(&test_env, test_env.fixture("one").switch("--dup-tool")).await;
    let catalog = host.catalog();
    let listing = catalog.server("one").unwrap().listing().unwrap();
    let echo = listing.tools.iter().filter(|tool| tool.view.name == "echo");
    let described: Vec<_> = echo.map(|tool| tool.view.description.as_deref()).collect();
    assert_eq!(described, [Some("Says the message back.")]);
    let expected = ("tool `echo`".to_owned(), "duplicate name".to_owned());
    assert_eq!(quarantined, [expected]);
    assert_echo(&host).await;
    host.shutdown().await;
}

/// Attack: data | names of tools that are empty, too long or contain control characters | the tools
/// are excluded, and the report contains no control character | Foreign text stays text
#[tokio::test]
async fn unusable_names_are_reported_escaped_and_the_others_stay() {
    let test_env = TestEnv::new();
    let (host, quarantined) =
        start_quarantined(&test_env, test_env.fixture("one").switch("--odd-names")).await;
    assert_eq!(tools(&host.catalog(), "one").last().unwrap(), "ünï");
    assert_eq!(tools(&host.catalog(), "one").len(), 11);
    assert_eq!(quarantined.len(), 4, "{quarantined:?}");
    for (subject, reason) in &quarantined {
        assert!(subject.len() < 200 && !subject.contains(char::is_control), "{subject:?}");
        assert!(reason.starts_with("the name "), "{reason}");
    }
    // The fixture lists the tool without implementing it; the test only checks that the server
    // receives the call.
    host.call_tool("one.ünï", json!({})).await.unwrap_err();
    assert_eq!(test_env.journal().params("tools/call")[0]["name"], "ünï");
    assert_echo(&host).await;
    host.shutdown().await;
}

/// Attack: data | a list of tools contains numbers, text and null | the entries are reported; the
/// valid tool can be called | Lossless
#[tokio::test]
async fn entries_that_are_no_objects_are_reported_and_the_others_stay() {
    let test_env = TestEnv::new();
    let tools_given = json!(["text", 7, {"name": "echo", "inputSchema": {"type": "object"}}, null]);
    let server = test_env.fixture("one").with("--tools", tools_given.to_string());
    let (host, quarantined) = start_quarantined(&test_env, server).await;
    assert_eq!(tools(&host.catalog(), "one"), ["echo"]);
    assert_eq!(quarantined.len(), 1, "{quarantined:?}");
    assert_eq!(quarantined[0].0, "tool list");
    assert!(quarantined[0].1.contains('3'), "{quarantined:?}");
    assert_echo(&host).await;
    host.shutdown().await;
}

/// Attack: data | a list repeats a cursor, or continues without end | the host stops at the
/// repetition or after 64 pages | No unbounded wait
#[tokio::test]
async fn an_endless_list_is_truncated_and_reported_and_what_was_read_can_be_called() {
    for (switch, count, reason) in
        [("--same-cursor", 9, "repeated cursor"), ("--endless-cursor", 9 + 63, "exceeds 64 pages")]
    {
        let test_env = TestEnv::new();
        let (host, quarantined) =
            start_quarantined(&test_env, test_env.fixture("one").switch(switch)).await;
        assert_eq!(tools(&host.catalog(), "one").len(), count, "{switch}");
        assert!(test_env.journal().count("tools/list") <= 64, "{switch}");
        let list = quarantined.iter().find(|(subject, _)| subject == "tool list");
        assert!(list.is_some_and(|(_, why)| why.starts_with(reason)), "{switch}: {quarantined:?}");
        assert_echo(&host).await;
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_list_with_too_many_entries_is_truncated_at_the_limit_and_reported() {
    for (extra, expected_tools, expected_quarantined) in
        [(10_000 - 9, 10_000, 0), (10_001 - 9, 10_000, 1)]
    {
        let test_env = TestEnv::new();
        let server = test_env.fixture("one").with("--many-tools", extra);
        let (host, quarantined) = start_quarantined(&test_env, server).await;
        assert_eq!(tools(&host.catalog(), "one").len(), expected_tools);
        assert_eq!(quarantined.len(), expected_quarantined, "{quarantined:?}");
        assert_echo(&host).await;
        host.shutdown().await;
    }
}
