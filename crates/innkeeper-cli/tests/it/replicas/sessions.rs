//! Sessions whose requests arrive at several replicas.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use innkeeper_testkit::RedisServer;
use reqwest::Response;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::client::{Call, Client, STATELESS};
use super::cluster::{ADA_KEY, BOB_KEY, Cluster, LEASE, SECRET, open_settings};
use super::history::{History, check};
use super::load::effect;

/// The revision whose streams another replica can continue from the start.
const REVISION: &str = "2025-11-25";

/// Time beyond the lease after which another replica has taken over.
const TAKE_OVER_TIME: Duration = Duration::from_secs(10);

/// Replicas with a Redis and a client of the first one.
struct Setup {
    cluster: Cluster,
    redis: RedisServer,
    client: Client,
    history: Arc<History>,
}

impl Setup {
    async fn start(replicas: usize, revision: &'static str) -> Self {
        Self::start_with(replicas, revision, &open_settings()).await
    }

    async fn start_with(replicas: usize, revision: &'static str, serve: &Value) -> Self {
        let redis = RedisServer::start(&[]);
        let cluster = Cluster::start(replicas, &redis.url(), serve).await;
        let history = Arc::new(History::new());
        let client = Client::new(cluster.url(0), revision, &history);
        Self { cluster, redis, client, history }
    }

    /// Returns the client with its session at another replica.
    fn at(&self, replica: usize) -> Client {
        self.client.at(self.cluster.url(replica))
    }

    /// Returns how often a call arrived at a server.
    fn executions(&self, number: u64) -> usize {
        self.cluster.executions().get(&number).copied().unwrap_or_default()
    }

    /// Checks the calls, and returns how many have a result, may have run and did not run.
    fn outcomes(&self) -> (usize, usize, usize) {
        let summary = check(&self.history.take(), &self.cluster.executions());
        assert_eq!(summary.violations, [""; 0]);
        (summary.acknowledged, summary.unknown, summary.not_run)
    }
}

/// Returns a call that takes a while.
fn slow(number: u64, millis: u64) -> Call {
    let params = json!({ "name": "fx.sleep", "arguments": { "ms": millis, "number": number } });
    Call { params, expected: "slept".to_owned(), ..effect(number) }
}

fn ping() -> Value {
    json!({ "jsonrpc": "2.0", "id": "ping", "method": "ping" })
}

/// Reads a response until a text.
async fn read_until(response: &mut Response, text: &str) -> String {
    let mut read = String::new();
    while !read.contains(text) {
        let chunk = timeout(TAKE_OVER_TIME, response.chunk()).await.unwrap().unwrap();
        let Some(chunk) = chunk else { panic!("the response ends before `{text}`: {read}") };
        read.push_str(&String::from_utf8_lossy(&chunk));
    }
    read
}

/// Waits until a replica responds with a status, and returns the response.
async fn wait_status(client: &Client, session: &str, status: u16) -> Response {
    let waiting = async {
        loop {
            let response = client.post(Some(session), &ping()).await;
            match response {
                Ok(response) if response.status() == status => return response,
                _ => sleep(Duration::from_millis(50)).await,
            }
        }
    };
    timeout(TAKE_OVER_TIME, waiting).await.unwrap()
}

/// Attack: remote | the id of another principal's session, with an own key, at each replica | status
/// 404 for each method, as for an unknown id, and the session continues | Isolation
#[tokio::test]
async fn a_stolen_session_is_unknown_at_every_replica() {
    let keys =
        ["ada", "bob"].map(|name| json!({ "principal": name, "key": format!("${{{name}}}") }));
    let setup = Setup::start_with(2, REVISION, &json!({ "auth": { "apiKeys": keys } })).await;
    let ada = setup.at(0).with_key(ADA_KEY);
    let session = ada.open().await.unwrap();
    for replica in 0..2 {
        let bob = setup.at(replica).with_key(BOB_KEY);
        let call = bob.message(&effect(7));
        assert_eq!(bob.post(Some(&session), &call).await.unwrap().status(), 404);
        assert_eq!(bob.resume(&session, "1-0").await.unwrap().status(), 404);
        assert_eq!(bob.delete(&session).await, Some(404));
        assert_eq!(bob.post(Some("no-such-session"), &call).await.unwrap().status(), 404);
        let ada = ada.at(setup.cluster.url(replica));
        assert_eq!(ada.post(Some(&session), &ping()).await.unwrap().status(), 200);
    }
    assert_eq!(setup.executions(7), 0);
}

/// Attack: remote | requests for a session at the port of the replicas without the secret, with a part
/// of it and with another, and the path of the port at the public address | status 401 or 404, and
/// nothing runs | Complete checks
#[tokio::test]
async fn the_port_of_the_replicas_does_nothing_without_their_secret() {
    let setup = Setup::start(1, REVISION).await;
    let session = setup.client.open().await.unwrap();
    let replica = &setup.cluster.replicas[0];
    let http = innkeeper_host::http_client(&innkeeper_host::Environment::default(), false).unwrap();
    let post = async |address: &std::net::SocketAddr, authorization: Option<&str>| {
        let mut request = http
            .post(format!("http://{address}/replica/mcp/0"))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-session-id", &session)
            .header("innkeeper-principal", "bG9jYWw")
            .header("innkeeper-request-id", "forged");
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        let message = setup.client.message(&effect(7)).to_string();
        request.body(message).send().await.unwrap().status().as_u16()
    };
    let bearer = |secret: &str| format!("Bearer {secret}");
    let wrong = [
        None,
        Some(String::new()),
        Some(SECRET.to_owned()),
        Some(bearer("")),
        Some(bearer(&SECRET[1..])),
        Some(bearer(&format!("{SECRET}0"))),
        Some(bearer(&"x".repeat(43))),
    ];
    for authorization in wrong {
        assert_eq!(post(&replica.listen, authorization.as_deref()).await, 401);
    }
    assert_eq!(post(&replica.address, Some(&bearer(SECRET))).await, 404);
    assert_eq!(setup.executions(7), 0);
}

#[tokio::test]
async fn a_session_that_ends_at_one_replica_is_ended_at_all() {
    let setup = Setup::start(2, REVISION).await;
    let session = setup.client.open().await.unwrap();
    setup.at(1).call(&[effect(1)]).await;
    assert_eq!(setup.outcomes(), (1, 0, 0));
    assert_eq!(setup.at(1).delete(&session).await, Some(204));
    for replica in [0, 1, 0] {
        let response = setup.at(replica).post(Some(&session), &ping()).await.unwrap();
        assert_eq!(response.status(), 404, "replica {replica}");
    }
}

/// Attack: processes | Redis stops before a client ends its session | status 503, and the client ends
/// the session when Redis is back; no replica continues it afterwards | Complete checks
#[tokio::test]
async fn a_session_is_ended_only_if_redis_knows() {
    let setup = Setup::start(2, REVISION).await;
    let session = setup.client.open().await.unwrap();
    setup.redis.pause();
    assert_eq!(setup.client.delete(&session).await, Some(503));
    setup.redis.resume();
    let ending = async {
        while setup.client.delete(&session).await == Some(503) {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(TAKE_OVER_TIME, ending).await.unwrap();
    for replica in 0..2 {
        wait_status(&setup.at(replica), &session, 404).await;
    }
}

#[tokio::test]
async fn a_finished_stream_is_read_again_at_another_replica_without_its_owner() {
    let mut setup = Setup::start(2, REVISION).await;
    let session = setup.client.open().await.unwrap();
    let message = setup.client.message(&slow(1, 400));
    let mut response = setup.client.post(Some(&session), &message).await.unwrap();
    let events = read_until(&mut response, "slept").await;
    let first = events.lines().find_map(|line| line.strip_prefix("id: ")).unwrap();
    assert!(first.ends_with("-0"), "{events}");
    setup.cluster.replicas[0].kill().await;
    let other = setup.at(1);
    wait_status(&other, &session, 200).await;
    let mut again = other.resume(&session, first).await.unwrap();
    let resumed = read_until(&mut again, "slept").await;
    assert!(events.ends_with(&resumed) && resumed.starts_with("id: "), "{events} {resumed}");
    assert_eq!(again.chunk().await.unwrap(), None, "the stream ends");
    assert_eq!(setup.executions(1), 1);
}

#[tokio::test]
async fn a_replica_that_ends_hands_its_sessions_over_at_once() {
    let mut setup = Setup::start(2, REVISION).await;
    setup.client.open().await.unwrap();
    let other = setup.at(1);
    setup.cluster.replicas[0].signal(Signal::TERM);
    assert_eq!(setup.cluster.replicas[0].wait_end().await, Some(143));
    let ended = Instant::now();
    other.call(&[effect(1)]).await;
    assert_eq!(setup.outcomes(), (1, 0, 0));
    assert!(ended.elapsed() < LEASE / 2, "{:?}", ended.elapsed());
}

/// Attack: processes | a replica stands still during a call, another one takes its session over, and
/// it continues with the result | the client is told at the other replica that the call may have run,
/// also if the call came through a third one | No repeated execution
#[tokio::test]
async fn a_replica_that_continues_after_its_lease_takes_nothing_back() {
    let setup = Setup::start(3, REVISION).await;
    let session = setup.client.open().await.unwrap();
    let mut responses = Vec::new();
    for (number, replica) in [(1, 0), (2, 1)] {
        let client = setup.at(replica);
        let message = client.message(&slow(number, 600));
        let mut response = client.post(Some(&session), &message).await.unwrap();
        let first = read_until(&mut response, "\n\n").await;
        let id = first.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
        responses.push((number, id, response));
    }
    let owner = &setup.cluster.replicas[0];
    owner.signal(Signal::STOP);
    let other = setup.at(2);
    wait_status(&other, &session, 200).await;
    owner.signal(Signal::CONT);
    let lost = async {
        while !owner.log().contains("another replica can own the key") {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(TAKE_OVER_TIME, lost).await.unwrap();
    for (number, id, mut response) in responses {
        // The stream ends without the result, which the next owner does not have.
        let ending = async { while let Ok(Some(_)) = response.chunk().await {} };
        timeout(TAKE_OVER_TIME, ending).await.unwrap();
        let mut resumed = other.resume(&session, &id).await.unwrap();
        let told = read_until(&mut resumed, "mayHaveRun").await;
        assert!(told.contains(r#""mayHaveRun":true"#), "{told}");
        assert_eq!(setup.executions(number), 1);
    }
}

/// Attack: processes | a replica stands still after it sent a call and before it stored the stream of the
/// response, and another one takes the session over | the client is told that the call may have run | No
/// repeated execution
#[tokio::test]
async fn a_call_whose_stream_was_not_stored_may_have_run() {
    let setup = Setup::start(2, REVISION).await;
    let session = setup.client.open().await.unwrap();
    let calls = [slow(1, 60_000)];
    let calling = setup.client.call(&calls);
    let moving = async {
        setup.cluster.wait_executed(1).await;
        setup.cluster.replicas[0].signal(Signal::STOP);
        wait_status(&setup.at(1), &session, 200).await;
        setup.cluster.replicas[0].signal(Signal::CONT);
    };
    tokio::join!(calling, moving);
    assert_eq!(setup.outcomes(), (0, 1, 0));
}

/// Attack: processes | Redis loses its data while the replica that runs a call stands still | the client
/// is told that the call may have run | No repeated execution
#[tokio::test]
async fn a_call_whose_session_redis_lost_may_have_run() {
    let mut setup = Setup::start(2, "2025-06-18").await;
    setup.client.open().await.unwrap();
    let (other, calls) = (setup.at(1), [slow(1, 60_000)]);
    let calling = other.call(&calls);
    let (cluster, redis) = (&setup.cluster, &mut setup.redis);
    let losing = async {
        cluster.wait_executed(1).await;
        cluster.replicas[0].signal(Signal::STOP);
        redis.stop();
        redis.start_again();
    };
    tokio::join!(calling, losing);
    assert_eq!(setup.outcomes(), (0, 1, 0));
}

/// Attack: processes | Redis loses its data while the replica with the servers of a principal runs a
/// call and stands still | the call does not run at the next replica, and may have run | No repeated
/// execution
#[tokio::test]
async fn a_call_of_a_principal_whose_record_redis_lost_does_not_run_again() {
    let redis = RedisServer::start(&[]);
    let private = |server: innkeeper_testkit::Fixture| server.config_key("share", "principal");
    let cluster = Cluster::start_with(2, &redis.url(), &open_settings(), private).await;
    let history = Arc::new(History::new());
    let client = Client::new(cluster.url(0), STATELESS, &history);
    client.call(&[effect(1)]).await;
    let mut setup = Setup { cluster, redis, client, history };
    let (other, calls) = (setup.at(1), [slow(2, 60_000)]);
    let calling = other.call(&calls);
    let (cluster, redis) = (&setup.cluster, &mut setup.redis);
    let losing = async {
        cluster.wait_executed(2).await;
        cluster.replicas[0].signal(Signal::STOP);
        redis.stop();
        redis.start_again();
    };
    tokio::join!(calling, losing);
    assert_eq!(setup.outcomes(), (1, 1, 0));
}

#[tokio::test]
async fn a_replica_that_lost_the_session_of_a_call_says_that_the_call_may_have_run() {
    let mut setup = Setup::start(1, "2025-06-18").await;
    setup.client.open().await.unwrap();
    let calls = [slow(1, 60_000)];
    let calling = setup.client.call(&calls);
    let (cluster, redis) = (&setup.cluster, &mut setup.redis);
    let losing = async {
        cluster.wait_executed(1).await;
        redis.stop();
        redis.start_again();
    };
    tokio::join!(calling, losing);
    assert_eq!(setup.outcomes(), (0, 1, 0));
}

/// Attack: processes | Redis does not respond for longer than the lease, while calls arrive | a call of
/// a session gets status 503 and does not run; a call without a session runs | No repeated execution
#[tokio::test]
async fn a_replica_without_a_lease_calls_for_no_session() {
    let setup = Setup::start(1, REVISION).await;
    let session = setup.client.open().await.unwrap();
    setup.redis.pause();
    let refused = wait_status(&setup.client, &session, 503).await;
    assert!(refused.headers().contains_key("retry-after"));
    let message = setup.client.message(&effect(1));
    let response = setup.client.post(Some(&session), &message).await.unwrap();
    assert_eq!((response.status().as_u16(), setup.executions(1)), (503, 0));
    let stateless = Client::new(setup.cluster.url(0), STATELESS, &setup.history);
    stateless.call(&[effect(2)]).await;
    setup.redis.resume();
    wait_status(&setup.client, &session, 200).await;
    setup.client.call(&[effect(3)]).await;
    assert_eq!(setup.outcomes(), (2, 0, 0));
}

/// Attack: processes | a call arrives at a replica that stands still, and another one takes its session
/// over | the replica passes the call on when it continues, and the call runs once | No repeated execution
#[tokio::test]
async fn a_call_that_waits_at_a_stopped_replica_runs_at_the_next_owner() {
    let setup = Setup::start(2, REVISION).await;
    let session = setup.client.open().await.unwrap();
    let owner = &setup.cluster.replicas[0];
    owner.signal(Signal::STOP);
    let calls = [effect(1)];
    let calling = setup.client.call(&calls);
    let moving = async {
        wait_status(&setup.at(1), &session, 200).await;
        owner.signal(Signal::CONT);
    };
    tokio::join!(calling, moving);
    assert_eq!(setup.outcomes(), (1, 0, 0));
}

/// Returns an address of this machine that is not its loopback address, if it has a network. Nothing is
/// sent.
fn network_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|address| !address.is_loopback())
}

/// The limit of connections of one address is for clients: a replica passes on the requests of many.
#[tokio::test]
async fn a_replica_passes_on_more_streams_than_one_client_can_have() {
    let Some(address) = network_address() else {
        eprintln!("not run: the machine has no address but its loopback address");
        return;
    };
    let limits = json!({ "limits": { "connectionsPerAddress": 2 } });
    let mut setup = Setup::start_with(2, REVISION, &limits).await;
    let replica = &mut setup.cluster.replicas[0];
    replica.set_listen((address, replica.listen.port()).into());
    replica.kill().await;
    replica.start_again().await;
    let mut streams = Vec::new();
    for _ in 0..4 {
        let client = Client::new(setup.cluster.url(0), REVISION, &setup.history);
        let session = client.open().await.unwrap();
        let elsewhere = client.at(setup.cluster.url(1));
        let stream = timeout(TAKE_OVER_TIME, elsewhere.resume(&session, "0-0")).await.unwrap();
        let stream = stream.unwrap();
        assert_eq!(stream.status(), 200);
        streams.push(stream);
        assert_eq!(elsewhere.post(Some(&session), &ping()).await.unwrap().status(), 200);
    }
}
