//! Hosts an MCP server in the process of the application and calls its tool.
//!
//! `cargo run --example server_in_process -- NAME`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use innkeeper::{Config, Host};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex, split};

const USAGE: &str = "usage: server_in_process NAME";

/// The size of the buffer between host and server in bytes, in each direction.
const STREAM_BYTES: usize = 64 << 10;

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::disallowed_methods, reason = "an application spawns its own tasks")]
async fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).ok_or(USAGE)?;
    let (stream, server_stream) = duplex(STREAM_BYTES);
    let server = tokio::spawn(serve(server_stream));

    let host = Host::builder(Config::default()).connect("greeter", stream).start().await?;
    for (server, status) in host.status() {
        println!("`{server}` is {:?}, process id {:?}", status.state, status.pid);
    }
    let result = host.call_tool("greeter.greet", json!({"name": name})).await?;
    println!("{}", result.structured_content::<String>()?);

    host.shutdown().await;
    // The host has closed the stream, so the server ends.
    server.await??;
    println!("the server has ended");
    Ok(())
}

/// Answers each request until the host closes the stream.
async fn serve(stream: DuplexStream) -> std::io::Result<()> {
    let (reader, mut writer) = split(stream);
    let mut lines = BufReader::new(reader).lines();
    while let Some(line) = lines.next_line().await? {
        let message: Value = serde_json::from_str(&line)?;
        // A notification has no id and gets no response.
        let Some(id) = message.get("id") else { continue };
        let response = match respond(&message) {
            Some(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            None => {
                let error = json!({"code": -32601, "message": "method not found"});
                json!({"jsonrpc": "2.0", "id": id, "error": error})
            }
        };
        writer.write_all(format!("{response}\n").as_bytes()).await?;
    }
    Ok(())
}

fn respond(request: &Value) -> Option<Value> {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    match request["method"].as_str()? {
        "initialize" => Some(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "greeter", "version": "1.0.0"},
        })),
        "tools/list" => Some(json!({"tools": [{"name": "greet", "inputSchema": schema}]})),
        "tools/call" => {
            let name = request["params"]["arguments"]["name"].as_str()?;
            Some(json!({"content": [], "structuredContent": format!("Hello, {name}.")}))
        }
        _ => None,
    }
}
