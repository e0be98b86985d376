//! Faults of the catalogue in `docs/faults.md` that have no test where their behaviour lives.

mod bytes;
mod flow;
mod lists;
mod neighbour;
mod process;

use std::time::Duration;

use innkeeper_host::{CallOptions, Host, ToolResult};
use innkeeper_testkit::Nonce;
use serde_json::{Value, json};

use crate::setup::{Scene, builder};
use crate::shell::Shell;

/// How long after its deadline a call may be told of it on a loaded machine.
const SLACK: Duration = Duration::from_secs(5);

fn within(timeout: Duration) -> CallOptions {
    CallOptions { timeout: Some(timeout), ..CallOptions::default() }
}

/// A host with one server that runs this shell code before it answers a call.
async fn on_call(scene: &Scene, code: &str) -> Host {
    let shell = Shell { on_call: code, ..Shell::default() };
    builder(scene.config_of(&marked(scene, &shell))).start().await.unwrap()
}

/// The configuration of a server of shell that bears the scene's mark and may run out of time.
fn marked(scene: &Scene, shell: &Shell<'_>) -> Value {
    let mut file = shell.file();
    let server = &mut file["servers"]["sh"];
    server["env"][Nonce::VARIABLE] = json!(scene.nonce().as_str());
    server["unavailableAfterTimeouts"] = json!(1000);
    server["shutdownTimeout"] = json!(0.5);
    file
}

/// A result of the server of shell as a value.
fn value(result: &ToolResult) -> Value {
    serde_json::from_str(result.raw().get()).unwrap()
}
