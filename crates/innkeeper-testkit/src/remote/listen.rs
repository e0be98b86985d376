//! Listening, and what becomes of each connection.

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

use super::serve::{self, Served};

/// A header line of those without end.
const HEADER_LINE: &[u8] =
    b"x-endless: endless endless endless endless endless endless endless\r\n";

/// Header lines written at once.
const LINES: usize = 64;

/// What is done to a connection behind the back of its HTTP.
#[derive(Clone, Copy, Debug)]
pub(super) enum Trick {
    /// It is reset.
    Reset,
    /// It gets the head of a response without end.
    EndlessHead,
}

/// Where tricks for one connection are asked for.
#[derive(Clone, Debug)]
pub(super) struct Tricks(Sender<Trick>);

impl Tricks {
    /// Asks for a trick; whoever asks for one answers nothing itself.
    pub(super) async fn play(&self, trick: Trick) {
        // A connection that is gone needs none.
        let _ = self.0.send(trick).await;
    }
}

/// Where a server listens.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener, String),
    Unix(UnixListener, String),
}

/// Listens on a free port of this machine, or at a path.
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

    /// Serves every connection until this is dropped.
    pub(super) async fn accept(self, served: Arc<Served>) {
        loop {
            let accepted = match &self {
                Self::Tcp(listener, _) => listener.accept().await.map(|(stream, _)| {
                    // Small events are to leave at once; without that they leave all the same.
                    drop(stream.set_nodelay(true));
                    served.tasks().spawn(connection(Arc::clone(&served), stream));
                }),
                Self::Unix(listener, _) => listener.accept().await.map(|(stream, _)| {
                    served.tasks().spawn(connection(Arc::clone(&served), stream));
                }),
            };
            if accepted.is_err() {
                // Out of descriptors, for one: others may become free.
                tokio::task::yield_now().await;
            }
        }
    }
}

/// A connection that can be broken off.
trait Breakable: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Ends it as a program does that dies.
    fn reset(self);
}

impl Breakable for TcpStream {
    fn reset(self) {
        // Without it the connection is closed instead, which is all that can be done.
        drop(self.set_zero_linger());
    }
}

impl Breakable for UnixStream {
    fn reset(self) {}
}

async fn connection(served: Arc<Served>, stream: impl Breakable) {
    let (sender, mut tricks) = channel(1);
    let mut broken = served.broken();
    let service =
        service_fn(|request| serve::answer(Arc::clone(&served), Tricks(sender.clone()), request));
    let mut http = http1::Builder::new();
    let mut connection = http
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let trick = tokio::select! {
        _ = &mut connection => return,
        _ = broken.changed() => Trick::Reset,
        trick = tricks.recv() => trick.unwrap_or(Trick::Reset),
    };
    let Some(parts) = connection.into_parts() else { return };
    let stream = parts.io.into_inner();
    match trick {
        Trick::Reset => stream.reset(),
        Trick::EndlessHead => endless_head(stream).await,
    }
}

/// Bytes of a request's head that are taken.
const LONGEST_HEAD: usize = 1024 * 1024;

async fn endless_head(mut stream: impl Breakable) {
    let lines = Bytes::from(HEADER_LINE.repeat(LINES));
    let mut sent = stream.write_all(b"HTTP/1.1 200 OK\r\n").await;
    while sent.is_ok() {
        sent = stream.write_all(&lines).await;
    }
}
