//! Serves a model that is in place: its server as a child with one thread, on this machine only.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use innkeeper_host::HttpClientError;
use tokio::process::Child;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::Model;
use super::cpu::{self, Lack};
use super::http::Local;
use super::leash::Leash;
use super::tail::Tail;

/// How long the server may take to be ready; on a busy machine it took six seconds.
const START: Duration = Duration::from_secs(60);
/// How often it is asked whether it is.
const PAUSE: Duration = Duration::from_millis(50);
/// How long one such answer may take.
const ANSWER: Duration = Duration::from_secs(1);
/// Lines of what the server said that are kept in an error.
const SAID: usize = 8;

/// How many tokens a conversation may have: all that the model was made for.
const CONTEXT: &str = "8192";

/// With tools: the template in the model's file has none, and the server would drop them.
const TEMPLATE: &str = include_str!("chat-template.jinja");

/// A model being served. Dropped, the server is killed; nothing is left of it either way.
#[derive(Debug)]
pub(crate) struct Serving {
    child: Child,
    port: u16,
    name: &'static str,
    said: Tail,
    reader: JoinHandle<()>,
}

/// A model is not served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    #[error(transparent)]
    Unable(#[from] Lack),
    #[error("no port of this machine is free")]
    NoPort { source: io::Error },
    #[error("port {port} of this machine cannot be listened at")]
    Port { port: u16, source: io::Error },
    #[error("the server of `{name}` cannot be started")]
    Start { name: &'static str, source: io::Error },
    #[error("the server of `{name}` cannot be asked")]
    Client { name: &'static str, source: HttpClientError },
    /// Before it was ready, or later by itself.
    #[error("the server of `{name}` ended with {status}")]
    Ended { name: &'static str, status: ExitStatus, said: Vec<String> },
    #[error("the server of `{name}` was not ready within {} s", START.as_secs())]
    Late { name: &'static str, said: Vec<String> },
    #[error("port {port} answers, and is not the server of `{name}`")]
    Stranger { name: &'static str, port: u16 },
}

impl Model {
    /// Serves it on a port of this machine, or on a free one, and waits until it answers. Has to be
    /// called within a runtime; the server ends with the thread that called it.
    ///
    /// # Errors
    ///
    /// This machine cannot run it, or it did not come up in time; then nothing of it is left.
    pub(crate) async fn serve(&self, port: Option<u16>) -> Result<Serving, ServeError> {
        cpu::able()?;
        let start = |source| ServeError::Start { name: self.name(), source };
        self.serve_on(port, &Leash::this_program().map_err(start)?).await
    }

    pub(super) async fn serve_on(
        &self,
        port: Option<u16>,
        leash: &Leash,
    ) -> Result<Serving, ServeError> {
        let name = self.name();
        let client = Local::new(ANSWER).map_err(|source| ServeError::Client { name, source })?;
        let port = free_port(port)?;
        let mut command = leash.command(self.program().as_os_str());
        command
            .arg("--model")
            .arg(self.weights())
            .args(["--alias", name, "--host", "127.0.0.1", "--port", &port.to_string()])
            .args(["--device", "none", "--threads", "1", "--threads-batch", "1", "--parallel", "1"])
            .args(["--ctx-size", CONTEXT, "--no-ui", "--jinja", "--chat-template", TEMPLATE])
            // It would take options from there.
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|source| ServeError::Start { name, source })?;
        let said = Tail::default();
        let (stderr, tail) = (child.stderr.take(), said.clone());
        #[expect(clippy::disallowed_methods, reason = "owned by `Serving`, which ends it")]
        let reader = tokio::spawn(async move { tail.follow_any(stderr).await });
        let mut serving = Serving { child, port, name, said, reader };
        serving.ready(&client).await?;
        Ok(serving)
    }
}

/// The wanted port or any, if nobody listens there; somebody may before the server does, which then
/// ends.
fn free_port(wanted: Option<u16>) -> Result<u16, ServeError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, wanted.unwrap_or(0)));
    let bound = listener.and_then(|listener| listener.local_addr());
    bound.map(|address| address.port()).map_err(|source| match wanted {
        Some(port) => ServeError::Port { port, source },
        None => ServeError::NoPort { source },
    })
}

impl Serving {
    /// What its users call the base URL of a service that is compatible with OpenAI's.
    pub(crate) fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// The name to ask for the model by.
    pub(crate) fn model_name(&self) -> &'static str {
        self.name
    }

    /// The process of the server, while it runs.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits until the server ends by itself, which it has no reason to.
    pub(crate) async fn ended(&mut self) -> ServeError {
        match self.child.wait().await {
            Ok(status) => self.over(status).await,
            Err(source) => ServeError::Start { name: self.name, source },
        }
    }

    /// Kills the server and waits until it is gone.
    ///
    /// # Errors
    ///
    /// It cannot be killed.
    pub(crate) async fn stop(mut self) -> io::Result<()> {
        self.child.kill().await
    }

    async fn ready(&mut self, client: &Local) -> Result<(), ServeError> {
        let end = Instant::now() + START;
        while Instant::now() < end {
            let ended = self.child.try_wait();
            let ended = ended.map_err(|source| ServeError::Start { name: self.name, source })?;
            if let Some(status) = ended {
                return Err(self.over(status).await);
            }
            if client.get(self.port, "/health").await.is_some() {
                return self.known(client).await;
            }
            sleep(PAUSE).await;
        }
        Err(ServeError::Late { name: self.name, said: self.said.lines(SAID) })
    }

    /// Whoever has the port may answer: only ours knows the model by its name.
    async fn known(&mut self, client: &Local) -> Result<(), ServeError> {
        let models = client.get(self.port, "/v1/models").await.unwrap_or_default();
        let listed = models["data"].as_array().into_iter().flatten();
        if listed.into_iter().any(|model| model["id"] == self.name) {
            return Ok(());
        }
        Err(ServeError::Stranger { name: self.name, port: self.port })
    }

    /// It ended; its last words may still be in the pipe.
    async fn over(&mut self, status: ExitStatus) -> ServeError {
        if !self.reader.is_finished() {
            // Nobody else holds the pipe, so that it ends at once; were it held, the words so far do.
            drop(tokio::time::timeout(ANSWER, &mut self.reader).await);
        }
        ServeError::Ended { name: self.name, status, said: self.said.lines(SAID) }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.reader.abort();
    }
}
