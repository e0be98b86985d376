//! A plain stdio client for fixture servers.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use innkeeper_testkit::Fixture;
use serde_json::{Value, json};

/// Maximum wait for one response on a loaded machine.
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// Maximum number of queued lines.
const MAX_QUEUED_LINES: usize = 4096;

/// A connection to one fixture server.
pub(crate) struct StdioClient {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    errors: Option<JoinHandle<Vec<u8>>>,
}

impl StdioClient {
    pub(crate) fn start(fixture: &Fixture) -> Self {
        let mut command = fixture.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut errors = child.stderr.take().unwrap();
        let (sender, lines) = sync_channel(MAX_QUEUED_LINES);
        thread::spawn(move || {
            loop {
                let mut line = Vec::new();
                match output.read_until(b'\n', &mut line) {
                    Ok(1..) if sender.send(line).is_ok() => {}
                    _ => return,
                }
            }
        });
        let errors = thread::spawn(move || {
            let mut bytes = Vec::new();
            errors.read_to_end(&mut bytes).unwrap();
            bytes
        });
        let input = child.stdin.take();
        Self { child, input, lines, errors: Some(errors) }
    }

    /// As [`StdioClient::start`], with a completed legacy handshake.
    pub(crate) fn start_legacy(fixture: &Fixture) -> Self {
        let mut client = Self::start(fixture);
        let response = client.initialize();
        assert!(response.get("result").is_some(), "{response}");
        client.notify("notifications/initialized", &json!({}));
        client
    }

    pub(crate) fn initialize(&mut self) -> Value {
        let params = json!({
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "talk", "version": "1"},
        });
        self.request("init", "initialize", &params)
    }

    pub(crate) fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.input.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }

    pub(crate) fn post(&mut self, id: impl Into<Value>, method: &str, params: &Value) {
        let id: Value = id.into();
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    pub(crate) fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request and returns the next message.
    pub(crate) fn request(&mut self, id: impl Into<Value>, method: &str, params: &Value) -> Value {
        self.post(id, method, params);
        self.next_message()
    }

    pub(crate) fn post_call(&mut self, id: u64, tool: &str, arguments: &Value) {
        self.post(id, "tools/call", &json!({"name": tool, "arguments": arguments}));
    }

    pub(crate) fn call(&mut self, id: u64, tool: &str, arguments: &Value) -> Value {
        self.post_call(id, tool, arguments);
        self.next_message()
    }

    /// Returns the next line unchanged, with its line end.
    pub(crate) fn next_line(&mut self) -> Vec<u8> {
        self.lines.recv_timeout(RECEIVE_TIMEOUT).expect("a line from the server")
    }

    pub(crate) fn next_message(&mut self) -> Value {
        let line = self.next_line();
        serde_json::from_slice(&line)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&line)))
    }

    /// Checks that the server has sent nothing: the next message is the response to a ping.
    pub(crate) fn assert_silent(&mut self) {
        let response = self.request("still there?", "ping", &json!({}));
        assert_eq!(response["id"], "still there?");
    }

    /// Checks that the server's output has ended.
    pub(crate) fn assert_closed(&mut self) {
        assert!(
            self.lines
                .recv_timeout(RECEIVE_TIMEOUT)
                .is_err_and(|error| { error == std::sync::mpsc::RecvTimeoutError::Disconnected })
        );
    }

    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Waits for the process; returns its exit status and its stderr.
    pub(crate) fn wait(&mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        let errors = self.errors.take().unwrap().join().unwrap();
        (status, String::from_utf8_lossy(&errors).into_owned())
    }

    /// Closes the server's input and returns the exit code.
    pub(crate) fn close_and_wait(mut self) -> Option<i32> {
        self.close_input();
        self.wait().0.code()
    }
}

impl Drop for StdioClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Adds the `_meta` of protocol version 2026-07-28 with these client capabilities.
pub(crate) fn with_modern_meta(mut params: Value, capabilities: &Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    params
}

/// Returns the text of a tool result.
pub(crate) fn result_text(response: &Value) -> &str {
    response["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{response}"))
}
