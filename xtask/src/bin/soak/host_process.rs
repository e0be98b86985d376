//! The host process of `--cycles`: runs one cycle per input line.

use std::path::Path;
use std::time::Duration;

use innkeeper_host::{Config, Environment, Host};
use innkeeper_testkit::{Fixture, ProcessTag, fixture, mcp_json};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use crate::print_line;
use crate::resources::ResourceSample;

/// The three servers: a plain server, a server whose child ignores SIGTERM, a server that leaves a
/// daemon.
pub(crate) const SERVER_NAMES: [&str; 3] = ["plain", "family", "daemon"];

/// Milliseconds of a call that the test kills: longer than any cycle.
const LONG_CALL_MILLIS: u64 = 120_000;
/// Delay between the start of the call and the request to kill its server.
const CALL_START_DELAY: Duration = Duration::from_millis(20);

/// Handles each line on stdin (`calm` or `kill N`) until the end of the input.
pub(crate) fn serve(tag: &str) -> Result<(), String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot start the runtime: {error}"))?;
    for line in std::io::stdin().lines() {
        let line = line.map_err(|error| format!("stdin: {error}"))?;
        match run_cycle(&runtime, tag, &line) {
            Ok(()) => print_line(&format!("done {}", ResourceSample::for_current_process())),
            Err(problem) => print_line(&format!("failed {problem}")),
        }
    }
    Ok(())
}

fn run_cycle(runtime: &Runtime, tag: &str, line: &str) -> Result<(), String> {
    runtime.block_on(async {
        let host = Host::start(config(tag)?).await.map_err(|error| format!("start: {error}"))?;
        let call_result = match line.strip_prefix("kill ") {
            Some(server) => call_until_killed(&host, server).await,
            None => call_each_server(&host).await,
        };
        let report = host.shutdown().await;
        call_result?;
        let leftover = report.servers.iter().find(|server| server.leftovers);
        leftover.map_or(Ok(()), |server| Err(format!("leftovers of server `{}`", server.server)))
    })
}

async fn call_each_server(host: &Host) -> Result<(), String> {
    for server in SERVER_NAMES {
        let result = host.call_tool(&format!("{server}.echo"), json!({"message": server})).await;
        result.map_err(|error| format!("call: {error}"))?;
    }
    Ok(())
}

/// Starts a call, requests the kill of its server, and expects the call to fail.
async fn call_until_killed(host: &Host, server: &str) -> Result<(), String> {
    let tool = format!("{server}.sleep");
    let call = host.call_tool(&tool, json!({"ms": LONG_CALL_MILLIS}));
    let report_call = async {
        tokio::time::sleep(CALL_START_DELAY).await;
        let pid = host.status().get(server).and_then(|status| status.pid);
        print_line(&format!("calling {}", pid.unwrap_or(0)));
    };
    match tokio::join!(call, report_call).0 {
        Err(_) => Ok(()),
        Ok(_) => Err(format!("a call to the killed `{server}` succeeded")),
    }
}

fn config(tag: &str) -> Result<Config, String> {
    let [plain, family, daemon] =
        SERVER_NAMES.map(|name| fixture(name).env(ProcessTag::VARIABLE, tag));
    let servers: [Fixture; 3] =
        [plain, family.switch("--grandchild-ignores-sigterm"), daemon.switch("--daemon")];
    let environment = Environment::from_pairs([("PATH", "/usr/bin:/bin")]);
    Config::from_value(&mcp_json(servers), "soak", Path::new("."), &environment)
        .map_err(|error| format!("configuration: {error}"))
}
