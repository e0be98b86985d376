//! A client of the connection service, written from its specification alone, uses the program.

use std::path::Path;
use std::process::Stdio;

use innkeeper_testkit::{RedisServer, fixture, mcp_json};

use crate::program::innkeeper;
use crate::published_clients::{command, directory, script};
use crate::serve::HttpGateway;

/// Serves a server that changes its tools, and runs the checks of the client.
fn check_with_store(store: &str) {
    let directory = directory(&mcp_json([fixture("a").switch("--list-changed")]));
    let gateway = serve_with_store(directory.path(), store);
    let mut client = command("python3");
    client.arg(script("connection_service.py")).arg(&gateway.address);
    let output = client.stdin(Stdio::null()).output().unwrap();
    let [stdout, stderr] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{stdout}{stderr}");
    assert_eq!(gateway.terminate(), Some(143));
}

fn serve_with_store(directory: &Path, store: &str) -> HttpGateway {
    let listen = ["--listen", "127.0.0.1:0"];
    let args = [&["serve", "--config", "mcp.json", "--store", store], &listen[..]].concat();
    HttpGateway::start(&mut innkeeper(&args, directory))
}

/// Proves: B8, B34, B38
#[test]
fn a_client_of_the_specification_finds_the_whole_service_with_connections_in_memory() {
    check_with_store("memory");
}

/// Proves: B9, B37, B45
#[test]
fn a_client_of_the_specification_finds_the_whole_service_with_connections_in_redis() {
    let redis = RedisServer::start(&[]);
    check_with_store(&redis.url());
}
