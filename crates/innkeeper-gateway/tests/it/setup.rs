//! Test environment: a gateway before fixture servers, and clients that speak JSON.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::Router;
use innkeeper_gateway::auth::Authenticator;
use innkeeper_gateway::origin::{OriginCheck, OriginSettings};
use innkeeper_gateway::{Gateway, GatewayBuilder, GatewayOptions, HttpAccess, Principal};
use innkeeper_host::config::Share;
use innkeeper_host::{Config, Environment, Host, HostBuilder, Supervisor};
use innkeeper_testkit::{Fixture, ProcessTag, built_program, fixture, mcp_json, tagged_processes};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Maximum time on a loaded machine for operations that usually take milliseconds.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// The version member of a request of the modern era.
pub(crate) const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The directory and the process tag of one test.
pub(crate) struct TestEnv {
    directory: TempDir,
    process_tag: ProcessTag,
}

impl TestEnv {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), process_tag: ProcessTag::new() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The path of the journal of a fixture server.
    pub(crate) fn journal(&self) -> PathBuf {
        self.directory.path().join("journal")
    }

    /// A fixture server with the process tag of this test.
    pub(crate) fn fixture(&self, name: &str) -> Fixture {
        fixture(name).process_tag(&self.process_tag)
    }

    pub(crate) fn config(&self, servers: impl IntoIterator<Item = Fixture>) -> Config {
        let environment = Environment::from_process();
        let file = mcp_json(servers);
        Config::from_value(&file, "mcp.json", self.directory.path(), &environment).unwrap()
    }

    /// Starts a gateway for any number of clients.
    pub(crate) async fn gateway(&self, servers: impl IntoIterator<Item = Fixture>) -> TestGateway {
        self.gateway_with(GatewayBuilder::new(GatewayOptions::default()), servers).await
    }

    pub(crate) async fn gateway_with(
        &self,
        builder: GatewayBuilder,
        servers: impl IntoIterator<Item = Fixture>,
    ) -> TestGateway {
        self.gateway_with_hosts(builder, servers, |host| host).await
    }

    /// Works like [`Self::gateway_with`], with hosts that `prepare` completes.
    pub(crate) async fn gateway_with_hosts(
        &self,
        builder: GatewayBuilder,
        servers: impl IntoIterator<Item = Fixture>,
        prepare: impl Fn(HostBuilder) -> HostBuilder + Clone + Send + Sync + 'static,
    ) -> TestGateway {
        let config = self.config(servers);
        let supervised = move |builder: HostBuilder| {
            prepare(builder).supervisor(Supervisor::executable(built_program("innkeeper-shim")))
        };
        let builder = builder.servers(&config).private_servers(&config, supervised.clone());
        let host = supervised(Host::builder(config.shared_by(Share::Process)));
        let host = builder.register(host).start().await.unwrap();
        TestGateway { gateway: builder.build(host.clone()), host }
    }

    /// Returns the number of processes of all fixture servers.
    pub(crate) fn process_count(&self) -> usize {
        tagged_processes(&self.process_tag).len()
    }

    /// Waits until the fixture servers have this number of processes.
    pub(crate) async fn wait_for_processes(&self, count: usize) {
        let reached = timeout(TEST_TIMEOUT, async {
            while self.process_count() != count {
                sleep(Duration::from_millis(5)).await;
            }
        });
        let reached = reached.await;
        assert!(reached.is_ok(), "{} processes, expected {count}", self.process_count());
    }
}

/// A gateway with its host.
pub(crate) struct TestGateway {
    pub(crate) gateway: Gateway,
    pub(crate) host: Host,
}

impl TestGateway {
    /// The HTTP routes for the local user.
    pub(crate) fn router(&self) -> Router {
        let origin = OriginCheck::new(IpAddr::V4(Ipv4Addr::LOCALHOST), OriginSettings::default());
        let access = HttpAccess { authenticator: Authenticator::local_user(), origin };
        self.gateway.router(access)
    }

    /// Returns the client's end of a connection with lines, and the task that serves the client.
    pub(crate) fn connection(
        &self,
        principal: &str,
    ) -> (DuplexStream, JoinSet<std::io::Result<()>>) {
        let (near, far) = tokio::io::duplex(1 << 20);
        let (reader, writer) = tokio::io::split(far);
        let (gateway, principal) = (self.gateway.clone(), Principal::new(principal));
        let mut serving = JoinSet::new();
        serving.spawn(async move { gateway.serve_connection(principal, reader, writer).await });
        (near, serving)
    }

    /// Connects a client over a connection with lines.
    pub(crate) fn connect_as(&self, principal: &str) -> TestClient {
        Self::client_of(self.connection(principal))
    }

    /// Connects a client to the endpoint of one server.
    pub(crate) fn connect_to_server(&self, principal: &str, server: &'static str) -> TestClient {
        let (near, far) = tokio::io::duplex(1 << 20);
        let (reader, writer) = tokio::io::split(far);
        let (gateway, principal) = (self.gateway.clone(), Principal::new(principal));
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            gateway.serve_server_connection(principal, server, reader, writer).await
        });
        Self::client_of((near, serving))
    }

    fn client_of((near, serving): (DuplexStream, JoinSet<std::io::Result<()>>)) -> TestClient {
        let (reader, writer) = tokio::io::split(near);
        let reader = BufReader::new(reader);
        TestClient { reader, writer, serving, waiting: VecDeque::new(), modern: None, next_id: 1 }
    }

    /// Connects a client and sends `initialize` with these capabilities.
    pub(crate) async fn initialized(&self, principal: &str, capabilities: Value) -> TestClient {
        let mut client = self.connect_as(principal);
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": { "name": "test", "version": "1" },
        });
        let result = client.request("initialize", params).await;
        assert_eq!(result["protocolVersion"], "2025-11-25");
        client.notify("notifications/initialized", json!({})).await;
        client
    }

    /// Connects a client of the modern era with these capabilities.
    pub(crate) fn modern(&self, principal: &str, capabilities: Value) -> TestClient {
        let mut client = self.connect_as(principal);
        client.modern = Some(capabilities);
        client
    }
}

/// A client that sends and receives JSON.
pub(crate) struct TestClient {
    reader: BufReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
    serving: JoinSet<std::io::Result<()>>,
    /// Messages that a request received before its response.
    pub(crate) waiting: VecDeque<Value>,
    modern: Option<Value>,
    next_id: u64,
}

impl TestClient {
    pub(crate) async fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string()).await;
    }

    /// Sends a message byte for byte.
    pub(crate) async fn send_line(&mut self, message: &str) {
        self.writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// Returns the id of the next request.
    pub(crate) fn next_id(&self) -> Value {
        json!(self.next_id)
    }

    /// Sends a request and returns its id.
    pub(crate) async fn start(&mut self, method: &str, mut params: Value) -> Value {
        if let Some(capabilities) = &self.modern {
            params["_meta"][META_VERSION] = "2026-07-28".into();
            params["_meta"][META_CAPABILITIES] = capabilities.clone();
        }
        let id = self.next_id();
        self.next_id += 1;
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(&message).await;
        id
    }

    /// Returns the next message.
    pub(crate) async fn receive(&mut self) -> Value {
        if let Some(message) = self.waiting.pop_front() {
            return message;
        }
        self.read().await
    }

    async fn read(&mut self) -> Value {
        let mut line = String::new();
        let reading = timeout(TEST_TIMEOUT, self.reader.read_line(&mut line));
        reading.await.expect("a message in time").unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Returns the response to a request; other messages wait.
    pub(crate) async fn response(&mut self, id: &Value) -> Value {
        loop {
            let message = self.read().await;
            if message["id"] == *id && message.get("method").is_none() {
                return message;
            }
            self.waiting.push_back(message);
        }
    }

    /// Returns the next message with this method; other messages wait.
    pub(crate) async fn received(&mut self, method: &str) -> Value {
        if let Some(index) = self.waiting.iter().position(|message| message["method"] == method) {
            return self.waiting.remove(index).unwrap();
        }
        loop {
            let message = self.read().await;
            if message["method"] == method {
                return message;
            }
            self.waiting.push_back(message);
        }
    }

    /// Sends a request and returns its whole response.
    pub(crate) async fn respond(&mut self, method: &str, params: Value) -> Value {
        let id = self.start(method, params).await;
        self.response(&id).await
    }

    /// Sends a request and returns its result.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let mut response = self.respond(method, params).await;
        assert!(response.get("error").is_none(), "{response}");
        response["result"].take()
    }

    /// Answers a request of a server.
    pub(crate) async fn answer(&mut self, request: &Value, result: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })).await;
    }

    /// Calls a tool and returns the text of its result.
    pub(crate) async fn call(&mut self, name: &str, arguments: Value) -> String {
        let params = json!({ "name": name, "arguments": arguments });
        text(&self.request("tools/call", params).await)
    }

    /// Returns the next message as text.
    pub(crate) async fn line(&mut self) -> String {
        let mut line = String::new();
        let reading = timeout(TEST_TIMEOUT, self.reader.read_line(&mut line));
        reading.await.expect("a message in time").unwrap();
        line.trim_end().to_owned()
    }

    /// Closes the client's output.
    pub(crate) async fn finish_input(&mut self) {
        self.writer.shutdown().await.unwrap();
    }

    /// Ends the connection at once, with its requests.
    pub(crate) async fn vanish(mut self) {
        self.serving.shutdown().await;
    }

    /// Closes the client's output and returns the outcome of the connection.
    pub(crate) async fn close(mut self) -> std::io::Result<()> {
        self.writer.shutdown().await.unwrap();
        timeout(TEST_TIMEOUT, self.serving.join_next())
            .await
            .expect("an end in time")
            .unwrap()
            .unwrap()
    }
}

/// Returns the text of a tool's result.
pub(crate) fn text(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
}
