//! Sessions that another host continues.

use innkeeper_host::{Host, HostEvent, RemoteSession};
use innkeeper_testkit::remote::RemoteServerBuilder;
use innkeeper_testkit::{Fault, RecordedRequest, RemoteServer};
use serde_json::{Value, json};

use super::{config_json, start_host};
use crate::setup::{TEST_TIMEOUT, TestEnv, builder, result_text, wait_for_event};

/// A remote server that keeps notes in memory, in a process for each session.
fn notes_server(test_env: &TestEnv) -> RemoteServerBuilder {
    RemoteServer::for_fixture(test_env.fixture("a").switch("--notes").switch("--list-changed"))
        .with_json_responses()
}

async fn note(host: &Host, text: &str) {
    host.call_tool("a.note", json!({ "text": text })).await.unwrap();
}

async fn notes(host: &Host) -> Vec<String> {
    let result = host.call_tool("a.notes", json!({})).await.unwrap();
    serde_json::from_str(&result_text(&result)).unwrap()
}

/// Starts a host that continues a session.
async fn continue_session(
    test_env: &TestEnv,
    entry: Value,
    session: RemoteSession,
) -> Result<Host, innkeeper_host::StartError> {
    let config = test_env.config_from(&config_json([("a", entry)]));
    builder(config).continue_remote_session("a", session).start().await
}

/// Starts a host with a note, and leaves its session to another host.
async fn leave_session(test_env: &TestEnv, remote: &RemoteServer) -> RemoteSession {
    let host = start_host(test_env, [("a", remote.config_entry())]).await;
    note(&host, "first").await;
    let mut left = host.hand_over_remote_sessions();
    assert_eq!(left.bound.len(), 0);
    assert!(host.shutdown().await.is_clean());
    left.sessions.swap_remove("a").unwrap()
}

fn session_of(host: &Host) -> RemoteSession {
    host.remote_sessions().sessions["a"].clone()
}

fn count(requests: &[RecordedRequest], method: &str) -> usize {
    requests.iter().filter(|request| request.method == method).count()
}

/// Returns the id of a session as the servers see it.
fn id(session: &RemoteSession) -> String {
    serde_json::to_value(session).unwrap()["session_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_session_goes_on_in_another_host_with_its_state_and_its_messages() {
    let test_env = TestEnv::new();
    let remote = notes_server(&test_env).start().await;
    let session = leave_session(&test_env, &remote).await;
    assert_eq!(count(&remote.requests(), "DELETE"), 0);
    let stored = serde_json::to_string(&session).unwrap();
    let session: RemoteSession = serde_json::from_str(&stored).unwrap();
    let host = continue_session(&test_env, remote.config_entry(), session.clone()).await.unwrap();
    let mut events = host.events();
    assert_eq!(notes(&host).await, ["first"]);
    let requests = remote.requests();
    let sent = |method: &str| {
        requests.iter().filter(|request| request.rpc_method() == Some(method)).count()
    };
    let handshakes = ["initialize", "notifications/initialized", "server/discover"];
    assert_eq!(handshakes.map(sent), [1, 1, 1], "those of the first host");
    assert!(session_of(&host).is_same(&session));
    let catalog = host.catalog();
    assert_eq!(catalog.server("a").unwrap().protocol_version(), Some("2025-11-25"));
    // The server sends notifications on the GET stream only.
    remote.wait_for(TEST_TIMEOUT, |requests| count(requests, "GET") == 2).await;
    host.call_tool("a.grow", json!({})).await.unwrap();
    wait_for_event(&mut events, |event| matches!(event, HostEvent::CatalogChanged { .. })).await;
    let ids: std::collections::HashSet<_> = remote
        .requests()
        .iter()
        .filter_map(|request| request.header("mcp-session-id").map(str::to_owned))
        .collect();
    assert_eq!(ids.len(), 1);
    host.shutdown().await;
    assert_eq!(count(&remote.requests(), "DELETE"), 1, "the last host ends the session");
    test_env.assert_gone().await;
}

#[tokio::test]
async fn a_host_that_leaves_a_session_ends_the_session_that_it_starts_afterwards() {
    let test_env = TestEnv::new();
    let gone = Fault::session_gone().on_rpc_method("tools/call").only_nth(1);
    let remote = notes_server(&test_env).fault(gone).start().await;
    let host = start_host(&test_env, [("a", remote.config_entry())]).await;
    let left = host.hand_over_remote_sessions().sessions["a"].clone();
    note(&host, "in the next session").await;
    assert!(!session_of(&host).is_same(&left));
    host.shutdown().await;
    assert_eq!(count(&remote.requests(), "DELETE"), 1);
    test_env.assert_gone().await;
}

#[tokio::test]
async fn a_server_that_forgot_the_session_gets_another_one_and_the_application_knows() {
    // Some servers report an unknown session with other statuses.
    for forgotten in [
        Fault::session_gone(),
        Fault::status(404),
        Fault::status(400),
        Fault::status(400).rpc_error(-32000, "Bad Request: no valid session"),
    ] {
        let test_env = TestEnv::new();
        let fault = forgotten.clone().on_rpc_method("ping").only_nth(1);
        let remote = notes_server(&test_env).fault(fault).start().await;
        let session = leave_session(&test_env, &remote).await;
        let host =
            continue_session(&test_env, remote.config_entry(), session.clone()).await.unwrap();
        assert!(!session_of(&host).is_same(&session), "{forgotten:?}");
        assert_eq!(notes(&host).await, [""; 0], "{forgotten:?}");
        assert_eq!(test_env.journal().count("initialize"), 2, "{forgotten:?}");
        host.shutdown().await;
        let requests = remote.requests();
        let ended = requests.iter().filter(|request| request.method == "DELETE");
        let ended: Vec<_> = ended.filter_map(|one| one.header("mcp-session-id")).collect();
        assert_eq!(ended.len(), 1, "{forgotten:?}");
        assert_ne!(ended[0], id(&session), "{forgotten:?}");
    }
}

#[tokio::test]
async fn a_session_that_the_server_forgets_later_is_re_established_and_the_application_is_told() {
    let test_env = TestEnv::new();
    let gone = Fault::session_gone().on_rpc_method("tools/call").only_nth(2);
    let remote = notes_server(&test_env).fault(gone).start().await;
    let session = leave_session(&test_env, &remote).await;
    let host = continue_session(&test_env, remote.config_entry(), session.clone()).await.unwrap();
    assert!(session_of(&host).is_same(&session));
    let mut events = host.events();
    assert_eq!(notes(&host).await, [""; 0]);
    wait_for_event(&mut events, |event| matches!(event, HostEvent::Reinitialized { .. })).await;
    assert!(!session_of(&host).is_same(&session));
    host.shutdown().await;
}

/// Attack: remote | the session of one server is continued at another address, or with other headers | no
/// other server gets the id, and a session of its own begins | Secrets stay with their owner
#[tokio::test]
async fn the_id_of_a_session_reaches_no_other_server() {
    let test_env = TestEnv::new();
    let remote = notes_server(&test_env).start().await;
    let session = leave_session(&test_env, &remote).await;
    let other = notes_server(&test_env).start().await;
    let mut other_headers = remote.config_entry();
    other_headers["headers"] = json!({ "authorization": "Bearer of-another-account" });
    let mut other_path = remote.config_entry();
    other_path["url"] = json!(format!("{}?tenant=2", remote.url()));
    let before = remote.requests().len();
    for entry in [other.config_entry(), other_headers, other_path] {
        let host = continue_session(&test_env, entry, session.clone()).await.unwrap();
        assert!(!session_of(&host).is_same(&session));
        host.shutdown().await;
    }
    let later = remote.requests().into_iter().skip(before);
    let id = id(&session);
    assert!(later.chain(other.requests()).all(|one| one.header("mcp-session-id") != Some(&*id)));
    // The session itself goes on.
    let host = continue_session(&test_env, remote.config_entry(), session).await.unwrap();
    assert_eq!(notes(&host).await, ["first"]);
    host.shutdown().await;
}

#[tokio::test]
async fn a_failed_start_leaves_the_session_to_a_later_one() {
    let test_env = TestEnv::new();
    let broken = Fault::status(500).on_rpc_method("ping").only_nth(1);
    let remote = notes_server(&test_env).fault(broken).start().await;
    let session = leave_session(&test_env, &remote).await;
    continue_session(&test_env, remote.config_entry(), session.clone()).await.unwrap_err();
    assert_eq!(count(&remote.requests(), "DELETE"), 0);
    assert_eq!(test_env.journal().count("initialize"), 1);
    let host = continue_session(&test_env, remote.config_entry(), session).await.unwrap();
    assert_eq!(notes(&host).await, ["first"]);
    host.shutdown().await;
}

#[tokio::test]
async fn a_restart_begins_another_session() {
    let test_env = TestEnv::new();
    let remote = notes_server(&test_env).start().await;
    let session = leave_session(&test_env, &remote).await;
    let host = continue_session(&test_env, remote.config_entry(), session.clone()).await.unwrap();
    host.restart_server("a").await.unwrap();
    assert!(!session_of(&host).is_same(&session));
    assert_eq!(notes(&host).await, [""; 0]);
    host.shutdown().await;
    assert_eq!(count(&remote.requests(), "DELETE"), 2);
}

#[tokio::test]
async fn only_servers_with_sessions_over_streamable_http_have_sessions_for_another_host() {
    let test_env = TestEnv::new();
    let fixture = |name: &str| RemoteServer::for_fixture(test_env.fixture(name));
    let modern = RemoteServer::for_fixture(test_env.fixture("m").with("--era", "modern"));
    let (http, stateless) =
        (fixture("a").start().await, fixture("s").without_session().start().await);
    let (sse, modern) = (fixture("e").sse().start().await, modern.start().await);
    let servers = [
        ("a", http.config_entry()),
        ("s", stateless.config_entry()),
        ("e", sse.config_entry()),
        ("m", modern.config_entry()),
        ("p", test_env.fixture("p").config_entry()),
    ];
    let host = start_host(&test_env, servers).await;
    let all = host.remote_sessions();
    assert_eq!(all.sessions.keys().collect::<Vec<_>>(), ["a"]);
    assert_eq!(all.bound.iter().map(|name| &**name).collect::<Vec<_>>(), ["e", "p"]);
    host.stop_server("a").await.unwrap();
    assert!(host.remote_sessions().sessions.is_empty(), "the session has ended");
    host.shutdown().await;
}

/// Attack: remote | a server quotes the id of a session in an error, and an application prints what it has |
/// neither the error nor the debug output has the id | Secrets do not print
#[tokio::test]
async fn the_id_of_a_session_is_not_printed() {
    let test_env = TestEnv::new();
    let quoting = "no session known-session-4711, known-session-4711 has ended";
    let fault = Fault::body(500, "text/plain", quoting).on_rpc_method("ping");
    let remote = notes_server(&test_env).fault(fault).start().await;
    let host = start_host(&test_env, [("a", remote.config_entry())]).await;
    let sessions = host.remote_sessions();
    let session = sessions.sessions["a"].clone();
    for printed in [format!("{sessions:?}"), format!("{host:?}"), format!("{session:?}")] {
        assert!(!printed.contains(&id(&session)), "{printed}");
    }
    host.shutdown().await;
    let mut known = serde_json::to_value(&session).unwrap();
    known["session_id"] = json!("known-session-4711");
    let known = serde_json::from_str(&known.to_string()).unwrap();
    let error = continue_session(&test_env, remote.config_entry(), known).await.unwrap_err();
    let printed = format!("{error} {error:?}");
    assert!(printed.contains("no session ***"), "{printed}");
    assert!(!printed.contains("known-session"), "{printed}");
}
