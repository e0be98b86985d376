//! The listener and its connections.

use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::mpsc::{Sender, channel};

use super::server::{self, ServerState};

const ENDLESS_HEADER_LINE: &[u8] =
    b"x-endless: endless endless endless endless endless endless endless\r\n";

/// Number of header lines per write.
const LINES_PER_WRITE: usize = 64;

/// A fault of the connection below HTTP.
#[derive(Clone, Copy, Debug)]
pub(super) enum ConnectionFault {
    /// A reset.
    Reset,
    /// A response head without an end.
    EndlessHeaders,
}

#[derive(Clone, Debug)]
pub(super) struct ConnectionFaultSender(Sender<ConnectionFault>);

impl ConnectionFaultSender {
    /// Injects a fault; the caller sends no response.
    pub(super) async fn inject(&self, trick: ConnectionFault) {
        // The connection may have closed already.
        let _ = self.0.send(trick).await;
    }
}

#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener, String),
    Unix(UnixListener, String),
}

/// Listens on a free local port, or at a path.
pub(super) async fn bind(socket: Option<&Path>) -> io::Result<Listener> {
    if let Some(path) = socket {
        return Ok(Listener::Unix(UnixListener::bind(path)?, path.display().to_string()));
    }
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let origin = format!("http://{}", listener.local_addr()?);
    Ok(Listener::Tcp(listener, origin))
}

impl Listener {
    pub(super) fn origin(&self) -> String {
        match self {
            Self::Tcp(_, origin) | Self::Unix(_, origin) => origin.clone(),
        }
    }

    /// Serves every connection until the drop of the future.
    pub(super) async fn serve_connections(self, served: Arc<ServerState>) {
        loop {
            let accepted = match &self {
                Self::Tcp(listener, _) => listener.accept().await.map(|(stream, _)| {
                    // Small events leave at once; a failure of the option does no harm.
                    let _ = stream.set_nodelay(true);
                    served.tasks().spawn(serve_connection(Arc::clone(&served), stream));
                }),
                Self::Unix(listener, _) => listener.accept().await.map(|(stream, _)| {
                    served.tasks().spawn(serve_connection(Arc::clone(&served), stream));
                }),
            };
            if accepted.is_err() {
                // For example too many open descriptors; the next accept may succeed.
                tokio::task::yield_now().await;
            }
        }
    }
}

/// A connection that can be reset.
trait ResettableStream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Resets the connection, as the exit of a process does.
    fn reset(self);
}

impl ResettableStream for TcpStream {
    fn reset(self) {
        // If the option fails, the connection is closed without a reset.
        let _ = self.set_zero_linger();
    }
}

impl ResettableStream for UnixStream {
    fn reset(self) {}
}

async fn serve_connection(served: Arc<ServerState>, stream: impl ResettableStream) {
    let (sender, mut tricks) = channel(1);
    let mut reset = served.reset_signal();
    let service = service_fn(|request| {
        server::respond(Arc::clone(&served), ConnectionFaultSender(sender.clone()), request)
    });
    let mut http = http1::Builder::new();
    let mut connection = http
        .max_buf_size(MAX_ENDLESS_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let trick = tokio::select! {
        _ = &mut connection => return,
        _ = reset.changed() => ConnectionFault::Reset,
        trick = tricks.recv() => trick.unwrap_or(ConnectionFault::Reset),
    };
    let Some(parts) = connection.into_parts() else { return };
    let stream = parts.io.into_inner();
    match trick {
        ConnectionFault::Reset => stream.reset(),
        ConnectionFault::EndlessHeaders => write_endless_headers(stream).await,
    }
}

/// Maximum size of an endless request head in bytes.
const MAX_ENDLESS_HEAD_BYTES: usize = 1024 * 1024;

async fn write_endless_headers(mut stream: impl ResettableStream) {
    let lines = Bytes::from(ENDLESS_HEADER_LINE.repeat(LINES_PER_WRITE));
    let mut sent = stream.write_all(b"HTTP/1.1 200 OK\r\n").await;
    while sent.is_ok() {
        sent = stream.write_all(&lines).await;
    }
}
