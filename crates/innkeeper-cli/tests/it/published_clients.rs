//! Published MCP clients use the program as their server.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use innkeeper_testkit::{fixture, mcp_json};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::real_servers::install_dir;
use crate::serve::serve_in;

/// A resource of the fixture server.
const RESOURCE: &str = "fx://a/item/7";

/// A directory with the configuration of two servers of the legacy era: a published server that uses
/// every feature, and a server that changes its tools.
fn servers() -> TempDir {
    let package = "npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js";
    let everything = json!({ "command": "node", "args": [install_dir().join(package)] });
    let mut file =
        json!({ "host": { "initTimeout": 60 }, "servers": { "everything": everything } });
    file["servers"]["a"] = fixture("a").switch("--list-changed").config_entry();
    directory(&file)
}

pub(crate) fn directory(file: &Value) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("mcp.json"), file.to_string()).unwrap();
    directory
}

/// The arguments after the name of the program that serve a configuration over a pipe.
fn stdio_args(directory: &Path) -> [String; 4] {
    let config = directory.join("mcp.json").display().to_string();
    ["serve".to_owned(), "--stdio".to_owned(), "--config".to_owned(), config]
}

#[expect(clippy::disallowed_methods, reason = "the programs are found where the tests find them")]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// Runs a client and returns the JSON that it prints.
fn run_client(command: &mut Command) -> Value {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let last_line = stdout.lines().last().unwrap_or_default();
    let json = serde_json::from_str(&stdout).or_else(|_| serde_json::from_str(last_line));
    json.unwrap_or_else(|_| panic!("{stdout}{}", String::from_utf8_lossy(&output.stderr)))
}

/// Runs a script with a client over stdio and returns what the client saw.
fn over_stdio(mut client: Command) -> Value {
    let directory = servers();
    client.arg(env!("CARGO_BIN_EXE_innkeeper")).args(stdio_args(directory.path()));
    run_client(&mut client)
}

/// Runs a script with a client over HTTP and returns what the client saw.
fn over_http(client: Command) -> Value {
    over_http_at("mcp", client)
}

/// Returns what a client prints that uses the gateway at a path.
fn over_http_at(path: &str, mut client: Command) -> Value {
    let directory = servers();
    let gateway = serve_in(directory.path());
    let seen = run_client(client.arg(format!("http://{}/{path}", gateway.address)));
    assert_eq!(gateway.terminate(), Some(143));
    seen
}

pub(crate) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/clients").join(name)
}

fn typescript_client(package: &str, era: &str) -> Command {
    let package = install_dir().join(package);
    let mut command = command("node");
    command.arg(script("sdk.mjs")).arg(package).arg(era);
    command
}

fn python_client(environment: &str, name: &str) -> Command {
    let mut command = command(install_dir().join(environment).join("bin/python"));
    command.arg(script(name));
    command
}

/// What a client sees that uses every feature.
fn every_feature() -> Value {
    json!({
        "asked": 1, "sampled": 1, "tools": 28, "echo": "Echo: hi", "sample": true,
        "progressed": true, "aborted": true, "read": true, "prompt": true, "grown": 1,
    })
}

/// Proves: B47, B48
#[test]
fn the_official_typescript_client_1_uses_every_feature_over_stdio_http_and_sse() {
    let client = || typescript_client("npm/node_modules/@modelcontextprotocol/sdk", "legacy");
    assert_eq!(over_stdio(client()), every_feature());
    assert_eq!(over_http(client()), every_feature());
    assert_eq!(over_http_at("sse", client()), every_feature());
}

#[test]
fn the_official_typescript_client_2_uses_every_feature_in_both_eras() {
    let client = |era| typescript_client("clients/node_modules/@modelcontextprotocol/client", era);
    assert_eq!(over_http(client("legacy")), every_feature());
    assert_eq!(over_http(client("modern")), every_feature());
    assert_eq!(over_stdio(client("modern")), every_feature());
}

#[test]
fn the_official_python_client_of_the_modern_era_uses_a_legacy_server() {
    assert_eq!(
        over_http(python_client("venv", "modern.py")),
        json!({ "revision": "2026-07-28", "tools": 28, "echo": "Echo: hi", "read": true })
    );
}

#[test]
fn the_fastmcp_client_uses_every_feature_in_both_eras() {
    let client = |era| {
        let mut command = python_client("clients-venv", "fastmcp_client.py");
        command.arg(era);
        command
    };
    assert_eq!(over_http(client("legacy")), every_feature());
    let mut expected = every_feature();
    // This client does not subscribe to changed lists in the modern era.
    expected.as_object_mut().unwrap().remove("grown");
    assert_eq!(over_stdio(client("auto")), expected);
}

/// Returns a program of the clients from npm, whose own files are in the directory.
fn npm_program(name: &str, directory: &Path) -> Command {
    let mut command = command(install_dir().join("clients/node_modules/.bin").join(name));
    command.env("HOME", directory);
    command
}

#[test]
fn the_inspector_lists_calls_and_reads_in_both_eras() {
    let directory = directory(&mcp_json([fixture("a")]));
    let home = tempfile::tempdir().unwrap();
    let gateway = serve_in(directory.path());
    let url = format!("http://{}/mcp", gateway.address);
    let inspector = |args: &[&str]| {
        let mut command = npm_program("mcp-inspector", home.path());
        command.args(["--cli", "--format", "json", "--quiet"]).args(args);
        run_client(&mut command)["result"].take()
    };
    for era in ["legacy", "modern"] {
        let over_http = ["--server-url", &url, "--transport", "http", "--protocol-era", era];
        let run = |args: &[&str]| inspector(&[&over_http, args].concat());
        let tools = run(&["--method", "tools/list"]);
        assert_eq!(tools["tools"][0]["name"], "a.echo", "{era}");
        let call = ["--method", "tools/call", "--tool-name", "a.echo", "--tool-arg", "message=hi"];
        assert_eq!(run(&call)["content"][0]["text"], "hi", "{era}");
        let contents = run(&["--method", "resources/read", "--uri", RESOURCE]);
        assert_eq!(contents["contents"][0]["text"], "a: item 7", "{era}");
    }
    gateway.terminate();
    let server =
        json!({ "command": env!("CARGO_BIN_EXE_innkeeper"), "args": stdio_args(directory.path()) });
    let servers = home.path().join("servers.json");
    std::fs::write(&servers, json!({ "mcpServers": { "all": server } }).to_string()).unwrap();
    let servers = servers.display().to_string();
    let call = ["--method", "tools/call", "--tool-name", "a.echo", "--tool-arg", "message=hi"];
    let result = inspector(&[&["--config", &servers, "--server", "all"], &call[..]].concat());
    assert_eq!(result["content"][0]["text"], "hi");
}

#[test]
fn mcporter_lists_calls_and_reads_over_stdio_and_http() {
    let directory = directory(&mcp_json([fixture("a")]));
    let home = tempfile::tempdir().unwrap();
    let gateway = serve_in(directory.path());
    let servers = json!({ "mcpServers": {
        "http": { "url": format!("http://{}/mcp", gateway.address) },
        "stdio": { "command": env!("CARGO_BIN_EXE_innkeeper"), "args": stdio_args(directory.path()) },
    }});
    let config = home.path().join("mcporter.json");
    std::fs::write(&config, servers.to_string()).unwrap();
    let run = |args: &[&str]| {
        let mut command = npm_program("mcporter", home.path());
        command.arg("--config").arg(&config).args(args).current_dir(home.path());
        run_client(&mut command)
    };
    for server in ["http", "stdio"] {
        let listed = run(&["list", server, "--json"]);
        assert_eq!(listed["tools"][0]["name"], "a.echo", "{server}: {listed}");
        let called = run(&[
            "call",
            "--server",
            server,
            "--tool",
            "a.echo",
            "message=hi",
            "--output",
            "json",
        ]);
        assert_eq!(called["content"][0]["text"], "hi", "{server}: {called}");
        let read = run(&["resource", server, RESOURCE, "--json"]);
        assert_eq!(read["contents"][0]["text"], "a: item 7", "{server}: {read}");
    }
    gateway.terminate();
}
