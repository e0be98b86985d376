//! An MCP server of one era on stdio, with everything that the official conformance suite calls.
//!
//! The suite tests the gateway in front of this server. A server of the legacy era requests input
//! from its client in the middle of a call; a server of the modern era returns `input_required`.
//! Messages are raw JSON, so that the server shares no code with the gateway.

mod call;
mod input;
mod items;
mod message;
mod peer;
mod prompts;
mod resources;
mod server;
mod state;
mod tools;

use std::io::Write;
use std::process::ExitCode;

use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};

use message::Era;
use server::Server;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let era = match words[..] {
        ["--era", "legacy"] => Era::Legacy,
        ["--era", "modern"] => Era::Modern,
        _ => return exit_with_error("usage: innkeeper-conformance-server --era legacy|modern"),
    };
    let lines = BufReader::new(tokio::io::stdin()).lines();
    match serve(&Server::new(era), lines).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit_with_error(&error.to_string()),
    }
}

fn exit_with_error(problem: &str) -> ExitCode {
    // A closed stderr is not an error; the exit code also reports the failure.
    drop(writeln!(std::io::stderr(), "innkeeper-conformance-server: {problem}"));
    ExitCode::FAILURE
}

/// Handles the messages on stdin until its end, the requests concurrently.
async fn serve(server: &Server, mut lines: Lines<BufReader<Stdin>>) -> std::io::Result<()> {
    let mut requests: FuturesUnordered<LocalBoxFuture<'_, ()>> = FuturesUnordered::new();
    loop {
        let line = tokio::select! {
            line = lines.next_line() => line?,
            Some(()) = requests.next() => continue,
        };
        let Some(line) = line else { return Ok(()) };
        let message: Value = serde_json::from_str(&line)?;
        if let Some(request) = server.receive(message) {
            requests.push(Box::pin(server.respond(request)));
        }
    }
}
