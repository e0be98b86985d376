//! Tests of Streamable HTTP with sessions.

use innkeeper_testkit::{Journal, RemoteServer, fixture};
use serde_json::{Value, json};

use super::http::HttpExchange;
use super::{RECEIVE_TIMEOUT, echo_call, initialize, initialized, request};
use crate::stdio_client::result_text;

const ACCEPT_BOTH: (&str, &str) = ("Accept", "application/json, text/event-stream");
const CONTENT_TYPE_JSON: (&str, &str) = ("Content-Type", "application/json");

/// An initialized client.
pub(crate) struct SessionClient<'a> {
    pub(crate) remote: &'a RemoteServer,
    pub(crate) session: String,
}

impl<'a> SessionClient<'a> {
    pub(crate) async fn start_session(remote: &'a RemoteServer) -> Self {
        let mut reply = post(remote, &[], &initialize()).await;
        assert_eq!(reply.status, 200);
        let session = reply.header("mcp-session-id").unwrap_or_default().to_owned();
        let response = match reply.header("content-type") {
            Some("text/event-stream") => {
                let mut event = reply.expect_event().await;
                if event.data.is_empty() {
                    event = reply.expect_event().await;
                }
                event.message()
            }
            _ => reply.json().await,
        };
        assert_eq!(response["result"]["protocolVersion"], "2025-06-18");
        let client = Self { remote, session };
        assert_eq!(client.post(&initialized()).await.status, 202);
        client
    }

    fn headers(&self) -> Vec<(&str, &str)> {
        let version = ("MCP-Protocol-Version", "2025-06-18");
        let session = (!self.session.is_empty()).then_some(("Mcp-Session-Id", &*self.session));
        [version].into_iter().chain(session).collect()
    }

    pub(crate) async fn post(&self, message: &Value) -> HttpExchange {
        post(self.remote, &self.headers(), message).await
    }

    pub(crate) async fn send(&self, message: &Value) -> HttpExchange {
        let headers = [&[ACCEPT_BOTH, CONTENT_TYPE_JSON][..], &self.headers()].concat();
        HttpExchange::send(self.remote, "POST", "/mcp", &headers, Some(message)).await
    }

    pub(crate) async fn get(&self, last_event: Option<&str>) -> HttpExchange {
        let last_event = last_event.map(|id| ("Last-Event-ID", id));
        let accept = [("Accept", "text/event-stream")].into_iter().chain(last_event);
        let headers: Vec<_> = accept.chain(self.headers()).collect();
        HttpExchange::request(self.remote, "GET", "/mcp", &headers, None).await
    }

    pub(crate) async fn delete(&self) -> HttpExchange {
        HttpExchange::request(self.remote, "DELETE", "/mcp", &self.headers(), None).await
    }
}

pub(crate) async fn post(
    remote: &RemoteServer,
    headers: &[(&str, &str)],
    message: &Value,
) -> HttpExchange {
    let headers = [&[ACCEPT_BOTH, CONTENT_TYPE_JSON][..], headers].concat();
    HttpExchange::request(remote, "POST", "/mcp", &headers, Some(message)).await
}

#[tokio::test]
async fn a_request_is_answered_by_a_stream_of_events_that_ends() {
    let remote = RemoteServer::for_fixture(fixture("a")).streamable().start().await;
    let client = SessionClient::start_session(&remote).await;
    let mut reply = client.post(&echo_call(2, "hello")).await;
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
    let event = reply.expect_event().await;
    assert_eq!((event.id, event.name.as_deref()), (None, Some("message")));
    let message: Value = serde_json::from_str(&event.data).unwrap();
    assert_eq!((result_text(&message), &message["id"]), ("hello", &json!(2)));
    reply.assert_ended().await;
    let statuses: Vec<_> =
        remote.requests().iter().map(|request| request.status.unwrap()).collect();
    assert_eq!(statuses, [200, 202, 200]);
    assert_eq!(remote.requests()[2].header("mcp-session-id"), Some(client.session.as_str()));
}

#[tokio::test]
async fn a_request_is_answered_by_a_json_body_when_asked_to() {
    let remote = RemoteServer::for_fixture(fixture("a").with("--log-flood", 2))
        .with_json_responses()
        .start()
        .await;
    let client = SessionClient::start_session(&remote).await;
    let mut reply = client.post(&echo_call(2, "hello")).await;
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(result_text(&reply.json().await), "hello");
    let mut stream = client.get(None).await;
    assert_eq!(stream.expect_event().await.message()["params"]["data"], 0);
}

#[tokio::test]
async fn malformed_answers_reach_both_forms() {
    let malformed_fixture = fixture("a").with("--malformed", "batch");
    let remote =
        RemoteServer::for_fixture(malformed_fixture.clone()).with_json_responses().start().await;
    let client = SessionClient::start_session(&remote).await;
    assert!(client.post(&echo_call(2, "x")).await.json().await.is_array());
    let remote = RemoteServer::for_fixture(malformed_fixture).start().await;
    let client = SessionClient::start_session(&remote).await;
    assert!(client.post(&echo_call(2, "x")).await.expect_event().await.message().is_array());
    let remote = RemoteServer::for_fixture(fixture("a").with("--malformed", "truncated"))
        .with_json_responses()
        .start();
    let remote = remote.await;
    let client = SessionClient::start_session(&remote).await;
    let truncated = client.post(&echo_call(2, "x")).await.bytes().await;
    assert!(serde_json::from_slice::<Value>(&truncated).is_err() && !truncated.is_empty());
}

#[tokio::test]
async fn a_session_is_required_known_and_ended_by_delete() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("journal");
    let remote = RemoteServer::for_fixture(fixture("a").journal(&journal)).start().await;
    let client = SessionClient::start_session(&remote).await;
    let mut early = post(&remote, &[], &echo_call(2, "x")).await;
    assert_eq!(early.status, 400);
    assert_eq!(early.json().await["error"]["code"], -32000);
    assert_eq!(post(&remote, &[("Mcp-Session-Id", "no")], &echo_call(2, "x")).await.status, 404);
    assert_eq!(client.delete().await.status, 200);
    assert_eq!(client.post(&echo_call(2, "x")).await.status, 404);
    assert_eq!(Journal::read(&journal).count("tools/call"), 0);
    let other = SessionClient::start_session(&remote).await;
    assert_ne!(other.session, client.session);
    assert_eq!(Journal::read(&journal).pids().len(), 2);
}

#[tokio::test]
async fn without_a_session_all_clients_share_the_server_last_initialized() {
    let remote = RemoteServer::for_fixture(fixture("a")).without_session().start().await;
    assert_eq!(post(&remote, &[], &echo_call(1, "x")).await.status, 400);
    let client = SessionClient::start_session(&remote).await;
    assert_eq!(client.session, "");
    assert_eq!(
        result_text(&client.post(&echo_call(2, "x")).await.expect_event().await.message()),
        "x"
    );
    assert_eq!(client.delete().await.status, 405);
}

#[tokio::test]
async fn what_the_server_starts_comes_on_the_open_stream_or_the_general_one() {
    let remote = RemoteServer::for_fixture(fixture("a").switch("--ask-roots")).start().await;
    let client = SessionClient::start_session(&remote).await;
    let general = client.get(None).await;
    assert_eq!(general.header("content-type"), Some("text/event-stream"));
    let mut call = client.post(&echo_call(2, "x")).await;
    let server_request = call.expect_event().await.message();
    assert_eq!(server_request["method"], "roots/list");
    let response = json!({"jsonrpc": "2.0", "id": server_request["id"], "result": {"roots": []}});
    assert_eq!(client.post(&response).await.status, 202);
    assert!(result_text(&call.expect_event().await.message()).contains("roots"));
    call.assert_ended().await;
    let remote = RemoteServer::for_fixture(fixture("a").switch("--ping-client")).start().await;
    let client = SessionClient::start_session(&remote).await;
    assert_eq!(client.get(None).await.expect_event().await.message()["method"], "ping");
}

#[tokio::test]
async fn progress_goes_to_the_stream_of_the_call_that_wants_it() {
    let remote = RemoteServer::for_fixture(fixture("a").with("--progress", 1).with("--slow", 100))
        .start()
        .await;
    let client = SessionClient::start_session(&remote).await;
    let call = |id: u64| {
        let meta = json!({"progressToken": format!("p{id}")});
        request(id, "tools/call", &json!({"name": "a.b", "_meta": meta}))
    };
    let mut first = client.post(&call(2)).await;
    let mut second = client.post(&call(3)).await;
    assert_eq!(first.expect_event().await.message()["params"]["progressToken"], "p2");
    assert_eq!(second.expect_event().await.message()["params"]["progressToken"], "p3");
    assert_eq!(first.expect_event().await.message()["id"], 2);
}

#[tokio::test]
async fn get_can_be_refused() {
    let remote = RemoteServer::for_fixture(fixture("a")).without_get().start().await;
    let client = SessionClient::start_session(&remote).await;
    assert_eq!(client.get(None).await.status, 405);
}

#[tokio::test]
async fn what_is_no_request_of_this_transport_is_refused() {
    let remote = RemoteServer::for_fixture(fixture("a")).start().await;
    let is_rejected = async |headers: &[(&str, &str)], body: &Value| {
        HttpExchange::request(&remote, "POST", "/mcp", headers, Some(body)).await.status
    };
    let message = initialize();
    assert_eq!(is_rejected(&[ACCEPT_BOTH], &message).await, 415);
    assert_eq!(
        is_rejected(&[("Accept", "application/json"), CONTENT_TYPE_JSON], &message).await,
        406
    );
    assert_eq!(is_rejected(&[ACCEPT_BOTH, CONTENT_TYPE_JSON], &json!([message])).await, 400);
    let strange = [ACCEPT_BOTH, CONTENT_TYPE_JSON, ("MCP-Protocol-Version", "1999-01-01")];
    assert_eq!(is_rejected(&strange, &echo_call(1, "x")).await, 400);
    assert_eq!(HttpExchange::request(&remote, "PUT", "/mcp", &[], None).await.status, 405);
    assert_eq!(HttpExchange::request(&remote, "GET", "/else", &[], None).await.status, 404);
    assert!(remote.pids().is_empty());
}

#[tokio::test]
async fn a_server_that_crashes_ends_its_streams_and_its_session() {
    let remote = RemoteServer::for_fixture(fixture("a").with("--crash-after", 1)).start().await;
    let client = SessionClient::start_session(&remote).await;
    let mut reply = client.post(&echo_call(2, "x")).await;
    reply.assert_ended().await;
    assert_eq!(client.post(&echo_call(3, "x")).await.status, 404);
}

#[tokio::test]
async fn every_event_has_an_id_when_asked_to_and_the_stream_can_be_taken_up() {
    let remote =
        RemoteServer::for_fixture(fixture("a").with("--slow", 300)).with_event_ids().start().await;
    let client = SessionClient::start_session(&remote).await;
    let mut reply = client.post(&echo_call(2, "x")).await;
    let prime = reply.expect_event().await;
    assert_eq!(prime.data, "");
    drop(reply);
    let mut resumed = client.get(prime.id.as_deref()).await;
    let event = resumed.expect_event().await;
    assert_eq!(result_text(&event.message()), "x");
    assert!(event.id.is_some() && event.id != prime.id);
    resumed.assert_ended().await;
    assert_eq!(client.get(Some("nonsense")).await.status, 400);
}

#[tokio::test]
async fn connections_can_be_broken_off_and_the_session_lives_on() {
    let remote = RemoteServer::for_fixture(fixture("a").with("--slow", 60_000)).start().await;
    let client = SessionClient::start_session(&remote).await;
    let mut reply = client.post(&echo_call(2, "x")).await;
    remote.reset_connections();
    assert!(super::http::within_timeout(reply.next_event()).await.is_err());
    let ping = request(3, "ping", &json!({}));
    assert_eq!(client.post(&ping).await.expect_event().await.message()["id"], 3);
    remote.wait_for(RECEIVE_TIMEOUT, |requests| requests.len() == 4).await;
}
