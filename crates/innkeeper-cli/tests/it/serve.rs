//! Tests of `serve`: the program as an MCP server for clients.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use innkeeper_testkit::{
    Fixture, ProcessTag, RedisServer, fixture, mcp_json, tagged_processes, wait_gone,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::program::innkeeper;
use crate::real_servers::install_dir;

/// A directory with the configuration of fixture servers.
struct TestEnv {
    directory: TempDir,
    process_tag: ProcessTag,
}

impl TestEnv {
    fn new(server: Fixture, serve: &Value) -> Self {
        let (directory, process_tag) = (tempfile::tempdir().unwrap(), ProcessTag::new());
        let mut file = mcp_json([server.process_tag(&process_tag)]);
        if !serve.is_null() {
            file["serve"] = serve.clone();
        }
        std::fs::write(directory.path().join("mcp.json"), file.to_string()).unwrap();
        Self { directory, process_tag }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn run(&self, args: &[&str]) -> Output {
        let args = [&["serve", "--config", "mcp.json"], args].concat();
        innkeeper(&args, self.path()).stdin(Stdio::null()).output().unwrap()
    }

    /// Starts the program on a free port.
    fn serve(&self) -> HttpGateway {
        serve_in(self.path())
    }
}

/// Starts the program with the configuration of a directory on a free port.
pub(crate) fn serve_in(directory: &Path) -> HttpGateway {
    let args = ["serve", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
    HttpGateway::start(&mut innkeeper(&args, directory))
}

/// Keys of two principals.
pub(crate) const ADA_KEY: &str = "key-of-ada-0123456789abcdef0123456789";
const BOB_KEY: &str = "key-of-bob-0123456789abcdef0123456789";

/// A running program that serves HTTP.
pub(crate) struct HttpGateway {
    child: Child,
    pub(crate) address: String,
    /// What the program says that it serves.
    servers: String,
    /// Open until the end, so that the program can write.
    _stderr: BufReader<std::process::ChildStderr>,
}

impl HttpGateway {
    /// Runs a command that serves HTTP.
    pub(crate) fn start(command: &mut std::process::Command) -> Self {
        command.env("PATH", std::env::var_os("PATH").unwrap());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("serving ") {
            line.clear();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "the program ended");
        }
        let served = line.trim().strip_prefix("serving ").unwrap();
        let (servers, address) = served.split_once(" on ").unwrap();
        let address = address.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
        Self { child, address, servers: servers.to_owned(), _stderr: stderr }
    }

    /// Sends a request and returns the head and the body of the response.
    pub(crate) fn send(&self, head: &str, body: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let length = body.len();
        write!(stream, "{head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
            .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    pub(crate) fn get(&self, path: &str) -> (String, String) {
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: {}", self.address), "")
    }

    /// Sends `initialize` with further headers.
    pub(crate) fn initialize(&self, headers: &str) -> (String, String) {
        self.post("/mcp", headers, &initialize())
    }

    /// Sends a message with further headers.
    pub(crate) fn post(&self, path: &str, headers: &str, message: &Value) -> (String, String) {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream{headers}",
            self.address
        );
        self.send(&head, &message.to_string())
    }

    /// Calls a tool without a session and returns the text of its result.
    fn call(&self, key: &str, name: &str, arguments: &Value) -> String {
        let stream = TcpStream::connect(&self.address).unwrap();
        call_on(stream, key, (name, arguments))
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Sends SIGTERM.
    pub(crate) fn start_termination(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    /// Kills the program without a warning, and waits for its end.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for the end and returns the exit code.
    pub(crate) fn wait(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Sends SIGTERM and returns the exit code.
    pub(crate) fn terminate(self) -> Option<i32> {
        self.start_termination();
        self.wait()
    }
}

/// Calls a tool without a session on a new connection, and returns the text of its result.
pub(crate) fn call_on(
    mut stream: impl Read + Write,
    key: &str,
    (name, arguments): (&str, &Value),
) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    let params = json!({ "name": name, "arguments": arguments, "_meta": meta });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let message = message.to_string();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nauthorization: Bearer {key}\r\n\
         mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {name}\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{message}",
        message.len()
    )
    .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let body = response.split_once("\r\n\r\n").map(|(_, body)| body);
    let body: Value = body
        .and_then(|body| serde_json::from_str(body).ok())
        .unwrap_or_else(|| panic!("{response:?}"));
    body["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{body}")).into()
}

pub(crate) fn initialize() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    }})
}

fn stderr_of(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn start_on_stdio(test_env: &TestEnv) -> Child {
    let args = ["serve", "--stdio", "--config", "mcp.json", "--names", "flat"];
    let mut program = innkeeper(&args, test_env.path());
    program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

/// Proves: B-b1
#[test]
fn a_client_on_stdin_and_stdout_is_served_until_it_closes_its_output() {
    let test_env = TestEnv::new(fixture("a"), &Value::Null);
    let mut child = start_on_stdio(&test_env);
    let mut stdin = child.stdin.take().unwrap();
    let call = json!({ "jsonrpc": "2.0", "id": "last", "method": "tools/call",
        "params": { "name": "echo", "arguments": { "message": "hi" } } });
    for message in [initialize(), call] {
        writeln!(stdin, "{message}").unwrap();
    }
    // The responses arrive although the input has ended.
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(lines[0]["result"]["serverInfo"]["name"], "innkeeper");
    assert_eq!(lines[1]["result"]["content"][0]["text"], "hi");
    wait_gone(&test_env.process_tag, Duration::from_secs(1)).unwrap();
}

/// Attack: processes | SIGTERM while a call over stdio runs, and a further call after the signal | the
/// running call gets its result, the further call an error, and no process remains | No orphan
#[test]
fn a_call_in_flight_over_stdio_gets_its_result_after_sigterm() {
    let test_env = TestEnv::new(fixture("a"), &Value::Null);
    let mut child = start_on_stdio(&test_env);
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let call = |id: &str, tool: &str, arguments: Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": tool, "arguments": arguments } })
    };
    writeln!(stdin, "{}", initialize()).unwrap();
    assert_eq!(next()["result"]["serverInfo"]["name"], "innkeeper");
    writeln!(stdin, "{}", call("slow", "sleep", json!({ "ms": 2_000 }))).unwrap();
    // A response to a later request: the gateway has read the call.
    writeln!(stdin, "{}", call("before", "echo", json!({ "message": "hi" }))).unwrap();
    assert_eq!(next()["id"], "before");
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&child),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    // Requests are accepted until the program handles the signal.
    let refused = loop {
        writeln!(stdin, "{}", json!({ "jsonrpc": "2.0", "id": "after", "method": "ping" }))
            .unwrap();
        let response = next();
        assert_eq!(response["id"], "after", "the slow call is still in flight");
        if !response["error"].is_null() {
            break response;
        }
    };
    assert_eq!(refused["error"]["message"], "the gateway is closing");
    let response = next();
    assert_eq!(
        (&response["id"], &response["result"]["content"][0]["text"]),
        (&json!("slow"), &json!("slept"))
    );
    // The client keeps its end of stdin open, and the exit does not take the drain time of 10 s.
    let answered = Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert!(answered.elapsed() < Duration::from_secs(6), "{:?}", answered.elapsed());
    wait_gone(&test_env.process_tag, Duration::from_secs(1)).unwrap();
    drop(stdin);
}

#[test]
fn a_gateway_over_http_is_ready_and_ends_without_a_process_on_sigterm() {
    let test_env = TestEnv::new(fixture("a"), &Value::Null);
    let gateway = test_env.serve();
    assert!(gateway.get("/healthz").0.starts_with("HTTP/1.1 200"));
    assert!(gateway.get("/readyz").0.starts_with("HTTP/1.1 200"));
    let (head, body) = gateway.initialize("");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}\n{body}");
    assert!(head.contains("mcp-session-id: "), "{head}");
    assert_eq!(gateway.terminate(), Some(143));
    wait_gone(&test_env.process_tag, Duration::from_secs(1)).unwrap();
}

/// Attack: remote | a web page on another name of the address, a page of another origin, and a client
/// without a key | each request is rejected before its body counts | Secrets stay with their owner
/// Proves: B49
#[test]
fn a_gateway_rejects_foreign_hosts_and_origins_and_clients_without_a_key() {
    let key = "0123456789abcdef0123456789abcdef";
    let serve = json!({ "auth": { "apiKeys": [{ "principal": "ci", "key": "${SERVE_KEY}" }] } });
    let test_env = TestEnv::new(fixture("a"), &serve);
    std::fs::write(test_env.path().join("empty"), "").unwrap();
    let args = ["serve", "--config", "mcp.json", "--print-config"];
    let unset = innkeeper(&args, test_env.path()).stdin(Stdio::null()).output().unwrap();
    assert_eq!(unset.status.code(), Some(2));
    assert!(stderr_of(&unset).contains("SERVE_KEY"), "{}", stderr_of(&unset));
    let shown = innkeeper(&args, test_env.path()).env("SERVE_KEY", key).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(!shown.contains(key), "{shown}");
    let open = TestEnv::new(fixture("a"), &Value::Null);
    let gateway = open.serve();
    let (head, body) = gateway.initialize("\r\norigin: https://evil.example");
    assert!(head.starts_with("HTTP/1.1 403"), "{head}\n{body}");
    let request = "GET /mcp HTTP/1.1\r\nhost: evil.example";
    let (head, body) = gateway.send(request, "");
    assert!(head.starts_with("HTTP/1.1 403") && body.contains("allowedHosts"), "{head}\n{body}");
    gateway.terminate();
}

#[test]
fn an_address_of_the_network_needs_authentication_or_two_permissions() {
    let test_env = TestEnv::new(fixture("a"), &Value::Null);
    let refused = test_env.run(&["--listen", "0.0.0.0:0"]);
    assert_eq!(refused.status.code(), Some(2));
    let stderr = stderr_of(&refused);
    assert!(stderr.contains("0.0.0.0:0") && stderr.contains("serve.auth"), "{stderr}");
    let once = test_env.run(&["--listen", "0.0.0.0:0", "--allow-unauthenticated"]);
    assert_eq!(once.status.code(), Some(2), "the configuration must permit it too");
}

#[test]
fn each_principal_has_its_own_process_of_a_private_server_and_none_is_left_at_the_end() {
    let keys =
        ["ada", "bob"].map(|name| json!({ "principal": name, "key": format!("${{{name}}}") }));
    let server = fixture("n").switch("--notes").config_key("share", "principal");
    let test_env = TestEnv::new(server, &json!({ "auth": { "apiKeys": keys } }));
    std::fs::write(test_env.path().join(".env"), format!("ada={ADA_KEY}\nbob={BOB_KEY}\n"))
        .unwrap();
    let gateway = test_env.serve();
    assert_eq!(gateway.servers, "1 server for each principal");
    assert_eq!(tagged_processes(&test_env.process_tag).len(), 0);
    gateway.call(ADA_KEY, "n.note", &json!({ "text": "canary" }));
    assert_eq!(gateway.call(ADA_KEY, "n.notes", &json!({})), r#"["canary"]"#);
    assert_eq!(gateway.call(BOB_KEY, "n.notes", &json!({})), "[]");
    assert_eq!(tagged_processes(&test_env.process_tag).len(), 2);
    gateway.terminate();
    wait_gone(&test_env.process_tag, Duration::from_secs(1)).unwrap();
}

#[test]
fn an_idle_server_of_a_gateway_stops_and_its_next_call_starts_it() {
    let server = fixture("n").switch("--notes").config_key("idleTimeout", 0.1);
    let test_env = TestEnv::new(server, &Value::Null);
    let gateway = test_env.serve();
    wait_gone(&test_env.process_tag, Duration::from_secs(10)).unwrap();
    assert!(gateway.get("/readyz").0.starts_with("HTTP/1.1 200"), "at rest it is ready");
    assert_eq!(gateway.call("", "n.notes", &json!({})), "[]");
    gateway.terminate();
}

#[test]
fn a_named_endpoint_offers_a_search_and_stores_large_results() {
    let endpoint = json!({
        "search": true, "pinned": ["*.echo"], "largeResults": { "bytes": "2 KiB", "ttl": 60 },
    });
    let serve = json!({ "endpoints": { "docs": endpoint } });
    let test_env = TestEnv::new(fixture("a"), &serve);
    let gateway = test_env.serve();
    let (head, body) = gateway.post("/mcp/docs", "", &initialize());
    let session = head.lines().find(|line| line.starts_with("mcp-session-id: "));
    let session = format!("\r\n{}", session.unwrap_or_else(|| panic!("{head}\n{body}")));
    let request = |method: &str, params: Value| -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": 2, "method": method, "params": params });
        let (head, body) = gateway.post("/mcp/docs", &session, &message);
        let json = body.split_once('{').map(|(_, rest)| format!("{{{rest}"));
        let json = json.unwrap_or_else(|| panic!("{head}\n{body}"));
        // The response is the only event, or the body.
        let mut values = serde_json::Deserializer::from_str(&json).into_iter();
        let response: Value = values.next().unwrap().unwrap();
        assert!(response.get("error").is_none(), "{response}");
        response["result"].clone()
    };
    let list = request("tools/list", json!({}));
    let names = list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone());
    assert_eq!(
        names.collect::<Vec<_>>(),
        [
            "search_tools",
            "describe_tools",
            "call_tool",
            "read_result",
            "search_result",
            "select_result",
            "a.echo",
        ]
    );
    let call = |name: &str, arguments: Value| {
        request("tools/call", json!({ "name": name, "arguments": arguments }))
    };
    let found = call("search_tools", json!({ "query": "add two numbers" }));
    assert!(found["content"][0]["text"].as_str().unwrap().contains("\"a.add\""), "{found}");
    let large = call("call_tool", json!({ "name": "a.big", "arguments": { "bytes": 50_000 } }));
    let uri = &large["content"][2]["uri"];
    let page = call("read_result", json!({ "uri": uri, "offset": 49_990 }));
    assert_eq!(page["content"][0]["text"], "x".repeat(10), "{page}");
    let whole = request("resources/read", json!({ "uri": uri }));
    assert_eq!(whole["contents"][0]["text"], "x".repeat(50_000));
    assert_eq!(gateway.terminate(), Some(143));
}

#[test]
fn an_address_in_use_is_an_error_with_the_address() {
    let test_env = TestEnv::new(fixture("a"), &Value::Null);
    let used = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = used.local_addr().unwrap().to_string();
    let refused = test_env.run(&["--listen", &address]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr_of(&refused).contains(&address), "{}", stderr_of(&refused));
}

/// The client has a key, so that the tester tries requests without the key too.
#[test]
fn a_tester_of_the_description_finds_no_difference_to_the_behaviour() {
    let node = json!({ "type": "object", "required": ["name"], "properties": {
        "name": { "type": "string", "maxLength": 5 },
        "children": { "type": "array", "items": { "$ref": "#/$defs/node" }, "maxItems": 2 },
    }});
    let tree = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object", "properties": { "root": { "$ref": "#/$defs/node" } },
        "required": ["root"], "additionalProperties": false, "$defs": { "node": node },
    });
    let choice = json!({ "type": "object", "required": ["kind"], "properties": {
        "kind": { "enum": ["a", "b"] }, "count": { "type": "integer", "minimum": 1, "maximum": 9 },
    }});
    let sum = json!({ "type": "object", "properties": { "sum": { "type": "number" } } });
    let tools = json!([
        { "name": "tree", "title": "Tree", "description": "Nested.", "inputSchema": tree },
        { "name": "choice", "inputSchema": choice },
        { "name": "with/slash", "inputSchema": { "type": "object" }, "outputSchema": sum },
    ]);
    let sha256 = "3eb1bd439947eb762998e566ccc2e099c791118b2f40579cc4f7da2b5061b7f9";
    let serve = json!({ "auth": { "apiKeys": [{ "principal": "ci", "sha256": sha256 }] } });
    let test_env = TestEnv::new(fixture("a").with("--tools", tools), &serve);
    let gateway = test_env.serve();
    let url = format!("http://{}", gateway.address);
    assert!(gateway.get("/openapi.json").0.starts_with("HTTP/1.1 401"));
    assert!(gateway.get("/metrics").0.starts_with("HTTP/1.1 401"));
    #[expect(clippy::disallowed_methods, reason = "the program is found where it is installed")]
    let mut tester =
        std::process::Command::new(install_dir().join("schemathesis/bin/schemathesis"));
    let output = tester
        .args(["run", &format!("{url}/openapi.json"), "--seed", "1", "--max-examples", "15"])
        .args(["--request-timeout", "10", "--no-color"])
        .args(["--header", "Authorization: Bearer 0123456789abcdef0123456789abcdef"])
        .current_dir(test_env.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{report}");
    assert!(report.contains("No issues found") && report.contains("Tested: 3"), "{report}");
    gateway.terminate();
}

/// Proves: B11, B12, B48
#[test]
fn the_connection_service_is_there_unless_a_variable_disables_it() {
    let test_env = TestEnv::new(fixture("a"), &Value::Null);
    let print = |name: &str, value: &str| {
        let args = ["serve", "--config", "mcp.json", "--print-config", "--names", "flat"];
        let output = innkeeper(&args, test_env.path()).env(name, value).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), output.stderr)
    };
    let (code, shown, _) = print("MCP_SERVER_NAME", "jobs");
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((code, &shown["options"]), (Some(0), &json!({ "names": "--names" })));
    let name = json!({ "value": "jobs", "source": "MCP_SERVER_NAME" });
    assert_eq!(shown["connections"]["serverName"], name);
    let redis = json!({ "value": "redis://localhost:6379/0", "source": "default" });
    assert_eq!(shown["connections"]["redisUrl"], redis);
    let (code, _, stderr) = print("MCP_CONNECTION_EXPIRY", "soon");
    let stderr = String::from_utf8(stderr).unwrap();
    assert_eq!(code, Some(2));
    assert!(stderr.contains("`MCP_CONNECTION_EXPIRY`"), "{stderr}");

    let gateway = test_env.serve();
    let header = gateway.open_connection();
    let (_, body) = gateway.call_over_connection(&header);
    assert!(body.contains("hi"), "{body}");
    gateway.terminate();

    let args = ["serve", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
    let mut disabled = innkeeper(&args, test_env.path());
    let gateway = HttpGateway::start(disabled.env("MCP_ENABLED", "no"));
    let (head, _) = gateway.post("/api/v1/mcp/initialize", "", &initialize_connection());
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
    gateway.terminate();
}

/// The body of `initialize` of the connection service.
fn initialize_connection() -> Value {
    json!({ "protocol_version": "1.0", "client": { "name": "test-client", "version": "1.0" },
        "capabilities": { "core.jsonrpc": { "version": "2.0" }, "core.transport.http": true,
            "tools": true } })
}

impl HttpGateway {
    /// Opens a connection of the connection service; returns the header of its requests.
    fn open_connection(&self) -> String {
        let (head, body) = self.post("/api/v1/mcp/initialize", "", &initialize_connection());
        assert!(head.starts_with("HTTP/1.1 200"), "{head}\n{body}");
        let id = head.lines().find_map(|line| line.strip_prefix("x-mcp-connection-id: "));
        let header = format!("\r\nx-mcp-connection-id: {}", id.unwrap());
        let (head, _) = self.post("/api/v1/mcp/initialized", &header, &json!({}));
        assert!(head.starts_with("HTTP/1.1 204"), "{head}");
        header
    }

    /// Opens the event stream of a connection.
    fn open_events(&self, header: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let host = &self.address;
        write!(stream, "GET /api/v1/mcp/events HTTP/1.1\r\nhost: {host}{header}\r\n\r\n").unwrap();
        BufReader::new(stream)
    }

    /// Calls a tool over a connection.
    fn call_over_connection(&self, header: &str) -> (String, String) {
        let params = json!({ "name": "a.echo", "arguments": { "message": "hi" } });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        self.post("/api/v1/mcp/jsonrpc", header, &call)
    }
}

/// Returns a command that serves with the connections in a store.
fn serve_with_store(test_env: &TestEnv, store: &str) -> std::process::Command {
    let args = ["serve", "--config", "mcp.json", "--listen", "127.0.0.1:0", "--store", store];
    innkeeper(&args, test_env.path())
}

/// Proves: B9
#[test]
fn connections_in_redis_outlive_the_program_and_are_those_of_every_replica() {
    let redis = RedisServer::start(&[]);
    let test_env = TestEnv::new(fixture("a"), &Value::Null);
    let start = || HttpGateway::start(&mut serve_with_store(&test_env, &redis.url()));
    let (first, second) = (start(), start());
    let header = first.open_connection();
    let (head, body) = second.call_over_connection(&header);
    assert!(head.starts_with("HTTP/1.1 200") && body.contains("hi"), "{head}\n{body}");
    first.terminate();
    second.terminate();
    let third = start();
    let (head, body) = third.call_over_connection(&header);
    assert!(head.starts_with("HTTP/1.1 200") && body.contains("hi"), "{head}\n{body}");
    third.terminate();
}

/// Proves: B-b4
#[test]
fn the_events_of_one_program_are_read_again_at_another() {
    let redis = RedisServer::start(&[]);
    let test_env = TestEnv::new(fixture("a").switch("--list-changed"), &Value::Null);
    let start = || HttpGateway::start(&mut serve_with_store(&test_env, &redis.url()));
    let (first, second) = (start(), start());
    let header = first.open_connection();
    let mut stream = first.open_events(&header);
    read_until(&mut stream, "event: connected");
    let params = json!({ "name": "a.grow", "arguments": { "what": "tools" } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    first.post("/api/v1/mcp/jsonrpc", &header, &call);
    read_until(&mut stream, "notifications/tools/list_changed");
    let mut resumed = second.open_events(&format!("{header}\r\nlast-event-id: 0"));
    let text = read_until(&mut resumed, "notifications/tools/list_changed");
    assert!(text.contains("id: 1\nevent: notification\n"), "{text}");
    first.terminate();
    second.terminate();
}

/// Reads a stream up to a text; returns what was read.
fn read_until(stream: &mut BufReader<TcpStream>, expected: &str) -> String {
    let mut text = String::new();
    while !text.contains(expected) {
        assert!(stream.read_line(&mut text).unwrap() > 0, "the stream ended: {text}");
    }
    text
}

/// Proves: B12
#[test]
fn without_redis_stateless_requests_go_on_and_connections_wait() {
    let mut redis = RedisServer::start(&[]);
    let test_env = TestEnv::new(fixture("a"), &Value::Null);
    let gateway = HttpGateway::start(&mut serve_with_store(&test_env, &redis.url()));
    let header = gateway.open_connection();
    redis.stop();
    let (head, body) = gateway.call_over_connection(&header);
    assert!(head.starts_with("HTTP/1.1 503"), "{head}\n{body}");
    assert!(head.contains("retry-after: ") && body.contains("-32100"), "{head}\n{body}");
    let (head, _) = gateway.initialize("");
    assert!(head.starts_with("HTTP/1.1 200"), "MCP goes on: {head}");
    redis.start_again();
    let started = Instant::now();
    loop {
        // The server kept nothing on its disk: the connection is unknown, and Redis responds.
        let (head, _) = gateway.call_over_connection(&header);
        if head.starts_with("HTTP/1.1 401") {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(20), "{head}");
    }
    let header = gateway.open_connection();
    let (head, _) = gateway.call_over_connection(&header);
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    gateway.terminate();
}

/// Proves: B12
#[test]
fn a_start_waits_for_redis_and_fails_with_the_reason_after_its_time() {
    let mut redis = RedisServer::start(&[]);
    redis.stop();
    let test_env = TestEnv::new(fixture("a"), &Value::Null);
    let url = redis.url().replace("redis://", "redis://:secret-password@");
    let mut command = serve_with_store(&test_env, &url);
    let output = command.env("MCP_STORE_TIMEOUT", "1").stdin(Stdio::null()).output().unwrap();
    let stderr = stderr_of(&output);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    for text in ["waiting for `redis://", "within 1 s", "--store memory"] {
        assert!(stderr.contains(text), "{stderr}");
    }
    assert!(!stderr.contains("secret-password"), "{stderr}");
    let mut command = serve_with_store(&test_env, &redis.url());
    let waiting = std::thread::spawn(move || HttpGateway::start(&mut command));
    redis.start_again();
    let gateway = waiting.join().unwrap();
    gateway.open_connection();
    gateway.terminate();
}

/// Proves: B-b2
#[test]
fn a_connection_in_a_file_outlives_the_gateway_and_a_broken_file_fails_the_start() {
    let test_env = TestEnv::new(fixture("a"), &Value::Null);
    let directory = tempfile::tempdir().unwrap();
    let store = format!("file:{}", directory.path().join("connections").display());
    let gateway = HttpGateway::start(&mut serve_with_store(&test_env, &store));
    let header = gateway.open_connection();
    gateway.terminate();
    let gateway = HttpGateway::start(&mut serve_with_store(&test_env, &store));
    let (head, body) = gateway.call_over_connection(&header);
    assert!(head.starts_with("HTTP/1.1 200"), "{head}\n{body}");
    gateway.terminate();
    std::fs::write(directory.path().join("connections/broken.json"), "{").unwrap();
    let output = serve_with_store(&test_env, &store).stdin(Stdio::null()).output().unwrap();
    let stderr = stderr_of(&output);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("broken.json`: not a connection: "), "{stderr}");
}

/// Attack: remote | another user of the machine uses a gateway without authentication | status 403 with
/// the next step; the gateway's own user is served | Isolation
#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "the process of another user")]
#[test]
fn without_authentication_other_users_of_the_machine_are_refused() {
    use std::os::unix::process::CommandExt as _;
    if !rustix::process::geteuid().is_root() {
        // Nobody else's process can be started.
        return;
    }
    const NOBODY: u32 = 65_534;
    // A program that every user can run.
    const SCRIPT: &str = "\
host=$1; port=$2; shift 2
for path in \"$@\"; do
    exec 3<>/dev/tcp/$host/$port
    printf 'GET %s HTTP/1.1\\r\\nhost: localhost\\r\\nconnection: close\\r\\n\\r\\n' $path >&3
    echo $path $(cat <&3)
done
";
    let test_env = TestEnv::new(fixture("a"), &Value::Null);
    let gateway = test_env.serve();
    let get_as = |user: u32| {
        let (host, port) = gateway.address.split_once(':').unwrap();
        let mut client = std::process::Command::new("/bin/bash");
        client.args(["-c", SCRIPT, "client", host, port, "/tools", "/console/servers", "/healthz"]);
        let output = client.uid(user).current_dir("/").output().unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr)
    };
    let served = get_as(0);
    assert!(
        served.contains("/tools HTTP/1.1 200") && served.contains("/console/servers HTTP/1.1 200"),
        "{served}"
    );
    let refused = get_as(NOBODY);
    assert!(refused.contains("/tools HTTP/1.1 403"), "{refused}");
    assert!(refused.contains("`serve.auth.apiKeys`"), "{refused}");
    assert!(refused.contains("/console/servers HTTP/1.1 403"), "{refused}");
    assert!(refused.contains("/healthz HTTP/1.1 200"), "{refused}");
    assert_eq!(gateway.terminate(), Some(143));
}
