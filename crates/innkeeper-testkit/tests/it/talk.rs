//! A plain client for the fixture server: writes what it is told, hands over what comes back.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use innkeeper_testkit::Fixture;
use serde_json::{Value, json};

/// How long a loaded machine may take for one answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Lines kept for the test to take.
const LINES: usize = 4096;

/// A conversation with one fixture server.
pub(crate) struct Talk {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    errors: Option<JoinHandle<Vec<u8>>>,
}

impl Talk {
    pub(crate) fn start(fixture: &Fixture) -> Self {
        let mut command = fixture.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut errors = child.stderr.take().unwrap();
        let (sender, lines) = sync_channel(LINES);
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

    /// As [`Talk::start`], with the legacy handshake done.
    pub(crate) fn legacy(fixture: &Fixture) -> Self {
        let mut talk = Self::start(fixture);
        let answer = talk.initialize();
        assert!(answer.get("result").is_some(), "{answer}");
        talk.notify("notifications/initialized", &json!({}));
        talk
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

    /// Sends a request and returns the next message, whatever it is.
    pub(crate) fn request(&mut self, id: impl Into<Value>, method: &str, params: &Value) -> Value {
        self.post(id, method, params);
        self.message()
    }

    pub(crate) fn post_call(&mut self, id: u64, tool: &str, arguments: &Value) {
        self.post(id, "tools/call", &json!({"name": tool, "arguments": arguments}));
    }

    pub(crate) fn call(&mut self, id: u64, tool: &str, arguments: &Value) -> Value {
        self.post_call(id, tool, arguments);
        self.message()
    }

    /// The next line as it came, its end included.
    pub(crate) fn line(&mut self) -> Vec<u8> {
        self.lines.recv_timeout(PATIENCE).expect("a line from the server")
    }

    pub(crate) fn message(&mut self) -> Value {
        let line = self.line();
        serde_json::from_slice(&line)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&line)))
    }

    /// Proves that nothing has been sent: the answer to a ping comes next.
    pub(crate) fn assert_silent(&mut self) {
        let answer = self.request("still there?", "ping", &json!({}));
        assert_eq!(answer["id"], "still there?");
    }

    /// The end of the server's output.
    pub(crate) fn assert_closed(&mut self) {
        assert!(
            self.lines
                .recv_timeout(PATIENCE)
                .is_err_and(|error| { error == std::sync::mpsc::RecvTimeoutError::Disconnected })
        );
    }

    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Waits for the process; its exit status and what it wrote on stderr.
    pub(crate) fn wait(&mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        let errors = self.errors.take().unwrap().join().unwrap();
        (status, String::from_utf8_lossy(&errors).into_owned())
    }

    /// Closes the server's input and waits for its exit code.
    pub(crate) fn end(mut self) -> Option<i32> {
        self.close_input();
        self.wait().0.code()
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Parameters as the 2026-07-28 revision wants them, with these client capabilities.
pub(crate) fn modern(mut params: Value, capabilities: &Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    params
}

/// The text of a tool call's answer.
pub(crate) fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}
