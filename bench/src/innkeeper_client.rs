//! The host under the same workload, with validation, metrics and the default log level.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use innkeeper_host::{Config, Environment, Host, ProcessContainment, ServerStatus};
use serde_json::json;

use crate::client::BenchClient;
use crate::http_echo::HttpEchoServer;
use crate::log;
use crate::secret_mask::SecretMask;
use crate::workload::{BenchCase, Workload};

/// One host for all servers.
#[derive(Clone, Debug)]
pub struct InnkeeperClient {
    host: Host,
    /// The name of the tool of each server.
    tools: Arc<[String]>,
    /// The HTTP server, if the server is not a child process of the host.
    echo_server: Option<Arc<HttpEchoServer>>,
}

/// Installs the log of the command-line program, one JSON line per call, on stderr. In the
/// benchmark stderr is the null device.
fn enable_log(work: &Workload) {
    if !work.log_calls {
        return;
    }
    let null = File::options().write(true).open("/dev/null").expect("cannot open the null device");
    rustix::stdio::dup2_stderr(&null).expect("cannot replace stderr");
    let lines = log::LogSink::start(std::io::stderr());
    let outputs = vec![lines.output(log::LogLevel::Info, log::LineStyle::Json)];
    log::install(outputs, SecretMask::default());
}

impl BenchClient for InnkeeperClient {
    async fn connect(work: &Workload, servers: usize) -> Self {
        enable_log(work);
        let echo_server = HttpEchoServer::start(work).map(Arc::new);
        let entry = match &echo_server {
            Some(server) => json!({"url": server.url}),
            None => json!({"command": work.echo_program.display().to_string()}),
        };
        let entries: serde_json::Map<_, _> =
            (0..servers).map(|n| (format!("echo{n}"), entry.clone())).collect();
        let environment = Environment::from_process();
        let config =
            Config::from_value(&json!({"servers": entries}), "bench", Path::new("."), &environment)
                .expect("invalid configuration");
        let host = Host::start(config).await.expect("a server did not start");
        let tools = (0..servers).map(|n| format!("echo{n}.echo")).collect();
        Self { host, tools, echo_server }
    }

    fn tool_count(&self) -> usize {
        let contained = |status: &ServerStatus| status.isolation == Some(ProcessContainment::Tree);
        let children = self.echo_server.is_none();
        assert!(
            !children || self.host.status().values().all(contained),
            "a server has no supervisor"
        );
        let catalog = self.host.catalog();
        assert_eq!(catalog.servers().count(), self.tools.len(), "a server is not in the catalog");
        catalog.tool_names().count()
    }

    async fn call(&self, server: usize, case: BenchCase, message: &str) -> bool {
        let mut arguments = json!({"message": message});
        if let Some(bytes) = case.bytes() {
            arguments["bytes"] = json!(bytes);
        }
        let result = self.host.call_tool(&self.tools[server], arguments).await;
        let (result, length) = (result.expect("the call failed"), case.response_text_len());
        if case.reads_text() {
            result.text().len() == length
        } else {
            result.raw().get().len() > length
        }
    }

    async fn close(self) {
        self.host.shutdown().await;
    }
}
