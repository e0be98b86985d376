//! Replicas with the arguments, the variables and the probes of the rendered chart.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_testkit::{RedisServer, fixture, free_port, mcp_json};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::client::{Client, STATELESS};
use super::cluster::{Replica, SECRET};
use super::history::{History, check};
use super::load::effect;
use crate::program::innkeeper;

/// The key of the client.
const KEY: &str = "key-of-ci-0123456789abcdef0123456789";

/// The file of the configuration in the container.
const CONFIG_FILE: &str = "/etc/innkeeper/mcp.json";

/// Renders one replica of the chart for local ports; `None` without the tools of the chart.
#[expect(clippy::disallowed_methods, reason = "the test renders the chart")]
#[expect(clippy::print_stdout, reason = "a skipped test says why")]
fn render(directory: &Path, values: &Value, secrets: &Value, ordinal: usize) -> Option<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let python = root.join("target/test-servers/chart/bin/python");
    if !python.is_file() {
        println!("SKIPPED: no tools of the chart; run `cargo xtask install`");
        return None;
    }
    let files = [("values", values), ("secrets", secrets)];
    let [values, secrets] = files.map(|(name, content)| {
        let path = directory.join(format!("{name}-{ordinal}.json"));
        fs::write(&path, content.to_string()).unwrap();
        path
    });
    let mut command = Command::new(python);
    command.arg(root.join("xtask/chart/render.py")).arg("--values").arg(values);
    command.arg("--secrets").arg(secrets).args(["--ordinal", &ordinal.to_string()]);
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// A replica as a pod runs it, with its probes.
struct Pod {
    replica: Replica,
    rendered: Value,
}

impl Pod {
    /// Starts the rendered replica: the mounted files and the writable directories are in a directory,
    /// and the name of the pod is this machine.
    async fn start(directory: &Path, rendered: Value) -> Self {
        let port = |name: &str| u16::try_from(rendered["ports"][name].as_u64().unwrap()).unwrap();
        let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let addresses = (local(port("http")), local(port("replicas")));
        let home = directory.join(rendered["name"].as_str().unwrap());
        fs::create_dir(&home).unwrap();
        let file = home.join("mcp.json");
        fs::write(&file, rendered["files"][CONFIG_FILE].as_str().unwrap()).unwrap();
        let args = rendered["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap());
        let args: Vec<&str> =
            args.map(|arg| if arg == CONFIG_FILE { file.to_str().unwrap() } else { arg }).collect();
        let mut command = innkeeper(&args, &home);
        for (name, value) in rendered["env"].as_object().unwrap() {
            command.env(name, value.as_str().unwrap());
        }
        command.env("HOME", &home).env("MCP_REPLICA_URL", format!("http://{}", addresses.1));
        let replica = Replica::start_command(command, addresses, &home).await;
        Self { replica, rendered }
    }

    /// Returns whether a probe succeeds.
    async fn probe(&self, name: &str) -> bool {
        let probe = &self.rendered["probes"][name];
        let (port, path) = (&probe["port"], probe["path"].as_str().unwrap());
        let http = innkeeper_host::http_client(&innkeeper_host::Environment::default(), false);
        let timeout = Duration::from_secs(probe["timeoutSeconds"].as_u64().unwrap());
        let request = http.unwrap().get(format!("http://127.0.0.1:{port}{path}")).timeout(timeout);
        request.send().await.is_ok_and(|response| response.status().is_success())
    }

    fn url(&self) -> String {
        format!("http://{}/mcp", self.replica.address)
    }
}

#[tokio::test]
async fn replicas_of_the_rendered_chart_take_over_and_end_in_their_grace_period() {
    let (redis, directory) = (RedisServer::start(&[]), tempfile::tempdir().unwrap());
    let path = directory.path();
    let journal: PathBuf = path.join("journal");
    let mut config = mcp_json([fixture("fx").journal(&journal)]);
    config["serve"] = json!({ "auth": { "apiKeys": [{ "principal": "ci", "key": "${CI_KEY}" }] } });
    let secrets = json!({
        "redis": { "url": redis.url() },
        "replicas": { "secret": SECRET },
        "api-keys": { "ci": KEY },
    });
    let mut pods = Vec::new();
    for ordinal in 0..3 {
        let ports = json!({ "http": free_port().port(), "replicas": free_port().port() });
        let values = json!({
            "image": { "repository": "registry.example.com/innkeeper" },
            "redis": { "secret": { "name": "redis" } },
            "replication": { "secret": { "name": "replicas" }, "leaseSeconds": 3 },
            "secretEnv": { "CI_KEY": { "secret": "api-keys", "key": "ci" } },
            "ports": ports,
            "config": config,
        });
        let Some(rendered) = render(path, &values, &secrets, ordinal) else { return };
        pods.push(Pod::start(path, rendered).await);
    }
    for pod in &pods {
        for probe in ["startup", "readiness", "liveness"] {
            assert!(pod.probe(probe).await, "{probe}: {}", pod.replica.log());
        }
    }
    let history = Arc::new(History::new());
    let [first, second, third] = [0, 1, 2].map(|pod: usize| pods[pod].url());
    let client = Client::new(first, "2025-11-25", &history).with_key(KEY);
    // The name of the Service, which the chart permits.
    let client = client.with_header("host", "team-innkeeper".to_owned());
    client.open().await.unwrap();
    client.at(second.clone()).call(&[effect(1)]).await;
    pods[0].replica.kill().await;
    assert!(!pods[0].probe("liveness").await);
    client.at(second).call(&[effect(2)]).await;
    let terminated = Instant::now();
    pods[1].replica.signal(Signal::TERM);
    assert_eq!(pods[1].replica.wait_end().await, Some(143));
    let grace = pods[1].rendered["terminationGracePeriodSeconds"].as_u64().unwrap();
    assert!(terminated.elapsed() < Duration::from_secs(grace));
    client.at(third.clone()).call(&[effect(3)]).await;
    let stateless = Client::new(third, STATELESS, &history).with_key(KEY);
    stateless.with_header("host", "team-innkeeper".to_owned()).call(&[effect(4)]).await;
    let summary = check(&history.take(), &super::cluster::executions(&journal));
    assert_eq!((summary.acknowledged, summary.violations), (4, Vec::new()));
}
