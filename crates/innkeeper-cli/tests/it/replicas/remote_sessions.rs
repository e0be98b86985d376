//! Sessions with remote servers of their own, whose state the servers have.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_testkit::remote::RemoteServerBuilder;
use innkeeper_testkit::{
    Fault, Fixture, Journal, RecordedRequest, RedisServer, RemoteServer, fixture,
};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};

use super::client::Client;
use super::cluster::{Cluster, LEASE, open_settings};
use super::history::History;

const REVISION: &str = "2025-11-25";

/// Time beyond the lease after which another replica has taken over.
const TAKE_OVER_TIME: Duration = Duration::from_secs(20);

/// Replicas with a session at the first one, for which a remote server keeps notes.
struct Setup {
    cluster: Cluster,
    _redis: RedisServer,
    remote: RemoteServer,
    client: Client,
    session: String,
    directory: TempDir,
}

fn notes_fixture() -> Fixture {
    fixture("n").switch("--notes").config_key("share", "session")
}

impl Setup {
    async fn start() -> Self {
        Self::start_with(2, |remote| remote, []).await
    }

    /// Starts replicas with further servers.
    async fn start_with(
        replicas: usize,
        build: impl FnOnce(RemoteServerBuilder) -> RemoteServerBuilder,
        further: impl IntoIterator<Item = (&'static str, Value)>,
    ) -> Self {
        let redis = RedisServer::start(&[]);
        let directory = tempfile::tempdir().unwrap();
        let notes = notes_fixture().journal(&directory.path().join("notes"));
        let remote = build(RemoteServer::for_fixture(notes).with_json_responses()).start().await;
        let mut config =
            json!({ "servers": { "n": remote.config_entry() }, "serve": open_settings() });
        for (name, entry) in further {
            config["servers"][name] = entry;
        }
        let cluster = Cluster::start_config(replicas, &redis.url(), &config).await;
        let client = Client::new(cluster.url(0), REVISION, &Arc::new(History::new()));
        let session = client.open().await.unwrap();
        let setup = Self { cluster, _redis: redis, remote, client, session, directory };
        assert_eq!(setup.note(0, "first").await, Ok("noted".to_owned()));
        setup
    }

    /// Calls a tool of the session at a replica. Returns the text of the result, or the status.
    async fn call(&self, replica: usize, name: &str, arguments: Value) -> Result<String, u16> {
        let client = self.client.at(self.cluster.url(replica));
        let params = json!({ "name": name, "arguments": arguments });
        let message =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let response = client.post(Some(&self.session), &message).await.map_err(|_| 0_u16)?;
        if response.status() != 200 {
            return Err(response.status().as_u16());
        }
        let body = response.text().await.map_err(|_| 0_u16)?;
        let lines = body.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        let messages: Vec<Value> =
            lines.filter_map(|line| serde_json::from_str(line).ok()).collect();
        let text = messages.iter().find_map(|one| one["result"]["content"][0]["text"].as_str());
        Ok(text.unwrap_or_else(|| panic!("no result: {body}")).to_owned())
    }

    async fn note(&self, replica: usize, text: &str) -> Result<String, u16> {
        self.call(replica, "n.note", json!({ "text": text })).await
    }

    async fn notes(&self, replica: usize) -> Result<Value, u16> {
        let notes = self.call(replica, "n.notes", json!({})).await?;
        Ok(serde_json::from_str(&notes).unwrap())
    }

    /// Calls a tool at a replica until it has taken the session over. Returns the notes, or the status.
    async fn notes_when_taken(&self, replica: usize) -> Result<Value, u16> {
        let taking = async {
            loop {
                match self.notes(replica).await {
                    Err(0 | 503) => sleep(Duration::from_millis(50)).await,
                    outcome => return outcome,
                }
            }
        };
        timeout(TAKE_OVER_TIME, taking).await.unwrap()
    }

    fn requests(&self, method: &str) -> Vec<RecordedRequest> {
        let requests = self.remote.requests().into_iter();
        requests.filter(|request| request.method == method).collect()
    }

    /// Returns how often a message of a method arrived at the servers with the notes.
    fn received(&self, method: &str) -> usize {
        Journal::read_unchecked(&self.directory.path().join("notes")).count(method)
    }

    async fn end_session(&self, replica: usize) {
        let client = self.client.at(self.cluster.url(replica));
        assert_eq!(client.delete(&self.session).await, Some(204));
        self.remote
            .wait_for(TAKE_OVER_TIME, |requests| {
                requests.iter().any(|request| request.method == "DELETE")
            })
            .await;
    }
}

#[tokio::test]
async fn a_session_of_a_remote_server_goes_on_when_its_owner_is_killed() {
    let mut setup = Setup::start_with(3, |remote| remote, []).await;
    setup.cluster.replicas[0].kill().await;
    assert_eq!(setup.notes_when_taken(1).await, Ok(json!(["first"])));
    assert_eq!(setup.note(1, "second").await, Ok("noted".to_owned()));
    assert_eq!(setup.notes(1).await, Ok(json!(["first", "second"])));
    assert_eq!(setup.notes(2).await, Ok(json!(["first", "second"])), "passed on");
    setup.cluster.replicas[1].kill().await;
    assert_eq!(setup.notes_when_taken(2).await, Ok(json!(["first", "second"])));
    assert_eq!(setup.received("initialize"), 1);
    assert_eq!(setup.requests("DELETE").len(), 0);
    let requests = setup.remote.requests();
    let id = requests.iter().find_map(|request| request.header("mcp-session-id")).unwrap();
    for replica in &setup.cluster.replicas {
        assert!(!replica.log().contains(id), "{}", replica.log());
    }
    setup.end_session(2).await;
    assert_eq!(setup.notes(2).await, Err(404));
}

#[tokio::test]
async fn a_session_of_a_remote_server_is_handed_over_at_once_and_not_ended() {
    let mut setup = Setup::start().await;
    setup.cluster.replicas[0].signal(Signal::TERM);
    assert_eq!(setup.cluster.replicas[0].wait_end().await, Some(143));
    let ended = Instant::now();
    assert_eq!(setup.notes_when_taken(1).await, Ok(json!(["first"])));
    assert!(ended.elapsed() < LEASE / 2, "{:?}", ended.elapsed());
    assert_eq!((setup.received("initialize"), setup.requests("DELETE").len()), (1, 0));
    setup.end_session(1).await;
}

#[tokio::test]
async fn a_session_with_a_call_is_handed_over_after_the_time_for_calls() {
    let mut setup = Setup::start().await;
    let calling = setup.call(0, "n.sleep", json!({ "ms": 60_000 }));
    let ending = async {
        setup
            .remote
            .wait_for(TAKE_OVER_TIME, |requests| {
                let calls = requests.iter().filter(|one| one.rpc_method() == Some("tools/call"));
                calls.count() == 2
            })
            .await;
        setup.cluster.replicas[0].signal(Signal::TERM);
    };
    // The connection ends with the replica.
    tokio::join!(async { drop(timeout(TAKE_OVER_TIME, calling).await) }, ending);
    assert_eq!(setup.cluster.replicas[0].wait_end().await, Some(143));
    assert_eq!(setup.notes_when_taken(1).await, Ok(json!(["first"])));
    assert_eq!((setup.received("initialize"), setup.requests("DELETE").len()), (1, 0));
}

/// Attack: processes | a replica stands still until another one continues its session, and continues | it does
/// not end the session at the server of the other replica | No repeated execution
#[tokio::test]
async fn a_replica_that_lost_a_session_does_not_end_it_at_its_server() {
    let setup = Setup::start().await;
    let owner = &setup.cluster.replicas[0];
    owner.signal(Signal::STOP);
    assert_eq!(setup.notes_when_taken(1).await, Ok(json!(["first"])));
    owner.signal(Signal::CONT);
    let lost = async {
        while !owner.log().contains("another replica can own the key") {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(TAKE_OVER_TIME, lost).await.unwrap();
    // The replica ends its connection to the server before it ends.
    owner.signal(Signal::TERM);
    let mut setup = setup;
    assert_eq!(setup.cluster.replicas[0].wait_end().await, Some(143));
    assert_eq!(setup.notes(1).await, Ok(json!(["first"])));
    assert_eq!((setup.received("initialize"), setup.requests("DELETE").len()), (1, 0));
}

#[tokio::test]
async fn a_session_with_a_process_of_its_own_begins_anew() {
    let stdio = fixture("p").config_key("share", "session").config_entry();
    let mut setup = Setup::start_with(2, |remote| remote, [("p", stdio)]).await;
    setup.cluster.replicas[0].kill().await;
    assert_eq!(setup.notes_when_taken(1).await, Err(404));
    assert_eq!(setup.received("initialize"), 1, "no server starts for a session that has ended");
}

/// Attack: processes | the server forgets a session before another replica continues it | the session of the
/// client ends with 404, and no call runs in the new state | Isolation
#[tokio::test]
async fn a_session_that_the_server_forgot_ends_when_it_moves() {
    let forget = Fault::session_gone().on_rpc_method("ping").only_nth(1);
    let mut setup = Setup::start_with(2, |remote| remote.fault(forget), []).await;
    setup.cluster.replicas[0].kill().await;
    for _ in 0..3 {
        assert_eq!(setup.notes_when_taken(1).await, Err(404));
    }
    assert_eq!((setup.received("initialize"), setup.received("tools/call")), (2, 1));
    let ended = setup.remote.wait_for(TAKE_OVER_TIME, |requests| {
        requests.iter().any(|request| request.method == "DELETE")
    });
    ended.await;
}

#[tokio::test]
async fn a_session_whose_server_does_not_respond_goes_on_when_it_does() {
    let away = Fault::status(503).on_rpc_method("ping").only_nth(1);
    let broken = Fault::status(500).on_rpc_method("ping").only_nth(2);
    let build = |remote: RemoteServerBuilder| remote.fault(away).fault(broken);
    let mut setup = Setup::start_with(2, build, []).await;
    setup.cluster.replicas[0].kill().await;
    assert_eq!(setup.notes_when_taken(1).await, Ok(json!(["first"])));
    assert_eq!((setup.received("initialize"), setup.requests("DELETE").len()), (1, 0));
    assert_eq!(setup.remote.applied_faults().len(), 2);
}
