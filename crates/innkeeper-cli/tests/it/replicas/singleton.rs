//! A server of which all replicas have one process.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_testkit::{Fixture, RedisServer};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::client::{Call, Client, STATELESS};
use super::cluster::{Cluster, open_settings};
use super::delay_proxy::DelayProxy;
use super::history::History;
use super::load::effect;

/// Time beyond the lease after which another replica has taken over.
const TAKE_OVER_TIME: Duration = Duration::from_secs(20);

/// Calls the tool that tells the process id of its server, by plain HTTP at a replica.
async fn process_id(cluster: &Cluster, replica: usize) -> Option<u32> {
    let http = innkeeper_host::http_client(&innkeeper_host::Environment::default(), false).unwrap();
    let address = cluster.replicas[replica].address;
    let request = http
        .post(format!("http://{address}/tools/fx.pid"))
        .header("content-type", "application/json")
        .body("{}");
    let response = request.send().await.ok()?.text().await.ok()?;
    let result: Value = serde_json::from_str(&response).ok()?;
    result["content"][0]["text"].as_str()?.parse().ok()
}

fn singleton(server: Fixture) -> Fixture {
    server.config_key("share", json!("singleton"))
}

fn runs(process: u32) -> bool {
    Path::new("/proc").join(process.to_string()).exists()
}

/// Waits until the replicas have another process than an earlier one.
async fn next_process(cluster: &Cluster, replica: usize, earlier: u32) -> u32 {
    let waiting = async {
        loop {
            match process_id(cluster, replica).await {
                Some(process) if process != earlier => return process,
                _ => sleep(Duration::from_millis(50)).await,
            }
        }
    };
    timeout(TAKE_OVER_TIME, waiting).await.unwrap()
}

/// Attack: processes | the replica with the only process of a server is killed, and the next one is
/// stopped until its lease has ended | each time the next replica starts the process once, and the
/// stopped one kills its own when it continues | No repeated execution
#[tokio::test]
async fn a_singleton_has_one_process_in_all_replicas() {
    let redis = RedisServer::start(&[]);
    let mut cluster = Cluster::start_with(3, &redis.url(), &open_settings(), singleton).await;
    let first = process_id(&cluster, 0).await.unwrap();
    for replica in [1, 2, 0] {
        assert_eq!(process_id(&cluster, replica).await, Some(first), "replica {replica}");
    }
    cluster.replicas[0].kill().await;
    let second = next_process(&cluster, 1, first).await;
    assert!(!runs(first), "the process of the killed replica");
    assert_eq!(process_id(&cluster, 2).await, Some(second));
    // The owner is the replica that was asked first.
    cluster.replicas[1].signal(Signal::STOP);
    let third = next_process(&cluster, 2, second).await;
    cluster.replicas[1].signal(Signal::CONT);
    let ending = async {
        while runs(second) {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(TAKE_OVER_TIME, ending).await.unwrap();
    for replica in [1, 2] {
        assert_eq!(process_id(&cluster, replica).await, Some(third), "replica {replica}");
    }
}

#[tokio::test]
async fn every_replica_describes_the_tools_of_a_singleton() {
    let redis = RedisServer::start(&[]);
    let cluster = Cluster::start_with(2, &redis.url(), &open_settings(), singleton).await;
    process_id(&cluster, 0).await.unwrap();
    let http = innkeeper_host::http_client(&innkeeper_host::Environment::default(), false).unwrap();
    let mut descriptions = Vec::new();
    for replica in &cluster.replicas {
        let url = format!("http://{}/openapi.json", replica.address);
        let response = http.get(url).send().await.unwrap();
        assert_eq!(response.status(), 200);
        descriptions.push(response.text().await.unwrap());
    }
    assert!(descriptions[0].contains("/tools/fx.pid") && descriptions[0] == descriptions[1]);
}

/// Attack: processes | clients use the only process of a server for longer than the idle time, all of
/// them in one session at its replica | the replica and the session stay, and no other replica starts a
/// second process | No repeated execution
#[tokio::test]
async fn a_singleton_in_use_has_one_process_after_the_idle_time() {
    let redis = RedisServer::start(&[]);
    let settings = json!({ "limits": { "idleSessionSeconds": 2 } });
    let cluster = Cluster::start_with(2, &redis.url(), &settings, singleton).await;
    let client = Client::new(cluster.url(0), "2025-06-18", &Arc::new(History::new()));
    let session = client.open().await.unwrap();
    let first = process_id(&cluster, 0).await.unwrap();
    for _ in 0..25 {
        sleep(Duration::from_millis(200)).await;
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        assert_eq!(client.post(Some(&session), &ping).await.unwrap().status(), 200);
    }
    assert_eq!(process_id(&cluster, 1).await, Some(first));
    assert!(runs(first));
}

/// Attack: remote | the connection between two replicas breaks during a call that may not run twice, and
/// the replica with the server runs on | the server gets the call once, and the client learns that the
/// outcome is unknown | No repeated execution
#[tokio::test]
async fn a_broken_connection_between_replicas_does_not_repeat_a_call() {
    let redis = RedisServer::start(&[]);
    let mut cluster = Cluster::start_with(2, &redis.url(), &open_settings(), singleton).await;
    let proxy = DelayProxy::start(cluster.replicas[0].listen).await;
    cluster.replicas[0].set_address(proxy.address());
    cluster.replicas[0].kill().await;
    cluster.replicas[0].start_again().await;
    process_id(&cluster, 0).await.unwrap();
    let http = innkeeper_host::http_client(&innkeeper_host::Environment::default(), false).unwrap();
    for (number, revision) in [(1, None), (2, Some("2025-06-18")), (3, Some(STATELESS))] {
        let arguments = json!({ "ms": 2_000, "number": number });
        let calling = async {
            let Some(revision) = revision else {
                let address = cluster.replicas[1].address;
                let request = http.post(format!("http://{address}/tools/fx.sleep"));
                let request = request.header("content-type", "application/json");
                let response = request.body(arguments.to_string()).send().await.unwrap();
                assert_eq!(response.status(), 502);
                return response.text().await.unwrap();
            };
            let client = Client::new(cluster.url(1), revision, &Arc::new(History::new()));
            let session = match client.is_stateless() {
                true => None,
                false => client.open().await,
            };
            let params = json!({ "name": "fx.sleep", "arguments": arguments });
            let message = client.message(&Call { params, ..effect(number) });
            let response = client.post(session.as_deref(), &message).await.unwrap();
            response.text().await.unwrap()
        };
        let breaking = async {
            cluster.wait_executed(number).await;
            proxy.end_connections();
        };
        let (response, ()) = tokio::join!(calling, breaking);
        assert!(response.contains("unknown"), "{revision:?}: {response}");
        assert_eq!(cluster.executions()[&number], 1, "{revision:?}");
    }
}
