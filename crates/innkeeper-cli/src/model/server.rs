//! Serves an installed model with a child process on a local port.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use innkeeper_host::HttpClientError;
use tokio::process::Child;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::InstalledModel;
use super::cpu::{self, UnsupportedPlatform};
use super::local_http::LocalHttpClient;
use super::output_tail::OutputTail;
use super::parent_death::ParentDeathLink;

/// Timeout of the server start; on a busy machine, the start took six seconds.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(60);
/// Interval between two readiness probes.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Timeout of a readiness probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of stderr lines in an error.
const MAX_STDERR_LINES: usize = 8;

/// Context size in tokens: the maximum of the model.
const CONTEXT_TOKENS: &str = "8192";

/// A chat template with tools: the template in the model's file has none, so the server would drop
/// the tools.
const CHAT_TEMPLATE: &str = include_str!("chat-template.jinja");

/// A running model server. Dropping the handle kills the server.
#[derive(Debug)]
pub(crate) struct ModelServer {
    child: Child,
    port: u16,
    name: &'static str,
    stderr_tail: OutputTail,
    stderr_reader: JoinHandle<()>,
}

/// Why a model is not served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    #[error(transparent)]
    UnsupportedPlatform(#[from] UnsupportedPlatform),
    #[error("no local port is free")]
    NoFreePort { source: io::Error },
    #[error("cannot listen on port {port}")]
    PortUnavailable { port: u16, source: io::Error },
    #[error("cannot start the model server of `{name}`")]
    Spawn { name: &'static str, source: io::Error },
    #[error("cannot connect to the model server of `{name}`")]
    HttpClient { name: &'static str, source: HttpClientError },
    /// The server exited, before or after it was ready.
    #[error("the model server of `{name}` exited: {status}")]
    Exited { name: &'static str, status: ExitStatus, stderr_lines: Vec<String> },
    #[error("the model server of `{name}` was not ready within {} s", STARTUP_TIMEOUT.as_secs())]
    StartupTimeout { name: &'static str, stderr_lines: Vec<String> },
    #[error("a server without the model `{name}` responds on port {port}")]
    UnexpectedServer { name: &'static str, port: u16 },
}

impl InstalledModel {
    /// Serves the model on the given port, or on a free port, and waits until the server is ready.
    /// Must be called in a runtime; the server dies with the calling thread.
    ///
    /// # Errors
    ///
    /// This machine cannot run the server, or the server did not become ready in time; the server
    /// is killed.
    pub(crate) async fn serve(&self, port: Option<u16>) -> Result<ModelServer, ServeError> {
        cpu::check_supported()?;
        self.serve_with_link(
            port,
            &ParentDeathLink::this_program()
                .map_err(|source| ServeError::Spawn { name: self.name(), source })?,
        )
        .await
    }

    pub(super) async fn serve_with_link(
        &self,
        port: Option<u16>,
        death_link: &ParentDeathLink,
    ) -> Result<ModelServer, ServeError> {
        let name = self.name();
        let client = LocalHttpClient::new(PROBE_TIMEOUT)
            .map_err(|source| ServeError::HttpClient { name, source })?;
        let port = free_port(port)?;
        let absolute = |path: PathBuf| {
            std::path::absolute(path).map_err(|source| ServeError::Spawn { name, source })
        };
        let mut command = death_link.command(absolute(self.server_path())?.as_os_str());
        command
            .arg("--model")
            .arg(absolute(self.weights_path())?)
            .args(["--alias", name, "--host", "127.0.0.1", "--port", &port.to_string()])
            .args(["--device", "none", "--threads", "1", "--threads-batch", "1", "--parallel", "1"])
            .args([
                "--ctx-size",
                CONTEXT_TOKENS,
                "--no-ui",
                "--jinja",
                "--chat-template",
                CHAT_TEMPLATE,
            ])
            // The server reads options from the environment.
            .env_clear()
            // The server loads libraries from its working directory.
            .current_dir(absolute(self.folder.clone())?)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|source| ServeError::Spawn { name, source })?;
        let stderr_tail = OutputTail::default();
        let stderr = child.stderr.take();
        let tail = stderr_tail.clone();
        #[expect(clippy::disallowed_methods, reason = "`ModelServer` owns and stops this task")]
        let stderr_reader = tokio::spawn(async move { tail.follow_optional(stderr).await });
        let mut server = ModelServer { child, port, name, stderr_tail, stderr_reader };
        server.wait_ready(&client).await?;
        Ok(server)
    }
}

/// Returns the requested port or a free port. Another process may take the port before the server
/// starts; then the server exits.
fn free_port(requested: Option<u16>) -> Result<u16, ServeError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, requested.unwrap_or(0)));
    let bound = listener.and_then(|listener| listener.local_addr());
    bound.map(|address| address.port()).map_err(|source| match requested {
        Some(port) => ServeError::PortUnavailable { port, source },
        None => ServeError::NoFreePort { source },
    })
}

impl ModelServer {
    /// Returns the base URL of the OpenAI-compatible API.
    pub(crate) fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    pub(crate) fn model_name(&self) -> &'static str {
        self.name
    }

    /// Returns the process id while the server runs.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits until the server exits, which is always unexpected.
    pub(crate) async fn wait(&mut self) -> ServeError {
        match self.child.wait().await {
            Ok(status) => self.exit_error(status).await,
            Err(source) => ServeError::Spawn { name: self.name, source },
        }
    }

    /// Kills the server and waits for its exit.
    ///
    /// # Errors
    ///
    /// The process cannot be killed.
    pub(crate) async fn stop(mut self) -> io::Result<()> {
        self.child.kill().await
    }

    async fn wait_ready(&mut self, client: &LocalHttpClient) -> Result<(), ServeError> {
        let deadline = Instant::now() + STARTUP_TIMEOUT;
        while Instant::now() < deadline {
            let ended = self.child.try_wait();
            let ended = ended.map_err(|source| ServeError::Spawn { name: self.name, source })?;
            if let Some(status) = ended {
                return Err(self.exit_error(status).await);
            }
            if client.get_json(self.port, "/health").await.is_some() {
                return self.verify_model(client).await;
            }
            sleep(POLL_INTERVAL).await;
        }
        Err(ServeError::StartupTimeout {
            name: self.name,
            stderr_lines: self.stderr_tail.last_lines(MAX_STDERR_LINES),
        })
    }

    /// Verifies that the server lists the model, because another process may use the port.
    async fn verify_model(&mut self, client: &LocalHttpClient) -> Result<(), ServeError> {
        let models = client.get_json(self.port, "/v1/models").await.unwrap_or_default();
        let entries = models["data"].as_array().into_iter().flatten();
        if entries.into_iter().any(|model| model["id"] == self.name) {
            return Ok(());
        }
        Err(ServeError::UnexpectedServer { name: self.name, port: self.port })
    }

    /// Returns the error for an exited server; its last lines may still be in the pipe.
    async fn exit_error(&mut self, status: ExitStatus) -> ServeError {
        if !self.stderr_reader.is_finished() {
            // Only the server has the pipe, so the read ends at once. If another process has the
            // pipe, the lines so far are used.
            let _ = tokio::time::timeout(PROBE_TIMEOUT, &mut self.stderr_reader).await;
        }
        ServeError::Exited {
            name: self.name,
            status,
            stderr_lines: self.stderr_tail.last_lines(MAX_STDERR_LINES),
        }
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.stderr_reader.abort();
    }
}
