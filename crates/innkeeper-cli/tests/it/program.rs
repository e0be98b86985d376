//! The program under test as a child process, and as an MCP server behind pipes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio};

use serde_json::{Value, json};

/// Where a program that counts the lines it runs writes them: `cargo xtask coverage` sets it.
const COUNTS: &str = "LLVM_PROFILE_FILE";

/// The program with an environment that is nobody's.
#[expect(clippy::disallowed_methods, reason = "these tests are about the program itself")]
pub(crate) fn innkeeper(args: &[&str], cwd: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_innkeeper"));
    command.args(args).current_dir(cwd).env_clear().env("HOME", "/nowhere/home");
    if let Some(counts) = std::env::var_os(COUNTS) {
        command.env(COUNTS, counts);
    }
    command
}

/// Runs the program to its end with nothing on stdin.
pub(crate) fn run(args: &[&str], cwd: &Path) -> Output {
    innkeeper(args, cwd).stdin(Stdio::null()).output().expect("the program runs")
}

/// A server of the program behind its pipes.
pub(crate) struct Server {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    next_id: u64,
    /// What every request carries as `_meta`: nothing in the legacy era.
    meta: Option<Value>,
}

impl Server {
    pub(crate) fn start(kind: &str, place: &Path) -> Self {
        let place = place.to_str().expect("the path is UTF-8");
        let mut child = innkeeper(&["__server", kind, place], Path::new("/"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stdin = child.stdin.take().expect("stdin is piped");
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Self { child, stdin, stdout, next_id: 1, meta: None }
    }

    /// Speaks the legacy era from here on.
    pub(crate) fn legacy(mut self, revision: &str) -> Self {
        let params = json!({
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "0" },
        });
        assert_eq!(self.request("initialize", params)["protocolVersion"], revision);
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        self
    }

    /// Speaks the modern era from here on.
    pub(crate) fn modern(mut self) -> Self {
        self.meta = Some(json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }));
        let found = self.request("server/discover", json!({}));
        assert_eq!(found["supportedVersions"], json!(["2026-07-28"]));
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
        let answer: Value = serde_json::from_str(&line).expect("the answer is JSON");
        assert_eq!((&answer["id"], &answer["error"]), (&json!(id), &Value::Null), "{answer}");
        answer["result"].clone()
    }

    /// Calls a tool that must succeed; gives back its structured content.
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

    /// Ends its input and waits for it to end by itself.
    pub(crate) fn end(mut self) -> ExitStatus {
        drop(self.stdin);
        self.child.wait().expect("the server ends")
    }
}
