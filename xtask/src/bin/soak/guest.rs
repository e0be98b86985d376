//! A guest: runs the host, one cycle a line, and tells what it holds afterwards.

use std::path::Path;
use std::time::Duration;

use innkeeper_host::{Config, Environment, Host};
use innkeeper_testkit::{Fixture, Nonce, fx, mcp_json};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use crate::observe::Sample;
use crate::say;

/// The three servers: a plain one, one whose child ignores SIGTERM, one that leaves a daemon.
pub(crate) const SERVERS: [&str; 3] = ["plain", "family", "daemon"];

/// Milliseconds of a call that is to be killed: longer than any cycle may last.
const LONG_CALL: u64 = 120_000;
/// How long the call has to get under way before the kill is asked for.
const UNDER_WAY: Duration = Duration::from_millis(20);

/// Answers each line on stdin (`calm`, or `kill N`) until there is none.
pub(crate) fn serve(nonce: &str) -> Result<(), String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    for line in std::io::stdin().lines() {
        let line = line.map_err(|error| format!("stdin: {error}"))?;
        match cycle(&runtime, nonce, &line) {
            Ok(()) => say(&format!("done {}", Sample::of_this_process())),
            Err(problem) => say(&format!("failed {problem}")),
        }
    }
    Ok(())
}

fn cycle(runtime: &Runtime, nonce: &str, line: &str) -> Result<(), String> {
    runtime.block_on(async {
        let host = Host::start(config(nonce)?).await.map_err(|error| format!("start: {error}"))?;
        let called = match line.strip_prefix("kill ") {
            Some(server) => killed_call(&host, server).await,
            None => calls(&host).await,
        };
        let report = host.shutdown().await;
        called?;
        let left = report.servers.iter().find(|server| server.leftovers);
        left.map_or(Ok(()), |server| Err(format!("`{}` left something", server.server)))
    })
}

async fn calls(host: &Host) -> Result<(), String> {
    for server in SERVERS {
        let result = host.call_tool(&format!("{server}.echo"), json!({"message": server})).await;
        result.map_err(|error| format!("call: {error}"))?;
    }
    Ok(())
}

/// Asks to have the server killed once a call of its own is under way; that call must fail.
async fn killed_call(host: &Host, server: &str) -> Result<(), String> {
    let tool = format!("{server}.sleep");
    let call = host.call_tool(&tool, json!({"ms": LONG_CALL}));
    let ask = async {
        tokio::time::sleep(UNDER_WAY).await;
        let pid = host.status().get(server).and_then(|status| status.pid);
        say(&format!("calling {}", pid.unwrap_or(0)));
    };
    match tokio::join!(call, ask).0 {
        Err(_) => Ok(()),
        Ok(_) => Err(format!("a call to the killed `{server}` succeeded")),
    }
}

fn config(nonce: &str) -> Result<Config, String> {
    let [plain, family, daemon] = SERVERS.map(|name| fx(name).env(Nonce::VARIABLE, nonce));
    let servers: [Fixture; 3] =
        [plain, family.switch("--grandchild-ignores-sigterm"), daemon.switch("--daemon")];
    let environment = Environment::from_pairs([("PATH", "/usr/bin:/bin")]);
    Config::from_value(&mcp_json(servers), "soak", Path::new("."), &environment)
        .map_err(|error| format!("configuration: {error}"))
}
