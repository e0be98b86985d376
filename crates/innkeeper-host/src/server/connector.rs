//! Connectors: how an application connects the host to servers in its own process.

use std::fmt;
use std::future::Future;
use std::io;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use indexmap::IndexMap;
use innkeeper_config::{Config, ConfigError};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::error::{ConnectError, ConnectorError};

/// A stream to a server, with MCP messages as lines of JSON in both directions.
///
/// The end of the stream makes the server unavailable. The host closes the server's input by a
/// shutdown of the stream, then drops the stream.
pub struct ServerStream(Pin<Box<dyn DuplexStream>>);

trait DuplexStream: AsyncRead + AsyncWrite + Send {}

impl<S: AsyncRead + AsyncWrite + Send> DuplexStream for S {}

impl ServerStream {
    /// Creates a stream from one end of [`tokio::io::duplex`], a socket, or a reader and a writer
    /// joined by [`tokio::io::join`].
    pub fn new(stream: impl AsyncRead + AsyncWrite + Send + 'static) -> Self {
        Self(Box::pin(stream))
    }
}

impl fmt::Debug for ServerStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerStream").finish_non_exhaustive()
    }
}

impl AsyncRead for ServerStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_read(cx, buffer)
    }
}

impl AsyncWrite for ServerStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.as_mut().poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_shutdown(cx)
    }
}

/// The future of a connector: a stream to a new server, or an error.
pub type ConnectFuture = Pin<Box<dyn Future<Output = Result<ServerStream, ConnectError>> + Send>>;

/// Starts a server in the process of the application, at each start of the server.
///
/// Any `Fn() -> impl Future<Output = Result<S, ConnectError>>` implements this trait, where `S` is a
/// stream as in [`ServerStream::new`]. `initTimeout` limits the future and the handshake together;
/// the host drops the future at the end of the limit. The start fails with the error or the panic
/// of a connector; the host repeats a start after an error. A connector must not block its thread.
///
/// # Examples
///
/// A server that runs in a task, and a host that calls its tool:
///
/// ```
/// use innkeeper_host::{Config, Host};
/// use serde_json::{Value, json};
/// use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex, split};
///
/// /// Answers each request; ends when the host closes its end.
/// async fn serve(stream: DuplexStream) -> std::io::Result<()> {
///     let (reader, mut writer) = split(stream);
///     let mut lines = BufReader::new(reader).lines();
///     while let Some(line) = lines.next_line().await? {
///         let request: Value = serde_json::from_str(&line)?;
///         let Some(id) = request.get("id") else { continue };
///         let mut response = json!({"jsonrpc": "2.0", "id": id});
///         match request["method"].as_str() {
///             Some("initialize") => response["result"] = json!({
///                 "protocolVersion": "2025-11-25",
///                 "capabilities": {"tools": {}},
///                 "serverInfo": {"name": "greeter", "version": "1.0.0"},
///             }),
///             Some("tools/list") => response["result"] = json!({
///                 "tools": [{"name": "greet", "inputSchema": {
///                     "type": "object",
///                     "properties": {"name": {"type": "string"}},
///                     "required": ["name"],
///                 }}],
///             }),
///             Some("tools/call") => {
///                 let name = request["params"]["arguments"]["name"].as_str().unwrap_or_default();
///                 let text = format!("Hello, {name}.");
///                 response["result"] = json!({"content": [{"type": "text", "text": text}]});
///             }
///             _ => response["error"] = json!({"code": -32601, "message": "method not found"}),
///         }
///         writer.write_all(format!("{response}\n").as_bytes()).await?;
///     }
///     Ok(())
/// }
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let connector = || async {
///     let (stream, server_stream) = duplex(64 * 1024);
///     tokio::spawn(serve(server_stream));
///     Ok(stream)
/// };
/// let host = Host::builder(Config::default()).connector("greeter", connector).start().await?;
/// let result = host.call_tool("greeter.greet", json!({"name": "Ada"})).await?;
/// assert!(result.raw().get().contains("Hello, Ada."));
///
/// host.restart_server("greeter").await?;
/// assert!(host.shutdown().await.is_clean());
/// # Ok(())
/// # }
/// ```
pub trait Connector: Send + Sync + 'static {
    /// Starts a server and returns the future of the host's stream to the server.
    fn connect(&self) -> ConnectFuture;
}

impl<F, A, S> Connector for F
where
    F: Fn() -> A + Send + Sync + 'static,
    A: Future<Output = Result<S, ConnectError>> + Send + 'static,
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    fn connect(&self) -> ConnectFuture {
        let connecting = self();
        Box::pin(async { connecting.await.map(ServerStream::new) })
    }
}

/// The source of the streams to one in-process server.
pub(crate) enum ConnectorSource {
    /// A new stream for each start.
    Connector(Box<dyn Connector>),
    /// One stream, `None` after the first start.
    Stream(Mutex<Option<ServerStream>>),
}

impl ConnectorSource {
    /// Returns whether another start can succeed after a start.
    pub(crate) fn is_repeatable(&self) -> bool {
        match self {
            Self::Connector(_) => true,
            Self::Stream(_) => false,
        }
    }

    /// Returns a stream to a new server; the caller limits the wait.
    pub(crate) fn connect(&self) -> BoxFuture<'_, Result<ServerStream, ConnectorError>> {
        Box::pin(async {
            match self {
                Self::Connector(connector) => {
                    // The call can panic like its future.
                    let connecting = AssertUnwindSafe(async { connector.connect().await });
                    let connected = connecting.catch_unwind().await;
                    connected.map_err(|_| ConnectorError::Panicked)?.map_err(ConnectorError::Failed)
                }
                Self::Stream(stream) => {
                    let stream = stream.lock().unwrap_or_else(PoisonError::into_inner).take();
                    stream.ok_or(ConnectorError::AlreadyUsed)
                }
            }
        })
    }
}

impl fmt::Debug for ConnectorSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connector(_) => "Connector",
            Self::Stream(_) => "Stream",
        })
    }
}

/// The in-process servers of a host by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connectors(IndexMap<String, Arc<ConnectorSource>>);

impl Connectors {
    /// Adds a server, in place of an earlier server with this name.
    pub(crate) fn insert(&mut self, name: String, source: ConnectorSource) {
        self.0.insert(name, Arc::new(source));
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<ConnectorSource>> {
        self.0.get(name)
    }

    /// Adds each server without an entry to the configuration, with default settings.
    ///
    /// # Errors
    ///
    /// Returns each invalid name, and each name whose entry is not of the type `in-process`.
    pub(crate) fn complete(&self, config: &mut Config) -> Result<(), ConfigError> {
        let added = self.0.keys().filter_map(|name| config.add_in_process(name).err());
        let problems: Vec<_> = added.collect();
        if problems.is_empty() { Ok(()) } else { Err(ConfigError(problems)) }
    }
}
