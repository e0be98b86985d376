//! Tests of replicas with a real Redis.

use bytes::Bytes;
use futures_util::future::join_all;
use indexmap::IndexMap;
use innkeeper_host::RemoteSession;
use innkeeper_host::config::{Rate, RateConfig};
use innkeeper_protocol::RequestId;
use innkeeper_testkit::RedisServer;
use serde_json::value::RawValue;

use super::*;
use crate::owned_calls::{OwnedCalls, OwnedRequest};
use crate::principal::Principal;
use crate::rate_limits::RateLimits;

struct Cluster {
    server: RedisServer,
    replicas: Vec<Replicas>,
}

impl Cluster {
    async fn start(count: usize) -> Self {
        let server = RedisServer::start(&[]);
        let mut replicas = Vec::new();
        for number in 0..count {
            let redis = Arc::new(RedisClient::new(&server.url()).unwrap());
            let options = ReplicaOptions {
                url: format!("http://replica-{number}"),
                secret: Secret::new("secret"),
                lease: Duration::from_secs(60),
                idle: Duration::from_secs(600),
            };
            replicas.push(Replicas::join(redis, options).await.unwrap());
        }
        Self { server, replicas }
    }

    /// Ends the lease of a replica in Redis, as if its time were over. The replica does not know.
    async fn end_lease(&self, replicas: &Replicas) {
        let client = redis::Client::open(self.server.url()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let lease = format!("mcp:replica:{}", replicas.id());
        let removed: u64 = redis::cmd("DEL").arg(lease).query_async(&mut connection).await.unwrap();
        assert_eq!(removed, 1);
    }
}

fn key() -> OwnedKey {
    OwnedKey::Session("abc".into())
}

async fn own(replicas: &Replicas, key: &OwnedKey) -> Arc<Ownership> {
    match replicas.claim(key, true).await.unwrap() {
        Claim::Owned(ownership) => ownership,
        other => panic!("not owned: {other:?}"),
    }
}

fn record(request: &str) -> CallRecord {
    CallRecord {
        session: Some("abc".into()),
        stream: 1,
        request: RawValue::from_string(request.to_owned()).unwrap(),
        item: "notes.add".to_owned(),
    }
}

fn entry(position: u64) -> LogEntry {
    let message = Bytes::from(position.to_string());
    LogEntry { position, kind: EntryKind::Message, message }
}

#[tokio::test]
async fn a_key_has_one_owner_until_the_lease_of_the_owner_ends() {
    let cluster = Cluster::start(2).await;
    let [first, second] = &cluster.replicas[..] else { panic!() };
    assert!(matches!(second.claim(&key(), false).await.unwrap(), Claim::Unknown));
    let owned = own(first, &key()).await;
    let Claim::Elsewhere(owner) = second.claim(&key(), true).await.unwrap() else { panic!() };
    assert_eq!((&*owner.id, &*owner.url), (first.id(), "http://replica-0"));
    assert!(second.is_alive(&owner).await.unwrap());
    cluster.end_lease(first).await;
    assert!(!second.is_alive(&owner).await.unwrap());
    let taken = own(second, &key()).await;
    assert!(taken.fence > owned.fence);
    assert_eq!((owned.moves, taken.moves), (0, 1));
    assert!(first.renew_lease().await.unwrap(), "the lease had ended");
    assert!(!first.owns(&owned), "Redis has not confirmed the ownership in the new lease");
    first.verify_owned().await;
    assert!(owned.is_lost());
    assert_eq!(first.lost().await, [key()]);
    assert!(matches!(first.claim(&key(), true).await.unwrap(), Claim::Elsewhere(_)));
}

#[tokio::test]
async fn a_replica_whose_lease_began_anew_keeps_what_nobody_claimed() {
    let cluster = Cluster::start(1).await;
    let replicas = &cluster.replicas[0];
    let owned = own(replicas, &key()).await;
    cluster.end_lease(replicas).await;
    assert!(replicas.renew_lease().await.unwrap());
    assert!(!replicas.owns(&owned));
    replicas.verify_owned().await;
    assert!(replicas.owns(&owned), "the same fence");
}

/// Attack: remote | a replica continues after its lease, as if it still owned a session | Redis accepts
/// neither its calls nor its messages nor its records, and it learns that it lost the session |
/// No repeated execution
#[tokio::test]
async fn redis_accepts_nothing_of_an_earlier_owner() {
    let cluster = Cluster::start(2).await;
    let [first, second] = &cluster.replicas[..] else { panic!() };
    let owned = own(first, &key()).await;
    assert_eq!(first.record_call(&owned, "1", &record("1")).await, Ok(()));
    assert!(first.append(&owned, "abc", 1, Some("[1]"), 0, &[entry(1)]).await.unwrap());
    cluster.end_lease(first).await;
    let unavailable = first.record_call(&owned, "2", &record("2")).await;
    let Err(RecordRejection::Unavailable(reason)) = unavailable else { panic!("{unavailable:?}") };
    assert!(reason.contains("the lease of this replica has ended"), "{reason}");
    let taken = own(second, &key()).await;
    first.renew_lease().await.unwrap();
    let rejected = first.record_call(&owned, "2", &record("2")).await;
    assert_eq!(rejected, Err(RecordRejection::Lost));
    assert!(owned.is_lost());
    assert!(!first.append(&owned, "abc", 1, None, 0, &[entry(2)]).await.unwrap());
    assert!(!first.keep(&owned, &[]).await.unwrap());
    first.release(&owned, Some(session_names("abc"))).await.unwrap();
    let calls = second.calls(&key()).await.unwrap();
    assert_eq!(calls.iter().map(|(id, _)| &**id).collect::<Vec<_>>(), ["1"]);
    let log = second.read_log("abc", 1).await.unwrap();
    assert_eq!((log.requests.len(), &log.entries[..]), (1, &[entry(1)][..]));
    assert!(second.append(&taken, "abc", 1, None, 0, &[entry(2)]).await.unwrap());
}

#[tokio::test]
async fn a_call_is_recorded_once_and_its_record_is_removed_at_its_end() {
    let cluster = Cluster::start(1).await;
    let replicas = &cluster.replicas[0];
    let owned = own(replicas, &key()).await;
    let attempts = (0..20).map(|_| {
        let owned = owned.clone();
        async move { replicas.record_call(&owned, "r:1", &record("1")).await }
    });
    let results = join_all(attempts).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    let duplicates = results.iter().filter(|result| **result == Err(RecordRejection::Duplicate));
    assert_eq!(duplicates.count(), 19);
    let tasks = GatewayTasks::default();
    replicas.start(&tasks);
    replicas.forget_call(&key(), "r:1".to_owned());
    while !replicas.calls(&key()).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn of_many_replicas_that_claim_a_key_one_becomes_the_owner() {
    let cluster = Cluster::start(4).await;
    for round in 0..50 {
        let key = OwnedKey::Session(format!("session-{round}").into());
        let claims = join_all(cluster.replicas.iter().map(|one| one.claim(&key, true))).await;
        let owners: Vec<_> = claims
            .iter()
            .zip(&cluster.replicas)
            .filter_map(|(claim, replicas)| match claim.as_ref().unwrap() {
                Claim::Owned(ownership) => Some((ownership.clone(), replicas)),
                _ => None,
            })
            .collect();
        let [(ownership, owner)] = &owners[..] else { panic!("round {round}: {owners:?}") };
        owner.release(ownership, None).await.unwrap();
        let claims = join_all(cluster.replicas.iter().map(|one| one.claim(&key, false))).await;
        let moves: Vec<_> = claims
            .iter()
            .filter_map(|claim| match claim.as_ref().unwrap() {
                Claim::Owned(ownership) => Some(ownership.moves),
                _ => None,
            })
            .collect();
        assert_eq!(moves, [1], "a key that was given up has its next owner at once");
    }
}

#[tokio::test]
async fn a_session_that_ended_leaves_nothing() {
    let cluster = Cluster::start(2).await;
    let [first, second] = &cluster.replicas[..] else { panic!() };
    let owned = own(first, &key()).await;
    let stored = SessionRecord {
        principal: "ada".to_owned(),
        endpoint: "_".to_owned(),
        revision: "2025-11-25".to_owned(),
        capabilities: RawValue::from_string("{}".to_owned()).unwrap(),
        log_level: None,
        has_state: false,
        remote_sessions: None,
    };
    assert!(first.store_session(&owned, "abc", &stored).await.unwrap());
    assert_eq!(second.find_session("abc").await.unwrap().unwrap().principal, "ada");
    first.record_call(&owned, "1", &record("1")).await.unwrap();
    first.append(&owned, "abc", 0, None, 0, &[entry(1)]).await.unwrap();
    first.release(&owned, Some(session_names("abc"))).await.unwrap();
    assert!(second.find_session("abc").await.unwrap().is_none());
    assert!(second.calls(&key()).await.unwrap().is_empty());
    assert!(second.read_log("abc", 0).await.unwrap().entries.is_empty());
    assert!(matches!(second.claim(&key(), false).await.unwrap(), Claim::Unknown));
}

#[tokio::test]
async fn a_client_has_one_rate_at_all_replicas() {
    let rate = Rate { per_minute: 60, burst: 10 };
    let config = RateConfig { requests: Some(rate), ..RateConfig::default() };
    let cluster = Cluster::start(3).await;
    let limits: Vec<_> = (0..3).map(|_| RateLimits::new(config.clone(), [])).collect();
    limits.iter().for_each(RateLimits::share);
    let ada = Principal::new("ada");
    let mut taken = 0;
    // Each replica learns of the others with its own next request.
    for _ in 0..20 {
        for (replicas, limits) in cluster.replicas.iter().zip(&limits) {
            if limits.count_request(&ada).is_ok() {
                taken += 1;
                replicas.exchange_rates(limits).await.unwrap();
            }
        }
    }
    assert!((10..=13).contains(&taken), "{taken} requests of a burst of 10");
    let other = Principal::new("ben");
    assert!(limits[0].count_request(&other).is_ok(), "another client has its own rate");
}

#[tokio::test]
async fn a_client_of_one_replica_has_its_whole_rate() {
    // A bucket gets all its tokens in less time than the replicas take to exchange their counts.
    let rate = Rate { per_minute: 60_000, burst: 10 };
    let config = RateConfig { requests: Some(rate), ..RateConfig::default() };
    let cluster = Cluster::start(1).await;
    let limits = RateLimits::new(config, []);
    limits.share();
    let ada = Principal::new("ada");
    tokio::time::pause();
    for _ in 0..200 {
        limits.count_request(&ada).unwrap();
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    tokio::time::resume();
    cluster.replicas[0].exchange_rates(&limits).await.unwrap();
    limits.count_request(&ada).unwrap();
}

/// Attack: remote | clients use a session and a server for longer than the idle time without a claim | the
/// key stays at its replica until it has neither | No repeated execution
#[tokio::test]
async fn a_key_with_a_session_or_a_server_here_does_not_become_free() {
    let cluster = Cluster::start(2).await;
    let (first, second) = (&cluster.replicas[0], &cluster.replicas[1]);
    own(first, &OwnedKey::Singletons).await;
    tokio::time::pause();
    for _ in 0..3 {
        tokio::time::advance(Duration::from_secs(600)).await;
        tokio::time::resume();
        first.keep_used(|key| *key == OwnedKey::Singletons).await;
        let claim = second.claim(&OwnedKey::Singletons, true).await.unwrap();
        assert!(matches!(claim, Claim::Elsewhere(_)), "{claim:?}");
        tokio::time::pause();
    }
    tokio::time::advance(Duration::from_secs(600)).await;
    tokio::time::resume();
    first.keep_used(|_| false).await;
    own(second, &OwnedKey::Singletons).await;
}

#[tokio::test]
async fn the_record_of_a_call_stays_while_another_replica_may_pass_the_call_on_again() {
    let cluster = Cluster::start(1).await;
    let replicas = &cluster.replicas[0];
    let owned = own(replicas, &key()).await;
    let tasks = GatewayTasks::default();
    replicas.start(&tasks);
    for is_forwarded in [true, false] {
        let id = format!("r{}", u8::from(is_forwarded));
        let request = OwnedRequest { id, is_forwarded, session: None, stream: 0 };
        let calls = OwnedCalls::new(replicas.clone(), owned.clone(), request);
        let check = Arc::new(calls).check(&RequestId::from(1), "a", false);
        check.check().await.unwrap();
    }
    let ids = || async {
        let calls = replicas.calls(&key()).await.unwrap();
        calls.into_iter().map(|(id, _)| id).collect::<Vec<_>>()
    };
    while ids().await != ["r1:1"] {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::pause();
    tokio::time::advance(2 * replicas.owner_time()).await;
    tokio::time::resume();
    while !ids().await.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Returns the session of a server as a host would store it.
fn remote_sessions() -> IndexMap<String, RemoteSession> {
    let session = r#"{"session_id":"id-of-the-server","endpoint":"","initialize_id":1,
        "initialize_request":"","initialize_result":{}}"#;
    IndexMap::from([("notes".to_owned(), serde_json::from_str(session).unwrap())])
}

/// Attack: remote | whoever writes to Redis puts the sealed remote sessions of one session into the record of
/// another, or changes them | no replica opens them | Isolation
#[tokio::test]
async fn sealed_sessions_open_for_their_own_session_at_each_replica_with_the_secret() {
    let cluster = Cluster::start(2).await;
    let [first, second] = &cluster.replicas[..] else { panic!() };
    let owner = SealedFor { session: "abc", principal: "ada", endpoint: "_" };
    let sessions = remote_sessions();
    let sealed = first.seal_sessions(owner, &sessions).unwrap();
    let opened = second.open_sessions(owner, &sealed).unwrap();
    assert!(opened["notes"].is_same(&sessions["notes"]));
    assert!(!sealed.contains("id-of-the-server") && !format!("{opened:?}").contains("id-of"));
    for other in [
        SealedFor { session: "abd", ..owner },
        SealedFor { principal: "bob", ..owner },
        SealedFor { endpoint: "tools", ..owner },
        SealedFor { session: "ab", principal: "cada", ..owner },
    ] {
        assert!(second.open_sessions(other, &sealed).is_none(), "{other:?}");
    }
    for index in 0..sealed.len() {
        let mut changed = sealed.clone().into_bytes();
        changed[index] = if changed[index] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        assert!(second.open_sessions(owner, &changed).is_none(), "{index}");
    }
    let options =
        ReplicaOptions { secret: Secret::new("another secret"), ..first.0.options.clone() };
    let redis = Arc::new(RedisClient::new(&cluster.server.url()).unwrap());
    let stranger = Replicas::join(redis, options).await.unwrap();
    assert!(stranger.open_sessions(owner, &sealed).is_none());
}

#[tokio::test]
async fn sessions_above_the_maximum_length_are_not_sealed() {
    let cluster = Cluster::start(1).await;
    let owner = SealedFor { session: "abc", principal: "ada", endpoint: "_" };
    let seal = |count: usize| {
        let [session] =
            <[_; 1]>::try_from(remote_sessions().into_values().collect::<Vec<_>>()).unwrap();
        let all = (0..count).map(|number| (format!("{number:05}"), session.clone()));
        cluster.replicas[0].seal_sessions(owner, &all.collect())
    };
    let (mut largest, mut above) = (0, 8_000);
    while above - largest > 1 {
        let middle = usize::midpoint(largest, above);
        *if seal(middle).is_some() { &mut largest } else { &mut above } = middle;
    }
    assert!(largest > 100, "{largest}");
    let sealed = seal(largest).unwrap();
    assert_eq!(cluster.replicas[0].open_sessions(owner, &sealed).unwrap().len(), largest);
    assert!(seal(largest + 1).is_none());
}
