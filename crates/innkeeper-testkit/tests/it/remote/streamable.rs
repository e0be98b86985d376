//! Streamable HTTP of the legacy era.

use innkeeper_testkit::{Journal, Remote, fx};
use serde_json::{Value, json};

use super::http::Http;
use super::{PATIENCE, echo, initialize, initialized, request};
use crate::talk::text;

const BOTH: (&str, &str) = ("Accept", "application/json, text/event-stream");
const JSON: (&str, &str) = ("Content-Type", "application/json");

/// A client that has been initialized.
pub(crate) struct Client<'a> {
    pub(crate) remote: &'a Remote,
    pub(crate) session: String,
}

impl<'a> Client<'a> {
    pub(crate) async fn begin(remote: &'a Remote) -> Self {
        let mut reply = post(remote, &[], &initialize()).await;
        assert_eq!(reply.status, 200);
        let session = reply.header("mcp-session-id").unwrap_or_default().to_owned();
        let answer = match reply.header("content-type") {
            Some("text/event-stream") => {
                let mut event = reply.event().await;
                if event.data.is_empty() {
                    event = reply.event().await;
                }
                event.message()
            }
            _ => reply.json().await,
        };
        assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
        let client = Self { remote, session };
        assert_eq!(client.post(&initialized()).await.status, 202);
        client
    }

    fn headers(&self) -> Vec<(&str, &str)> {
        let version = ("MCP-Protocol-Version", "2025-06-18");
        let session = (!self.session.is_empty()).then_some(("Mcp-Session-Id", &*self.session));
        [version].into_iter().chain(session).collect()
    }

    pub(crate) async fn post(&self, message: &Value) -> Http {
        post(self.remote, &self.headers(), message).await
    }

    pub(crate) async fn send(&self, message: &Value) -> Http {
        let headers = [&[BOTH, JSON][..], &self.headers()].concat();
        Http::send(self.remote, "POST", "/mcp", &headers, Some(message)).await
    }

    pub(crate) async fn get(&self, last_event: Option<&str>) -> Http {
        let last_event = last_event.map(|id| ("Last-Event-ID", id));
        let own = [("Accept", "text/event-stream")].into_iter().chain(last_event);
        let headers: Vec<_> = own.chain(self.headers()).collect();
        Http::ask(self.remote, "GET", "/mcp", &headers, None).await
    }

    pub(crate) async fn delete(&self) -> Http {
        Http::ask(self.remote, "DELETE", "/mcp", &self.headers(), None).await
    }
}

pub(crate) async fn post(remote: &Remote, headers: &[(&str, &str)], message: &Value) -> Http {
    let headers = [&[BOTH, JSON][..], headers].concat();
    Http::ask(remote, "POST", "/mcp", &headers, Some(message)).await
}

#[tokio::test]
async fn a_request_is_answered_by_a_stream_of_events_that_ends() {
    let remote = Remote::of(fx("a")).streamable().start().await;
    let client = Client::begin(&remote).await;
    let mut reply = client.post(&echo(2, "hello")).await;
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
    let event = reply.event().await;
    assert_eq!((event.id, event.name.as_deref()), (None, Some("message")));
    let message: Value = serde_json::from_str(&event.data).unwrap();
    assert_eq!((text(&message), &message["id"]), ("hello", &json!(2)));
    reply.assert_ended().await;
    let statuses: Vec<_> = remote.requests().iter().map(|seen| seen.status.unwrap()).collect();
    assert_eq!(statuses, [200, 202, 200]);
    assert_eq!(remote.requests()[2].header("mcp-session-id"), Some(client.session.as_str()));
}

#[tokio::test]
async fn a_request_is_answered_by_a_json_body_when_asked_to() {
    let remote = Remote::of(fx("a").with("--log-flood", 2)).answers_as_json().start().await;
    let client = Client::begin(&remote).await;
    let mut reply = client.post(&echo(2, "hello")).await;
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(text(&reply.json().await), "hello");
    let mut stream = client.get(None).await;
    assert_eq!(stream.event().await.message()["params"]["data"], 0);
}

#[tokio::test]
async fn malformed_answers_reach_both_forms() {
    let fixture = fx("a").with("--malformed", "batch");
    let remote = Remote::of(fixture.clone()).answers_as_json().start().await;
    let client = Client::begin(&remote).await;
    assert!(client.post(&echo(2, "x")).await.json().await.is_array());
    let remote = Remote::of(fixture).start().await;
    let client = Client::begin(&remote).await;
    assert!(client.post(&echo(2, "x")).await.event().await.message().is_array());
    let remote = Remote::of(fx("a").with("--malformed", "truncated")).answers_as_json().start();
    let remote = remote.await;
    let client = Client::begin(&remote).await;
    let cut = client.post(&echo(2, "x")).await.bytes().await;
    assert!(serde_json::from_slice::<Value>(&cut).is_err() && !cut.is_empty());
}

#[tokio::test]
async fn a_session_is_required_known_and_ended_by_delete() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("journal");
    let remote = Remote::of(fx("a").journal(&journal)).start().await;
    let client = Client::begin(&remote).await;
    let mut early = post(&remote, &[], &echo(2, "x")).await;
    assert_eq!(early.status, 400);
    assert_eq!(early.json().await["error"]["code"], -32000);
    assert_eq!(post(&remote, &[("Mcp-Session-Id", "no")], &echo(2, "x")).await.status, 404);
    assert_eq!(client.delete().await.status, 200);
    assert_eq!(client.post(&echo(2, "x")).await.status, 404);
    assert_eq!(Journal::read(&journal).count("tools/call"), 0);
    let other = Client::begin(&remote).await;
    assert_ne!(other.session, client.session);
    assert_eq!(Journal::read(&journal).pids().len(), 2);
}

#[tokio::test]
async fn without_a_session_everyone_talks_to_the_server_last_initialized() {
    let remote = Remote::of(fx("a")).without_session().start().await;
    assert_eq!(post(&remote, &[], &echo(1, "x")).await.status, 400);
    let client = Client::begin(&remote).await;
    assert_eq!(client.session, "");
    assert_eq!(text(&client.post(&echo(2, "x")).await.event().await.message()), "x");
    assert_eq!(client.delete().await.status, 405);
}

#[tokio::test]
async fn what_the_server_starts_comes_on_the_open_stream_or_the_general_one() {
    let remote = Remote::of(fx("a").switch("--ask-roots")).start().await;
    let client = Client::begin(&remote).await;
    let general = client.get(None).await;
    assert_eq!(general.header("content-type"), Some("text/event-stream"));
    let mut call = client.post(&echo(2, "x")).await;
    let asked = call.event().await.message();
    assert_eq!(asked["method"], "roots/list");
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": []}});
    assert_eq!(client.post(&answer).await.status, 202);
    assert!(text(&call.event().await.message()).contains("roots"));
    call.assert_ended().await;
    let remote = Remote::of(fx("a").switch("--ping-client")).start().await;
    let client = Client::begin(&remote).await;
    assert_eq!(client.get(None).await.event().await.message()["method"], "ping");
}

#[tokio::test]
async fn progress_goes_to_the_stream_of_the_call_that_wants_it() {
    let remote = Remote::of(fx("a").with("--progress", 1).with("--slow", 100)).start().await;
    let client = Client::begin(&remote).await;
    let call = |id: u64| {
        let meta = json!({"progressToken": format!("p{id}")});
        request(id, "tools/call", &json!({"name": "a.b", "_meta": meta}))
    };
    let mut first = client.post(&call(2)).await;
    let mut second = client.post(&call(3)).await;
    assert_eq!(first.event().await.message()["params"]["progressToken"], "p2");
    assert_eq!(second.event().await.message()["params"]["progressToken"], "p3");
    assert_eq!(first.event().await.message()["id"], 2);
}

#[tokio::test]
async fn get_can_be_refused() {
    let remote = Remote::of(fx("a")).without_get().start().await;
    let client = Client::begin(&remote).await;
    assert_eq!(client.get(None).await.status, 405);
}

#[tokio::test]
async fn what_is_no_request_of_this_transport_is_refused() {
    let remote = Remote::of(fx("a")).start().await;
    let refused = async |headers: &[(&str, &str)], body: &Value| {
        Http::ask(&remote, "POST", "/mcp", headers, Some(body)).await.status
    };
    let message = initialize();
    assert_eq!(refused(&[BOTH], &message).await, 415);
    assert_eq!(refused(&[("Accept", "application/json"), JSON], &message).await, 406);
    assert_eq!(refused(&[BOTH, JSON], &json!([message])).await, 400);
    let strange = [BOTH, JSON, ("MCP-Protocol-Version", "1999-01-01")];
    assert_eq!(refused(&strange, &echo(1, "x")).await, 400);
    assert_eq!(Http::ask(&remote, "PUT", "/mcp", &[], None).await.status, 405);
    assert_eq!(Http::ask(&remote, "GET", "/else", &[], None).await.status, 404);
    assert!(remote.pids().is_empty());
}

#[tokio::test]
async fn a_server_that_crashes_ends_its_streams_and_its_session() {
    let remote = Remote::of(fx("a").with("--crash-after", 1)).start().await;
    let client = Client::begin(&remote).await;
    let mut reply = client.post(&echo(2, "x")).await;
    reply.assert_ended().await;
    assert_eq!(client.post(&echo(3, "x")).await.status, 404);
}

#[tokio::test]
async fn every_event_has_an_id_when_asked_to_and_the_stream_can_be_taken_up() {
    let remote = Remote::of(fx("a").with("--slow", 300)).with_event_ids().start().await;
    let client = Client::begin(&remote).await;
    let mut reply = client.post(&echo(2, "x")).await;
    let prime = reply.event().await;
    assert_eq!(prime.data, "");
    drop(reply);
    let mut again = client.get(prime.id.as_deref()).await;
    let event = again.event().await;
    assert_eq!(text(&event.message()), "x");
    assert!(event.id.is_some() && event.id != prime.id);
    again.assert_ended().await;
    assert_eq!(client.get(Some("nonsense")).await.status, 400);
}

#[tokio::test]
async fn connections_can_be_broken_off_and_the_session_lives_on() {
    let remote = Remote::of(fx("a").with("--slow", 60_000)).start().await;
    let client = Client::begin(&remote).await;
    let mut reply = client.post(&echo(2, "x")).await;
    remote.break_connections();
    assert!(super::http::soon(reply.next()).await.is_err());
    let ping = request(3, "ping", &json!({}));
    assert_eq!(client.post(&ping).await.event().await.message()["id"], 3);
    remote.until(PATIENCE, |seen| seen.len() == 4).await;
}
