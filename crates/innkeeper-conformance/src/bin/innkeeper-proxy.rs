//! An MCP proxy: the host in front of one stdio server, for a benchmark of defences.
//!
//! The proxy supports the handshake, `tools/list` and `tools/call` on stdin and stdout, one request
//! at a time, as the benchmark requires. The host does everything else: the proxy does not list an
//! excluded tool, returns a blocked call as an error, and prints flagged content on stderr in a
//! line that starts with `flagged:`. The proxy itself inspects nothing. `--guard MODE` before the
//! program sets the `guard` of the configuration. A second `tools/list` request makes the host
//! refresh the list.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::time::Duration;

use innkeeper_host::{CallError, Config, Environment, Host, HostEvent, ToolResult};
use serde_json::{Value, json};
use tokio::sync::broadcast::Receiver;

/// The name of the server in the host, which the client never sees.
const SERVER_NAME: &str = "behind";

/// The protocol version between the benchmark and the proxy.
const PROTOCOL_VERSION: &str = "2025-11-25";

/// Timeout of a list refresh.
const LIST_REFRESH_TIMEOUT: Duration = Duration::from_secs(10);

const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

type BoxError = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_stderr(&format!("innkeeper-proxy: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Prints a line on stderr; a closed stderr is not an error.
fn print_stderr(words: &str) {
    drop(writeln!(io::stderr(), "{words}"));
}

async fn run() -> Result<(), BoxError> {
    let mut command = std::env::args().skip(1);
    let mut host = json!({});
    let mut first = command.next();
    if first.as_deref() == Some("--guard") {
        host["guard"] = json!(command.next());
        first = command.next();
    }
    let program = first.ok_or("usage: innkeeper-proxy [--guard MODE] PROGRAM [ARGUMENT …]")?;
    let arguments: Vec<String> = command.collect();
    let servers = json!({ SERVER_NAME: { "command": program, "args": arguments } });
    let file = json!({ "host": host, "servers": servers });
    let config = Config::from_value(&file, "front", ".".as_ref(), &Environment::from_process())?;
    let builder = Host::builder(config).environment(Environment::from_process());
    let mut events = builder.events();
    let host = builder.start().await?;
    let served = serve(&host, &mut events).await;
    host.shutdown().await;
    served
}

async fn serve(host: &Host, events: &mut Receiver<HostEvent>) -> Result<(), BoxError> {
    let mut listed = false;
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let Some(id) = message.get("id").filter(|_| message.get("method").is_some()) else {
            continue;
        };
        let method = message["method"].as_str().unwrap_or_default();
        if method == "tools/list" && std::mem::replace(&mut listed, true) {
            host.refresh_server(SERVER_NAME);
            // After a failed refresh the proxy returns the previous list.
            drop(tokio::time::timeout(LIST_REFRESH_TIMEOUT, wait_catalog_changed(events)).await);
        }
        let answer = match respond(host, method, &message["params"]).await {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err((code, text)) => {
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": text } })
            }
        };
        report_pending_events(events);
        writeln!(io::stdout(), "{answer}")?;
        io::stdout().flush()?;
    }
    Ok(())
}

async fn respond(host: &Host, method: &str, params: &Value) -> Result<Value, (i64, String)> {
    match method {
        "initialize" => Ok(json!({
            "protocolVersion": PROTOCOL_VERSION,
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "innkeeper-proxy", "version": env!("CARGO_PKG_VERSION") },
        })),
        "ping" => Ok(json!({})),
        "tools/list" => {
            let catalog = host.catalog();
            let offer = catalog.server(SERVER_NAME).and_then(|server| server.listing());
            Ok(json!({ "tools": offer.map(|offer| &offer.tools) }))
        }
        "tools/call" => {
            let name = format!("{SERVER_NAME}.{}", params["name"].as_str().unwrap_or_default());
            let called = host.call_tool(&name, params["arguments"].clone()).await;
            let failed = |error: CallError| (INVALID_PARAMS, error.to_string());
            let written = |result: ToolResult| serde_json::from_str(result.raw().get());
            called
                .map(written)
                .map_err(failed)?
                .map_err(|error| (INVALID_PARAMS, error.to_string()))
        }
        other => Err((METHOD_NOT_FOUND, format!("unknown method `{other}`"))),
    }
}

/// Waits until the host has refreshed the lists.
async fn wait_catalog_changed(events: &mut Receiver<HostEvent>) {
    while let Ok(event) = events.recv().await {
        if matches!(event, HostEvent::CatalogChanged { .. }) {
            return;
        }
        report_event(&event);
    }
}

/// Prints the content that the host has flagged since the previous call.
fn report_pending_events(events: &mut Receiver<HostEvent>) {
    while let Ok(event) = events.try_recv() {
        report_event(&event);
    }
}

fn report_event(event: &HostEvent) {
    match event {
        HostEvent::SecurityWarning { reason, .. } => print_stderr(&format!("flagged: {reason}")),
        HostEvent::Quarantined { subject: what, reason, .. } => {
            print_stderr(&format!("flagged: {what}: {reason}"));
        }
        HostEvent::GuardFinding { finding, .. } => print_stderr(&format!("flagged: {finding}")),
        _ => {}
    }
}
