//! A llama.cpp server with a small model, of the test's own, and requests to it.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;

/// How long the model may take to load, and one answer to be made, on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often it is asked whether it is ready.
const PAUSE: Duration = Duration::from_millis(50);

/// A running server with a model of 135 million weights, one thread and one conversation at a time.
/// It ends with this.
#[derive(Debug)]
pub struct LlamaServer {
    child: Child,
    address: SocketAddr,
}

impl Drop for LlamaServer {
    fn drop(&mut self) {
        // It may have ended by itself, which leaves nothing to kill.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Where the test command puts the model, if it is there.
fn installed() -> Result<(PathBuf, PathBuf), String> {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-servers/models");
    let home = models.join("smollm2-135m");
    let (program, weights) = (home.join("server/llama-server"), home.join("weights.gguf"));
    if program.is_file() && weights.is_file() {
        return Ok((program, weights));
    }
    Err("no local model here: `cargo xtask servers` gets it".to_owned())
}

/// What the program is built for; it is killed where one of these is missing.
fn able() -> Result<(), String> {
    let flags = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let missing = ["avx512f", "avx512bw", "avx512dq", "avx512vl"]
        .into_iter()
        .filter(|flag| !flags.split_whitespace().any(|it| it == *flag))
        .collect::<Vec<_>>();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!("this processor has no {}", missing.join(", ")))
    }
}

/// A port that nobody has now.
fn free_port() -> SocketAddr {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|free| free.local_addr());
    free.unwrap_or_else(|error| panic!("no port is free: {error}"))
}

impl LlamaServer {
    /// Starts it on a free port with these arguments beside its own. It is killed with the thread that
    /// starts it.
    ///
    /// # Errors
    ///
    /// Why it cannot run here: tests that need it say so, and pass.
    ///
    /// # Panics
    ///
    /// It could run, and does not come up.
    #[expect(clippy::disallowed_methods, reason = "the test's own server")]
    pub fn start(arguments: &[&str]) -> Result<Self, String> {
        let (program, weights) = installed()?;
        able()?;
        let address = free_port();
        let port = address.port().to_string();
        // `setpriv` becomes the server, which is then killed with this thread even where no
        // destructor runs, as when the test itself is killed.
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
            .unwrap_or_else(|error| panic!("`setpriv` does not start: {error}"));
        let mut server = Self { child, address };
        let tries = PATIENCE.as_millis() / PAUSE.as_millis();
        for _ in 0..tries {
            if server.request("GET", "/health", "").is_ok_and(|(status, _)| status == 200) {
                return Ok(server);
            }
            let ended = server.child.try_wait();
            assert!(matches!(ended, Ok(None)), "the server ended: {ended:?}");
            std::thread::sleep(PAUSE);
        }
        panic!("the server was not ready within {PATIENCE:?}");
    }

    /// The scheme, address and port before any path.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it answers: the status and the JSON body.
    ///
    /// # Panics
    ///
    /// It does not answer.
    #[must_use]
    pub fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let answer = self.request("POST", path, &body.to_string());
        let (status, body) = answer.unwrap_or_else(|error| panic!("no answer: {error}"));
        (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }

    fn request(&self, method: &str, path: &str, body: &str) -> std::io::Result<(u16, String)> {
        let mut stream = TcpStream::connect_timeout(&self.address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0);
        Ok((status, body.to_owned()))
    }
}
