//! An MCP server in memory, played by the test itself; for tests that stop the clock.

mod handshake;

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::time::timeout;

pub use handshake::Offer;

/// Bytes either direction holds before its writer waits, like a pipe of the system's.
const PIPE: usize = 64 * 1024;

/// How long a peer waits for its client by the test's clock, so that a test fails by name instead
/// of hanging; longer than any limit a test of a host plays with.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// The server's end of a conversation.
///
/// It reads only when asked to: a test that asks no more has a server that has stopped reading.
#[derive(Debug)]
pub struct Peer {
    reader: BufReader<DuplexStream>,
    writer: Option<DuplexStream>,
    listening: Option<Value>,
}

impl Peer {
    /// A peer, what its client reads from, and what its client writes to.
    #[must_use]
    pub fn new() -> (Self, DuplexStream, DuplexStream) {
        Self::with_pipe(PIPE)
    }

    /// As [`Peer::new`], with pipes that hold so many bytes.
    ///
    /// Beyond those the peer itself takes up to 8 KiB when it reads.
    #[must_use]
    pub fn with_pipe(bytes: usize) -> (Self, DuplexStream, DuplexStream) {
        let (writer, client_read) = duplex(bytes);
        let (client_write, reader) = duplex(bytes);
        let peer = Self { reader: BufReader::new(reader), writer: Some(writer), listening: None };
        (peer, client_read, client_write)
    }

    /// The next line, without its end; `None` when the client has closed its side.
    ///
    /// # Panics
    ///
    /// When nothing comes for a day of the test's clock, or bytes that are no text.
    pub async fn next_line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = timeout(PATIENCE, self.reader.read_line(&mut line)).await;
        let read = read.expect("the client sent nothing").expect("the client sends text");
        (read > 0).then(|| line.trim_end_matches('\n').to_owned())
    }

    /// The next message; `None` when the client has closed its side.
    ///
    /// # Panics
    ///
    /// When the line is not JSON, and as [`Peer::next_line`].
    pub async fn next(&mut self) -> Option<Value> {
        let line = self.next_line().await?;
        match serde_json::from_str(&line) {
            Ok(message) => Some(message),
            Err(error) => panic!("the client sent `{line}`: {error}"),
        }
    }

    /// The next message, which must be a request or notification of this method.
    ///
    /// # Panics
    ///
    /// When it is another, naming it, or the client has closed its side.
    pub async fn expect(&mut self, method: &str) -> Value {
        match self.next().await {
            Some(message) if message["method"] == method => message,
            Some(message) => panic!("expected `{method}`, the client sent {message}"),
            None => panic!("expected `{method}`, the client closed its side"),
        }
    }

    /// The next message, which must be a response to this id of the peer's own.
    ///
    /// # Panics
    ///
    /// When it is another message, naming it, or the client has closed its side.
    pub async fn expect_response(&mut self, id: &Value) -> Value {
        match self.next().await {
            Some(message) if message["id"] == *id && message.get("method").is_none() => message,
            Some(message) => panic!("expected a response to {id}, the client sent {message}"),
            None => panic!("expected a response to {id}, the client closed its side"),
        }
    }

    /// Expects a request of this method and answers it; returns the request.
    ///
    /// # Panics
    ///
    /// As [`Peer::expect`].
    pub async fn answer(&mut self, method: &str, result: Value) -> Value {
        let request = self.expect(method).await;
        self.reply(&request["id"], result).await;
        request
    }

    /// Expects that the client closes its side.
    ///
    /// # Panics
    ///
    /// When a message comes instead, naming it.
    pub async fn expect_closed(&mut self) {
        if let Some(line) = self.next_line().await {
            panic!("expected the end, the client sent {line}");
        }
    }

    /// Answers a request.
    pub async fn reply(&mut self, id: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
    }

    /// Answers a request with an error.
    pub async fn reply_error(&mut self, id: &Value, code: i64, message: &str) {
        let error = json!({"code": code, "message": message});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": error})).await;
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// Sends a request of the peer's own.
    pub async fn request(&mut self, id: &Value, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
    }

    /// Sends a message as one line.
    pub async fn send(&mut self, message: &Value) {
        self.raw(format!("{message}\n").as_bytes()).await;
    }

    /// Sends bytes as they are. Does nothing once either side has closed.
    ///
    /// # Panics
    ///
    /// When the client reads nothing for a day of the test's clock.
    pub async fn raw(&mut self, bytes: &[u8]) {
        let Some(writer) = &mut self.writer else { return };
        let written = timeout(PATIENCE, writer.write_all(bytes)).await;
        if written.expect("the client reads nothing").is_err() {
            self.writer = None;
        }
    }

    /// Closes what the client reads from; what it writes can still be read.
    pub fn close(&mut self) {
        self.writer = None;
    }
}
