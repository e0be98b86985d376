//! An MCP server in memory, controlled by the test, for tests with paused time.

mod handshake;

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::time::timeout;

use crate::client_messages::ClientMessageChecker;

pub use handshake::ServerFeatures;

/// Capacity of each direction in bytes, like a pipe of the operating system.
const PIPE_BYTES: usize = 64 * 1024;

/// Maximum wait for the client by the test's clock, so that a test fails with a message instead of
/// hanging; longer than any timeout in a test of a host.
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// The server side of a connection.
///
/// The server reads only on request: a test without reads has a server that stopped reading.
#[derive(Debug)]
pub struct InMemoryServer {
    reader: BufReader<DuplexStream>,
    writer: Option<DuplexStream>,
    subscription_id: Option<Value>,
    /// Checks the messages since the handshake; a test of a part of a client has no handshake.
    checker: Option<ClientMessageChecker>,
}

impl InMemoryServer {
    /// Returns a server, the client's input and the client's output.
    #[must_use]
    pub fn new() -> (Self, DuplexStream, DuplexStream) {
        Self::with_pipe(PIPE_BYTES)
    }

    /// As [`InMemoryServer::new`], with pipes of `bytes` bytes.
    ///
    /// The server itself buffers up to 8 KiB more when it reads.
    #[must_use]
    pub fn with_pipe(bytes: usize) -> (Self, DuplexStream, DuplexStream) {
        let (writer, client_read) = duplex(bytes);
        let (client_write, reader) = duplex(bytes);
        let peer = Self {
            reader: BufReader::new(reader),
            writer: Some(writer),
            subscription_id: None,
            checker: None,
        };
        (peer, client_read, client_write)
    }

    /// Reads the next line without its line end; `None` after the client has closed its side.
    ///
    /// # Panics
    ///
    /// If no line arrives within a day of the test's clock, or the line is not UTF-8, or a message
    /// after the begin of a handshake violates the schema of the specification.
    pub async fn next_line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = timeout(RECEIVE_TIMEOUT, self.reader.read_line(&mut line)).await;
        let read = read.expect("the client sent nothing").expect("the client sent invalid UTF-8");
        (read > 0).then(|| {
            let line = line.trim_end_matches('\n').to_owned();
            // A message that is nested too deeply for a tree has no check.
            if let Some(checker) = &mut self.checker
                && let Ok(message) = serde_json::from_str(&line)
                && let Err(violations) = checker.check(&message)
            {
                panic!("the client sent `{line}`: {violations}");
            }
            line
        })
    }

    /// Reads the next message; `None` after the client has closed its side.
    ///
    /// # Panics
    ///
    /// If the line is not JSON, and as [`InMemoryServer::next_line`].
    pub async fn next_message(&mut self) -> Option<Value> {
        let line = self.next_line().await?;
        match serde_json::from_str(&line) {
            Ok(message) => Some(message),
            Err(error) => panic!("the client sent `{line}`: {error}"),
        }
    }

    /// Reads the next message, which must be a request or notification with this method.
    ///
    /// # Panics
    ///
    /// If the message is different, or the client has closed its side.
    pub async fn expect(&mut self, method: &str) -> Value {
        match self.next_message().await {
            Some(message) if message["method"] == method => message,
            Some(message) => panic!("expected `{method}`, the client sent {message}"),
            None => panic!("expected `{method}`, the client closed its side"),
        }
    }

    /// Reads the next message, which must be a response to a request of this server with this id.
    ///
    /// # Panics
    ///
    /// If the message is different, or the client has closed its side.
    pub async fn expect_response(&mut self, id: &Value) -> Value {
        match self.next_message().await {
            Some(message) if message["id"] == *id && message.get("method").is_none() => message,
            Some(message) => panic!("expected a response to {id}, the client sent {message}"),
            None => panic!("expected a response to {id}, the client closed its side"),
        }
    }

    /// Reads a request with this method and sends the result; returns the request.
    ///
    /// # Panics
    ///
    /// As [`InMemoryServer::expect`].
    pub async fn respond_to(&mut self, method: &str, result: Value) -> Value {
        let request = self.expect(method).await;
        self.respond(&request["id"], result).await;
        request
    }

    /// Waits until the client closes its side.
    ///
    /// # Panics
    ///
    /// If a message arrives.
    pub async fn expect_closed(&mut self) {
        if let Some(line) = self.next_line().await {
            panic!("expected the client to close, the client sent {line}");
        }
    }

    /// Sends the result of a request.
    pub async fn respond(&mut self, id: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
    }

    /// Sends the error of a request.
    pub async fn respond_error(&mut self, id: &Value, code: i64, message: &str) {
        let error = json!({"code": code, "message": message});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": error})).await;
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// Sends a request of the server.
    pub async fn request(&mut self, id: &Value, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
    }

    /// Sends a message as one line.
    pub async fn send(&mut self, message: &Value) {
        self.send_raw(format!("{message}\n").as_bytes()).await;
    }

    /// Sends bytes unchanged. Does nothing after either side has closed.
    ///
    /// # Panics
    ///
    /// If the client reads nothing for a day of the test's clock.
    pub async fn send_raw(&mut self, bytes: &[u8]) {
        let Some(writer) = &mut self.writer else { return };
        let write_result = timeout(RECEIVE_TIMEOUT, writer.write_all(bytes)).await;
        if write_result.expect("the client does not read").is_err() {
            self.writer = None;
        }
    }

    /// Closes the client's input; the server can still read the client's output.
    pub fn close(&mut self) {
        self.writer = None;
    }
}
