//! Starts the program as a child process, or as an MCP server over stdio.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio};

use serde_json::{Value, json};

/// Environment variable with the path of coverage files; `cargo xtask coverage` sets the variable.
const COVERAGE_VARIABLE: &str = "LLVM_PROFILE_FILE";

/// Returns a command for the program. Outside coverage runs, its only variables are `HOME` and one
/// that accepts the configuration file of the test.
#[expect(clippy::disallowed_methods, reason = "these tests are about the program itself")]
pub(crate) fn innkeeper(args: &[&str], cwd: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_innkeeper"));
    command.args(args).current_dir(cwd).env_clear();
    command.env("HOME", "/nowhere/home").env("INNKEEPER_TRUST", "found");
    if let Some(counts) = std::env::var_os(COVERAGE_VARIABLE) {
        command.env(COVERAGE_VARIABLE, counts);
    }
    command
}

/// Runs the program with an empty stdin until the program exits.
pub(crate) fn run(args: &[&str], cwd: &Path) -> Output {
    innkeeper(args, cwd).stdin(Stdio::null()).output().expect("the program runs")
}

/// A built-in server as a child process.
pub(crate) struct ServerProcess {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    next_id: u64,
    /// The `_meta` of every request; `None` in the legacy era.
    meta: Option<Value>,
}

impl ServerProcess {
    pub(crate) fn start(kind: &str, location: &Path) -> Self {
        let location = location.to_str().expect("the path is UTF-8");
        let mut child = innkeeper(&["__server", kind, location], Path::new("/"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stdin = child.stdin.take().expect("stdin is piped");
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Self { child, stdin, stdout, next_id: 1, meta: None }
    }

    /// Starts a legacy session.
    pub(crate) fn with_legacy_revision(mut self, revision: &str) -> Self {
        let params = json!({
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "0" },
        });
        assert_eq!(self.request("initialize", params)["protocolVersion"], revision);
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        self
    }

    /// Starts a modern session.
    pub(crate) fn with_modern_revision(mut self) -> Self {
        self.meta = Some(json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }));
        let result = self.request("server/discover", json!({}));
        assert_eq!(result["supportedVersions"], json!(["2026-07-28"]));
        self
    }

    pub(crate) fn request(&mut self, method: &str, mut params: Value) -> Value {
        if let Some(meta) = &self.meta {
            params["_meta"] = meta.clone();
        }
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("the server answers");
        let response: Value = serde_json::from_str(&line).expect("the answer is JSON");
        assert_eq!((&response["id"], &response["error"]), (&json!(id), &Value::Null), "{response}");
        response["result"].clone()
    }

    /// Calls a tool that must succeed; returns its structured content.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let result = self.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        assert_eq!(result["isError"], false, "{result}");
        let text = result["content"][0]["text"].as_str();
        assert!(text.is_some_and(|text| !text.is_empty()), "{result}");
        result["structuredContent"].clone()
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").expect("the server reads");
    }

    /// Closes stdin and waits for the exit.
    pub(crate) fn close_and_wait(mut self) -> ExitStatus {
        drop(self.stdin);
        self.child.wait().expect("the server ends")
    }
}
