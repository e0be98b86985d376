//! Servers in the process of the application, connected by a stream or a connector.

mod failure;
mod lifetime;
mod silence;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use innkeeper_host::{
    CallOptions, CallbackCapabilities, CompletionReference, Config, ConnectError, Environment,
    ErrorClass, Host, HostBuilder, Lock, ServerRequest, ServerState, StartError,
};
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, BufStream,
    BufWriter, DuplexStream, duplex, join, split,
};
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::setup::result_text;

/// Capacity of a stream in bytes.
const STREAM_BYTES: usize = 64 * 1024;

/// What the in-process servers of one test did, in order, and the order to end.
#[derive(Clone, Default)]
struct Servers {
    log: Arc<Mutex<Vec<String>>>,
    end: Arc<Notify>,
}

impl Servers {
    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    fn record(&self, entry: String) {
        self.log.lock().unwrap().push(entry);
    }

    /// Starts a server in a task and returns the host's end of the stream.
    fn start(&self, name: &str) -> DuplexStream {
        let (stream, server_stream) = duplex(STREAM_BYTES);
        self.spawn(name, server_stream);
        stream
    }

    /// Starts a server in a task with its end of the stream.
    fn spawn(&self, name: &str, stream: impl AsyncRead + AsyncWrite + Send + 'static) {
        let serving = self.clone().serve(name.to_owned(), stream);
        #[expect(clippy::disallowed_methods, reason = "a server is no task of the host")]
        drop(tokio::spawn(serving));
    }

    /// Returns a connector that starts a server at each call.
    fn connector(
        &self,
        name: &str,
    ) -> impl Fn() -> std::future::Ready<Result<DuplexStream, ConnectError>> + use<> {
        let (servers, name) = (self.clone(), name.to_owned());
        move || std::future::ready(Ok(servers.start(&name)))
    }

    /// Answers requests until the host closes its end or the test ends the servers. Calls of `hang`
    /// have no response.
    async fn serve(self, name: String, stream: impl AsyncRead + AsyncWrite) {
        let (reader, mut writer) = split(stream);
        let mut lines = BufReader::new(reader).lines();
        self.record(format!("{name} started"));
        loop {
            let line = tokio::select! {
                line = lines.next_line() => line.unwrap(),
                () = self.end.notified() => None,
            };
            let Some(line) = line else { break };
            let request: Value = serde_json::from_str(&line).unwrap();
            if let Some(response) = respond(&name, &request) {
                writer.write_all(format!("{response}\n").as_bytes()).await.unwrap();
            }
        }
        self.record(format!("{name} ended"));
    }
}

/// Returns the response of a server to a message.
fn respond(name: &str, message: &Value) -> Option<Value> {
    let id = message.get("id")?;
    let result = match message["method"].as_str()? {
        "server/discover" if name == "modern" => json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}, "prompts": {}, "completions": {}},
            "serverInfo": {"name": name, "version": "1"},
        }),
        "prompts/list" => json!({"prompts": [{"name": "greet", "arguments": [{"name": "city"}]}]}),
        "example/input" | "completion/complete"
            if message["params"]["inputResponses"].is_object() =>
        {
            json!({"resultType": "complete", "state": message["params"]["requestState"]})
        }
        "example/input" | "completion/complete" => json!({
            "resultType": "input_required",
            "requestState": "first",
            "inputRequests": {"city": {"method": "elicitation/create", "params": {}}},
        }),
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": name, "version": "1"},
        }),
        "tools/list" => {
            let tool = |name| json!({"name": name, "inputSchema": {"type": "object"}});
            json!({"tools": [tool("echo"), tool("hang")]})
        }
        "tools/call" if message["params"]["name"] == "hang" => return None,
        "tools/call" => {
            let text = &message["params"]["arguments"]["message"];
            json!({"content": [{"type": "text", "text": text}]})
        }
        _ => {
            let error = json!({"code": -32601, "message": "method not found"});
            return Some(json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

/// Reads a configuration with these entries.
fn config(servers: &Value) -> Config {
    let value = json!({ "servers": servers });
    Config::from_value(&value, "mcp.json", Path::new("."), &Environment::default()).unwrap()
}

fn builder() -> HostBuilder {
    Host::builder(Config::default())
}

async fn echo(host: &Host, tool: &str, message: &str) -> String {
    result_text(&host.call_tool(tool, json!({ "message": message })).await.unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_server_at_the_end_of_a_stream_is_listed_called_counted_and_stopped() {
    let servers = Servers::default();
    let host = builder().connect("local", servers.start("local")).start().await.unwrap();
    assert_eq!(echo(&host, "local.echo", "hi").await, "hi");

    let catalog = host.catalog();
    assert_eq!(catalog.tool_names().collect::<Vec<_>>(), ["local.echo", "local.hang"]);
    assert_eq!(catalog.server("local").unwrap().transport(), "in-process");
    let status = &host.status()["local"];
    assert_eq!((status.state, status.pid, status.isolation), (ServerState::Ready, None, None));
    assert_eq!(host.metrics()["local"].success_count, 1);

    let report = host.shutdown().await;
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(report.servers[0].stage.as_str(), "disconnected");
    assert_eq!(report.servers[0].exit, None);
    assert_eq!(servers.log(), ["local started", "local ended"]);
}

#[tokio::test(start_paused = true)]
async fn a_reader_and_a_buffered_writer_are_flushed_after_each_message_and_closed() {
    let servers = Servers::default();
    let (reader, server_writer) = duplex(STREAM_BYTES);
    let (writer, server_reader) = duplex(STREAM_BYTES);
    servers.spawn("local", join(server_reader, server_writer));
    let stream = join(reader, BufWriter::with_capacity(STREAM_BYTES, writer));
    let host = builder().connect("local", stream).start().await.unwrap();
    assert_eq!(echo(&host, "local.echo", "hi").await, "hi");
    assert!(host.shutdown().await.is_clean());
    assert_eq!(servers.log(), ["local started", "local ended"]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_one_byte_carries_every_message() {
    let servers = Servers::default();
    let (stream, server_stream) = duplex(1);
    servers.spawn("local", server_stream);
    let host = builder().connect("local", stream).start().await.unwrap();
    let message = "long ".repeat(1000);
    assert_eq!(echo(&host, "local.echo", &message).await, message);
    assert!(host.shutdown().await.is_clean());
}

#[tokio::test(start_paused = true)]
async fn a_raw_request_returns_a_request_for_input_and_the_application_sends_the_input() {
    let callback = |request: ServerRequest| async move { panic!("{request:?}") };
    let builder = builder().callback(&CallbackCapabilities::elicitation(), callback);
    let stream = Servers::default().start("modern");
    let host = builder.connect("modern", stream).start().await.unwrap();
    let send = async |params: Value| -> Value {
        let params = to_raw_value(&params).unwrap();
        let options = CallOptions::default();
        let result = host.request("modern", "example/input", Some(&params), options).await;
        serde_json::from_str(result.unwrap().get()).unwrap()
    };
    let asked = send(json!({"n": 1})).await;
    assert_eq!(asked["resultType"], "input_required");
    let (city, state) = (json!({"city": {"action": "cancel"}}), &asked["requestState"]);
    let input = json!({"n": 1, "inputResponses": city, "requestState": state});
    assert_eq!(send(input).await["state"], "first");
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_for_input_during_a_completion_is_answered_by_the_callback() {
    let callback = |_: ServerRequest| async { Ok(json!({"action": "accept", "content": {}})) };
    let builder = builder().callback(&CallbackCapabilities::elicitation(), callback);
    let stream = Servers::default().start("modern");
    let host = builder.connect("modern", stream).start().await.unwrap();
    let prompt = CompletionReference::Prompt("modern.greet");
    let known = Map::new();
    let completion = host.complete(prompt, "city", "R", &known, CallOptions::default()).await;
    assert!(completion.unwrap().get().contains(r#""state":"first""#));
    host.shutdown().await;
}

/// Answers requests, and sends a notification for each part of a message.
async fn serve_in_parts(stream: DuplexStream) {
    const NOTIFICATION: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/part\"}\n";
    let (mut reader, mut writer) = split(stream);
    let (mut input, mut part) = (Vec::new(), [0; 512]);
    while let Ok(count @ 1..) = reader.read(&mut part).await {
        sleep(Duration::from_millis(1)).await;
        writer.write_all(NOTIFICATION).await.unwrap();
        input.extend_from_slice(&part[..count]);
        while let Some(end) = input.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = input.drain(..=end).collect();
            if let Some(response) = respond("local", &serde_json::from_slice(&line).unwrap()) {
                writer.write_all(format!("{response}\n").as_bytes()).await.unwrap();
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_buffered_stream_carries_concurrent_calls_while_the_server_sends_notifications() {
    let (stream, server_stream) = duplex(1024);
    #[expect(clippy::disallowed_methods, reason = "a server is no task of the host")]
    drop(tokio::spawn(serve_in_parts(server_stream)));
    let host = builder().connect("local", BufStream::new(stream)).start().await.unwrap();
    let message = "long ".repeat(1000);
    let calls = (0..8).map(|_| echo(&host, "local.echo", &message));
    for result in join_all(calls).await {
        assert_eq!(result, message);
    }
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_entry_sets_the_order_and_the_limits_of_a_server() {
    let servers = Servers::default();
    let config = config(&json!({
        "upper": {"type": "in-process", "dependencies": ["lower"], "timeout": 2,
                  "tools": {"deny": ["nothing"]}},
        "lower": {"type": "in-process", "tools": {"deny": ["hang"]}},
    }));
    let builder = Host::builder(config)
        .connector("upper", servers.connector("upper"))
        .connector("lower", servers.connector("lower"));
    let host = builder.start().await.unwrap();
    assert_eq!(servers.log(), ["lower started", "upper started"]);
    let tools: Vec<_> = host.catalog().tool_names().map(str::to_owned).collect();
    assert_eq!(tools, ["upper.echo", "upper.hang", "lower.echo"]);

    let started = tokio::time::Instant::now();
    let error = host.call_tool("upper.hang", json!({})).await.unwrap_err();
    assert_eq!((error.class(), started.elapsed()), (ErrorClass::Timeout, Duration::from_secs(2)));
    host.shutdown().await;
    assert_eq!(servers.log()[2..], ["upper ended", "lower ended"]);
}

#[tokio::test(start_paused = true)]
async fn a_host_default_applies_to_a_server_without_an_entry() {
    let servers = Servers::default();
    let value = json!({"servers": {}, "host": {"timeout": 3}});
    let environment = Environment::default();
    let config = Config::from_value(&value, "mcp.json", Path::new("."), &environment).unwrap();
    let builder = Host::builder(config).connect("local", servers.start("local"));
    let host = builder.start().await.unwrap();
    let started = tokio::time::Instant::now();
    host.call_tool("local.hang", json!({})).await.unwrap_err();
    assert_eq!(started.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_disabled_entry_is_not_connected() {
    let servers = Servers::default();
    let config = config(&json!({"local": {"type": "in-process", "disabled": true}}));
    let builder = Host::builder(config).connector("local", servers.connector("local"));
    let host = builder.start().await.unwrap();
    assert!(host.status().is_empty());
    assert!(servers.log().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_pins_of_a_server_survive_the_lock_file() {
    let servers = Servers::default();
    let host = builder().connect("local", servers.start("local")).start().await.unwrap();
    let pins = host.pins();
    let text = pins.to_text().unwrap();
    assert!(text.contains(r#""type": "in-process""#), "{text}");
    let read = Lock::from_text(&text, "mcp.lock").unwrap();
    assert_eq!(read.compare(&pins), []);
}
