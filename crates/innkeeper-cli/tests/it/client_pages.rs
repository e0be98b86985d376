//! The configurations of `docs/clients.md`, each used as its client uses it.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::Stdio;

use innkeeper_testkit::{fixture, mcp_json, shell_blocks};
use serde_json::{Value, json};

use crate::program::innkeeper;
use crate::serve::HttpGateway;

/// The key that stands for `YOUR-KEY`.
const KEY: &str = "key-of-a-client-0123456789abcdef01234";

/// How the clients write the variable with the key.
const KEY_REFERENCES: [&str; 4] =
    ["${INNKEEPER_KEY}", "${env:INNKEEPER_KEY}", "${input:innkeeper-key}", "$INNKEEPER_KEY"];

/// A block of the page with real values in place of the examples.
fn blocks(kind: &str, config: &Path, address: &str) -> Vec<(String, Value)> {
    let blocks = shell_blocks(kind).into_iter();
    let blocks = blocks.filter(|block| block.location.starts_with("docs/clients.md:"));
    let replace = |text: &str| {
        text.replace("/home/me/mcp.json", config.to_str().unwrap())
            .replace("127.0.0.1:7300", address)
            .replace("YOUR-KEY", KEY)
    };
    let parse = |text: &str| match kind {
        "toml" => toml::from_str(text).unwrap(),
        _ => serde_json::from_str(text).unwrap(),
    };
    blocks.map(|block| (block.location, parse(&replace(&block.text)))).collect()
}

/// Returns the entry of the server in the file of a client.
fn entry(file: &Value) -> Option<&Value> {
    let mut servers = ["mcpServers", "servers", "mcp_servers"].iter().map(|key| &file[*key]);
    servers.find(|servers| servers.is_object()).map(|servers| &servers["innkeeper"])
}

/// Runs the command of an entry, and returns the names of its tools.
fn tools_over_stdio(directory: &Path, entry: &Value) -> Vec<String> {
    let command = entry["command"].as_str().unwrap();
    assert_eq!(Path::new(command).file_name().unwrap(), "innkeeper");
    let args: Vec<&str> =
        entry["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
    let environment: BTreeMap<String, String> =
        serde_json::from_value(entry.get("env").cloned().unwrap_or(json!({}))).unwrap();
    let mut child = innkeeper(&args, directory)
        .envs(environment)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut exchange = |message: &Value| -> Value {
        writeln!(stdin, "{message}").unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"))
    };
    exchange(&crate::serve::initialize());
    let list = exchange(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }));
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let tools = list["result"]["tools"].as_array().unwrap_or_else(|| panic!("{list}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Returns the header of an entry of a server over HTTP with the key in place of its variable.
fn header(entry: &Value) -> String {
    if entry["bearer_token_env_var"] == "INNKEEPER_KEY" {
        return format!("authorization: Bearer {KEY}");
    }
    let headers = entry["headers"].as_object().unwrap();
    let (name, value) = headers.iter().next().unwrap();
    let value = value.as_str().unwrap();
    let value = KEY_REFERENCES.iter().fold(value.to_owned(), |value, key| value.replace(key, KEY));
    assert!(value.ends_with(KEY), "{value}");
    format!("{name}: {value}")
}

#[test]
fn every_configuration_of_the_page_of_clients_reaches_the_tools() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("mcp.json");
    let mut file = mcp_json([fixture("a")]);
    let page = blocks("json", &config, "127.0.0.1:7300");
    let (_, settings) = page.iter().find(|(_, block)| block.get("serve").is_some()).unwrap();
    file["serve"] = settings["serve"].clone();
    // The variable is for every program that reads the file.
    std::fs::write(&config, file.to_string()).unwrap();
    std::fs::write(directory.path().join(".env"), format!("INNKEEPER_KEY={KEY}\n")).unwrap();
    let args = ["serve", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
    let gateway = HttpGateway::start(&mut innkeeper(&args, directory.path()));
    let mut entries = [0, 0];
    for kind in ["json", "toml"] {
        for (location, block) in blocks(kind, &config, &gateway.address) {
            let Some(entry) = entry(&block) else { continue };
            if entry.get("command").is_some() {
                entries[0] += 1;
                let tools = tools_over_stdio(directory.path(), entry);
                assert!(tools.iter().any(|tool| tool == "echo"), "{location}: {tools:?}");
                continue;
            }
            entries[1] += 1;
            let url = entry.get("url").or_else(|| entry.get("httpUrl")).unwrap();
            assert_eq!(*url, format!("http://{}/mcp", gateway.address), "{location}");
            let (head, body) = gateway.initialize(&format!("\r\n{}", header(entry)));
            assert!(head.starts_with("HTTP/1.1 200"), "{location}: {head}\n{body}");
        }
    }
    // Claude Desktop has a second command in place of a server over HTTP.
    assert_eq!(entries, [7, 5]);
    let (head, _) = gateway.initialize("");
    assert!(head.starts_with("HTTP/1.1 401"), "without the header: {head}");
    gateway.terminate();
}
