//! The part that runs hosts: starts a tree, ends it as it is told, and tells what it still holds.

use std::path::{Path, PathBuf};
use std::time::Duration;

use innkeeper_host::{Config, Environment, Host};
use innkeeper_testkit::zombie_children;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use super::plan::Tree;
use crate::say;

/// Milliseconds of a call that is to be killed: longer than any end may take.
const LONG_CALL: u64 = 120_000;
/// How long the call has to get under way before its end is asked for.
const UNDER_WAY: Duration = Duration::from_millis(10);
/// How often it is looked for children that were not waited for, and the pause between.
const LOOKS: usize = 500;
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Answers each line on stdin until there is none: `sweep`, `start NONCE TREE`, then `shutdown`,
/// `drop`, `kill` or `call`, then `held`.
pub(crate) fn serve(ledger: &str) -> Result<(), String> {
    let mut guest = Guest { runtime: runtime()?, ledger: ledger.into(), host: None };
    for line in std::io::stdin().lines() {
        let line = line.map_err(|error| format!("stdin: {error}"))?;
        say(&guest.obey(&line).unwrap_or_else(|problem| format!("failed {problem}")));
    }
    Ok(())
}

fn runtime() -> Result<Runtime, String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("no runtime: {error}"))
}

struct Guest {
    runtime: Runtime,
    ledger: PathBuf,
    host: Option<Host>,
}

impl Guest {
    fn obey(&mut self, line: &str) -> Result<String, String> {
        let words: Vec<&str> = line.split(' ').collect();
        if let ["start", nonce, tree] = words[..] {
            let tree = tree.parse().map_err(|_| format!("`{tree}` is no tree"))?;
            self.host = Some(self.started(&Tree::numbered(tree).config(nonce))?);
            return Ok("ready".to_owned());
        }
        if line == "sweep" {
            let host = self.started(&json!({"servers": {}}))?;
            self.runtime.block_on(host.shutdown());
            return Ok("swept".to_owned());
        }
        if line == "held" {
            return Ok(self.held().to_owned());
        }
        let host = self.host.take().ok_or("nothing is started")?;
        match line {
            "shutdown" => drop(self.runtime.block_on(host.shutdown())),
            // The runtime goes with it.
            "drop" => {
                drop(host);
                self.runtime = runtime()?;
            }
            "kill" => self.runtime.block_on(async {
                host.kill();
                host.shutdown().await;
            }),
            "call" => self.runtime.block_on(called(&host))?,
            other => return Err(format!("`{other}` is no order")),
        }
        Ok("ended".to_owned())
    }

    /// Whether every child was waited for, which happens in tasks and threads of their own.
    fn held(&self) -> &'static str {
        let all_waited_for = async {
            for _ in 0..LOOKS {
                if zombie_children().is_empty() {
                    return true;
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            false
        };
        if self.runtime.block_on(all_waited_for) { "holds nothing" } else { "holds zombies" }
    }

    fn started(&self, config: &Value) -> Result<Host, String> {
        let environment = Environment::from_pairs([("PATH", "/usr/bin:/bin")]);
        let config = Config::from_value(config, "soak", Path::new("."), &environment)
            .map_err(|error| format!("configuration: {error}"))?;
        let start = Host::builder(config).ledger(&self.ledger).start();
        self.runtime.block_on(start).map_err(|error| format!("start: {error}"))
    }
}

/// Asks for an end once a call is under way; then the call must fail, and nothing may be left.
async fn called(host: &Host) -> Result<(), String> {
    let call = host.call_tool("tree.sleep", json!({"ms": LONG_CALL}));
    let ask = async {
        tokio::time::sleep(UNDER_WAY).await;
        let pid = host.status().get("tree").and_then(|status| status.pid);
        say(&format!("calling {}", pid.unwrap_or(0)));
    };
    let (call, ()) = tokio::join!(call, ask);
    host.shutdown().await;
    if call.is_ok() { Err("a call to a killed server succeeded".to_owned()) } else { Ok(()) }
}
