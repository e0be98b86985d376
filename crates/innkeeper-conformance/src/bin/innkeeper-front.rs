//! Our host in front of one stdio server, for a bench of defences that compares the two.
//!
//! Speaks MCP on its own input and output as far as the bench does: the handshake, `tools/list` and
//! `tools/call`, one request after the other. Everything else is the host's: what it leaves out is
//! not listed, what it refuses is an error, and what it flags is a line on stderr that begins with
//! `flagged:`. Nothing here looks at what is passed through. `--guard MODE` before the program sets the
//! `guard` of the configuration. Whoever lists the tools again has the host read them again.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::time::Duration;

use innkeeper_host::{CallError, Config, Environment, Event, Host, ToolResult};
use serde_json::{Value, json};
use tokio::sync::broadcast::Receiver;

/// The name the server has here; nobody outside sees it.
const SERVER: &str = "behind";

/// The revision spoken with the bench.
const REVISION: &str = "2025-11-25";

/// How long reading the tools again may take.
const READING: Duration = Duration::from_secs(10);

const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

type Failed = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("innkeeper-front: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Nobody may read it.
fn say(words: &str) {
    drop(writeln!(io::stderr(), "{words}"));
}

async fn run() -> Result<(), Failed> {
    let mut command = std::env::args().skip(1);
    let mut host = json!({});
    let mut first = command.next();
    if first.as_deref() == Some("--guard") {
        host["guard"] = json!(command.next());
        first = command.next();
    }
    let program = first.ok_or("usage: innkeeper-front [--guard MODE] PROGRAM [ARGUMENT …]")?;
    let arguments: Vec<String> = command.collect();
    let servers = json!({ SERVER: { "command": program, "args": arguments } });
    let file = json!({ "host": host, "servers": servers });
    let config = Config::from_value(&file, "front", ".".as_ref(), &Environment::of_process())?;
    let builder = Host::builder(config).environment(Environment::of_process());
    let mut events = builder.events();
    let host = builder.start().await?;
    let served = serve(&host, &mut events).await;
    host.shutdown().await;
    served
}

async fn serve(host: &Host, events: &mut Receiver<Event>) -> Result<(), Failed> {
    let mut listed = false;
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let Some(id) = message.get("id").filter(|_| message.get("method").is_some()) else {
            continue;
        };
        let method = message["method"].as_str().unwrap_or_default();
        if method == "tools/list" && std::mem::replace(&mut listed, true) {
            host.refresh_server(SERVER);
            // One that cannot be read again is shown as it was.
            drop(tokio::time::timeout(READING, changed(events)).await);
        }
        let answer = match answer(host, method, &message["params"]).await {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err((code, text)) => {
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": text } })
            }
        };
        tell(events);
        writeln!(io::stdout(), "{answer}")?;
        io::stdout().flush()?;
    }
    Ok(())
}

async fn answer(host: &Host, method: &str, params: &Value) -> Result<Value, (i64, String)> {
    match method {
        "initialize" => Ok(json!({
            "protocolVersion": REVISION,
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "innkeeper-front", "version": env!("CARGO_PKG_VERSION") },
        })),
        "ping" => Ok(json!({})),
        "tools/list" => {
            let catalog = host.catalog();
            let offer = catalog.server(SERVER).and_then(|server| server.offer());
            Ok(json!({ "tools": offer.map(|offer| &offer.tools) }))
        }
        "tools/call" => {
            let name = format!("{SERVER}.{}", params["name"].as_str().unwrap_or_default());
            let called = host.call_tool(&name, params["arguments"].clone()).await;
            let failed = |error: CallError| (INVALID_PARAMS, error.to_string());
            let written = |result: ToolResult| serde_json::from_str(result.raw().get());
            called
                .map(written)
                .map_err(failed)?
                .map_err(|error| (INVALID_PARAMS, error.to_string()))
        }
        other => Err((METHOD_NOT_FOUND, format!("`{other}` is not known here"))),
    }
}

/// Resolves when the lists were read again.
async fn changed(events: &mut Receiver<Event>) {
    while let Ok(event) = events.recv().await {
        if matches!(event, Event::CatalogChanged { .. }) {
            return;
        }
        told(&event);
    }
}

/// What the host flagged since the last time.
fn tell(events: &mut Receiver<Event>) {
    while let Ok(event) = events.try_recv() {
        told(&event);
    }
}

fn told(event: &Event) {
    match event {
        Event::Doubtful { reason, .. } => say(&format!("flagged: {reason}")),
        Event::Quarantined { what, reason, .. } => say(&format!("flagged: {what}: {reason}")),
        Event::Suspicious { finding, .. } => say(&format!("flagged: {finding}")),
        _ => {}
    }
}
