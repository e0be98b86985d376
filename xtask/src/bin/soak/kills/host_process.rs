//! The host process of `--kills`: starts and terminates one process tree at a time.

use std::path::{Path, PathBuf};
use std::time::Duration;

use innkeeper_host::{Config, Environment, Host};
use innkeeper_testkit::zombie_children;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use super::process_tree::ProcessTree;
use crate::print_line;

/// Milliseconds of a call that the test kills: longer than any termination.
const LONG_CALL_MILLIS: u64 = 120_000;
/// Delay between the start of the call and the request to terminate its server.
const CALL_START_DELAY: Duration = Duration::from_millis(10);
/// Maximum number of checks for unreaped children, and the interval between checks.
const MAX_POLLS: usize = 500;
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Handles each line on stdin until the end of the input: `sweep`, or `start TAG TREE`, then one of
/// `shutdown`, `drop`, `kill` and `call`, then `held`.
pub(crate) fn serve(ledger: &str) -> Result<(), String> {
    let mut runner = HostRunner { runtime: runtime()?, ledger: ledger.into(), host: None };
    for line in std::io::stdin().lines() {
        let line = line.map_err(|error| format!("stdin: {error}"))?;
        print_line(
            &runner.run_command(&line).unwrap_or_else(|problem| format!("failed {problem}")),
        );
    }
    Ok(())
}

fn runtime() -> Result<Runtime, String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("cannot start the runtime: {error}"))
}

struct HostRunner {
    runtime: Runtime,
    ledger: PathBuf,
    host: Option<Host>,
}

impl HostRunner {
    fn run_command(&mut self, line: &str) -> Result<String, String> {
        let command_words: Vec<&str> = line.split(' ').collect();
        if let ["start", tag, tree] = command_words[..] {
            let tree = tree.parse().map_err(|_| format!("unknown tree `{tree}`"))?;
            self.host = Some(self.start_host(&ProcessTree::from_index(tree).config(tag))?);
            return Ok("ready".to_owned());
        }
        if line == "sweep" {
            let host = self.start_host(&json!({"servers": {}}))?;
            self.runtime.block_on(host.shutdown());
            return Ok("swept".to_owned());
        }
        if line == "held" {
            return Ok(self.report_children().to_owned());
        }
        let host = self.host.take().ok_or("no host was started")?;
        match line {
            "shutdown" => drop(self.runtime.block_on(host.shutdown())),
            // Drops the runtime with the host.
            "drop" => {
                drop(host);
                self.runtime = runtime()?;
            }
            "kill" => self.runtime.block_on(async {
                host.kill();
                host.shutdown().await;
            }),
            "call" => self.runtime.block_on(call_until_terminated(&host))?,
            other => return Err(format!("unknown command `{other}`")),
        }
        Ok("ended".to_owned())
    }

    /// Whether the host reaped every child; tasks and threads of the host do so asynchronously.
    fn report_children(&self) -> &'static str {
        let all_waited_for = async {
            for _ in 0..MAX_POLLS {
                if zombie_children().is_empty() {
                    return true;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            false
        };
        if self.runtime.block_on(all_waited_for) { "holds nothing" } else { "holds zombies" }
    }

    fn start_host(&self, config: &Value) -> Result<Host, String> {
        let environment = Environment::from_pairs([("PATH", "/usr/bin:/bin")]);
        let config = Config::from_value(config, "soak", Path::new("."), &environment)
            .map_err(|error| format!("configuration: {error}"))?;
        let start = Host::builder(config).ledger(&self.ledger).start();
        self.runtime.block_on(start).map_err(|error| format!("start: {error}"))
    }
}

/// Starts a call and requests its termination; expects the call to fail without leftovers.
async fn call_until_terminated(host: &Host) -> Result<(), String> {
    let call = host.call_tool("tree.sleep", json!({"ms": LONG_CALL_MILLIS}));
    let report_call = async {
        tokio::time::sleep(CALL_START_DELAY).await;
        let pid = host.status().get("tree").and_then(|status| status.pid);
        print_line(&format!("calling {}", pid.unwrap_or(0)));
    };
    let (call, ()) = tokio::join!(call, report_call);
    host.shutdown().await;
    if call.is_ok() { Err("a call to a killed server succeeded".to_owned()) } else { Ok(()) }
}
