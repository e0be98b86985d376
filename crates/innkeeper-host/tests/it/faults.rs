//! Faults of the catalog in `docs/faults.md` without a test next to their implementation.

mod bytes;
mod flow;
mod lists;
mod neighbour;
mod process;

use std::time::Duration;

use innkeeper_host::{CallOptions, Host, ToolResult};
use innkeeper_testkit::ProcessTag;
use serde_json::{Value, json};

use crate::setup::{TestEnv, builder};
use crate::shell_server::ShellServer;

/// Maximum time between a call's deadline and its error on a loaded machine.
const DEADLINE_TOLERANCE: Duration = Duration::from_secs(5);

fn with_timeout(timeout: Duration) -> CallOptions {
    CallOptions { timeout: Some(timeout), ..CallOptions::default() }
}

/// Starts a host with one shell server that runs `code` before it responds to a call.
async fn host_with_call_script(test_env: &TestEnv, code: &str) -> Host {
    let shell = ShellServer { on_call: code, ..ShellServer::default() };
    builder(test_env.config_from(&tagged_config(test_env, &shell))).start().await.unwrap()
}

/// The configuration of a shell server with the process tag; the server stays available after
/// timeouts.
fn tagged_config(test_env: &TestEnv, shell: &ShellServer<'_>) -> Value {
    let mut file = shell.config_json();
    let server = &mut file["servers"]["sh"];
    server["env"][ProcessTag::VARIABLE] = json!(test_env.process_tag().as_str());
    server["unavailableAfterTimeouts"] = json!(1000);
    server["shutdownTimeout"] = json!(0.5);
    file
}

/// Parses a result of the shell server.
fn result_json(result: &ToolResult) -> Value {
    serde_json::from_str(result.raw().get()).unwrap()
}
