//! A published proxy that offers Ollama's API for the llama.cpp server.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use tempfile::TempDir;

/// Timeout of the start on a loaded machine: the proxy starts a database first.
const START_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A running proxy, which is killed on drop.
pub(super) struct OllamaProxy {
    child: Child,
    port: u16,
    _home: TempDir,
}

impl Drop for OllamaProxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl OllamaProxy {
    /// Starts the proxy in front of this server. An error says why the proxy cannot run here.
    #[expect(clippy::disallowed_methods, reason = "the test's own server")]
    pub(super) fn start(origin: &str) -> Result<Self, String> {
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-servers");
        let program = target.join("ollambda/bin/ollambda");
        if !program.is_file() {
            return Err(
                "no `ollambda` here: it needs Python 3.13 (`cargo xtask eval-local-model`)"
                    .to_owned(),
            );
        }
        let home = tempfile::tempdir().unwrap();
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let child = std::process::Command::new("setpriv")
            .args(["--pdeathsig", "KILL"])
            .arg(program.canonicalize().unwrap())
            .current_dir(home.path())
            .env("HOME", home.path())
            .env("OLLAMBDA_HOST", "127.0.0.1")
            .env("OLLAMBDA_PORT", port.to_string())
            .env("OLLAMBDA_PROXY_PORT", origin.rsplit(':').next().unwrap())
            .env("OLLAMBDA_STORAGE_DIR", home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut proxy = Self { child, port, _home: home };
        for _ in 0..START_TIMEOUT.as_millis() / POLL_INTERVAL.as_millis() {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
                return Ok(proxy);
            }
            let ended = proxy.child.try_wait().unwrap();
            assert!(ended.is_none(), "the proxy ended: {ended:?}");
            std::thread::sleep(POLL_INTERVAL);
        }
        panic!("the proxy did not listen within {START_TIMEOUT:?}");
    }

    pub(super) fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}
