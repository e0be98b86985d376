//! Our host on the same work, with everything on: validation, metrics, the log at its usual level.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use innkeeper_host::{Config, Environment, Host, Isolation, ServerStatus};
use serde_json::json;

use crate::client::Client;
use crate::log;
use crate::remote::Remote;
use crate::work::Work;

/// One host for all servers.
#[derive(Clone, Debug)]
pub struct Ours {
    host: Host,
    servers: usize,
    /// Where the server is not a child of the host.
    remote: Option<Arc<Remote>>,
}

/// The log of the command, one JSON line a call, where a service's goes: to stderr, which here
/// keeps nothing.
fn keep_log(work: &Work) {
    if !work.log {
        return;
    }
    let null = File::options().write(true).open("/dev/null").expect("the null device opens");
    rustix::stdio::dup2_stderr(&null).expect("stderr can be replaced");
    log::install(log::Level::Info, log::LogFormat::Json, false);
}

impl Client for Ours {
    async fn connect(work: &Work, servers: usize) -> Self {
        keep_log(work);
        let remote = Remote::start(work).map(Arc::new);
        let entry = match &remote {
            Some(remote) => json!({"url": remote.url}),
            None => json!({"command": work.echo.display().to_string()}),
        };
        let entries: serde_json::Map<_, _> =
            (0..servers).map(|n| (format!("echo{n}"), entry.clone())).collect();
        let environment = Environment::of_process();
        let config =
            Config::from_value(&json!({"servers": entries}), "bench", Path::new("."), &environment)
                .expect("the configuration is right");
        let host = Host::start(config).await.expect("every server starts");
        Self { host, servers, remote }
    }

    fn tools(&self) -> usize {
        let isolated = |status: &ServerStatus| status.isolation == Some(Isolation::Tree);
        let children = self.remote.is_none();
        assert!(
            !children || self.host.status().values().all(isolated),
            "innkeeper-shim is beside this program"
        );
        let catalog = self.host.catalog();
        assert_eq!(catalog.servers().count(), self.servers, "every server is in the catalog");
        catalog.tool_names().count()
    }

    async fn call(&self, message: &str, bytes: Option<usize>, length: usize) -> bool {
        let mut arguments = json!({"message": message});
        if let Some(bytes) = bytes {
            arguments["bytes"] = json!(bytes);
        }
        let result =
            self.host.call_tool("echo0.echo", arguments).await.expect("the call is answered");
        result.raw().get().len() > length
    }

    async fn close(self) {
        self.host.shutdown().await;
    }
}
