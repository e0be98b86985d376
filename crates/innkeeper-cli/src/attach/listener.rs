//! The side of the gateway.

use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use innkeeper_gateway::{Gateway, Principal};
use innkeeper_host::{Environment, Host};
use tokio::io::{BufReader, split};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{SetOnce, mpsc};
use tokio::time::timeout;

use super::directory::{create, is_same_user, socket_path};
use super::greeting::{self, Greeting, Restarted, Welcome};
use super::requested_item::RequestedItem;

/// Maximum number of open connections; more wait in the queue of the system.
const MAX_CONNECTIONS: usize = 64;

/// The socket of a gateway. The file is removed at the end.
#[derive(Debug)]
pub(crate) struct AttachListener {
    listener: UnixListener,
    path: PathBuf,
    inode: u64,
}

impl AttachListener {
    /// Listens on the socket of a digest, in place of a socket that a killed gateway left. Returns
    /// `None` if another gateway listens there, or if the user has no home directory.
    ///
    /// # Errors
    ///
    /// The socket cannot be created, or others can open its directory.
    pub(crate) async fn bind(environment: &Environment, digest: &str) -> io::Result<Option<Self>> {
        let Some(path) = socket_path(environment, digest) else { return Ok(None) };
        create(&path)?;
        if path.symlink_metadata().is_ok() {
            if UnixStream::connect(&path).await.is_ok() {
                return Ok(None);
            }
            std::fs::remove_file(&path)?;
        }
        let listener = UnixListener::bind(&path)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        let inode = path.symlink_metadata()?.ino();
        Ok(Some(Self { listener, path, inode }))
    }
}

/// Serves commands at the newest of the listeners until `stop` is set; then the open connections for at
/// most `drain_time`.
pub(crate) async fn serve(
    mut listeners: mpsc::Receiver<Option<AttachListener>>,
    gateway: &Gateway,
    host: &Host,
    stop: &SetOnce<()>,
    drain_time: Duration,
) {
    let mut commands = FuturesUnordered::new();
    let mut current: Option<AttachListener> = None;
    let mut has_warned = false;
    loop {
        let accepting = async {
            match &current {
                Some(current) => current.listener.accept().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = stop.wait() => break,
            Some(()) = commands.next() => {}
            Some(next) = listeners.recv() => current = next,
            accepted = accepting, if commands.len() < MAX_CONNECTIONS => {
                match accepted {
                    Ok((stream, _)) => match check_peer(&stream) {
                        Ok(()) => commands.push(serve_command(stream, gateway, host)),
                        // A server can try without end.
                        Err(reason) if has_warned => {
                            tracing::debug!(reason, "connection of a command rejected");
                        }
                        Err(reason) => {
                            has_warned = true;
                            tracing::warn!(reason, "connection of a command rejected");
                        }
                    },
                    Err(error) => {
                        tracing::warn!(%error, "no more commands use this gateway");
                        current = None;
                    }
                }
            }
        }
    }
    // From now on, a command starts its own server.
    drop((current, listeners));
    let draining = async { while commands.next().await.is_some() {} };
    timeout(drain_time, draining).await.ok();
}

/// Returns an error unless the process at the other end may do what its user may: a sandboxed server
/// has the same user.
fn check_peer(stream: &UnixStream) -> Result<(), String> {
    if !is_same_user(stream) {
        return Err("it belongs to another user".to_owned());
    }
    #[cfg(target_os = "linux")]
    innkeeper_host::peer::check_unconfined(stream).map_err(|problem| problem.to_string())?;
    Ok(())
}

async fn serve_command(stream: UnixStream, gateway: &Gateway, host: &Host) {
    let (reader, mut writer) = split(stream);
    let mut reader = BufReader::new(reader);
    let served = async {
        let greeting: Greeting = greeting::read(&mut reader).await?;
        let restarts = matches!(greeting.item, RequestedItem::Process);
        // A command for a server that a reload added starts its own.
        let ready = greeting.is_served_by(host)
            && (restarts || gateway.has_server_connection(&greeting.server));
        greeting::write(&mut writer, &Welcome { ready }).await?;
        if !ready {
            return Ok(());
        }
        if restarts {
            let restarted = gateway.restart_server(&greeting.server).await;
            let problem = restarted.err().map(|error| error.to_string());
            return greeting::write(&mut writer, &Restarted { problem }).await;
        }
        let user = Principal::local_user();
        gateway.serve_server_connection(user, &greeting.server, reader, writer).await
    };
    if let Err(error) = served.await {
        tracing::debug!(%error, "connection of a command ended");
    }
}

impl Drop for AttachListener {
    fn drop(&mut self) {
        // Another gateway may have replaced the file.
        let is_own = self.path.symlink_metadata().is_ok_and(|file| file.ino() == self.inode);
        if is_own && let Err(error) = std::fs::remove_file(&self.path) {
            tracing::debug!(%error, "the socket was not removed");
        }
    }
}
