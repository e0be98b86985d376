//! A server of which all replicas have one process.

use std::path::Path;
use std::time::Duration;

use innkeeper_testkit::RedisServer;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::cluster::{Cluster, open_settings};

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
    let singleton =
        |server: innkeeper_testkit::Fixture| server.config_key("share", json!("singleton"));
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
