//! How `innkeeper serve --stdio` joins the run of an agent.
//!
//! The first line of `serve` has its arguments, and that of the run says whether it records or
//! replays. To record, `serve` sends its configuration, then each MCP line that passes. An empty line
//! confirms each of them before the line goes on, so that everything is recorded in the order in which
//! the agent saw it. To replay, MCP lines follow in both directions.

use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use innkeeper_agent::golden::KnownSecret;
use innkeeper_host::Environment;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite,
    AsyncWriteExt as _, BufReader,
};
use tokio::net::UnixStream;
use tokio::sync::Mutex;

/// How the name of a run's directory begins. It stands in `PATH`.
pub(super) const DIRECTORY_PREFIX: &str = "innkeeper-run-";

pub(super) const SOCKET_NAME: &str = "socket";

/// Maximum size of a line in bytes, as for a recording.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// The first line of `serve`.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Greeting {
    pub(super) arguments: Vec<String>,
}

/// What a run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RunMode {
    Record,
    Replay,
}

/// The first line of the run.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Welcome {
    pub(super) mode: RunMode,
}

/// The configuration of a recorded `serve`.
#[derive(Deserialize, Serialize)]
pub(super) struct ServedConfiguration {
    /// The servers as the user wrote them.
    pub(super) server_config: Box<RawValue>,
    pub(super) secrets: Vec<ServedSecret>,
}

/// A value that must not be in the recording.
#[derive(Deserialize, Serialize)]
pub(super) struct ServedSecret {
    pub(super) name: String,
    pub(super) value: String,
}

/// An MCP line on its way.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum PassedLine {
    Client(Box<RawValue>),
    Server(Box<RawValue>),
}

/// The run that `serve` has joined.
#[derive(Debug)]
pub(crate) enum JoinedRun {
    Recorded(RecordedPipe),
    Replayed(BufReader<UnixStream>),
}

/// Joins the run of the agent that started this program; `None` if there is no run.
///
/// # Errors
///
/// The run does not answer.
pub(crate) async fn join(environment: &Environment) -> io::Result<Option<JoinedRun>> {
    let Some(directory) = run_directory(environment) else { return Ok(None) };
    let mut stream = BufReader::new(UnixStream::connect(directory.join(SOCKET_NAME)).await?);
    // The name of the program differs from machine to machine.
    let arguments = std::env::args().skip(1).collect();
    write_line(&mut stream, &Greeting { arguments }).await?;
    let welcome = read_line(&mut stream).await?;
    let Welcome { mode } = welcome.ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(Some(match mode {
        RunMode::Record => JoinedRun::Recorded(RecordedPipe { stream }),
        RunMode::Replay => JoinedRun::Replayed(stream),
    }))
}

/// Returns an environment for servers: one of them may be `innkeeper serve --stdio` too, and is no
/// client's server of the run.
pub(crate) fn without_run(environment: Environment) -> Environment {
    let path = environment.get("PATH").unwrap_or_default();
    let others = std::env::split_paths(path).filter(|directory| !is_run_directory(directory));
    // What was split can be joined.
    match std::env::join_paths(others) {
        Ok(path) => environment.with_variable("PATH", path),
        Err(_) => environment,
    }
}

fn is_run_directory(directory: &Path) -> bool {
    let name = directory.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(DIRECTORY_PREFIX))
}

/// Returns the directory of the run in `PATH`, if only its user can open it.
fn run_directory(environment: &Environment) -> Option<PathBuf> {
    let path = environment.get("PATH")?;
    let directory = std::env::split_paths(path).find(|directory| is_run_directory(directory))?;
    let metadata = directory.symlink_metadata().ok()?;
    let is_own = metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw();
    let is_private = metadata.permissions().mode() & 0o077 == 0;
    (is_own && is_private && directory.join(SOCKET_NAME).exists()).then_some(directory)
}

/// The connection to a run that records.
#[derive(Debug)]
pub(crate) struct RecordedPipe {
    stream: BufReader<UnixStream>,
}

impl RecordedPipe {
    /// Tells the run what is served.
    ///
    /// # Errors
    ///
    /// The run has ended.
    pub(crate) async fn configure(
        &mut self,
        server_config: String,
        secrets: Vec<KnownSecret>,
    ) -> io::Result<()> {
        let secrets =
            secrets.into_iter().map(|KnownSecret { name, value, .. }| ServedSecret { name, value });
        let configuration = ServedConfiguration {
            server_config: RawValue::from_string(server_config)?,
            secrets: secrets.collect(),
        };
        self.report(&configuration).await
    }

    async fn report(&mut self, line: &impl Serialize) -> io::Result<()> {
        write_line(&mut self.stream, line).await?;
        let mut confirmation = [0];
        self.stream.read_exact(&mut confirmation).await.map(drop)
    }

    /// Passes the lines of a client on, and reports each before. Ends with the input or the run.
    pub(crate) async fn pass_client_lines(
        pipe: Arc<Mutex<Self>>,
        from: impl AsyncRead + Unpin,
        to: impl AsyncWrite + Unpin,
    ) -> io::Result<()> {
        Self::pass_lines(pipe, from, to, PassedLine::Client).await
    }

    /// Passes the lines for a client on, like [`Self::pass_client_lines`].
    pub(crate) async fn pass_server_lines(
        pipe: Arc<Mutex<Self>>,
        from: impl AsyncRead + Unpin,
        to: impl AsyncWrite + Unpin,
    ) -> io::Result<()> {
        Self::pass_lines(pipe, from, to, PassedLine::Server).await
    }

    async fn pass_lines(
        pipe: Arc<Mutex<Self>>,
        from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
        passed: fn(Box<RawValue>) -> PassedLine,
    ) -> io::Result<()> {
        let mut from = BufReader::new(from);
        while let Some(line) = next_line(&mut from).await? {
            // What is no JSON is no message, and the gateway says so.
            if let Ok(message) = serde_json::from_slice(&line) {
                pipe.lock().await.report(&passed(message)).await?;
            }
            to.write_all(&line).await?;
            to.flush().await?;
        }
        Ok(())
    }
}

pub(super) async fn write_line(
    writer: &mut (impl AsyncWrite + Unpin),
    line: &impl Serialize,
) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    writer.write_all(&text).await?;
    writer.flush().await
}

/// Reads a value from one line; `None` at the end of the stream.
pub(super) async fn read_line<T: DeserializeOwned>(
    reader: &mut (impl AsyncBufRead + Unpin),
) -> io::Result<Option<T>> {
    match next_line(reader).await? {
        Some(line) if line.ends_with(b"\n") => Ok(Some(serde_json::from_slice(&line)?)),
        // The other end was killed while it wrote.
        Some(_) | None => Ok(None),
    }
}

/// Reads one line with its end; `None` at the end of the stream.
pub(super) async fn next_line(
    reader: &mut (impl AsyncBufRead + Unpin),
) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let count = reader.take(MAX_LINE_BYTES).read_until(b'\n', &mut line).await?;
    match count as u64 {
        0 => Ok(None),
        MAX_LINE_BYTES => {
            let text = format!("a line is longer than {} MiB", MAX_LINE_BYTES >> 20);
            Err(io::Error::new(io::ErrorKind::InvalidData, text))
        }
        _ => Ok(Some(line)),
    }
}
