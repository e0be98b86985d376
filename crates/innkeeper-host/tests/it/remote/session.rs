//! Lost sessions and restarted servers.

use innkeeper_host::{CallOptions, Host, HostEvent};
use innkeeper_testkit::{Fault, RemoteServer};
use serde_json::json;

use super::{assert_responds, echo, start_host, start_host_with_neighbour};
use crate::setup::{TEST_TIMEOUT, TestEnv, result_text, wait_for_event};

fn is_catalog_change(event: &HostEvent) -> bool {
    matches!(event, HostEvent::CatalogChanged { .. })
}

async fn add_tool(host: &Host) -> String {
    let grown = host.call_tool("a.grow", json!({})).await.unwrap();
    let names: Vec<String> = serde_json::from_str(&result_text(&grown)).unwrap();
    format!("a.{}", names.last().unwrap())
}

/// Fault 97.
#[tokio::test]
async fn a_session_that_is_gone_is_re_established_and_the_call_runs_once() {
    for json in [false, true] {
        let test_env = TestEnv::new();
        let gone = Fault::session_gone().on_rpc_method("tools/call").only_nth(2);
        let server_builder = RemoteServer::for_fixture(test_env.fixture("a")).fault(gone);
        let server_builder =
            if json { server_builder.with_json_responses() } else { server_builder };
        let remote = server_builder.start().await;
        let host = start_host_with_neighbour(&test_env, &remote).await;
        assert_eq!(echo(&host, "a", "one").await.unwrap(), "one");
        assert_eq!(echo(&host, "a", "two").await.unwrap(), "two");
        assert_eq!(echo(&host, "a", "three").await.unwrap(), "three");
        assert_responds(&host, "b").await;
        let journal = test_env.journal().for_server("a");
        let messages: Vec<String> = journal
            .params("tools/call")
            .iter()
            .map(|call| call["arguments"]["message"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(messages, ["one", "two", "three"], "a call was lost or ran twice");
        assert_eq!(journal.count("initialize"), 2);
        assert_eq!(journal.count("notifications/initialized"), 2);
        host.shutdown().await;
        assert_eq!(remote.pids(), [0_u32; 0], "the new session was ended too");
        test_env.assert_gone().await;
    }
}

/// Fault 97.
#[tokio::test]
async fn many_calls_that_find_their_session_gone_re_establish_one_together() {
    let test_env = TestEnv::new();
    let gone_fault = Fault::session_gone().on_rpc_method("tools/call").only_nth(1);
    let remote = RemoteServer::for_fixture(test_env.fixture("a")).fault(gone_fault).start().await;
    let host = start_host_with_neighbour(&test_env, &remote).await;
    let calls = (0..20).map(|number| {
        let host = host.clone();
        async move { echo(&host, "a", &number.to_string()).await.unwrap() }
    });
    let mut set = tokio::task::JoinSet::new();
    for call in calls {
        set.spawn(call);
    }
    let mut echoed = set.join_all().await;
    echoed.sort_by_key(|number| number.parse::<u32>().unwrap());
    assert_eq!(echoed, (0..20).map(|number| number.to_string()).collect::<Vec<_>>());
    let journal = test_env.journal().for_server("a");
    assert_eq!((journal.count("initialize"), journal.count("tools/call")), (2, 20));
    host.shutdown().await;
}

/// Fault 97.
/// Attack: remote | a server reports each session as gone | the call fails after one new session |
/// No unbounded wait
#[tokio::test]
async fn a_session_that_is_always_gone_ends_the_call_and_not_the_host() {
    let test_env = TestEnv::new();
    let gone_fault = Fault::session_gone().on_rpc_method("tools/call");
    let remote =
        RemoteServer::for_fixture(test_env.fixture("a").config_key("retry", json!({"max": 0})))
            .fault(gone_fault)
            .start()
            .await;
    let host = start_host_with_neighbour(&test_env, &remote).await;
    echo(&host, "a", "").await.unwrap_err();
    assert_eq!(
        test_env.journal().for_server("a").count("initialize"),
        2,
        "begun anew more than once"
    );
    assert_responds(&host, "b").await;
    host.shutdown().await;
}

#[tokio::test]
async fn after_a_session_was_re_established_the_lists_are_read_and_their_changes_are_received() {
    let test_env = TestEnv::new();
    let gone_fault = Fault::session_gone().on_rpc_method("tools/call").only_nth(1);
    let server = test_env.fixture("a").switch("--list-changed");
    // The server sends notifications only on the GET stream.
    let remote =
        RemoteServer::for_fixture(server).with_json_responses().fault(gone_fault).start().await;
    let host = start_host_with_neighbour(&test_env, &remote).await;
    let mut events = host.events();
    assert_responds(&host, "a").await;
    wait_for_event(&mut events, is_catalog_change).await;
    let opened = |requests: &[innkeeper_testkit::RecordedRequest]| {
        requests
            .iter()
            .filter(|request| request.method == "GET" && request.status == Some(200))
            .count()
            == 2
    };
    remote.wait_for(TEST_TIMEOUT, opened).await;
    let tool = add_tool(&host).await;
    wait_for_event(&mut events, is_catalog_change).await;
    host.call_tool(&tool, json!({})).await.unwrap();
    host.shutdown().await;
}

/// Returns the number of opened GET streams.
fn opened_stream_count(requests: &[innkeeper_testkit::RecordedRequest]) -> usize {
    requests.iter().filter(|request| request.method == "GET" && request.status == Some(200)).count()
}

#[tokio::test]
async fn a_stream_is_left_with_its_session_and_subscriptions_go_on_in_the_next_one() {
    let test_env = TestEnv::new();
    // The server rejects the session but keeps its stream open.
    let gone_fault = Fault::status(404).on_rpc_method("tools/call").only_nth(1);
    let server = test_env.fixture("a").switch("--touch");
    let remote =
        RemoteServer::for_fixture(server).with_json_responses().fault(gone_fault).start().await;
    let host = start_host_with_neighbour(&test_env, &remote).await;
    let mut events = host.events();
    let subscribed = "fx://a/static";
    host.subscribe_resource(subscribed, None, CallOptions::default()).await.unwrap();
    remote.wait_for(TEST_TIMEOUT, |requests| opened_stream_count(requests) == 1).await;
    assert_responds(&host, "a").await;
    remote.wait_for(TEST_TIMEOUT, |requests| opened_stream_count(requests) == 2).await;
    test_env.wait_for_journal(|journal| journal.count("resources/subscribe") == 2).await;
    host.call_tool("a.touch", json!({"uri": subscribed})).await.unwrap();
    let updated =
        wait_for_event(&mut events, |event| matches!(event, HostEvent::ResourceUpdated { .. }));
    assert!(matches!(updated.await, HostEvent::ResourceUpdated { uri, .. } if uri == subscribed));
    host.shutdown().await;
}

#[tokio::test]
async fn a_repeated_subscription_that_fails_leaves_the_earlier_one() {
    let test_env = TestEnv::new();
    let refused = Fault::status(200)
        .rpc_error(-32603, "the store is down")
        .on_rpc_method("resources/subscribe")
        .only_nth(2);
    let gone_fault = Fault::status(404).on_rpc_method("tools/call").only_nth(1);
    let remote = RemoteServer::for_fixture(test_env.fixture("a"))
        .with_json_responses()
        .fault(refused)
        .fault(gone_fault)
        .start()
        .await;
    let host = start_host_with_neighbour(&test_env, &remote).await;
    let subscribe = || host.subscribe_resource("fx://a/static", None, CallOptions::default());
    subscribe().await.unwrap();
    let error = subscribe().await.unwrap_err();
    assert!(error.to_string().contains("the store is down"), "{error}");
    assert_responds(&host, "a").await;
    // The new session has the subscription. The refused request does not reach the fixture server.
    test_env.wait_for_journal(|journal| journal.count("resources/subscribe") == 2).await;
    host.shutdown().await;
}

#[tokio::test]
async fn a_session_that_cannot_be_re_established_stays_and_the_call_that_noticed_has_not_run() {
    for failed in [
        Fault::status(200).rpc_error(-32603, "the store is down"),
        Fault::status(200).rpc_error(-32603, "the store is down").header("mcp-session-id", "new"),
        Fault::body(200, "text/event-stream", "data: {\"jsonrpc\":\"2.0\"}\n\n"),
        Fault::status(202),
        Fault::status(500),
        Fault::status(502),
        Fault::reset_before_response(),
        Fault::reset_mid_body(),
    ] {
        let test_env = TestEnv::new();
        let server = test_env.fixture("a").config_key("retry", json!({"max": 0}));
        let gone_fault = Fault::status(404).on_rpc_method("tools/call").only_nth(1);
        let init_fault = failed.clone().on_rpc_method("initialize").only_nth(2);
        let remote =
            RemoteServer::for_fixture(server).fault(gone_fault).fault(init_fault).start().await;
        let host = start_host_with_neighbour(&test_env, &remote).await;
        let (reason, may_have_run) = super::unavailable_error(echo(&host, "a", "").await);
        assert!(!may_have_run, "{failed:?}: {reason:?}");
        assert_responds(&host, "a").await;
        let sessions: std::collections::HashSet<_> = remote
            .requests()
            .into_iter()
            .filter_map(|request| request.header("mcp-session-id").map(str::to_owned))
            .collect();
        assert_eq!(sessions.len(), 1, "{failed:?}");
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_stream_that_could_not_be_signed_in_for_is_asked_for_again_after_a_call_that_could() {
    let test_env = TestEnv::new();
    let unauthorized = Fault::status(401).on_http_method("GET").only_nth(1);
    let remote = RemoteServer::for_fixture(test_env.fixture("a")).fault(unauthorized).start().await;
    let host = start_host(&test_env, [("a", remote.config_entry())]).await;
    remote
        .wait_for(TEST_TIMEOUT, |requests| requests.iter().any(|request| request.method == "GET"))
        .await;
    let once_more = async {
        while opened_stream_count(&remote.requests()) == 0 {
            assert_responds(&host, "a").await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, once_more).await.expect("the stream is open");
    host.shutdown().await;
}

#[tokio::test]
async fn a_stream_that_is_refused_whoever_signs_in_is_asked_for_once_more_and_then_left() {
    let test_env = TestEnv::new();
    let unauthorized = Fault::status(401).on_http_method("GET");
    let remote = RemoteServer::for_fixture(test_env.fixture("a")).fault(unauthorized).start().await;
    let host = start_host(&test_env, [("a", remote.config_entry())]).await;
    for _ in 0..20 {
        assert_responds(&host, "a").await;
    }
    let requests = remote.requests();
    // The other requests belong to the sign-in.
    let streams =
        requests.iter().filter(|request| request.header("accept") == Some("text/event-stream"));
    assert!((1..=2).contains(&streams.count()), "{requests:#?}");
    host.shutdown().await;
}

#[tokio::test]
async fn a_session_that_ends_while_idle_is_re_established_for_its_stream() {
    let test_env = TestEnv::new();
    let gone = Fault::session_gone().on_http_method("GET").only_nth(2);
    let server = test_env.fixture("a").switch("--list-changed");
    let remote = RemoteServer::for_fixture(server).with_json_responses().fault(gone).start().await;
    let host = start_host_with_neighbour(&test_env, &remote).await;
    let mut events = host.events();
    remote
        .wait_for(TEST_TIMEOUT, |requests| requests.iter().any(|request| request.method == "GET"))
        .await;
    remote.reset_connections();
    let reopened = |requests: &[innkeeper_testkit::RecordedRequest]| {
        requests
            .iter()
            .filter(|request| request.method == "GET" && request.status == Some(200))
            .count()
            == 2
    };
    remote.wait_for(TEST_TIMEOUT, reopened).await;
    let tool = add_tool(&host).await;
    let grown = async {
        while host.call_tool(&tool, json!({})).await.is_err() {
            wait_for_event(&mut events, is_catalog_change).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, grown).await.expect("the change is heard");
    host.shutdown().await;
}

#[tokio::test]
async fn a_server_that_dies_and_comes_back_is_found_again() {
    let test_env = TestEnv::new();
    let path = test_env.path("fx.sock");
    let server = || test_env.fixture("a").config_key("retry", json!({"max": 0}));
    let remote = RemoteServer::for_fixture(server()).on_unix_socket(&path).start().await;
    let host = start_host(
        &test_env,
        [("a", remote.config_entry()), ("b", test_env.fixture("b").config_entry())],
    )
    .await;
    assert_responds(&host, "a").await;
    remote.stop().await;
    let (reason, may_have_run) = super::unavailable_error(echo(&host, "a", "").await);
    assert!(!may_have_run, "{reason:?}");
    assert!(
        matches!(reason, innkeeper_host::error::UnavailableReason::Unreachable { .. }),
        "{reason:?}"
    );
    assert_responds(&host, "b").await;
    let _remote = RemoteServer::for_fixture(server()).on_unix_socket(&path).start().await;
    assert_eq!(echo(&host, "a", "back again").await.unwrap(), "back again");
    host.shutdown().await;
}

#[tokio::test]
async fn every_message_after_the_handshake_names_its_session_and_revision() {
    let test_env = TestEnv::new();
    let remote = RemoteServer::for_fixture(test_env.fixture("a")).start().await;
    let host = start_host(&test_env, [("a", remote.config_entry())]).await;
    assert_responds(&host, "a").await;
    host.shutdown().await;
    let requests = remote.requests();
    let first =
        requests.iter().position(|request| request.rpc_method() == Some("initialize")).unwrap();
    for (index, request) in requests.iter().enumerate() {
        let has_session = index > first;
        assert_eq!(request.header("mcp-session-id").is_some(), has_session, "{request:#?}");
        if has_session {
            assert_eq!(request.header("mcp-protocol-version"), Some("2025-11-25"), "{request:#?}");
        }
        let accepted = request.header("accept").unwrap();
        assert!(accepted.contains("text/event-stream"), "{request:#?}");
    }
    let sessions: std::collections::HashSet<_> =
        requests.iter().filter_map(|request| request.header("mcp-session-id")).collect();
    assert_eq!(sessions.len(), 1);
}

#[tokio::test]
async fn a_server_whose_own_stream_fails_answers_calls_all_the_same() {
    for fault in
        [Fault::status(500), Fault::html_page(), Fault::reset_before_response(), Fault::status(404)]
    {
        let test_env = TestEnv::new();
        let remote = RemoteServer::for_fixture(test_env.fixture("a"))
            .fault(fault.on_http_method("GET"))
            .start()
            .await;
        let host = start_host(&test_env, [("a", remote.config_entry())]).await;
        remote
            .wait_for(TEST_TIMEOUT, |requests| {
                requests.iter().any(|request| request.method == "GET")
            })
            .await;
        assert_responds(&host, "a").await;
        assert_eq!(test_env.journal().count("initialize"), 1);
        host.shutdown().await;
    }
}
