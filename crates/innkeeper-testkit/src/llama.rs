//! A llama.cpp server with a small model for one test.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::debian_program::free_port;

/// Maximum time to load the model, and for one response, on a loaded machine.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// Interval between readiness checks.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A running server with a model of 135 million parameters, one thread and one conversation at a
/// time. A drop kills the server.
#[derive(Debug)]
pub struct LlamaServer {
    child: Child,
    address: SocketAddr,
}

impl Drop for LlamaServer {
    fn drop(&mut self) {
        // The server may have exited already; the error is expected then.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The paths of the installed program and model.
fn installed() -> Result<(PathBuf, PathBuf), String> {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-servers/models");
    let home = models.join("smollm2-135m");
    let program = home.join("server/llama-server");
    let weights = home.join("weights.gguf");
    if program.is_file() && weights.is_file() {
        return Ok((program, weights));
    }
    Err("no local model: run `cargo xtask install`".to_owned())
}

/// Checks for the CPU features that the program requires; without them a signal kills the program.
fn check_available() -> Result<(), String> {
    let flags = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let missing = ["avx512f", "avx512bw", "avx512dq", "avx512vl"]
        .into_iter()
        .filter(|flag| !flags.split_whitespace().any(|other| other == *flag))
        .collect::<Vec<_>>();
    if missing.is_empty() { Ok(()) } else { Err(format!("the CPU lacks {}", missing.join(", "))) }
}

impl LlamaServer {
    /// Starts the server on a free port with additional arguments. The server exits with the thread
    /// that starts it.
    ///
    /// # Errors
    ///
    /// The reason why this machine cannot run the server.
    ///
    /// # Panics
    ///
    /// If the machine can run the server, but the server does not become ready.
    #[expect(clippy::disallowed_methods, reason = "the test starts its own server")]
    pub fn start(arguments: &[&str]) -> Result<Self, String> {
        let (program, weights) = installed()?;
        check_available()?;
        let address = free_port();
        let port = address.port().to_string();
        // `setpriv` executes the server with a parent-death signal, so that the server also exits
        // when the test is killed and no destructor runs.
        let child = std::process::Command::new("setpriv")
            .args(["--pdeathsig", "KILL"])
            .arg(&program)
            .arg("--model")
            .arg(weights)
            .args(["--device", "none", "--threads", "1", "--threads-batch", "1", "--no-ui"])
            .args(["--ctx-size", "4096", "--parallel", "1", "--host", "127.0.0.1", "--port", &port])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start `setpriv`: {error}"));
        let mut server = Self { child, address };
        let tries = RESPONSE_TIMEOUT.as_millis() / POLL_INTERVAL.as_millis();
        for _ in 0..tries {
            if server.request("GET", "/health", "").is_ok_and(|(status, _)| status == 200) {
                return Ok(server);
            }
            let ended = server.child.try_wait();
            assert!(matches!(ended, Ok(None)), "the server exited: {ended:?}");
            std::thread::sleep(POLL_INTERVAL);
        }
        panic!("the server was not ready within {RESPONSE_TIMEOUT:?}");
    }

    /// Returns the scheme, address and port.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sends a POST request; returns the status and the JSON body of the response.
    ///
    /// # Panics
    ///
    /// If the server does not respond.
    #[must_use]
    pub fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let response = self.request("POST", path, &body.to_string());
        let (status, body) = response.unwrap_or_else(|error| panic!("no response: {error}"));
        (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }

    fn request(&self, method: &str, path: &str, body: &str) -> std::io::Result<(u16, String)> {
        let mut stream = TcpStream::connect_timeout(&self.address, RESPONSE_TIMEOUT)?;
        stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )?;
        let mut response = String::new();
        stream.read_to_string(&mut response)?;
        let (head, body) = response.split_once("\r\n\r\n").unwrap_or((&response, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        Ok((status, body.to_owned()))
    }
}
