//! The socket that `innkeeper serve --stdio` joins.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tempfile::TempDir;
use tokio::io::BufReader;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::SetOnce;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::join::{DIRECTORY_PREFIX, Greeting, SOCKET_NAME, read_line};

/// Maximum size in bytes of the path of the directory above.
const MAX_PARENT_BYTES: usize = 70;

/// Time for the connections to end after the agent.
const DRAIN_TIME: Duration = Duration::from_secs(10);

/// What serves the connections of `serve`.
pub(super) trait ToolsSide: Send + Sync + 'static {
    /// Serves a connection with these arguments to its end.
    fn serve(
        self: Arc<Self>,
        arguments: Vec<String>,
        stream: BufReader<UnixStream>,
    ) -> BoxFuture<'static, io::Result<()>>;
}

/// The directory of a run, with its socket.
#[derive(Debug)]
pub(super) struct ToolsSocket {
    directory: TempDir,
    listener: UnixListener,
}

impl ToolsSocket {
    /// Creates the directory, which only the user can open.
    pub(super) fn bind() -> io::Result<Self> {
        // The path of a socket has about a hundred bytes at most.
        let parent = match std::env::temp_dir() {
            long if long.as_os_str().len() > MAX_PARENT_BYTES => PathBuf::from("/tmp"),
            parent => parent,
        };
        let mut builder = tempfile::Builder::new();
        let permissions = std::fs::Permissions::from_mode(0o700);
        let builder = builder.prefix(DIRECTORY_PREFIX).permissions(permissions);
        let directory = builder.tempdir_in(parent)?;
        let listener = UnixListener::bind(directory.path().join(SOCKET_NAME))?;
        symlink(std::env::current_exe()?, directory.path().join("innkeeper"))?;
        Ok(Self { directory, listener })
    }

    /// Returns `PATH` with the directory in the first place.
    pub(super) fn search_path(&self) -> io::Result<OsString> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let others = std::env::split_paths(&path);
        let paths = [self.directory.path().to_owned()].into_iter().chain(others);
        std::env::join_paths(paths).map_err(io::Error::other)
    }

    /// Serves until `end` is set, then the open connections for a short time.
    pub(super) async fn serve<S: ToolsSide>(self, side: Arc<S>, end: Arc<SetOnce<()>>) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                _ = end.wait() => break,
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept() => {
                    if let Ok((stream, _)) = accepted && is_permitted(&stream) {
                        connections.spawn(serve_connection(stream, side.clone()));
                    }
                }
            }
        }
        drop(self);
        let draining = async { while connections.join_next().await.is_some() {} };
        // The drop of the set ends the others.
        timeout(DRAIN_TIME, draining).await.ok();
    }
}

/// Returns whether the process at the other end has the same user.
fn is_permitted(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own)
}

async fn serve_connection<S: ToolsSide>(stream: UnixStream, side: Arc<S>) {
    let mut stream = BufReader::new(stream);
    let served = async {
        match read_line(&mut stream).await? {
            Some(Greeting { arguments }) => side.serve(arguments, stream).await,
            None => Ok(()),
        }
    };
    if let Err(error) = served.await {
        tracing::debug!(%error, "connection of `serve` ended");
    }
}
